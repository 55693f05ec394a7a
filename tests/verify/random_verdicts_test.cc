// SPDX-License-Identifier: Apache-2.0
// Programs that random ones were reduced to (tests/random), on which check and NVIDIA's assembler
// once disagreed: now their verdicts are the same.
#include "tartan/verify/verify.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

TEST(RandomVerdicts, AreTheAssemblers) {
  const auto blocks = test::split(test::read_file(TEST_DATA "/random/verdicts.txt"), "\n== ");
  ASSERT_GT(blocks.size(), 1u);
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const std::string title = blocks[i].substr(0, blocks[i].find('\n'));
    const bool legal = title.starts_with("legal: ");
    ASSERT_TRUE(legal || title.starts_with("illegal: ")) << title;
    const Diags diags = verify::check(std::make_shared<const Source>(
        title, blocks[i].substr(std::min(title.size() + 1, blocks[i].size())) + "\n"));
    EXPECT_EQ(diags.ok(), legal) << title << "\n" << diags.text(false);
  }
}

}  // namespace
}  // namespace tartan
