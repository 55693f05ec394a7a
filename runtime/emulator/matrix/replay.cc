// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/emulator/matrix/recording.h"
#include "tartan/isa/fragment.h"
#include "tartan/isa/instruction.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

using Words = std::vector<std::uint32_t>;

// One test of a warp-level entry, and the emulator's results.
struct Test {
  const std::uint32_t* in;
  const std::uint32_t* memory;
  Words out;  // in the recording's order: word by word for 32 lanes
  Words memory_after;

  std::uint32_t input(int word, int lane) const { return in[word * 32 + lane]; }
};

// Elements of a fragment in registers that are stored word by word.
std::uint64_t element(const std::uint32_t* words, const isa::Fragment& fragment, int lane, int i) {
  if (fragment.register_bits == 64)
    return words[2 * i * 32 + lane] | std::uint64_t{words[(2 * i + 1) * 32 + lane]} << 32;
  const std::uint32_t word = words[i / fragment.per_register * 32 + lane] >>
                             (i % fragment.per_register * fragment.container_bits);
  return fragment.container_bits == 32 ? word : word & ((1u << fragment.container_bits) - 1);
}

void set_element(std::uint32_t* words, const isa::Fragment& fragment, int lane, int i,
                 std::uint64_t value) {
  if (fragment.register_bits == 64) {
    words[2 * i * 32 + lane] = static_cast<std::uint32_t>(value);
    words[(2 * i + 1) * 32 + lane] = static_cast<std::uint32_t>(value >> 32);
  } else {
    words[i / fragment.per_register * 32 + lane] |=
        static_cast<std::uint32_t>(value) << (i % fragment.per_register * fragment.container_bits);
  }
}

// Memory as bits, low bits first; outside of it, loads read zero and stores are ignored.
std::uint64_t memory_bits(const std::uint32_t* memory, std::uint64_t words, std::uint64_t first,
                          int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t bit = first + static_cast<std::uint64_t>(i);
    if (bit / 32 < words) value |= std::uint64_t{memory[bit / 32] >> bit % 32 & 1} << i;
  }
  return value;
}

void set_memory_bits(Words& memory, std::uint64_t first, int count, std::uint64_t value) {
  for (int i = 0; i < count; ++i) {
    const std::uint64_t bit = first + static_cast<std::uint64_t>(i);
    if (bit / 32 >= memory.size()) continue;
    std::uint32_t& word = memory[bit / 32];
    word = (word & ~(1u << bit % 32)) | static_cast<std::uint32_t>(value >> i & 1) << bit % 32;
  }
}

// ldmatrix, stmatrix: element by element, through the lane map.
void replay_move(const isa::Form& form, Test& test, std::uint64_t memory_words) {
  const isa::Fragment fragment = isa::fragment(form, Operand::d);
  const bool load = form.opcode == isa::Opcode::ldmatrix;
  const int width = fragment.container_bits;
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < fragment.elements(); ++i) {
      const isa::Coord at = isa::coord(form, Operand::d, lane, i);
      const std::uint32_t address = test.input(0, isa::address_lane(form, at.matrix, at.row));
      const std::uint64_t first =
          8 * std::uint64_t{address} + static_cast<std::uint64_t>(at.col * width);
      if (load)
        set_element(test.out.data(), fragment, lane, i,
                    memory_bits(test.memory, memory_words, first, width));
      else
        set_memory_bits(test.memory_after, first, width, element(test.in + 32, fragment, lane, i));
    }
}

void replay_transpose(const isa::Form& form, Test& test) {
  const isa::Fragment fragment = isa::fragment(form, Operand::d);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < fragment.elements(); ++i) {
      const isa::Coord from =
          isa::coord(form, Operand::d, lane,
                     i);  // in the matrix that it reads: four lanes a row, two elements each
      set_element(test.out.data(), fragment, lane, i,
                  element(test.in, fragment, 4 * from.row + from.col / 2, from.col % 2));
    }
}

