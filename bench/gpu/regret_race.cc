// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/regret_race.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include "bench/gpu/figures.h"
#include "library/rest.h"
#include "tartan/launch.h"

namespace gpu {

using namespace tartan;

namespace {

constexpr std::size_t apart = 4096;                     // bytes between matrices
constexpr std::size_t rotated = std::size_t{96} << 20;  // of the sets of a graph, at least
constexpr std::size_t most_sets = 64, fewest_launches = 20;
constexpr double short_us = 150;      // below that: a graph
constexpr double enough_us = 1500;    // of a measurement
constexpr std::size_t sample = 4096;  // bytes

std::size_t bytes_of(int rows, int cols, Type type) {
  const auto bits_each = static_cast<std::size_t>(bits(type));
  const std::size_t all =
      static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) * bits_each / 8;
  return (all + apart - 1) / apart * apart;
}

}  // namespace

Buffer& Pools::of(Type type) {
  Buffer& pool = random_[type];
  if (pool.size()) return pool;
  pool = must(session_.device.allocate(bytes_));
  constexpr std::size_t block = std::size_t{16} << 20;
  const auto some =
      random_elements(type, std::min(block, bytes_) * 8 / static_cast<std::size_t>(bits(type)), 7);
  for (std::size_t at = 0; at < bytes_; at += some.size())
    must(pool.write(std::as_bytes(std::span(some).first(std::min(some.size(), bytes_ - at))), at));
  return pool;
}

Buffer& Pools::results() {
  if (!results_.size()) results_ = must(session_.device.allocate(bytes_));
  return results_;
}

Buffer& Pools::parts() {
  if (!parts_.size()) parts_ = must(session_.device.allocate(bytes_));
  return parts_;
}

RegretRace::RegretRace(Session& session, const Peers& peers, Pools& pools, const Product& product,
                       const RaceOptions& options)
    : session_(session),
      peers_(peers),
      pools_(pools),
      product_(product),
      options_(options),
      a_bytes_(bytes_of(product.m, product.k, product.a)),
      b_bytes_(bytes_of(product.k, product.n, product.b)),
      c_bytes_(bytes_of(product.m, product.n, product.c)),
      alpha_(bits(product.c) == 8 ? 1.0f / 256 : 1) {
  const std::size_t fit = std::min(pools.bytes() / (a_bytes_ + b_bytes_), pools.bytes() / c_bytes_);
  const std::size_t wanted = rotated / (a_bytes_ + b_bytes_ + c_bytes_) + 1;
  sets_ = std::clamp<std::size_t>(std::min(fit, wanted), 1, most_sets);
}

Operands RegretRace::operands(std::size_t set) const {
  const std::uint64_t inputs = pools_.of(product_.a).address() + set * (a_bytes_ + b_bytes_);
  return {inputs, inputs + a_bytes_, pools_.results().address() + set * c_bytes_};
}

std::vector<Measured> RegretRace::run(const std::vector<RegretKernel*>& kernels,
                                      const Loader& loader) {
  add_peers();
  for (RegretKernel* each : kernels)
    if (each && RegretKernels::load(loader, *each)) add(*each);
  race();
  std::vector<Measured> out;
  for (const auto& each : entries_) out.push_back(each->measured);
  return out;
}

void RegretRace::add_peers() {
  const kernels::Gemm plain = options_of({}, product_);
  const auto entered = [&](const std::string& name, const Multiply& multiply) {
    if (multiply)
      enter(name, true, [this, multiply](std::size_t set) { return multiply(operands(set)); });
  };
  entered("cuBLAS", peers_.cublas.multiply(plain, alpha_));
  int number = 0;
  for (const Multiply& each : peers_.lt.proposals(plain, alpha_, options_.proposals))
    entered("cuBLASLt " + std::to_string(number++), each);
}

