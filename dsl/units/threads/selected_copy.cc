// SPDX-License-Identifier: Apache-2.0
// Copies of some rows or elements of a tile.
#include "dsl/state/operations.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI {

using detail::KernelState;
using detail::Tensor;
using detail::tensor_of;

void Builder::copy_rows(const Global& from, const Shared& to,
                        const std::function<Scalar(Scalar)>& row_of, Here at) {
  state_->at(at);
  if (state_->has_body(row_of != nullptr, "copy_rows"))
    copy_tile(*state_, tensor_of(from), tensor_of(to), {.row_of = row_of});
}
void Builder::copy_rows(const Shared& from, const Global& to,
                        const std::function<Scalar(Scalar)>& row_of, Here at) {
  state_->at(at);
  if (state_->has_body(row_of != nullptr, "copy_rows"))
    copy_tile(*state_, tensor_of(from), tensor_of(to), {.row_of = row_of});
}

namespace {

void copy_selected(KernelState& state, const Tensor& from, const Tensor& to,
                   const std::function<Scalar(Scalar, Scalar)>& where, int together) {
  if (!state.has_body(where != nullptr, "copy_if")) return;
  if (together < 1)
    return state.log.report("immediate-range"_rule,
                            fmt::format("copy_if: expected a condition for 1 or more elements, "
                                        "found {}",
                                        together));
  copy_tile(state, from, to, {.where = where, .together = together});
}

}  // namespace

void Builder::copy_if(const Global& from, const Shared& to,
                      const std::function<Scalar(Scalar, Scalar)>& where, int together, Here at) {
  state_->at(at), copy_selected(*state_, tensor_of(from), tensor_of(to), where, together);
}
void Builder::copy_if(const Shared& from, const Global& to,
                      const std::function<Scalar(Scalar, Scalar)>& where, int together, Here at) {
  state_->at(at), copy_selected(*state_, tensor_of(from), tensor_of(to), where, together);
}

}  // namespace tartan::TARTAN_ABI
