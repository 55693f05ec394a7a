// SPDX-License-Identifier: Apache-2.0
// Compiled with -frounding-math and -ffp-contract=off: operations are neither reordered nor fused.
#include "runtime/emulator/matrix/scalar.h"

#include <bit>
#include <cfenv>
#include <cmath>

#include "runtime/emulator/matrix/float_format.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

constexpr std::uint64_t quiet = std::uint64_t{1} << 51;
constexpr std::uint64_t invalid = 0xFFF8'0000'0000'0000;

bool is_nan(std::uint64_t bits) {
  return (bits & ~(std::uint64_t{1} << 63)) > 0x7FF0'0000'0000'0000;
}

// Sets a rounding direction during its lifetime.
class RoundingScope {
 public:
  explicit RoundingScope(isa::Rounding rounding) : before_(std::fegetround()) {
    std::fesetround(direction(rounding));
  }
  ~RoundingScope() { std::fesetround(before_); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  static int direction(isa::Rounding rounding) {
    switch (rounding) {
      case isa::Rounding::rz: return FE_TOWARDZERO;
      case isa::Rounding::rm: return FE_DOWNWARD;
      case isa::Rounding::rp: return FE_UPWARD;
      default: return FE_TONEAREST;
    }
  }
  int before_;
};

std::uint64_t fma_bits(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const double result =
      std::fma(std::bit_cast<double>(a), std::bit_cast<double>(b), std::bit_cast<double>(c));
  if (result == result) return std::bit_cast<std::uint64_t>(result);
  for (const std::uint64_t operand : {b, c, a})
    if (is_nan(operand)) return operand | quiet;
  return invalid;
}

}  // namespace

std::uint32_t float_chain(const float* a, const float* b, int count, float c) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum = std::fma(a[i], b[i], sum);
  return canonical(c + sum);
}

std::uint32_t half_tree(const float* a, const float* b, float c) {
  const float low = std::fma(a[1], b[1], a[0] * b[0]);
  const float high = std::fma(a[3], b[3], a[2] * b[2]);
  const float first = c + low;
  const float sum = first + high;
  return to_half(static_cast<double>(sum));
}

void fma_chain(isa::Rounding rounding, int m, int n, int k, const std::uint64_t* a,
               const std::uint64_t* b, const std::uint64_t* c, std::uint64_t* d) {
  const RoundingScope scope(rounding);
  for (int col = 0; col < n; ++col) {
    for (int row = 0; row < m; ++row) {
      std::uint64_t sum = c[col * m + row];
      for (int i = 0; i < k; ++i) sum = fma_bits(a[i * m + row], b[i * n + col], sum);
      d[col * m + row] = sum;
    }
  }
}

}  // namespace tartan::TARTAN_ABI::emulator
