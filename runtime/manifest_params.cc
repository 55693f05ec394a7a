// SPDX-License-Identifier: Apache-2.0
#include "runtime/manifest_params.h"

#include <cmath>
#include <limits>

#include "tartan/runtime/host_types.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

constexpr std::size_t tensor_map_alignment = 64;
constexpr std::string_view scalar_names =
    "u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, f32, f64, bytes";

template <typename T>
std::vector<std::byte> bytes_of(T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  return {bytes, bytes + sizeof value};
}

// The fields that an object may have; those of a struct's member include `at`.
std::vector<std::string_view> with_place(std::vector<std::string_view> fields, bool is_member) {
  if (is_member) fields.emplace_back("at");
  return fields;
}

}  // namespace

bool ManifestParams::flag(const Json& object, const char* key, const std::string& within) {
  const Json* field = find(object, key);
  if (field && field->is_boolean()) return field->get<bool>();
  fail(within + key, "true or false", field);
  return false;
}

ManifestParam ManifestParams::read_value(const Json& param, const std::string& path,
                                         bool is_member) {
  if (param.is_object() && param.contains("tensor_map"))
    return {.tensor_map = read_tensor_map(param, path, is_member)};
  if (param.is_object() && param.contains("address"))
    return {.scalar = bytes_of(std::uint64_t{0}),
            .members = {read_address(param, path, is_member)}};
  const bool named = param.is_object() && !is_member && param.size() == 2 && param.contains("name");
  if (!param.is_object() || param.size() != (is_member || named ? 2 : 1)) {
    fail(path,
         fmt::format("{}a tensor_map, {}an address, or one of {}", is_member ? "" : "a buffer, ",
                     is_member ? "" : "a struct, ", scalar_names),
         &param);
    return {};
  }
  auto item = param.begin();
  if ((is_member && item.key() == "at") || (named && item.key() == "name")) ++item;
  ManifestParam out{.scalar = read_scalar(item.key(), item.value(), path)};
  if (named) out.name = text(param, "name", path + ".name").value_or("");
  if (item.key() != "bytes") out.type = parse_type(item.key()).value_or(Type::none);
  return out;
}

// {"address": "in", "offset": 64}
ManifestMember ManifestParams::read_address(const Json& param, const std::string& path,
                                            bool is_member) {
  known_fields(param, path, with_place({"address", "offset"}, is_member));
  ManifestMember out;
  out.buffer = text(param, "address", path + ".address").value_or("");
  if (const Json* offset = find(param, "offset"))
    out.offset = whole(*offset, path + ".offset", 0, most_bytes).value_or(0);
  return out;
}

void ManifestParams::read_members(const Json& fields, const std::string& path,
                                  ManifestParam& into) {
  into.is_struct = true;
  if (!fields.is_array()) return fail(path, "an array", &fields);
  std::vector<bool> taken(into.scalar.size());
  for (std::size_t i = 0; i < fields.size(); ++i)
    read_member(fields[i], fmt::format("{}[{}]", path, i), i, taken, into);
}

void ManifestParams::read_member(const Json& field, const std::string& path, std::size_t number,
                                 std::vector<bool>& taken, ManifestParam& into) {
  if (!field.is_object()) return fail(path, "an object", &field);
  const Json* at = find(field, "at");
  if (!at) return fail(path + ".at", "an offset in bytes", at);
  const std::uint64_t size = into.scalar.size();
  const auto offset = whole(*at, path + ".at", 0, size - 1);
  ManifestParam member = read_value(field, path, true);
  if (member.tensor_map) {
    member.scalar.resize(sizeof(TensorMapBytes));
    member.members.push_back({.tensor_map = std::move(member.tensor_map)});
    if (offset && *offset % tensor_map_alignment != 0)
      report(path + ".at",
             fmt::format("misaligned tensor map: expected a multiple of {} bytes, found {}",
                         tensor_map_alignment, *offset));
  }
  if (!offset || member.scalar.empty()) return;  // reported already
  const std::size_t bytes = member.scalar.size();
  if (bytes > size - *offset)
    return report(path + ".at",
                  fmt::format("{} bytes at offset {} extend beyond the struct, which has {}", bytes,
                              *offset, size));
  const auto first = taken.begin() + static_cast<std::ptrdiff_t>(*offset),
             last = first + static_cast<std::ptrdiff_t>(bytes);
  if (std::find(first, last, true) != last)
    return report(path + ".at",
                  fmt::format("the {} bytes at offset {} overlap another field's", bytes, *offset));
  std::fill(first, last, true);
  std::ranges::copy(member.scalar, into.scalar.begin() + static_cast<std::ptrdiff_t>(*offset));
  for (ManifestMember& each : member.members) {
    each.at = *offset;
    each.field = number;
    into.members.push_back(std::move(each));
  }
}

