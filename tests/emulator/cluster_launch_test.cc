// SPDX-License-Identifier: Apache-2.0
// clusterlaunchcontrol: who gets which cluster, under which orders; and the mistakes of kernels
// that take clusters: a request too many, responses that are read too early or overwritten too
// early, and CTAs that do not expect theirs.
#include <gtest/gtest.h>

#include <set>

#include "runtime/emulator/schedules/exploration.h"
#include "tests/emulator/kernel.h"

namespace tartan::test {
namespace {

constexpr std::uint32_t places = 12;

// Two warps a CTA. Thread 0 of the cluster's first CTA asks; each warp waits for the response at
// its CTA's `full`, reads it, and arrives at the first CTA's `empty`. Word p of the output: how
// often place p was worked for; word 16 + p: by which cluster (1 and up).
std::string text(bool multicast) {
  const std::string ask =
      multicast ? "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes."
                  "multicast::cluster::all.b128 [response], [full];\n"
                : "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes."
                  "b128 [response], [full];\n";
  return R"(.version 9.0
.target sm_100a
.address_size 64
.shared .align 16 .b8 response[16];
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
.visible .entry k(.param .u64 out)
{
.reg .pred p, q, first, mine;
.reg .b32 r<20>;
.reg .b64 rd<8>;
.reg .b128 answer;
ld.param.u64 rd0, [out];
mov.u32 r0, %tid.x;
mov.u32 r1, %cluster_ctarank;
mov.u32 r2, %cluster_nctarank;
mov.u32 r3, %ctaid.x;
sub.u32 r3, r3, r1;
add.u32 r4, r3, 1;
and.b32 r5, r0, 31;
setp.eq.u32 q, r0, 0;
setp.eq.u32 mine, r5, 0;
setp.eq.and.u32 first, r1, 0, q;
shl.b32 r6, r2, 1;
@q mbarrier.init.shared::cta.b64 [full], 1;
@q mbarrier.init.shared::cta.b64 [empty], r6;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 r8, empty;
mapa.shared::cluster.u32 r8, r8, 0;
mov.u32 r9, 0;
NEXT:
add.u32 r10, r3, r1;
mul.wide.u32 rd1, r10, 4;
add.s64 rd1, rd0, rd1;
@q red.relaxed.gpu.global.add.u32 [rd1], 1;
@q red.relaxed.gpu.global.max.u32 [rd1+64], r4;
@q mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
@!first bra ASKED;
xor.b32 r11, r9, 1;
EMPTY:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [empty], r11;
@!p bra EMPTY;
)" + ask +
         R"(ASKED:
bar.warp.sync -1;
FULL:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [full], r9;
@!p bra FULL;
ld.shared.b128 answer, [response];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer;
@p clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 r3, answer;
fence.proxy.async.shared::cta;
bar.warp.sync -1;
@mine mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r8];
xor.b32 r9, r9, 1;
@p bra NEXT;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;
}
)";
}

KernelRun run(const std::string& ptx, const DeviceOptions& options, std::uint32_t cluster = 1) {
  return run_text(ptx, {.grid = {places}, .block = {64}, .cluster = {cluster, 1, 1}}, 32, options);
}

std::string findings(const KernelRun& run) {
  std::string out = run.complaint;
  for (const Finding& each : run.findings) out += each.id + ": " + each.message + "\n";
  return out;
}

void expect_each_once(const KernelRun& run) {
  ASSERT_EQ(findings(run), "");
  for (std::size_t i = 0; i < places; ++i) EXPECT_EQ(run.out[i], 1u) << i;
}

std::vector<std::uint32_t> takers(const KernelRun& run) {
  return {run.out.begin() + 16, run.out.begin() + 16 + places};
}

TEST(EmulatorClusterLaunch, EachPlaceIsWorkedForOnce) {
  for (const std::uint32_t cluster : {1u, 2u})
    expect_each_once(run(text(cluster > 1), {.checks = Checks::all}, cluster));
}

// Not by how many threads the host has, nor from run to run.
TEST(EmulatorClusterLaunch, IsTheSameWhateverTheHost) {
  const auto usual = takers(run(text(false), {.threads = 1}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(takers(run(text(false), {.threads = 4})), usual);
}

TEST(EmulatorClusterLaunch, SchedulesHandOutOtherClusters) {
  std::set<std::vector<std::uint32_t>> seen;
  for (const std::uint32_t cluster : {1u, 2u})
    for (int seed = 1; seed < 8; ++seed) {
      const KernelRun one = run(text(cluster > 1),
                                {.schedule = std::to_string(seed), .checks = Checks::all}, cluster);
      expect_each_once(one);
      seen.insert(takers(one));
    }
  EXPECT_GE(seen.size(), 4u);
}

TEST(EmulatorClusterLaunch, OneRunDecidesNothing) {
  const auto exploration = std::make_shared<detail::Exploration>();
  exploration->proves = true;
  EXPECT_EQ(findings(run(text(false), {.exploration = exploration, .checks = Checks::all})), "");
  std::string all;
  for (const detail::Obstacle& each : exploration->obstacles) all += each.text + "\n";
  EXPECT_NE(all.find("it takes a cluster that has not started"), std::string::npos) << all;
}

// ---- Mistakes.

void expect_mistake(std::uint32_t cluster, const std::string& from, const std::string& to,
                    const char* rule, const char* says) {
  std::string ptx = text(cluster > 1);
  ASSERT_NE(ptx.find(from), std::string::npos) << from;
  ptx.replace(ptx.find(from), from.size(), to);
  const std::string found = findings(run(ptx, {.checks = Checks::all}, cluster));
  EXPECT_TRUE(found.starts_with(std::string(rule) + ": ")) << to << "\n" << found;
  EXPECT_NE(found.find(says), std::string::npos) << to << "\n" << found;
}

TEST(EmulatorClusterLaunch, ARequestAfterARefusedOneIsAFinding) {
  // One round more than there are clusters.
  expect_mistake(1, "@p bra NEXT;\n", "setp.lt.u32 p, r9, 2;\n@p bra NEXT;\n", "trap",
                 "a request after this warp has read that an earlier one was refused");
}

TEST(EmulatorClusterLaunch, AResponseThatIsReadTooEarlyIsARace) {
  for (const std::uint32_t cluster : {1u, 2u})
    expect_mistake(cluster,
                   "FULL:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [full], "
                   "r9;\n@!p bra FULL;\n",
                   "", "asynchronous-race", "clusterlaunchcontrol.try_cancel");
}

// The warps give the slot back before they read it.
TEST(EmulatorClusterLaunch, AResponseThatIsOverwrittenTooEarlyIsARace) {
  std::string ptx = text(false);
  const std::string arrival =
                        "@mine mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r8];\n",
                    read = "ld.shared.b128 answer, [response];\n";
  ptx.erase(ptx.find(arrival), arrival.size());
  ptx.insert(ptx.find(read), arrival);
  const std::string found = findings(run(ptx, {.checks = Checks::all}));
  EXPECT_TRUE(found.starts_with("asynchronous-race: ")) << found;
  EXPECT_NE(found.find("clusterlaunchcontrol.try_cancel"), std::string::npos) << found;
}

TEST(EmulatorClusterLaunch, ACtaThatDoesNotExpectItsResponseWaitsForEver) {
  expect_mistake(2, "@q mbarrier.arrive.expect_tx", "@first mbarrier.arrive.expect_tx", "deadlock",
                 "phase");
}

}  // namespace
}  // namespace tartan::test
