// SPDX-License-Identifier: Apache-2.0
#include "library/tune_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <thread>

#include "library/rest.h"
#include "runtime/device_access.h"
#include "tartan/isa/feature.h"
#include "tartan/kernels/gemm_schedule.h"

namespace tartan::TARTAN_ABI::detail {

using kernels::Gemm;

namespace {

constexpr std::size_t apart = 4096;  // bytes between matrices
constexpr std::size_t most_sets = 64, fewest_bytes = std::size_t{8} << 20;
constexpr double rotated = 2;       // times the second-level cache, of all sets that are timed
constexpr double enough_us = 1200;  // of a sample
constexpr double short_us = 150;    // of a product: less is timed in graphs
constexpr int most_launches = 20;   // of a sample without a graph
constexpr double always = std::numeric_limits<double>::infinity();  // a deadline

std::size_t bytes_of(std::int64_t rows, std::int64_t cols, Type type) {
  const auto all = static_cast<std::size_t>(rows * cols * bits(type) / 8);
  return (std::max<std::size_t>(all, 1) + apart - 1) / apart * apart;
}

// Bits of a floating-point type's exponent and mantissa.
struct Float {
  int exponent, mantissa;
};
Float float_of(Type type) {
  switch (type) {
    case Type::f16: return {5, 10};
    case Type::bf16: return {8, 7};
    case Type::e4m3: return {4, 3};
    case Type::e5m2: return {5, 2};
    default: return {8, 23};
  }
}

// Random elements: integers of any value, others of either sign with a magnitude from 1/8 to 2. The
// power that a product takes, and so the clock, depends on how many bits change.
void randomize(Type type, std::span<std::uint64_t> words) {
  const int width = bits(type);
  std::uint64_t keep = ~std::uint64_t{0}, set = 0;
  if (info(type).floating) {
    const auto [exponent, mantissa] = float_of(type);
    const bool narrow = type == Type::tf32 || type == Type::f32;  // exact in tf32
    std::uint64_t fraction = (std::uint64_t{1} << mantissa) - 1;
    if (narrow) fraction &= ~std::uint64_t{0x1FFF};
    const std::uint64_t one = ((std::uint64_t{1} << (exponent - 1)) - 1) << mantissa,
                        exponents = std::uint64_t{3} << mantissa;  // all set in that of one
    keep = set = 0;
    for (int at = 0; at < 64; at += width) {
      keep |= (fraction | exponents | std::uint64_t{1} << (width - 1)) << at;
      set |= (one & ~exponents) << at;
    }
  }
  std::uint64_t state = 0x9E3779B97F4A7C15;
  for (std::uint64_t& each : words) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    each = (state & keep) | set;
  }
}

void small(Type type, std::uint64_t seed, std::span<std::uint64_t> words) {
  const auto codes = small_integers(type);
  const int width = bits(type);
  std::uint64_t state = seed;
  for (std::uint64_t& each : words) {
    each = 0;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    for (int at = 0, i = 0; at < 64; at += width, ++i)
      each |= std::uint64_t{codes[(state >> (7 * i)) % codes.size()]} << at;
  }
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::vector<std::uint32_t> small_integers(Type type) {
  const int width = bits(type);
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << width) - 1);
  if (!info(type).floating) {
    if (type == Type::u8) return {0, 1, 2, 3};
    return {0, 1, 2, 3, all, all - 1, all - 2};
  }
  const auto [exponent, mantissa] = float_of(type);
  const std::uint32_t one = ((1u << (exponent - 1)) - 1) << mantissa, two = one + (1u << mantissa),
                      three = two | 1u << (mantissa - 1), sign = 1u << (width - 1);
  return {0, one, two, three, sign | one, sign | two, sign | three};
}

DeviceBench::DeviceBench(const Device& device, const Gemm& product, const isa::GpuRow& gpu,
                         const Cache& cache)
    : device_(device),
      product_(product),
      gpu_(gpu),
      cache_(cache),
      loader_(device, cache),
      a_bytes_(bytes_of(product.m, product.k, product.a)),
      b_bytes_(bytes_of(product.k, product.n, product.b)),
      c_bytes_(bytes_of(product.m, product.n, product.c)),
      set_bytes_(a_bytes_ + b_bytes_ + c_bytes_) {
  if (device.emulated()) return;
  const double timed = std::ceil(rotated * gpu.cache_bytes / static_cast<double>(set_bytes_));
  sets_ = 1 + std::min(static_cast<std::size_t>(timed), most_sets);
}

