// SPDX-License-Identifier: Apache-2.0
// One error at a time in a correct kernel for Hopper (tests/data/hopper_mistakes/gemm.ptx): each is
// found, by the checker if the text shows it, else by the emulator. The messages are in
// tests/data/hopper_mistakes/expected.txt, and docs/mistakes.md is generated from the same table;
// TARTAN_REBASE=1 in the environment writes both; then read the diff.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "tartan/runtime/device.h"
#include "tartan/runtime/tensor_map.h"
#include "tartan/verify/verify.h"
#include "tests/paths.h"
#include "tests/support/small_product.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

constexpr std::uint32_t m = 128, n = 64, k = 320, tile_m = 64, tile_n = 32, tile_k = 64;

struct Edit {
  std::string was, is;
};

/// The host's arguments.
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
       "consumers wait for the opposite parity",
       emulator,
       "deadlock",
       {{"WAIT_FULL:\n", "	xor.b32 %phase, %phase, 1;\nWAIT_FULL:\n"}}},
      {"full-phase-stays",
       "consumers wait for phase 0 in every iteration",
       emulator,
       "deadlock",
       {{"WAIT_FULL:\n", "	mov.u32 %phase, 0;\nWAIT_FULL:\n"}}},
      {"full-not-waited",
       "consumers do not wait for the stage",
       emulator,
       "asynchronous-race",
       {{"	mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], %phase;\n	@!%p bra "
         "WAIT_FULL;\n",
         ""}}},
      {"full-not-waited-first",
       "the same, with a producer that starts late",
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
       "the producer waits for the opposite parity",
       emulator,
       "deadlock",
       {{"	xor.b32 %phase, %phase, 1;                                     // the first round "
         "finds it "
         "empty\n",
         ""}}},
      {"empty-phase-stays",
       "the producer waits for the phase before the first one in every iteration",
       emulator,
       "asynchronous-race",
       {{"WAIT_EMPTY:\n", "	mov.u32 %phase, 1;\nWAIT_EMPTY:\n"}}},
      // ---- mbarriers.
      {"no-arrive",
       "consumers do not release the stage",
       emulator,
       "deadlock",
       {{"	mbarrier.arrive.shared::cta.b64 _, [%empty];\n", ""}}},
      {"early-arrive",
       "consumers release the stage before their wgmma has read it",
       emulator,
       "asynchronous-race",
       {{"	wgmma.wait_group.sync.aligned 0;\n", ""},
        {"	shr.u32 %x, %thread, 5;\n",
         "	wgmma.wait_group.sync.aligned 0;\n	shr.u32 %x, "
         "%thread, 5;\n"}}},
      {"empty-count-high",
       "the empty mbarriers expect all threads, but one thread per warp arrives",
       emulator,
       "deadlock",
       {{"[empty], 4;", "[empty], 128;"}, {"[empty+8], 4;", "[empty+8], 128;"}}},
      {"full-count-high",
       "the full mbarriers expect two arrivals, but only the producer arrives",
       emulator,
       "deadlock",
       {{"[full], 1;", "[full], 2;"}, {"[full+8], 1;", "[full+8], 2;"}}},
      {"init-missing",
       "one full mbarrier is not initialized",
       emulator,
       "mbarrier",
       {{"	mbarrier.init.shared::cta.b64 [full+8], 1;\n", ""}}},
      {"init-not-synchronised",
       "no thread waits for the initialization of the mbarriers",
       emulator,
       "mbarrier",
       {{"READY:\n	bar.sync 0;\n", "READY:\n"}}},
      {"expect-too-few",
       "the producer expects only the bytes of A",
       emulator,
       "asynchronous-race",
       {{"[%full], 12288;", "[%full], 8192;"}}},
      {"expect-too-many",
       "the producer expects 16 bytes too many",
       emulator,
       "deadlock",
       {{"[%full], 12288;", "[%full], 12304;"}}},
      {"expect-off",
       "the producer expects 16 bytes too few",
       emulator,
       "deadlock",
       {{"[%full], 12288;", "[%full], 12272;"}}},
      // ---- Fences and groups.
      {"no-proxy-fence",
       "accumulators go to shared memory and out by TMA, without a proxy fence",
       check,
       "proxy-fence",
       {{"	fence.proxy.async.shared::cta;\n", ""}}},
      {"no-proxy-fence-behind-label",
       "the same, where the text alone does not show it",
       emulator,
       "proxy-fence",
       {{"	fence.proxy.async.shared::cta;\n	bar.sync 1, 128;\n",
         "	bar.sync 1, 128;\n	bra.uni STORED;\nSTORED:\n"}}},
      {"source-early",
       "the source of a TMA store is overwritten before cp.async.bulk.wait_group",
       emulator,
       "asynchronous-race",
       {{"	cp.async.bulk.wait_group 0;\n",
         "	st.shared.f32 [%own], %f0;\n	cp.async.bulk.wait_group 0;\n"}}},
      {"no-wgmma-fence",
       "accumulators are zeroed, and no wgmma.fence follows",
       check,
       "wgmma-fence",
       {{first_product, first_product.substr(first_product.find('\n') + 1)}}},
      {"accumulator-early",
       "an accumulator is read before wgmma.wait_group",
       check,
       "wgmma-wait",
       {{"	wgmma.wait_group.sync.aligned 0;\n",
         "	add.f32 %f0, %f0, %f0;\n	wgmma.wait_group.sync.aligned 0;\n"}}},
      // ---- Descriptors and tensor maps.
      {"descriptor-swizzle",
       "the matrix descriptors have a 64-byte swizzle instead of 128",
       emulator,
       "matrix-descriptor",
       {{"0x4000004000010000", "0x8000004000010000"}}},
      {"descriptor-row",
       "B's descriptor starts one 128-byte row early",
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
       "A's descriptor advances by 64 bytes per k16 instead of 32",
       emulator,
       "matrix-descriptor",
       {{"	add.s64 %da, %da, 2;\n", "	add.s64 %da, %da, 4;\n"}}},
      {"map-swizzle",
       "A's tensor map has a 32-byte swizzle and a box of 32 bytes",
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
       "B's tensor map has a box of 64 rows in a stage of 32",
       emulator,
       "asynchronous-race",
       {},
       [](Host& host) { host.b.box[1] = 64; }},
      {"map-local",
       "the tensor map is a copy in local memory",
       check,
       "tensor-map-space",
       {{"	.shared .align 8 .b64 full[2];\n",
         "	.local .align 64 .b8 copy[128];\n	.shared .align 8 .b64 full[2];\n"},
        {"	mov.b64 %rd1, c;\n	cvta.param.u64 %map_c, %rd1;\n",
         "	mov.b64 %rd1, copy;\n	cvta.local.u64 %map_c, %rd1;\n"}}},
      // ---- Participation and placement.
      {"divergent",
       "wgmma is control-dependent on a condition that differs within a warp",
       check,
       "maybe-divergent",
       {{"	wgmma.fence.sync.aligned;\n",
         "	and.b32 %half, %thread, 16;\n	setp.ne.u32 %low, %half, 0;\n	@%low bra "
         "NEXT;\n	"
         "wgmma.fence.sync.aligned;\n"},
        {"	.reg .f32 %f<16>;\n",
         "	.reg .f32 %f<16>;\n	.reg .b32 %half;\n	.reg .pred %low;\n"}}},
      {"half-warpgroup",
       "the CTA has 96 threads: three warps of the warpgroup, and no producer",
       emulator,
       "divergent-collective",
       {{"	mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], %phase;\n	@!%p bra "
         "WAIT_FULL;\n",
         ""}},
       [](Host& host) { host.launch.block = {96}; }},
      {"target-without-a",
       "the module targets sm_90 instead of sm_90a",
       check,
       "target-support",
       {{".target sm_90a", ".target sm_90"}}},
      {"setmaxnreg-unbounded",
       "setmaxnreg in a kernel without launch bounds",
       check,
       "register-bounds",
       {{".minnctapersm 1\n", ""}}},
      {"setmaxnreg-too-many",
       "consumers request more registers than the producer releases",
       emulator,
       "deadlock",
       {{".minnctapersm 1\n", ".maxnreg 192\n"}}},
      {"setmaxnreg-uneven",
       "one warp of the consumers requests fewer registers than the others",
       emulator,
       "divergent-collective",
       {{"\tsetmaxnreg.inc.sync.aligned.u32 232;\n",
         "\tsetp.lt.u32 %p, %thread, 96;\n\t@%p bra MORE;\n\tsetmaxnreg.inc.sync.aligned.u32 "
         "224;\n\tbra HAVE;\nMORE:\n\tsetmaxnreg.inc.sync.aligned.u32 232;\nHAVE:\n"}}},
      {"box-unaligned",
       "the address of a stage is not a multiple of 128",
       emulator,
       "misaligned-access",
       {{"[%at+8192], [%map_b", "[%at+8208], [%map_b"}}},
  };
  return all;
}

