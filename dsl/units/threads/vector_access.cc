// SPDX-License-Identifier: Apache-2.0
// Neighbours in a row, read and written by wide accesses.
#include <algorithm>
#include <bit>

#include "dsl/layout/addressing.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI {
namespace {

using detail::KernelState;
using detail::Tensor;
using detail::tensor_of;
using ir::Pointer;
using ir::Value;

constexpr int widest = 16;  // bytes

class VectorAccess {
 public:
  VectorAccess(KernelState& state, const Tensor& tensor, const Scalar& row, const Scalar& col,
               int count)
      : state_(state),
        tensor_(tensor),
        row_(row),
        col_(col),
        count_(count),
        element_(bits(tensor.type) / 8) {}

  bool is_possible() const {
    const auto refused = [&](const Rule& rule, std::string message) {
      state_.log.report(rule, std::move(message));
      return false;
    };
    if (!state_.owns(tensor_, tensor_.name) || tensor_.memory < 0) return false;
    if (!(state_.is_index(row_, "a row") & state_.is_index(col_, "a column"))) return false;
    if (count_ < 1 || count_ > 128)
      return refused("operand-count"_rule,
                     fmt::format("a vector of {}: expected 1 to 128 elements, found {}",
                                 tensor_.name, count_));
    if (bits(tensor_.type) < 8)
      return refused("scalar-type"_rule,
                     fmt::format("{}: elements of type {} are smaller than a byte; load or store "
                                 "them as fragments",
                                 tensor_.name, name(tensor_.type)));
    const auto c = col_.constant(), cols = tensor_.layout.cols.constant();
    if (c && (*c < 0 || (cols && *c + count_ > *cols)))
      return refused("tile-bounds"_rule,
                     fmt::format("columns {} to {} are out of bounds of {}, which is {}", *c,
                                 *c + count_ - 1, tensor_.name, tensor_.layout.text()));
    return true;
  }

  std::vector<Scalar> read() {
    std::vector<Scalar> out;
    each_access(false, [&](Pointer from, int bytes) {
      for (const Value& value : loaded(from, bytes))
        out.push_back(detail::widened_element(state_, value));
    });
    explain("read");
    return out;
  }

  void write(std::span<const Value> values) {
    each_access(true, [&](Pointer to, int bytes) {
      const auto count = static_cast<std::size_t>(bytes / element_);
      const std::vector<Value> words = packed(values.first(count), bytes);
      if (words.size() > 1) state_.f().store_vector(to, words);
      else state_.f().store(to, words[0]);
      values = values.subspan(count);
    });
    explain("write");
  }

 private:
  // The widest access for which the address of (row, col) is aligned for certain.
  int width() const {
    if (tensor_.layout.major() != Major::row) return element_;
    const int aligned = aligned_bytes(state_, tensor_, row_.multiple(), col_.multiple());
    return std::max(std::min(aligned, widest), element_);
  }

  void each_access(bool writes, const std::function<void(Pointer, int)>& access) {
    const int most = width();
    for (int i = 0; i < count_;) {
      int bytes = most;
      while (bytes > element_ && (i * element_ % bytes || i + bytes / element_ > count_))
        bytes /= 2;
      const auto place = writes ? detail::written_address_of : detail::address_of;
      access(place(state_, tensor_, row_, col_ + i), bytes);
      i += bytes / element_;
    }
  }

  std::vector<Value> loaded(Pointer from, int bytes) {
    ir::FunctionBuilder& f = state_.f();
    const Type type = tensor_.type;
    const int count = bytes / element_;
    if (count == 1) return {f.load(from, type)};
    if (element_ >= 4) return f.load_vector(from, type, count);
    std::vector<Value> out;
    const std::vector<Value> words =
        bytes > 4 ? f.load_vector(from, b32, bytes / 4)
                  : std::vector<Value>{f.load(from, bytes == 4 ? b32 : Type::u16)};
    for (const Value& word : words) {
      const int per_word = std::min(bytes, 4) / element_;
      const Type whole = bits(word.type) == 32 ? u32 : Type::u16;
      for (int i = 0; i < per_word; ++i) {
        const Value low = f.shift_right(f.bitcast(word, whole),
                                        f.constant(whole, std::int64_t{8} * element_ * i));
        out.push_back(f.bitcast(f.convert(low, element_ == 2 ? Type::u16 : Type::u8), type));
      }
    }
    return out;
  }