Result<std::unique_ptr<DeviceBench>> DeviceBench::make(const Device& device, const Gemm& product,
                                                       const isa::GpuRow& gpu, const Cache& cache) {
  std::unique_ptr<DeviceBench> out(new DeviceBench(device, product, gpu, cache));
  if (const Status done = out->allocate(); !done) return done.diags();
  if (const Status done = out->fill(); !done) return done.diags();
  return out;
}

Status DeviceBench::allocate() {
  auto stream = device_.stream();
  if (!stream) return stream.diags();
  stream_ = std::move(*stream);
  auto all = device_.allocate(sets_ * set_bytes_);
  while (!all && sets_ > 2)
    all = device_.allocate((sets_ = std::max<std::size_t>(sets_ / 2, 2)) * set_bytes_);
  if (!all) return all.diags();
  matrices_ = std::move(*all);
  return allocate_extras();
}

// What an epilogue reads: vectors of 1, and a residual.
Status DeviceBench::allocate_extras() {
  if (product_.epilogue.empty()) return Done{};
  const auto length = static_cast<std::size_t>(std::max(product_.m, product_.n));
  auto vectors = device_.allocate(length * sizeof(float));
  if (!vectors) return vectors.diags();
  vectors_ = std::move(*vectors);
  if (const Status done = vectors_.write(std::vector<float>(length, 1)); !done) return done;
  if (!product_.epilogue.residual) return Done{};
  auto residual = device_.allocate(c_bytes_);
  if (!residual) return residual.diags();
  residual_ = std::move(*residual);
  return residual_.fill(0);
}

// The first set has small integers, whose sums are exact; the others, which are timed, have random
// numbers: of integers, or of equal exponents, a product takes less power than of its users'
// numbers. A and B have different integers: a row times itself would be a sum of squares, which the
// 13 bits of fp8's sums do not hold.
Status DeviceBench::fill() {
  std::vector<std::uint64_t> block(fewest_bytes / 8);
  const auto write = [&](std::size_t at, std::size_t bytes) -> Status {
    for (std::size_t done = 0; done < bytes; done += fewest_bytes) {
      const auto some = std::as_bytes(std::span(block)).first(std::min(bytes - done, fewest_bytes));
      if (const Status wrote = matrices_.write(some, at + done); !wrote) return wrote;
    }
    return Done{};
  };
  const auto operand = [&](Type type, std::uint64_t seed, std::size_t at,
                           std::size_t bytes) -> Status {
    const auto words = std::span(block).first(std::min(bytes, fewest_bytes) / 8);
    small(type, seed, words);
    if (const Status wrote = write(at, bytes); !wrote || sets_ == 1) return wrote;
    randomize(type, words);
    for (std::size_t set = 1; set < sets_; ++set)
      if (const Status wrote = write(set * set_bytes_ + at, bytes); !wrote) return wrote;
    return Done{};
  };
  if (const Status wrote = operand(product_.a, 0xD1B54A32D192ED03, 0, a_bytes_); !wrote)
    return wrote;
  return operand(product_.b, 0x8CB92BA72F3D8DD7, a_bytes_, b_bytes_);
}

double DeviceBench::seconds() { return seconds_since(begin_); }

std::vector<Diags> DeviceBench::load(const std::vector<Gemm>& candidates, double deadline) {
  std::vector<Diags> out(candidates.size());
  entries_.resize(candidates.size());
  if (const Status reserved = reserve_parts(candidates); !reserved)
    return std::vector<Diags>(candidates.size(), reserved.diags());
  const auto loaded_until = [&](const Gemm& options, double until) -> Result<Entry> {
    try {
      return loaded(options, until);
    } catch (const std::bad_alloc&) {
      return {"out-of-memory"_rule, "out of host memory: cannot load a kernel"};
    }
  };
  std::atomic<std::size_t> next = 0;
  const auto load_some = [&] {
    for (std::size_t i; (i = next++) < candidates.size();) {
      auto entry = loaded_until(candidates[i], i == 0 ? always : deadline);
      if (entry) entries_[i] = std::move(*entry);
      else out[i] = entry.diags();
    }
  };
  // More would share the cores, and all come to the driver when the time is over: it assembles one
  // kernel while one thread compiles several. A container may have fewer cores than this says.
  constexpr std::size_t most_threads = 8;
  std::vector<std::thread> threads;
  const std::size_t count =
      std::min({std::size_t{std::thread::hardware_concurrency()}, candidates.size(), most_threads});
  for (std::size_t i = 1; i < count; ++i) threads.emplace_back(load_some);
  load_some();
  for (std::thread& each : threads) each.join();
  return out;
}

