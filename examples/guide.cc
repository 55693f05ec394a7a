// SPDX-License-Identifier: Apache-2.0
// The kernels of docs/guide.md: one product, C = A * B, in the order in which one would write it,
// and three mistakes with what finds them. Each kernel runs on the emulator with all checks, as an
// sm_80 and as an sm_90a, and is compared with a loop in double.
#include <regex>
#include <sstream>

#include "lesson.h"

using namespace tartan;
using lesson::must;

namespace {

// ---- 1. One instruction in a loop: a warp, a tile of 16 x 8.

Kernel one_warp() {
  return kernel("one_warp", {.block = 32}, [](Builder& k) {
    auto depth = k.param("depth", s32, 16);
    auto A = k.global("A", f16, row_major(16, depth));
    auto B = k.global("B", f16, row_major(depth, 8));
    auto C = k.global("C", f32, row_major(16, 8));
    auto sA = k.shared("sA", f16, row_major(16, 16));
    auto sB = k.shared("sB", f16, row_major(16, 8));
    auto sum = k.variable(operand_c(m16n8k16, f32));
    k.loop(0, depth / 16, 1, [&](Scalar t) {
      k.copy(A.tile({0, t}, {16, 16}), sA);
      k.copy(B.tile({t, 0}, {16, 8}), sB);
      k.barrier();  // all of the tile is there
      sum = k.mma(k.load(operand_a(m16n8k16, f16), sA), k.load(operand_b(m16n8k16, f16), sB), sum);
      k.barrier();  // everybody has read it
    });
    k.store(C, sum);
  });
}

// ---- 2. Many warps, any size.

constexpr Tile tile{.m = 64, .n = 64, .k = 32, .warps_m = 4, .warps_n = 1};

struct Product {
  Scalar m, n, depth;
  Global A, B, C;
  explicit Product(Builder& k) {
    m = k.param("m", s32), n = k.param("n", s32, 8), depth = k.param("depth", s32, 8);
    A = k.global("A", f16, row_major(m, depth));
    B = k.global("B", f16, row_major(depth, n));
    C = k.global("C", f32, row_major(m, n));
  }
};

Kernel tiled() {
  return kernel("tiled", {.block = tile.threads()}, [](Builder& k) {
    auto [m, n, depth, A, B, C] = Product(k);
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(1, Major::row));
    auto sB = k.shared("sB", f16, mma.shared_b(1, Major::row));
    auto sum = mma.accumulator();
    auto [row, col] = k.block_tile(m, n, tile);
    k.loop(0, ceil_div(depth, tile.k), 1, [&, A = A, B = B, row = row, col = col](Scalar t) {
      k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[0]);
      k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[0]);
      k.barrier();
      mma.add(sum, sA[0], sB[0]);
      k.barrier();
    });
    k.store(C.tile({row, col}, {tile.m, tile.n}), sum);
  });
}

// ---- 3. Copies ahead of the products.

Kernel pipelined() {
  return kernel("pipelined", {.block = tile.threads()}, [](Builder& k) {
    auto [m, n, depth, A, B, C] = Product(k);
    constexpr int stages = 3;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(stages, Major::row));
    auto sB = k.shared("sB", f16, mma.shared_b(stages, Major::row));
    auto sum = mma.accumulator();
    auto [row, col] = k.block_tile(m, n, tile);
    auto fill = [&, A = A, B = B, row = row, col = col](Scalar t, Scalar stage) {
      k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
      k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
    };
    auto use = [&](Scalar, Scalar stage) { mma.add(sum, sA[stage], sB[stage]); };
    k.pipeline({.stages = stages}, ceil_div(depth, tile.k), fill, use);
    k.store(C.tile({row, col}, {tile.m, tile.n}), sum);
  });
}

// ---- 4. Warps that copy, warpgroups that multiply; CTAs that share what they read.

constexpr int cluster = 2;

Kernel specialized() {
  const KernelOptions options{.block = tile.threads(), .producers = 4, .cluster = cluster};
  return kernel("specialized", options, [](Builder& k) {
    const Product p(k);
    constexpr int stages = 3;
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(stages, Major::row));
    auto sB = k.shared("sB", f16, mma.shared_b(stages, Major::row));
    k.roles([&] {
      k.each_tile(p.m, p.n, tile, [&](Scalar row, Scalar col) {
        auto sum = mma.accumulator();
        auto fill = [&](Scalar t, Scalar stage) {
          k.copy(p.A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
          k.copy(p.B.tile({t, col}, {tile.k, tile.n}), sB[stage], {.multicast = Among::cluster});
        };
        auto use = [&](Scalar, Scalar stage) { mma.add(sum, sA[stage], sB[stage]); };
        k.pipeline({.stages = stages}, ceil_div(p.depth, tile.k), fill, use);
        k.store(p.C.tile({row, col}, {tile.m, tile.n}), sum);
      });
    });
  });
}

