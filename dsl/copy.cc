// SPDX-License-Identifier: Apache-2.0
// Copying a tile with all threads of the block, or of a warp.
#include <numeric>

#include "dsl/addressing.h"
#include "dsl/cluster.h"
#include "dsl/indices.h"
#include "dsl/operations.h"
#include "dsl/packed_copy.h"
#include "dsl/scalars.h"
#include "dsl/shared_memory.h"

namespace tartan::inline TARTAN_ABI::detail {
namespace {

using codegen::Pointer;
using codegen::Value;

constexpr int max_unrolled = 16;  // accesses that are unrolled; more become a loop

class Copier {
 public:
  /// Copies with `threads` threads, of which this one is number `thread`.
  Copier(KernelState& state, const Tensor& from, const Tensor& to, std::int64_t rows,
         std::int64_t cols, Scalar thread, int threads, std::vector<std::string> refused,
         CopySelection selection = {})
      : state_(state),
        from_(from),
        to_(to),
        rows_(rows),
        cols_(cols),
        thread_(std::move(thread)),
        threads_(threads),
        selection_(std::move(selection)),
        rounds_(state.memories.of(to).rounded_to_tf32),
        refused_(std::move(refused)) {}

  void copy() {
    if (!choose_width()) return;
    const std::int64_t per_line = line() / width_;
    const std::int64_t chunks = rows_ * cols_ / width_, threads = threads_;
    const Scalar& thread = thread_;
    state_.fill.by_threads = true;
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
  std::int64_t line() const { return lines_are_rows() ? cols_ : rows_; }
  std::int64_t bytes() const { return width_ * bits(from_.type) / 8; }
  const std::optional<Edge>& edge_along(const Tensor& tensor) const {
    return lines_are_rows() ? tensor.col_edge : tensor.row_edge;
  }
  const std::optional<Edge>& edge_across(const Tensor& tensor) const {
    return lines_are_rows() ? tensor.row_edge : tensor.col_edge;
  }

  // An access of `width` elements that begins inside the matrix also ends inside.
  bool edges_on_boundary(std::int64_t width) const {
    for (const Tensor* tensor : {&from_, &to_})
      if (const auto& edge = edge_along(*tensor); edge && edge->multiple() % width) return false;
    return true;
  }
  // Windows may begin anywhere, and before their matrix.
  bool begins_on_boundary(std::int64_t width) const {
    for (const Tensor* tensor : {&from_, &to_})
      if (const auto& edge = edge_along(*tensor); edge && edge->origin.multiple() % width)
        return false;
    return true;
  }

  // Only bytes can be copied: elements smaller than a byte must be contiguous in both tensors, and
  // lines and edges must fall on byte boundaries.
  bool has_whole_bytes(bool together) const {
    const int element = bits(from_.type), each = 8 / std::gcd(8, element);
    if (element >= 8 || (together && element != 6 && line() % each == 0 && aligned(from_, each) &&
                         aligned(to_, each) && edges_on_boundary(each)))
      return true;
    state_.log.report(
        "layout-mismatch"_rule,
        fmt::format(
            "copy needs whole bytes; {} is sub-byte: {} is {}, {} is {}; {}", name(from_.type),
            from_.name, from_.layout.text(), to_.name, to_.layout.text(),
            element == 6
                ? "copy to a tile of b8, see TiledMma::stored_a()"
                : fmt::format(
                      "use the same major order and a leading dimension that is a multiple of {}",
                      each)));
    return false;
  }

  std::int64_t aligned(const Tensor& tensor, std::int64_t width) const {
    return lines_are_rows() ? aligned_bytes(state_, tensor, 1, width)
                            : aligned_bytes(state_, tensor, width, 1);
  }

  // The widest access that both sides allow: contiguous in both, and aligned to its size.
  bool choose_width() {
    const Major from = from_.layout.major(), to = to_.layout.major();
    const std::int64_t element = bits(from_.type);
    major_ = selection_.row_of ? Major::row : from == Major::none ? to : from;
    const bool together = from == to && from == major_ && from != Major::none;
    if (!has_whole_bytes(together)) return false;
    asynchronous_ = state_.fill.asynchronous && may_be_asynchronous();
    if (state_.fill.asynchronous && !asynchronous_) state_.fill.plain = true;
    if (!together)
      refused_.push_back(
          fmt::format("wider accesses: elements contiguous in {} are not contiguous in {}",
                      from_.layout.text(), to_.layout.text()));
    for (std::int64_t bytes = together ? 16 : 0; bytes * 8 > element; bytes /= 2)
      if (fits(bytes)) {
        width_ = bytes * 8 / element;
        break;
      }
    if (width_ * element < 8) {
      state_.log.report("layout-mismatch"_rule,
                        fmt::format("copy needs whole bytes: a condition for {} elements of {} "
                                    "selects parts of them",
                                    selection_.together, name(from_.type)));
      return false;
    }
    if (asynchronous_ && bytes() < 4) {
      refused_.push_back(fmt::format("cp.async: it copies 4, 8 or 16 bytes, found {}", bytes()));
      asynchronous_ = false;
      state_.fill.plain = true;
    }
    return true;
  }

  bool may_be_asynchronous() {
    const bool in = state_.memories.of(from_).in_shared;
    if (in)
      return refused_.emplace_back("cp.async: it copies from global to shared memory only"), false;
    if (rounds_) return refused_.emplace_back("cp.async: it cannot round to tf32"), false;
    if (state_.config.target.arch.sm >= 80) return true;
    refused_.push_back(fmt::format("cp.async: requires sm_80, the target is {}",
                                   state_.config.target.arch.text()));
    return false;
  }

  bool fits(std::int64_t bytes) {
    const std::int64_t width = bytes * 8 / bits(from_.type);
    const std::int64_t sure_from = aligned(from_, width), sure_to = aligned(to_, width);
    const bool edges =
        edges_on_boundary(width) || (asynchronous_ && bytes >= 4 && begins_on_boundary(width));
    if (selection_.together && (!lines_are_rows() || selection_.together % width)) {
      refused_.push_back(fmt::format("{} bytes: the condition holds for {} elements of a row",
                                     bytes, selection_.together));
      return false;
    }
    if (line() % width == 0 && sure_from >= bytes && sure_to >= bytes && edges) return true;
    refused_.push_back(fmt::format(
        "{} bytes: rows of {} elements, guaranteed alignment {} and {} bytes{}", bytes, line(),
        sure_from, sure_to,
        edges ? ""
              : fmt::format(", and the matrix may {} at a position that is not a multiple of {}",
                            begins_on_boundary(width) ? "end" : "begin", width)));
    return false;
  }

  void move(const Scalar& line, const Scalar& along) {
    Scalar row = lines_are_rows() ? line : along;
    const Scalar& col = lines_are_rows() ? along : line;
    std::optional<Value> guard;
    if (selection_.where) {
      // Accesses may be narrower than the neighbours that share a condition.
      const Scalar first =
          selection_.together == 1 ? col : col / selection_.together * selection_.together;
      const auto holds = condition(selection_.where(row, first));
      if (!holds) return;
      guard = *holds;
    }
    if (!selection_.row_of) return move(from_, row, to_, row, col, guard);
    const Scalar index = selection_.row_of(row);
    if (!state_.is_index(index, "the row of a copy")) return;
    const bool scatters = state_.memories.of(from_).in_shared;
    const Tensor& indexed = scatters ? to_ : from_;
    guard = has_row(state_, indexed, index);
    const Tensor moved = from_row(state_, indexed, index);
    if (scatters) move(from_, row, moved, 0, col, guard);
    else move(moved, 0, to_, row, col, guard);
  }

  void move(const Tensor& from_tensor, const Scalar& from_row, const Tensor& to_tensor,
            const Scalar& to_row, const Scalar& col, std::optional<Value> guard) {
    const Pointer from = address_of(state_, from_tensor, from_row, col),
                  to = written_address_of(state_, to_tensor, to_row, col);
    if (asynchronous_)
      return move_asynchronous(to, from, from_tensor, lines_are_rows() ? from_row : col,
                               lines_are_rows() ? col : from_row, guard);
    auto read = is_inside(state_, from_tensor, from_row, col),
         written = is_inside(state_, to_tensor, to_row, col);
    // What is not selected is zero in shared memory, and untouched in global memory.
    auto& selected = state_.memories.of(from_).in_shared ? written : read;
    if (guard) selected = selected ? state_.f().bit_and(*selected, *guard) : *guard;
    if (written) {
      state_.f().if_then(*written, [&] { store(to, load(from)); });
    } else if (read) {
      store(to, load_if(*read, from));
    } else {
      store(to, load(from));
    }
  }

  // The condition of a masked copy; nothing, and reported, if it is none.
  std::optional<Value> condition(const Scalar& holds) {
    if (is_bad(holds)) return std::nullopt;
    if (const auto constant = holds.constant())
      return state_.f().constant(Type::pred, std::int64_t{*constant != 0});
    if (!state_.is_condition(holds)) return std::nullopt;
    return state_.value(holds);
  }

  void move_asynchronous(Pointer to, Pointer from, const Tensor& tensor, const Scalar& line,
                         const Scalar& along, const std::optional<Value>& guard) {
    const auto cache = bytes() == 16 ? codegen::CacheOperator::cg : codegen::CacheOperator::ca;
    Value valid = valid_bytes(tensor, line, along);
    if (guard) {
      const Value most = valid.valid() ? valid : state_.f().constant(u32, bytes());
      valid = state_.f().select(*guard, most, state_.f().constant(u32, 0));
    }
    state_.f().copy_async(to, from, static_cast<int>(bytes()), cache, valid);
  }

  // How much of an access is inside the matrix; no value if all of it is known to be.
  Value valid_bytes(const Tensor& tensor, const Scalar& line, const Scalar& along) {
    const auto constant = [&](std::int64_t value) { return state_.f().constant(u32, value); };
    Value valid;
    if (const auto& edge = edge_along(tensor)) {
      const Scalar begin = edge->origin + along;
      const Value inside = state_.value(begin < edge->limit, Type::pred);
      Value most = constant(bytes());
      if (!edges_on_boundary(width_)) {
        const Value left = state_.f().convert(state_.value(edge->limit - begin), u32);
        const Value left_bytes =
            byte_offset(state_.f(), state_.f().minimum(left, constant(width_)), from_.type);
        most = left_bytes;
      }
      valid = state_.f().select(inside, most, constant(0));
    }
    if (const auto& edge = edge_across(tensor)) {
      const Value inside = state_.value(edge->origin + line < edge->limit, Type::pred);
      valid = state_.f().select(inside, valid.valid() ? valid : constant(bytes()), constant(0));
    }
    return valid;
  }

  Type word() const { return bytes() >= 4 ? b32 : bytes() == 2 ? u16 : Type::u8; }
  std::vector<Value> load(Pointer from) {
    if (bytes() >= 8) return state_.f().load_vector(from, b32, static_cast<int>(bytes() / 4));
    return {state_.f().load(from, word())};
  }
  std::vector<Value> load_if(Value exists, Pointer from) {
    std::vector<codegen::Variable> words;
    for (std::int64_t i = 0; i < std::max<std::int64_t>(bytes() / 4, 1); ++i)
      words.push_back(state_.f().variable(state_.f().constant(word(), std::int64_t{0})));
    state_.f().if_then(exists, [&] {
      const std::vector<Value> values = load(from);
      for (std::size_t i = 0; i < words.size(); ++i) state_.f().set(words[i], values[i]);
    });
    std::vector<Value> out;
    for (const codegen::Variable& each : words) out.push_back(state_.f().get(each));
    return out;
  }
  void store(Pointer to, std::vector<Value> words) {
    if (rounds_)
      for (Value& each : words) each = state_.f().convert(state_.f().bitcast(each, f32), tf32);
    if (words.size() > 1) state_.f().store_vector(to, words);
    else state_.f().store(to, words[0]);
  }

  void explain(std::int64_t chunks) {
    const std::string_view how = !asynchronous_  ? ""
                                 : bytes() == 16 ? "cp.async.cg, "
                                                 : "cp.async.ca, ";
    const bool ragged = from_.row_edge || from_.col_edge || to_.row_edge || to_.col_edge;
    state_.log.choose(
        fmt::format("copy {} to {}", from_.name, to_.name),
        fmt::format("{}{} bytes per access", how, bytes()),
        fmt::format("{} accesses over {} threads; {} to {}{}", chunks, threads_,
                    from_.layout.text(), to_.layout.text(),
                    ragged ? "; out-of-bounds elements are zero-filled or skipped" : ""),
        refused_);
  }

  KernelState& state_;
  const Tensor& from_;
  const Tensor& to_;
  std::int64_t rows_, cols_;
  Scalar thread_;
  int threads_;
  CopySelection selection_;
  bool rounds_;  // to tf32
  Major major_ = Major::none;
  std::int64_t width_ = 1;  // elements per access
  bool asynchronous_ = false;
  std::vector<std::string> refused_;
};

}  // namespace

namespace {

// Whether rows of a matrix in global memory can be selected by index, into or from a tile in shared
// memory; reports if not.
bool takes_row_indices(KernelState& state, const Tensor& matrix, const Tensor& tile) {
  const auto cols = matrix.layout.cols.constant(), wanted = tile.layout.cols.constant();
  if (!matrix.layout.is_nested() && cols && cols == wanted) return true;
  state.log.report("layout-mismatch"_rule,
                   fmt::format("copy_rows: expected a matrix of {} columns that are not nested, {} "
                               "is {}; take {}.window(0, col, rows, {})",
                               wanted.value_or(0), matrix.name, matrix.layout.text(), matrix.name,
                               wanted.value_or(0)));
  return false;
}

}  // namespace

void copy_tile(KernelState& state, const Tensor& from, const Tensor& to,
               const CopySelection& selection) {
  if (state.f().is_muted()) return;
  const bool owned = state.owns(from, from.name) & state.owns(to, to.name);
  if (!owned || from.memory < 0 || to.memory < 0) return;
  if (state.fill.asynchronous && refuse_remote(state, to, "a fill callback")) return;
  std::int64_t rows = 0, cols = 0, to_rows = 0, to_cols = 0;
  // The tile in shared memory says how many rows are copied by index.
  const bool scatters = state.memories.of(from).in_shared, by_index = selection.row_of != nullptr;
  if (by_index && !takes_row_indices(state, scatters ? to : from, scatters ? from : to)) return;
  const Tensor &from_shape = by_index && !scatters ? to : from,
               &to_shape = by_index && scatters ? from : to;
  if (!constant_shape(from_shape, rows, cols) || !constant_shape(to_shape, to_rows, to_cols)) {
    state.log.report(
        "layout-mismatch"_rule,
        fmt::format("copy needs a tile of constant shape, {} is {}; take a .tile() of it",
                    from.name, from.layout.text()));
    return;
  }
  if (!by_all_threads(state, "copy()")) return;
  const bool same_shape = rows == to_rows && cols == to_cols;
  if (!same_shape)
    state.log.report("layout-mismatch"_rule,
                     fmt::format("copy between different shapes: {} is {} and {} is {}", from.name,
                                 from.layout.text(), to.name, to.layout.text()));
  const bool packs = info(from.type).floating && bits(from.type) < 8 && to.type == Type::b8;
  const bool selects = by_index || selection.where != nullptr;
  if (same_shape && packs && !selects) return copy_packed(state, from, to);
  if (from.type != to.type)
    state.log.report("layout-mismatch"_rule,
                     fmt::format("copy does not convert types: {} is {}, {} is {}", from.name,
                                 name(from.type), to.name, name(to.type)));
  if (!same_shape || from.type != to.type || !require_barrier(state, from)) return;
  if (state.roles.current == Role::producer) note_fill(state, to);
  else note_write(state, to);
  std::vector<std::string> refused;
  if (selects)
    refused.emplace_back(by_index ? "cp.async.bulk.tensor: rows are selected by index"
                                  : "cp.async.bulk.tensor: a condition selects elements");
  else if (copy_by_tma(state, from, to, refused)) return;
  Copier(state, from, to, rows, cols, thread_index(state), thread_count(state), std::move(refused),
         selection)
      .copy();
}

void copy_by_warp(KernelState& state, const Tensor& from, const Tensor& to) {
  std::int64_t rows = 0, cols = 0;
  if (from.memory < 0 || to.memory < 0 || !constant_shape(from, rows, cols)) return;
  Copier(state, from, to, rows, cols, state.scalar(lane_index(state), 1, 31), 32, {}).copy();
}

}  // namespace tartan::inline TARTAN_ABI::detail
