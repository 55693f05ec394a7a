// SPDX-License-Identifier: Apache-2.0
// offline_main(): the files that it writes, what it refuses, and that their bytes depend on nothing
// but the kernels. The header is compiled as C++17 without Tartan.
#include "tartan/offline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tartan/bundle.h"
#include "tartan/tartan.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return std::move(out).str();
}

// x *= factor; it asserts and prints, each of which makes variables of the module. The same lines
// of a file in two folders.
#define SCALE(name)                                                         \
  return kernel(name, {.block = 64}, [](Builder& k) {                       \
    auto count = k.param("count", s32, 2);                                  \
    auto factor = k.param("factor", f32);                                   \
    auto x = k.global("x", f32, row_major(1, count));                       \
    auto i = k.block_x() * 64 + k.thread();                                 \
    k.assert_that(count >= 0, "count of " name);                            \
    k.print(name, i, i == 0);                                               \
    k.when(i < count, [&] { k.write(x, 0, i, k.read(x, 0, i) * factor); }); \
  })

// clang-format off
#line 1 "/here/deep/kernels.cc"
Kernel here(const char*) { SCALE("scale"); }
#line 1 "/away/kernels.cc"
Kernel away(const char*) { SCALE("scale"); }
#line 1 "/here/deep/kernels.cc"
Kernel other(const char*) { SCALE("other"); }
#line 58 "offline_test.cc"
// clang-format on

constexpr Tile tile{.m = 64, .n = 64, .k = 64, .warps_m = 4, .warps_n = 1};

// With TMA on sm_90a; `int` is no name of a C++ parameter.
Kernel product() {
  return kernel("product", {.block = tile.threads(), .producers = 4}, [](Builder& k) {
    auto m = k.param("m", s32), n = k.param("int", s32, 8), depth = k.param("depth", s32, 8);
    auto A = k.global("A", f16, row_major(m, depth));
    auto B = k.global("B", f16, row_major(depth, n));
    auto C = k.global("C", f32, row_major(m, n));
    auto mma = k.tiled_mma(k.best_mma(f16, f16, f32), tile);
    auto sA = k.shared("sA", f16, mma.shared_a(3, Major::row));
    auto sB = k.shared("sB", f16, mma.shared_b(3, Major::row));
    auto sum = mma.accumulator();
    k.roles([&] {
      auto [row, col] = k.block_tile(m, n, tile);
      auto fill = [&, row = row, col = col](Scalar t, Scalar stage) {
        k.copy(A.tile({row, t}, {tile.m, tile.k}), sA[stage]);
        k.copy(B.tile({t, col}, {tile.k, tile.n}), sB[stage]);
      };
      auto use = [&](Scalar, Scalar stage) { sum = mma(sum, sA[stage], sB[stage]); };
      k.pipeline({.stages = 3}, ceil_div(depth, tile.k), fill, use);
      k.store(C.tile({row, col}, {tile.m, tile.n}), sum);
    });
  });
}

// Two mistakes on sm_80, one of them on sm_90a as well.
Kernel wrong() {
  return kernel("wrong", {.block = 32}, [](Builder& k) {
    auto a = k.global("A", f16, row_major(16, 16));
    auto s = k.shared("s", f16, row_major(16, 8));
    k.copy(a, s);
    if (k.target().arch.sm == 80) k.shared("s", f16, row_major(16, 8));
  });
}

