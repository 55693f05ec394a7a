// SPDX-License-Identifier: Apache-2.0
// The GEMM kernel on a GPU beside cuBLAS (where its library is found) and beside the ceiling of
// mma.sync, in one process, in shuffled rounds:
//
//   gpu_gemm [--size N]... [--type f16|bf16|s8] [--tile MxNxK:WMxWN:STAGES]... [--rounds R]
//
// "cool": one launch after 40 ms of rest and one untimed launch. "hot": 20 launches back to back.
// Prints TFLOP/s (medians over the rounds) and ratios.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <thread>

#include <tartan/tartan.h>

using namespace tartan;

namespace {

template <typename T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::cerr << result.diags().text();
  std::exit(1);
}

// cuBLAS, as far as it is used here; its own handle and the device's primary context.
class Cublas {
 public:
  Cublas() {
    for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"})
      if ((library_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL))) break;
    if (!library_) return;
    const auto create = reinterpret_cast<int (*)(void**)>(dlsym(library_, "cublasCreate_v2"));
    gemm_ = reinterpret_cast<Gemm>(dlsym(library_, "cublasGemmEx"));
    if (!create || !gemm_ || create(&handle_) != 0) gemm_ = nullptr;
  }
  explicit operator bool() const { return gemm_ != nullptr; }

  // C (row-major m x n) = A (row-major m x k) * B (k x n by columns): for cuBLAS, which counts by
  // columns, C^T = B^T^T * A^T.
  bool run(int m, int n, int k, Type type, std::uint64_t a, std::uint64_t b, std::uint64_t c,
           Type out) {
    const int cuda_r = type == f16 ? 2 : type == bf16 ? 14 : 3;
    const int cuda_c = out == f32 ? 0 : out == s32 ? 10 : cuda_r;
    const int compute = type == Type::s8 ? 72 : 68;
    const float one_f = 1, zero_f = 0;
    const int one_i = 1, zero_i = 0;
    const void* const one = type == Type::s8 ? static_cast<const void*>(&one_i) : &one_f;
    const void* const zero = type == Type::s8 ? static_cast<const void*>(&zero_i) : &zero_f;
    return gemm_(handle_, 1, 0, n, m, k, one, b, cuda_r, k, a, cuda_r, k, zero, c, cuda_c, n,
                 compute, -1) == 0;
  }

 private:
  using Gemm = int (*)(void*, int, int, int, int, int, const void*, std::uint64_t, int, int,
                       std::uint64_t, int, int, const void*, std::uint64_t, int, int, int, int);
  void* library_ = nullptr;
  void* handle_ = nullptr;
  Gemm gemm_ = nullptr;
};

struct Entry {
  std::string name;
  std::function<void()> launch;
  double operations;
  std::vector<double> cool, hot;  // TFLOP/s
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

double seconds(Device& device, const std::function<void()>& launch, int count) {
  Event begin = must(device.event()), end = must(device.event());
  (void)begin.record();
  for (int i = 0; i < count; ++i) launch();
  (void)end.record();
  return must(end.milliseconds_since(begin)) / 1000 / count;
}

void measure(Device& device, std::vector<Entry>& entries, int rounds) {
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Entry*> order;
    for (Entry& entry : entries) order.push_back(&entry);
    std::shuffle(order.begin(), order.end(), random);
    for (Entry* entry : order) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      entry->launch();
      entry->cool.push_back(entry->operations / seconds(device, entry->launch, 1) / 1e12);
      entry->hot.push_back(entry->operations / seconds(device, entry->launch, 20) / 1e12);
    }
  }
}

// A kernel of nothing but products, from registers.
Kernel probe(Type type, Type sum) {
  return kernel("probe", {.block = 256}, [=](Builder& k) {
    auto count = k.param("count", s32);
    auto out = k.global("out", u32, row_major(4096, 256));
    const MmaKind mma = k.best_mma(type, type, sum);
    const auto filled = [&](const FragmentKind& kind) {
      std::vector<Scalar> registers(static_cast<std::size_t>(kind.fragment().registers),
                                    k.lane() * 1025);
      return k.fragment(kind, registers);
    };
    const Fragment a = filled(operand_a(mma.shape, type)), b = filled(operand_b(mma.shape, type));
    std::vector<FragmentVariable> sums;
    for (int i = 0; i < 16; ++i) sums.push_back(k.variable(operand_c(mma.shape, sum)));
    k.loop(0, count, 1, [&](Scalar) {
      for (int i = 0; i < 64; ++i) sums[i % 16] = k.mma(a, b, sums[i % 16]);
    });
    Scalar all = k.constant(u32, 0);
    for (FragmentVariable& each : sums)
      for (const Scalar& word : k.registers(each))
        all = all ^ (sum == f32 ? k.convert(word, u32) : word);
    k.write(out, k.block_x(), k.thread(), all);
  });
}

struct Config {
  Tile tile;
  int stages;
  std::string text;
};

