// SPDX-License-Identifier: Apache-2.0
// Images in operands (PTX ISA 9.0, 9.7.10, 9.7.11): [texture, sampler, {coordinates}] and the like.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/verify/operand_matcher.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using isa::operator""_q;

constexpr isa::QualifierSet arrays = "a1d a2d acube a2dms";

// The number of coordinates for an image's dimensions.
unsigned texel_coordinates(const isa::Spelling& spelling) {
  constexpr isa::QualifierSet two = "2d a1d";
  if (spelling.has("1d"_q)) return 1;
  return (spelling.words & two).empty() ? 4 : 2;
}

unsigned opaque_bit(Opaque opaque) {
  switch (opaque) {
    case Opaque::No: return 0;
    case Opaque::Texture: return isa::as_texture;
    case Opaque::Sampler: return isa::as_sampler;
    case Opaque::Surface: return isa::as_surface;
  }
  return 0;
}

std::string_view handle_text(unsigned spaces) {
  if (spaces & isa::as_texture) return "a texture (a .texref, or its handle of 64 bits)";
  if (spaces & isa::as_surface) return "a surface (a .surfref, or its handle of 64 bits)";
  return "a sampler (a .samplerref, or its handle of 64 bits)";
}

}  // namespace

// .texmode_independent: the separate sampler operand applies, not the texture's own sampler.
bool OperandMatcher::independent_samplers() const {
  return std::ranges::find(module_.targets, "texmode_independent") != module_.targets.end();
}

unsigned OperandMatcher::images(unsigned spaces) const {
  if (!(spaces & isa::as_sampling)) return spaces;
  return independent_samplers() ? unsigned{isa::as_sampler} : unsigned{isa::as_texture};
}

// Even +0 is one, of which the tree keeps nothing.
bool OperandMatcher::has_offset(const ptx::Operand& base) const {
  const std::string_view text = module_.source->text();
  const std::size_t behind =
      text.find_first_not_of(" \t\r\n", module_.offset_of(base.text) + base.text.size());
  return base.value || (behind < text.size() && text[behind] == '+');
}

bool OperandMatcher::handle_fits(const ptx::Operand& base, unsigned spaces) const {
  if (base.kind != ptx::OperandKind::Name || has_offset(base)) return false;
  const NameInfo& info = names_.of(base);
  if (info.kind == NameKind::Register)
    return info.vector == 1 && bits(info.type) == 64 && !tartan::info(info.type).floating;
  return info.kind == NameKind::Variable && opaque_bit(info.opaque) & images(spaces);
}

bool OperandMatcher::image_fits(const ptx::Operand& operand, const Wanted& wanted) const {
  const auto parts = module_.children(operand);
  if (parts.empty() || !operand.text.empty()) return false;
  if (!handle_fits(parts[0], wanted.row.spaces)) return false;
  if (wanted.row.coordinates == 0) return parts.size() == 1;
  const bool sampler = parts.size() == 3;
  if (sampler ? !wanted.row.sampled || !handle_fits(parts[1], isa::as_sampler)
              : wanted.row.sampled && independent_samplers())
    return false;
  return parts.size() == (sampler ? 3 : 2) && texel_fits(parts.back(), wanted);
}

// The legal elements of a texel's coordinates.
struct OperandMatcher::Texel {
  isa::OperandRow index_row = isa::also(isa::an_integer | isa::a_special, isa::reg(Type::u32));
  isa::OperandRow coordinate_row;
  Wanted index, coordinate;

  explicit Texel(const Wanted& wanted)
      : coordinate_row(
            isa::also(isa::an_integer | isa::a_float | isa::a_special, isa::reg(wanted.row.type))),
        index{index_row, wanted.spelling, Type::u32, 1},
        coordinate{coordinate_row, wanted.spelling, wanted.type, 1, true} {}
  Texel(const Texel&) = delete;
};

// {x}, {x, y}, {x, y, z, _}; an array's index is the first. A scalar register suffices for one.
bool OperandMatcher::texel_fits(const ptx::Operand& coordinates, const Wanted& wanted) const {
  const Texel texel(wanted);
  const unsigned needed = texel_coordinates(wanted.spelling), count = coordinates.count;
  if (is_whole_vector(coordinates))
    return names_.of(coordinates).vector >= needed && (wanted.spelling.words & arrays).empty() &&
           register_fits(names_.of(coordinates).type, texel.coordinate);
  if (coordinates.kind != ptx::OperandKind::Vector)
    return needed == 1 && is_register(coordinates) && fits(coordinates, texel.coordinate);
  if (count < needed || !(count == 1 || count == 2 || count == 4)) return false;
  auto elements = module_.children(coordinates);
  if (!(wanted.spelling.words & arrays).empty()) {
    if (!fits(elements[0], texel.index)) return false;
    elements = elements.subspan(1);
  }
  return elements_fit(elements, texel.coordinate);
}

// Describes the part that does not fit.
OperandMismatch OperandMatcher::image_mismatch(const ptx::Operand& operand,
                                               const Wanted& wanted) const {
  const auto parts = module_.children(operand);
  const auto wrong = [](std::string expected, std::string found, std::string_view at = {}) {
    return OperandMismatch{&"operand-kind"_rule, at, expected + ", found " + found};
  };
  const auto kind = [&](unsigned spaces, const ptx::Operand& part) {
    return wrong(std::string(handle_text(images(spaces))), found(part), part.text);
  };
  if (!parts.empty() && (operand.value || has_offset(parts[0])))
    return wrong("no offset", "one", parts[0].text);
  if (parts.empty() || !handle_fits(parts[0], wanted.row.spaces))
    return kind(wanted.row.spaces, parts.empty() ? operand : parts[0]);
  const bool sampled = wanted.row.sampled;
  if (sampled && parts.size() == 3 && !handle_fits(parts[1], isa::as_sampler))
    return kind(isa::as_sampler, parts[1]);
  if (sampled && parts.size() == 2 && independent_samplers())
    return wrong("a texture, a sampler and coordinates (.texmode_independent)", "no sampler");
  const std::size_t most = wanted.row.coordinates == 0 ? 1 : sampled ? 3 : 2;
  if (parts.size() > most || (most > 1 && parts.size() < 2))
    return wrong(most == 1   ? "one part in brackets"
                 : most == 2 ? "a surface and coordinates in brackets"
                             : "a texture, perhaps a sampler, and coordinates in brackets",
                 std::to_string(parts.size()));
  return texel_mismatch(parts.back(), wanted);
}

OperandMismatch OperandMatcher::texel_mismatch(const ptx::Operand& coordinates,
                                               const Wanted& wanted) const {
  const unsigned needed = texel_coordinates(wanted.spelling);
  const std::string_view type = tartan::name(wanted.type);
  const bool array = !(wanted.spelling.words & arrays).empty();
  std::string expected =
      array ? fmt::format("{} elements, an index of type .u32 and coordinates of type .{}", needed,
                          type)
            : fmt::format("{} coordinate{} of type .{}", needed, needed > 1 ? "s" : "", type);
  if (coordinates.kind != ptx::OperandKind::Vector || coordinates.count < needed ||
      coordinates.count == 3 || coordinates.count > 4)
    return {&"register-count"_rule, coordinates.text, expected + ", found " + found(coordinates)};
  const auto elements = module_.children(coordinates);
  const Texel texel(wanted);
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (!fits(elements[i], array && i == 0 ? texel.index : texel.coordinate))
      return {&"register-type"_rule, elements[i].text, expected + ", found " + found(elements[i])};
  return {&"register-type"_rule, {}, expected + ", found several types"};
}

}  // namespace tartan::TARTAN_ABI::verify
