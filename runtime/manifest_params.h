// SPDX-License-Identifier: Apache-2.0
// runtime/manifest_params.h - parameters of a manifest that need no file: scalars, addresses,
// tensor maps, and the members of a struct.
#pragma once

#include "runtime/manifest.h"
#include "runtime/manifest_fields.h"

namespace tartan::TARTAN_ABI::detail {

inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 36;  // of a buffer

/// The type by which a tensor map describes elements of a buffer: TMA has u8 for all of 8 bits.
Type type_of_map(Type element);

class ManifestParams : protected ManifestFields {
 protected:
  using ManifestFields::ManifestFields;

  /// A scalar, an address or a tensor map; a struct's member also has a field `at`.
  ManifestParam read_value(const Json& param, const std::string& path, bool is_member = false);
  /// Writes scalars into `into.scalar`, and adds members that are known once the buffers are
  /// allocated.
  void read_members(const Json& fields, const std::string& path, ManifestParam& into);
  /// Reports what TMA does not support; false if there is something.
  bool check_map(const TensorMap& map, const std::string& path);
  /// true or false; `within` is what the field's path begins with.
  bool flag(const Json& object, const char* key, const std::string& within);

 private:
  void read_member(const Json& field, const std::string& path, std::size_t number,
                   std::vector<bool>& taken, ManifestParam& into);
  ManifestMember read_address(const Json& param, const std::string& path, bool is_member);
  ManifestTensorMap read_tensor_map(const Json& param, const std::string& path, bool is_member);
  std::vector<std::byte> read_scalar(const std::string& key, const Json& value,
                                     const std::string& path);
  std::vector<std::byte> raw(const Json& value, const std::string& path);
  template <typename T>
  std::vector<std::byte> integer(const Json& value, const std::string& path);
  template <typename T>
  std::vector<std::byte> real(const Json& value, const std::string& path);
  template <typename Number>
  std::vector<std::byte> narrow(const Json& value, const std::string& path);
};

}  // namespace tartan::TARTAN_ABI::detail