// One workspace for all: they run one after the other.
Status DeviceBench::reserve_parts(const std::vector<Gemm>& candidates) {
  std::int64_t most = 0;
  for (const Gemm& each : candidates) most = std::max(most, kernels::workspace_bytes(each));
  if (most == 0) return Done{};
  auto parts = device_.allocate(static_cast<std::size_t>(most));
  if (!parts) return parts.diags();
  parts_ = std::move(*parts);
  return Done{};
}

Result<DeviceBench::Entry> DeviceBench::loaded(const Gemm& options, double deadline) {
  Entry out;
  const auto launch = kernels::GemmLaunch::of(options, options.m, options.n, gpu_.multiprocessors);
  auto first = step(kernels::gemm(options), launch.grid, options, false, deadline);
  if (!first) return first.diags();
  out.steps.push_back(std::move(*first));
  if (launch.sum.count() == 0) return out;
  // Short to assemble, and without it the first one is of no use.
  auto second = step(kernels::gemm_sum(options), launch.sum, options, true, always);
  if (!second) return second.diags();
  out.steps.push_back(std::move(*second));
  return out;
}

// The driver assembles one kernel at a time, in 0.1 to 0.3 s, and LLVM takes a fifth of that: of
// many threads nearly all wait for the driver, for longer than the search may last. So each looks
// at the time again when it is its turn.
Result<DeviceBench::Ready> DeviceBench::ready(const Kernel& kernel, double deadline) {
  Diags no_time;
  no_time.add({.level = Level::Note,
               .id = "time-limit"_rule.id,
               .place = {},
               .message = "no time was left to compile it",
               .source = {}});
  if (seconds() > deadline) return no_time;
  const auto compiled = compile(kernel, device_.arch(), cache_);
  if (!compiled) return compiled.diags();
  const std::lock_guard turn(assembling_);
  if (seconds() > deadline) return no_time;
  return loader_.load(*compiled);
}

// The parameters are those of kernels::gemm() and kernels::gemm_sum(), with constant sizes.
Result<DeviceBench::Step> DeviceBench::step(const Kernel& kernel, Dim3 grid, const Gemm& options,
                                            bool sum, double deadline) {
  auto loaded = ready(kernel, deadline);
  if (!loaded) return loaded.diags();
  const Compiled& compiled = (*loaded)->compiled;
  Step out{*loaded,
           {.grid = grid,
            .block = {static_cast<std::uint32_t>(compiled.block)},
            .dynamic_shared = static_cast<std::uint32_t>(compiled.dynamic_shared),
            .programmatic = compiled.target.has(Feature::dependent_launch)},
           {}};
  for (std::size_t set = 0; set < sets_; ++set) {
    Arguments arguments;
    if (sum) arguments.add(parts_.address());
    else arguments.add(a(set)).add(b(set));
    if (sum || options.splits == 1) {
      arguments.add(c(set));
      add_epilogue(arguments);
    }
    if (!sum && (options.splits > 1 || options.stream_blocks)) arguments.add(parts_.address());
    auto all = arguments_of(compiled, arguments);
    if (!all) return all.diags();
    out.arguments.push_back(std::move(*all));
  }
  return out;
}

// In the order of kernels::Epilogue.
void DeviceBench::add_epilogue(Arguments& arguments) const {
  const kernels::Epilogue& with = product_.epilogue;
  if (with.alpha) arguments.add(bits(product_.c) == 8 ? 1.0f / 64 : 1.0f);
  if (with.beta) arguments.add(1.0f);
  for (const bool vector : {with.row_scales, with.column_scales, with.bias})
    if (vector) arguments.add(vectors_.address());
  if (with.residual) arguments.add(residual_.address());
}

