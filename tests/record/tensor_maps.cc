// SPDX-License-Identifier: Apache-2.0
// Writes how the CUDA driver and a GPU of sm_90 or later handle tensor maps, one JSON object per
// line on standard output:
//
//   {"map": {...}, "code": 0, "bytes": "..."}       cuTensorMapEncodeTiled, or ...Im2col where the
//                                                   map has pixels: its result, 128 bytes
//   {"map": {...}, "swizzle": 4, "code": 0, ...}    the same with a swizzle that TensorMap has not
//   {"copy": {...}, "words": "..."}                 what a copy through the map left behind
//
// record_tensor_maps [maps|images|copies|edges]; without an argument, all. Images are the maps and
// the copies of im2col; edges are copies that begin before an edge of the tensor or behind one.
// Copies use the library; only the driver encodes the maps.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <iterator>
#include <new>
#include <random>
#include <span>

#include "tests/emulator/tensor_copies.h"
#include "tests/record/tensor_cases.h"

namespace tartan::test {
namespace {

using Swizzle = TensorMap::Swizzle;

// cuTensorMapEncodeTiled(map, type, rank, address, extents, strides, box, element strides,
// interleave, swizzle, promotion, fill)
using Encode = int (*)(void*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*,
                       const std::uint32_t*, const std::uint32_t*, int, int, int, int);

// cuTensorMapEncodeIm2col(map, type, rank, address, extents, strides, lower, upper, channels,
// pixels, element strides, interleave, swizzle, promotion, fill)
using EncodeImages = int (*)(void*, int, std::uint32_t, void*, const std::uint64_t*,
                             const std::uint64_t*, const int*, const int*, std::uint32_t,
                             std::uint32_t, const std::uint32_t*, int, int, int, int);

struct Driver {
  Encode tiles = nullptr;
  EncodeImages images = nullptr;
};

constexpr struct {
  Type type;
  bool flush;
} driver_types[] = {{Type::u8, false},   {Type::u16, false}, {Type::u32, false},
                    {Type::s32, false},  {Type::u64, false}, {Type::s64, false},
                    {Type::f16, false},  {Type::f32, false}, {Type::f64, false},
                    {Type::bf16, false}, {Type::f32, true},  {Type::tf32, false},
                    {Type::tf32, true}};

int driver_type(const TensorMap& map) {
  for (int i = 0; i < static_cast<int>(std::size(driver_types)); ++i)
    if (driver_types[i].type == map.type && driver_types[i].flush == map.flush_subnormals) return i;
  return 99;
}

Driver find_encode() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return {};
  const auto initialise = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
  const auto retain =
      reinterpret_cast<int (*)(void**, int)>(dlsym(library, "cuDevicePrimaryCtxRetain"));
  const auto select = reinterpret_cast<int (*)(void*)>(dlsym(library, "cuCtxSetCurrent"));
  // The driver encodes maps only in a context.
  void* context = nullptr;
  if (!initialise || !retain || !select || initialise(0) != 0 || retain(&context, 0) != 0 ||
      select(context) != 0)
    return {};
  return {reinterpret_cast<Encode>(dlsym(library, "cuTensorMapEncodeTiled")),
          reinterpret_cast<EncodeImages>(dlsym(library, "cuTensorMapEncodeIm2col"))};
}

int encode_by_driver(const Driver& driver, const TensorMap& map, TensorMapBytes& out,
                     std::optional<int> swizzle = {}) {
  alignas(64) std::byte room[128] = {};
  std::vector<std::uint32_t> ones(map.rank(), 1);
  const std::uint64_t none[1] = {};  // the driver rejects a null pointer
  const auto& steps = map.element_strides.empty() ? ones : map.element_strides;
  const auto rank = static_cast<std::uint32_t>(map.rank());
  const int pattern = swizzle.value_or(static_cast<int>(map.swizzle)),
            promotion = static_cast<int>(map.promotion), fill = static_cast<int>(map.fill);
  auto* const address = reinterpret_cast<void*>(map.address);
  const std::uint64_t* const strides = map.strides.empty() ? none : map.strides.data();
  const int code =
      map.im2col
          ? driver.images(room, driver_type(map), rank, address, map.extents.data(), strides,
                          map.im2col->lower.data(), map.im2col->upper.data(), map.im2col->channels,
                          map.im2col->pixels, steps.data(), 0, pattern, promotion, fill)
          : driver.tiles(room, driver_type(map), rank, address, map.extents.data(), strides,
                         map.box.data(), steps.data(), 0, pattern, promotion, fill);
  std::copy_n(room, 128, out.bytes.begin());
  return code;
}

// ---- Maps: one argument changed at a time, then many at once, then invalid ones.

TensorMap plain(std::size_t rank = 5) {
  TensorMap map{.type = Type::u16, .address = 0x700000000000};
  std::uint64_t stride = 1 << 10;
  for (std::size_t i = 0; i < rank; ++i) {
    map.extents.push_back(64);
    map.box.push_back(8);
    map.element_strides.push_back(1);
    if (i > 0) map.strides.push_back(stride);
    stride *= 64;
  }
  return map;
}

std::vector<TensorMap> maps() {
  std::vector<TensorMap> out;
  const auto add = [&](TensorMap map, auto&& change) {
    change(map);
    out.push_back(std::move(map));
  };
  for (std::size_t rank = 1; rank <= 5; ++rank) out.push_back(plain(rank));
  for (const auto& row : driver_types)
    add(plain(2), [&](TensorMap& map) {
      map.type = row.type;
      map.flush_subnormals = row.flush;
      map.box[0] = 16;
    });
  for (int i = 1; i < 4; ++i) {
    add(plain(2), [&](TensorMap& map) { map.swizzle = static_cast<Swizzle>(i); });
    add(plain(2), [&](TensorMap& map) { map.promotion = static_cast<TensorMap::Promotion>(i); });
  }
  add(plain(2), [](TensorMap& map) { map.type = Type::f16, map.fill = TensorMap::Fill::nan; });
  for (int bit = 4; bit < 57; bit += bit < 16 ? 1 : 5)
    add(plain(1), [&](TensorMap& map) { map.address = std::uint64_t{1} << bit; });
  for (std::size_t i = 0; i < 5; ++i) {
    for (const std::uint64_t extent : {1ull, 2ull, 0x1234567ull, 0xFFFFFFFFull, 0x100000000ull})
      add(plain(), [&](TensorMap& map) { map.extents[i] = extent; });
    for (const std::uint32_t box : {16u, 24u, 104u, 128u, 256u})
      add(plain(), [&](TensorMap& map) { map.box[i] = box; });
    for (const std::uint32_t step : {2u, 3u, 7u, 8u})
      add(plain(), [&](TensorMap& map) { map.element_strides[i] = step; });
    for (const std::uint64_t stride :
         {std::uint64_t{16}, std::uint64_t{32}, std::uint64_t{0x123456780}, std::uint64_t{0},
          (std::uint64_t{1} << 36) - 16, (std::uint64_t{1} << 40) - 16})
      if (i > 0) add(plain(), [&](TensorMap& map) { map.strides[i - 1] = stride; });
  }
  std::mt19937 random(20261121);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int i = 0; i < 80; ++i) {
    TensorMap map = plain(1 + below(5));
    const auto& type = driver_types[below(std::size(driver_types))];
    map.type = type.type;
    map.flush_subnormals = type.flush;
    map.address = (std::uint64_t{random()} << 16 | random() % 4096) * 16;
    for (std::size_t d = 0; d < map.rank(); ++d) {
      map.extents[d] = 1 + below(d < 2 ? 1u << 31 : 1u << 12);
      map.box[d] = 1 + static_cast<std::uint32_t>(below(16));
      map.element_strides[d] = 1 + static_cast<std::uint32_t>(below(8));
      if (d > 0) map.strides[d - 1] = (1 + below(std::uint64_t{1} << 31)) * 16;
    }
    const std::uint32_t bytes = static_cast<std::uint32_t>(bits(map.type)) / 8;
    map.swizzle = static_cast<Swizzle>(below(4));
    const std::uint32_t units = map.swizzle == Swizzle::none ? 8 : span_bytes(map.swizzle) / 16;
    map.box[0] = static_cast<std::uint32_t>(1 + below(units)) * 16 / bytes;
    map.promotion = static_cast<TensorMap::Promotion>(below(4));
    if (info(map.type).floating) map.fill = static_cast<TensorMap::Fill>(below(2));
    out.push_back(std::move(map));
  }
  // Arguments that the driver may reject.
  add(plain(2), [](TensorMap& map) { map.address += 8; });
  add(plain(2), [](TensorMap& map) { map.address = 0; });
  add(plain(2), [](TensorMap& map) { map.extents[1] = 0; });
  add(plain(2), [](TensorMap& map) { map.extents[0] = 0x100000001; });
  add(plain(2), [](TensorMap& map) { map.strides[0] = 1032; });
  add(plain(2), [](TensorMap& map) { map.strides[0] = std::uint64_t{1} << 40; });
  add(plain(2), [](TensorMap& map) { map.box[1] = 257; });
  add(plain(2), [](TensorMap& map) { map.box[1] = 0; });
  add(plain(2), [](TensorMap& map) { map.box[0] = 12; });
  add(plain(2), [](TensorMap& map) { map.box[0] = 128, map.swizzle = Swizzle::bytes_128; });
  add(plain(2), [](TensorMap& map) { map.box[0] = 24, map.swizzle = Swizzle::bytes_32; });
  add(plain(2), [](TensorMap& map) { map.element_strides[1] = 9; });
  add(plain(2), [](TensorMap& map) { map.element_strides[1] = 0; });
  add(plain(2), [](TensorMap& map) { map.element_strides[0] = 9; });
  add(plain(2), [](TensorMap& map) { map.fill = TensorMap::Fill::nan; });
  for (const std::uint32_t box : {100u, 112u, 113u, 120u, 127u, 128u, 129u, 136u, 144u, 192u, 256u})
    add(plain(3), [&](TensorMap& map) { map.box = {32, 32, box}; });
  add(plain(3), [](TensorMap& map) { map.box = {256, 256, 256}; });
  add(plain(3), [](TensorMap& map) { map.strides = {4096, 64}; });
  return out;
}

