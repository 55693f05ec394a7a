// SPDX-License-Identifier: Apache-2.0
#include "compiler/support/packed.h"

#include <cstdint>
#include <cstring>

namespace tartan::inline TARTAN_ABI::detail {

using nlohmann::json;

// The bulk's size, the bulk, and the rest as CBOR.
std::string pack(std::string_view bulk, const json& rest) {
  const std::uint64_t bytes = bulk.size();
  std::string out(sizeof bytes, '\0');
  std::memcpy(out.data(), &bytes, sizeof bytes);
  out += bulk;
  json::to_cbor(rest, out);
  return out;
}

Unpacked unpack(std::string_view entry) {
  std::uint64_t bytes = 0;
  if (entry.size() < sizeof bytes) throw json::other_error::create(501, "no size", nullptr);
  std::memcpy(&bytes, entry.data(), sizeof bytes);
  entry.remove_prefix(sizeof bytes);
  if (bytes > entry.size()) throw json::other_error::create(501, "too short", nullptr);
  const std::string_view rest = entry.substr(bytes);
  return {entry.substr(0, bytes), json::from_cbor(rest.begin(), rest.end())};
}

}  // namespace tartan::inline TARTAN_ABI::detail
