// SPDX-License-Identifier: Apache-2.0
// The levels of findings: an error if the outcome can differ or hardware is known to misbehave,
// else a warning. Each warning beside kernels that are nearly the same and have an error.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "runtime/outcome.h"
#include "tests/emulator/race_kernels.h"

namespace tartan::test {
namespace {

using namespace races;

Manifest manifest_of(const std::string& body, const Launch& launch,
                     const std::string& declarations = shared) {
  Manifest made;
  made.name = "test.json";
  made.ptx = Source("test.ptx", kernel_text(body, declarations));
  made.kernel = "k";
  made.launch = launch;
  ManifestParam out;
  out.buffer = ManifestBuffer{.name = "out", .size = 4096};
  made.params.push_back(std::move(out));
  return made;
}

Outcome judged(const Manifest& manifest, const RuleLevels& levels = {}) {
  return run(manifest, "emulator", {.max_steps = 1'000'000, .threads = 1, .checks = Checks::all},
             levels);
}

// "memory-race error, ..." and the exit code.
std::string verdict(const Outcome& outcome) {
  std::string text;
  for (const Finding& each : outcome.findings)
    text += fmt::format("{} {}, ", each.id, level_name(each.level));
  return text + std::to_string(outcome.exit_code());
}

std::string verdict(const std::string& body, const Launch& launch = one_warp) {
  return verdict(judged(manifest_of(body, launch)));
}

// ---- What nobody wrote.

const std::string undefined_error = "uninitialized-read error, 3",
                  undefined_warning = "uninitialized-read warning, 0";

TEST(Levels, ValuesThatNobodyWroteAreErrorsWhereResultsDiffer) {
  EXPECT_EQ(verdict("mov.u32 r6, r5;\n" + keep), undefined_error);
  EXPECT_EQ(verdict("ld.shared.u32 r6, [tile];\n" + keep), undefined_error);
  EXPECT_EQ(verdict(".local .align 4 .b32 mine[4];\nld.local.u32 r6, [mine];\n" + keep),
            undefined_error);
  EXPECT_EQ(verdict(".reg .b16 h<2>;\ncvt.u32.u16 r6, h0;\n" + keep), undefined_error);
  // A register of a predicate decides what is stored.
  EXPECT_EQ(verdict("selp.b32 r6, 1, 2, p;\n" + keep), undefined_error);
  EXPECT_EQ(verdict("mov.u32 r6, 1;\n@p bra OVER;\nmov.u32 r6, 2;\nOVER:\n" + keep),
            undefined_error);
}

TEST(Levels, ValuesThatNobodyWroteAreWarningsWhereResultsDoNot) {
  EXPECT_EQ(verdict("mov.u32 r6, 1;\n@p bra OVER;\nmov.u32 r6, 1;\nOVER:\n" + keep),
            undefined_warning);
  EXPECT_EQ(verdict("selp.b32 r6, 1, 1, p;\n" + keep), "0");
  EXPECT_EQ(verdict("mul.lo.u32 r6, r5, 0;\n" + keep), undefined_warning);
  EXPECT_EQ(verdict("ld.shared.u32 r6, [tile];\nsetp.eq.u32 p, r6, 5;\n@p bra OVER;\nOVER:\n"
                    "mov.u32 r6, 3;\n" +
                    keep),
            undefined_warning);
  const Outcome outcome = judged(manifest_of("mul.lo.u32 r6, r5, 0;\n" + keep, one_warp));
  EXPECT_NE(outcome.findings[0].message.find("zeros, ones, NaNs and random bits in its place"),
            std::string::npos)
      << outcome.findings[0].message;
  EXPECT_NE(outcome.complaints(false).find("warning: "), std::string::npos);
}

TEST(Levels, OtherContentsThatFaultOrDoNotEndAreErrors) {
  // An address from zeros alone is good.
  EXPECT_EQ(verdict("cvt.u64.u32 rd2, r5;\nadd.s64 rd2, rd0, rd2;\nld.global.u32 r6, [rd2];\n"),
            undefined_error);
  EXPECT_EQ(verdict("AGAIN:\nadd.u32 r5, r5, 1;\nsetp.gt.u32 p, r5, 3;\n@p bra AGAIN;\n"),
            undefined_error);
}

TEST(Levels, BuffersThatNobodyWrote) {
  const std::string copy = "ld.global.u32 r6, [rd1];\n";
  const auto of = [&](const std::string& body, bool expects = false) {
    Manifest manifest = manifest_of(body, one_warp);
    ManifestBuffer& out = *manifest.params[0].buffer;
    out.uninitialized = true;
    if (expects) out.expect.emplace(out.size);
    return verdict(judged(manifest));
  };
  // Bytes that stay as they were are no difference, unless they are compared.
  EXPECT_EQ(of("mov.u32 r6, 1;\n" + keep), "0");
  EXPECT_EQ(of("mov.u32 r6, 0;\n" + keep, true), undefined_error);
  EXPECT_EQ(of(copy + "mul.lo.u32 r6, r6, 0;\n" + keep), undefined_warning);
  EXPECT_EQ(of(copy + "add.u32 r6, r6, 1;\n" + keep), undefined_error);
  // Zeros, where a predicate that nobody wrote lets them be stored.
  EXPECT_EQ(of("mov.u32 r6, 0;\nnot.pred q, p;\n@q " + keep), undefined_error);
}

// ---- Loads that race.

const std::string race_error = "memory-race error, 3", race_warning = "memory-race warning, 0",
                  start = words(32, 64) + mine + "bar.sync 0;\n" + theirs;

TEST(Levels, RacingLoadsAreWarningsWhereNobodyUsesThem) {
  const std::string store = "st.shared.u32 [r4], 9;\n";
  EXPECT_EQ(verdict(start + store, two_warps), race_warning);
  EXPECT_EQ(verdict(start + store + "mov.u32 r6, 5;\n" + keep, two_warps), race_warning);
  EXPECT_EQ(
      verdict(start + store + "add.u32 r7, r6, 1;\nst.shared.u32 [r4+1024], r7;\n", two_warps),
      race_warning);
  EXPECT_EQ(
      verdict(start + store + "mul.lo.u32 r7, r6, r6;\nand.b32 r6, r7, 0;\n" + keep, two_warps),
      race_warning);
  const Outcome outcome = judged(manifest_of(start + store, two_warps));
  EXPECT_NE(outcome.findings[0].message.find("what it reads is not used"), std::string::npos);
}

TEST(Levels, RacingLoadsAreErrorsWhereTheyDecide) {
  const std::string store = "st.shared.u32 [r4], 9;\n";
  EXPECT_EQ(verdict(start + store + keep, two_warps), race_error);
  EXPECT_EQ(verdict(start + keep + store, two_warps), race_error);
  EXPECT_EQ(verdict(start + store + "setp.eq.u32 p, r6, 77;\n@p bra OVER;\nOVER:\n", two_warps),
            race_error);
  EXPECT_EQ(verdict(start + store +
                        "and.b32 r6, r6, 63;\nshl.b32 r6, r6, 2;\nadd.u32 r6, r6, r3;\n"
                        "ld.shared.u32 r7, [r6+512];\n",
                    two_warps),
            race_error);
  // The same numbers in the other order are no excuse.
  EXPECT_EQ(verdict(words(32, 64) + "st.shared.u32 [r4], 9;\nbar.sync 0;\n" + theirs +
                        "mov.u32 r7, 9;\natom.shared.exch.b32 r8, [r4], r7;\n" + keep,
                    two_warps),
            race_error);
  // A load of the same before it is used, and races as well.
  EXPECT_EQ(verdict(words(32, 64) + mine + "bar.sync 0;\n" + theirs + "ld.shared.u32 r7, [r5];\n" +
                        store + keep,
                    two_warps),
            "memory-race error, memory-race warning, 3");
  // A store with a store.
  EXPECT_EQ(verdict("st.shared.u32 [tile], r0;\n", two_warps).find("warning"), std::string::npos);
}

TEST(Levels, OneLoadIsUsedAndAnotherIsNot) {
  const std::string body = words(32, 64) + mine + "st.shared.u32 [r4+1024], r0;\nbar.sync 0;\n" +
                           theirs +
                           "ld.shared.u32 r7, [r5+1024];\nst.shared.u32 [r4], 9;\n"
                           "st.shared.u32 [r4+1024], 9;\n" +
                           keep;
  const std::string all = verdict(body, two_warps);
  EXPECT_NE(all.find("memory-race error"), std::string::npos) << all;
  EXPECT_NE(all.find("memory-race warning"), std::string::npos) << all;
}

TEST(Levels, LoadsOfALoopAreToldApartByTheirTime) {
  // The last round loads what nobody waits for any more: another warp stores there.
  const auto rounds = [](const std::string& use) {
    return words(32, 64) + mine + "mov.u32 r8, 0;\nmov.u32 r9, 0;\nbar.sync 0;\nLOOP:\n" + theirs +
           use +
           "add.u32 r8, r8, 1;\nsetp.eq.u32 p, r8, 3;\n@p bra DONE;\n"
           "bar.sync 0;\nbra LOOP;\nDONE:\nst.shared.u32 [r4], 7;\nmov.u32 r6, r9;\n" +
           keep;
  };
  EXPECT_EQ(verdict(rounds("setp.lt.u32 q, r8, 2;\n@q add.u32 r9, r9, r6;\n"), two_warps),
            race_warning);
  EXPECT_EQ(verdict(rounds("add.u32 r9, r9, r6;\n"), two_warps), race_error);
}

TEST(Levels, RacesInGlobalMemory) {
  const std::string load = "ld.global.u32 r6, [data];\n", store = "st.global.u32 [data], 1;\n";
  EXPECT_EQ(verdict(of_two_blocks(store, load), two_blocks), race_warning);
  EXPECT_EQ(verdict(of_two_blocks(load, store), two_blocks), race_warning);
  EXPECT_EQ(verdict(of_two_blocks(load + keep, store), two_blocks), race_error);
  EXPECT_EQ(verdict(of_two_blocks(store, load + keep), two_blocks), race_error);
}

// ---- Lanes that move together.

const std::string exchange_warning = "converged-exchange warning, 0";

TEST(Levels, LanesThatMoveTogetherExchange) {
  EXPECT_EQ(verdict(words(1, 32) + mine + theirs + keep), exchange_warning);
  EXPECT_EQ(verdict(words(1, 32) + mine + "bar.warp.sync -1;\n" + theirs + keep), "0");
  EXPECT_EQ(verdict(words(1, 32) + mine + "bar.warp.sync -1;\n" + theirs +
                    "st.shared.u32 [r4], 9;\n" + keep),
            exchange_warning);
  // Guards part nobody.
  EXPECT_EQ(verdict(words(1, 32) + "setp.lt.u32 p, r0, 40;\n@p " + mine + theirs + keep),
            exchange_warning);
  // Round by round, in a loop that nobody leaves early.
  EXPECT_EQ(verdict(words(1, 32) + "mov.u32 r8, 0;\nLOOP:\n" + mine + "bar.warp.sync -1;\n" +
                    theirs + "bar.warp.sync -1;\nadd.u32 r0, r6, 1;\n" + mine + theirs +
                    "bar.warp.sync -1;\nadd.u32 r8, r8, 1;\nsetp.lt.u32 p, r8, 4;\n@p bra LOOP;\n" +
                    keep),
            exchange_warning);
}

TEST(Levels, LanesThatHavePartedRace) {
  const std::string part =
      "setp.lt.u32 p, r0, 16;\n@p bra OVER;\nadd.u32 r7, r0, 1;\nOVER:\nadd.u32 r7, r0, 2;\n";
  // Whoever goes on does so behind the store of all.
  EXPECT_EQ(verdict(words(1, 32) + mine + part + theirs + keep), exchange_warning);
  EXPECT_EQ(verdict(words(1, 32) + part + mine + theirs + keep), exchange_warning);
  EXPECT_EQ(verdict(words(1, 32) + mine + part + "bar.warp.sync -1;\n" + theirs + keep), "0");
  // The store is on one side of a branch alone.
  EXPECT_EQ(verdict(words(1, 32) +
                    "st.shared.u32 [r4], 0;\nbar.warp.sync -1;\n"
                    "setp.lt.u32 p, r0, 16;\n@p bra OVER;\n" +
                    mine + "OVER:\n" + theirs + keep),
            race_error);
  // A loop that lanes leave one by one.
  EXPECT_EQ(verdict(words(1, 32) + mine +
                    "mov.u32 r8, 0;\nLOOP:\nadd.u32 r8, r8, 1;\n"
                    "setp.lt.u32 p, r8, r0;\n@p bra LOOP;\n" +
                    theirs + keep),
            exchange_warning);
}

TEST(Levels, LanesExchangeByVolatileAccesses) {
  const std::string put = "st.volatile.shared.u32 [r4], r0;\n",
                    get = "ld.volatile.shared.u32 r6, [r5];\n";
  EXPECT_EQ(verdict(words(1, 32) + put + get + keep), exchange_warning);
  EXPECT_EQ(verdict(words(1, 32) + put + "bar.warp.sync -1;\n" + get + keep), "0");
  EXPECT_EQ(verdict(words(1, 32) + put + "bar.warp.sync -1;\n" + get + put + keep),
            exchange_warning);
  EXPECT_EQ(verdict(words(0, 32) + put + get + keep), "0");
  // Of another warp.
  EXPECT_EQ(verdict(words(32, 64) + mine + "bar.sync 0;\n" + put + get + keep, two_warps), "0");
}

// ---- Equal values.

TEST(Levels, LanesSetUpOneMbarrier) {
  const auto init = [](const std::string& count) {
    return count + "mbarrier.init.shared::cta.b64 [bar], r7;\n";
  };
  EXPECT_EQ(verdict(init("mov.u32 r7, 4;\n")), "repeated-init warning, 0");
  EXPECT_EQ(verdict(init("add.u32 r7, r0, 1;\n")), "mbarrier error, 3");
  EXPECT_EQ(verdict(init("mov.u32 r7, 4;\nsetp.eq.u32 p, r0, 0;\n@p ")), "0");
  // Of two warps one may set it up again while the other uses it.
  EXPECT_NE(verdict(init("mov.u32 r7, 4;\n"), two_warps).find("mbarrier error"), std::string::npos);
}

TEST(Levels, StmatrixStoresWhatIsThere) {
  // Both warps store rows of the same place.
  const auto stored = [](const std::string& value) {
    return value +
           "and.b32 r3, r0, 7;\nshl.b32 r3, r3, 4;\nmov.u32 r4, tile;\nadd.u32 r4, r4, r3;\n"
           "stmatrix.sync.aligned.m8n8.x1.shared.b16 [r4], {r7};\n";
  };
  EXPECT_EQ(verdict(stored("and.b32 r7, r0, 31;\n"), two_warps), "same-value-race warning, 0");
  EXPECT_EQ(verdict(stored("mov.u32 r7, r0;\n"), two_warps), race_error);
  // Two rows of one instruction.
  const auto rows = [](const std::string& value) {
    return value + "mov.u32 r4, tile;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [r4], {r7};\n";
  };
  EXPECT_EQ(verdict(rows("mov.u32 r7, 3;\n")), "same-value-race warning, 0");
  EXPECT_EQ(verdict(rows("mov.u32 r7, r0;\n")), race_error);
}

// ---- As the user wants them.

TEST(Levels, AreChangedByRule) {
  const Manifest race = manifest_of(start + "st.shared.u32 [r4], 9;\n" + keep, two_warps),
                 exchange = manifest_of(words(1, 32) + mine + theirs + keep, one_warp),
                 fault = manifest_of("mov.u64 rd2, 16;\nld.global.u32 r6, [rd2];\n", one_warp);
  RuleLevels warn, ignore, error;
  for (const Rule* rule : {&"memory-race"_rule, &"memory-fault"_rule}) {
    warn.set(*rule, Level::Warning);
    ignore.set(*rule, std::nullopt);
  }
  error.set("converged-exchange"_rule, Level::Error);
  EXPECT_EQ(judged(race).exit_code(), 3);
  EXPECT_EQ(judged(race, warn).exit_code(), 0);
  EXPECT_NE(judged(race, warn).complaints(false).find("warning: race"), std::string::npos);
  EXPECT_EQ(judged(race, ignore).exit_code(), 0);
  EXPECT_EQ(judged(race, ignore).complaints(false), "");
  EXPECT_EQ(judged(exchange).exit_code(), 0);
  EXPECT_EQ(judged(exchange, error).exit_code(), 3);
  // What ends the launch stays an error.
  EXPECT_EQ(judged(fault, warn).exit_code(), 3);
  EXPECT_EQ(judged(fault, ignore).exit_code(), 3);
}

// ---- Kernels of public projects, if they are next to the repository.

TEST(Levels, PublicKernelsEndWithWarnings) {
  const char* const given = std::getenv("TARTAN_SHARED");
  const std::string folder = fmt::format("{}/levels/", given ? given : SOURCE_ROOT "/../shared");
  for (const char* name : {"fa2", "fi"}) {
    const std::string path = folder + name + "/manifest.json";
    if (!std::filesystem::exists(path)) {
      std::printf("%s is absent: not tested\n", name);
      continue;
    }
    const auto manifest = read_manifest(path);
    ASSERT_TRUE(manifest) << manifest.diags().text();
    const Outcome outcome = run(*manifest, "emulator", {.checks = Checks::all});
    EXPECT_EQ(outcome.exit_code(), 0) << name << ": " << outcome.complaints(false);
    EXPECT_FALSE(outcome.findings.empty()) << name;
  }
}

}  // namespace
}  // namespace tartan::test
