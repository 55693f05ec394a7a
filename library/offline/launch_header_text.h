// SPDX-License-Identifier: Apache-2.0
// library/offline/launch_header_text.h - the parts of a generated header that are the same in all.
// Not installed.
#pragma once

#include <string_view>

namespace tartan::TARTAN_ABI::offline {

/// Behind the includes. What a launch consists of.
inline constexpr std::string_view launch_types = R"text(
/// A target's module: PTX, which ends in a zero, as cuModuleLoadData takes it.
struct Image {
  const char* target;  // "sm_90a"
  int sm;              // 90
  char suffix;         // 'a', 'f' or 0
  int number;          // in `images`
  const char* ptx;
  std::size_t bytes;   // without the zero
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// An address in the GPU's memory (a CUdeviceptr) of elements of a type, and how many bytes are
/// there. With 0 bytes nobody knows, and the size is not checked.
template <typename Element>
struct Global {
  explicit Global(std::uint64_t address, std::size_t bytes = 0) : address(address), bytes(bytes) {}
  std::uint64_t address;
  std::size_t bytes;
};

/// An argument's bytes, aligned as the parameter is.
struct alignas(64) Argument {
  unsigned char bytes[128];
  std::size_t size;
};

/// A TMA tensor map: the arguments of cuTensorMapEncodeTiled, in its order and as its enumerations
/// number them. It writes the bytes of Launch::arguments[argument].
struct Map {
  int argument;
  int type;                 // CUtensorMapDataType
  unsigned rank;
  std::uint64_t address;
  std::uint64_t extents[5];  // elements, the innermost dimension first
  std::uint64_t strides[4];  // bytes, of dimensions 1 and up
  std::uint32_t box[5];
  std::uint32_t element_strides[5];
  int interleave, swizzle, promotion, fill;
};

/// What a launch takes. `error` is empty, or says why the kernel must not be launched, a line for
/// each mistake. Fill the tensor maps, if there are any; then
///   cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared);
///   cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream,
///                  pointers(), nullptr);
/// The kernel itself states its cluster.
template <int Arguments, int Maps>
struct Launch {
  std::string error;
  Dim3 grid, block, cluster;
  unsigned shared = 0;              // bytes of dynamic shared memory
  int count = 0;                    // of arguments, without those of the maps, which follow them
  int map_count = 0;
  Argument arguments[Arguments + Maps] = {};
  Map maps[Maps + 1] = {};          // one more, so that there is one
  void* addresses[Arguments + Maps] = {};

  void** pointers() {
    for (int i = 0; i < count + map_count; ++i) addresses[i] = arguments[i].bytes;
    return addresses;
  }
};

namespace detail {

inline std::int64_t ceil_div(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }
inline std::uint64_t at_least_one(std::int64_t x) { return x > 1 ? std::uint64_t(x) : 1; }

template <typename L, typename T>
void add(L& launch, T value) {
  Argument& to = launch.arguments[launch.count++];
  to.size = sizeof value;
  std::memcpy(to.bytes, &value, sizeof value);
}

/// Reports a mistake.
template <typename L>
void require(L& launch, bool holds, const char* expected, std::int64_t found) {
  if (holds) return;
  if (!launch.error.empty()) launch.error += '\n';
  launch.error += expected;
  launch.error += ", found " + std::to_string(found);
}

template <typename L>
void require_memory(L& launch, const char* what, std::uint64_t address, std::size_t bytes,
                    std::uint64_t align, std::int64_t needed) {
  const std::string name = what;
  require(launch, address % align == 0,
          (name + ": expected an address that is a multiple of " + std::to_string(align)).c_str(),
          std::int64_t(address % align));
  require(launch, bytes == 0 || std::int64_t(bytes) >= needed,
          (name + ": expected at least " + std::to_string(needed) + " bytes").c_str(),
          std::int64_t(bytes));
}

/// Bytes from the first element of a matrix to the end of its last.
inline std::int64_t span(std::int64_t rows, std::int64_t cols, std::int64_t row_stride,
                         std::int64_t col_stride, std::int64_t bits) {
  if (rows <= 0 || cols <= 0) return 0;
  return (((rows - 1) * row_stride + (cols - 1) * col_stride + 1) * bits + 7) / 8;
}

template <typename L>
void require_grid(L& launch) {
  const Dim3& grid = launch.grid;
  require(launch, grid.x >= 1 && grid.x <= 2147483647, "grid.x: expected 1 to 2147483647", grid.x);
  require(launch, grid.y >= 1 && grid.y <= 65535, "grid.y: expected 1 to 65535", grid.y);
  require(launch, grid.z >= 1 && grid.z <= 65535, "grid.z: expected 1 to 65535", grid.z);
  require(launch, grid.x % launch.cluster.x == 0,
          ("grid.x: expected a multiple of the cluster, " + std::to_string(launch.cluster.x)).c_str(),
          grid.x);
}

template <typename L>
void add(L& launch, const Map& map, const char* matrix) {
  const std::string name = std::string(matrix) + " (TMA): expected ";
  require(launch, map.address % 16 == 0, (name + "an address that is a multiple of 16").c_str(),
          std::int64_t(map.address % 16));
  for (unsigned i = 0; i < map.rank; ++i)
    require(launch, map.extents[i] <= std::uint64_t(1) << 32,
            (name + "at most 2^32 elements along a dimension").c_str(),
            std::int64_t(map.extents[i]));
  for (unsigned i = 0; i + 1 < map.rank; ++i)
    require(launch, map.strides[i] % 16 == 0 && map.strides[i] < std::uint64_t(1) << 40,
            (name + "strides that are multiples of 16 bytes, below 2^40").c_str(),
            std::int64_t(map.strides[i]));
  launch.maps[launch.map_count] = map;
  launch.arguments[map.argument].size = 128;
  ++launch.map_count;
}

}  // namespace detail
)text";

/// Behind the images.
inline constexpr std::string_view best_image = R"text(
/// The module for a GPU of compute capability sm / 10 (90 for 9.0), which is also what the driver
/// takes from a bundle: the highest target that it runs; null: none. sm_90a runs on sm_90 alone.
inline const Image* best(int sm) {
  const Image* out = nullptr;
  int rank = -1;
  for (const Image& each : images) {
    const bool runs = each.suffix == 'a' ? each.sm == sm
                      : each.suffix == 'f' ? each.sm <= sm && each.sm / 10 == sm / 10
                                           : each.sm <= sm;
    const int its = 4 * each.sm + (each.suffix == 'a' ? 2 : each.suffix == 'f' ? 1 : 0);
    if (runs && its > rank) out = &each, rank = its;
  }
  return out;
}
)text";

}  // namespace tartan::TARTAN_ABI::offline
