// SPDX-License-Identifier: Apache-2.0
#include "kernels/registry/product_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "kernels/registry/given.h"
#include "tartan/kernels/tuning.h"

namespace tartan::TARTAN_ABI::builtins {
namespace {

using kernels::Activation;
using kernels::BlockScaled;
using kernels::Epilogue;
using kernels::Gemm;
using kernels::Grouping;
using kernels::KGroupedGemm;
using kernels::ScaledGemm;

// A word of --epilogue.
struct EpiloguePart {
  std::string_view name;
  void (*set)(Epilogue&);
};

constexpr EpiloguePart epilogue_parts[] = {
    {"alpha", [](Epilogue& e) { e.alpha = true; }},
    {"beta", [](Epilogue& e) { e.beta = true; }},
    {"row-scales", [](Epilogue& e) { e.row_scales = true; }},
    {"column-scales", [](Epilogue& e) { e.column_scales = true; }},
    {"bias", [](Epilogue& e) { e.bias = true; }},
    {"relu", [](Epilogue& e) { e.activation = Activation::relu; }},
    {"gelu", [](Epilogue& e) { e.activation = Activation::gelu; }},
    {"silu", [](Epilogue& e) { e.activation = Activation::silu; }},
    {"sigmoid", [](Epilogue& e) { e.activation = Activation::sigmoid; }},
    {"residual", [](Epilogue& e) { e.residual = true; }},
};

std::string epilogue_words() {
  std::vector<std::string_view> names;
  for (const EpiloguePart& part : epilogue_parts) names.push_back(part.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

class Reader {
 public:
  explicit Reader(const ProductWords& words) : words_(words) {}

  Result<BlockScaled> read_block_scaled() {
    BlockScaled out;
    out.a = type("--a", words_.a, type("--type", words_.type, Type::e4m3));
    out.b = type("--b", words_.b, type("--type", words_.type, Type::e4m3, false));
    out.c = type("--c", words_.c, f32);
    out.scale = type("--scale", words_.scale, Type::ue8m0);
    if (!TypeSet{Type::ue8m0, Type::ue4m3}.has(out.scale))
      wrong("--scale", words_.scale, "ue8m0 or ue4m3");
    out.kind = kind();
    const auto rest = read();  // common to both
    if (!rest) return diags_;
    out.m = rest->m, out.n = rest->n, out.k = rest->k;
    out.multiple = rest->multiple, out.multiple_c = rest->multiple_c, out.stages = rest->stages;
    out.tile = rest->tile;
    if (out.tile.k == 0) out.tile.k = BlockScaled{}.tile.k;
    out.epilogue = rest->epilogue;
    return out;
  }

  Result<ScaledGemm> read_scaled_gemm(const ScaledWords& own, const Request& request) {
    ScaledGemm out;
    out.c = type("--c", words_.c, bf16);
    out.grouping = grouping(own.grouping);
    const auto rest = read();  // common to both
    if (!rest) return diags_;
    put_common(*rest, request, out);
    out.share_a = own.share_a, out.cluster_splits = rest->cluster_splits;
    out.parts_n = out.tile.n > 160 ? 2 : 1;
    out.blocks_k = number("--blocks-k", own.blocks_k, 1, 4), out.overlap = out.blocks_k > 1;
    if (!diags_.ok()) return diags_;
    return out;
  }

  Result<KGroupedGemm> read_k_grouped_gemm(const ScaledWords& scaled, bool accumulate,
                                           const Request& request) {
    KGroupedGemm out;
    out.accumulate = accumulate;
    const auto rest = read();  // common to both
    if (!rest) return diags_;
    put_common(*rest, request, out);
    out.share_a = scaled.share_a;
    return out;
  }

  Result<Type> read_type() {
    const Type out = type("--type", words_.type, f16);
    if (!diags_.ok()) return diags_;
    return out;
  }

  Result<Gemm> read() {
    Gemm out;
    out.m = number("--m", words_.m, 0), out.n = number("--n", words_.n, 0);
    out.k = number("--k", words_.k, 0);
    out.multiple = number("--multiple", words_.multiple, 1);
    out.multiple_c = number("--multiple-c", words_.multiple_c, 1);
    out.stages = number("--stages", words_.stages, 1, 256);
    out.splits = number("--splits", words_.splits, 1, kernels::most_splits);
    out.stream_blocks =
        number("--stream-blocks", words_.stream_blocks, 0, kernels::most_stream_blocks);
    out.producers = number("--producers", words_.producers, 0, 31);
    out.promote = number("--promote", words_.promote, 0);
    out.cluster = number("--cluster", words_.cluster, 1);
    out.cluster_columns = number("--cluster-columns", words_.cluster_columns, 1, 8);
    out.group = number("--group", words_.group, 1);
    out.cluster_splits = number("--cluster-splits", words_.cluster_splits, 1, 8);
    out.persistent = words_.persistent;
    out.swap = words_.swap, out.direct = words_.direct;
    out.batched = words_.batched;
    out.a = type("--a", words_.a, type("--type", words_.type, f16));
    out.b = type("--b", words_.b, type("--type", words_.type, f16, false));
    if (const auto both = parse_type(words_.type); both && *both != out.a && *both != out.b)
      wrong("--type", words_.type, "no --a and --b beside it, which replace it");
    const bool integers = !info(out.a).floating;
    out.accumulator = type("--accumulator", words_.accumulator,
                           integers       ? s32
                           : out.a == f64 ? f64
                                          : f32);
    out.c = type("--c", words_.c, out.accumulator);
    out.a_major = major("--a-major", words_.a_major),
    out.b_major = major("--b-major", words_.b_major);
    out.bit_op = bit_op();
    out.tile = tile(out.tile);
    out.tile.products = number("--products", words_.products, 1, 8);
    read_epilogue(out.epilogue);
    if (!words_.bit_op.empty() && out.a != Type::b1)
      wrong("--bit-op", words_.bit_op, "--type b1, the type that --bit-op applies to");
    if (diags_.ok()) check_sizes(out);
    if (!diags_.ok()) return diags_;
    return out;
  }

 private:
  // To the options of another product, whose defaults are its own.
  template <typename Options>
  void put_common(const Gemm& rest, const Request& request, Options& out) const {
    out.m = rest.m, out.n = rest.n, out.k = rest.k;
    out.cluster = rest.cluster, out.group = rest.group;
    if (request.gives("stages")) out.stages = rest.stages;
    if (words_.tile.empty()) return;
    out.tile.m = rest.tile.m, out.tile.n = rest.tile.n;
    if (rest.tile.k) out.tile.k = rest.tile.k;
    if (words_.warps.empty()) return;
    out.tile.warps_m = rest.tile.warps_m, out.tile.warps_n = rest.tile.warps_n;
    out.tile.warps_k = rest.tile.warps_k;
  }

  void wrong(std::string_view option, std::string_view found, std::string_view expected) {
    diags_.report("usage"_rule, {}, fmt::format("{} {}: expected {}", option, found, expected));
  }

  int number(std::string_view option, int value, int least,
             int most = std::numeric_limits<int>::max()) {
    if (value < least || value > most)
      wrong(option, fmt::format("{}", value),
            most == std::numeric_limits<int>::max()
                ? fmt::format("a number of at least {}", least)
                : fmt::format("a number from {} to {}", least, most));
    return value;
  }

  // Checks sizes that no tile could compute: gemm(), which knows the tile, checks the rest.
  void check_sizes(const Gemm& gemm) {
    const auto bytes = [](int lines, int line, Type type) {
      return static_cast<double>(lines) * line * bits(type) / 8;
    };
    const auto check = [&](std::string_view matrix, std::string_view lines, int count,
                           std::string_view line, int length, Type type) {
      constexpr double most = 0x1p49;
      if (bytes(count, length, type) > most)
        diags_.report(
            "usage"_rule, {},
            fmt::format("{} {} {} {}: {} exceeds the 2^49 bytes that a GPU addresses: {:.3g} bytes",
                        lines, count, line, length, matrix, bytes(count, length, type)));
    };
    check("A", "--m", gemm.m, "--k", gemm.k, gemm.a);
    check("B", "--k", gemm.k, "--n", gemm.n, gemm.b);
    check("C", "--m", gemm.m, "--n", gemm.n, gemm.c);
  }

  Type type(std::string_view option, const std::string& word, Type otherwise,
            bool complain = true) {
    if (word.empty()) return otherwise;
    const auto found = parse_type(word);
    if (!found && complain)
      wrong(option, word, "an element type such as f16, bf16, tf32, s8 or e4m3");
    return found.value_or(otherwise);
  }

  Major major(std::string_view option, const std::string& word) {
    if (word != "row" && word != "col") wrong(option, word, "row or col");
    return word == "col" ? Major::col : Major::row;
  }

  isa::Kind kind() {
    struct Kind {
      std::string_view name;
      isa::Kind kind;
    };
    static constexpr Kind kinds[] = {{"", isa::Kind::none},
                                     {"mxf8f6f4", isa::Kind::mxf8f6f4},
                                     {"mxf4", isa::Kind::mxf4},
                                     {"mxf4nvf4", isa::Kind::mxf4nvf4}};
    for (const Kind& each : kinds)
      if (each.name == words_.kind) return each.kind;
    wrong("--kind", words_.kind, "mxf8f6f4, mxf4 or mxf4nvf4");
    return isa::Kind::none;
  }

  Grouping grouping(const std::string& word) {
    if (word != "none" && word != "contiguous" && word != "masked")
      wrong("--grouping", word, "none, contiguous or masked");
    return word == "contiguous" ? Grouping::contiguous
           : word == "masked"   ? Grouping::masked
                                : Grouping::none;
  }

  isa::BitOp bit_op() {
    if (!words_.bit_op.empty() && words_.bit_op != "xor" && words_.bit_op != "and")
      wrong("--bit-op", words_.bit_op, "xor or and");
    return words_.bit_op == "and" ? isa::BitOp::and_popc : isa::BitOp::xor_popc;
  }

  // "128x64": positive numbers separated by x.
  std::vector<int> sizes(const std::string& word) {
    std::vector<int> out;
    const char *at = word.data(), *end = word.data() + word.size();
    while (at < end) {
      int value = 0;
      const auto [next, error] = std::from_chars(at, end, value);
      if (error != std::errc() || value < 1 || (next < end && (*next != 'x' || next + 1 == end)))
        return {};
      out.push_back(value);
      at = next < end ? next + 1 : end;
    }
    return out;
  }

  Tile tile(Tile out) {
    if (!words_.tile.empty()) {
      const std::vector<int> size = sizes(words_.tile);
      if (size.size() != 2 && size.size() != 3)
        return wrong("--tile", words_.tile, "MxN or MxNxK, such as 128x128x32"), out;
      out.m = size[0], out.n = size[1], out.k = size.size() == 3 ? size[2] : 0;
    }
    if (!words_.warps.empty()) {
      const std::vector<int> warps = sizes(words_.warps);
      if (warps.size() != 2 && warps.size() != 3)
        return wrong("--warps", words_.warps, "MxN or MxNxK, such as 2x2"), out;
      const int along_k = warps.size() == 3 ? warps[2] : 1;
      if (warps[0] > 32 || warps[1] > 32 / warps[0] || along_k > 32 / (warps[0] * warps[1]))
        return wrong("--warps", words_.warps, "at most 32 warps in total, such as 4x8"), out;
      if (words_.tile.empty()) wrong("--warps", words_.warps, "a --tile to divide among the warps");
      out.warps_m = warps[0], out.warps_n = warps[1], out.warps_k = along_k;
    }
    return out;
  }

  void read_epilogue(Epilogue& epilogue) {
    const std::string all = fmt::format("{}", fmt::join(words_.epilogue, ","));
    int activations = 0;
    for (std::size_t i = 0; i < words_.epilogue.size(); ++i) {
      const std::string& word = words_.epilogue[i];
      if (std::find(words_.epilogue.begin(), words_.epilogue.begin() + static_cast<int>(i), word) !=
          words_.epilogue.begin() + static_cast<int>(i))
        return wrong("--epilogue", all, fmt::format("{} once", word));
      const Activation before = epilogue.activation;
      add(epilogue, word);
      activations += epilogue.activation != before;
    }
    if (activations > 1) wrong("--epilogue", all, "at most one activation");
  }

  void add(Epilogue& epilogue, const std::string& word) {
    for (const EpiloguePart& part : epilogue_parts)
      if (part.name == word) return part.set(epilogue);
    wrong("--epilogue", word, "one of " + epilogue_words());
  }

  const ProductWords& words_;
  Diags diags_;
};

}  // namespace

Result<Gemm> read_gemm(const ProductWords& words) { return Reader(words).read(); }

Result<BlockScaled> read_block_scaled(const ProductWords& words) {
  return Reader(words).read_block_scaled();
}

Result<ScaledGemm> read_scaled_gemm(const ProductWords& words, const ScaledWords& own,
                                    const Request& request) {
  const auto read = Reader(words).read_scaled_gemm(own, request);
  const auto out = read && words.tile.empty() ? chosen(*read, request) : read;
  if (out && out->cluster > 1 && out->grouping != Grouping::none && request.gives("share-a") &&
      !own.share_a)
    return {"usage"_rule,
            fmt::format("--share-a=false: the CTAs of a cluster share A with --grouping {}, whose "
                        "groups have a B each; leave it out, or take --cluster 1",
                        own.grouping)};
  return out;
}

Result<KGroupedGemm> read_k_grouped_gemm(const ProductWords& words, const ScaledWords& scaled,
                                         bool accumulate, const Request& request) {
  const auto read = Reader(words).read_k_grouped_gemm(scaled, accumulate, request);
  return read && words.tile.empty() ? chosen(*read, request) : read;
}

Result<Type> read_type(const ProductWords& words) { return Reader(words).read_type(); }

void add_product_options(KernelRegistry& registry, ProductWords& words) {
  const auto option = [&](const char* name, auto& value, const std::string& help,
                          bool shows_default = false, const char* text = "") {
    registry.add_option({name, &value, help, "Options of gemm", shows_default, text});
  };
  option("m", words.m, "Rows of A and C; 0: a kernel parameter", true);
  option("n", words.n, "Columns of B and C; 0: a kernel parameter", true);
  option("k", words.k, "Columns of A, rows of B; 0: a kernel parameter", true);
  option("multiple", words.multiple,
         "Guaranteed divisor of A's and B's leading dimensions, in elements, for run-time sizes",
         true);
  option("multiple-c", words.multiple_c, "Same for C", true);
  option("type", words.type, "Element type of A and B; default: f16");
  option("a", words.a, "Element type of A alone");
  option("b", words.b, "Element type of B alone");
  option("accumulator", words.accumulator,
         "Accumulator type: f32, f16, f64 or s32; default: follows A");
  option("c", words.c, "Element type of C; default: the accumulator's");
  option("a-major", words.a_major, "Major order of A: row or col", true);
  option("b-major", words.b_major, "Major order of B: row or col", true);
  option(
      "tile", words.tile,
      "CTA tile, MxN or MxNxK; default: the fastest for these sizes on --gpu, together with "
      "its warps, stages, producers, cluster, group and --persistent, of those that have what else "
      "is given");
  option(
      "warps", words.warps,
      "Warps of a --tile along m and n, or MxNxK of which some divide each k-tile; default: 2x2");
  option("stages", words.stages, "Pipeline stages; default with --tile: 3");
  option("promote", words.promote,
         "fp8: k-tiles between promotions of the tensor cores' accumulators (about 14 "
         "bits on sm_89 and sm_90a) into full f32; 0: never",
         true);
  option("epilogue", words.epilogue,
         "Epilogue operations, separated by commas: " + epilogue_words());
  option("gpu", words.gpu,
         fmt::format("GPU for which the fastest is chosen where options are not given, such as "
                     "H200: {}; default: the usual one of the target, H100 for sm_90a",
                     fmt::join(kernels::Gpu::names(), ", ")));
  option("multiprocessors", words.multiprocessors,
         "So many of the GPU's multiprocessors, such as those of a part of it (MIG); 0: all", true);
  option("tuning", words.tuning,
         "File of `tartan tune`: the fastest tile as measured on --gpu, where it has the product");
  option("workspace", words.workspace,
         "Bytes for partial sums: above 0, split-K is chosen where it is the fastest; C is then "
         "the workspace of gemm_sum",
         true);
  option("splits", words.splits,
         "Split-K: number of splits of k; gemm_sum reduces them; default with --tile or without "
         "--workspace: 1");
  option("stream-blocks", words.stream_blocks,
         "Stream-K: number of CTAs that divide all k-tiles evenly; gemm_sum reduces the partial "
         "tiles; 0: off",
         true);
  option("cluster-splits", words.cluster_splits,
         "Split-K within a cluster, from sm_90 on: CTAs that divide the k-tiles of a tile and add "
         "their sums in distributed shared memory: 1, 2, 4 or 8; default with --tile: 1");
  option(
      "products", words.products,
      "Ping-pong: so many warpgroups of a --persistent kernel compute a --tile each, in turn, so "
      "that one stores while another multiplies; default with --tile: 1");
  option("swap", words.swap,
         "Computes the transpose of C, so that a --tile is one of n rows and m columns: for few "
         "rows");
  option("direct", words.direct,
         "For a --tile of one to eight rows: warps read the columns of B straight from global "
         "memory, without shared memory and tensor cores; --stages is then the accesses to a row "
         "that a lane makes at a time, and the k of --tile follows from the rest");
  option("producers", words.producers,
         "Producer warps of a warp-specialized kernel; default with --tile: 0");
  option("cluster", words.cluster,
         "Cluster size, whose CTAs share B by TMA multicast, from sm_90a on: 1, 2, 4 or 8; default "
         "with --tile: 1");
  option("cluster-columns", words.cluster_columns,
         "So many columns of such CTAs form a cluster, whose rows share A; default with --tile: 1");
  option("group", words.group,
         "Rasterization: rows of tiles visited together, column by column, for reuse in L2; "
         "default with --tile: 8");
  option("bit-op", words.bit_op, "b1: bit operation of the product, xor or and", true, "xor");
  option("batched", words.batched, "Batched GEMM: blockIdx.z selects the product");
  option("persistent", words.persistent,
         "Persistent kernel: each CTA computes tile after tile, for any grid size");
}

}  // namespace tartan::TARTAN_ABI::builtins
