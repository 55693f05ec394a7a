// SPDX-License-Identifier: Apache-2.0
// Tensor memory: which cell each register of tcgen05.ld and .st holds, after the table that was
// derived from the manual and from CuTe's layouts; and the rules of its allocation and use.
#include "tests/emulator/tensor_memory.h"
#include "runtime/emulator/schedules/exploration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace tartan::test {
namespace {

using Words = std::vector<std::uint32_t>;

struct Shape {
  std::string name;
  int registers;  // with .x1
  int most;       // repetitions
};
const Shape shapes[] = {{"32x32b", 1, 128},
                        {"16x64b", 1, 128},
                        {"16x128b", 2, 64},
                        {"16x256b", 4, 32},
                        {"16x32bx2", 1, 128}};

struct Place {
  int lane, column;
};
// Of register r of thread l, behind the address.
Place place(const std::string& shape, int l, int r, int offset) {
  if (shape == "32x32b") return {l, r};
  if (shape == "16x64b") return {(l >> 2) + 8 * (l & 1), ((l >> 1) & 1) + 2 * r};
  if (shape == "16x128b") return {(l >> 2) + 8 * (r & 1), (l & 3) + 4 * (r >> 1)};
  if (shape == "16x256b")
    return {(l >> 2) + 8 * ((r >> 1) & 1), 2 * (l & 3) + (r & 1) + 8 * (r >> 2)};
  return {l & 15, r + (l >> 4) * offset};
}

constexpr int columns = 512;
std::uint32_t pattern(int lane, int column) {
  return static_cast<std::uint32_t>(lane * columns + column) * 2654435761u;
}

// Stores the pattern to all cells: v0.. by .32x32b.x128.
std::string fill() {
  std::string out;
  for (int first = 0; first < columns; first += 128) {
    for (int i = 0; i < 128; ++i)
      out += fmt::format("mad.lo.u32 v{0}, r0, 512, {1};\nmul.lo.u32 v{0}, v{0}, 2654435761;\n", i,
                         first + i);
    out += fmt::format("tcgen05.st.sync.aligned.32x32b.x128.b32 [own+{}], {};\n", first,
                       numbered("v", 128));
  }
  return out + "tcgen05.wait::st.sync.aligned;\n";
}

// w0.. to the output, a thread's registers side by side.
std::string give(int registers) {
  std::string out = fmt::format(
      "mul.lo.u32 r3, r0, {};\nmul.wide.u32 rd1, r3, 4;\nadd.s64 rd1, rd0, "
      "rd1;\n",
      registers);
  for (int i = 0; i < registers; ++i)
    out += fmt::format("st.global.b32 [rd1+{}], w{};\n", 4 * i, i);
  return out;
}

std::string spelled(const std::string& what, const Shape& shape, int repeats, bool packed) {
  return fmt::format("tcgen05.{}.sync.aligned.{}.x{}{}.b32 ", what, shape.name, repeats,
                     packed ? what == "ld" ? ".pack::16b" : ".unpack::16b" : "");
}

TEST(EmulatorTensorMemory, LoadsEveryShape) {
  for (const Shape& shape : shapes)
    for (const int repeats : {1, 4, shape.most})
      for (const bool packed : {false, true})
        for (const int half : {0, 16}) {
          const bool split = shape.name == "16x32bx2";
          if (half && shape.name == "32x32b") continue;
          const int registers = repeats * shape.registers, per = packed ? 2 : 1;
          const int offset = split ? registers * per : 0, first = packed ? 0 : 3 * !split;
          const std::string load = spelled("ld", shape, repeats, packed) +
                                   numbered("w", registers) +
                                   fmt::format(", [own+{}]{};\n", (half << 16) + first,
                                               split ? fmt::format(", {}", offset) : "");
          const KernelRun run = run_tensor(
              tensor_text(fill() + load + "tcgen05.wait::ld.sync.aligned;\n" + give(registers)),
              static_cast<std::size_t>(128 * registers));
          ASSERT_EQ(findings_text(run), "") << load;
          for (int thread = 0; thread < 128; ++thread)
            for (int r = 0; r < registers; ++r) {
              Place at = place(shape.name, thread % 32, r, 0);
              const int further = split && thread % 32 >= 16 ? offset : 0;
              at.lane += thread / 32 * 32 + half;
              at.column = first + at.column * per + further;
              std::uint32_t expected = pattern(at.lane, at.column);
              if (packed) expected = (expected & 0xFFFF) | pattern(at.lane, at.column + 1) << 16;
              ASSERT_EQ(run.out[static_cast<std::size_t>(thread * registers + r)], expected)
                  << load << ": thread " << thread << ", register " << r;
            }
        }
}

TEST(EmulatorTensorMemory, StoresEveryShape) {
  for (const Shape& shape : shapes)
    for (const int repeats : {1, 8, std::min(shape.most, 32 / shape.registers)})
      for (const bool packed : {false, true}) {
        const bool split = shape.name == "16x32bx2";
        const int registers = repeats * shape.registers, per = packed ? 2 : 1;
        const int offset = registers * per + 1;
        std::string body = fill();
        for (int i = 0; i < registers; ++i)
          body +=
              fmt::format("mad.lo.u32 w{0}, r0, 4096, {0};\nor.b32 w{0}, w{0}, 0x5A000000;\n", i);
        const std::string store =
            spelled("st", shape, repeats, packed) +
            fmt::format("[own+5]{}, {};\n", split ? fmt::format(", {}", offset) : "",
                        numbered("w", registers));
        body += store + "tcgen05.wait::st.sync.aligned;\n";
        // All cells, 128 columns at a time.
        std::string text = body;
        for (int first = 0; first < 256; first += 128) {
          text += fmt::format(
              "tcgen05.ld.sync.aligned.32x32b.x128.b32 {}, [own+{}];\n"
              "tcgen05.wait::ld.sync.aligned;\nmad.lo.u32 r3, r0, 256, {};\n"
              "mul.wide.u32 rd1, r3, 4;\nadd.s64 rd1, rd0, rd1;\n",
              numbered("w", 128), first, first);
          for (int i = 0; i < 128; ++i)
            text +=
                fmt::format("{}st.global.b32 [rd1+{}], w{};\n",
                            packed ? fmt::format("and.b32 w{0}, w{0}, 65535;\n", i) : "", 4 * i, i);
        }
        const KernelRun run = run_tensor(tensor_text(text), 128 * 256);
        ASSERT_EQ(findings_text(run), "") << store;
        Words cells(128 * 256);
        for (int lane = 0; lane < 128; ++lane)
          for (int column = 0; column < 256; ++column)
            cells[static_cast<std::size_t>(lane * 256 + column)] = pattern(lane, column);
        for (int thread = 0; thread < 128; ++thread)
          for (int r = 0; r < registers; ++r) {
            const Place at = place(shape.name, thread % 32, r, 0);
            const int lane = thread / 32 * 32 + at.lane,
                      column = 5 + at.column * per + (split && thread % 32 >= 16 ? offset : 0);
            const std::uint32_t value = static_cast<std::uint32_t>(thread * 4096 + r) | 0x5A000000;
            for (int part = 0; part < per; ++part)
              cells[static_cast<std::size_t>(lane * 256 + column + part)] =
                  packed ? value >> 16 * part & 0xFFFF : value;
          }
        for (std::size_t i = 0; i < cells.size(); ++i)
          ASSERT_EQ(run.out[i], packed ? cells[i] & 0xFFFF : cells[i])
              << store << ": lane " << i / 256 << ", column " << i % 256;
      }
}

TEST(EmulatorTensorMemory, ReducesWhatItLoads) {
  const auto as_float = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
  for (const std::string what : {"min.u32", "max.u32", "min.s32", "max.s32", "min.f32", "max.f32",
                                 "max.abs.f32", "min.NaN.f32", "max.abs.NaN.f32"})
    for (const int repeats : {2, 32}) {
      const std::string load =
          fmt::format("tcgen05.ld.red.sync.aligned.32x32b.x{}.{} {}, w{}, [own+7];\n", repeats,
                      what, numbered("w", repeats), repeats);
      const KernelRun run = run_tensor(
          tensor_text(fill() + load + "tcgen05.wait::ld.sync.aligned;\n" + give(repeats + 1), 512,
                      {}, "sm_103a"),
          static_cast<std::size_t>(128 * (repeats + 1)));
      ASSERT_EQ(findings_text(run), "") << load;
      for (int lane = 0; lane < 128; ++lane) {
        std::uint32_t best = 0;
        bool any = false, nan = false;
        for (int i = 0; i < repeats; ++i) {
          std::uint32_t next = pattern(lane, 7 + i);
          if (what.find("abs") != std::string::npos) next &= 0x7FFFFFFF;
          if (what.ends_with("f32") && std::isnan(as_float(next))) {
            nan = true;
            continue;
          }
          const bool less = what.ends_with("f32") ? as_float(next) < as_float(best)
                            : what.ends_with("s32")
                                ? static_cast<std::int32_t>(next) < static_cast<std::int32_t>(best)
                                : next < best;
          if (!any || less == what.starts_with("min")) best = next;
          any = true;
        }
        if (!any || (nan && what.find("NaN") != std::string::npos)) best = 0x7FFFFFFF;
        ASSERT_EQ(run.out[static_cast<std::size_t>(lane * (repeats + 1) + repeats)], best)
            << load << ": lane " << lane;
      }
    }
}

// Compilers move the wait behind the uses: a read of a register waits for it.
TEST(EmulatorTensorMemory, RegistersOfALoadWaitByThemselves) {
  const std::string body = R"(mov.u32 v0, 7;
tcgen05.st.sync.aligned.32x32b.x1.b32 [own], {v0};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, [own];
mul.wide.u32 rd1, r0, 4;
add.s64 rd1, rd0, rd1;
st.global.b32 [rd1], w0;
tcgen05.wait::ld.sync.aligned;
)";
  const KernelRun run = run_tensor(tensor_text(body), 128);
  EXPECT_EQ(findings_text(run), "");
  EXPECT_EQ(std::ranges::count(run.out, 7u), 128);
}

