// SPDX-License-Identifier: Apache-2.0
#include "runtime/manifest_arguments.h"

#include <cstring>
#include <vector>

namespace tartan::TARTAN_ABI {

Result<Arguments> manifest_arguments(
    const std::vector<ManifestParam>& params,
    const std::function<std::uint64_t(const std::string&)>& address_of) {
  const auto encode = [&](const ManifestTensorMap& wanted) {
    TensorMap map = wanted.map;
    map.address = address_of(wanted.buffer) + wanted.offset;
    return map.encode();
  };
  Arguments out;
  for (const ManifestParam& param : params) {
    if (param.buffer) {
      out.add(address_of(param.buffer->name));
      continue;
    }
    if (param.tensor_map) {
      const auto map = encode(*param.tensor_map);
      if (!map) return map.diags();
      out.add(*map);
      continue;
    }
    std::vector<std::byte> bytes = param.scalar;
    for (const ManifestMember& member : param.members) {
      if (!member.tensor_map) {
        const std::uint64_t address = address_of(member.buffer) + member.offset;
        std::memcpy(bytes.data() + member.at, &address, sizeof address);
        continue;
      }
      const auto map = encode(*member.tensor_map);
      if (!map) return map.diags();
      std::memcpy(bytes.data() + member.at, &*map, sizeof *map);
    }
    out.add_bytes(bytes);
  }
  return out;
}

}  // namespace tartan::TARTAN_ABI
