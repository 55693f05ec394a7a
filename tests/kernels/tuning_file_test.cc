// SPDX-License-Identifier: Apache-2.0
// The file of tune(): what it keeps, what is found in it, damaged files, several writers.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tartan/tune.h"
#include "tests/kernels/gemm_run.h"
#include "tests/paths.h"
#include "tests/support/shell.h"
#include "tests/support/text_files.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;
using kernels::Gemm;
using kernels::TunedOn;
using kernels::Tuning;
using kernels::TuningEntry;

const Target hopper = *Target::parse("sm_90a");
const TunedOn here{"NVIDIA H100 80GB HBM3", "sm_90, CUDA 13.0, driver 580.1", "0.1.0, LLVM 22.1.0"};
const Gemm product{.m = 16, .n = 8192, .k = 8192, .a = bf16, .b = bf16, .c = bf16};

TuningEntry entry(int stages, double us = 10) {
  Gemm choice = product;
  choice.tile = {.m = 16, .n = 64, .k = 128, .warps_m = 1, .warps_n = 4};
  choice.stages = stages, choice.producers = 4;
  return {here, "sm_90a", choice, us};
}

class TuningFile : public testing::Test {
 protected:
  TuningFile() {
    std::string name = (fs::temp_directory_path() / "tartan-tuning-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    path_ = (folder_ / "tuning.json").string();
  }
  ~TuningFile() override { fs::remove_all(folder_); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

  fs::path folder_;
  std::string path_;
};

TEST_F(TuningFile, KeepsAllOfAChoice) {
  Tuning tuning;
  TuningEntry one = entry(5, 47.25);
  one.choice.epilogue = {.alpha = true, .bias = true, .activation = kernels::Activation::gelu};
  one.choice.a_major = Major::col, one.choice.promote = 4;
  one.choice.cluster = 2, one.choice.group = 16, one.choice.persistent = true;
  one.choice.cluster_columns = 2, one.choice.tile.products = 2;
  tuning.add(one);
  ASSERT_TRUE(tuning.merge_into(path_));
  const auto again = Tuning::read(path_);
  ASSERT_TRUE(again) << again.diags().text();
  EXPECT_EQ(again->text(), tuning.text());
  ASSERT_EQ(again->entries().size(), 1u);
  EXPECT_EQ(again->entries()[0].on, here);
  EXPECT_EQ(again->entries()[0].us, 47.25);
  Gemm wanted = product;
  wanted.epilogue = one.choice.epilogue, wanted.a_major = Major::col, wanted.promote = 4;
  const auto found = again->find(wanted, hopper, here);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tile.n, 64);
  EXPECT_EQ(found->tile.warps_n, 4);
  EXPECT_EQ(found->stages, 5);
  EXPECT_EQ(found->producers, 4);
  EXPECT_EQ(found->cluster, 2);
  EXPECT_EQ(found->cluster_columns, 2);
  EXPECT_EQ(found->tile.products, 2);
  EXPECT_EQ(found->group, 16);
  EXPECT_TRUE(found->persistent);
  EXPECT_EQ(found->epilogue.activation, kernels::Activation::gelu);
  EXPECT_FALSE(again->find(product, hopper, here));  // without an epilogue
}

TEST_F(TuningFile, FindsOnlyWhatWasMeasuredThere) {
  Tuning tuning;
  tuning.add(entry(5));
  EXPECT_EQ(tuning.find(product, hopper, here)->stages, 5);
  for (const TunedOn& other :
       {TunedOn{"NVIDIA H200", here.driver, here.library}, TunedOn{here.gpu, "590", here.library},
        TunedOn{here.gpu, here.driver, "0.2.0"}})
    EXPECT_FALSE(tuning.find(product, hopper, other));
  EXPECT_FALSE(tuning.find(product, *Target::parse("sm_80"), here));
  Gemm other = product;
  other.n = 8184;
  EXPECT_FALSE(tuning.find(other, hopper, here));
  // Compilation without a GPU takes any, if GPUs do not disagree.
  EXPECT_EQ((*tuning.find(product, hopper))->stages, 5);
  TuningEntry same = entry(5), differs = entry(6);
  same.on.gpu = differs.on.gpu = "NVIDIA H200";
  tuning.add(same);
  EXPECT_TRUE(tuning.find(product, hopper));
  tuning.add(differs);  // of the same key: it replaces
  EXPECT_EQ(tuning.entries().size(), 2u);
  const auto two = tuning.find(product, hopper);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.diags()[0].message,
            "the entries of NVIDIA H100 80GB HBM3 and NVIDIA H200 disagree about 16 x 8192 x 8192 "
            "on sm_90a: expected a file with entries of one GPU of that target");
}

