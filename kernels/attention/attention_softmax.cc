// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_softmax.h"

#include <limits>
#include <numbers>

#include "tartan/dsl/math.h"

namespace tartan::TARTAN_ABI::kernels {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

Capped::Capped(Builder& k, Softcap how, const Scalar& scale) : how_(how) {
  const Scalar cap = k.param("cap", f32);
  cap_ = select((cap > 0) & (cap < infinity), cap, std::numeric_limits<double>::quiet_NaN());
  const double factor = how == Softcap::by_exp ? 2 * std::numbers::log2e : 1;
  inner_ = scale * reciprocal(cap_) * k.constant(f32, factor);
}

Scalar Capped::operator()(const Scalar& score) const {
  const Scalar x = score * inner_;
  return how_ == Softcap::by_tanh ? tanh(x) : fma(reciprocal(exp2(x) + 1), -2, 1);
}

Sunk::Sunk(Builder& k, const RowValues& top, const RowValues& own, const Scalar& scale,
           const Scalar& sink) {
  const Scalar none = k.constant(f32, -infinity), ln2 = k.constant(f32, std::numbers::ln2);
  const auto level = map(top, [&](Scalar x) { return select(x == none, none, x * scale); });
  const auto base = map(level, [&](Scalar x) {
    const Scalar most = maximum(x, sink);
    return select(most == none, 0, most);
  });
  part = map(level, base, [](Scalar x, Scalar b) { return exp2(x - b); });
  const auto of_sink = map(base, [&](Scalar b) { return exp2(sink - b); });
  sum = map(map(own, part, times), of_sink, plus);
  lse = map(base, sum, [&](Scalar b, Scalar all) { return (b + log2(all)) * ln2; });
}

}  // namespace tartan::TARTAN_ABI::kernels
