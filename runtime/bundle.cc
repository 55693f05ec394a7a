// SPDX-License-Identifier: Apache-2.0
// A fatbin, as NVIDIA's fatbinary (CUDA 13.0) writes it. All numbers are little-endian:
//
//   0   u32  0xBA55ED50         4  u16  version 1     6  u16  16: this header's bytes
//   8   u64  bytes of all that follows
//
// Then for each image a header, and its bytes, padded with zeros to a multiple of 8:
//
//   0   u16  1: PTX, 2: ELF     2  u16  version 0x0101     4  u32  bytes of this header
//   8   u64  bytes of the image, padded
//   16  u32  its bytes if compressed, else 0     20  u32  where in the header the options are
//   24  u16, u16  minor and major version: of PTX .version, of an ELF its ABI's
//   28  u32  80 for sm_80       32  u32, u32  place and length of a name
//   40  u64  flags: 64 bits, Linux; compressed; the target's suffix
//   48  u64  0                  56  u64  bytes before compression, else 0
//   64  u64  PTX only: where in the header its options are, and 72: the options, empty
#include "tartan/bundle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "runtime/cuda/module.h"
#include "tartan/ptx/parser.h"
#include "tartan/support/source.h"

namespace tartan::TARTAN_ABI {
namespace {

constexpr std::uint32_t magic = 0xBA55ED50;
constexpr std::uint16_t format_version = 1, entry_version = 0x0101;
constexpr std::uint16_t kind_ptx = 1, kind_elf = 2;
constexpr std::size_t head_bytes = 16, elf_entry_bytes = 64, ptx_entry_bytes = 80;
constexpr std::uint64_t flag_64_bits = 0x1, flag_linux = 0x10, flag_compressed = 0xE000,
                        flag_suffix_a = 0x100000, flag_suffix_f = 0x200000;

template <typename T>
void put(std::string& out, T number) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(number) >> 8 * i & 0xFF);
}

template <typename T>
T get(std::string_view bytes, std::size_t at) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << 8 * i;
  return static_cast<T>(out);
}

// The version that a PTX text states.
Version version_of(std::string_view ptx) {
  constexpr std::string_view word = "\n.version";
  std::size_t at = ptx.starts_with(word.substr(1)) ? 0 : ptx.find(word);
  if (at == std::string_view::npos) return {};
  at = ptx.find_first_of("0123456789", at);
  if (at == std::string_view::npos) return {};
  const std::size_t end = ptx.find_first_not_of("0123456789.", at);
  return Version::parse(ptx.substr(at, end - at)).value_or(Version{});
}

void append(std::string& out, const BundleImage& image) {
  std::string bytes = image.bytes;
  if (!image.cubin) bytes += '\0';
  bytes.resize((bytes.size() + 7) / 8 * 8, '\0');
  const auto abi = static_cast<std::uint8_t>(image.bytes.size() > 8 ? image.bytes[8] : 0);
  const Version version = image.cubin ? Version{1, abi} : version_of(image.bytes);
  put<std::uint16_t>(out, image.cubin ? kind_elf : kind_ptx);
  put<std::uint16_t>(out, entry_version);
  put<std::uint32_t>(out, image.cubin ? elf_entry_bytes : ptx_entry_bytes);
  put<std::uint64_t>(out, bytes.size());
  put<std::uint32_t>(out, 0);
  put<std::uint32_t>(out, image.cubin ? 0 : elf_entry_bytes);
  put<std::uint16_t>(out, version.minor), put<std::uint16_t>(out, version.major);
  put<std::uint32_t>(out, image.arch.sm);
  put<std::uint64_t>(out, 0);
  put<std::uint64_t>(out, flag_64_bits | flag_linux |
                              (image.arch.suffix == 'a'   ? flag_suffix_a
                               : image.arch.suffix == 'f' ? flag_suffix_f
                                                          : 0));
  put<std::uint64_t>(out, 0), put<std::uint64_t>(out, 0);
  if (!image.cubin) put<std::uint64_t>(out, elf_entry_bytes + 8), put<std::uint64_t>(out, 0);
  out += bytes;
}

Diags damaged(const std::string& name, const std::string& why) {
  return Diags::one("file"_rule, {}, fmt::format("{} is not a bundle: {}", name, why));
}

// The image at the start of `bytes`, which are cut off behind it; none if it is of another kind.
Result<std::optional<BundleImage>> take(std::string_view& bytes, std::size_t at,
                                        const std::string& name) {
  const auto refused = [&](const std::string& why) {
    return damaged(name, fmt::format("image at byte {}: {}", at, why));
  };
  if (bytes.size() < elf_entry_bytes)
    return refused(
        fmt::format("expected a header of {} bytes, found {}", elf_entry_bytes, bytes.size()));
  const std::uint64_t header = get<std::uint32_t>(bytes, 4), size = get<std::uint64_t>(bytes, 8);
  if (header < elf_entry_bytes || header > bytes.size() || size > bytes.size() - header)
    return refused(fmt::format("a header of {} bytes and an image of {}, where {} are left", header,
                               size, bytes.size()));
  const std::string_view entry = bytes;
  bytes.remove_prefix(header + size);
  const auto kind = get<std::uint16_t>(entry, 0);
  if (kind != kind_ptx && kind != kind_elf) return std::optional<BundleImage>();
  const auto flags = get<std::uint64_t>(entry, 40);
  if (flags & flag_compressed || get<std::uint32_t>(entry, 16) != 0)
    return refused("it is compressed; fatbinary --compress=false writes it plainly");
  BundleImage out{{static_cast<int>(get<std::uint32_t>(entry, 28)), flags & flag_suffix_a   ? 'a'
                                                                    : flags & flag_suffix_f ? 'f'
                                                                                            : '\0'},
                  kind == kind_elf,
                  std::string(entry.substr(header, size))};
  if (!find_arch(out.arch)) return refused(fmt::format("unknown target {}", out.arch.text()));
  if (!out.cubin) out.bytes.resize(out.bytes.find_last_not_of('\0') + 1);
  if (!out.cubin && out.bytes.find('\0') != std::string::npos)
    return refused("a zero inside of the PTX");
  if (out.bytes.empty()) return refused("it is empty");
  if (out.cubin && !out.bytes.starts_with("\x7f"
                                          "ELF"))
    return refused("the cubin is not an ELF file");
  return std::optional(std::move(out));
}

