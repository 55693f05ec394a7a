// SPDX-License-Identifier: Apache-2.0
// dsl/state/handles.h - private members and owners of a description's handles (numbers, fragments,
// tensors). Not installed.
#pragma once

#include <memory>

#include "tartan/dsl/fragment.h"
#include "tartan/dsl/scalar.h"
#include "tartan/dsl/tensor.h"

namespace tartan::TARTAN_ABI::detail {

/// The one friend of Builder, Scalar, View, Fragment and FragmentVariable.
struct HandleParts {
  static auto& state(auto& handle) { return handle.state_; }

  static auto& tensor(auto& view) { return view.tensor_; }

  // Of a Scalar.
  static auto& value(auto& scalar) { return scalar.value_; }
  static auto& addend(auto& scalar) { return scalar.addend_; }
  static auto& real(auto& scalar) { return scalar.real_; }
  static auto& multiple(auto& scalar) { return scalar.multiple_; }
  static auto& ones(auto& scalar) { return scalar.ones_; }
  static auto& wraps(auto& scalar) { return scalar.wraps_; }
  static auto& made_in(auto& scalar) { return scalar.made_; }
  static int assigned_in(const Scalar& scalar) { return scalar.assignment_.body(); }

  // Of a Fragment, and of its variables.
  static auto& kind(auto& fragment) { return fragment.kind_; }
  static auto& registers(auto& fragment) { return fragment.registers_; }
  static auto& major(auto& fragment) { return fragment.major_; }
  static auto& made(auto& fragment) { return fragment.made_; }
  /// The product that may still be computing its registers, which start at that product's
  /// `first`th.
  static auto& flight(auto& fragment) { return fragment.flight_; }
  static auto& first(auto& fragment) { return fragment.first_; }
  /// The variable that it was read from.
  static auto& variable(auto& fragment) { return fragment.variable_; }

  static auto& record(auto& fragment_variable) { return fragment_variable.record_; }
  static FragmentVariable fragment_variable() { return {}; }
};

template <bool in_shared_memory>
const Tensor& tensor_of(const View<in_shared_memory>& view) {
  return HandleParts::tensor(view);
}

/// The kernel that made a handle; none for handles of refused calls.
inline const std::shared_ptr<KernelState>& state_of(const Tensor& tensor) { return tensor.state; }
const std::shared_ptr<KernelState>& state_of(const auto& handle) {
  return HandleParts::state(handle);
}

}  // namespace tartan::TARTAN_ABI::detail
