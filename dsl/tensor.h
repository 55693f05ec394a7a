// SPDX-License-Identifier: Apache-2.0
// dsl/tensor.h - matrices in memory: Global (a pointer parameter of the kernel) and Shared (memory
// of the block). A tile of one is one again.
//
//   Global a = k.global("A", f16, row_major(m, n));
//   Global tile = a.tile(64, 32, block_row, t);        // rows 64*block_row .., columns 32*t ..
//   Shared half = s.tile(16, 16, 2 * warp + i, 0);
#pragma once

#include <source_location>
#include <string>

#include "compiler/support/diagnostic.h"
#include "dsl/layout.h"

namespace tartan {

namespace detail {

/// What Global and Shared have in common. `offset` counts elements from the memory's first byte,
/// before the swizzle.
struct Tensor {
  std::shared_ptr<KernelState> state;
  std::string name;
  Type type = Type::none;
  Layout layout;
  Scalar offset;
  int memory = -1;  // which of the kernel's memories; -1: the declaration was refused
  Place declared;

  Tensor tile(const Scalar& rows, const Scalar& cols, const Scalar& row, const Scalar& col,
              const std::source_location& at) const;
};

}  // namespace detail

template <bool in_shared_memory>
class View : public detail::Tensor {
 public:
  View() = default;
  explicit View(detail::Tensor tensor) : Tensor(std::move(tensor)) {}

  const Layout& layout() const { return Tensor::layout; }
  Type element() const { return type; }

  /// The tile `row`, `col` of a division into tiles of `rows` x `cols` elements.
  View tile(const Scalar& rows, const Scalar& cols, const Scalar& row, const Scalar& col,
            const std::source_location& at = std::source_location::current()) const {
    return View(Tensor::tile(rows, cols, row, col, at));
  }
  /// The same memory with rows and columns exchanged.
  View transposed() const {
    View out = *this;
    out.Tensor::layout = layout().transposed();
    return out;
  }
};

using Global = View<false>;
using Shared = View<true>;

}  // namespace tartan