std::vector<KernelInterface> kernels_of(const std::string& ptx, const std::string& name) {
  Diags ignored;  // a wrong text is not loaded
  return cuda::interfaces_of(ptx::parse(std::make_shared<const Source>(name, ptx), ignored));
}

}  // namespace

std::string Bundle::bytes() const {
  std::string images;
  for (const BundleImage& each : images_) append(images, each);
  std::string out;
  put<std::uint32_t>(out, magic);
  put<std::uint16_t>(out, format_version);
  put<std::uint16_t>(out, head_bytes);
  put<std::uint64_t>(out, images.size());
  return out + images;
}

Result<Bundle> Bundle::parse(std::string_view bytes, const std::string& name) {
  if (bytes.size() < head_bytes || get<std::uint32_t>(bytes, 0) != magic)
    return damaged(name,
                   fmt::format("expected a fatbin, which begins with the number 0x{:X}", magic));
  const auto version = get<std::uint16_t>(bytes, 4), header = get<std::uint16_t>(bytes, 6);
  if (version != format_version || header != head_bytes)
    return damaged(name,
                   fmt::format("expected version {} and a header of {} bytes, found {} and {}",
                               format_version, head_bytes, version, header));
  const auto size = get<std::uint64_t>(bytes, 8);
  if (size != bytes.size() - head_bytes)
    return damaged(name, fmt::format("its header says that {} bytes follow, found {}", size,
                                     bytes.size() - head_bytes));
  std::string_view rest = bytes.substr(head_bytes);
  std::vector<BundleImage> images;
  while (!rest.empty()) {
    auto image = take(rest, bytes.size() - rest.size(), name);
    if (!image) return image.diags();
    if (*image) images.push_back(**std::move(image));
  }
  return Bundle(std::move(images));
}

Result<Bundle> Bundle::read(const std::string& path) {
  const auto file = read_source(path);
  if (!file) return file.diags();
  return parse(file->text(), path);
}

const BundleImage* Bundle::best(int sm) const {
  const auto rank = [](Arch arch) {
    return 4 * arch.sm + (arch.suffix == 'a' ? 2 : arch.suffix == 'f' ? 1 : 0);
  };
  const BundleImage* out = nullptr;
  for (const BundleImage& each : images_)
    if (!each.cubin && runs_on(each.arch, sm) && (!out || rank(out->arch) < rank(each.arch)))
      out = &each;
  return out;
}

const BundleImage* Bundle::best_cubin(int sm) const {
  const BundleImage* const ptx = best(sm);
  if (!ptx || ptx->arch.sm != sm) return nullptr;
  const auto found = std::ranges::find_if(
      images_, [&](const BundleImage& each) { return each.cubin && each.arch == ptx->arch; });
  return found == images_.end() ? nullptr : &*found;
}

namespace {

Diag refused_machine_code(const std::string& module, const Diags& why) {
  Diag out;
  out.level = Level::Warning;
  out.id = "module-load"_rule.id;
  out.message =
      fmt::format("the driver compiles the PTX of {}, because it refused its machine code: {}",
                  module, why.empty() ? "unknown error" : why[0].message);
  return out;
}

}  // namespace

Result<Module> load(Device& device, const Bundle& bundle, const std::string& name,
                    Diags* warnings) {
  const int sm = device.arch().sm;
  if (const BundleImage* const ptx = bundle.best(sm)) {
    const std::string module = fmt::format("{} ({})", name, ptx->arch.text());
    if (const BundleImage* const cubin = device.emulated() ? nullptr : bundle.best_cubin(sm)) {
      auto loaded = device.load(std::as_bytes(std::span(cubin->bytes)), module,
                                kernels_of(ptx->bytes, module));
      if (loaded) return loaded;
      if (warnings) warnings->add(refused_machine_code(module, loaded.diags()));
    }
    return device.load(ptx->bytes, module);
  }
  std::vector<std::string> targets;
  for (const BundleImage& each : bundle.images())
    if (!each.cubin) targets.push_back(each.arch.text());
  return {"module-load"_rule,
          fmt::format("{} has no PTX for sm_{}: it has {}", name, sm,
                      targets.empty() ? "none" : fmt::format("{}", fmt::join(targets, ", ")))};
}

}  // namespace tartan::TARTAN_ABI
