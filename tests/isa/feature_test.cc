// SPDX-License-Identifier: Apache-2.0
// What targets have, against figures copied by hand from the manual's "Target ISA Notes" and "PTX
// ISA Notes" of each instruction.
#include <gtest/gtest.h>

#include "tartan/isa/advice.h"
#include "tartan/isa/feature.h"

namespace tartan::isa {
namespace {

struct Expected {
  Feature feature;
  Version since;
  bool (*on)(Arch arch);
};

bool from_80(Arch arch) { return arch.sm >= 80; }
bool from_90(Arch arch) { return arch.sm >= 90; }
bool only_90a(Arch arch) { return arch == Arch{90, 'a'}; }
bool from_90_with_suffix(Arch arch) { return arch.sm >= 90 && arch.suffix != 0; }

constexpr Expected expected[] = {
    {Feature::async_copy, {7, 0}, from_80},
    {Feature::clusters, {7, 8}, from_90},
    {Feature::dependent_launch, {7, 8}, from_90},
    {Feature::mbarrier_try_wait, {7, 8}, from_90},
    {Feature::register_moves, {8, 0}, from_90_with_suffix},
    {Feature::tf32_conversion, {7, 8}, from_90},
    {Feature::tma, {8, 0}, from_90},
    {Feature::wgmma, {8, 0}, only_90a},
};

TEST(Feature, IsThereFromItsVersionAndArchitectureOn) {
  for (const Expected& each : expected)
    for (const ArchRow& row : archs) {
      EXPECT_EQ(row.arch.has(each.feature), each.on(row.arch)) << row.arch.text();
      for (Version version{6, 0}; version <= newest_version; version = version.next()) {
        EXPECT_EQ(Target(row.arch, version).has(each.feature),
                  each.on(row.arch) && version >= each.since)
            << features[static_cast<std::size_t>(each.feature)].spelling << " on "
            << Target(row.arch, version).text();
        if (version == newest_version) break;
      }
    }
}

// e4m3 and e5m2 came with sm_90, and with a later version to sm_89.
TEST(Feature, IsThereWhereAnyOfItsSignaturesIs) {
  const auto has = [](int sm, Version version) {
    return Target({sm, 0}, version).has(Feature::eight_bit_conversion);
  };
  EXPECT_FALSE(has(80, newest_version));
  EXPECT_FALSE(has(89, {8, 0}));
  EXPECT_TRUE(has(89, {8, 1}));
  EXPECT_TRUE(has(90, {7, 8}));
  EXPECT_TRUE(has(120, newest_version));
}

TEST(Advice, HasItsArchitectures) {
  const auto of = [](Advice which) {
    std::string out;
    for (const ArchRow& row : archs)
      if (row.current && advised(which, row.arch)) out += row.arch.text() + " ";
    return out;
  };
  EXPECT_EQ(of(Advice::multicast),
            "sm_90a sm_100a sm_100f sm_103a sm_103f sm_107a sm_107f sm_110a sm_110f ");
  EXPECT_EQ(of(Advice::register_moves), "sm_90a ");
  EXPECT_EQ(of(Advice::gpc_order), "sm_90 sm_90a ");
  EXPECT_EQ(of(Advice::split_clusters), "sm_90 sm_90a ");
  EXPECT_EQ(of(Advice::fp8_by_wgmma_only),
            "sm_90 sm_90a sm_100 sm_100a sm_100f sm_103 sm_103a sm_103f sm_107 sm_107a sm_107f "
            "sm_110 sm_110a "
            "sm_110f ");
}

}  // namespace
}  // namespace tartan::isa
