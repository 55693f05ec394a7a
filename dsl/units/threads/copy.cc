// SPDX-License-Identifier: Apache-2.0
// Copying a tile with all threads of the block, or of a warp.
#include <functional>
#include <numeric>

#include "dsl/cluster/cluster.h"
#include "dsl/layout/addressing.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/units/threads/packed_copy.h"
#include "dsl/value/indices.h"
#include "tartan/dsl/model.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using ir::Pointer;
using ir::Value;

// 32-bit registers that a thread loads before it stores the first: a loop that waits for each load
// alone takes their latencies one after the other. Producers that keep 24 registers: fewer, and
// nothing is unrolled, since the assembler would move loads of several batches together.
constexpr int batch_registers = 16, batch_of_producers = 8;

using Store = std::function<void()>;

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
    const std::int64_t chunks = rows_ * cols_ / each(), threads = threads_;
    if (state_.fill)
      state_.fill->writes.add(asynchronous_ ? StageAccess::cp_async : StageAccess::store);
    if (state_.fill && asynchronous_) state_.fill->copied.insert(to_.memory);
    const std::int64_t whole = chunks / threads, rest = chunks % threads, together = batch(),
                       looped = whole <= most_unrolled() ? 0 : whole / together * together;
    if (looped) {
      const Value step = state_.f().constant(u32, together * threads);
      state_.f().for_range(state_.value(thread_), state_.f().constant(u32, looped * threads), step,
                           [&](Value i) { move(state_.scalar(i), together); });
    }
    for (std::int64_t i = looped; i < whole; i += together)
      move(thread_ + i * threads, std::min(together, whole - i));
    if (rest)
      state_.f().if_then(state_.value(thread_ < rest), [&] { move(thread_ + whole * threads, 1); });
    explain(chunks);
  }

 private:
  std::int64_t each() const { return width_ * parts_; }  // elements of an access
  // Accesses of which all loads are issued before the first store.
  std::int64_t batch() const {
    const std::int64_t registers = parts_ * std::max<std::int64_t>(bytes() / 4, 1);
    const int most = few_registers() ? batch_of_producers : batch_registers;
    return asynchronous_ ? 1 : std::max<std::int64_t>(most / registers, 1);
  }
  std::int64_t most_unrolled() const {
    return few_registers() && !asynchronous_ ? batch() : model::unrolled_accesses;
  }
  bool few_registers() const {
    return state_.roles.current == Role::producer && state_.config.moves_registers();
  }
  // So many accesses of this thread, the first of which has this number.
  void move(const Scalar& first, std::int64_t count) {
    const std::int64_t per_line = line() / each();
    std::vector<Store> stores;
    for (std::int64_t i = 0; i < count; ++i) {
      const Scalar index = first + i * threads_;
      stores.push_back(moved(index / per_line, index % per_line * each()));
    }
    for (const Store& store : stores)
      if (store) store();
  }

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
    asynchronous_ = state_.fill && may_be_asynchronous();
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
    }
    if (!asynchronous_ && together) parts_ = loads_of_word();
    return true;
  }

  // Rows in global memory may begin at any element; shared memory takes whole words.
  std::int64_t loads_of_word() {
    const std::int64_t element = bits(from_.type), elements = 32 / element;
    const bool fills = !state_.memories.of(from_).in_shared && state_.memories.of(to_).in_shared;
    const bool whole = elements * element == 32 && line() % elements == 0 &&
                       aligned(to_, elements) >= 4 && !to_.row_edge && !to_.col_edge;
    return bytes() < 4 && fills && whole && !selection_.where ? elements / width_ : 1;
  }

  bool may_be_asynchronous() {
    const bool in = state_.memories.of(from_).in_shared;
    if (in)
      return refused_.emplace_back("cp.async: it copies from global to shared memory only"), false;
    if (rounds_) return refused_.emplace_back("cp.async: it cannot round to tf32"), false;
    if (state_.config.has_async_copy()) return true;
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

  // Loads an access, or issues it if it is asynchronous; the result stores what was loaded.
  Store moved(const Scalar& line, const Scalar& along) {
    Scalar row = lines_are_rows() ? line : along;
    const Scalar& col = lines_are_rows() ? along : line;
    std::optional<Value> guard;
    if (selection_.where) {
      // Accesses may be narrower than the neighbours that share a condition.
      const Scalar first =
          selection_.together == 1 ? col : col / selection_.together * selection_.together;
      const auto holds = condition(selection_.where(row, first));
      state_.at(at_);
      if (!holds) return {};
      guard = *holds;
    }
    if (!selection_.row_of) return moved(from_, row, to_, row, col, guard);
    const Scalar index = selection_.row_of(row);
    state_.at(at_);
    if (!state_.is_index(index, "the row of a copy")) return {};
    const bool scatters = state_.memories.of(from_).in_shared;
    const Tensor& indexed = scatters ? to_ : from_;
    guard = has_row(state_, indexed, index);
    const Tensor moved_rows = from_row(state_, indexed, index);
    if (scatters) return moved(from_, row, moved_rows, 0, col, guard);
    return moved(moved_rows, 0, to_, row, col, guard);
  }

  Store moved(const Tensor& from_tensor, const Scalar& from_row, const Tensor& to_tensor,
              const Scalar& to_row, const Scalar& col, std::optional<Value> guard) {
    const Pointer from = address_of(state_, from_tensor, from_row, col),
                  to = written_address_of(state_, to_tensor, to_row, col);
    if (asynchronous_) {
      move_asynchronous(to, from, from_tensor, lines_are_rows() ? from_row : col,
                        lines_are_rows() ? col : from_row, guard);
      return {};
    }
    if (parts_ > 1) {
      const Value word = load_word(from, from_tensor, from_row, col, guard);
      return [=, this] { store(to, {word}); };
    }
    auto read = is_inside(state_, from_tensor, from_row, col),
         written = is_inside(state_, to_tensor, to_row, col);
    // What is not selected is zero in shared memory, and untouched in global memory.
    auto& selected = state_.memories.of(from_).in_shared ? written : read;
    if (guard) selected = selected ? state_.f().bit_and(*selected, *guard) : *guard;
    if (written) return [=, this] { state_.f().if_then(*written, [&] { store(to, load(from)); }); };
    const std::vector<Value> words = read ? load_if(*read, from) : load(from);
    return [=, this] { store(to, words); };
  }

  // A word of shared memory from several loads, each of which may be outside of the matrix.
  Value load_word(Pointer from, const Tensor& tensor, const Scalar& row, const Scalar& col,
                  const std::optional<Value>& guard) {
    ir::FunctionBuilder& f = state_.f();
    std::vector<Value> loaded;
    for (std::int64_t i = 0; i < parts_; ++i) {
      const std::int64_t along = i * width_;
      auto read = is_inside(state_, tensor, lines_are_rows() ? row : row + along,
                            lines_are_rows() ? col + along : col);
      if (guard) read = read ? f.bit_and(*read, *guard) : *guard;
      const Pointer at = f.offset(from, i * bytes());
      loaded.push_back(read ? f.load_if(*read, at, word()) : f.load(at, word()));
    }
    if (bytes() == 2) return f.pack(loaded[0], loaded[1], b32);
    Value out = f.convert(loaded[0], u32);
    for (int i = 1; i < 4; ++i)
      out = f.bit_or(out, f.shift_left(f.convert(loaded[static_cast<std::size_t>(i)], u32),
                                       f.constant(u32, 8 * i)));
    return f.bitcast(out, b32);
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
    const auto cache = bytes() == 16 ? ir::CacheOperator::cg : ir::CacheOperator::ca;
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
    if (bytes() <= 4) return {state_.f().load_if(exists, from, word())};
    std::vector<ir::Variable> words;
    for (std::int64_t i = 0; i < bytes() / 4; ++i)
      words.push_back(state_.f().variable(state_.f().constant(word(), std::int64_t{0})));
    state_.f().if_then(exists, [&] {
      const std::vector<Value> values = load(from);
      for (std::size_t i = 0; i < words.size(); ++i) state_.f().set(words[i], values[i]);
    });
    std::vector<Value> out;
    for (const ir::Variable& each : words) out.push_back(state_.f().get(each));
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
    if (state_.fill && state_.roles.current == Role::producer && bytes() < 4)
      state_.log.warn(
          "slow-instruction"_rule,
          fmt::format("copy {} to {}: {} accesses of {} for each stage, not TMA or cp.async; {}",
                      from_.name, to_.name, chunks,
                      bytes() == 1 ? "1 byte" : fmt::format("{} bytes", bytes()),
                      from_.layout.major() != to_.layout.major()
                          ? "expected both with the same contiguous dimension: give shared_a() or "
                            "shared_b() that of the matrix"
                          : "expected rows whose alignment is known: multiple_of() of the leading "
                            "dimension promises it"));
    state_.log.choose(
        fmt::format("copy {} to {}", from_.name, to_.name),
        parts_ > 1 ? fmt::format("{} bytes per load, 4 per store", bytes())
                   : fmt::format("{}{} bytes per access", how, bytes()),
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
  std::int64_t width_ = 1;  // elements per load
  std::int64_t parts_ = 1;  // loads per access
  bool asynchronous_ = false;
  std::vector<std::string> refused_;
  std::source_location at_ = state_.log.location();  // of the call, whose callbacks have others
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
                               "is {}; take {}.window({{0, col}}, {{rows, {}}})",
                               wanted.value_or(0), matrix.name, matrix.layout.text(), matrix.name,
                               wanted.value_or(0)));
  return false;
}

}  // namespace

