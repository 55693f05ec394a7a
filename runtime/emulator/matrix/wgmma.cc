// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/wgmma.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "runtime/emulator/matrix/arithmetic.h"
#include "runtime/emulator/matrix/lane_map.h"
#include "runtime/emulator/matrix/scratch_store.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// Cells of an operand in shared memory: cell (k / E) * outer_count + x.
class SharedReader {
 public:
  SharedReader(std::span<const std::byte> shared, std::uint64_t descriptor, bool mn_major, int bits)
      : shared_(shared),
        descriptor_(MatrixDescriptor::of(descriptor)),
        mn_major_(mn_major),
        bits_(bits) {}

  void read(int outer, int k, std::vector<std::uint32_t>& image) {
    const int per_cell = 32 / bits_;
    image.resize(static_cast<std::size_t>(outer * k / per_cell));
    for (int cell = 0; cell < k / per_cell; ++cell)
      for (int x = 0; x < outer; ++x) {
        const int first = cell * per_cell;
        std::uint32_t& word = image[static_cast<std::size_t>(cell * outer + x)];
        word = mn_major_ ? load(x, first, 2) | load(x, first + 1, 2) << 16 : load(x, first, 4);
      }
  }
  /// The first element that is not in shared memory.
  struct Fault {
    std::uint64_t address = 0;
    int x = -1, k = -1;
  };
  const Fault& fault() const { return fault_; }
  bool faulted() const { return fault_.x >= 0; }
  bool mn_major() const { return mn_major_; }
  const MatrixDescriptor& descriptor() const { return descriptor_; }

 private:
  std::uint32_t load(int x, int k, std::size_t bytes) {
    const std::uint64_t address = descriptor_.address(mn_major_, bits_, x, k);
    std::uint32_t word = 0;
    if (address + bytes > shared_.size()) fault_ = faulted() ? fault_ : Fault{address, x, k};
    else std::memcpy(&word, shared_.data() + address, bytes);
    return word;
  }

  std::span<const std::byte> shared_;
  MatrixDescriptor descriptor_;
  bool mn_major_;
  int bits_;
  Fault fault_;
};

// "stride offset 0x800 (field 128 * 16)"
std::string field_text(std::string_view name, std::uint32_t bytes) {
  return fmt::format("{} 0x{:x} (field {} \u00b7 16)", name, bytes, bytes / 16);
}

// What of a descriptor leads out of `size` bytes, or farthest, on the way to an element.
std::string_view guilty_field(const MatrixDescriptor& of, bool mn_major, int bits, int x, int k,
                              std::size_t size) {
  if (of.start >= size) return "start address";
  MatrixDescriptor without_leading = of, without_stride = of;
  without_leading.leading = without_stride.stride = 0;
  return without_leading.address(mn_major, bits, x, k) <
                 without_stride.address(mn_major, bits, x, k)
             ? "leading offset"
             : "stride offset";
}

// Why the descriptor of A or B is wrong: its fields, and which of them leads out of shared memory.
std::string fault_text(char name, const SharedReader& reader, int bits, std::size_t size) {
  const MatrixDescriptor& of = reader.descriptor();
  const SharedReader::Fault& fault = reader.fault();
  return fmt::format(
      "{}: the {} leads to 0x{:x} for {} {}, k {}, beyond {} bytes of shared memory; {}, {}, {}, "
      "{}; "
      "a field counts units of 16 bytes",
      name, guilty_field(of, reader.mn_major(), bits, fault.x, fault.k, size), fault.address,
      name == 'A' ? "row" : "column", fault.x, fault.k, size, field_text("start address", of.start),
      field_text("leading offset", of.leading), field_text("stride offset", of.stride),
      of.width ? fmt::format("swizzle of {} bytes", of.width) : std::string("no swizzle"));
}

}  // namespace

MatrixDescriptor MatrixDescriptor::of(std::uint64_t bits) {
  constexpr int widths[] = {0, 128, 64, 32};
  const auto field = [&](int low) { return static_cast<std::uint32_t>(bits >> low & 0x3FFF) << 4; };
  return {field(0), field(16), field(32), static_cast<int>(bits >> 49 & 7), widths[bits >> 62]};
}

