// SPDX-License-Identifier: Apache-2.0
// tcgen05.shift and .ashift: rows that are the same whichever way they move have known values, the
// others are warnings where they decide something. Values are those of the reading that
// docs/blackwell.md names.
#include <gtest/gtest.h>

#include "tests/emulator/tensor_pair_gemm.h"

namespace tartan::test::tensor {
namespace {

constexpr int columns = 8;
const std::string shift_text = "tcgen05.shift.cta_group::1.down [ta+65536*32+16];\n";
const std::string commit_text =
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n";

// In each 16 rows the first ten are equal, and the last six.
std::uint32_t cell(int lane, int column) {
  return static_cast<std::uint32_t>(lane / 16 * 1000 + (lane % 16 >= 10) * 100 + column);
}
// Rows that differ from no neighbour in the same 32.
bool is_known(int lane) {
  const int row = lane % 32;
  for (const int other : {std::max(row - 1, 0), std::min(row + 1, 31)})
    if (cell(lane, 0) != cell(lane - row + other, 0)) return false;
  return true;
}

// Stores cell() to the 8 columns from `own` + 16 on.
std::string store_cells() {
  std::string out =
      "shr.u32 r5, r0, 4;\nmul.lo.u32 r5, r5, 1000;\nand.b32 r6, r0, 15;\nsetp.ge.u32 p, r6, 10;\n"
      "selp.u32 r6, 100, 0, p;\nadd.u32 r5, r5, r6;\n";
  for (int i = 0; i < columns; ++i) out += fmt::format("add.u32 v{0}, r5, {0};\n", i);
  return out + "tcgen05.st.sync.aligned.32x32b.x8.b32 [own+16], " + numbered("v", columns) + ";\n";
}
// Stores the lanes that `p` names, or all.
std::string load_cells(bool known) {
  std::string out = "tcgen05.ld.sync.aligned.32x32b.x8.b32 " + numbered("w", columns) +
                    ", [own+16];\ntcgen05.wait::ld.sync.aligned;\nsetp.eq.u32 p, r0, r0;\n";
  // Unknown rows: 9, 10, 15, 16, 25, 26 of each 32.
  for (const int row : {9, 10, 15, 16, 25, 26})
    if (known) out += fmt::format("and.b32 r6, r0, 31;\nsetp.ne.and.u32 p, r6, {}, p;\n", row);
  for (int i = 0; i < columns; ++i)
    out += fmt::format("@p st.global.b32 [rd1+{}], w{};\n", 4 * i, i);
  return out;
}

std::string shifting(const std::string& issued, bool known) {
  return tensor_text(
      fill_image(4) + store_cells() +
          "tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\n"
          "tcgen05.fence::after_thread_sync;\n@!q bra ISSUED;\n" +
          issued + commit_text + "ISSUED:\n" + wait("done", "WAIT") +
          "tcgen05.fence::after_thread_sync;\nmul.wide.u32 rd1, r0, 32;\nadd.s64 rd1, rd0, rd1;\n" +
          load_cells(known),
      512, ".shared .align 1024 .b8 image[1024];\n");
}
KernelRun run(const std::string& ptx, const DeviceOptions& options = {.checks = Checks::all}) {
  return run_tensor(ptx, 128 * columns, Words(8), options);
}

TEST(EmulatorTensorShifts, KeepWhatIsTheSameEitherWay) {
  const KernelRun known = run(shifting(shift_text, true));
  ASSERT_EQ(findings_text(known), "");
  for (int lane = 0; lane < 128; ++lane)
    for (int i = 0; is_known(lane) && i < columns; ++i)
      EXPECT_EQ(known.out[static_cast<std::size_t>(lane * columns + i)], cell(lane, i)) << lane;
  // The report says what the values rest on.
  EXPECT_EQ(known.report.trust.level, "assumed");
  EXPECT_NE(known.report.trust.source.find("no source tells the direction of a shift"),
            std::string::npos)
      << known.report.trust.source;
}

TEST(EmulatorTensorShifts, WarnWhereAnUnknownRowIsStored) {
  const std::string found = findings_text(run(shifting(shift_text, false)));
  EXPECT_NE(found.find("is a row that tcgen05.shift or .ashift moved"), std::string::npos) << found;
  EXPECT_NE(found.find("[unspecified-value]"), std::string::npos) << found;
  EXPECT_EQ(found.find("[uninitialized-read]"), std::string::npos) << found;
}

// Without checks, rows of lanes 32 to 63 move to the next lane, the first one stays.
TEST(EmulatorTensorShifts, MoveRowsOfAWarpToTheNextLane) {
  const KernelRun all = run(shifting(shift_text, false), {});
  ASSERT_EQ(findings_text(all), "");
  for (int lane = 0; lane < 128; ++lane) {
    const int from = lane / 32 == 1 ? std::max(lane - 1, 32) : lane;
    for (int i = 0; i < columns; ++i)
      EXPECT_EQ(all.out[static_cast<std::size_t>(lane * columns + i)], cell(from, i)) << lane;
  }
}

TEST(EmulatorTensorShifts, FindMistakes) {
  const auto text_of = [&](const std::string& issued) {
    return findings_text(run(shifting(issued, true)));
  };
  EXPECT_NE(text_of("tcgen05.shift.cta_group::1.down [ta+65536*5+16];\n")
                .find("begins in lane 5: expected a multiple of 32 [tensor-memory]"),
            std::string::npos);
  EXPECT_NE(text_of("tcgen05.shift.cta_group::1.down [ta+508];\n").find("[tensor-memory]"),
            std::string::npos);
  // Nothing orders two shifts, nor a shift behind a copy.
  EXPECT_NE(text_of(shift_text + shift_text).find("[asynchronous-race]"), std::string::npos);
  // A load behind a shift that nobody has waited for.
  std::string ptx = shifting(shift_text, true);
  const std::string waiting = wait("done", "WAIT");
  ptx.erase(ptx.find(waiting), waiting.size());
  EXPECT_NE(findings_text(run(ptx)).find("[asynchronous-race]"), std::string::npos);
  // What nobody wrote stays that.
  const std::string stores = store_cells();
  std::string unwritten = shifting(shift_text, true);
  unwritten.erase(unwritten.find(stores), stores.size());
  EXPECT_NE(findings_text(run(unwritten)).find("[uninitialized-read]"), std::string::npos);
}

// ---- Products whose A moves.

Gemm in_blocks(const std::string& kind, const std::string& type, std::mt19937& random) {
  Gemm g{.kind = kind, .a = type, .b = type, .n = 32, .steps = 2, .a_in_tensor = true};
  if (kind == "i8") g.d = "s32";
  fill(g, random);
  // In each 16 rows of A the first ten are equal, and the last six.
  for (int m = 0; m < g.m; ++m) {
    const int same = m / 16 * 16 + (m % 16 >= 10) * 10;
    for (int i = 0; i < g.depth(); ++i)
      g.a_bits[static_cast<std::size_t>(m * g.depth() + i)] =
          g.a_bits[static_cast<std::size_t>(same * g.depth() + i)];
  }
  return g;
}
void shift_rows(Gemm& g) {
  const Words before = g.a_bits;
  for (int m = 1; m < g.m; ++m)
    std::copy_n(before.begin() + (m - 1) * g.depth(), g.depth(), g.a_bits.begin() + m * g.depth());
}
std::string with_ashift(std::string ptx) {
  for (std::size_t at = 0; (at = ptx.find(" [r9]", at)) != std::string::npos; at += 12)
    ptx.insert(at, ".ashift");
  return ptx;
}

TEST(EmulatorTensorShifts, MoveRowsOfAInProducts) {
  std::mt19937 random(5);
  const std::pair<const char*, const char*> kinds[] = {
      {"f16", "f16"}, {"tf32", "tf32"}, {"f8f6f4", "e4m3"}, {"i8", "s8"}};
  for (const auto& [kind, type] : kinds) {
    Gemm g = in_blocks(kind, type, random);
    const Plan made = plan(g);
    const std::string ptx = with_ashift(made.text);
    const auto words = static_cast<std::size_t>(128 * g.n);
    const KernelRun checked = run_tensor(ptx, words, made.in);
    EXPECT_NE(findings_text(checked).find("[unspecified-value]"), std::string::npos) << kind;
    EXPECT_EQ(findings_text(checked).find("[uninitialized-read]"), std::string::npos) << kind;
    const Words unshifted = model(g);
    shift_rows(g);
    const Words shifted = model(g);
    const KernelRun plain = run_tensor(ptx, words, made.in, {});
    ASSERT_EQ(findings_text(plain), "");
    EXPECT_EQ(plain.out, shifted) << kind;
    EXPECT_NE(plain.out, unshifted) << kind;
  }
}

TEST(EmulatorTensorShifts, KnowRowsOfProductsThatAreTheSameEitherWay) {
  std::mt19937 random(6);
  const Gemm g = in_blocks("f16", "f16", random);
  const Plan made = plan(g);
  std::string ptx = with_ashift(made.text);
  // Of each 16 rows those from 1 to 8 and from 11 to 14.
  const std::string before = "setp.lt.u32 p, r3, 32;\n";
  ASSERT_NE(ptx.find(before), std::string::npos);
  std::string known = "and.b32 r5, r0, 15;\nsetp.eq.u32 p, r0, r0;\n";
  for (const int row : {0, 9, 10, 15}) known += fmt::format("setp.ne.and.u32 p, r5, {}, p;\n", row);
  ptx.replace(ptx.find(before), before.size(), known);
  const KernelRun run = run_tensor(ptx, static_cast<std::size_t>(128 * g.n), made.in);
  ASSERT_EQ(findings_text(run), "");
  const Words expected = model(g);
  for (int m = 0; m < g.m; ++m)
    for (int n = 0; n < g.n; ++n) {
      const auto at = static_cast<std::size_t>(m * g.n + n);
      const int row = m % 16;
      const bool stored = row != 0 && row != 9 && row != 10 && row != 15;
      ASSERT_EQ(run.out[at], stored ? expected[at] : 0) << m;
    }
}

TEST(EmulatorTensorShifts, RefuseProductsOf64Rows) {
  std::mt19937 random(7);
  Gemm g{.m = 64, .n = 32, .a_in_tensor = true};
  fill(g, random);
  const Plan made = plan(g);
  const std::string found = findings_text(
      run_tensor(with_ashift(made.text), static_cast<std::size_t>(128 * g.n), made.in));
  EXPECT_NE(found.find(".ashift is for 128 and 256 [instruction-descriptor]"), std::string::npos)
      << found;
}

// Of a pair, a shift moves rows in both CTAs.
TEST(EmulatorTensorShifts, MoveRowsInBothCtasOfAPair) {
  const std::string body = pair_start(0) + fill_image(4) + store_cells() + pair_issues(1) +
                           "tcgen05.shift.cta_group::2.down [ta+16];\n" + pair_waits(columns) +
                           load_cells(false) + pair_ends();
  const std::string ptx = pair_text(body, 1024);
  const KernelRun all = run_tensor(ptx, 2 * 128 * columns, Words(8), {}, pair_launch);
  ASSERT_EQ(findings_text(all), "");
  for (int rank = 0; rank < 2; ++rank)
    for (int lane = 0; lane < 128; ++lane) {
      const int from = lane < 32 ? std::max(lane - 1, 0) : lane;
      for (int i = 0; i < columns; ++i)
        EXPECT_EQ(all.out[static_cast<std::size_t>((rank * 128 + lane) * columns + i)],
                  cell(from, i))
            << rank << ", " << lane;
    }
  const std::string found = findings_text(
      run_tensor(ptx, 2 * 128 * columns, Words(8), {.checks = Checks::all}, pair_launch));
  EXPECT_NE(found.find("[unspecified-value]"), std::string::npos) << found;
}

// The tensor core keeps a product before a shift, a shift before a product, and a copy of 4x256b
// behind a shift in their order, and no other copy.
TEST(EmulatorTensorShifts, AreInOrderWithProducts) {
  std::mt19937 random(8);
  const Gemm g = in_blocks("f16", "f16", random);
  const auto found = [&](const std::string& behind) {
    Plan made = plan(g);
    const std::size_t at = made.text.find("tcgen05.commit");
    made.text.insert(at, behind);
    // D is not looked at: only the order is.
    const std::size_t store = made.text.find("setp.lt.u32 p, r3, 32;\n");
    made.text.replace(store, 22, "setp.ne.u32 p, r0, r0;");
    return findings_text(run_tensor(made.text, static_cast<std::size_t>(128 * g.n), made.in));
  };
  std::string shift;  // of all lanes
  for (int lane = 0; lane < 128; lane += 32)
    shift += fmt::format("tcgen05.shift.cta_group::1.down [ta+{}];\n", (lane << 16) + 256);
  const std::string product = "tcgen05.mma.cta_group::1.kind::f16 [r9], [r9+256], db, r8, p;\n";
  const std::string source =
      fmt::format("add.s64 da, rd4, 0x{:x};\n",
                  std::uint64_t{1} << 46 | std::uint64_t{16} << 32 | std::uint64_t{8} << 16);
  EXPECT_EQ(found(shift), "");
  EXPECT_EQ(found(shift + product), "");
  EXPECT_EQ(found(shift + source + "tcgen05.cp.cta_group::1.4x256b [ta+256], da;\n"), "");
  const std::string other =
      found(shift + source + "tcgen05.cp.cta_group::1.32x128b.warpx4 [ta+256], da;\n");
  EXPECT_NE(other.find("[asynchronous-race]"), std::string::npos) << other;
  EXPECT_NE(found(source + "tcgen05.cp.cta_group::1.4x256b [ta+300], da;\n" +
                  "tcgen05.shift.cta_group::1.down [ta+300];\n")
                .find("[asynchronous-race]"),
            std::string::npos);
}

}  // namespace
}  // namespace tartan::test::tensor