// ---- Mistakes.

// A barrier is missing: a fast warp overwrites what a slow one has not read.
Kernel hasty() {
  return kernel("hasty", {.block = tile.threads()}, [](Builder& k) {
    auto [m, n, depth, A, B, C] = Product(k);
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(1, Major::row));
    auto sB = k.shared("sB", f16, mma.shared_b(1, Major::row));
    auto sum = mma.accumulator();
    auto [row, col] = k.block_tile(m, n, tile);
    k.loop(0, ceil_div(depth, tile.k), 1, [&, A = A, B = B, row = row, col = col](Scalar t) {
      k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[0]);
      k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[0]);
      k.barrier();
      mma.add(sum, sA[0], sB[0]);
    });
    k.store(C.tile({row, col}, {tile.m, tile.n}), sum);
  });
}

// ---- What runs them.

struct Problem {
  int m, n, depth;
  std::vector<host::f16> a, b;
  std::vector<float> c;
  Problem(int m, int n, int depth)
      : m(m), n(n), depth(depth), a(m * depth), b(depth * n), c(m * n) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = host::f16(static_cast<double>(i % 11) - 5);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = host::f16(static_cast<double>(i % 7) - 3);
  }
  // Where C differs from the product; empty if nowhere.
  std::string wrong() const {
    const auto A = reference::row_major(a, m, depth), B = reference::row_major(b, depth, n);
    return reference::difference(c, reference::product(A, B), n);
  }
};

bool right(Device& device, const char* name) {
  Problem one(16, 8, 64), p(200, 136, 72);
  must(run(device, one_warp(), {1}, one.depth, in(one.a), in(one.b), out(one.c)));
  std::string wrong = one.wrong();
  for (const Kernel& each : {tiled(), pipelined()}) {
    must(run(device, each, {tile.blocks(p.m, p.n)}, p.m, p.n, p.depth, in(p.a), in(p.b), out(p.c)));
    wrong += p.wrong();
  }
  must(run(device, specialized(), {4}, p.m, p.n, p.depth, in(p.a), in(p.b), out(p.c)));
  wrong += p.wrong();
  std::printf("%s: %s\n", name, wrong.empty() ? "all results are right" : wrong.c_str());
  return wrong.empty();
}

// In lines of 96 columns, with the file's name for its path.
void print(const Diag& diag) {
  static const std::regex path("[^ (]*/guide");
  std::istringstream words(std::regex_replace(diag.message, path, "guide") + " [" +
                           std::string(diag.id) + "]");
  std::string line = " ";
  for (std::string word; words >> word;) {
    if (line.size() + word.size() >= 96) {
      std::printf("%s\n", line.c_str());
      line = " ";
    }
    line += " " + word;
  }
  std::printf("%s\n", line.c_str());
}

void show(const char* mistake, const Status& status) {
  std::printf("%s:\n", mistake);
  if (status) std::printf("  nothing was found\n");
  else
    for (const Diag& each : status.diags()) print(each);
}

void mistakes(Device& device) {
  Problem p(100, 72, 64);
  show("a barrier is missing", run(device, hasty(), {tile.blocks(p.m, p.n)}, p.m, p.n, p.depth,
                                   in(p.a), in(p.b), out(p.c)));
  show("the grid is too small",
       run(device, pipelined(), {2}, p.m, p.n, p.depth, in(p.a), in(p.b), out(p.c)));
  show("operands are swapped", run(device, pipelined(), {tile.blocks(p.m, p.n)}, p.m, p.n, p.depth,
                                   arg("A", in(p.b)), arg("B", in(p.a)), out(p.c)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "cuda") {
    Device device = must(Device::open("cuda"));
    return !right(device, device.name().c_str());
  }
  bool all = true;
  for (const char* name : {"sm_80", "sm_90a"}) {
    Device device = must(Device::open("emulator", {.hardware = name, .checks = Checks::all}));
    all &= right(device, name);
    if (device.arch().sm == 80) mistakes(device);
  }
  return !all;
}