class Offline : public testing::Test {
 protected:
  Offline() : folder_(fs::path(testing::TempDir()) / ("offline_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Offline() override { fs::remove_all(folder_); }

  // The exit code; what is printed is in printed_ and errors_.
  int run(const std::vector<Kernel>& kernels, const std::vector<std::string>& words) {
    std::vector<const char*> argv = {"/some/where/my-kernels"};
    for (const std::string& each : words) argv.push_back(each.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = offline_main(static_cast<int>(argv.size()), argv.data(), kernels);
    printed_ = testing::internal::GetCapturedStdout();
    errors_ = testing::internal::GetCapturedStderr();
    return code;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& each : fs::recursive_directory_iterator(folder_))
      if (each.is_regular_file()) out.push_back(each.path().lexically_relative(folder_).string());
    std::ranges::sort(out);
    return out;
  }

  fs::path folder_;
  std::string printed_, errors_;
};

TEST_F(Offline, WritesPtxHeaderBundleAndDepfile) {
  ASSERT_EQ(run({product(), here("")},
                {"--target", "sm_80", "--target", "sm_90a", "--name", "k", "-o", path("ptx"),
                 "--header", path("k.h"), "--bundle", path("k.fatbin"), "--depfile", path("k.d")}),
            0)
      << errors_;
  EXPECT_EQ(files(), (std::vector<std::string>{"k.d", "k.fatbin", "k.h", "ptx/k.sm_80.ptx",
                                               "ptx/k.sm_90a.ptx"}));
  const std::string ptx = contents(path("ptx/k.sm_90a.ptx"));
  EXPECT_TRUE(std::regex_search(
      ptx, std::regex("^// Generated by Tartan " TARTAN_VERSION
                      ": product, scale\n// description [0-9a-f]{32}\n\n.version 8.0\n"
                      ".target sm_90a\n")))
      << ptx.substr(0, 300);
  const auto bundle = Bundle::read(path("k.fatbin"));
  ASSERT_TRUE(bundle) << bundle.diags().text();
  ASSERT_EQ(bundle->images().size(), 2u);
  EXPECT_EQ(bundle->images()[0].bytes, contents(path("ptx/k.sm_80.ptx")));
  EXPECT_EQ(bundle->images()[1].bytes, ptx);
  EXPECT_NE(contents(path("k.h")).find(ptx), std::string::npos);
  const std::string depfile = contents(path("k.d"));
  EXPECT_TRUE(depfile.starts_with(path("ptx/k.sm_80.ptx") + " " + path("ptx/k.sm_90a.ptx") + " " +
                                  path("k.h") + " " + path("k.fatbin") + ": \\\n  /"))
      << depfile;
  EXPECT_NE(depfile.find("libtartan"), std::string::npos) << depfile;
}

TEST_F(Offline, BytesDoNotDependOnTheFolder) {
  for (const auto& [name, kernel] : {std::pair{"here", here("")}, {"away", away("")}})
    ASSERT_EQ(run({kernel}, {"--target", "sm_80", "--name", "k", "-o", path(name), "--header",
                             path(name) + ".h", "--bundle", path(name) + ".fatbin"}),
              0)
        << errors_;
  for (const char* end : {"/k.sm_80.ptx", ".h", ".fatbin"})
    EXPECT_TRUE(contents(path("here") + end) == contents(path("away") + end)) << end;
  const std::string ptx = contents(path("here/k.sm_80.ptx"));
  EXPECT_NE(ptx.find("\"kernels.cc\""), std::string::npos);
  EXPECT_EQ(ptx.find("/here"), std::string::npos);

  ASSERT_EQ(
      run({here("")}, {"--target", "sm_80", "--name", "k", "-o", path("a"), "--root", "/here"}), 0);
  EXPECT_NE(contents(path("a/k.sm_80.ptx")).find("\"deep/kernels.cc\""), std::string::npos);
}

// Each kernel has texts to print: one of them is renamed in the module of both.
TEST_F(Offline, KernelsOfAModuleKeepTheirVariablesApart) {
  ASSERT_EQ(run({here(""), other("")}, {"--target", "sm_80", "--name", "k", "--bundle", path("b")}),
            0)
      << errors_;
  auto device = Device::open("emulator", {.hardware = "sm_80"});
  const auto bundle = Bundle::read(path("b"));
  ASSERT_TRUE(bundle && device);
  const auto module = load(*device, *bundle);
  ASSERT_TRUE(module) << module.diags().text();
  EXPECT_EQ(module->kernels(), (std::vector<std::string>{"scale", "other"}));
  for (const std::string name : {"scale", "other"}) {
    auto kernel = module->kernel(name);
    auto x = device->allocate(64 * 4);
    ASSERT_TRUE(kernel && x && x->write(std::vector<float>(64, 3)));
    testing::internal::CaptureStdout();
    const Status done =
        kernel->launch({.grid = {1}, .block = {64}}, Arguments().add(64).add(0.5f).add(*x));
    EXPECT_TRUE(done) << done.diags().text();
    EXPECT_TRUE(device->synchronize());
    EXPECT_EQ(testing::internal::GetCapturedStdout(), name + " (block 0,0,0, thread 0) = 0\n");
    EXPECT_EQ(x->read_all<float>()->at(63), 1.5f);
  }
}

TEST_F(Offline, ReportsEveryMistakeOnceAndWritesNothing) {
  EXPECT_EQ(run({product(), wrong()}, {"--target", "sm_80", "--target", "sm_90a", "-o", path("p"),
                                       "--header", path("h"), "--depfile", path("d")}),
            1);
  EXPECT_EQ(files(), std::vector<std::string>());
  const std::regex error("offline_test.cc:[0-9]+:[0-9]+: error: ");
  EXPECT_EQ(std::distance(std::sregex_iterator(errors_.begin(), errors_.end(), error), {}), 2)
      << errors_;
  EXPECT_EQ(run({here(""), away("")}, {"--target", "sm_80", "-o", path("p")}), 1);
  EXPECT_NE(
      errors_.find("/away/kernels.cc:1:28: error: kernel scale: two kernels of one module have "
                   "this name [duplicate-name]"),
      std::string::npos)
      << errors_;
}

TEST_F(Offline, ParametersThatDependOnTheTargetHaveNoFunction) {
  const Kernel varying = kernel("varying", {.block = 32}, [](Builder& k) {
    auto x = k.global("x", k.target().arch.sm == 80 ? f32 : s32, row_major(1, 1));
    k.write(x, 0, 0, k.read(x, 0, 0));
  });
  const std::vector<std::string> words = {"--target", "sm_80", "--target", "sm_90a"};
  std::vector<std::string> with_header = words, without = words;
  with_header.insert(with_header.end(), {"--header", path("h")});
  without.insert(without.end(), {"--bundle", path("b")});
  EXPECT_EQ(run({varying}, with_header), 1);
  EXPECT_NE(errors_.find("found (f32* x) on sm_80 and (s32* x) on sm_90a"), std::string::npos)
      << errors_;
  EXPECT_EQ(run({varying}, without), 0) << errors_;
}

TEST_F(Offline, PixelsOfImagesHaveNoFunction) {
  const Kernel pixels = kernel("pixels", {.block = 128, .producers = 1}, [](Builder& k) {
    auto x = k.tensor("X", f16, {2, 8, 8, 32});
    auto s = k.shared("s", f16, RingLayout{row_major(16, 32), 2});
    auto y = k.global("y", f16, row_major(16, 32));
    k.roles([&] {
      k.pipeline(
          {.stages = 2}, 1,
          [&](Scalar, Scalar stage) {
            k.copy_pixels(x, s[stage], {{3, 3}}, 0, {0, 0}, 0);
          },
          [&](Scalar, Scalar stage) { k.copy(s[stage], y); });
    });
  });
  EXPECT_EQ(run({pixels}, {"--target", "sm_90a", "--header", path("h")}), 1);
  EXPECT_NE(errors_.find("encode no tensor map in im2col mode"), std::string::npos) << errors_;
  EXPECT_EQ(run({pixels}, {"--target", "sm_90a", "--bundle", path("b")}), 0) << errors_;
}

TEST_F(Offline, RefusesInvalidArguments) {
  const auto complaint = [&](std::vector<std::string> words) {
    EXPECT_EQ(run({product()}, words), 2);
    return errors_;
  };
  EXPECT_EQ(complaint({"-o", "x"}),
            "error: --target is required: expected one such as sm_80 [usage]\n");
  EXPECT_EQ(complaint({"--target", "sm_91", "--target", "sm_80", "--target", "sm_80"}),
            "error: --target sm_91: unknown target; the nearest is sm_90 [usage]\n"
            "error: --target sm_80: it is named twice [usage]\n"
            "error: nothing to write: expected -o, --header or --bundle [usage]\n");
  EXPECT_EQ(complaint({"--target", "sm_90a", "--ptx", "7.8", "-o", "x"}),
            "error: --ptx 7.8: sm_90a requires PTX 8.0 [usage]\n");
  EXPECT_EQ(complaint({"--target", "sm_80", "--bundel", "x"}),
            "error: unknown option --bundel; the nearest is --bundle [usage]\n");
  EXPECT_EQ(complaint({"--target", "sm_80", "-o", ""}),
            "error: -o: expected a value, found an empty one [usage]\n"
            "error: nothing to write: expected -o, --header or --bundle [usage]\n");
  EXPECT_EQ(complaint({"--target", "sm_80", "--header", "x", "--bundle", "x"}),
            "error: expected different files, found x for two of them [usage]\n");
  EXPECT_EQ(
      complaint({"--target", "sm_80", "-o", "x", "--name", "a-b"}),
      "error: --name a-b: expected letters, digits and _, not starting with a digit [usage]\n");
  EXPECT_NE(complaint({"--target", "sm_80", "--bundle", path("none/b")}).find("[file]"),
            std::string::npos);
  EXPECT_NE(complaint({"--target", "sm_80", "--bundle", path("b"), "--ptxas", "/no/ptxas"})
                .find("error: --ptxas /no/ptxas: cannot be run: No such file or directory [file]"),
            std::string::npos);
  EXPECT_EQ(files(), std::vector<std::string>());
  EXPECT_EQ(run({product(), here("")}, {"--list"}), 0);
  EXPECT_TRUE(std::regex_match(
      printed_, std::regex("product +offline_test.cc:[0-9]+\nscale +kernels.cc:1\n")))
      << printed_;
}

TEST_F(Offline, AddsMachineCode) {
  const fs::path ptxas = "/usr/local/cuda/bin/ptxas";
  if (!fs::exists(ptxas)) GTEST_SKIP() << "no " << ptxas;
  ASSERT_EQ(run({product()}, {"--target", "sm_80", "--target", "sm_90a", "--bundle", path("b"),
                              "--ptxas", ptxas}),
            0)
      << errors_;
  const auto bundle = Bundle::read(path("b"));
  ASSERT_TRUE(bundle) << bundle.diags().text();
  EXPECT_EQ(bundle->images().size(), 4u);
  EXPECT_NE(bundle->best_cubin(90), nullptr);
}

// A program of C++17 with warnings as errors, that knows nothing of Tartan.
TEST_F(Offline, HeaderNeedsNothingAndChecksArguments) {
  ASSERT_EQ(run({product(), here("")}, {"--target", "sm_80", "--target", "sm_90a", "--name", "k",
                                        "--header", path("k.h")}),
            0)
      << errors_;
  std::ofstream(path("main.cc")) << R"text(#include "k.h"
#include <cstdio>
int main() {
  for (int sm : {75, 80, 89, 90, 100}) {
    const k::Image* image = k::best(sm);
    std::printf("%d %s\n", sm, image ? image->target : "none");
  }
  using k::Global;
  const Global<k::f16> a(0x1000, 64 * 64 * 2), b(0x2000), odd(0x2008);
  const Global<k::f32> c(0x3000, 100), all(0x3000);
  for (const k::Image& image : k::images) {
    const auto good = k::prepare_product(image, {1}, 64, 64, 64, a, b, all);
    std::printf("%s: %s block %u shared %u arguments %d maps %d\n", image.target,
                good.error.c_str(), good.block.x, good.shared, good.count, good.map_count);
    for (int i = 0; i < good.map_count; ++i) {
      const k::Map& map = good.maps[i];
      std::printf("map %d: type %d rank %u address %llx extents %llu %llu stride %llu box %u %u swizzle %d\n",
                  map.argument, map.type, map.rank, (unsigned long long)map.address,
                  (unsigned long long)map.extents[0], (unsigned long long)map.extents[1],
                  (unsigned long long)map.strides[0], map.box[0], map.box[1], map.swizzle);
    }
    const auto bad = k::prepare_product(image, {5, 0}, 65, 60, 64, a, odd, c);
    std::printf("%s\n", bad.error.c_str());
  }
  std::printf("%s\n", k::prepare_scale(k::images[0], {1}, 3, 0.5f, all).error.c_str());
}
)text";
  const auto build = [&](const std::string& compiler) {
    return test::shell(
        "cd " + folder_.string() + " && " + compiler +
        " -std=c++17 -Wall -Wextra -Wpedantic -Werror main.cc -o main 2>&1 && ./main");
  };
  const auto ran = build("c++");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_EQ(ran.out, R"text(75 none
80 sm_80
89 sm_80
90 sm_90a
100 sm_80
sm_80:  block 256 shared 58368 arguments 6 maps 0
grid.y: expected 1 to 65535, found 0
int: expected a multiple of 8, found 60
A: expected at least 8320 bytes, found 8192
C: expected at least 15600 bytes, found 100
offline_test.cc:74: block_tile(): a block for each tile: expected 2 blocks along x, found 5
sm_90a:  block 256 shared 66560 arguments 6 maps 3
map 6: type 1 rank 2 address 1000 extents 64 64 stride 128 box 64 64 swizzle 3
map 7: type 1 rank 2 address 2000 extents 64 64 stride 128 box 64 64 swizzle 3
map 8: type 2 rank 2 address 3000 extents 64 64 stride 256 box 32 16 swizzle 3
grid.y: expected 1 to 65535, found 0
int: expected a multiple of 8, found 60
A: expected at least 8320 bytes, found 8192
C: expected at least 15600 bytes, found 100
offline_test.cc:74: block_tile(): a block for each tile: expected 2 blocks along x, found 5
B (TMA): expected an address that is a multiple of 16, found 8
B (TMA): expected strides that are multiples of 16 bytes, below 2^40, found 120
count: expected a multiple of 2, found 3
)text");
  if (test::shell("clang++ --version >/dev/null 2>&1").code != 0) return;
  EXPECT_EQ(build("clang++").out, ran.out);
}

}  // namespace
}  // namespace tartan
