// SPDX-License-Identifier: Apache-2.0
// The GEMM kernel on a GPU beside cuBLAS and cuBLASLt (where they are found) and beside the ceiling
// of mma.sync: see --help, and gpu/measure.h for how it measures. Also compares the results.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "bench/gpu/cublas.h"
#include "bench/gpu/elements.h"
#include "bench/gpu/gemm_config.h"
#include "bench/gpu/measure.h"

using namespace tartan;

namespace {

struct Words {
  std::vector<std::string> sizes, configs;
  std::string type, out, majors = "rc", device = "cuda", json, svg;
  int rounds = 5, proposals = 8, graph = -1;
  bool no_ceiling = false;
};

constexpr int usual_graph = 40;               // products
constexpr double short_operations = 4e10;     // of a product that is measured in graphs
constexpr std::size_t footprint = 256 << 20;  // bytes that the sets of a graph have, if it can be

// A, B and C so many times over, so that no product finds the last one's in the cache.
class Matrices {
 public:
  Matrices(Device& device, const gpu::Product& product, int most_sets) {
    const auto size = [](int rows, int cols, Type type) {
      return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) *
             static_cast<std::size_t>(bits(type)) / 8;
    };
    const std::size_t bytes[] = {size(product.m, product.k, product.a),
                                 size(product.k, product.n, product.b),
                                 size(product.m, product.n, product.c)};
    const std::size_t set = bytes[0] + bytes[1] + bytes[2];
    const auto sets = std::clamp<std::size_t>((footprint + set - 1) / set, 1,
                                              static_cast<std::size_t>(most_sets));
    const auto a = gpu::random_elements(product.a, bytes[0] * 8 / bits(product.a), 7),
               b = gpu::random_elements(product.b, bytes[1] * 8 / bits(product.b), 8);
    for (std::size_t i = 0; i < sets; ++i) {
      for (const std::size_t each : bytes) buffers_.push_back(gpu::must(device.allocate(each)));
      gpu::must(this->a(i).write(a)), gpu::must(this->b(i).write(b));
    }
  }
  std::size_t sets() const { return buffers_.size() / 3; }
  Buffer& a(std::size_t set) { return buffers_[3 * set]; }
  Buffer& b(std::size_t set) { return buffers_[3 * set + 1]; }
  Buffer& c(std::size_t set) { return buffers_[3 * set + 2]; }
  gpu::Operands operands(std::size_t set) {
    return {a(set).address(), b(set).address(), c(set).address()};
  }

 private:
  std::vector<Buffer> buffers_;
};

// A configuration, compiled: one launch, or two where parts are added up.
class Gemm {
 public:
  static Result<Gemm> make(gpu::Session& session, const gpu::Config& config,
                           const gpu::Product& product, float alpha, Matrices& matrices) {
    const kernels::Gemm options = gpu::options_of(config, product);
    const int processors = session.driver.multiprocessors();
    auto first = gpu::Runner::make(session.device, kernels::gemm(options),
                                   gpu::grid_of(config, product, processors ? processors : 1));
    if (!first) return first.diags();
    Gemm out(std::move(*first));
    const unsigned blocks = gpu::sum_blocks_of(config, product);
    if (blocks > 0) {
      auto second = gpu::Runner::make(session.device, kernels::gemm_sum(options), {blocks});
      if (!second) return second.diags();
      out.sum_.emplace(std::move(*second));
      const auto elements = options.workspace_elements(product.m, product.n);
      auto parts = session.device.allocate(static_cast<std::size_t>(elements) *
                                           static_cast<std::size_t>(bits(options.accumulator)) / 8);
      if (!parts) return parts.diags();
      out.parts_ = *parts;
    }
    for (std::size_t set = 0; set < matrices.sets(); ++set)
      if (auto status = out.add(config, product, alpha, matrices, set); !status)
        return status.diags();
    return out;
  }

  void launch(const Stream& stream, std::size_t set) {
    gemm_.launch(stream, set);
    if (sum_) sum_->launch(stream, set);
  }
  double compile_ms() const { return gemm_.compile_ms() + (sum_ ? sum_->compile_ms() : 0); }
  int shared_bytes() const { return gemm_.shared_bytes(); }

 private:
  explicit Gemm(gpu::Runner gemm) : gemm_(std::move(gemm)) {}

  // The parameters in the order of kernels::gemm() and kernels::gemm_sum().
  Status add(const gpu::Config& config, const gpu::Product& product, float alpha,
             Matrices& matrices, std::size_t set) {
    const bool split = config.gemm.splits > 1, stream = config.gemm.stream_blocks > 0;
    const auto finish = [&](Arguments& arguments) {
      arguments.add(matrices.c(set));
      if (bits(product.c) == 8) arguments.add(alpha);
    };
    Arguments first, second;
    if (config.dynamic) first.add(product.m).add(product.n).add(product.k);
    first.add(matrices.a(set)).add(matrices.b(set));
    if (!split) finish(first);
    if (split || stream) first.add(parts_);
    if (auto status = gemm_.add(first); !status || !sum_) return status;
    if (config.dynamic) second.add(product.m).add(product.n);
    if (config.dynamic && stream) second.add(product.k);
    second.add(parts_);
    finish(second);
    return sum_->add(second);
  }

