// SPDX-License-Identifier: Apache-2.0
// Writes what the CUDA driver and a GPU of sm_90 or later make of tensor maps, one JSON object a
// line on standard output:
//
//   {"map": {...}, "code": 0, "bytes": "..."}       cuTensorMapEncodeTiled: its result, 128 bytes
//   {"copy": {...}, "words": "..."}                 what a copy through the map left behind
//
// record_tensor_maps [maps|copies]; without a word, both. It links the library for the copies; the
// maps are encoded by the driver alone.
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

#include "tests/tensor_copies.h"

namespace tartan::test {
namespace {

using Swizzle = TensorMap::Swizzle;

// cuTensorMapEncodeTiled(map, type, rank, address, extents, strides, box, element strides,
// interleave, swizzle, promotion, fill)
using Encode = int (*)(void*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*,
                       const std::uint32_t*, const std::uint32_t*, int, int, int, int);

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

Encode find_encode() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  const auto initialise = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
  const auto retain =
      reinterpret_cast<int (*)(void**, int)>(dlsym(library, "cuDevicePrimaryCtxRetain"));
  const auto select = reinterpret_cast<int (*)(void*)>(dlsym(library, "cuCtxSetCurrent"));
  // The driver encodes maps in a context only.
  void* context = nullptr;
  if (!initialise || !retain || !select || initialise(0) != 0 || retain(&context, 0) != 0 ||
      select(context) != 0)
    return nullptr;
  return reinterpret_cast<Encode>(dlsym(library, "cuTensorMapEncodeTiled"));
}

int encode_by_driver(Encode encode, const TensorMap& map, TensorMapBytes& out) {
  alignas(64) std::byte room[128] = {};
  std::vector<std::uint32_t> ones(map.rank(), 1);
  const std::uint64_t none[1] = {};  // the driver takes no null pointer
  const auto& steps = map.element_strides.empty() ? ones : map.element_strides;
  const int code = encode(room, driver_type(map), static_cast<std::uint32_t>(map.rank()),
                          reinterpret_cast<void*>(map.address), map.extents.data(),
                          map.strides.empty() ? none : map.strides.data(), map.box.data(),
                          steps.data(), 0, static_cast<int>(map.swizzle),
                          static_cast<int>(map.promotion), static_cast<int>(map.fill));
  std::copy_n(room, 128, out.bytes.begin());
  return code;
}

// ---- Maps: one argument changed at a time, then many at once, then what is not taken.

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
  // What the driver should refuse, or not.
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

void record_maps(Encode encode) {
  for (const TensorMap& map : maps()) {
    TensorMapBytes bytes;
    const int code = encode_by_driver(encode, map, bytes);
    nlohmann::json line{{"map", map_json(map)}, {"code", code}};
    if (code == 0) line["bytes"] = hexadecimal(bytes.bytes);
    std::printf("%s\n", line.dump().c_str());
  }
}

// ---- Copies.

// A tensor of those extents, dense up to `padding` bytes behind its rows.
TensorMap dense(Type type, std::vector<std::uint64_t> extents, std::vector<std::uint32_t> box,
                Swizzle swizzle = Swizzle::none) {
  TensorMap map{.type = type, .extents = extents, .box = box, .swizzle = swizzle};
  std::uint64_t stride = (extents[0] * static_cast<unsigned>(bits(type)) / 8 + 15) / 16 * 16;
  for (std::size_t i = 1; i < extents.size(); ++i) {
    map.strides.push_back(stride);
    stride *= extents[i];
  }
  return map;
}

std::vector<TensorCopy> copies() {
  std::vector<TensorCopy> out;
  const auto add = [&](std::string operation, TensorMap map, std::vector<std::int32_t> at,
                       std::uint32_t mask = 0xFFFFFFFF, std::uint32_t shift = 0) {
    std::uint64_t memory = 64;
    for (std::size_t i = 0; i < map.rank(); ++i)
      memory +=
          map.extents[i] * (i ? map.strides[i - 1] : static_cast<unsigned>(bits(map.type)) / 8);
    std::uint64_t rows = 1;
    for (std::size_t i = 1; i < map.rank(); ++i) rows *= map.copied(i);
    const std::uint32_t span = std::max<std::uint32_t>(
        span_bytes(map.swizzle), map.box[0] * static_cast<unsigned>(bits(map.type)) / 8);
    out.push_back(
        {.operation = std::move(operation),
         .map = map,
         .at = std::move(at),
         .shift = shift,
         .memory_bytes = static_cast<std::uint32_t>((memory + 15) / 16 * 16),
         .shared_bytes = static_cast<std::uint32_t>((shift + rows * span + 127) / 64 * 64),
         .mask = mask});
  };
  // Every swizzle, whole and part rows, at addresses that are no multiple of its period.
  for (int i = 0; i < 4; ++i) {
    const auto swizzle = static_cast<Swizzle>(i);
    const std::uint32_t most = i == 0 ? 64 : span_bytes(swizzle) / 2;
    for (const std::uint32_t shift : {0u, 128u, 384u})
      add("load", dense(Type::f16, {64, 16}, {most, 12}, swizzle), {0, 2}, ~0u, shift);
    if (most > 16) add("load", dense(Type::f16, {64, 16}, {most - 8, 9}, swizzle), {8, 1});
    add("load", dense(Type::u8, {48, 16}, {16, 9}, swizzle), {16, 3});
    add("store", dense(Type::f16, {64, 16}, {most, 12}, swizzle), {0, 2}, ~0u, 128);
    if (most > 16) add("store", dense(Type::f16, {64, 16}, {most - 8, 9}, swizzle), {8, 1});
  }
  // One thing at a time: a row that is no multiple of 16 bytes, a start that is none, negative
  // ones.
  add("load", dense(Type::f16, {20, 9}, {16, 4}), {0, 0});
  add("load", dense(Type::f16, {24, 9}, {16, 4}), {5, 0});
  add("load", dense(Type::f16, {24, 9}, {16, 4}), {-8, 0});
  add("load", dense(Type::f16, {24, 9}, {16, 4}), {-5, 0});
  add("load", dense(Type::f16, {24, 9}, {16, 4}), {0, -2});
  add("load", dense(Type::f16, {24, 9}, {16, 4}), {16, 7});
  // Outside: both sides of every dimension, and nothing inside.
  for (const std::int32_t x : {-5, 13, 40, -100})
    for (const std::int32_t y : {-2, 3, 7}) {
      add("load", dense(Type::f16, {20, 9}, {16, 4}), {x, y});
      add("store", dense(Type::f16, {20, 9}, {16, 4}), {x, y});
    }
  // Ranks, types, element strides, fills.
  add("load", dense(Type::u32, {100}, {32}), {80});
  add("load", dense(Type::u32, {12, 5, 4}, {4, 3, 2}), {8, 3, -1});
  add("load", dense(Type::u32, {12, 5, 4, 3}, {4, 3, 2, 2}), {2, 3, 1, 2});
  add("load", dense(Type::u32, {12, 5, 4, 3, 3}, {4, 3, 2, 2, 2}), {2, -1, 1, 2, 2});
  add("store", dense(Type::u32, {12, 5, 4, 3, 3}, {4, 3, 2, 2, 2}), {2, -1, 1, 2, 2});
  for (const Type type : {Type::u8, Type::u16, Type::s32, Type::u64, Type::s64, Type::f32,
                          Type::f64, Type::bf16, Type::tf32})
    add("load", dense(type, {48, 6}, {16, 3}), {40, 1});
  for (const Type type : {Type::f16, Type::bf16, Type::f32, Type::f64, Type::tf32}) {
    TensorMap map = dense(type, {48, 6}, {16, 3});
    map.fill = TensorMap::Fill::nan;
    add("load", map, {40, 4});
  }
  for (const Type type : {Type::f32, Type::tf32}) {
    TensorMap map = dense(type, {48, 6}, {16, 3});
    map.flush_subnormals = true;
    add("load", map, {0, 0}, 0x80FFFFFF);
    add("store", map, {0, 0}, 0x80FFFFFF);
    add("load", map, {0, 0});
  }
  add("store", dense(Type::tf32, {48, 6}, {16, 3}), {0, 0});
  for (const std::uint32_t step : {2u, 3u}) {
    TensorMap map = dense(Type::u16, {48, 20}, {16, 7});
    map.element_strides = {1, step};
    add("load", map, {4, 1});
    add("load", map, {4, 15});
    add("load", map, {4, -3});
    add("store", map, {4, 1});
    map.element_strides = {step, 1};
    add("load", map, {4, 1});
  }
  // Reductions.
  for (const char* operation : {"add", "min", "max", "inc", "dec", "and", "or", "xor"})
    add(operation, dense(Type::u32, {12, 6}, {8, 4}), {2, 4});
  for (const char* operation : {"add", "min", "max"}) {
    add(operation, dense(Type::s32, {12, 6}, {8, 4}), {2, 1});
    add(operation, dense(Type::f16, {24, 6}, {8, 4}), {2, 1}, 0xBFFFBFFF);
    add(operation, dense(Type::bf16, {24, 6}, {8, 4}), {2, 1}, 0xBFFFBFFF);
    add(operation, dense(Type::u64, {12, 6}, {8, 4}), {2, 1});
    add(operation, dense(Type::s64, {12, 6}, {8, 4}), {2, 1});
  }
  add("add", dense(Type::f32, {12, 6}, {8, 4}), {2, 1}, 0xBFFFFFFF);
  add("and", dense(Type::u64, {12, 6}, {8, 4}), {2, 1});
  // Last, because a GPU that does not take it takes nothing more.
  add("add", dense(Type::f64, {12, 6}, {8, 4}), {2, 1}, 0xBFFFFFFF);
  return out;
}

// Copies from number `next` on, until one fails: the GPU's context goes with it.
int record_some(const std::vector<TensorCopy>& all, std::atomic<std::size_t>& next) {
  const Encode encode = find_encode();
  auto device = Device::open("cuda");
  if (!encode || !device) return std::fputs("no GPU\n", stderr), 2;
  for (; next < all.size(); ++next) {
    const TensorCopy& copy = all[next];
    nlohmann::json line{{"copy", copy_json(copy)}};
    const auto words = run_copy(*device, copy, [&](const TensorMap& map) -> Result<TensorMapBytes> {
      TensorMapBytes bytes;
      const int code = encode_by_driver(encode, map, bytes);
      if (code == 0) return bytes;
      return {"driver"_rule, fmt::format("cuTensorMapEncodeTiled: {}", code)};
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

// A process of its own for what follows each failure.
int record_copies() {
  const std::vector<TensorCopy> all = copies();
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
  // First, because processes are split off before CUDA is used.
  if (what != "maps")
    if (const int code = tartan::test::record_copies(); code != 0) return code;
  if (what == "copies") return 0;
  const auto encode = tartan::test::find_encode();
  if (!encode) {
    std::fputs("no CUDA driver that has cuTensorMapEncodeTiled\n", stderr);
    return 1;
  }
  tartan::test::record_maps(encode);
}
