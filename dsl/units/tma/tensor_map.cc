// SPDX-License-Identifier: Apache-2.0
// What TMA needs to know of tensors of several dimensions, for boxes and for pixels.
#include <numeric>

#include "dsl/units/tma/tma_matrix.h"
#include "tartan/dsl/builder.h"

namespace tartan::TARTAN_ABI::detail {

std::string tensor_problem(const KernelState& state, const Tensor& to, const Scalar& inner) {
  const int element = bits(to.type);
  if (!state.config.has_tma())
    return fmt::format("requires sm_90 and PTX 8.0, the target is {}", state.config.target.text());
  if (state.roles.current != Role::producer || !state.fill || !state.fill->issuer.valid())
    return "TMA loads fill stages of a warp-specialized pipeline only";
  if (state.flights.depth() != state.fill->depth)
    return "it is in a loop or condition of the fill callback";
  if (element < 8) return fmt::format("requires elements of at least 8 bits, found {}", element);
  if (to.layout.major() != Major::row)
    return fmt::format("rows of {} are not contiguous", to.layout.text());
  if (std::gcd(inner.multiple(), std::int64_t{128}) * element % 128)
    return "the last dimension's origin is not guaranteed to be a multiple of 16 bytes";
  return {};
}

std::string tensor_numbers(const KernelState& state, const GlobalTensor& tensor,
                           TensorNumbers& out) {
  const Tensor& matrix = tensor_of(tensor.rows());
  const std::vector<Scalar>& extents = tensor.extents();
  MapNumber apart{1, {}};
  std::int64_t multiple = 1;
  for (std::size_t d = extents.size(); d-- > 0;) {
    const auto number = map_number(state.launch, extents[d]);
    if (!number || number->divisor != 1)
      return fmt::format("the size of {} is computed by the kernel", matrix.name);
    out.extents.push_back(*number);
    if (d == 0) break;
    apart.value *= number->value;
    apart.params.insert(apart.params.end(), number->params.begin(), number->params.end());
    multiple *= std::gcd(extents[d].multiple(), std::int64_t{128});
    if (multiple * bits(matrix.type) % 128)
      return "the innermost dimension must be a multiple of 16 bytes for certain";
    out.strides.push_back(apart);
  }
  return {};
}

ir::Pointer tensor_map(KernelState& state, const GlobalTensor& from, const Tensor& to,
                       CompiledMap wanted) {
  const Tensor& matrix = tensor_of(from.rows());
  wanted.of = state.memories.of(matrix).param;
  wanted.type = state.memories.of(to).rounded_to_tf32 ? tf32 : unsigned_of(bits(matrix.type));
  if (const auto map = state.launch.find_map(matrix.memory, wanted)) return *map;
  wanted.name = matrix.name + "_map";
  const ir::Pointer map = state.f().add_tensor_map();
  state.launch.add_map(matrix.memory, std::move(wanted), map);
  return map;
}

Scalar as_signed(Builder& k, KernelState& state, const Scalar& x, const std::source_location& at) {
  if (x.constant()) return state.scalar(state.f().constant(s32, *x.constant()), x.multiple());
  return k.convert(x, s32, at);
}

}  // namespace tartan::TARTAN_ABI::detail