std::uint64_t MatrixDescriptor::address(bool mn_major, int element_bits, int x, int k) const {
  // `across`: bytes along the contiguous axis; `line`: the other axis.
  const int across = (mn_major ? x : k) * element_bits / 8, line = mn_major ? k : x;
  const auto chunk = static_cast<std::uint64_t>(across / 16),
             byte = static_cast<std::uint64_t>(across % 16);
  const auto group = static_cast<std::uint64_t>(line / 8),
             row = static_cast<std::uint64_t>(line % 8);
  if (width == 0) {
    const std::uint64_t chunks = chunk * (mn_major ? stride : leading),
                        groups = group * (mn_major ? leading : stride);
    return start + groups + row * 16 + chunks + byte;
  }
  const auto row_bytes = static_cast<std::uint64_t>(width), per_row = row_bytes / 16;
  const int bits_of_row = std::countr_zero(per_row);  // faster than a division
  const std::uint64_t linear = start + group * stride + row * row_bytes +
                               (chunk >> bits_of_row) * leading + (chunk & (per_row - 1)) * 16 +
                               byte;
  const std::uint64_t pattern = ((linear >> 7) - static_cast<std::uint64_t>(base)) & (per_row - 1);
  return linear ^ pattern << 4;
}

struct WgmmaProduct::Plan {
  Plan(const isa::Form& form, const NumericRule& rule, Path path)
      : form(form),
        rule(rule),
        kernel(tile_kernel(path)),
        a(form, Operand::a, false),
        d(form, Operand::d, false),
        arithmetic(form, rule, false, path) {}

  isa::Form form;
  const NumericRule& rule;
  const TileKernel* kernel;
  LaneMap a, d;
  Arithmetic arithmetic;
};

Result<WgmmaProduct> WgmmaProduct::make(const isa::Form& form, Path path) {
  if (form.opcode != isa::Opcode::wgmma || !isa::find(form))
    return {"unsupported-instruction"_rule,
            isa::spell(form) + " is not a wgmma.mma_async instruction"};
  return WgmmaProduct(std::make_shared<const Plan>(form, rule_of(form, Hardware::sm_90), path));
}

Status WgmmaProduct::run(const WgmmaOperands& operands, Scratch& scratch) const {
  const isa::Form& form = plan_->form;
  const bool sparse = form.sparsity != isa::Sparsity::dense;
  auto& store = scratch.store().warpgroup;
  std::string fault;
  const auto read = [&](char name, std::uint64_t descriptor, bool mn_major, Type type, int outer,
                        int k, std::vector<std::uint32_t>& image) {
    SharedReader reader(operands.shared, descriptor, mn_major, bits(type));
    reader.read(outer, k, image);
    if (reader.faulted() && fault.empty())
      fault = fault_text(name, reader, bits(type), operands.shared.size());
  };
  if (form.a_in_registers) {
    store.a.resize(static_cast<std::size_t>(plan_->a.cells()));
    const void* const registers[] = {operands.a[0], operands.a[1], operands.a[2], operands.a[3]};
    plan_->a.gather(registers, store.a.data(), plan_->kernel);
  } else {
    read('A', operands.a_descriptor, operands.trans_a != 0, form.a, form.shape.m,
         sparse ? form.shape.k / 2 : form.shape.k, store.a);
  }
  read('B', operands.b_descriptor, operands.trans_b != 0, form.b, form.shape.n, form.shape.k,
       store.b);
  if (!fault.empty())
    return {"memory-fault"_rule,
            fmt::format("out of bounds: the matrix descriptor of {}: {}", isa::spell(form), fault)};

  const auto cells = static_cast<std::size_t>(plan_->d.cells());
  store.c.assign(cells, 0);
  store.d.resize(cells);
  std::vector<void*> registers(operands.d, operands.d + isa::fragment(form, Operand::d).registers);
  if (operands.scale_d) plan_->d.gather(registers.data(), store.c.data(), plan_->kernel);
  Images images;
  images.a = store.a.data();
  images.b = store.b.data();
  images.c = store.c.data();
  images.d = store.d.data();
  images.metadata = operands.metadata;
  images.selector = operands.selector;
  images.scratch = &scratch;
  images.negate_a = operands.scale_a < 0;
  images.negate_b = operands.scale_b < 0;
  plan_->arithmetic.run(images);
  plan_->d.scatter(store.d.data(), registers.data(), plan_->kernel);
  return Done{};
}

std::uint64_t WgmmaProduct::multiply_adds() const { return plan_->arithmetic.multiply_adds(); }
const isa::Form& WgmmaProduct::form() const { return plan_->form; }
Trust WgmmaProduct::trust() const { return plan_->rule.trust; }
std::string_view WgmmaProduct::source() const { return plan_->rule.source; }

}  // namespace tartan::TARTAN_ABI::emulator
