// SPDX-License-Identifier: Apache-2.0
// Copying a tile with all threads of the block.
#include "dsl/state.h"

namespace tartan::detail {
namespace {

using codegen::Pointer;
using codegen::Value;

constexpr int max_unrolled = 16;  // rounds written out; more become a loop

class Copier {
 public:
  Copier(KernelState& state, const Tensor& from, const Tensor& to, std::int64_t rows,
         std::int64_t cols)
      : state_(state), from_(from), to_(to), rows_(rows), cols_(cols) {}

  void copy() {
    choose_width();
    const std::int64_t per_line = lines_are_rows() ? cols_ / width_ : rows_ / width_;
    const std::int64_t chunks = rows_ * cols_ / width_, threads = state_.options.block;
    const Scalar thread = state_.scalar(state_.f().special(codegen::Special::tid_x));
    const auto chunk = [&](const Scalar& index) {
      move(index / per_line, index % per_line * width_);
    };
    const std::int64_t whole = chunks / threads, rest = chunks % threads;
    if (whole <= max_unrolled) {
      for (std::int64_t i = 0; i < whole; ++i) chunk(thread + i * threads);
    } else {
      const Value step = state_.f().constant(u32, threads);
      state_.f().for_range(state_.value(thread), state_.f().constant(u32, whole * threads), step,
                           [&](Value i) { chunk(state_.scalar(i)); });
    }
    if (rest)
      state_.f().if_then(state_.value(thread < rest), [&] { chunk(thread + whole * threads); });
    explain(chunks);
  }

 private:
  bool lines_are_rows() const { return major_ != Major::col; }

  // The widest access that both sides allow: neighbours in both, on a boundary of its size.
  void choose_width() {
    const Major from = from_.layout.major(), to = to_.layout.major();
    major_ = from;
    const std::int64_t element = bits(from_.type) / 8;
    if (from == Major::none || from != to) {
      refused_ = fmt::format("wider accesses: neighbours in {} are no neighbours in {}",
                             from_.layout.text(), to_.layout.text());
      return;
    }
    const std::int64_t line = from == Major::row ? cols_ : rows_;
    for (std::int64_t bytes = 16; bytes > element; bytes /= 2) {
      const std::int64_t width = bytes / element;
      const auto aligned = [&](const Tensor& tensor) {
        return from == Major::row ? state_.aligned_bytes(tensor, 1, width)
                                  : state_.aligned_bytes(tensor, width, 1);
      };
      if (line % width == 0 && aligned(from_) >= bytes && aligned(to_) >= bytes) {
        width_ = width;
        return;
      }
      refused_ = fmt::format("{} bytes: lines of {} elements, sure alignment {} and {} bytes",
                             bytes, line, aligned(from_), aligned(to_));
    }
  }

  void move(const Scalar& line, const Scalar& along) {
    const Scalar &row = lines_are_rows() ? line : along, &col = lines_are_rows() ? along : line;
    const Pointer from = state_.pointer(from_, row, col), to = state_.pointer(to_, row, col);
    const std::int64_t bytes = width_ * bits(from_.type) / 8;
    if (bytes >= 8) {
      const std::vector<Value> words =
          state_.f().load_vector(from, b32, static_cast<int>(bytes / 4));
      state_.f().store_vector(to, words);
    } else {
      const Type type = bytes == 4 ? b32 : bytes == 2 ? u16 : Type::u8;
      state_.f().store(to, state_.f().load(from, type));
    }
  }

  void explain(std::int64_t chunks) {
    std::vector<std::string> refused;
    if (!refused_.empty()) refused.push_back(refused_);
    state_.choose(fmt::format("copy {} to {}", from_.name, to_.name),
                  fmt::format("{} bytes per access", width_ * bits(from_.type) / 8),
                  fmt::format("{} accesses over {} threads; {} to {}", chunks, state_.options.block,
                              from_.layout.text(), to_.layout.text()),
                  std::move(refused));
  }

  KernelState& state_;
  const Tensor& from_;
  const Tensor& to_;
  std::int64_t rows_, cols_;
  Major major_ = Major::none;
  std::int64_t width_ = 1;  // elements per access
  std::string refused_;
};

}  // namespace

void KernelState::copy(const Tensor& from, const Tensor& to) {
  const bool owned = owns(from, from.name) & owns(to, to.name);
  if (!owned || from.memory < 0 || to.memory < 0) return;
  std::int64_t rows = 0, cols = 0, to_rows = 0, to_cols = 0;
  if (!constant_shape(from, rows, cols) || !constant_shape(to, to_rows, to_cols)) {
    report("layout-mismatch"_rule,
           fmt::format("copy takes tiles of constant shape, {} is {}; take a .tile() of it",
                       from.name, from.layout.text()));
    return;
  }
  const bool same_shape = rows == to_rows && cols == to_cols;
  if (!same_shape)
    report("layout-mismatch"_rule,
           fmt::format("copy takes two tiles of one shape, {} is {} and {} is {}", from.name,
                       from.layout.text(), to.name, to.layout.text()));
  if (from.type != to.type)
    report("layout-mismatch"_rule, fmt::format("copy does not convert: {} is {}, {} is {}",
                                               from.name, name(from.type), to.name, name(to.type)));
  if (same_shape && from.type == to.type) Copier(*this, from, to, rows, cols).copy();
}

}  // namespace tartan::detail