// One argument of an image at a time, then many.
std::vector<TensorMap> image_maps() {
  std::vector<TensorMap> out;
  const auto plain_image = [](std::size_t rank) {
    TensorMap map = plain(rank);
    map.box.clear();
    map.im2col = {.lower = std::vector<std::int32_t>(rank - 2, 0),
                  .upper = std::vector<std::int32_t>(rank - 2, 0),
                  .channels = 8,
                  .pixels = 16};
    return map;
  };
  const auto add = [&](TensorMap map, auto&& change) {
    change(map);
    out.push_back(std::move(map));
  };
  for (std::size_t rank = 3; rank <= 5; ++rank) {
    out.push_back(plain_image(rank));
    const std::int32_t most = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
    for (std::size_t i = 0; i + 2 < rank; ++i)
      for (const std::int32_t corner : {-1, 1, 2, 5, -most, most - 1, most, -most - 1}) {
        add(plain_image(rank), [&](TensorMap& map) { map.im2col->lower[i] = corner; });
        add(plain_image(rank), [&](TensorMap& map) { map.im2col->upper[i] = corner; });
      }
    for (const std::uint32_t channels : {16u, 64u, 128u, 256u, 264u})
      add(plain_image(rank), [&](TensorMap& map) { map.im2col->channels = channels; });
    for (const std::uint32_t pixels : {1u, 2u, 3u, 255u, 256u, 257u, 512u, 1024u, 1025u})
      add(plain_image(rank), [&](TensorMap& map) { map.im2col->pixels = pixels; });
    for (std::size_t i = 0; i < rank; ++i)
      for (const std::uint32_t step : {2u, 3u, 8u, 9u})
        add(plain_image(rank), [&](TensorMap& map) { map.element_strides[i] = step; });
  }
  std::mt19937 random(20261122);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int n = 0; n < 40; ++n) {
    TensorMap map = plain_image(3 + below(3));
    for (std::size_t i = 0; i < map.rank(); ++i) {
      map.extents[i] = 20 + below(1000);
      map.element_strides[i] = 1 + static_cast<std::uint32_t>(below(4));
    }
    for (std::size_t i = 0; i + 2 < map.rank(); ++i) {
      map.im2col->lower[i] = static_cast<std::int32_t>(below(8)) - 4;
      map.im2col->upper[i] = static_cast<std::int32_t>(below(8)) - 4;
    }
    map.im2col->channels = 8 * (1 + static_cast<std::uint32_t>(below(2)));
    map.im2col->pixels = 1 + static_cast<std::uint32_t>(below(1024));
    map.swizzle = static_cast<Swizzle>(below(4));
    map.promotion = static_cast<TensorMap::Promotion>(below(4));
    out.push_back(std::move(map));
  }
  return out;
}