void RegretRace::add(RegretKernel& kernel) {
  const bool split = kernel.options.splits > 1, partial = kernel.has_sum(),
             dynamic = kernel.options.m == 0;
  const Product& product = product_;
  struct Prepared {
    std::vector<Arguments> first, second;
    tartan::Launch gemm, sum;
  };
  auto prepared = std::make_shared<Prepared>();
  for (std::size_t set = 0; set < sets_; ++set) {
    const Operands at = operands(set);
    Arguments first, second;
    if (dynamic) first.add(product.m).add(product.n).add(product.k);
    first.add(at.a).add(at.b);
    if (!split) first.add(at.c);
    if (bits(product.c) == 8 && !split) first.add(alpha_);
    if (partial) first.add(pools_.parts().address());
    prepared->first.push_back(must(arguments_of(kernel.compiled, first)));
    if (!partial) continue;
    if (dynamic) second.add(product.m).add(product.n);
    if (dynamic && !split) second.add(product.k);
    second.add(pools_.parts().address()).add(at.c);
    if (bits(product.c) == 8) second.add(alpha_);
    prepared->second.push_back(must(arguments_of(kernel.sum_compiled, second)));
  }
  const auto launch_of = [](const Compiled& compiled, Dim3 grid, bool alone = false) {
    return tartan::Launch{.grid = grid,
                          .block = {static_cast<unsigned>(compiled.block)},
                          .dynamic_shared = static_cast<unsigned>(compiled.dynamic_shared),
                          .programmatic = !alone && compiled.target.arch.sm >= 90};
  };
  const int found = session_.driver.multiprocessors();
  prepared->gemm = launch_of(kernel.compiled, grid_of(kernel.config, product, found ? found : 132),
                             options_.alone);
  if (partial)
    prepared->sum = launch_of(kernel.sum_compiled, {sum_blocks_of(kernel.config, product)});
  enter(kernel.config.text, false, [this, &kernel, prepared](std::size_t set) {
    auto status = kernel.kernel->launch(prepared->gemm, prepared->first[set], &session_.stream);
    if (status && kernel.has_sum())
      status = kernel.sum->launch(prepared->sum, prepared->second[set], &session_.stream);
    if (!status) std::cerr << kernel.config.text << ":\n" << status.diags().text();
    return bool(status);
  });
}

// One measurement of a contestant, if it starts.
void RegretRace::enter(std::string name, bool peer, Launch launch) {
  auto entry = std::make_unique<Entry>();
  entry->measured.name = std::move(name), entry->peer = peer, entry->launch = std::move(launch);
  if (!starts(*entry)) return;
  const auto once = [&] {
    return 1e6 * seconds(
                     session_, [&] { (void)entry->launch(1 % sets_); }, 1);
  };
  // Launching takes the host some of the time of a rough measurement.
  constexpr double launching = 15, never_rough = 60;
  constexpr int repeats = 3;  // of a launch that another process, or the host, may have delayed
  const auto hopeless = [&](double us) {
    return best_ > 0 && us > never_rough && us - launching > options_.hopeless * best_;
  };
  double rough = once();
  for (int i = 0; i < repeats && hopeless(rough); ++i) rough = std::min(rough, once());
  if (hopeless(rough)) {
    entry->measured.us = rough;
  } else {
    prepare(*entry, rough);
    entry->samples.push_back(batch_us(*entry, 1));
    entry->measured.us = entry->samples.back(), entry->measured.rounds = 1;
    if (best_ == 0 || entry->measured.us < best_) best_ = entry->measured.us;
  }
  entries_.push_back(std::move(entry));
}

// Launches once, and compares samples of C with the first contestant's.
bool RegretRace::starts(Entry& entry) {
  clear_samples();
  if (!entry.launch(0)) return false;
  must(session_.device.synchronize());
  auto now = sampled();
  if (reference_.empty()) reference_ = std::move(now);
  else entry.measured.differs = compare(product_.c, now, reference_).largest;
  return true;
}

namespace {

// Where samples of so many bytes begin: the first, the last, and between.
std::vector<std::size_t> places(std::size_t bytes) {
  if (bytes <= sample) return {0};
  const std::size_t last = (bytes - sample) / 16 * 16;
  return {0, last / 3 / 16 * 16, last / 5 * 4 / 16 * 16, last};
}

}  // namespace

