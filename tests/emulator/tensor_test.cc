// SPDX-License-Identifier: Apache-2.0
// Tensor maps and TMA copies, against plain loops over elements.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>

#include "tests/emulator/tensor_copies.h"

namespace tartan::test {
namespace {

using Swizzle = TensorMap::Swizzle;

std::uint64_t element_bytes(const TensorMap& map) {
  return static_cast<unsigned>(bits(map.type)) / 8;
}

// Contiguous rows, each as long as the swizzle's span if there is one.
TensorMap dense(Type type, std::vector<std::uint64_t> extents, std::vector<std::uint32_t> box,
                Swizzle swizzle = Swizzle::none, std::uint64_t padding = 0) {
  TensorMap map{.type = type, .extents = extents, .box = box, .swizzle = swizzle};
  std::uint64_t stride = (extents[0] * element_bytes(map) + 15) / 16 * 16 + padding;
  for (std::size_t i = 1; i < extents.size(); ++i) {
    map.strides.push_back(stride);
    stride *= extents[i];
  }
  return map;
}

TensorCopy copy_through(std::string operation, const TensorMap& map, std::vector<std::int32_t> at,
                        std::uint32_t shift = 0) {
  TensorCopy copy{.operation = std::move(operation), .map = map, .at = std::move(at)};
  std::uint64_t bytes = map.extents[0] * element_bytes(map), rows = 1;
  for (std::size_t i = 1; i < map.rank(); ++i) {
    bytes = std::max(bytes, map.extents[i] * map.strides[i - 1]);
    rows *= map.copied(i);
  }
  const std::uint64_t pitch =
      std::max<std::uint64_t>(map.box[0] * element_bytes(map), span_bytes(map.swizzle));
  copy.shift = shift;
  copy.memory_bytes = static_cast<std::uint32_t>((bytes + 15) / 16 * 16);
  copy.shared_bytes = static_cast<std::uint32_t>((shift + rows * pitch + 127) / 64 * 64);
  return copy;
}

// Calls body(place in memory or nothing, place in shared memory) for each element of the box.
template <typename Body>
void each_element(const TensorCopy& copy, Body&& body) {
  const TensorMap& map = copy.map;
  std::vector<std::uint32_t> i(map.rank(), 0);
  for (;;) {
    bool inside = true;
    std::uint64_t memory = map.address, row = 0;
    for (std::size_t d = map.rank(); d-- > 0;) {
      const std::uint32_t step = d == 0 || map.element_strides.empty() ? 1 : map.element_strides[d];
      const std::int64_t at = copy.at[d] + std::int64_t{i[d]} * step;
      inside &= at >= 0 && at < static_cast<std::int64_t>(map.extents[d]);
      memory += static_cast<std::uint64_t>(at) * (d ? map.strides[d - 1] : element_bytes(map));
      if (d > 0) row = row * map.copied(d) + i[d];
    }
    const std::uint64_t span = span_bytes(map.swizzle);
    const std::uint64_t pitch = span ? span : map.box[0] * element_bytes(map);
    std::uint64_t shared = copy.shift + row * pitch + i[0] * element_bytes(map);
    if (span) shared ^= ((shared >> 7) % (span / 16)) << 4;
    body(inside ? std::optional(memory) : std::nullopt, shared);
    std::size_t d = 0;
    while (d < map.rank() && ++i[d] == map.copied(d)) i[d++] = 0;
    if (d == map.rank()) return;
  }
}

std::vector<std::byte> bytes_of(const std::vector<std::uint32_t>& words) {
  std::vector<std::byte> out(4 * words.size());
  std::memcpy(out.data(), words.data(), out.size());
  return out;
}

std::vector<std::byte> expected(const TensorCopy& copy) {
  auto memory = bytes_of(pattern_words(copy.memory_bytes, copy.mask));
  const std::uint64_t size = element_bytes(copy.map);
  if (copy.operation == "load") {
    std::vector<std::byte> shared(copy.shared_bytes, std::byte{0xEE});
    each_element(copy, [&](std::optional<std::uint64_t> from, std::uint64_t to) {
      if (from) std::memcpy(&shared[to], &memory[*from], size);
      else std::memset(&shared[to], 0, size);
      if (from && copy.map.type == Type::tf32) {  // rounded to nearest
        std::uint32_t value;
        std::memcpy(&value, &shared[to], 4);
        value = (value + 0x1000) / 0x2000 * 0x2000;
        std::memcpy(&shared[to], &value, 4);
      }
    });
    return shared;
  }
  const auto shared = bytes_of(pattern_words(copy.shared_bytes, copy.mask));
  each_element(copy, [&](std::optional<std::uint64_t> to, std::uint64_t from) {
    if (to) std::memcpy(&memory[*to], &shared[from], size);
  });
  return memory;
}

Result<std::vector<std::uint32_t>> run(const TensorCopy& copy) {
  auto device = Device::open("emulator");
  if (!device) return device.diags();
  return run_copy(*device, copy, [](const TensorMap& map) { return map.encode(); });
}

// What it leaves behind, or a finding: only loads may begin before an edge.
void expect_copied(const TensorCopy& copy) {
  const auto words = run(copy);
  if (!fills_shared(copy) && std::ranges::any_of(copy.at, [](int at) { return at < 0; })) {
    EXPECT_FALSE(static_cast<bool>(words)) << copy_json(copy);
    return;
  }
  ASSERT_TRUE(static_cast<bool>(words)) << copy_json(copy) << words.diags().text();
  const auto wanted = expected(copy), got = bytes_of(*words);
  ASSERT_EQ(wanted.size(), got.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_EQ(wanted[i], got[i]) << copy_json(copy) << " at byte " << i;
}

constexpr Swizzle swizzles[] = {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64,
                                Swizzle::bytes_128};

TEST(EmulatorTensor, EverySwizzleAtEveryAlignment) {
  for (const Swizzle swizzle : swizzles) {
    const std::uint32_t most = swizzle == Swizzle::none ? 64 : span_bytes(swizzle) / 2;
    for (std::uint32_t shift = 0; shift < 1024; shift += 128)
      for (const char* operation : {"load", "store"})
        expect_copied(
            copy_through(operation, dense(Type::f16, {64, 16}, {most, 9}, swizzle), {0, 2}, shift));
    expect_copied(copy_through("load", dense(Type::u8, {64, 16}, {16, 5}, swizzle), {16, 2}));
    expect_copied(copy_through("store", dense(Type::u8, {64, 16}, {16, 5}, swizzle), {16, 2}));
  }
}

TEST(EmulatorTensor, EveryTypeAndRank) {
  for (const Type type : {Type::u8, Type::u16, Type::u32, Type::s32, Type::u64, Type::s64,
                          Type::f16, Type::f32, Type::f64, Type::bf16, Type::tf32})
    for (std::size_t rank = 1; rank <= 5; ++rank) {
      const std::vector<std::uint64_t> extents{48, 5, 4, 3, 3};
      const std::vector<std::uint32_t> box{16, 3, 2, 2, 2};
      const std::vector<std::int32_t> at{32, -1, 3, 0, 2};
      const auto first = [&](const auto& all) {
        return std::remove_cvref_t<decltype(all)>(all.begin(),
                                                  all.begin() + static_cast<std::ptrdiff_t>(rank));
      };
      const TensorMap map = dense(type, first(extents), first(box), Swizzle::none, 32);
      for (const char* operation : {"load", "store"}) {
        TensorCopy copy = copy_through(operation, map, first(at));
        if (type == Type::tf32) copy.mask = 0xBFFFFFFF;  // numbers all of them
        expect_copied(copy);
      }
    }
}

TEST(EmulatorTensor, OutOfBoundsLoadsZeroAndStoresNothing) {
  for (const std::int32_t x : {-104, -16, -8, 0, 8, 16, 24, 1000})
    for (const std::int32_t y : {-4, -3, 0, 6, 8, 9})
      for (const char* operation : {"load", "store"})
        expect_copied(copy_through(operation, dense(Type::f16, {20, 9}, {16, 4}), {x, y}));
}

TEST(EmulatorTensor, ElementStridesSkip) {
  for (const std::uint32_t step : {2u, 3u, 8u}) {
    TensorMap map = dense(Type::u16, {48, 20, 6}, {16, 7, 4});
    map.element_strides = {1, step, 2};
    EXPECT_EQ(map.copied(1), (7 + step - 1) / step);
    for (const std::int32_t y : {-3, 1, 15}) {
      expect_copied(copy_through("load", map, {8, y, 1}));
      expect_copied(copy_through("store", map, {8, y, 1}));
    }
  }
}

TEST(EmulatorTensor, OutOfBoundsMayLoadNan) {
  TensorMap map = dense(Type::f32, {8, 3}, {8, 4});
  map.fill = TensorMap::Fill::nan;
  const TensorCopy copy = copy_through("load", map, {4, 1});
  const auto words = run(copy);
  ASSERT_TRUE(static_cast<bool>(words)) << words.diags().text();
  for (std::uint32_t row = 0; row < 4; ++row)
    for (std::uint32_t i = 0; i < 8; ++i) {
      float value;
      std::memcpy(&value, &(*words)[row * 8 + i], 4);
      if (row >= 2 || i >= 4) EXPECT_NE(value, value);
      else EXPECT_EQ((*words)[row * 8 + i], pattern((row + 1) * 8 + i + 4, ~0u));
    }
}

// ---- Reductions.

template <typename T, typename F>
void expect_reduced(const std::string& name, Type type, F&& combine, std::uint32_t mask = ~0u,
                    bool flush = false) {
  TensorCopy copy = copy_through(name, dense(type, {16, 6}, {8, 4}), {8, 1});
  copy.map.flush_subnormals = flush;
  copy.mask = mask;
  auto memory = bytes_of(pattern_words(copy.memory_bytes, mask));
  const auto shared = bytes_of(pattern_words(copy.shared_bytes, mask));
  each_element(copy, [&](std::optional<std::uint64_t> to, std::uint64_t from) {
    if (!to) return;
    T a, b;
    std::memcpy(&a, &memory[*to], sizeof a);
    std::memcpy(&b, &shared[from], sizeof b);
    a = combine(a, b);
    std::memcpy(&memory[*to], &a, sizeof a);
  });
  const auto words = run(copy);
  ASSERT_TRUE(static_cast<bool>(words)) << words.diags().text();
  EXPECT_EQ(bytes_of(*words), memory) << name << " " << tartan::name(type);
}

TEST(EmulatorTensor, Reduces) {
  using u32 = std::uint32_t;
  using s64 = std::int64_t;
  expect_reduced<u32>("add", Type::u32, [](u32 a, u32 b) { return a + b; });
  expect_reduced<u32>("min", Type::u32, [](u32 a, u32 b) { return std::min(a, b); });
  expect_reduced<std::int32_t>("max", Type::s32, [](auto a, auto b) { return std::max(a, b); });
  expect_reduced<u32>("inc", Type::u32, [](u32 a, u32 b) { return a >= b ? 0 : a + 1; });
  expect_reduced<u32>("dec", Type::u32, [](u32 a, u32 b) { return a == 0 || a > b ? b : a - 1; });
  expect_reduced<u32>("and", Type::u32, [](u32 a, u32 b) { return a & b; });
  expect_reduced<s64>("or", Type::s64, [](s64 a, s64 b) { return a | b; });
  expect_reduced<u32>("xor", Type::s32, [](u32 a, u32 b) { return a ^ b; });
  expect_reduced<s64>("min", Type::s64, [](s64 a, s64 b) { return std::min(a, b); });
  expect_reduced<float>(
      "add", Type::f32, [](float a, float b) { return a + b; }, 0x3FFFFFFF);
  // Subnormal numbers, and normal ones with subnormal differences: zeros if the map flushes them.
  const auto flushed = [](float x) {
    return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
  };
  expect_reduced<float>(
      "add", Type::f32, [](float a, float b) { return a + b; }, 0x80FFFFFF);
  expect_reduced<float>(
      "add", Type::f32, [&](float a, float b) { return flushed(flushed(a) + flushed(b)); },
      0x80FFFFFF, true);
  // 0x4000 is 2 in bf16 and in f16: sums of 0, 2 and 4.
  using u16 = std::uint16_t;
  const auto sum_of = [](u16 four) {
    return [=](u16 a, u16 b) -> u16 { return a && b ? four : a ? a : b; };
  };
  expect_reduced<u16>("add", Type::bf16, sum_of(0x4080), 0x40004000);
  expect_reduced<u16>("add", Type::f16, sum_of(0x4400), 0x40004000);
}

TEST(EmulatorTensor, RejectsUnsupportedReduction) {
  const auto words = run(copy_through("min", dense(Type::f32, {12, 6}, {8, 4}), {4, 1}));
  ASSERT_FALSE(static_cast<bool>(words));
  EXPECT_EQ(words.diags()[0].id, "tensor-map");
}

// ---- Invalid copies.

std::string failure(const TensorCopy& copy) {
  const auto words = run(copy);
  return words ? "" : std::string(words.diags()[0].id) + ": " + words.diags()[0].message;
}

TEST(EmulatorTensor, BadCopiesAreFindings) {
  TensorCopy copy = copy_through("load", dense(Type::f16, {64, 16}, {64, 8}), {0, 0});
  EXPECT_EQ(failure(copy), "");
  TensorCopy wrong = copy;
  wrong.shift = 64;
  EXPECT_EQ(failure(wrong).substr(0, 17), "misaligned-access");
  wrong = copy;
  wrong.shared_bytes = 512;
  EXPECT_EQ(failure(wrong).substr(0, 12), "memory-fault");
  wrong = copy;
  wrong.memory_bytes = 512;  // the tensor has 2048
  EXPECT_EQ(failure(wrong).substr(0, 12), "memory-fault");
  wrong = copy;
  wrong.at = {4, 0};
  EXPECT_NE(failure(wrong).find("misaligned box: its innermost coordinate"), std::string::npos);
  wrong = copy;
  wrong.at = {0, 0, 0};
  EXPECT_NE(failure(wrong).find("copies 3 dimensions, the tensor map has 2"), std::string::npos);
}

// A kernel whose map is not a parameter, or that has no map at all.
std::string run_with_map(const std::string& find_map, const std::string& declarations = {}) {
  TensorCopy copy = copy_through("load", dense(Type::u32, {32}, {32}), {0});
  std::string text = copy_kernel(copy);
  const std::string cvta = "cvta.param.u64 m, rd1;\n";
  text.replace(text.find(cvta), cvta.size(), find_map);
  text.insert(text.find(".visible"), declarations);
  auto device = Device::open("emulator");
  auto module = device->load(text);
  if (!module) return module.diags().text();
  auto kernel = module->kernel("k");
  if (!kernel) return kernel.diags().text();
  auto memory = device->allocate(256), out = device->allocate(256);
  copy.map.address = memory->address();
  if (!memory->write(pattern_words(256, ~0u))) return "write";
  const Arguments arguments =
      Arguments().add(*copy.map.encode()).add(0).add(128u).add(~0u).add(32u).add(0u).add(*out);
  if (auto status = kernel->launch({.grid = {1}, .block = {32}, .dynamic_shared = 256}, arguments);
      !status)
    return status.diags().text();
  if (auto status = device->synchronize(); !status) return status.diags().text();
  return (*out->read_all<std::uint32_t>())[3] == pattern(3, ~0u) ? "" : "other words";
}

std::string copied_to(const std::string& address) {
  std::string text = address;
  for (int i = 0; i < 128; i += 8)
    text += "ld.param.u64 rd3, [map+" + std::to_string(i) + "];\nst.u64 [m+" + std::to_string(i) +
            "], rd3;\n";
  return text + "fence.proxy.tensormap::generic.acquire.gpu [m], 128;\n";
}

TEST(EmulatorTensor, MapsInParametersAndGlobalMemory) {
  EXPECT_EQ(run_with_map("cvta.param.u64 m, rd1;\n"), "");
  EXPECT_EQ(run_with_map("cvta.param.u64 m, rd1;\nprefetch.tensormap [m];\n"), "");
  EXPECT_EQ(run_with_map(copied_to("mov.u64 rd2, place;\ncvta.global.u64 m, rd2;\n"),
                         ".global .align 64 .b8 place[128];\n"),
            "");
  EXPECT_NE(run_with_map(copied_to(".local .align 64 .b8 place[128];\nmov.u64 rd2, place;\n"
                                   "cvta.local.u64 m, rd2;\n"))
                .find("is in local memory"),
            std::string::npos);
  EXPECT_NE(run_with_map("mov.u64 rd2, place;\ncvta.global.u64 m, rd2;\n",
                         ".global .align 64 .b8 place[128];\n")
                .find("not a tiled tensor map"),
            std::string::npos);
}

// The assembler, if installed, accepts the kernels.
TEST(EmulatorTensor, KernelsAssemble) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no ptxas";
  for (const char* operation : {"load", "store", "add"}) {
    const std::string path = ::testing::TempDir() + "tartan_tensor_" + std::to_string(getpid());
    std::ofstream(path) << copy_kernel(
        copy_through(operation, dense(Type::u32, {48, 5, 4}, {16, 3, 2}), {0, 0, 0}));
    EXPECT_EQ(std::system(("ptxas -arch sm_90 -o /dev/null " + path).c_str()), 0) << operation;
    std::remove(path.c_str());
  }
}

// ---- Descriptions.

TEST(TensorMap, NamesEveryBadArgument) {
  const auto complaint = [](auto&& change) {
    TensorMap map = dense(Type::f16, {64, 64, 64}, {32, 8, 8}, Swizzle::bytes_64);
    EXPECT_TRUE(static_cast<bool>(map.check()));
    change(map);
    const Status status = map.check();
    return status ? std::string() : status.diags()[0].message;
  };
  const auto starts = [&](const std::string& text, auto&& change) {
    EXPECT_TRUE(complaint(change).starts_with(text)) << text << ": " << complaint(change);
  };
  starts("type: b16", [](TensorMap& map) { map.type = Type::b16; });
  starts("type: none", [](TensorMap& map) { map.type = Type::none; });
  starts("flush_subnormals", [](TensorMap& map) { map.flush_subnormals = true; });
  starts("fill", [](TensorMap& map) { map.type = u16, map.fill = TensorMap::Fill::nan; });
  starts("address: 0x1008", [](TensorMap& map) { map.address = 0x1008; });
  starts("extents[1]", [](TensorMap& map) { map.extents[1] = 0; });
  starts("extents[2]", [](TensorMap& map) { map.extents[2] = (std::uint64_t{1} << 32) + 1; });
  starts("strides[0]", [](TensorMap& map) { map.strides[0] = 136; });
  starts("strides[1]", [](TensorMap& map) { map.strides[1] = std::uint64_t{1} << 40; });
  starts("wrong number of strides: a tensor of 3", [](TensorMap& map) { map.strides.pop_back(); });
  starts("box: expected one number", [](TensorMap& map) { map.box.pop_back(); });
  starts("box[2]", [](TensorMap& map) { map.box[2] = 257; });
  starts("box[0]: 12 elements of f16 are 24", [](TensorMap& map) { map.box[0] = 12; });
  starts("box[0]: 40 elements of f16 are 80 bytes, the swizzle allows at most 64",
         [](TensorMap& map) { map.box[0] = 40; });
  starts("element_strides: expected one", [](TensorMap& map) { map.element_strides = {1}; });
  starts("element_strides[1]", [](TensorMap& map) { map.element_strides = {1, 9, 1}; });
  starts("wrong number of extents: a tensor map has 1 to 5, found 0",
         [](TensorMap& map) { map.extents.clear(); });
  starts("wrong number of extents: a tensor map has 1 to 5, found 6",
         [](TensorMap& map) { map.extents.resize(6); });
  EXPECT_EQ(complaint([](TensorMap& map) { map.extents[0] = std::uint64_t{1} << 32; }), "");

  TensorMap map = dense(Type::f16, {64, 64}, {12, 300});
  EXPECT_EQ(map.check().diags().size(), 2u) << "all of them, not the first";
}

TEST(TensorMap, BytesRoundTrip) {
  TensorMap map = dense(Type::f32, {100, 7, 12, 3, 9}, {4, 3, 7, 256, 1}, Swizzle::bytes_32, 48);
  map.address = 0x7F0012345670;
  map.element_strides = {1, 2, 8, 3, 1};
  map.promotion = TensorMap::Promotion::bytes_256;
  map.fill = TensorMap::Fill::nan;
  map.flush_subnormals = true;
  const auto bytes = map.encode();
  ASSERT_TRUE(static_cast<bool>(bytes));
  const auto back = TensorMap::decode(bytes->bytes);
  ASSERT_TRUE(static_cast<bool>(back)) << back.diags().text();
  EXPECT_EQ(*back, map);
}

TEST(TensorMap, RejectsInvalidBytes) {
  TensorMapBytes bytes;
  EXPECT_FALSE(static_cast<bool>(TensorMap::decode(bytes.bytes)));
  bytes.bytes.fill(std::byte{0xFF});
  EXPECT_FALSE(static_cast<bool>(TensorMap::decode(bytes.bytes)));
}

// ---- Recorded maps of an H100's driver, and recorded copies: tests/record/tensor_maps.cc.

std::vector<nlohmann::json> recorded(const char* what) {
  std::vector<nlohmann::json> out;
  for (const char* name : {"sm_90.jsonl", "sm_90_images.jsonl", "sm_90_edges.jsonl"}) {
    std::ifstream in(std::string(TEST_DATA "/tensor/") + name);
    for (std::string line; std::getline(in, line);)
      if (auto one = nlohmann::json::parse(line);
          one.contains(what) && !one.contains("copy") == (what[0] == 'm'))
        out.push_back(std::move(one));
  }
  return out;
}

TEST(TensorMap, BytesMatchTheDriver) {
  int accepted = 0, refused = 0;
  for (const auto& one : recorded("map")) {
    const TensorMap map = map_of(one.at("map"));
    const auto bytes = map.encode();
    ASSERT_EQ(static_cast<bool>(bytes), one.at("code") == 0) << one;
    ++(bytes ? accepted : refused);
    if (!bytes) continue;
    std::string wanted = one.at("bytes");
    wanted.resize(256, '0');  // trailing zeros are omitted
    EXPECT_EQ(hexadecimal(bytes->bytes), wanted) << one;
    const auto back = TensorMap::decode(bytes->bytes);
    ASSERT_TRUE(static_cast<bool>(back)) << one << back.diags().text();
    EXPECT_EQ(map_json(*back), one.at("map"));
  }
  EXPECT_GE(accepted, 340);
  EXPECT_GE(refused, 60);
}

// What the hardware answers with an illegal instruction.
TEST(EmulatorTensor, StoresBeforeAnEdgeAreFindings) {
  const auto finding = [](const char* operation, const TensorMap& map,
                          std::vector<std::int32_t> at) {
    const auto words = run(copy_through(operation, map, std::move(at)));
    return words ? std::string("none") : words.diags().text();
  };
  const TensorMap map = dense(Type::f16, {80, 9}, {32, 4});
  EXPECT_EQ(finding("load", map, {-8, -2}), "none");
  EXPECT_EQ(finding("store", map, {72, 7}), "none");
  EXPECT_EQ(finding("store", map, {80, 12}), "none");
  EXPECT_NE(finding("store", map, {0, -2})
                .find("store before an edge of the tensor: expected coordinates of at "
                      "least 0, found -2 in dimension 1; only loads may begin there, stores may "
                      "reach beyond the other edges"),
            std::string::npos)
      << finding("store", map, {0, -2});
  EXPECT_NE(finding("add", map, {-8, 0}).find("reduction before an edge"), std::string::npos);
}

TEST(EmulatorTensor, CopiesMatchTheHardware) {
  int seen = 0;
  for (const auto& one : recorded("copy")) {
    const auto words = run(copy_of(one.at("copy")));
    if (one.contains("failure")) {  // the hardware stops the kernel
      EXPECT_FALSE(static_cast<bool>(words)) << one.at("copy");
      continue;
    }
    ASSERT_TRUE(static_cast<bool>(words)) << one.at("copy") << words.diags().text();
    EXPECT_EQ(hexadecimal(std::as_bytes(std::span(*words))), one.at("words").get<std::string>())
        << one.at("copy");
    ++seen;
  }
  EXPECT_GE(seen, 190);
}

}  // namespace
}  // namespace tartan::test