TEST_F(TuningFile, PartialSumsNeedAWorkspace) {
  Tuning tuning;
  tuning.add(entry(5, 12));
  TuningEntry split = entry(8, 10);
  split.choice.splits = 4;
  tuning.add(split);  // beside the other
  ASSERT_EQ(tuning.entries().size(), 2u);
  const std::int64_t bytes = kernels::workspace_bytes(split.choice);
  EXPECT_EQ(bytes, 4LL * 4 * 16 * 8192);
  EXPECT_EQ(tuning.find(product, hopper, here)->splits, 1);
  EXPECT_EQ(tuning.find(product, hopper, here, bytes - 1)->splits, 1);
  EXPECT_EQ(tuning.find(product, hopper, here, bytes)->splits, 4);
  EXPECT_EQ((*tuning.find(product, hopper, bytes))->splits, 4);
}

TEST_F(TuningFile, TunedTakesItOnThatDeviceOnly) {
  const Device& device = testing_gemm::emulator();
  Tuning tuning;
  TuningEntry one = entry(7);
  EXPECT_NE(kernels::tuned(product, device, tuning).stages, 7);
  one.on = kernels::tuned_on(device), one.target = Target::of(device.arch()).arch.text();
  tuning.add(one);
  EXPECT_EQ(kernels::tuned(product, device, tuning).stages, 7);
}

TEST_F(TuningFile, DamagedFilesStayAsTheyAre) {
  Tuning tuning;
  tuning.add(entry(5));
  const std::string good = tuning.text();
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::pair<std::string, std::string> damaged[] = {
      {"", "not JSON"},
      {good.substr(0, good.size() / 2), "not JSON"},
      {"[]", "expected an object with \"tartan_tuning\""},
      {changed("\"tartan_tuning\": 1", "\"tartan_tuning\": 2"), "expected 1, found 2"},
      {changed("\"tile\":\"16x64x128\"", "\"tile\":\"16x64\""), "entry 0: \"tile\" is not a legal"},
      {changed("\"tile\":\"16x64x128\"", "\"tile\":\"16x64x-1\""), "entry 0: \"tile\""},
      {changed("\"m\":16", "\"m\":0"), "entry 0: \"m\" is not a legal value: 0"},
      {changed("\"m\":16,", ""), "entry 0: \"m\" is missing"},
      {changed("\"stages\":5", "\"stages\":4294967301"), "entry 0: \"stages\""},
      {changed("\"a\":\"bf16\"", "\"a\":\"bf17\""), "entry 0: \"a\" is not a legal value"},
      {changed("\"kernel\":\"gemm\"", "\"kernel\":\"gem\""), "entry 0: \"kernel\""},
      {changed("\"choice\":{", "\"chosen\":{"), "entry 0: \"choice\" is missing"}};
  for (const auto& [text, message] : damaged) {
    write(text);
    const auto read = Tuning::read(path_);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.diags().text().find(message), std::string::npos) << read.diags().text();
    EXPECT_FALSE(tuning.merge_into(path_));
    EXPECT_EQ(test::read_file(path_), text);
  }
  EXPECT_FALSE(Tuning::read((folder_ / "none.json").string()));
  EXPECT_FALSE(tuning.merge_into((folder_ / "none" / "tuning.json").string()));
}

// Writers that do not wait for each other lose entries; readers never see half a file.
TEST_F(TuningFile, ManyWritersLoseNothing) {
  constexpr int writers = 4, each = 25;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) EXPECT_TRUE(!fs::exists(path_) || Tuning::read(path_));
  });
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer)
    threads.emplace_back([&, writer] {
      for (int i = 0; i < each; ++i) {
        Tuning mine;
        TuningEntry one = entry(5);
        one.choice.m = 1 + writer * each + i;
        mine.add(one);
        EXPECT_TRUE(mine.merge_into(path_));
      }
    });
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  EXPECT_EQ(Tuning::read(path_)->entries().size(), std::size_t{writers * each});
}

test::Ran tartan(const std::string& words) {
  return test::shell(TARTAN_COMMAND " " + words + " 2>&1");
}