void replay_wmma_move(const isa::Form& form, Test& test, std::uint64_t memory_words) {
  const isa::Fragment fragment = isa::fragment(form, form.operand);
  const int width = bits(fragment.type);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < fragment.elements(); ++i) {
      const isa::Coord at = isa::coord(form, form.operand, lane, i);
      const int line = form.a_major == Major::row ? at.row : at.col,
                along = form.a_major == Major::row ? at.col : at.row;
      const std::uint64_t index =
          std::uint64_t{test.input(0, lane)} * static_cast<std::uint64_t>(line) +
          static_cast<std::uint64_t>(along);
      const std::uint64_t first = index * static_cast<std::uint64_t>(width);
      if (form.opcode == isa::Opcode::wmma_load)
        set_element(test.out.data(), fragment, lane, i,
                    memory_bits(test.memory, memory_words, first, width));
      else
        set_memory_bits(test.memory_after, first, width, element(test.in + 32, fragment, lane, i));
    }
}

// The registers of one operand as MatrixOperands takes them: f64 joined to 64 bits, all others in
// place.
class Registers {
 public:
  Registers(const isa::Fragment& fragment, std::uint32_t* words)
      : fragment_(fragment), words_(words) {
    wide_.resize(fragment.register_bits == 64 ? static_cast<std::size_t>(fragment.registers) : 0);
    for (int r = 0; r < fragment.registers; ++r) {
      if (wide_.empty()) {
        pointers_.push_back(words + 32 * r);
        continue;
      }
      auto& reg = wide_[static_cast<std::size_t>(r)];
      for (int lane = 0; lane < 32; ++lane)
        reg[static_cast<std::size_t>(lane)] = element(words, fragment, lane, r);
      pointers_.push_back(reg.data());
    }
  }
  void* const* pointers() const { return pointers_.data(); }
  int words() const { return fragment_.registers * fragment_.register_bits / 32; }
  void write_back() {
    for (std::size_t r = 0; r < wide_.size(); ++r)
      for (int lane = 0; lane < 32; ++lane)
        set_element(words_, fragment_, lane, static_cast<int>(r),
                    wide_[r][static_cast<std::size_t>(lane)]);
  }

 private:
  isa::Fragment fragment_;
  std::uint32_t* words_;
  std::vector<std::array<std::uint64_t, 32>> wide_;
  std::vector<void*> pointers_;
};

void replay_product(const isa::Form& form, const MatrixProduct& product, int selector, Test& test) {
  auto* in = const_cast<std::uint32_t*>(test.in);  // only read, but passed as a pointer to void
  Registers a(isa::fragment(form, Operand::a), in);
  Registers b(isa::fragment(form, Operand::b), in += 32 * a.words());
  Registers c(isa::fragment(form, Operand::c), in += 32 * b.words());
  Registers d(isa::fragment(form, Operand::d), test.out.data());
  MatrixOperands operands;
  operands.a = a.pointers();
  operands.b = b.pointers();
  operands.c = c.pointers();
  operands.d = d.pointers();
  operands.metadata = in + 32 * c.words();
  operands.selector = selector;
  Scratch scratch;
  product.run(operands, scratch);
  d.write_back();
}

// The number of registers that the form reads and writes, to compare with the entry's.
struct Counts {
  int in = 0, out = 0;
};

Counts counts(const isa::Form& form) {
  const auto words = [&](Operand operand) {
    const isa::Fragment fragment = isa::fragment(form, operand);
    return fragment.registers * fragment.register_bits / 32;
  };
  switch (form.opcode) {
    case isa::Opcode::ldmatrix:
    case isa::Opcode::movmatrix:
    case isa::Opcode::wmma_load: return {1, words(form.operand)};
    case isa::Opcode::stmatrix:
    case isa::Opcode::wmma_store: return {1 + words(form.operand), 0};
    default:
      return {words(Operand::a) + words(Operand::b) + words(Operand::c) +
                  (form.sparsity != isa::Sparsity::dense),
              words(Operand::d)};
  }
}