// ---- Rules.

struct Mistake {
  std::string body, rule, says;
  int columns = 512;
  bool frees = true;
};

TEST(EmulatorTensorMemory, FindsMistakes) {
  const std::string ld = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {w0}, ",
                    st = "tcgen05.st.sync.aligned.32x32b.x1.b32 ",
                    wait_ld = "tcgen05.wait::ld.sync.aligned;\n",
                    wait_st = "tcgen05.wait::st.sync.aligned;\n",
                    give_one =
                        "mul.wide.u32 rd1, r0, 4;\nadd.s64 rd1, rd0, rd1;\nst.global.b32 "
                        "[rd1], w0;\n",
                    alloc =
                        "@alloc tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], ",
                    dealloc = "@alloc tcgen05.dealloc.cta_group::1.sync.aligned.b32 ";
  const Mistake mistakes[] = {
      {"mov.u32 own, 0;\n" + ld + "[own];\n" + wait_ld, "tensor-memory", "before tcgen05.alloc", 0},
      {ld + "[own+32];\n" + wait_ld, "tensor-memory", "column 32 is not allocated", 32},
      {ld + "[own+512];\n" + wait_ld, "tensor-memory", "has 128 lanes of 512 columns"},
      {"tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {w0}, [own], 0x7fffffff;\n" + wait_ld,
       "tensor-memory", "1 columns from 2147483647 on"},
      {"@!alloc bra HAS;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], "
       "32;\nHAS:\n"
       "setp.eq.u32 q, r1, 1;\n@!q bra OUT;\nmov.u32 own, 0x200000;\nmov.u32 v0, 1;\n" +
           st + "[own], {v0};\nOUT:\n",
       "asynchronous-race", "is written by tcgen05.alloc", 0},
      {"add.u32 own, own, 0x200000;\nand.b32 own, own, 0x7fffff;\n" + ld + "[own];\n" + wait_ld,
       "tensor-memory", "quarter of lanes of warp 1"},
      {"add.u32 own, own, 0x10000;\n" + ld + "[own];\n" + wait_ld, "tensor-memory",
       "is no multiple of 32"},
      {"and.b32 r4, r0, 1;\nadd.u32 own, own, r4;\n" + ld + "[own];\n" + wait_ld, "tensor-memory",
       "disagree on the address"},
      {alloc + "32;\n", "tensor-memory", "after tcgen05.relinquish_alloc_permit", 32},
      {alloc + "r5;\n", "tensor-memory", "expected a power of two", 0},
      {"mov.u32 r5, 48;\n" + alloc + "r5;\n", "tensor-memory", "expected a power of two", 0},
      {alloc + "32;\n" + alloc + "64;\n", "tensor-memory", "must not grow", 0},
      {"", "tensor-memory", "are still allocated when the CTA ends", 64, false},
      {dealloc + "ta, 64;\n", "tensor-memory", "is not allocated: it was deallocated before", 64},
      {dealloc + "ta, 32;\n", "tensor-memory", "32 columns at address 0x0, which has 64", 64},
      {"add.u32 ta, ta, 32;\n" + dealloc + "ta, 32;\n", "tensor-memory", "inside an allocation",
       64},
      {alloc + "512;\n" + alloc + "32;\n", "deadlock",
       "waits for 32 columns of tensor memory, of which 512 are allocated", 0},
      {ld + "[own];\n" + wait_ld + give_one, "uninitialized-read", "column 0 was never written"},
      {"mov.u32 v0, 1;\n" + st + "[own], {v0};\n" + ld + "[own];\n" + wait_ld + wait_st,
       "asynchronous-race", "expected tcgen05.wait::st in its warp"},
      {"mov.u32 v0, 1;\n" + st + "[own], {v0};\n" + wait_st + ld + "[own];\n" + st +
           "[own], {v0};\n" + wait_ld + wait_st,
       "asynchronous-race", "expected tcgen05.wait::ld in its warp"},
      {"mov.u32 v0, 1;\n" + st + "[own], {v0};\n" + wait_st +
           "@!alloc bra LOAD;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 ta, 512;\nLOAD:\n",
       "asynchronous-race", "but that is not ordered before this access", 512, false},
  };
  for (const Mistake& each : mistakes) {
    std::string declarations;
    const KernelRun run =
        run_tensor(tensor_text(each.body, each.columns, declarations, "sm_100a", each.frees), 128);
    const std::string text = findings_text(run);
    EXPECT_NE(text.find("[" + each.rule + "]"), std::string::npos) << each.body << text;
    EXPECT_NE(text.find(each.says), std::string::npos) << each.body << text;
  }
}

