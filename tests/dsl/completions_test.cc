// SPDX-License-Identifier: Apache-2.0
// What the accesses of callbacks cost the two sides of a ring: the table's rows, the mbarriers that
// kernels initialize by them, and the fences and arrivals that they execute.
#include "dsl/roles/completions.h"

#include <regex>

#include "tests/dsl/roles_testing.h"

namespace tartan {
namespace {

using namespace roles_testing;
using detail::Accesses;
using detail::StageAccess;

Accesses of(std::initializer_list<StageAccess> kinds) {
  Accesses out;
  for (const StageAccess each : kinds) out.add(each);
  return out;
}

// Instructions complete as their signatures say, through the same proxy.
TEST(Completions, RowsAgreeWithTheSignatures) {
  int compared = 0;
  for (const detail::CompletionRow& row : detail::completions) {
    EXPECT_EQ(isa::uses_async_proxy(row.opcode), row.proxy == isa::Proxy::Async);
    bool listed = false, found = false;
    for (const isa::Signature& signature : isa::signatures(row.opcode))
      for (const isa::MemoryEffect& effect : signature.memory) {
        listed = true;
        found |= effect.completion == row.completion && effect.proxy == row.proxy;
      }
    if (!listed) continue;  // wgmma: its descriptors are no addresses
    ++compared;
    EXPECT_TRUE(found) << static_cast<int>(row.access);
  }
  EXPECT_GE(compared, 4);
}

TEST(Completions, RowsAddUp) {
  using enum StageAccess;
  const Accesses wgmma = of({wgmma_read}), fragments = of({fragment_load});
  EXPECT_TRUE(publish(of({cp_async}), fragments).arrives_by_itself());
  EXPECT_FALSE(publish(of({cp_async}), wgmma).arrives_by_itself());
  EXPECT_FALSE(publish(of({cp_async, store}), fragments).arrives_by_itself());
  EXPECT_FALSE(publish(of({store}), fragments).fenced);
  EXPECT_TRUE(publish(of({store}), of({load, wgmma_read})).fenced);
  EXPECT_FALSE(publish(of({tma_load}), wgmma).fenced);
  EXPECT_EQ(publish(of({cp_async}), wgmma).behind(2), 0);
  EXPECT_EQ(publish(of({cp_async}), wgmma).behind(5), 1);
  EXPECT_EQ(publish(of({cp_async}), wgmma).behind(6), 2);
  EXPECT_EQ(publish(of({cp_async, store}), wgmma).behind(6), 0);
  EXPECT_EQ(publish(of({cp_async}), fragments).behind(6), 0);
  EXPECT_EQ(text(publish({}, wgmma)), "nothing");
  EXPECT_EQ(text(publish(of({tma_load}), wgmma)), "TMA");
  EXPECT_EQ(text(publish(of({tma_load, cp_async}), wgmma)), "TMA and copies of threads");
  EXPECT_EQ(text(publish(of({store}), wgmma)), "copies of threads");
}

using Counts = std::pair<int, int>;  // of arrivals at `full` and `empty`

// Of the mbarriers that a kernel with one pipeline initializes.
Counts initialized(const std::string& ptx) {
  static const std::regex init(R"(mbarrier\.init\.\S+\s+\[[^\]]*\], (\d+);)");
  std::vector<int> counts;
  for (std::sregex_iterator each(ptx.begin(), ptx.end(), init), end; each != end; ++each)
    counts.push_back(std::stoi((*each)[1]));
  if (counts.size() != 4 || counts[0] != counts[2] || counts[1] != counts[3]) return {};
  return {counts[0], counts[1]};
}

int times(const std::string& text, std::string_view part) {
  int out = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++out;
  return out;
}

class CompletionsRun : public RolesTest {};

constexpr int tiles = 5, depth = tiles * size;

Body pipeline_of(const std::function<void(Parts&, Scalar, Scalar)>& fill,
                 const std::function<void(Parts&, Scalar)>& use) {
  return [=](Parts& p) {
    p.k.roles([&] {
      p.k.pipeline(
          {.stages = 2}, tiles, [&](Scalar t, Scalar s) { fill(p, t, s); },
          [&](Scalar, Scalar s) { use(p, s); });
      p.k.store(p.c, p.sum);
    });
  };
}

// By 128 producer threads and 128 consumer threads, counted by hand.
TEST_P(CompletionsRun, EachSideArrivesAsOftenAsItsAccessesNeed) {
  const auto copies = [](Parts& p, Scalar t, Scalar s) { p.fill(t, s); };
  const auto and_a_store = [](Parts& p, Scalar t, Scalar s) {
    p.k.copy(p.a.tile({0, t}, {size, size}), p.sa[s]);
    const Scalar row = p.k.thread() % 64, first = p.k.thread() / 64 * 32;
    p.k.loop(0, 32, 1, [&](const Scalar& i) {
      p.k.write(p.sb[s], row, first + i, p.k.read(p.b, t * 64 + row, first + i));
    });
  };
  const auto products = [](Parts& p, Scalar s) { p.add(s); };
  const auto and_a_load = [](Parts& p, Scalar s) {
    p.add(s);
    p.k.when(p.k.block_x() > 0,
             [&] { p.k.write(p.c, 0, 0, p.k.convert(p.k.read(p.sa[s], 0, 0), f32)); });
  };
  const bool wgmma = std::string_view(GetParam()) == "sm_90a";
  struct Case {
    std::string_view what;
    Body body;
    Counts wanted;
  };
  const Case cases[] = {
      {"copies, products", pipeline_of(copies, products), wgmma ? Counts{1, 4} : Counts{128, 128}},
      {"copies and stores, products", pipeline_of(and_a_store, products),
       wgmma ? Counts{129, 4} : Counts{128, 128}},
      {"copies, products and loads", pipeline_of(copies, and_a_load),
       wgmma ? Counts{1, 4} : Counts{128, 128}},
  };
  for (const auto& [what, body, wanted] : cases) {
    const auto compiled = compile(product(depth, body), target_of(GetParam()));
    ASSERT_TRUE(compiled) << what << ": " << compiled.diags().text();
    EXPECT_EQ(initialized(compiled->ptx), wanted) << what;
    EXPECT_EQ(run(depth, body), expected(depth, 0, depth)) << what;
  }
}

// What one description of a peeled use callback reads counts in the other, too.
TEST_P(CompletionsRun, AFirstTileThatIsNotReadIsReleasedLikeOthers) {
  const auto got = run(depth, [](Parts& p) {
    p.k.roles([&] {
      p.k.pipeline(
          {.stages = 2, .peel_first = true}, tiles, [&](Scalar t, Scalar s) { p.fill(t, s); },
          [&](Scalar t, Scalar s) {
            if (t.constant() != 0) p.add(s);
          });
      p.k.store(p.c, p.sum);
    });
  });
  EXPECT_EQ(got, expected(depth, size, depth));
}

// Only what wgmma reads of a ring is fenced, whatever other rings are for.
TEST_P(CompletionsRun, ARingThatThreadsReadIsNotFenced) {
  if (std::string_view(GetParam()) != "sm_90a") GTEST_SKIP() << "mma.sync reads as threads do";
  const auto body = [](bool with_another) {
    return [=](Parts& p) {
      Builder& k = p.k;
      const Ring ring = k.shared("ring", f32, RingLayout{row_major(1, 128), 2});
      k.roles([&] {
        ScalarVariable more = k.variable(k.constant(f32, 0));
        if (with_another)
          k.pipeline(
              {.stages = 2}, 2,
              [&](Scalar t, Scalar s) { k.write(ring[s], 0, k.thread(), k.convert(t + 5, f32)); },
              [&](Scalar, Scalar s) { more = more + k.read(ring[s], 0, k.thread()); });
        k.pipeline(
            {.stages = 2}, tiles, [&](Scalar t, Scalar s) { p.fill(t, s); },
            [&](Scalar, Scalar s) { p.add(s); });
        k.store(p.c, map(p.sum, [&](Scalar x) { return x + more; }));
      });
    };
  };
  const auto fences = [&](bool with_another) {
    const auto compiled = compile(product(depth, body(with_another)), target_of(GetParam()));
    EXPECT_TRUE(compiled) << compiled.diags().text();
    return compiled ? times(compiled->ptx, "fence.proxy.async") : -1;
  };
  EXPECT_EQ(fences(true), fences(false));
  std::vector<double> wanted = expected(depth, 0, depth);
  for (double& each : wanted) each += 5 + 6;
  EXPECT_EQ(run(depth, body(true)), wanted);
}

// The lane that starts TMA loads is elected once, and alone runs the producers' loop.
TEST_P(CompletionsRun, ProducersByTmaElectOnce) {
  if (std::string_view(GetParam()) != "sm_90a") GTEST_SKIP() << "needs TMA";
  const Body body = pipeline_of([](Parts& p, Scalar t, Scalar s) { p.fill(t, s); },
                                [](Parts& p, Scalar s) { p.add(s); });
  const auto compiled = compile(product(depth, body), target_of(GetParam()));
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_EQ(times(compiled->ptx, "elect.sync"), 1);
}

INSTANTIATE_TEST_SUITE_P(Targets, CompletionsRun, testing::Values("sm_80", "sm_90a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tartan
