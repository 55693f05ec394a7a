// SPDX-License-Identifier: Apache-2.0
// dsl/roles.h - a pipeline between producers and consumers. Not installed.
#pragma once

#include <functional>

#include "dsl/state.h"

namespace tartan::inline TARTAN_ABI::detail {

/// The arguments of Builder::pipeline().
struct Stages {
  int stages;
  const Scalar& count;
  const std::function<void(Scalar, Scalar)>& fill;
  const std::function<void(Scalar)>& ahead;
  const std::function<void(Scalar, Scalar, const std::function<void()>&)>& use;
  Place place = {};  // of the call
  int pipeline = 0;  // for StageChecks
};

/// Consumes k-tile `t` in `stage`. `leave` runs when the description calls next(), or else after
/// it.
void use_stage(KernelState& state, const Stages& stages, const Scalar& t, const Scalar& stage,
               const std::function<void()>& leave);

/// This role's part of a pipeline, inside Builder::roles().
void role_pipeline(KernelState& state, const Stages& stages);

}  // namespace tartan::inline TARTAN_ABI::detail