  gpu::Runner gemm_;
  std::optional<gpu::Runner> sum_;
  Buffer parts_;
};

struct Peers {
  gpu::Cublas cublas;
  gpu::CublasLt lt;
};

// A product's race: who takes part, on which matrices.
class Contest {
 public:
  Contest(gpu::Session& session, Peers& peers, const gpu::Product& product, const Words& words)
      : session_(session),
        peers_(peers),
        product_(product),
        words_(words),
        graph_(words.graph >= 0                          ? words.graph
               : product.operations() < short_operations ? usual_graph
                                                         : 0),
        alpha_(bits(product.c) == 8 ? 1.0f / 256 : 1),
        matrices_(session.device, product, std::max(graph_, 1)) {}

  void run(const std::vector<gpu::Config>& configs) {
    fmt::print("\n{}\n", product_.text());
    add_peers();
    for (const gpu::Config& config : configs) add(config);
    auto ceiling =
        words_.no_ceiling ? std::nullopt : gpu::Ceiling::make(session_, ceiling_instruction());
    if (ceiling) contestants_.push_back(ceiling->contestant(session_, "mma.sync"));
    gpu::measure(session_, contestants_, words_.rounds);
    const std::string how = graph_ ? fmt::format("{} launches in a graph, {} sets of matrices",
                                                 graph_, matrices_.sets())
                                   : "a launch";
    gpu::report(session_, product_.text(), how, contestants_);
  }

 private:
  using Launch = std::function<void(std::size_t set)>;

  std::string ceiling_instruction() const {
    const int k = 256 / bits(product_.a);
    return fmt::format("mma.sync.aligned.m16n8k{0}.row.col.{1}.{2}.{3}.{1}", k,
                       info(product_.a).floating ? "f32" : "s32", name(multiplied(product_.a)),
                       name(multiplied(product_.b)));
  }
  static Type multiplied(Type type) { return type == f32 ? tf32 : type; }

  // Warms up, and takes part by single launches or by a graph of them.
  void enter(std::string name, bool peer, const Launch& launch, std::string note) {
    gpu::Contestant entry;
    entry.figure.name = std::move(name), entry.figure.note = std::move(note);
    entry.figure.peer = peer, entry.figure.operations = product_.operations();
    entry.launch = [launch] { launch(0); };
    if (graph_) {
      const auto all = [=, this] {
        for (int i = 0; i < graph_; ++i) launch(static_cast<std::size_t>(i) % matrices_.sets());
      };
      entry.launch = session_.driver.graph(session_.stream, all);
      entry.products = graph_;
      if (!entry.launch) {
        entry.figure.note += entry.figure.note.empty() ? "no graph" : "; no graph";
        entry.launch = all;
      }
    }
    contestants_.push_back(std::move(entry));
  }

  std::vector<std::uint8_t> result() {
    gpu::must(session_.device.synchronize());
    return gpu::must(matrices_.c(0).read_all<std::uint8_t>());
  }

  // What follows is compared with what `name` computed.
  void take_reference(const std::string& name) {
    if (!reference_.empty()) return;
    reference_ = result(), reference_name_ = name;
  }

  void add_peers() {
    const kernels::Gemm plain = gpu::options_of({}, product_);
    if (auto multiply = peers_.cublas.multiply(plain, alpha_);
        multiply && multiply(matrices_.operands(0)))
      add_peer("cuBLAS", multiply);
    const auto proposals = peers_.lt.proposals(plain, alpha_, words_.proposals);
    const gpu::Multiply* best = nullptr;
    double least = 0;
    for (const gpu::Multiply& each : proposals) {
      if (!each(matrices_.operands(0))) continue;
      const double time = gpu::seconds(
          session_, [&] { (void)each(matrices_.operands(0)); }, 10);
      if (!best || time < least) best = &each, least = time;
    }
    if (best) {
      fmt::print("cuBLASLt: the fastest of {} proposals is number {}\n", proposals.size(),
                 best - proposals.data() + 1);
      (void)(*best)(matrices_.operands(0));
      add_peer("cuBLASLt", *best);
    }
  }

  void add_peer(const std::string& name, const gpu::Multiply& multiply) {
    std::string note = reference_.empty() ? "" : difference().text(reference_name_);
    take_reference(name);
    enter(
        name, true, [this, multiply](std::size_t set) { (void)multiply(matrices_.operands(set)); },
        std::move(note));
  }

  gpu::Difference difference() { return gpu::compare(product_.c, result(), reference_); }

