// SPDX-License-Identifier: Apache-2.0
// compiler/ir/thread_values.h - what values of a description are in each thread of a block.
// Not installed.
//
// Integers are computed from the threads' indices. What a description does not tell, such as a
// parameter, an element of memory or the block's index, has a made-up number: which one depends on
// the sample. Whoever walks over the operations says where a value is computed anew.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/ir/function.h"

namespace tartan::TARTAN_ABI::ir {

/// How much of a value is known.
enum class Known : std::uint8_t {
  exactly,
  made_up,  // but for what follows from the threads' indices
  nowhere,  // it may be anything in each thread
};

/// A value in each thread, or in all: then there is one number.
struct InThreads {
  std::vector<std::int64_t> numbers;
  Known known = Known::exactly;

  void be(std::int64_t number, Known how) { numbers.assign(1, number), known = how; }
  bool is_same() const { return numbers.size() == 1; }
  std::int64_t in(int thread) const {
    return numbers[is_same() ? 0 : static_cast<std::size_t>(thread)];
  }
};

/// The operation that makes each value; none of arguments.
std::vector<const Operation*> makers_of(const Function& function);

class ThreadValues {
 public:
  /// Each makes up other numbers: ones, large ones, different ones. Not zeros: as a stride that
  /// puts all threads at one address.
  static constexpr int samples = 3;

  ThreadValues(const Function& function, const std::vector<const Operation*>& makers, int threads);

  void begin(int sample);
  const InThreads& of(int id);
  void set(int id, const InThreads& value);
  /// What has been computed since then is forgotten, unless it is the same wherever it is computed.
  std::size_t mark() const { return computed_.size(); }
  void forget(std::size_t mark);
  /// Whether another sample may give anything else.
  bool has_made_up() const { return made_up_; }
  /// x + y as a register of that type holds it.
  InThreads sum(const InThreads& x, const InThreads& y, Type type) const;

 private:
  // What an operation makes, as `out`, which has no numbers.
  void compute(InThreads& out, const Operation& op, int id);
  void compute_unknown(InThreads& out, const Operation& op, int id);
  bool is_fixed(std::size_t which) const;
  void make_up(InThreads& out, int id, Known known);
  template <typename Fold>
  void fold(InThreads& out, const Operation& op, Type type, const Fold& by);
  void exchange(InThreads& out, const Operation& op);
  std::span<const Operand> operands(const Operation& op) const {
    return Function::part(function_.operands, op.operands);
  }
  std::int64_t number(const Operation& op, std::size_t which = 0) const {
    return Function::part(function_.numbers, op.numbers)[which];
  }

  const Function& function_;
  const std::vector<const Operation*>& makers_;
  int threads_;
  int sample_ = 0;
  bool made_up_ = false;
  std::int64_t instance_ = 0;                        // how often values were forgotten
  std::vector<InThreads> values_;                    // by id; no numbers: not computed
  std::vector<bool> fixed_;                          // by id: never forgotten
  std::vector<int> computed_;                        // ids of others, in order
  std::array<std::vector<std::int64_t>, 3> spread_;  // operands that are the same in all threads
};

}  // namespace tartan::TARTAN_ABI::ir
