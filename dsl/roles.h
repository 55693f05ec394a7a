// SPDX-License-Identifier: Apache-2.0
// dsl/roles.h - what a pipeline becomes between producers and consumers. Not installed.
#pragma once

#include <functional>

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

/// What Builder::pipeline() takes.
struct Stages {
  int stages;
  const Scalar& count;
  const std::function<void(Scalar, Scalar)>& fill;
  const std::function<void(Scalar)>& ahead;
  const std::function<void(Scalar, Scalar, const std::function<void()>&)>& use;
  Place place = {};  // of the call
};

/// Uses stage `t`, at `stage`. `leave` runs when the description calls next(), at the latest
/// behind.
void use_stage(KernelState& state, const Stages& stages, const Scalar& t, const Scalar& stage,
               const std::function<void()>& leave);

/// This role's part of a pipeline, inside Builder::roles().
void role_pipeline(KernelState& state, const Stages& stages);

}  // namespace tartan::inline TARTAN_ABI::detail
