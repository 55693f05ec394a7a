// SPDX-License-Identifier: Apache-2.0
// Initial values of variables: their number, types, and addresses of earlier declarations (PTX ISA
// 5.4.4 and 5.4.5).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compiler/ptx/declarations.h"
#include "compiler/verify/pass.h"

namespace tartan::TARTAN_ABI::verify {
namespace {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Variable;

constexpr std::string_view texture_fields[] = {"width",
                                               "height",
                                               "depth",
                                               "array_size",
                                               "num_mipmap_levels",
                                               "num_samples",
                                               "addr_mode_0",
                                               "addr_mode_1",
                                               "addr_mode_2",
                                               "channel_data_type",
                                               "channel_order",
                                               "filter_mode",
                                               "normalized_coords"};
constexpr std::string_view surface_fields[] = {
    "width",         "height",       "depth", "array_size", "channel_data_type",
    "channel_order", "memory_layout"};
constexpr std::string_view sampler_fields[] = {"addr_mode_0", "addr_mode_1", "addr_mode_2",
                                               "filter_mode", "force_unnormalized_coords"};

// "[4][8]" -> 4, 8; "[]" -> 0
std::vector<std::uint64_t> lengths_of(std::string_view dimensions) {
  std::vector<std::uint64_t> out;
  for (std::size_t at = 0; (at = dimensions.find('[', at)) != std::string_view::npos; ++at) {
    const std::size_t digits = dimensions.find_first_not_of("[ \t\r\n", at);
    std::uint64_t value = 0;
    std::string_view text = dimensions.substr(digits);
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if (hexadecimal) text.remove_prefix(2);
    std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
    out.push_back(value);
  }
  return out;
}

bool untyped(Type type) { return info(type).name[0] == 'b'; }

// 0xFF, 0xFF00, ...: one byte of an address.
bool one_byte(std::uint64_t mask) {
  while (mask && !(mask & 0xFF)) mask >>= 8;
  return mask == 0xFF;
}

class InitializerChecker {
 public:
  explicit InitializerChecker(Context& context)
      : context_(context), module_(context.module), names_(context.module) {}

  void run() {
    for (const Variable& each : module_.variables)
      if (each.initialiser) check(each);
  }

 private:
  void check(const Variable& variable) {
    const Operand& value = module_.operands[*variable.initialiser];
    if (variable.space != StateSpace::global && variable.space != StateSpace::constant)
      return error(
          value, variable,
          fmt::format("expected .global or .const, found .{}", tartan::name(variable.space)));
    if (variable.linkage == ".extern")
      return error(value, variable, "expected none for an .extern variable, found one");
    if (variable.type == Type::none) return opaque(variable, value);
    if (variable.type == Type::f16 || variable.type == Type::f16x2)
      return error(value, variable,
                   fmt::format("expected none for .{}, found one; .b{} takes the bits",
                               name(variable.type), bits(variable.type)));
    std::vector<std::uint64_t> lengths = lengths_of(variable.dimensions);
    element(variable, value, lengths, 0);
  }

  // False: an error was reported.
  bool element(const Variable& variable, const Operand& value,
               const std::vector<std::uint64_t>& lengths, std::size_t depth) {
    const bool vector = depth == lengths.size() && variable.vector > 1;
    if (depth == lengths.size() && !vector) return scalar(variable, value);
    const bool braces = value.kind == OperandKind::Vector;
    if (vector && (!braces || value.count != variable.vector))
      return fail(value, variable,
                  fmt::format("expected {} numbers in braces, found {}", variable.vector,
                              braces ? fmt::format("{}", value.count) : "one without"));
    if (!braces) return fail(value, variable, "expected a list in braces, found one value");
    if (!vector && (depth || !variable.unsized) && value.count > lengths[depth])
      return fail(
          value, variable,
          fmt::format("expected {} elements at most, found {}", lengths[depth], value.count));
    for (const Operand& each : module_.children(value))
      if (vector ? !scalar(variable, each) : !element(variable, each, lengths, depth + 1))
        return false;
    return true;
  }

  bool scalar(const Variable& variable, const Operand& value) {
    const TypeInfo& type = info(variable.type);
    switch (value.kind) {
      case OperandKind::Integer:
        return !type.floating || fail(value, variable,
                                      fmt::format("expected a number such as {}.0, found {}",
                                                  value.text, value.text));
      case OperandKind::Float:
        return type.floating || untyped(variable.type) ||
               fail(value, variable, fmt::format("expected an integer, found {}", value.text));
      case OperandKind::Name:
        if (value.text == "WARP_SZ" && !type.floating) return true;
        return value.count ? masked(variable, value) : address(variable, value, value, true);
      case OperandKind::Vector: return fail(value, variable, "expected one value, found a list");
      default:
        return fail(value, variable, "expected a number or an address, found another operand");
    }
  }

