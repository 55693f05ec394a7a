// SPDX-License-Identifier: Apache-2.0
#include "tartan/function.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/counted.h"
#include "library/call_checks.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

bool is_integer(Type type) {
  constexpr TypeSet integers{s8, u8, Type::s16, u16, s32, u32, s64, u64};
  return integers.has(type);
}

std::string text(Type type, bool pointer) {
  return fmt::format("{}{}", pointer ? "pointer to " : "", name(type));
}

bool fits(const CompiledParam& param, const SignatureParam& given) {
  if (param.pointer != given.pointer) return false;
  if (param.pointer) return elements_fit(param.type, given.type);
  if (param.type == given.type) return true;
  return is_integer(param.type) && is_integer(given.type) && bits(param.type) == bits(given.type);
}

std::string parameters(const Compiled& compiled) {
  std::string out;
  for (const CompiledParam& each : compiled.params)
    out +=
        fmt::format("{}{}: {}", out.empty() ? "" : ", ", each.name, text(each.type, each.pointer));
  return out;
}

Status check_signature(const Compiled& compiled, std::span<const SignatureParam> signature) {
  Diags diags;
  const std::size_t expected = compiled.params.size();
  if (signature.size() != expected)
    diags.report("launch-arguments"_rule, {},
                 fmt::format("wrong number of parameters in the signature: kernel {} has {} ({}), "
                             "found {}",
                             compiled.name, expected, parameters(compiled), signature.size()));
  for (std::size_t i = 0; i < std::min(expected, signature.size()); ++i) {
    const CompiledParam& param = compiled.params[i];
    if (!fits(param, signature[i]))
      report_argument(compiled, i,
                      fmt::format("the signature differs: expected {}, found {}",
                                  text(param.type, param.pointer),
                                  text(signature[i].type, signature[i].pointer)),
                      diags);
  }
  if (!diags.ok()) return diags;
  return Done{};
}

// Whether the loaded kernel is the compiled one, as far as its module tells.
Status check_loaded(const LoadedKernel& kernel, const Compiled& compiled) {
  if (kernel.name() != compiled.name)
    return {"launch-arguments"_rule,
            fmt::format("the loaded kernel is another one: expected {}, found {}", compiled.name,
                        kernel.name())};
  const std::size_t expected = compiled.params.size() + compiled.maps.size();
  if (!kernel.params().empty() && kernel.params().size() != expected)
    return {"launch-arguments"_rule,
            fmt::format("the loaded kernel {} is not the compiled one: expected {}, found {}",
                        compiled.name, counted(expected, "parameter"), kernel.params().size())};
  return Done{};
}

// An integer whose highest bit is a sign in one of the two types alone: the two mean different
// numbers.
void check_sign(const Compiled& compiled, const SignatureParam& given, const Arguments& arguments,
                std::size_t i, Diags& diags) {
  const CompiledParam& param = compiled.params[i];
  if (param.pointer || param.type == given.type || arguments[i].empty()) return;
  const auto highest = static_cast<unsigned>(arguments[i].back());  // little-endian
  if (highest < 0x80) return;
  std::int64_t number = 0;
  for (std::size_t at = arguments[i].size(); at-- > 0;)
    number = number << 8 | static_cast<std::int64_t>(arguments[i][at]);
  const int unused = 64 - bits(given.type);
  const std::string found =
      info(given.type).is_signed
          ? fmt::format(
                "{}",
                static_cast<std::int64_t>(static_cast<std::uint64_t>(number) << unused) >> unused)
          : fmt::format("{}", static_cast<std::uint64_t>(number));
  report_argument(compiled, i, fmt::format("{} does not fit {}", found, name(param.type)), diags);
}

}  // namespace

TypedKernel::TypedKernel(LoadedKernel kernel, const Compiled& compiled)
    : kernel_(std::move(kernel)), compiled_(std::make_shared<const Compiled>(compiled)) {}

Result<TypedKernel> TypedKernel::make(LoadedKernel kernel, const Compiled& compiled,
                                      std::span<const SignatureParam> signature) {
  if (const Status same = check_loaded(kernel, compiled); !same) return same.diags();
  if (const Status fits = check_signature(compiled, signature); !fits) return fits.diags();
  return TypedKernel(std::move(kernel), compiled);
}

Result<TypedKernel> TypedKernel::make(Device& device, const Compiled& compiled,
                                      std::span<const SignatureParam> signature) {
  if (const Status fits = check_signature(compiled, signature); !fits) return fits.diags();
  const auto module = device.load(compiled.ptx, compiled.name);
  if (!module) return module.diags();
  auto kernel = module->kernel(compiled.name);
  if (!kernel) return kernel.diags();
  return make(std::move(*kernel), compiled, signature);
}

Status TypedKernel::launch(std::span<const SignatureParam> signature, Dim3 grid,
                           const Arguments& arguments, const Stream* stream) {
  Diags diags;
  for (std::size_t i = 0; i < signature.size(); ++i)
    check_sign(*compiled_, signature[i], arguments, i, diags);
  if (!diags.ok()) return diags;
  return tartan::launch(kernel_, *compiled_, grid, arguments, stream);
}

}  // namespace tartan::TARTAN_ABI::detail