  // What does not compile or start does not take part.
  void add(const gpu::Config& config) {
    auto made = Gemm::make(session_, config, product_, alpha_, matrices_);
    if (!made) {
      std::cout.flush();
      std::cerr << config.text << ":\n" << made.diags().text();
      return;
    }
    Gemm& gemm = runners_.emplace_back(std::move(*made));
    gpu::must(matrices_.c(0).fill(0xFF));
    gemm.launch(session_.stream, 0);
    const bool first = reference_.empty();
    take_reference(config.text);
    std::string note = first ? "" : difference().text(reference_name_);
    fmt::print("{}: {:.1f} ms from description to PTX, {} KB shared\n", config.text,
               gemm.compile_ms(), gemm.shared_bytes() / 1024);
    enter(
        config.text, false, [this, &gemm](std::size_t set) { gemm.launch(session_.stream, set); },
        std::move(note));
  }

  gpu::Session& session_;
  Peers& peers_;
  const gpu::Product product_;
  const Words& words_;
  const int graph_;  // products; 0: single launches
  const float alpha_;
  Matrices matrices_;
  std::list<Gemm> runners_;
  std::vector<gpu::Contestant> contestants_;
  std::vector<std::uint8_t> reference_;
  std::string reference_name_;
};

[[noreturn]] void refuse(std::string_view option, std::string_view word,
                         std::string_view expected) {
  std::cerr << fmt::format("{} {}: {} is expected\n", option, word, expected);
  std::exit(2);
}

// The products that are asked for; where none is, those of the project's tables.
std::vector<gpu::Product> products(const Words& words) {
  const bool usual = words.sizes.empty() && words.type.empty() && words.majors == "rc";
  std::vector<gpu::Product> out;
  if (usual) out = gpu::usual_products();
  std::vector<std::string> sizes = words.sizes;
  if (sizes.empty() && !usual) sizes = {"4096", "8192"};
  for (const std::string& size : sizes) {
    gpu::Product& product = out.emplace_back();
    if (!gpu::read_size(size, product)) refuse("--size", size, "N or MxNxK");
    if (!words.type.empty() && !gpu::read_type(words.type, product))
      refuse("--type", words.type, "an element type such as bf16, or AxB such as e4m3xe5m2");
    if (!gpu::read_majors(words.majors, product))
      refuse("--major", words.majors, "rr, rc, cr or cc");
  }
  for (gpu::Product& product : out)
    if (const auto c = parse_type(words.out)) product.c = *c;
    else if (!words.out.empty()) refuse("--out", words.out, "an element type such as f32");
  return out;
}

std::vector<gpu::Config> read_configs(const Words& words) {
  std::vector<gpu::Config> out;
  for (const std::string& word : words.configs) {
    const auto config = gpu::read_config(word);
    if (!config) refuse("--tile", word, "MxNxK:WMxWN:STAGES[:PRODUCERS][:NAME[=NUMBER]]...");
    out.push_back(*config);
  }
  return out;
}

void add_options(CLI::App& app, Words& words) {
  app.add_option("--size", words.sizes,
                 "N (a cube) or MxNxK; several; default: with no size and "
                 "no type the project's tables");
  app.add_option("--type", words.type, "f16, bf16, tf32, f32, s8, e4m3, e5m2, or of A and B: AxB");
  app.add_option("--out", words.out, "Elements of C; default: f16, bf16, f32, s32; of fp8 bf16");
  app.add_option("--major", words.majors, "How A and B lie: r by rows, c by columns")
      ->capture_default_str();
  app.add_option("--tile", words.configs,
                 "MxNxK:WMxWN:STAGES[:PRODUCERS] and then any of\n" + gpu::config_help());
  app.add_option("--rounds", words.rounds, "Rounds of the race")->capture_default_str();
  app.add_option("--graph", words.graph,
                 "Products in a graph; 0: none; default: 40 of products below 40 G operations");
  app.add_option("--proposals", words.proposals, "Algorithms of cuBLASLt of which the best runs")
      ->capture_default_str();
  app.add_flag("--no-ceiling", words.no_ceiling, "Leave out the ceiling of mma.sync");
  app.add_option("--device", words.device, "cuda or emulator")->capture_default_str();
  app.add_option("--json", words.json, "Write all figures into this file");
  app.add_option("--svg", words.svg, "Draw them into this one");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Products of matrices on a GPU beside cuBLAS and cuBLASLt"};
  Words words;
  add_options(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto configs = read_configs(words);
  const auto all = products(words);
  gpu::Session session(argc, argv, words.device);
  Peers peers{gpu::Cublas(session.device, session.stream),
              gpu::CublasLt(session.device, session.stream)};
  if (peers.cublas.found()) session.run.libraries.emplace_back("cuBLAS", peers.cublas.version());
  if (peers.lt.found()) session.run.libraries.emplace_back("cuBLASLt", peers.lt.version());
  for (const gpu::Product& product : all)
    Contest(session, peers, product, words)
        .run(configs.empty() ? gpu::usual_configs(product) : configs);
  return gpu::write(session.run, words.json, words.svg) ? 0 : 1;
}
