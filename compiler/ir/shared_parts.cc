// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/shared_parts.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::ir {
namespace {

constexpr int warp = 32;

// The bytes that a matrix instruction accesses from each lane's address, or from a warp's.
struct Shape {
  std::int64_t lines = 1, pitch = 0, bytes = 0;
  int lanes = 1;  // that give an address
};

class Accessed {
 public:
  Accessed(const Function& function, std::int64_t stage, const Threads& threads,
           ThreadValues& values)
      : function_(function), stage_(stage), threads_(threads), values_(values) {}

  void add(Access& now, const Operation& op, const Touch& touch) {
    const InThreads& address = values_.of(touch.address->id);
    if (op.kind == OperationKind::warpgroup_product) read_operand(now, address, op, touch);
    else access_parts(now, address, shape_of(op), op);
  }

 private:
  std::span<const Operand> operands(const Operation& op) const {
    return Function::part(function_.operands, op.operands);
  }
  std::int64_t number(const Operation& op, std::size_t which = 0) const {
    return Function::part(function_.numbers, op.numbers)[which];
  }

  // What a warpgroup's product reads by a descriptor (PTX ISA 9.0, 9.7.15.5.1.2.2): of lines along
  // k 64 or n of them; of others k in each panel.
  void read_operand(Access& now, const InThreads& descriptor, const Operation& op,
                    const Touch& touch) const {
    const isa::Form& form = function_.forms[op.form];
    const auto accumulators = static_cast<std::size_t>(number(op)),
               steps = static_cast<std::size_t>(number(op, 1));
    const auto taken = operands(op);
    const std::size_t place = static_cast<std::size_t>(touch.address - taken.data()) - accumulators;
    const bool is_a = place % ((taken.size() - accumulators) / steps) == 0;
    const std::int64_t lines = is_a ? 64 : form.shape.n;
    now.team = warpgroup_threads;
    for (int t = 0; t < Threads::most; t += warpgroup_threads) {
      if (!threads_.has(t)) continue;
      const std::int64_t words = descriptor.in(t), begin = (words & 0x3FFF) * 16,
                         apart = (words >> 16 & 0x3FFF) * 16, width = (words >> 32 & 0x3FFF) * 2;
      const std::int64_t panel = width * 8 / std::max(tartan::bits(form.a), 1);  // elements
      if (apart == 16 && width > 0) {
        const std::int64_t first = begin / width * width;
        now.parts.push_back({first, first + lines * width, t});
      } else if (form.sparsity == isa::Sparsity::dense && panel > 0) {
        for (std::int64_t i = 0; i * panel < lines; ++i)
          now.parts.push_back({begin + i * apart, begin + i * apart + form.shape.k * width, t});
      } else {
        now.parts.push_back({begin / stage_ * stage_, begin / stage_ * stage_ + stage_, t});
      }
    }
  }

  void access_parts(Access& now, const InThreads& address, const Shape& shape,
                    const Operation& op) {
    const bool by_warp = op.kind == OperationKind::matrix;
    if (by_warp) now.team = warp;
    now.parts.reserve(static_cast<std::size_t>(threads_.count() * shape.lines));
    threads_.each([&](int t) {
      if (by_warp && t % warp >= shape.lanes) return;
      if (op.kind == OperationKind::load_if && !passes(operands(op)[0].id, t)) return;
      for (std::int64_t line = 0; line < shape.lines; ++line) {
        const std::int64_t begin = address.in(t) + line * shape.pitch;
        now.parts.push_back({begin, begin + shape.bytes, t});
      }
    });
  }

  bool passes(int condition, int thread) {
    const InThreads& value = values_.of(condition);
    return value.known == Known::nowhere || value.is_same() || value.in(thread) != 0;
  }

  Shape shape_of(const Operation& op) {
    const auto bytes = [](Type type) { return std::max(bits(type) / 8, 1); };
    switch (op.kind) {
      using enum OperationKind;
      case load_vector: return {.bytes = number(op) * bytes(op.type)};
      case store_vector:
        return {.bytes = static_cast<std::int64_t>(op.operands.count - 1) * bytes(op.type)};
      case copy_async: return {.bytes = number(op)};
      case tensor_store: return {.bytes = number(op, 1)};
      case statement: {
        const Operand& result = function_.results[op.results.first];
        return {.bytes = op.results.count ? bytes(result.type) : 4};
      }
      case matrix: return shape_of_matrix(op);
      default: return {.bytes = bytes(op.type)};
    }
  }

  Shape shape_of_matrix(const Operation& op) {
    const isa::Form& form = function_.forms[op.form];
    const bool stores = op.results.count == 0;
    if (form.opcode == isa::Opcode::ldmatrix || form.opcode == isa::Opcode::stmatrix) {
      const int registers = static_cast<int>(stores ? op.operands.count - 1 : op.results.count);
      return {.bytes = 16, .lanes = std::min(8 * registers, warp)};
    }
    const auto& shape = form.shape;
    const std::int64_t rows = form.operand == tartan::Operand::b ? shape.k : shape.m;
    const std::int64_t cols = form.operand == tartan::Operand::a ? shape.k : shape.n;
    const bool by_rows = form.a_major == Major::row;
    const std::int64_t lines = by_rows ? rows : cols, run = by_rows ? cols : rows;
    if (!form.stride) return {.bytes = stage_};
    const InThreads& stride = values_.of(operands(op).back().id);
    if (stride.known != Known::exactly) return {.bytes = stage_};
    return {.lines = lines,
            .pitch = stride.in(0) * bits(form.d) / 8,
            .bytes = std::max<std::int64_t>(run * bits(form.d) / 8, 1)};
  }

  const Function& function_;
  std::int64_t stage_;
  const Threads& threads_;
  ThreadValues& values_;
};

}  // namespace

void add_parts(Access& access, const Function& function, const Operation& op, const Touch& touch,
               std::int64_t stage, const Threads& threads, ThreadValues& values) {
  Accessed(function, stage, threads, values).add(access, op, touch);
}

}  // namespace tartan::TARTAN_ABI::ir
