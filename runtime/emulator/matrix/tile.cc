// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/matrix/tile.h"

#include <atomic>

#include "runtime/emulator/matrix/matrix.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

std::atomic<Path> what_best_is = Path::best;

bool has_avx2() {
#ifdef TARTAN_X86
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

bool has_avx512() {
#ifdef TARTAN_X86
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace

void set_best_path(Path path) { what_best_is = path; }

const TileKernel* tile_kernel(Path path) {
  if (path == Path::best) path = what_best_is;
  switch (path) {
    case Path::reference: return nullptr;
    case Path::portable: return &tile_portable;
#ifdef TARTAN_X86
    case Path::avx2: return has_avx2() ? &tile_avx2 : nullptr;
    case Path::avx512: return has_avx512() ? &tile_avx512 : nullptr;
#endif
    default: break;
  }
#ifdef TARTAN_X86
  if (path == Path::best)
    return has_avx512() ? &tile_avx512 : has_avx2() ? &tile_avx2 : &tile_portable;
#endif
  return path == Path::best ? &tile_portable : nullptr;
}

}  // namespace tartan::TARTAN_ABI::emulator