// A warp waits for columns until another one gives some back.
TEST(EmulatorTensorMemory, WaitsForColumns) {
  const std::string body = R"(setp.eq.u32 q, r1, 1;
@!q bra OTHER;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot2], 64;
ld.shared.b32 r6, [slot2];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 r6, 64;
mov.u64 rd1, rd0;
st.global.b32 [rd1], r6;
bra OUT;
OTHER:
@!alloc bra OUT;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 256;
ld.shared.b32 r6, [slot];
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 256;
ld.shared.b32 r7, [slot];
tcgen05.dealloc.cta_group::1.sync.aligned.b32 r6, 256;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 r7, 256;
OUT:
)";
  for (const char* schedule : {"", "1", "2", "3"}) {
    const KernelRun run = run_tensor(tensor_text(body, 0, ".shared .align 4 .b32 slot2;\n"), 1, {1},
                                     {.schedule = schedule});
    // Who is first decides whether the second one's is larger.
    const std::string text = findings_text(run);
    EXPECT_TRUE(text.empty() || text.find("must not grow") != std::string::npos) << text;
  }
}

// What stands in the way of deciding all schedules by one.
std::string obstacles(const std::string& body, int columns, const std::string& declarations = {}) {
  const auto exploration = std::make_shared<detail::Exploration>();
  exploration->proves = true;
  const KernelRun run = run_tensor(tensor_text(body, columns, declarations), 1, {1},
                                   {.exploration = exploration, .checks = Checks::all});
  std::string out = findings_text(run);
  for (const detail::Obstacle& each : exploration->obstacles) out += each.text + "\n";
  return out;
}