Status DeviceBench::launch(Entry& entry, std::size_t set) {
  for (Step& each : entry.steps) {
    LoadedKernel kernel = each.kernel->kernel;
    if (const Status done = kernel.launch(each.launch, each.arguments[set], &*stream_); !done)
      return done;
  }
  return Done{};
}

// All of C up to some megabytes, else its first and its last rows. Its bits are ones before (with
// beta, which reads them, zeros), so that what a candidate does not write differs.
Result<std::vector<std::byte>> DeviceBench::result(std::size_t candidate) {
  const std::size_t at = a_bytes_ + b_bytes_,
                    whole = static_cast<std::size_t>(std::int64_t{product_.m} * product_.n *
                                                     bits(product_.c) / 8),
                    some = std::min(whole, fewest_bytes);
  auto first = matrices_.part(at, some), last = matrices_.part(at + whole - some, some);
  if (!first || !last) return (first ? last : first).diags();
  for (Buffer* each : {&*first, &*last})
    if (const Status done = each->fill(product_.epilogue.beta ? 0 : 0xFF); !done)
      return done.diags();
  if (const Status done = launch(entries_[candidate], 0); !done) return done.diags();
  if (const Status done = stream_->synchronize(); !done) return done.diags();
  std::vector<std::byte> out(whole > some ? 2 * some : some);
  if (const Status done = first->read(std::span(out).first(some)); !done) return done.diags();
  if (whole > some)
    if (const Status done = last->read(std::span(out).last(some)); !done) return done.diags();
  return out;
}

Status DeviceBench::some(Entry& entry, int count) {
  for (int i = 0; i < count; ++i)
    if (const Status done = launch(entry, sets_ - timed_sets() + next_++ % timed_sets()); !done)
      return done;
  return Done{};
}

// Short products run in a graph, if the driver has graphs: else the host, which launches them, is
// measured too. It has all sets, so that one after the other does not find its operands in the
// cache.
Status DeviceBench::prepare(Entry& entry) {
  entry.products = static_cast<int>(std::clamp(enough_us / entry.us, 1.0, double{most_launches}));
  if (device_.emulated() || entry.us > short_us) return Done{};
  const int products = std::max(entry.products, static_cast<int>(timed_sets()));
  auto stream = DeviceAccess::engine(device_).adopt_stream(stream_->handle());
  if (!stream) return stream.diags();
  auto batch = (*stream)->captured([&] { return some(entry, products); });
  if (!batch) return batch.diags();
  entry.batch = std::move(*batch);
  if (entry.batch) entry.products = products;
  return Done{};
}

// Microseconds of a product, over so many batches, behind another one: the GPU does not wait for
// the host.
Result<double> DeviceBench::timed(Entry& entry, int batches) {
  auto begin = device_.event(), end = device_.event();
  if (!begin || !end) return (begin ? end : begin).diags();
  const auto batch = [&] { return entry.batch ? entry.batch() : some(entry, entry.products); };
  if (const Status done = batch(); !done) return done.diags();
  if (const Status done = begin->record(&*stream_); !done) return done.diags();
  for (int i = 0; i < batches; ++i)
    if (const Status done = batch(); !done) return done.diags();
  if (const Status done = end->record(&*stream_); !done) return done.diags();
  const auto ms = end->milliseconds_since(*begin);
  if (!ms) return ms.diags();
  return *ms * 1000 / (batches * entry.products);
}

// The first sample of many candidates is short; later ones tell the best apart.
Result<double> DeviceBench::sample(std::size_t candidate) {
  Entry& entry = entries_[candidate];
  if (entry.products > 0) {
    if (device_.emulated()) return timed(entry, 1);
    constexpr double too_short_us = 30;  // of a product, to reach the power limit
    if (entry.us > too_short_us) rest_before(entry.us * entry.products);
    return timed(entry, 3);
  }
  entry.products = 1;
  const auto rough = timed(entry, 1);
  if (!rough) return rough;
  entry.us = std::max(*rough, 0.5);
  if (const Status prepared = prepare(entry); !prepared) return prepared.diags();
  return timed(entry, 1);
}

}  // namespace tartan::TARTAN_ABI::detail