void print_map(const Driver& driver, const TensorMap& map, std::optional<int> swizzle = {}) {
  TensorMapBytes bytes;
  const int code = encode_by_driver(driver, map, bytes, swizzle);
  nlohmann::json line{{"map", map_json(map)}, {"code", code}};
  if (swizzle) line["swizzle"] = *swizzle;
  if (code == 0) line["bytes"] = hexadecimal(bytes.bytes);
  std::printf("%s\n", line.dump().c_str());
}

void record_maps(const Driver& driver) {
  for (const TensorMap& map : maps()) print_map(driver, map);
}

// Swizzles 4 to 6 keep 32 or 64 bytes together.
void record_image_maps(const Driver& driver) {
  for (const TensorMap& map : image_maps()) print_map(driver, map);
  for (int swizzle = 4; swizzle <= 6; ++swizzle) print_map(driver, plain(2), swizzle);
}

// ---- Copies.

// Copies from number `next` on, until one fails: the failure ends the GPU's context.
int record_some(const std::vector<TensorCopy>& all, std::atomic<std::size_t>& next) {
  const Driver driver = find_encode();
  auto device = Device::open("cuda");
  if (!driver.tiles || !driver.images || !device) return std::fputs("no GPU\n", stderr), 2;
  for (; next < all.size(); ++next) {
    const TensorCopy& copy = all[next];
    nlohmann::json line{{"copy", copy_json(copy)}};
    const auto words = run_copy(*device, copy, [&](const TensorMap& map) -> Result<TensorMapBytes> {
      TensorMapBytes bytes;
      const int code = encode_by_driver(driver, map, bytes);
      if (code == 0) return bytes;
      return {"driver"_rule, fmt::format("cuTensorMapEncode: {}", code)};
    });
    if (words) line["words"] = hexadecimal(std::as_bytes(std::span(*words)));
    else line["failure"] = words.diags().text();
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
    if (words) continue;
    ++next;
    return 1;
  }
  return 0;
}

