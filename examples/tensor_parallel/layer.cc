// SPDX-License-Identifier: Apache-2.0
#include "layer.h"

#include <algorithm>

using namespace tartan;

namespace {

constexpr int alignment = 8;  // elements in 16 bytes

Status divides(const char* what, int value, int by) {
  if (value > 0 && value % by == 0) return Done{};
  return {"usage"_rule, std::string(what) + " = " + std::to_string(value) +
                            ": expected a positive multiple of " + std::to_string(by)};
}

std::size_t bytes(int rows, int cols) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) * sizeof(host::bf16);
}

// Part number `i` of a buffer of `count` equal parts.
Result<Buffer> part(const Buffer& buffer, int i, int count) {
  const std::size_t size = buffer.size() / static_cast<std::size_t>(count);
  return buffer.part(static_cast<std::size_t>(i) * size, size);
}

// What `later` starts from now on waits for what `earlier` has been given, by `event`.
Status order(const Stream& earlier, Stream& later, Event& event) {
  if (auto status = event.record(&earlier); !status) return status;
  return later.wait(event);
}

Result<Rank> open_rank(const std::string& name, const Cache& cache) {
  auto device = Device::open(name);
  if (!device) return device.diags();
  auto products = device->stream(), transfers = device->stream();
  for (const auto* each : {&products, &transfers})
    if (!*each) return each->diags();
  std::vector<Event> events;
  for (int i = 0; i < 4; ++i) {
    auto event = device->event();
    if (!event) return event.diags();
    events.push_back(*event);
  }
  return Rank{
      *device,  Loader(*device, cache), *products, *transfers, events[0], events[1], events[2],
      events[3]};
}

}  // namespace

Status LayerShape::check(int ranks) const {
  if (auto status = divides("chunks", chunks, 1); !status) return status;
  if (auto status = divides("rows", rows, chunks * ranks); !status) return status;
  if (auto status = divides("out", out, alignment * ranks); !status) return status;
  return divides("in", in, alignment * ranks);
}

Result<std::vector<Rank>> open_ranks(const std::string& kind, int count) {
  const auto cache = Cache::open();
  if (!cache) return cache.diags();
  std::vector<Rank> out;
  for (int i = 0; i < count; ++i) {
    auto rank = open_rank(kind == "cuda" ? kind + ":" + std::to_string(i) : kind, *cache);
    if (!rank) return rank.diags();
    out.push_back(std::move(*rank));
  }
  return out;
}

Result<Layer> Layer::make(const LayerShape& shape, std::vector<Rank> ranks,
                          std::shared_ptr<Collectives> collectives) {
  if (auto status = shape.check(static_cast<int>(ranks.size())); !status) return status.diags();
  Layer layer(shape, std::move(ranks), std::move(collectives));
  if (auto status = layer.allocate(); !status) return status.diags();
  if (auto status = layer.compile(); !status) return status.diags();
  return layer;
}

Status Layer::allocate() {
  const int ranks = static_cast<int>(ranks_.size()), share = shape_.rows / ranks;
  const int columns = shape_.columns(ranks), depth = shape_.depth(ranks);
  const bool gathers = shape_.gathers();
  const bool scatters = shape_.collective == Collective::reduce_scatter;
  for (Rank& rank : ranks_) {
    Device& device = rank.device;
    const auto x = device.allocate(bytes(gathers ? share : shape_.rows, depth));
    const auto w = device.allocate(bytes(depth, columns));
    const auto y = device.allocate(bytes(scatters ? share : shape_.rows, columns));
    const auto whole = gathers    ? device.allocate(bytes(shape_.rows, depth))
                       : scatters ? device.allocate(bytes(shape_.rows, columns))
                                  : y;
    for (const auto* each : {&x, &w, &y, &whole})
      if (!*each) return each->diags();
    matrices_.push_back({*x, *w, *whole, *y});
  }
  return Done{};
}

Status Layer::compile() {
  const int ranks = static_cast<int>(ranks_.size());
  gemm_ = {
      .m = shape_.rows_of_product(ranks), .n = shape_.columns(ranks), .k = shape_.depth(ranks)};
  gemm_.a = gemm_.b = gemm_.c = bf16;
  gemm_ = kernels::tuned(gemm_, kernels::Gpu::of(ranks_[0].device));
  const int most = ranks_[0].device.multiprocessors() - 1;
  if (shape_.reserved < 0 || shape_.reserved > most)
    return {"usage"_rule, "reserved = " + std::to_string(shape_.reserved) + ": expected 0 to " +
                              std::to_string(most) + " multiprocessors"};
  for (Rank& rank : ranks_) {
    const auto ready = rank.loader.load(kernels::gemm(gemm_), ranks_[0].device.arch());
    if (!ready) return ready.diags();
    kernels_.push_back(*ready);
  }
  return Done{};
}