std::vector<std::byte> ManifestParams::read_scalar(const std::string& key, const Json& value,
                                                   const std::string& path) {
  const std::string field = path + "." + key;
  if (key == "u8") return integer<std::uint8_t>(value, field);
  if (key == "s8") return integer<std::int8_t>(value, field);
  if (key == "u16") return integer<std::uint16_t>(value, field);
  if (key == "s16") return integer<std::int16_t>(value, field);
  if (key == "u32") return integer<std::uint32_t>(value, field);
  if (key == "s32") return integer<std::int32_t>(value, field);
  if (key == "u64") return integer<std::uint64_t>(value, field);
  if (key == "s64") return integer<std::int64_t>(value, field);
  if (key == "f16") return narrow<host::f16>(value, field);
  if (key == "bf16") return narrow<host::bf16>(value, field);
  if (key == "f32") return real<float>(value, field);
  if (key == "f64") return real<double>(value, field);
  if (key == "bytes") return raw(value, field);
  fail(field,
       fmt::format("one of buffer, tensor_map, struct, address, {} as the field's name",
                   scalar_names),
       &value);
  return {};
}

std::vector<std::byte> ManifestParams::raw(const Json& value, const std::string& path) {
  const auto numbers = list<std::uint64_t>(value, path, 0, 255);
  std::vector<std::byte> out;
  if (numbers)
    for (const std::uint64_t number : *numbers) out.push_back(static_cast<std::byte>(number));
  return out;
}

template <typename T>
std::vector<std::byte> ManifestParams::integer(const Json& value, const std::string& path) {
  constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  const bool fits = value.is_number_unsigned()
                        ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                        : value.is_number_integer() &&
                              std::cmp_greater_equal(value.get<std::int64_t>(), least) &&
                              std::cmp_less_equal(value.get<std::int64_t>(), most);
  if (fits) return bytes_of(value.get<T>());
  fail(path, fmt::format("a whole number from {} to {}", least, most), &value);
  return {};
}

template <typename T>
std::vector<std::byte> ManifestParams::real(const Json& value, const std::string& path) {
  if (value.is_number() && std::fabs(value.get<double>()) <= std::numeric_limits<T>::max())
    return bytes_of(static_cast<T>(value.get<double>()));
  fail(path, fmt::format("a number of at most {}", std::numeric_limits<T>::max()), &value);
  return {};
}

template <typename Number>
std::vector<std::byte> ManifestParams::narrow(const Json& value, const std::string& path) {
  if (value.is_number())
    if (const Number number(value.get<double>()); std::isfinite(static_cast<float>(number)))
      return bytes_of(number.bits());
  fail(path, fmt::format("a number that {} has", name(Number::type)), &value);
  return {};
}

// ---- Tensor maps.

ManifestTensorMap ManifestParams::read_tensor_map(const Json& param, const std::string& path,
                                                  bool is_member) {
  known_fields(param, path,
               with_place({"tensor_map", "offset", "type", "extents", "strides", "box", "swizzle",
                           "promotion", "fill", "element_strides", "flush_subnormals"},
                          is_member));
  const std::size_t before = diags_.size();
  ManifestTensorMap out;
  TensorMap& map = out.map;
  out.buffer = text(param, "tensor_map", path + ".tensor_map").value_or("");
  if (const Json* offset = find(param, "offset")) {
    out.offset = whole(*offset, path + ".offset", 0, most_bytes).value_or(0);
    if (out.offset % 16 != 0)
      report(path + ".offset", fmt::format("{} is not a multiple of 16 bytes", out.offset));
  }
  out.whole = !find(param, "extents") && !find(param, "strides");
  const bool typed = !out.whole || find(param, "type");
  if (const auto name = typed ? text(param, "type", path + ".type") : std::nullopt) {
    if (const auto type = parse_type(*name)) map.type = *type;
    else fail(path + ".type", "an element type such as f16, bf16, f32 or u8", find(param, "type"));
  }
  if (!out.whole) numbers(param, "extents", path, map.extents);
  if (!out.whole && (map.extents.size() != 1 || find(param, "strides")))
    numbers(param, "strides", path, map.strides);
  numbers(param, "box", path, map.box);
  if (find(param, "element_strides")) numbers(param, "element_strides", path, map.element_strides);
  map.swizzle = choice<TensorMap::Swizzle>(param, "swizzle", path,
                                           {"0", "32", "64", "128", "\"128-atom-32\""});
  map.promotion = choice<TensorMap::Promotion>(param, "promotion", path, {"0", "64", "128", "256"});
  map.fill = choice<TensorMap::Fill>(param, "fill", path, {"\"zero\"", "\"nan\""});
  map.flush_subnormals =
      choice<std::uint8_t>(param, "flush_subnormals", path, {"false", "true"}) != 0;
  if (diags_.size() == before && !out.whole) check_map(map, path);
  return out;
}

bool ManifestParams::check_map(const TensorMap& map, const std::string& path) {
  const Status status = map.check();
  if (status) return true;
  for (const Diag& diag : status.diags()) {
    // "box[0]: ..." names a field.
    const bool field = diag.message.find(": ") < diag.message.find(' ');
    diags_.report("manifest"_rule, {source_.name(), 0, 0},
                  fmt::format("{}{}{}", path, field ? "." : ": ", diag.message));
  }
  return false;
}

Type type_of_map(Type element) {
  switch (element) {
    case Type::s8:
    case Type::b8:
    case Type::e4m3:
    case Type::e5m2: return Type::u8;
    case Type::s16:
    case Type::b16: return Type::u16;
    case Type::b32: return Type::u32;
    case Type::b64: return Type::u64;
    default: return element;
  }
}

}  // namespace tartan::TARTAN_ABI::detail