TEST(EmulatorTensorMemory, OneRunDoesNotDecideWhoAllocatesFirst) {
  const std::string sizes = R"(setp.eq.u32 q, r1, 1;
@q tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot2], 32;
@q ld.shared.b32 r6, [slot2];
@q tcgen05.dealloc.cta_group::1.sync.aligned.b32 r6, 32;
@alloc tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
@alloc ld.shared.b32 r6, [slot];
@alloc tcgen05.dealloc.cta_group::1.sync.aligned.b32 r6, 32;
)";
  EXPECT_NE(obstacles(sizes, 0, ".shared .align 4 .b32 slot2;\n").find("several warps allocate"),
            std::string::npos);
  EXPECT_NE(obstacles("setp.eq.u32 q, r1, 1;\n@q tcgen05.relinquish_alloc_permit.cta_group::1.sync."
                      "aligned;\n",
                      32)
                .find("several warps allocate"),
            std::string::npos);
  EXPECT_EQ(obstacles("", 32), "");
}

constexpr std::string_view commit =
    "@q tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 ";

TEST(EmulatorTensorMemory, OneRunDoesNotDecideWhetherACommitIsLate) {
  const std::string init = "setp.eq.u32 q, r0, 0;\n@q mbarrier.init.shared::cta.b64 [done], 1;\n",
                    end = "@q mbarrier.inval.shared::cta.b64 [done];\n",
                    wait =
                        "@!q bra OUT;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [done], "
                        "0;\n@!p bra WAIT;\n";
  const std::string once = init + std::string(commit) + "[done];\n";
  EXPECT_NE(obstacles(once + end, 32).find("tcgen05.commit may arrive"), std::string::npos);
  EXPECT_EQ(obstacles(once + wait + end + "OUT:\n", 32), "");
}

