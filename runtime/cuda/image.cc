// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/image.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "runtime/cuda/jit.h"
#include "runtime/cuda/kernel.h"
#include "runtime/cuda/module.h"

namespace tartan::TARTAN_ABI::cuda {
namespace {

using Image = std::span<const std::byte>;

template <typename T>
std::optional<T> read(Image image, std::uint64_t offset) {
  T value;
  if (offset > image.size() || sizeof(T) > image.size() - offset) return std::nullopt;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

constexpr bool holds(Image image, std::uint64_t offset, std::uint64_t bytes) {
  return offset <= image.size() && bytes <= image.size() - offset;
}

// Elf64_Ehdr and Elf64_Shdr of <elf.h>: what is looked at.
constexpr std::uint32_t elf_magic = 0x464c457f;
constexpr std::uint64_t table_at = 40, entry_bytes_at = 58, entries_at = 60;
constexpr std::uint64_t kind_at = 4, offset_at = 24, bytes_at = 32;  // of a section
constexpr std::uint32_t without_bytes = 8;                           // SHT_NOBITS

bool is_whole_elf(Image image) {
  const auto table = read<std::uint64_t>(image, table_at);
  const auto entry_bytes = read<std::uint16_t>(image, entry_bytes_at);
  const auto entries = read<std::uint16_t>(image, entries_at);
  if (!table || !entry_bytes || !entries || *entries == 0) return false;
  if (!holds(image, *table, std::uint64_t{*entry_bytes} * *entries)) return false;
  for (std::uint64_t i = 0; i < *entries; ++i) {
    const std::uint64_t section = *table + i * *entry_bytes;
    const auto kind = read<std::uint32_t>(image, section + kind_at);
    const auto offset = read<std::uint64_t>(image, section + offset_at);
    const auto bytes = read<std::uint64_t>(image, section + bytes_at);
    if (!kind || !offset || !bytes) return false;
    if (*kind != without_bytes && !holds(image, *offset, *bytes)) return false;
  }
  return true;
}

// A fatbin: magic, version, bytes of the header, bytes that follow.
constexpr std::uint32_t fatbin_magic = 0xba55ed50;

bool is_whole_fatbin(Image image) {
  const auto header = read<std::uint16_t>(image, 6);
  const auto bytes = read<std::uint64_t>(image, 8);
  return header && bytes && holds(image, *header, *bytes);
}

Status check_image(Image image, const std::string& name) {
  const auto magic = read<std::uint32_t>(image, 0);
  if (magic != elf_magic && magic != fatbin_magic)
    return {"module-load"_rule,
            fmt::format("{} is not machine code: expected a cubin or a fatbin{}", name,
                        image.empty() ? ", found no bytes" : "; PTX text is loaded as a string")};
  if (magic == elf_magic ? is_whole_elf(image) : is_whole_fatbin(image)) return Done{};
  return {"module-load"_rule,
          fmt::format("{} is damaged: its {} bytes end before what its header states", name,
                      image.size())};
}

// The kernels of a module that the driver has loaded, and their parameters, which have no names.
Result<std::vector<KernelInterface>> kernels_of(Context& context, ModuleHandle module,
                                                const std::string& name) {
  const Driver& driver = context.driver();
  if (!driver.module_function_count.address || !driver.module_functions.address ||
      !driver.function_name.address || !driver.function_param.address)
    return {"driver-version"_rule,
            fmt::format("the driver (CUDA {}) does not tell the kernels of {}: pass them to "
                        "Device::load(), or install a driver of CUDA 12.4",
                        cuda_version_text(driver.version()), name)};
  unsigned count = 0;
  if (auto status = context.call(driver.module_function_count, &count, module); !status)
    return status.diags();
  std::vector<FunctionHandle> functions(count);
  if (auto status = context.call(driver.module_functions, functions.data(), count, module); !status)
    return status.diags();
  std::vector<KernelInterface> out;
  for (const FunctionHandle function : functions) {
    const char* text = nullptr;
    if (auto status = context.call(driver.function_name, &text, function); !status)
      return status.diags();
    KernelInterface& kernel = out.emplace_back(KernelInterface{text, {}});
    std::size_t offset = 0, bytes = 0;
    while (context.invoke(driver.function_param, function, kernel.params.size(), &offset, &bytes) ==
           Code::Success)
      kernel.params.push_back({fmt::format("parameter {}", kernel.params.size()), bytes});
    if (context.lost())
      return context.failure(driver.function_param.symbol, Code::ContextIsDestroyed);
  }
  return out;
}

}  // namespace

Result<std::shared_ptr<detail::EngineModule>> load_image(
    std::shared_ptr<Context> context, std::span<const std::byte> image, const std::string& name,
    const std::vector<KernelInterface>& kernels) {
  if (auto status = check_image(image, name); !status) return status.diags();
  const Driver& driver = context->driver();
  Jit jit;
  ModuleHandle handle = nullptr;
  const Code code =
      context->invoke(driver.module_load, &handle, static_cast<const void*>(image.data()),
                      jit.count(), jit.options(), jit.values());
  if (code == Code::NoBinaryForGpu)
    return {
        "module-load"_rule,
        fmt::format("{} has no machine code for this GPU (sm_{}): assemble its PTX here, or load "
                    "the text",
                    name, context->capability())};
  if (code != Code::Success) return context->failure(driver.module_load.symbol, code);
  const auto loaded = std::make_shared<LoadedModule>(context, handle);
  if (!kernels.empty()) return make_module(loaded, name, kernels, std::nullopt);
  auto found = kernels_of(*context, handle, name);
  if (!found) return found.diags();
  return make_module(loaded, name, std::move(*found), std::nullopt);
}

}  // namespace tartan::TARTAN_ABI::cuda