TEST_F(TuningFile, EmissionTakesItWhenItIsTold) {
  const std::string words =
      "emit gemm --target sm_90a --type bf16 --c bf16 --m 16 --n 8192 --k 8192";
  const std::string plain = tartan(words).out;
  Tuning tuning;
  tuning.add(entry(2));
  ASSERT_TRUE(tuning.merge_into(path_));
  EXPECT_EQ(tartan(words).out, plain);
  const auto by_file = tartan(words + " --tuning " + path_);
  EXPECT_EQ(by_file.code, 0);
  EXPECT_NE(by_file.out, plain);
  EXPECT_EQ(by_file.out,
            tartan(words + " --tile 16x64x128 --warps 1x4 --stages 2 --producers 4").out);
  EXPECT_EQ(tartan(words + " --n 4096 --tuning " + path_).code, 2);  // --n twice
  const auto other = tartan("emit gemm --target sm_90a --type f16 --m 16 --n 8192 --k 8192 -o " +
                            path_ + ".ptx --tuning " + path_);
  EXPECT_EQ(other.code, 0);
  EXPECT_EQ(other.out, "warning: --tuning " + path_ +
                           ": it has no entry for this product on sm_90a, PTX 8.0; the "
                           "configuration is the model's choice [tuning-entry]\n");
  const auto both = tartan(words + " --tile 64x64 --tuning " + path_);
  EXPECT_EQ(both.code, 2);
  EXPECT_NE(both.out.find("--tuning: not together with --tile"), std::string::npos) << both.out;
  write("{");
  const auto damaged = tartan(words + " --tuning " + path_);
  EXPECT_EQ(damaged.code, 2);
  EXPECT_NE(damaged.out.find("not JSON"), std::string::npos) << damaged.out;
}

// Of the entries, those of the GPU that is named.
TEST_F(TuningFile, EmissionTakesThoseOfTheNamedGpu) {
  const std::string words =
      "emit gemm --target sm_90a --type bf16 --c bf16 --m 16 --n 8192 --k 8192";
  Tuning tuning;
  tuning.add(entry(2));
  TuningEntry other = entry(3);
  other.on.gpu = "NVIDIA H200";
  tuning.add(other);
  ASSERT_TRUE(tuning.merge_into(path_));
  const std::string by_file = " --tuning " + path_,
                    tile = " --tile 16x64x128 --warps 1x4 --producers 4 --stages ";
  EXPECT_EQ(tartan(words + by_file + " --gpu H100").out, tartan(words + tile + "2").out);
  EXPECT_EQ(tartan(words + by_file + " --gpu H200").out, tartan(words + tile + "3").out);
  EXPECT_NE(tartan(words + by_file).out.find("disagree about 16 x 8192 x 8192"), std::string::npos);
  const auto missing = tartan(words + by_file + " --gpu 'H100 PCIe'");
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.out.find("expected entries of --gpu H100 PCIe, found those of NVIDIA H100 80GB "
                             "HBM3, NVIDIA H200"),
            std::string::npos)
      << missing.out;
  // What else is given agrees with the entry, or is an error.
  EXPECT_EQ(tartan(words + by_file + " --gpu H100 --stages 2 --splits 1").out,
            tartan(words + tile + "2").out);
  const auto differs = tartan(words + by_file + " --gpu H100 --stages 5 --splits 1");
  EXPECT_EQ(differs.code, 2);
  EXPECT_NE(differs.out.find("--stages 5 --splits 1: --tuning " + path_ +
                             " has --stages 2 for this product; leave out one of them"),
            std::string::npos)
      << differs.out;
}

TEST_F(TuningFile, TuneSaysWhatIsMissing) {
  const std::string sizes = " --m 64 --n 64 --k 64 ";
  const auto expect = [&](const std::string& words, const std::string& message) {
    const auto ran = tartan("tune " + words);
    EXPECT_EQ(ran.code, 2) << words;
    EXPECT_NE(ran.out.find(message), std::string::npos) << ran.out;
  };
  expect("gemm" + sizes + "--device emulator",
         "measures on a GPU, and this device is the emulator");
  expect("attention" + sizes, "only configurations of gemm are searched, found attention");
  expect("gemm" + sizes + "--budget soon", "--budget soon: expected a time above 0");
  expect("gemm" + sizes + "--budget 0s", "expected a time above 0");
  expect("gemm" + sizes + "--type f17", "--type f17");
  expect("gemm --m 64 --n 64", "--k is required");
  if (!testing_gemm::gpu()) expect("gemm" + sizes, "libcuda");
  write("{");
  expect("gemm" + sizes + "--file " + path_, testing_gemm::gpu() ? "not JSON" : "libcuda");
}

}  // namespace
}  // namespace tartan
