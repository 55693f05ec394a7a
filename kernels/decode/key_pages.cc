// SPDX-License-Identifier: Apache-2.0
#include "kernels/decode/key_pages.h"

#include <utility>

#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels {

Scalar KeyPages::number(const SplitKeys::Part& part, const Scalar& step, int i) const {
  const Scalar last = maximum(ceil_div(part.length, page) - 1, 0);
  const Scalar at = minimum(step * keys_per_step / page + i, last);
  return k.read_if(table, part.sequence, at, part.length > 0);
}

PageWalk::PageWalk(const KeyPages& pages, const SplitKeys::Part& part,
                   std::function<Scalar(const Scalar& page)> matrix_of)
    : pages_(pages), part_(part), matrix_of_(std::move(matrix_of)) {
  for (int i = 0; i < pages.of_step(); ++i)
    next_.push_back(pages.k.variable(matrix(part.first, i)));
}

void PageWalk::copy_step(
    const Scalar& t,
    const std::function<void(int i, const Scalar& matrix, const Scalar& tile)>& copy) {
  const Scalar step = part_.first + pages_.k.convert(t, s32);
  const int steps_of_page = pages_.page / pages_.keys();
  const Scalar tile = steps_of_page > 1 ? step % steps_of_page : Scalar(0);
  for (int i = 0; i < pages_.of_step(); ++i) copy(i, next_[i], tile);
  for (int i = 0; i < pages_.of_step(); ++i) next_[i] = matrix(step + 1, i);
}

Scalar PageWalk::matrix(const Scalar& step, int i) const {
  return matrix_of_(pages_.number(part_, step, i));
}

}  // namespace tartan::TARTAN_ABI::kernels