  std::vector<Value> packed(std::span<const Value> values, int bytes) {
    ir::FunctionBuilder& f = state_.f();
    if (values.size() == 1 || element_ >= 4) return {values.begin(), values.end()};
    const int per_word = std::min(bytes, 4) / element_;
    const Type whole = bytes == 2 ? Type::u16 : u32;
    std::vector<Value> out;
    for (std::size_t first = 0; first < values.size();
         first += static_cast<std::size_t>(per_word)) {
      Value word = f.constant(whole, std::int64_t{0});
      for (int i = 0; i < per_word; ++i) {
        const Value bits = f.convert(f.bitcast(values[first + static_cast<std::size_t>(i)],
                                               element_ == 2 ? Type::u16 : Type::u8),
                                     whole);
        word =
            f.bit_or(word, f.shift_left(bits, f.constant(whole, std::int64_t{8} * element_ * i)));
      }
      out.push_back(word);
    }
    return out;
  }

  void explain(std::string_view how) {
    state_.log.choose(
        fmt::format("{} {} elements of {}", how, count_, tensor_.name),
        fmt::format("up to {} bytes per access", std::min(width(), count_ * element_)),
        fmt::format("the address is a multiple of {} bytes for certain", width()));
  }

  KernelState& state_;
  const Tensor& tensor_;
  const Scalar &row_, &col_;
  int count_;
  int element_;  // bytes
};

std::vector<Scalar> read_neighbours(KernelState& state, const Tensor& from, const Scalar& row,
                                    const Scalar& col, int count) {
  VectorAccess access(state, from, row, col, count);
  if (!access.is_possible())
    return std::vector<Scalar>(static_cast<std::size_t>(std::clamp(count, 1, 128)),
                               detail::bad_scalar());
  return access.read();
}

void write_neighbours(KernelState& state, const Tensor& to, const Scalar& row, const Scalar& col,
                      std::span<const Scalar> values) {
  VectorAccess access(state, to, row, col, static_cast<int>(values.size()));
  if (!access.is_possible()) return;
  std::vector<Value> out;
  for (const Scalar& each : values) {
    if (detail::is_bad(each) || (detail::state_of(each) && !state.owns(each, "the value"))) return;
    const bool narrows = detail::takes_low_bits(state, to.type, each);
    if (!detail::is_constant(each) && bits(each.type()) != bits(to.type) && !narrows)
      return state.log.report(
          "scalar-type"_rule,
          fmt::format("element type mismatch: {} has elements of {}, the value is {}; convert() it",
                      to.name, name(to.type), name(each.type())));
    out.push_back(state.f().bitcast(
        detail::is_constant(each) || narrows ? state.value(each, to.type) : state.value(each),
        to.type));
  }
  access.write(out);
  note_write(state, to);
}

}  // namespace

std::vector<Scalar> Builder::read_vector(const Global& from, const Scalar& row, const Scalar& col,
                                         int count, Here at) {
  return state_->at(at), read_neighbours(*state_, tensor_of(from), row, col, count);
}
std::vector<Scalar> Builder::read_vector(const Shared& from, const Scalar& row, const Scalar& col,
                                         int count, Here at) {
  state_->at(at);
  state_->roles.note_read(detail::StageAccess::load);
  if (tensor_of(from).memory >= 0) note_read(*state_, tensor_of(from));
  return read_neighbours(*state_, tensor_of(from), row, col, count);
}
void Builder::write_vector(const Global& to, const Scalar& row, const Scalar& col,
                           std::span<const Scalar> values, Here at) {
  state_->at(at), write_neighbours(*state_, tensor_of(to), row, col, values);
}
void Builder::write_vector(const Shared& to, const Scalar& row, const Scalar& col,
                           std::span<const Scalar> values, Here at) {
  state_->at(at), write_neighbours(*state_, tensor_of(to), row, col, values);
}

}  // namespace tartan::TARTAN_ABI
