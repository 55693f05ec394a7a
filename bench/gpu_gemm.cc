// SPDX-License-Identifier: Apache-2.0
// The GEMM kernel on a GPU beside cuBLAS (where its library is found) and beside the ceiling of
// mma.sync:
//
//   gpu_gemm [--size N]... [--type f16|bf16|s8] [--tile MxNxK:WMxWN:STAGES[:PRODUCERS]]...
//            [--rounds R]
//
// See gpu_measure.h for how it measures. Also compares the bits with cuBLAS's.
#include <dlfcn.h>

#include "bench/gpu_measure.h"

using namespace tartan;

namespace {

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

struct Config {
  Tile tile;
  int stages = 3, producers = 0;
  std::string text;
};

Config parse_config(const std::string& text) {
  Config out{.text = text};
  if (std::sscanf(text.c_str(), "%dx%dx%d:%dx%d:%d:%d", &out.tile.m, &out.tile.n, &out.tile.k,
                  &out.tile.warps_m, &out.tile.warps_n, &out.stages, &out.producers) < 6) {
    std::cerr << "--tile " << text << ": MxNxK:WMxWN:STAGES[:PRODUCERS] is expected\n";
    std::exit(2);
  }
  return out;
}

// Normal numbers of about one, either sign; s8: any.
std::vector<std::uint16_t> random_words(std::size_t count, Type type) {
  std::vector<std::uint16_t> out(count);
  std::mt19937 random(7);
  for (std::uint16_t& each : out) {
    const std::uint32_t r = random();
    each = type == f16    ? static_cast<std::uint16_t>((r & 0x83FF) | (13 + (r >> 16) % 3) << 10)
           : type == bf16 ? static_cast<std::uint16_t>((r & 0x807F) | (125 + (r >> 16) % 3) << 7)
                          : static_cast<std::uint16_t>(r);
  }
  return out;
}

struct Matrices {
  Matrices(Device& device, int size, Type type)
      : a(make(device, size)),
        b(make(device, size)),
        c(make(device, size)),
        reference(make(device, size)) {
    const auto values = random_words(static_cast<std::size_t>(size) * size, type);
    (void)a.write(values), (void)b.write(values);
  }
  static Buffer make(Device& device, int size) {
    return gpu::must(device.allocate(static_cast<std::size_t>(size) * size * 4));
  }
  void compare(std::size_t bytes) const {
    const auto mine = *c.read_all<std::uint8_t>(), theirs = *reference.read_all<std::uint8_t>();
    std::size_t differ = 0;
    for (std::size_t i = 0; i < bytes; ++i) differ += mine[i] != theirs[i];
    fmt::print("    bytes that differ from cuBLAS: {} of {}\n", differ, bytes);
  }
  Buffer a, b, c, reference;
};

kernels::Gemm gemm_options(const Config& config, int size, Type type) {
  kernels::Gemm out{.m = size, .n = size, .k = size};
  out.a = out.b = type;
  out.accumulator = type == Type::s8 ? s32 : f32, out.c = type == Type::s8 ? s32 : type;
  out.tile = config.tile, out.stages = config.stages, out.producers = config.producers;
  return out;
}

void race(Device& device, Cublas& cublas, int size, Type type, const std::vector<Config>& configs,
          int rounds) {
  const Matrices matrices(device, size, type);
  const double operations = 2.0 * size * size * size;
  std::vector<gpu::Entry> entries;
  std::list<gpu::Runner> runners;
  const auto reference = [&, out = gemm_options(configs[0], size, type).c] {
    return cublas.run(size, size, size, type, matrices.a.address(), matrices.b.address(),
                      matrices.reference.address(), out);
  };
  for (const Config& config : configs) {
    const kernels::Gemm options = gemm_options(config, size, type);
    auto& run =
        runners.emplace_back(device, kernels::gemm(options), Dim3{options.blocks(size, size)},
                             Arguments().add(matrices.a).add(matrices.b).add(matrices.c));
    entries.push_back({config.text, [&run] { run(); }, operations, {}, {}});
    run();
    if (const auto status = device.synchronize(); !status) {
      std::cerr << config.text << ": " << status.diags().text();
      std::exit(1);
    }
    fmt::print("{}: {:.1f} ms from description to PTX, {} KB shared\n", config.text,
               run.compile_ms(), run.shared_bytes() / 1024);
    if (cublas && reference())
      matrices.compare(static_cast<std::size_t>(size) * size * bits(options.c) / 8);
  }
  gpu::Ceiling ceiling(device, type == Type::s8 ? "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
                               : type == bf16
                                   ? "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
                                   : "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  entries.push_back({"ceiling of mma.sync", [&] { ceiling.run(); }, ceiling.operations, {}, {}});
  if (cublas) entries.push_back({"cuBLAS", [&] { (void)reference(); }, operations, {}, {}});
  gpu::measure(device, entries, rounds);
  gpu::print(fmt::format("{}^3 {}", size, name(type)), entries, {"cuBLAS", "ceiling"});
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
  Device device = gpu::must(Device::open("cuda"));
  std::cout << device.name() << '\n';
  Cublas cublas;
  for (const int size : sizes) race(device, cublas, size, type, configs, rounds);
}
