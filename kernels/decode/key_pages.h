// SPDX-License-Identifier: Apache-2.0
// kernels/decode/key_pages.h - the pages of a cache that a part's steps are in: a step is some
// pages, or some of the keys of one. Not installed.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "kernels/decode/split_keys.h"

namespace tartan::TARTAN_ABI::kernels {

/// Which pages the steps of all parts are in.
struct KeyPages {
  Builder& k;
  Global table;       // [sequence][page of the sequence]: its number in the cache
  int page;           // keys of one
  int keys_per_step;  // of a power of two pages, or the reverse

  int of_step() const { return std::max(1, keys_per_step / page); }
  /// Keys of a page that a step has.
  int keys() const { return std::min(keys_per_step, page); }
  /// The number of a step's page `i`. Beyond the sequence it is the last page's.
  Scalar number(const SplitKeys::Part& part, const Scalar& step, int i) const;
};

/// The pages of a part's steps, one step after the other: their numbers are read a step ahead.
class PageWalk {
 public:
  /// `matrix_of`: the matrix of the cache that a page's keys are in, by the page's number.
  PageWalk(const KeyPages& pages, const SplitKeys::Part& part,
           std::function<Scalar(const Scalar& page)> matrix_of);

  /// copy(i, matrix, tile) for each page of the part's step `t`: where its keys are, and which tile
  /// of KeyPages::keys() of them. Then reads which pages those of the next step are.
  void copy_step(const Scalar& t,
                 const std::function<void(int i, const Scalar& matrix, const Scalar& tile)>& copy);

 private:
  Scalar matrix(const Scalar& step, int i) const;

  const KeyPages& pages_;
  const SplitKeys::Part& part_;
  std::function<Scalar(const Scalar& page)> matrix_of_;
  std::vector<ScalarVariable> next_;
};

}  // namespace tartan::TARTAN_ABI::kernels
