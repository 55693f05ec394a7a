// SPDX-License-Identifier: Apache-2.0
#include "dsl/units/threads/packed_copy.h"
#include "dsl/layout/addressing.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/scalars.h"
#include "dsl/value/indices.h"

#include <algorithm>

namespace tartan::TARTAN_ABI::detail {
namespace {

using ir::Pointer;
using ir::Value;

constexpr int group = 16;  // elements

class PackedCopier {
 public:
  PackedCopier(KernelState& state, const Tensor& from, const Tensor& to)
      : state_(state), from_(from), to_(to), is_row_major_(from.layout.major() == Major::row) {}

  void copy() {
    if (!good()) return;
    const std::int64_t rows = *from_.layout.rows.constant(), cols = *from_.layout.cols.constant();
    const std::int64_t per_line = (is_row_major_ ? cols : rows) / group;
    const std::int64_t groups = rows * cols / group, threads = thread_count(state_);
    const Scalar thread = thread_index(state_);
    const auto move = [&](const Scalar& index) {
      this->move(index / per_line, index % per_line * group);
    };
    for (std::int64_t i = 0; i < groups / threads; ++i) move(thread + i * threads);
    if (const std::int64_t rest = groups % threads)
      state_.f().if_then(state_.value(thread < rest),
                         [&] { move(thread + groups / threads * threads); });
    state_.log.choose(
        fmt::format("copy {} to {}", from_.name, to_.name),
        fmt::format("{}{} bytes per access", asynchronous() ? "cp.async.ca, " : "", width_),
        fmt::format("groups of 16 elements take {} bytes in global memory and 16 in shared memory, "
                    "where ldmatrix expands them",
                    bytes()),
        {fmt::format("16 bytes: a group of {} has {}", name(from_.type), bytes())});
  }

 private:
  int bytes() const { return group * bits(from_.type) / 8; }
  bool asynchronous() const { return state_.fill && state_.config.has_async_copy(); }

  // Whether both tiles consist of whole groups; records how much of one can be copied at a time.
  bool good() {
    const auto aligned = [&](const Tensor& tensor) {
      return is_row_major_ ? aligned_bytes(state_, tensor, 1, group)
                           : aligned_bytes(state_, tensor, group, 1);
    };
    const auto& edge = is_row_major_ ? from_.col_edge : from_.row_edge;
    const Major major = from_.layout.major();
    const Scalar& line = is_row_major_ ? from_.layout.cols : from_.layout.rows;
    const bool widths = bits(from_.type) == 4 || bits(from_.type) == 6;
    const bool whole = major != Major::none && to_.layout.major() == major && widths &&
                       line.multiple() % group == 0 && (!edge || edge->multiple() % group == 0);
    if (whole && aligned(from_) >= 4 && aligned(to_) >= group) {
      width_ = bytes() == 8 && aligned(from_) >= 8 ? 8 : 4;
      return true;
    }
    state_.log.report("layout-alignment"_rule,
                      fmt::format("elements of {} are copied to a tile of b8 in whole groups of 16 "
                                  "along the contiguous dimension; {} is {}, {} is {}",
                                  name(from_.type), from_.name, from_.layout.text(), to_.name,
                                  to_.layout.text()));
    return false;
  }

  void move(const Scalar& line, const Scalar& along) {
    const Scalar &row = is_row_major_ ? line : along, &col = is_row_major_ ? along : line;
    const Pointer from = address_of(state_, from_, row, col),
                  to = written_address_of(state_, to_, row, col);
    const auto exists = is_inside(state_, from_, row, col);
    for (int at = 0; at < bytes(); at += width_) {
      const Pointer source = state_.f().offset(from, at), target = state_.f().offset(to, at);
      if (asynchronous()) copy_async(target, source, exists);
      else copy_now(target, source, exists);
    }
  }

  void copy_async(Pointer to, Pointer from, const std::optional<Value>& exists) {
    Value valid;
    if (exists)
      valid =
          state_.f().select(*exists, state_.f().constant(u32, width_), state_.f().constant(u32, 0));
    state_.f().copy_async(to, from, width_, ir::CacheOperator::ca, valid);
  }

  void copy_now(Pointer to, Pointer from, const std::optional<Value>& exists) {
    for (int at = 0; at < width_; at += 4) {
      const ir::Variable word = state_.f().variable(zero_value(state_.f(), b32));
      const auto read = [&] {
        state_.f().set(word, state_.f().load(state_.f().offset(from, at), b32));
      };
      if (exists) state_.f().if_then(*exists, read);
      else read();
      state_.f().store(state_.f().offset(to, at), state_.f().get(word));
    }
  }

  KernelState& state_;
  const Tensor& from_;
  const Tensor& to_;
  bool is_row_major_;
  int width_ = 4;  // bytes
};

}  // namespace

void copy_packed(KernelState& state, const Tensor& from, const Tensor& to) {
  note_load(state, from);
  PackedCopier(state, from, to).copy();
  note_write(state, to);
}

}  // namespace tartan::TARTAN_ABI::detail