  // 0xFF00(name)
  bool masked(const Variable& variable, const Operand& value) {
    const Operand& name = module_.children(value)[0];
    if (variable.type != u8 && variable.type != u32 && variable.type != Type::u64)
      return fail(name, variable,
                  fmt::format("expected .u8 for a byte of an address, found .{}",
                              tartan::name(variable.type)));
    std::string_view text = value.text.substr(0, value.text.find_first_of("( \t"));
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if (hexadecimal) text.remove_prefix(2);
    std::uint64_t mask = 0;
    std::from_chars(text.data(), text.data() + text.size(), mask, hexadecimal ? 16 : 10);
    constexpr Version first{7, 1};
    if (context_.target.ptx < first)
      return fail(name, variable,
                  fmt::format("expected PTX {} for a byte of an address, found {}", first.text(),
                              context_.target.ptx.text()));
    if (!one_byte(mask))
      return fail(name, variable,
                  fmt::format("expected the mask of one byte such as 0xFF00, found {}",
                              value.text.substr(0, value.text.find('('))));
    return address(variable, name, name, false);
  }

  bool address(const Variable& variable, const Operand& value, const Operand& at, bool typed) {
    const bool generic = value.text.starts_with("generic(");
    const std::string_view base = base_name(value.text);
    const NameInfo found = names_.find(base);
    const bool known = (found.kind == NameKind::Variable || found.kind == NameKind::Function) &&
                       found.offset < variable.offset;
    if (!known)
      return fail(at, variable,
                  fmt::format("expected a variable or function that is declared before {}, found "
                              "{}",
                              variable.name, base));
    if (typed && variable.type != u32 && variable.type != Type::u64)
      return fail(at, variable,
                  fmt::format("expected .u{} for an address, found .{}",
                              module_.address_size == 32 ? 32 : 64, tartan::name(variable.type)));
    if (found.kind == NameKind::Function)
      return (!generic && !value.value) ||
             fail(at, variable,
                  fmt::format("expected the function {} alone, found {}", base,
                              generic ? "generic()" : "an offset"));
    return found.space == StateSpace::global || found.space == StateSpace::constant ||
           fail(at, variable,
                fmt::format("expected the address of a .global or .const variable, found {} in .{}",
                            base, tartan::name(found.space)));
  }

  // {addr_mode_0 = wrap, filter_mode = linear}
  void opaque(const Variable& variable, const Operand& value) {
    const std::string_view kind = variable.attributes.substr(variable.attributes.rfind('.'));
    const std::span<const std::string_view> fields =
        kind == ".texref"       ? std::span<const std::string_view>(texture_fields)
        : kind == ".samplerref" ? std::span<const std::string_view>(sampler_fields)
                                : std::span<const std::string_view>(surface_fields);
    if (value.kind != OperandKind::Vector)
      return error(value, variable, "expected {field = value, ...}, found one value");
    for (const Operand& each : module_.children(value)) {
      const std::size_t equals = each.text.find('=');
      const std::string_view field = each.text.substr(0, each.text.find_first_of("= \t"));
      if (equals == std::string_view::npos || std::ranges::find(fields, field) == fields.end())
        return error(each, variable,
                     fmt::format("expected a field of {} such as {}, found {}", kind,
                                 fields.front(), field));
      const std::size_t start = each.text.find_first_not_of(" \t", equals + 1);
      if (!field_value(field, each.text.substr(start)))
        return error(
            each, variable,
            fmt::format("expected a value of {}, found {}", field, each.text.substr(start)));
    }
  }

  static bool field_value(std::string_view field, std::string_view value) {
    constexpr std::string_view modes[] = {"wrap", "mirror", "clamp_ogl", "clamp_to_edge",
                                          "clamp_to_border"};
    if (field.starts_with("addr_mode")) return std::ranges::find(modes, value) != std::end(modes);
    return field != "filter_mode" || value == "nearest" || value == "linear";
  }

  bool fail(const Operand& at, const Variable& variable, const std::string& message) {
    error(at, variable, message);
    return false;
  }

  void error(const Operand& at, const Variable& variable, const std::string& message) {
    context_.report("initializer"_rule, at.offset, std::max<std::size_t>(at.text.size(), 1),
                    fmt::format("illegal initializer of {}: {}", variable.name, message));
  }

  Context& context_;
  const ptx::Module& module_;
  ModuleNames names_;
};

}  // namespace

void check_initializers(Context& context) { InitializerChecker(context).run(); }

}  // namespace tartan::TARTAN_ABI::verify