Status Layer::product(std::size_t rank, const Buffer& x, const Buffer& y, bool beside_collective) {
  const int all = ranks_[rank].device.multiprocessors();
  const int used = all - (beside_collective ? shape_.reserved : 0);
  return kernels_[rank]->launch({gemm_.grid_x(gemm_.m, gemm_.n, used)},
                                Arguments().add(x).add(matrices_[rank].w).add(y),
                                &ranks_[rank].products);
}

Status Layer::collective(int chunk) {
  std::vector<Part> parts;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankMatrices& matrices = matrices_[rank];
    const auto from = part(shape_.gathers() ? matrices.x : matrices.whole, chunk, shape_.chunks);
    const auto to = part(shape_.gathers() ? matrices.whole : matrices.y, chunk, shape_.chunks);
    for (const auto* each : {&from, &to})
      if (!*each) return each->diags();
    parts.push_back({*from, *to, &ranks_[rank].transfers});
  }
  return (*collectives_)(shape_.collective, parts);
}

Status Layer::multiply_and_reduce() {
  for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const auto x = part(matrices_[i].x, chunk, shape_.chunks);
      const auto y = part(matrices_[i].whole, chunk, shape_.chunks);
      for (const auto* each : {&x, &y})
        if (!*each) return each->diags();
      if (auto status = product(i, *x, *y, chunk > 0); !status) return status;
      Rank& rank = ranks_[i];
      if (auto status = order(rank.products, rank.transfers, rank.products_done); !status)
        return status;
    }
    if (auto status = collective(chunk); !status) return status;
  }
  return Done{};
}

// Of rank q, block c is what chunk c has of its rows.
Status Layer::gather_and_multiply() {
  const int count = static_cast<int>(ranks_.size()), chunks = shape_.chunks;
  const auto block = [&](int rank, const Result<Buffer>& x, int q, int c, bool beside) -> Status {
    const auto i = static_cast<std::size_t>(rank);
    const auto y = part(matrices_[i].y, q * chunks + c, count * chunks);
    for (const auto* each : {&x, &y})
      if (!*each) return each->diags();
    return product(i, *x, *y, beside);
  };
  for (int rank = 0; rank < count; ++rank)
    for (int c = 0; c < chunks; ++c) {
      const auto x = part(matrices(rank).x, c, chunks);
      if (auto status = block(rank, x, rank, c, count > 1); !status) return status;
    }
  for (int c = 0; c < chunks; ++c) {
    if (auto status = collective(c); !status) return status;
    for (int rank = 0; rank < count; ++rank) {
      Rank& own = ranks_[static_cast<std::size_t>(rank)];
      if (auto status = order(own.transfers, own.products, own.transfers_done); !status)
        return status;
      for (int q = 0; q < count; ++q) {
        if (q == rank) continue;
        const auto x = part(matrices(rank).whole, c * count + q, count * chunks);
        if (auto status = block(rank, x, q, c, c + 1 < chunks); !status) return status;
      }
    }
  }
  return Done{};
}

Status Layer::run() {
  if (auto status = shape_.gathers() ? gather_and_multiply() : multiply_and_reduce(); !status)
    return status;
  for (Rank& rank : ranks_) {  // the next run starts when both streams are done with this one
    if (auto status = order(rank.transfers, rank.products, rank.transfers_done); !status)
      return status;
    if (auto status = order(rank.products, rank.transfers, rank.products_done); !status)
      return status;
  }
  return Done{};
}

Result<double> Layer::measure(int times) {
  if (auto status = run(); !status) return status.diags();
  for (Rank& rank : ranks_)
    if (auto status = rank.device.synchronize(); !status) return status.diags();
  for (Rank& rank : ranks_)
    if (auto status = rank.begin.record(&rank.products); !status) return status.diags();
  for (int i = 0; i < times; ++i)
    if (auto status = run(); !status) return status.diags();
  double longest = 0;
  for (Rank& rank : ranks_) {
    if (auto status = rank.end.record(&rank.products); !status) return status.diags();
    const auto milliseconds = rank.end.milliseconds_since(rank.begin);
    if (!milliseconds) return milliseconds.diags();
    longest = std::max(longest, *milliseconds);
  }
  return longest / times;
}
