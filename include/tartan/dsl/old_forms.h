// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/old_forms.h - calls of Builder as 0.1 had them. They stay in 0.2, where the compiler
// warns of them and says what to write instead; 0.3 has them no more.
#pragma once

#include <functional>
#include <source_location>
#include <vector>

#include "tartan/dsl/pipeline.h"
#include "tartan/dsl/scalar.h"
#include "tartan/dsl/tensor.h"

namespace tartan::TARTAN_ABI::detail {

template <typename K>
class OldForms {
  using RowOf = std::function<Scalar(Scalar)>;
  using Callback = std::function<void(Scalar, Scalar)>;
  using AheadOfUse = std::function<void(Scalar)>;
  using UseWithNext = std::function<void(Scalar, Scalar, const std::function<void()>&)>;

 public:
  [[deprecated(
      "write pipeline({.stages = stages}, count, fill, use): 0.3 has this form no more")]] void
  pipeline(int stages, const Scalar& count, const Callback& fill, const Callback& use,
           Here at = Here::current()) {
    k().pipeline(PipelineOptions{.stages = stages}, count, fill, use, at);
  }
  [[deprecated(
      "write pipeline({.stages = stages}, count, fill, ahead, use): 0.3 has this form no "
      "more")]] void
  pipeline(int stages, const Scalar& count, const Callback& fill, const AheadOfUse& ahead,
           const UseWithNext& use, Here at = Here::current()) {
    k().pipeline(PipelineOptions{.stages = stages}, count, fill, ahead, use, at);
  }
  [[deprecated(
      "write pipeline({.stages = stages, .turns = true}, count, fill, use): 0.3 has this form no "
      "more")]] void
  ping_pong(int stages, const Scalar& count, const Callback& fill, const Callback& use,
            Here at = Here::current()) {
    k().pipeline(PipelineOptions{.stages = stages, .turns = true}, count, fill, use, at);
  }
  [[deprecated("write copy_rows(from, to, row_of): 0.3 has this form no more")]] void copy_rows(
      const Global& from, const RowOf& row_of, const Shared& to, Here at = Here::current()) {
    k().copy_rows(from, to, row_of, at);
  }
  [[deprecated("write copy_box(from, to, origin, size): 0.3 has this form no more")]] void copy_box(
      const GlobalTensor& from, const std::vector<Scalar>& origin, const std::vector<int>& size,
      const Shared& to, Here at = Here::current()) {
    k().copy_box(from, to, origin, size, at);
  }
  [[deprecated(
      "write copy_pixels(from, to, filter, first, tap, channel): 0.3 has this form no more")]] void
  copy_pixels(const GlobalTensor& from, const Filter& filter, const Scalar& first,
              const std::vector<Scalar>& tap, const Scalar& channel, const Shared& to,
              Here at = Here::current()) {
    k().copy_pixels(from, to, filter, first, tap, channel, at);
  }
  template <bool shared>
  [[deprecated("write read_if(from, row, col, condition): 0.3 has this form no more")]] Scalar
  read_if(const Scalar& condition, const View<shared>& from, const Scalar& row, const Scalar& col,
          Here at = Here::current()) {
    return k().read_if(from, row, col, condition, at);
  }
  template <bool shared>
  [[deprecated("write write_if(to, row, col, value, condition): 0.3 has this form no more")]] void
  write_if(const Scalar& condition, const View<shared>& to, const Scalar& row, const Scalar& col,
           const Scalar& value, Here at = Here::current()) {
    k().write_if(to, row, col, value, condition, at);
  }

 private:
  friend K;
  OldForms() = default;
  K& k() { return static_cast<K&>(*this); }
};

}  // namespace tartan::TARTAN_ABI::detail
