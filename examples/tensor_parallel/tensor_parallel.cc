// SPDX-License-Identifier: Apache-2.0
// A linear layer divided among the GPUs of a host, or among emulated ones: compares the results of
// each collective with the layer's formula, and with --times measures it in one chunk (the product,
// then the collective) and in several.
//
//   tensor_parallel                                    # all GPUs, else two emulated devices
//   tensor_parallel --device emulator --ranks 3 --rows 96 --out 96 --in 192 --chunks 2
//   tensor_parallel --rows 8192 --out 8192 --in 8192 --chunks 4 --reserve 4 --times 20
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "layer.h"

using namespace tartan;

namespace {

struct Options {
  std::string device;
  int ranks = 0, rows = 128, out = 96, in = 64, chunks = 2, reserve = 0, times = 0;
};

int fail(const std::string& message) {
  std::fprintf(stderr, "tensor_parallel: %s\n", message.c_str());
  return 1;
}

int fail(const Diags& diags) {
  std::fputs(diags.text().c_str(), stderr);
  return 1;
}

// False if a word is no option, or a value no number.
bool read(int count, char** words, Options& options) {
  const std::pair<const char*, int*> numbers[] = {
      {"--ranks", &options.ranks},     {"--rows", &options.rows},     {"--out", &options.out},
      {"--in", &options.in},           {"--chunks", &options.chunks}, {"--times", &options.times},
      {"--reserve", &options.reserve},
  };
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count) return false;
    if (!std::strcmp(words[i], "--device")) {
      options.device = words[i + 1];
      continue;
    }
    bool known = false;
    for (const auto& [name, value] : numbers)
      if (!std::strcmp(words[i], name)) {
        char* end = nullptr;
        *value = static_cast<int>(std::strtol(words[i + 1], &end, 10));
        known = *end == 0;
      }
    if (!known) return false;
  }
  return options.device.empty() || options.device == "cuda" || options.device == "emulator";
}

// Small integers, the same on each run: X is -1, 0 or 1 everywhere, W in a sixteenth of its places,
// so that all sums are exact in bf16.
std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352d;
  x = (x ^ x >> 15) * 0x846ca68b;
  return x ^ x >> 16;
}
int x_at(int row, int k) { return static_cast<int>(mixed(row * 65536u + k) % 3) - 1; }
int w_at(int k, int col) {
  const std::uint32_t bits = mixed(0x80000000u + col * 65536u + k);
  return bits % 16 ? 0 : static_cast<int>(bits / 16 % 2) * 2 - 1;
}

template <typename At>
std::vector<host::bf16> matrix(int rows, int cols, const At& at) {
  std::vector<host::bf16> out;
  out.reserve(static_cast<std::size_t>(rows) * cols);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) out.push_back(host::bf16(at(i, j)));
  return out;
}

// Row `i` of what rank `rank` gets of Y where the rows of each chunk are scattered.
int scattered_row(const LayerShape& shape, int ranks, int rank, int i) {
  const int chunk = shape.rows / shape.chunks, share = chunk / ranks;
  return i / share * chunk + rank * share + i % share;
}

Status fill(Layer& layer, const LayerShape& shape, int ranks) {
  const int depth = shape.depth(ranks), columns = shape.columns(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const int first_k = shape.gathers() ? 0 : rank * depth;
    const int first_column = shape.gathers() ? rank * columns : 0;
    const int rows = shape.gathers() ? shape.rows / ranks : shape.rows;
    const int first_row = shape.gathers() ? rank * rows : 0;
    const auto x =
        matrix(rows, depth, [&](int i, int k) { return x_at(first_row + i, first_k + k); });
    const auto w =
        matrix(columns, depth, [&](int j, int k) { return w_at(first_k + k, first_column + j); });
    RankMatrices& matrices = layer.matrices(rank);
    if (auto status = matrices.x.write(x); !status) return status;
    if (auto status = matrices.w.write(w); !status) return status;
  }
  return Done{};
}