std::string spoiled(const Mistake& mistake) {
  std::string text = test::read_file(TEST_DATA "/hopper_mistakes/gemm.ptx");
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
  test::expect_file(TEST_DATA "/hopper_mistakes/expected.txt", all);
}

// The checker does not report errors that only running shows.
TEST(HopperMistakes, TheCheckerIsSilentWhereItCannotKnow) {
  for (const Mistake& mistake : mistakes()) {
    if (mistake.finder == Finder::check) continue;
    EXPECT_EQ(check(mistake), "") << mistake.name;
  }
}

const char* const page_head = R"(<!-- SPDX-License-Identifier: Apache-2.0 -->
# Mistakes in Hopper kernels, and their messages

Which mistakes does Tartan find, and what does it say? Each row below is one mistake in a correct
warp-specialized GEMM (`tests/data/hopper_mistakes/gemm.ptx`): a producer warp fills a ring of
stages by TMA, a consumer warpgroup multiplies them by wgmma. `check` reports what the text shows.
The emulator reports the rest when it runs the kernel, even where its warp order happens to give
the right numbers.

`tests/verify/hopper_mistakes_test.cc` has the edits and writes this page (`TARTAN_REBASE=1`).

| Mistake | Found by | Message |
|---|---|---|
)";

const char* const page_foot = R"(
## What the emulator does not find