// What an H100 executes for spellings that NVIDIA's assembler accepts although no manual has them:
// .x8 of one register moves one matrix, products of 4-bit numbers ignore .and.popc and .xor.popc,
// and accumulators of m8n8k32 and m8n8k128 move as .f32 like .s32.
isa::Form as_executed(isa::Form form) {
  const bool moves = form.opcode == isa::Opcode::ldmatrix || form.opcode == isa::Opcode::stmatrix;
  const bool wmma_moves =
      form.opcode == isa::Opcode::wmma_load || form.opcode == isa::Opcode::wmma_store;
  if (moves && form.count == 8) form.count = 1;
  if (form.opcode == isa::Opcode::mma && bits(form.a) == 4) form.bit_op = isa::BitOp::none;
  if (wmma_moves && form.d == f32 && form.shape.m == 8 && form.shape.k >= 32) form.d = s32;
  return form;
}

// The form of an entry, if the tables have it with the entry's register counts.
std::optional<isa::Form> form_of(const RecordedEntry& entry) {
  auto [form, sync, unknown, repeated, types] = isa::parse_form(entry.mnemonic);
  if (!unknown.empty() || !repeated.empty()) return std::nullopt;
  form.stride = form.opcode == isa::Opcode::wmma_load || form.opcode == isa::Opcode::wmma_store;
  form.a_in_registers = entry.a_in_registers;
  form = as_executed(form);
  if (!isa::find(form)) return std::nullopt;
  if (form.sparsity != isa::Sparsity::dense && entry.selector >= isa::selectors(form))
    return std::nullopt;
  const bool formatted = form.opcode == isa::Opcode::ldmatrix &&
                         form.a != Type::none;  // 6 and 4-bit rows: not recorded so far
  return formatted ? std::nullopt : std::optional(form);
}

}  // namespace

void compare(ReplayedEntry& result, int test, const Words& got, const std::uint32_t* expected,
             int lanes) {
  for (std::size_t i = 0; i < got.size(); ++i, ++result.words) {
    if (got[i] == expected[i]) continue;
    if (result.mismatched++ == 0) {
      result.test = test;
      result.word = static_cast<int>(i) / std::max(lanes, 1);
      result.lane = lanes ? static_cast<int>(i) % lanes : -1;
      result.expected = expected[i];
      result.got = got[i];
    }
  }
}

ReplayedEntry replay(const Recording& recording, const RecordedEntry& entry, Hardware hardware,
                     Path path) {
  ReplayedEntry result;
  result.entry = &entry;
  const auto form = form_of(entry);
  if (form && entry.warpgroup()) return replay_wgmma(recording, entry, *form, path);
  if (!form || counts(*form).in != entry.in_words || counts(*form).out != entry.out_words) {
    result.skipped = true;
    return result;
  }
  std::optional<MatrixProduct> product;
  if (form->opcode == isa::Opcode::mma || form->opcode == isa::Opcode::wmma_mma) {
    auto made = MatrixProduct::make(*form, hardware, path);
    product = *made;
  }
  const auto memory_words = static_cast<std::size_t>(entry.memory_bytes / 4);
  for (int t = 0; t < entry.tests; ++t) {
    const std::uint32_t* at =
        recording.words.data() +
        (entry.offset + static_cast<std::uint64_t>(t) * entry.bytes_per_test()) / 4;
    Test test{
        at, at + 32 * entry.in_words, Words(static_cast<std::size_t>(32 * entry.out_words)), {}};
    if (entry.memory_out) test.memory_after.assign(test.memory, test.memory + memory_words);
    switch (form->opcode) {
      case isa::Opcode::ldmatrix:
      case isa::Opcode::stmatrix: replay_move(*form, test, memory_words); break;
      case isa::Opcode::movmatrix: replay_transpose(*form, test); break;
      case isa::Opcode::wmma_load:
      case isa::Opcode::wmma_store: replay_wmma_move(*form, test, memory_words); break;
      default: replay_product(*form, *product, entry.selector, test); break;
    }
    const std::uint32_t* expected = test.memory + memory_words;
    compare(result, t, test.out, expected, 32);
    compare(result, t, test.memory_after, expected + test.out.size(), 0);
  }
  return result;
}

}  // namespace tartan::TARTAN_ABI::emulator
