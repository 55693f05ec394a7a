// SPDX-License-Identifier: Apache-2.0
// What a descriptor of tcgen05 says: of a product, or of a tile in shared memory.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <charconv>

#include "compiler/isa/tensor_descriptors.h"
#include "tools/layout_table.h"

namespace tartan::tools {
namespace {

std::optional<std::uint64_t> number_of(std::string_view text, int bits) {
  std::uint64_t out = 0;
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2), base = 16;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && (bits == 64 || out >> bits == 0) ? std::optional(out) : std::nullopt;
}

Diags wrong_number(std::string_view option, std::string_view text, int bits) {
  return Diags::one(
      "usage"_rule, {},
      fmt::format("{} {}: expected a number of {} bits, such as 0x8100490", option, text, bits));
}

}  // namespace

std::string DescriptorText::text() const {
  return fmt::format("{} {}: {}\n{}", name, number, says.empty() ? "nothing that is known" : says,
                     fault.empty() ? "" : fmt::format("illegal: {}\n", fault));
}

std::string DescriptorText::json() const {
  nlohmann::ordered_json out{{"descriptor", name}, {"value", number}, {"says", says}};
  out["illegal"] = fault.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(fault);
  return out.dump();
}

Result<DescriptorText> instruction_descriptor_of(std::string_view instruction,
                                                 std::string_view number, Arch arch) {
  const isa::Spelling spelling = isa::read_spelling(without_operands(instruction));
  const auto mma = isa::tensor_mma(spelling, arch);
  if (!mma)
    return Diags::one("usage"_rule, {},
                      fmt::format("--idesc: {} has no instruction descriptor; expected a product, "
                                  "such as tcgen05.mma.cta_group::1.kind::f16",
                                  instruction));
  constexpr int bits = 32;
  const auto value = number_of(number, bits);
  if (!value) return wrong_number("--idesc", number, bits);
  const isa::PartialBits known{isa::PartialBits::ones(bits), *value};
  return DescriptorText{"instruction descriptor", fmt::format("0x{:08x}", *value),
                        isa::instruction_descriptor_text(*mma, known),
                        isa::instruction_descriptor_fault(*mma, known)};
}

Result<DescriptorText> tile_descriptor_of(std::string_view number) {
  constexpr int bits = 64;
  const auto value = number_of(number, bits);
  if (!value) return wrong_number("--descriptor", number, bits);
  const isa::PartialBits known{isa::PartialBits::ones(bits), *value};
  return DescriptorText{"descriptor of a tile", fmt::format("0x{:016x}", *value),
                        isa::tile_descriptor_text(known),
                        isa::tile_descriptor_fault(known, std::nullopt, false)};
}

}  // namespace tartan::tools