// So that who hears of the last one has heard of all.
TEST(EmulatorTensorMemory, CommitsOfAThreadArriveInTheirOrder) {
  const std::string body =
      "setp.eq.u32 q, r0, 0;\n@q mbarrier.init.shared::cta.b64 [done], 1;\n@q "
      "mbarrier.init.shared::cta.b64 [last], 1;\n" +
      std::string(commit) + "[done];\n" + std::string(commit) +
      "[last];\n@!q bra OUT;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [last], 0;\n@!p "
      "bra WAIT;\nmbarrier.inval.shared::cta.b64 [done];\nOUT:\n";
  for (int schedule = 0; schedule < 10; ++schedule) {
    const KernelRun run = run_tensor(tensor_text(body, 32, ".shared .align 8 .b64 last;\n"), 1, {1},
                                     {.schedule = std::to_string(schedule), .checks = Checks::all});
    EXPECT_EQ(findings_text(run), "");
  }
}

TEST(EmulatorTensorMemory, ColumnsPassFromWarpToWarp) {
  const std::string body = R"(tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slots], 512;
bar.warp.sync -1;
ld.shared.b32 r6, [slots];
and.b32 r2, r1, 3;
shl.b32 r2, r2, 21;
add.u32 own, r6, r2;
tcgen05.st.sync.aligned.32x32b.x1.b32 [own], {r0};
tcgen05.wait::st.sync.aligned;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 r6, 512;
)";
  std::string own_slots = body;
  for (std::size_t at = 0; (at = own_slots.find("[slots]", at)) != std::string::npos; ++at)
    own_slots.replace(at, 7, "[r8]");
  own_slots = "mov.u32 r8, slots;\nshl.b32 r9, r1, 2;\nadd.u32 r8, r8, r9;\n" + own_slots;
  const KernelRun run =
      run_tensor(tensor_text(own_slots, 0, ".shared .align 4 .b32 slots[4];\n"), 1);
  EXPECT_EQ(findings_text(run), "");
}

}  // namespace
}  // namespace tartan::test