Config parse_config(const std::string& text) {
  Config out{{}, 3, text};
  if (std::sscanf(text.c_str(), "%dx%dx%d:%dx%d:%d", &out.tile.m, &out.tile.n, &out.tile.k,
                  &out.tile.warps_m, &out.tile.warps_n, &out.stages) != 6) {
    std::cerr << "--tile " << text << ": MxNxK:WMxWN:STAGES is expected\n";
    std::exit(2);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  std::vector<Config> configs;
  Type type = f16;
  int rounds = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i], value = argv[i + 1];
    if (word == "--size") sizes.push_back(std::atoi(value.c_str()));
    else if (word == "--tile") configs.push_back(parse_config(value));
    else if (word == "--rounds") rounds = std::atoi(value.c_str());
    else if (word == "--type") type = value == "bf16" ? bf16 : value == "s8" ? Type::s8 : f16;
  }
  if (sizes.empty()) sizes = {4096, 8192};
  if (configs.empty()) configs.push_back(parse_config("128x256x64:2x4:3"));
  const Type sum = type == Type::s8 ? s32 : f32, out = type == Type::s8 ? s32 : type;

  Device device = must(Device::open("cuda"));
  std::cout << device.name() << '\n';
  Cublas cublas;
  for (const int size : sizes) {
    const auto n = static_cast<std::size_t>(size);
    Buffer a = must(device.allocate(n * n * 2)), b = must(device.allocate(n * n * 2)),
           c = must(device.allocate(n * n * 4)), reference = must(device.allocate(n * n * 4)),
           sink = must(device.allocate(4096 * 256 * 4));
    std::vector<std::uint16_t> values(n * n);
    std::mt19937 random(7);
    for (std::uint16_t& each : values) {
      const std::uint32_t r = random();
      each = type == f16    ? static_cast<std::uint16_t>((r & 0x83FF) | (13 + (r >> 16) % 3) << 10)
             : type == bf16 ? static_cast<std::uint16_t>((r & 0x807F) | (125 + (r >> 16) % 3) << 7)
                            : static_cast<std::uint16_t>(r);
    }
    (void)a.write(values), (void)b.write(values);

    std::vector<Entry> entries;
    const double operations = 2.0 * size * size * size;
    std::vector<LoadedKernel> kernels;
    kernels.reserve(configs.size() + 1);
    for (const Config& config : configs) {
      kernels::Gemm options{.m = size, .n = size, .k = size};
      options.a = options.b = type, options.accumulator = sum, options.c = out;
      options.tile = config.tile, options.stages = config.stages;
      const auto begin = std::chrono::steady_clock::now();
      const Compiled compiled = must(compile(kernels::gemm(options), Target::of(device.arch())));
      const double ms =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
              .count();
      auto loaded = must(device.load(compiled.ptx, compiled.name)).kernel(compiled.name);
      kernels.push_back(must(std::move(loaded)));
      const Launch launch{.grid = {options.blocks(size, size)},
                          .block = {static_cast<unsigned>(compiled.block)},
                          .dynamic_shared = static_cast<unsigned>(compiled.dynamic_shared)};
      const Arguments arguments = Arguments().add(a).add(b).add(c);
      entries.push_back({config.text,
                         [launch, arguments, &kernel = kernels.back()] {
                           const auto status = kernel.launch(launch, arguments);
                           if (!status) std::cerr << status.diags().text();
                         },
                         operations,
                         {},
                         {}});
      entries.back().launch();
      if (const auto status = device.synchronize(); !status) {
        std::cerr << config.text << ": " << status.diags().text();
        return 1;
      }
      fmt::print("{}: {:.1f} ms from description to PTX, {} KB shared\n", config.text, ms,
                 (compiled.dynamic_shared + compiled.shared_bytes) / 1024);
      if (cublas &&
          cublas.run(size, size, size, type, a.address(), b.address(), reference.address(), out)) {
        const auto mine = *c.read_all<std::uint8_t>(), theirs = *reference.read_all<std::uint8_t>();
        std::size_t differ = 0;
        const std::size_t bytes = n * n * bits(out) / 8;
        for (std::size_t i = 0; i < bytes; ++i) differ += mine[i] != theirs[i];
        fmt::print("    bytes that differ from cuBLAS: {} of {}\n", differ, bytes);
      }
    }
    {
      const Compiled compiled = must(compile(probe(type, sum), Target::of(device.arch())));
      auto loaded = must(device.load(compiled.ptx, compiled.name)).kernel(compiled.name);
      kernels.push_back(must(std::move(loaded)));
      const int count = 2000, blocks = 132 * 8;
      const double k_of = type == Type::s8 ? 32 : 16;
      entries.push_back({"ceiling of mma.sync",
                         [=, &kernel = kernels.back()] {
                           (void)kernel.launch({.grid = {blocks}, .block = {256}},
                                               Arguments().add(count).add(sink));
                         },
                         2.0 * 16 * 8 * k_of * 64 * count * 8 * blocks,
                         {},
                         {}});
    }
    if (cublas)
      entries.push_back({"cuBLAS",
                         [&] {
                           (void)cublas.run(size, size, size, type, a.address(), b.address(),
                                            reference.address(), out);
                         },
                         operations,
                         {},
                         {}});
    measure(device, entries, rounds);
    double peer[2] = {0, 0}, ceiling[2] = {0, 0};
    for (const Entry& entry : entries) {
      double* const to = entry.name == "cuBLAS"              ? peer
                         : entry.name.starts_with("ceiling") ? ceiling
                                                             : nullptr;
      if (to) to[0] = median(entry.cool), to[1] = median(entry.hot);
    }
    fmt::print("\n{}^3 {}\n{:<24}{:>8}{:>8}{:>12}{:>12}\n", size, name(type), "TFLOP/s", "cool",
               "hot", "of cuBLAS", "of ceiling");
    for (const Entry& entry : entries)
      fmt::print("{:<24}{:>8.0f}{:>8.0f}{:>12.3f}{:>12.3f}\n", entry.name, median(entry.cool),
                 median(entry.hot), peer[0] ? median(entry.cool) / peer[0] : 0,
                 ceiling[0] ? median(entry.cool) / ceiling[0] : 0);
  }
}
