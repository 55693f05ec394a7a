// SPDX-License-Identifier: Apache-2.0
// One mistake at a time in a right kernel for Hopper (tests/data/hopper_mistakes/gemm.ptx): each is
// found, by the checker where the text shows it, else by the emulator. The messages are
// tests/data/hopper_mistakes/expected.txt, and the page docs/mistakes.md is made of the same table;
// TARTAN_REBASE=1 in the environment writes both anew: then read the difference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "tartan/runtime/device.h"
#include "tartan/runtime/tensor_map.h"
#include "tartan/verify/verify.h"
#include "tests/paths.h"
#include "tests/support/small_product.h"

namespace tartan {
namespace {

constexpr std::uint32_t m = 128, n = 64, k = 320, tile_m = 64, tile_n = 32, tile_k = 64;

std::string read_file(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

void expect_file(const std::string& path, const std::string& text) {
  if (std::getenv("TARTAN_REBASE")) std::ofstream(path) << text;
  EXPECT_EQ(read_file(path), text) << path << ": TARTAN_REBASE=1 rewrites it";
}

struct Edit {
  std::string was, is;
};

/// What the host passes.
struct Host {
  TensorMap a, b, c;
  Launch launch{.grid = {n / tile_n, m / tile_m}, .block = {160}, .dynamic_shared = 32768};
};

enum class Finder { check, emulator };

struct Mistake {
  std::string name;  // of the paragraph in expected.txt
  std::string what;
  Finder finder;
  std::string_view id;
  std::vector<Edit> edits;
  std::function<void(Host&)> host = {};
};

const std::string first_product =
    "	wgmma.fence.sync.aligned;\n	wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%f0, ";

const std::vector<Mistake>& mistakes() {
  using enum Finder;
  static const std::vector<Mistake> all = {
      // ---- Phases.
      {"full-parity",
       "the consumers wait for the phase of the other parity",
       emulator,
       "deadlock",
       {{"WAIT_FULL:\n", "	xor.b32 %phase, %phase, 1;\nWAIT_FULL:\n"}}},
      {"full-phase-stays",
       "the consumers wait for phase 0 in every round",
       emulator,
       "deadlock",
       {{"WAIT_FULL:\n", "	mov.u32 %phase, 0;\nWAIT_FULL:\n"}}},
      {"full-not-waited",
       "the consumers do not wait for the stage at all",
       emulator,
       "asynchronous-race",
       {{"	mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], %phase;\n	@!%p bra "
         "WAIT_FULL;\n",
         ""}}},
      {"full-not-waited-first",
       "the same, and the producer is slow to start",
       emulator,
       "unwritten-tile",
       {{"	mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], %phase;\n	@!%p bra "
         "WAIT_FULL;\n",
         ""},
        {"	elect.sync _|%elected, -1;\n",
         "	bar.sync 2, 160;\n	elect.sync _|%elected, -1;\n"},
        {"	wgmma.commit_group.sync.aligned;\n",
         "	wgmma.commit_group.sync.aligned;\n	bar.sync 2, 160;\n"}}},
      {"empty-parity",
       "the producer waits for the phase of the other parity",
       emulator,
       "deadlock",
       {{"	xor.b32 %phase, %phase, 1;                                     // the first round "
         "finds it "
         "empty\n",
         ""}}},
      {"empty-phase-stays",
       "the producer waits for the phase before the first in every round",
       emulator,
       "asynchronous-race",
       {{"WAIT_EMPTY:\n", "	mov.u32 %phase, 1;\nWAIT_EMPTY:\n"}}},
      // ---- mbarriers.
      {"no-arrive",
       "the consumers do not release the stage",
       emulator,
       "deadlock",
       {{"	mbarrier.arrive.shared::cta.b64 _, [%empty];\n", ""}}},
      {"early-arrive",
       "the consumers release the stage before their products have read it",
       emulator,
       "asynchronous-race",
       {{"	wgmma.wait_group.sync.aligned 0;\n", ""},
        {"	shr.u32 %x, %thread, 5;\n",
         "	wgmma.wait_group.sync.aligned 0;\n	shr.u32 %x, "
         "%thread, 5;\n"}}},
      {"empty-count-high",
       "the empty barriers expect every thread, one of each warp arrives",
       emulator,
       "deadlock",
       {{"[empty], 4;", "[empty], 128;"}, {"[empty+8], 4;", "[empty+8], 128;"}}},
      {"full-count-high",
       "the full barriers expect two arrivals, only the producer arrives",
       emulator,
       "deadlock",
       {{"[full], 1;", "[full], 2;"}, {"[full+8], 1;", "[full+8], 2;"}}},
      {"init-missing",
       "one of the full barriers is not initialised",
       emulator,
       "mbarrier",
       {{"	mbarrier.init.shared::cta.b64 [full+8], 1;\n", ""}}},
      {"init-not-synchronised",
       "nobody waits for the initialisation",
       emulator,
       "mbarrier",
       {{"READY:\n	bar.sync 0;\n", "READY:\n"}}},
      {"expect-too-few",
       "the producer expects the bytes of A alone",
       emulator,
       "asynchronous-race",
       {{"[%full], 12288;", "[%full], 8192;"}}},
      {"expect-too-many",
       "the producer expects 16 bytes more than come",
       emulator,
       "deadlock",
       {{"[%full], 12288;", "[%full], 12304;"}}},
      {"expect-off",
       "the producer expects 16 bytes less than come",
       emulator,
       "deadlock",
       {{"[%full], 12288;", "[%full], 12272;"}}},
      // ---- Fences and groups.
      {"no-proxy-fence",
       "the sums are stored by ordinary code and copied out without a proxy fence",
       check,
       "proxy-fence",
       {{"	fence.proxy.async.shared::cta;\n", ""}}},
      {"no-proxy-fence-behind-label",
       "the same where the text alone does not show it",
       emulator,
       "proxy-fence",
       {{"	fence.proxy.async.shared::cta;\n	bar.sync 1, 128;\n",
         "	bar.sync 1, 128;\n	bra.uni STORED;\nSTORED:\n"}}},
      {"source-early",
       "a sum is overwritten before cp.async.bulk.wait_group",
       emulator,
       "asynchronous-race",
       {{"	cp.async.bulk.wait_group 0;\n",
         "	st.shared.f32 [%own], %f0;\n	cp.async.bulk.wait_group 0;\n"}}},
      {"no-wgmma-fence",
       "the accumulators are set to zero, and no wgmma.fence follows",
       check,
       "wgmma-fence",
       {{first_product, first_product.substr(first_product.find('\n') + 1)}}},
      {"accumulator-early",
       "a sum is read before wgmma.wait_group",
       check,
       "wgmma-wait",
       {{"	wgmma.wait_group.sync.aligned 0;\n",
         "	add.f32 %f0, %f0, %f0;\n	wgmma.wait_group.sync.aligned 0;\n"}}},
      // ---- Descriptors and tensor maps.
      {"descriptor-swizzle",
       "the descriptors say the swizzle of 64 bytes",
       emulator,
       "matrix-descriptor",
       {{"0x4000004000010000", "0x8000004000010000"}}},
      {"descriptor-row",
       "B's descriptor starts a row of 128 bytes early",
       emulator,
       "matrix-descriptor",
       {{"	add.s64 %db, %da, 512;\n", "	add.s64 %db, %da, 504;\n"}}},
      {"descriptor-chunk",
       "A's descriptor starts 16 bytes late",
       emulator,
       "matrix-descriptor",
       {{"	add.s64 %db, %da, 512;\n",
         "	add.s64 %db, %da, 512;\n	add.s64 %da, %da, 1;\n"}}},
      {"descriptor-step",
       "A's descriptor steps by 64 bytes for each k16",
       emulator,
       "matrix-descriptor",
       {{"	add.s64 %da, %da, 2;\n", "	add.s64 %da, %da, 4;\n"}}},
      {"map-swizzle",
       "A's tensor map has the swizzle of 32 bytes and a box of as many",
       emulator,
       "deadlock",
       {},
       [](Host& host) {
         host.a.swizzle = TensorMap::Swizzle::bytes_32;
         host.a.box[0] = 16;
       }},
      {"map-without-swizzle",
       "A's tensor map has no swizzle",
       emulator,
       "matrix-descriptor",
       {},
       [](Host& host) { host.a.swizzle = TensorMap::Swizzle::none; }},
      {"map-box",
       "B's tensor map has a box of 64 rows, the stage has room for 32",
       emulator,
       "asynchronous-race",
       {},
       [](Host& host) { host.b.box[1] = 64; }},
      {"map-local",
       "the tensor map is taken from a copy in local memory",
       check,
       "tensor-map-space",
       {{"	.shared .align 8 .b64 full[2];\n",
         "	.local .align 64 .b8 copy[128];\n	.shared .align 8 .b64 full[2];\n"},
        {"	mov.b64 %rd1, c;\n	cvta.param.u64 %map_c, %rd1;\n",
         "	mov.b64 %rd1, copy;\n	cvta.local.u64 %map_c, %rd1;\n"}}},
      // ---- Who takes part, and where.
      {"divergent",
       "the products stand behind a branch that half a warp takes",
       check,
       "maybe-divergent",
       {{"	wgmma.fence.sync.aligned;\n",
         "	and.b32 %half, %thread, 16;\n	setp.ne.u32 %low, %half, 0;\n	@%low bra "
         "NEXT;\n	"
         "wgmma.fence.sync.aligned;\n"},
        {"	.reg .f32 %f<16>;\n",
         "	.reg .f32 %f<16>;\n	.reg .b32 %half;\n	.reg .pred %low;\n"}}},
      {"half-warpgroup",
       "the block has 96 threads: three warps of the warpgroup, no producer",
       emulator,
       "divergent-collective",
       {{"	mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], %phase;\n	@!%p bra "
         "WAIT_FULL;\n",
         ""}},
       [](Host& host) { host.launch.block = {96}; }},
      {"target-without-a",
       "the module is for sm_90",
       check,
       "target-support",
       {{".target sm_90a", ".target sm_90"}}},
      {"setmaxnreg-unbounded",
       "registers are traded in a kernel without launch bounds",
       check,
       "register-bounds",
       {{".minnctapersm 1\n", ""}}},
      {"setmaxnreg-too-many",
       "those who compute ask for more registers than the others give up",
       emulator,
       "deadlock",
       {{".minnctapersm 1\n", ".maxnreg 192\n"}}},
      {"box-unaligned",
       "a stage begins at no multiple of 128 bytes",
       emulator,
       "misaligned-access",
       {{"[%at+8192], [%map_b", "[%at+8208], [%map_b"}}},
  };
  return all;
}

std::string spoiled(const Mistake& mistake) {
  std::string text = read_file(TEST_DATA "/hopper_mistakes/gemm.ptx");
  for (const Edit& edit : mistake.edits) {
    EXPECT_NE(text.find(edit.was), std::string::npos) << mistake.name << ": " << edit.was;
    for (std::size_t at = text.find(edit.was); at != std::string::npos;
         at = text.find(edit.was, at + edit.is.size()))
      text.replace(at, edit.was.size(), edit.is);
  }
  return text;
}

struct Outcome {
  std::string complaint;
  bool right = false;
};

Outcome run(const Mistake& mistake) {
  const test::SmallProduct product(m, n, k);
  auto device = Device::open("emulator");
  if (!device) return {device.diags().text()};
  auto in_a = device->allocate(2 * product.a.size()), in_b = device->allocate(2 * product.b.size()),
       out = device->allocate(4 * product.c.size());
  EXPECT_TRUE(in_a->write(product.a) && in_b->write(product.b) && out->fill(0xFF));
  Host host{.a = {.type = f16,
                  .address = in_a->address(),
                  .extents = {k, m},
                  .strides = {2 * k},
                  .box = {tile_k, tile_m},
                  .swizzle = TensorMap::Swizzle::bytes_128},
            .b = {.type = f16,
                  .address = in_b->address(),
                  .extents = {k, n},
                  .strides = {2 * k},
                  .box = {tile_k, tile_n},
                  .swizzle = TensorMap::Swizzle::bytes_128},
            .c = {.type = f32,
                  .address = out->address(),
                  .extents = {n, m},
                  .strides = {4 * n},
                  .box = {tile_n, tile_m}}};
  if (mistake.host) mistake.host(host);
  const auto map_a = host.a.encode(), map_b = host.b.encode(), map_c = host.c.encode();
  for (const auto* map : {&map_a, &map_b, &map_c})
    if (!*map) return {map->diags().text()};
  auto module = device->load(spoiled(mistake), "gemm.ptx");
  if (!module) return {module.diags().text()};
  auto kernel = module->kernel("gemm");
  if (!kernel) return {kernel.diags().text()};
  const Status launched =
      kernel->launch(host.launch, Arguments().add(*map_a).add(*map_b).add(*map_c).add(k / tile_k));
  if (!launched) return {launched.diags().text()};
  if (const Status done = device->synchronize(); !done) return {done.diags().text()};
  return {"", *out->read_all<float>() == product.c};
}

std::string check(const Mistake& mistake) {
  return verify::check(std::make_shared<const Source>("gemm.ptx", spoiled(mistake))).text();
}

std::string found(const Mistake& mistake) {
  return mistake.finder == Finder::check ? check(mistake) : run(mistake).complaint;
}

TEST(HopperMistakes, TheKernelIsRight) {
  const Mistake none{};
  EXPECT_EQ(check(none), "");
  const Outcome outcome = run(none);
  EXPECT_EQ(outcome.complaint, "");
  EXPECT_TRUE(outcome.right);
}

TEST(HopperMistakes, EachIsFound) {
  ASSERT_GE(mistakes().size(), 25u);
  std::string all;
  for (const Mistake& mistake : mistakes()) {
    const std::string message = found(mistake);
    EXPECT_NE(message.find(fmt::format("[{}]", mistake.id)), std::string::npos)
        << mistake.name << ": " << message;
    all += fmt::format("== {}\n{}", mistake.name, message);
  }
  expect_file(TEST_DATA "/hopper_mistakes/expected.txt", all);
}

// What only running shows, the checker does not claim to know.
TEST(HopperMistakes, TheCheckerIsSilentWhereItCannotKnow) {
  for (const Mistake& mistake : mistakes()) {
    if (mistake.finder == Finder::check) continue;
    EXPECT_EQ(check(mistake), "") << mistake.name;
  }
}

// The page: what is wrong, and the first message without its place.
TEST(HopperMistakes, ThePageIsFresh) {
  std::string page =
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Mistakes in Hopper kernels, and what is "
      "said "
      "of them\n\nEach is planted in one right kernel, a product whose producer warp fills a ring "
      "of stages through tensor maps and whose\nconsumer warpgroup empties it with wgmma "
      "(tests/data/hopper_mistakes/gemm.ptx); tests/verify/hopper_mistakes_test.cc has the "
      "edits\nand "
      "writes this page (TARTAN_REBASE=1). `check` finds what the text shows; the emulator finds "
      "the rest when it runs the kernel,\nalso where the order in which its warps run happens to "
      "give the right numbers.\n\n| Mistake | "
      "Found by | Message |\n|---|---|---|\n";
  for (const Mistake& mistake : mistakes()) {
    std::string message = found(mistake);
    message = message.substr(0, message.find('\n'));
    const std::size_t level = message.find(": ");  // behind the place
    const std::size_t from = message.find(": ", level + 2) + 2;
    const std::size_t place = message.find(" (kernel gemm, block");
    ASSERT_NE(level, std::string::npos) << mistake.name;
    std::string text = message.substr(from, place - from);
    if (place != std::string::npos) text += fmt::format(" [{}]", mistake.id);
    page += fmt::format("| {} | {} | {} |\n", mistake.what,
                        mistake.finder == Finder::check ? "`check`" : "emulator", text);
  }
  page +=
      "\nThe emulator does a copy or a product when it is issued, and keeps clocks of who knows "
      "what "
      "(runtime/emulator/races/order.h), so that a\nkernel which is right has no finding. It does "
      "not "
      "see: order between the lanes of one warp; accumulators and fences of wgmma, which\nare "
      "`check`'s; loads and stores of ordinary code against each other, and a store that a copy "
      "overwrites; cp.async into shared memory\nthat another warp still reads, with ldmatrix or "
      "otherwise; in kernels without the copy engine, st.async and wgmma, any of this; a\n"
      "descriptor that is off by rows within boxes of one tensor, which is legal and gives other "
      "numbers: `expect` in a manifest finds those.\n";
  expect_file(SOURCE_ROOT "/docs/mistakes.md", page);
}

}  // namespace
}  // namespace tartan