// The number of wrong elements of a rank's result, of all of them or of some in each of 64 rows.
Result<int> wrong_elements(Layer& layer, const LayerShape& shape, int ranks, int rank) {
  const int columns = shape.columns(ranks);
  const bool scatters = shape.collective == Collective::reduce_scatter;
  const int rows = scatters ? shape.rows / ranks : shape.rows;
  const auto y = layer.matrices(rank).y.read_all<host::bf16>();
  if (!y) return y.diags();
  const int row_step = std::max(rows / 64, 1), column_step = std::max(columns / 61, 1);
  int wrong = 0;
  for (int i = 0; i < rows; i += row_step)
    for (int j = i / row_step % column_step; j < columns; j += column_step) {
      const int row = scatters ? scattered_row(shape, ranks, rank, i) : i;
      const int column = shape.gathers() ? rank * columns + j : j;
      int sum = 0;
      for (int k = 0; k < shape.in; ++k)
        if (const int w = w_at(k, column)) sum += w * x_at(row, k);
      wrong += float((*y)[static_cast<std::size_t>(i) * columns + j]) != static_cast<float>(sum);
    }
  return wrong;
}

struct Outcome {
  int wrong = 0;
  double milliseconds = 0;
};

Result<Outcome> try_layer(const LayerShape& shape, const std::vector<Rank>& ranks,
                          const std::shared_ptr<Collectives>& collectives, int times) {
  const int count = static_cast<int>(ranks.size());
  auto layer = Layer::make(shape, ranks, collectives);
  if (!layer) return layer.diags();
  if (shape.reserved && !layer->can_reserve())
    std::fputs("--reserve: no effect on the next line, whose kernel is not persistent\n", stderr);
  if (auto status = fill(*layer, shape, count); !status) return status.diags();
  if (auto status = layer->run(); !status) return status.diags();
  Outcome out;
  for (int rank = 0; rank < count; ++rank) {
    const auto wrong = wrong_elements(*layer, shape, count, rank);
    if (!wrong) return wrong.diags();
    out.wrong += *wrong;
  }
  if (times == 0) return out;
  const auto milliseconds = layer->measure(times);
  if (!milliseconds) return milliseconds.diags();
  out.milliseconds = *milliseconds;
  return out;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!read(count, words, options))
    return fail(
        "expected --device cuda|emulator, --ranks, --rows, --out, --in, --chunks, "
        "--reserve or --times with a number");
  const int gpus = Device::count();
  if (options.device.empty()) options.device = gpus ? "cuda" : "emulator";
  if (!options.ranks) options.ranks = options.device == "cuda" ? gpus : 2;
  if (options.ranks < 1) return fail("--ranks: expected at least 1");
  const auto ranks = open_ranks(options.device, options.ranks);
  if (!ranks) return fail(ranks.diags());
  std::shared_ptr<Collectives> collectives = host_collectives();
  if (options.device == "cuda") {
    auto nccl = nccl_collectives(options.ranks);
    if (nccl) collectives = std::move(*nccl);
    else std::fputs(nccl.diags().text().c_str(), stderr);  // slower, and as right
  }
  std::printf("%d x %s, collectives: %s\n", options.ranks, (*ranks)[0].device.name().c_str(),
              collectives->name().c_str());

  const std::pair<const char*, Collective> all[] = {
      {"all_reduce", Collective::all_reduce},
      {"reduce_scatter", Collective::reduce_scatter},
      {"all_gather", Collective::all_gather},
  };
  bool right = true;
  for (const auto& [name, collective] : all) {
    LayerShape shape{.collective = collective,
                     .rows = options.rows,
                     .out = options.out,
                     .in = options.in,
                     .chunks = options.chunks,
                     .reserved = options.reserve};
    const auto chunked = try_layer(shape, *ranks, collectives, options.times);
    shape.chunks = 1, shape.reserved = 0;
    const auto whole = try_layer(shape, *ranks, collectives, options.times);
    for (const auto* each : {&chunked, &whole})
      if (!*each) return fail(each->diags());
    const int wrong = chunked->wrong + whole->wrong;
    right &= wrong == 0;
    std::printf("%-14s %d x %d x %d: ", name, options.rows, options.out, options.in);
    if (wrong) std::printf("%d elements are wrong", wrong);
    else std::printf("right");
    if (options.times)
      std::printf(", one chunk %.3f ms, %d chunks %.3f ms", whole->milliseconds, options.chunks,
                  chunked->milliseconds);
    std::printf("\n");
  }
  return right ? 0 : 1;
}