void copy_tile(KernelState& state, const Tensor& from, const Tensor& to,
               const CopySelection& selection, const TmaHints& hints) {
  const bool owned = state.owns(from, from.name) & state.owns(to, to.name);
  if (!owned || from.memory < 0 || to.memory < 0) return;
  if (state.fill && refuse_remote(state, to, "a fill callback")) return;
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
  if (!same_shape || from.type != to.type) return;
  note_load(state, from);
  if (state.roles.current == Role::producer) note_fill(state, to);
  else note_write(state, to);
  std::vector<std::string> refused;
  if (selects)
    refused.emplace_back(by_index ? "cp.async.bulk.tensor: rows are selected by index"
                                  : "cp.async.bulk.tensor: a condition selects elements");
  else if (copy_by_tma(state, from, to, hints, refused)) return;
  Copier(state, from, to, rows, cols, thread_index(state), thread_count(state), std::move(refused),
         selection)
      .copy();
}

void copy_by_warp(KernelState& state, const Tensor& from, const Tensor& to) {
  std::int64_t rows = 0, cols = 0;
  if (from.memory < 0 || to.memory < 0 || !constant_shape(from, rows, cols)) return;
  Copier(state, from, to, rows, cols, state.scalar(lane_index(state), 1, 31), 32, {}).copy();
}

}  // namespace tartan::TARTAN_ABI::detail