void RegretRace::clear_samples() {
  const std::vector<std::uint8_t> ones(sample, 0xFF);
  const std::size_t bytes = static_cast<std::size_t>(product_.m) *
                            static_cast<std::size_t>(product_.n) *
                            static_cast<std::size_t>(bits(product_.c)) / 8;
  for (const std::size_t at : places(bytes))
    must(pools_.results().write(std::as_bytes(std::span(ones).first(std::min(bytes, sample))), at));
}

std::vector<std::uint8_t> RegretRace::sampled() {
  const std::size_t bytes = static_cast<std::size_t>(product_.m) *
                            static_cast<std::size_t>(product_.n) *
                            static_cast<std::size_t>(bits(product_.c)) / 8;
  std::vector<std::uint8_t> out;
  for (const std::size_t at : places(bytes)) {
    std::vector<std::uint8_t> some(std::min(bytes, sample));
    must(pools_.results().read(std::as_writable_bytes(std::span(some)), at));
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

// A batch: a graph of short products, else a few launches.
void RegretRace::prepare(Entry& entry, double rough) {
  const auto some = [this, &entry](std::size_t count) {
    return [this, &entry, count] {
      for (std::size_t i = 0; i < count; ++i) (void)entry.launch(i % sets_);
    };
  };
  if (rough < short_us) {
    const std::size_t count = std::max(sets_, fewest_launches);
    entry.products = static_cast<int>(count);
    entry.batch = session_.driver.graph(session_.stream, some(count));
    if (entry.batch) entry.batch();  // the first one also uploads
  }
  if (entry.batch) return;
  const auto count = static_cast<std::size_t>(std::clamp(enough_us / rough, 1.0, 10.0));
  entry.products = static_cast<int>(count), entry.batch = some(count);
}

double RegretRace::batch_us(Entry& entry, int batches) {
  return 1e6 * seconds(session_, entry.batch, batches) / entry.products;
}

// The libraries and the best configurations, in shuffled rounds.
void RegretRace::race() {
  std::vector<Entry*> ours, order;
  for (const auto& each : entries_) {
    if (each->measured.rounds == 0) continue;
    if (each->peer) order.push_back(each.get());
    else ours.push_back(each.get());
  }
  const auto faster = [](const Entry* a, const Entry* b) {
    return a->measured.us < b->measured.us;
  };
  std::sort(ours.begin(), ours.end(), faster), std::sort(order.begin(), order.end(), faster);
  // One sample does not tell which library is the fastest: it is of a cool GPU.
  constexpr double near = 1.1;
  constexpr std::size_t fewest = 3, most = 5;
  while (order.size() > most ||
         (order.size() > fewest && order.back()->measured.us > near * order.front()->measured.us))
    order.pop_back();
  if (std::ssize(ours) > options_.finalists)
    ours.resize(static_cast<std::size_t>(options_.finalists));
  order.insert(order.end(), ours.begin(), ours.end());
  std::mt19937 random(1);
  for (int round = 0; round < options_.rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (Entry* each : order) {
      tartan::detail::rest_before(each->samples.front() * each->products);
      each->batch();
      each->samples.push_back(batch_us(*each, 2));
    }
  }
  for (Entry* each : order)
    if (options_.rounds > 0) {
      each->measured.us = median({each->samples.begin() + 1, each->samples.end()});
      each->measured.rounds = options_.rounds + 1;
    }
}

nlohmann::json to_json(const std::vector<Measured>& all) {
  nlohmann::json us = nlohmann::json::object(), rough = nlohmann::json::array(), differs = us,
                 raced = rough;
  for (const Measured& each : all) {
    us[each.name] = std::round(each.us * 1000) / 1000;
    if (each.rounds == 0) rough.push_back(each.name);
    if (each.rounds > 1) raced.push_back(each.name);
    if (each.differs > 0) differs[each.name] = each.differs;
  }
  return {{"us", us}, {"rough", rough}, {"raced", raced}, {"differs", differs}};
}

}  // namespace gpu