The emulator performs a copy or a product when the thread issues it. Vector clocks
(`runtime/emulator/races/detector.h`) record which accesses are ordered, so that a correct kernel
has no finding. It does not see:

- missing fences and waits of wgmma's accumulators: `check` reports those;
- races between ordinary accesses, and all those in global memory, unless asked: `tartan run` asks,
  launches from C++ with `DeviceOptions::checks` (see [emulator.md](emulator.md));
- unless asked, what only warns: a proxy fence that is missing behind a load or `mbarrier.init`, a
  wait of scope `.cta` for another CTA's stores, a TMA store by every lane or in flight at the exit;
- a matrix descriptor that is off by whole rows within boxes of one tensor. That is legal and gives
  other numbers: `expect` in a manifest finds it.

What else stays silent, and why:

| Program | Reason |
|---|---|
| message passing by volatile or relaxed accesses alone; store buffering with fence.acq_rel | no race by the memory model. A GPU may give stale values; schedules here are sequentially consistent ([schedules.md](schedules.md)) |
| a wait that polls so many times and then goes on | who waits long enough is right: `--schedules all` does not decide it |
| values that depend on %globaltimer, %clock, %smid | the same |
| a member mask that names lanes which have exited | the manual asks for those that have not |
| one `shfl.sync` on either side of a branch, with one mask | lanes may come to it at different places |
| `fence.proxy.async` at the reader, behind the barrier | causality order asks for it on the way, at either side |
| a tensor map that is copied by ordinary stores and used after `fence.proxy.tensormap` alone | the fence's release is the store's |
| `setmaxnreg` below what the code needs | the assembler decides how many registers that is |
| an output of which a part is never written, and that nothing is compared with | `expect` in a manifest asks |
)";

// The page: the error, and the first message without its place.
TEST(HopperMistakes, ThePageIsFresh) {
  std::string page = page_head;
  for (const Mistake& mistake : mistakes()) {
    std::string message = found(mistake);
    message = message.substr(0, message.find('\n'));
    const std::size_t level = message.find(": ");  // after the place
    const std::size_t from = message.find(": ", level + 2) + 2;
    const std::size_t place = message.find(" (kernel gemm, block");
    ASSERT_NE(level, std::string::npos) << mistake.name;
    std::string text = message.substr(from, place - from);
    if (place != std::string::npos) text += fmt::format(" [{}]", mistake.id);
    page += fmt::format("| {} | {} | {} |\n", mistake.what,
                        mistake.finder == Finder::check ? "`check`" : "emulator", text);
  }
  page += page_foot;
  test::expect_file(SOURCE_ROOT "/docs/mistakes.md", page);
}

}  // namespace
}  // namespace tartan
