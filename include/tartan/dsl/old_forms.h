// SPDX-License-Identifier: Apache-2.0
// tartan/dsl/old_forms.h - calls of Builder as the last version had them; the next one has them no
// more. Each says what to write instead.
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
  /// pipeline({.stages = stages}, count, fill, use)
  void pipeline(int stages, const Scalar& count, const Callback& fill, const Callback& use,
                Here at = Here::current()) {
    k().pipeline(PipelineOptions{.stages = stages}, count, fill, use, at);
  }
  /// pipeline({.stages = stages}, count, fill, ahead, use)
  void pipeline(int stages, const Scalar& count, const Callback& fill, const AheadOfUse& ahead,
                const UseWithNext& use, Here at = Here::current()) {
    k().pipeline(PipelineOptions{.stages = stages}, count, fill, ahead, use, at);
  }
  /// pipeline({.stages = stages, .turns = true}, count, fill, use)
  void ping_pong(int stages, const Scalar& count, const Callback& fill, const Callback& use,
                 Here at = Here::current()) {
    k().pipeline(PipelineOptions{.stages = stages, .turns = true}, count, fill, use, at);
  }
  /// copy_rows(from, to, row_of)
  void copy_rows(const Global& from, const RowOf& row_of, const Shared& to,
                 Here at = Here::current()) {
    k().copy_rows(from, to, row_of, at);
  }
  /// copy_box(from, to, origin, size)
  void copy_box(const GlobalTensor& from, const std::vector<Scalar>& origin,
                const std::vector<int>& size, const Shared& to, Here at = Here::current()) {
    k().copy_box(from, to, origin, size, at);
  }
  /// copy_pixels(from, to, filter, first, tap, channel)
  void copy_pixels(const GlobalTensor& from, const Filter& filter, const Scalar& first,
                   const std::vector<Scalar>& tap, const Scalar& channel, const Shared& to,
                   Here at = Here::current()) {
    k().copy_pixels(from, to, filter, first, tap, channel, at);
  }
  /// read_if(from, row, col, condition)
  template <bool shared>
  Scalar read_if(const Scalar& condition, const View<shared>& from, const Scalar& row,
                 const Scalar& col, Here at = Here::current()) {
    return k().read_if(from, row, col, condition, at);
  }
  /// write_if(to, row, col, value, condition)
  template <bool shared>
  void write_if(const Scalar& condition, const View<shared>& to, const Scalar& row,
                const Scalar& col, const Scalar& value, Here at = Here::current()) {
    k().write_if(to, row, col, value, condition, at);
  }

 private:
  K& k() { return static_cast<K&>(*this); }
};

}  // namespace tartan::TARTAN_ABI::detail