// After each failure a new process continues.
int record_copies(const std::vector<TensorCopy>& all) {
  void* room = mmap(nullptr, sizeof(std::atomic<std::size_t>), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return 2;
  auto& next = *new (room) std::atomic<std::size_t>(0);
  int failed = 0;
  while (next < all.size()) {
    const std::size_t before = next;
    const pid_t child = fork();
    if (child < 0) return 2;
    if (child == 0) _exit(record_some(all, next));
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 2) return 2;
    failed += WEXITSTATUS(status);
    if (next == before) return 2;
  }
  std::fprintf(stderr, "%d of %zu copies failed\n", failed, all.size());
  return 0;
}

}  // namespace
}  // namespace tartan::test

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  // First, because processes must fork before CUDA is used.
  using namespace tartan::test;
  if (what.empty() || what == "copies")
    if (const int code = record_copies(copies()); code != 0) return code;
  if (what.empty() || what == "images")
    if (const int code = record_copies(image_copies()); code != 0) return code;
  if (what.empty() || what == "edges")
    if (const int code = record_copies(edge_copies()); code != 0) return code;
  if (what == "copies" || what == "edges") return 0;
  const Driver driver = find_encode();
  if (!driver.tiles || !driver.images) {
    std::fputs("no CUDA driver that has cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col\n",
               stderr);
    return 1;
  }
  if (what.empty() || what == "maps") record_maps(driver);
  if (what.empty() || what == "images") record_image_maps(driver);
}
