// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "tartan/abi.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {
constexpr int lanes = 8;
}
}  // namespace tartan::TARTAN_ABI::emulator

#include "runtime/emulator/matrix/tile_kernel.h"

namespace tartan::TARTAN_ABI::emulator {
extern const TileKernel tile_avx2;
const TileKernel tile_avx2{gather, scatter, unpack, multiply, unpack_integers, multiply_integers};
}  // namespace tartan::TARTAN_ABI::emulator
