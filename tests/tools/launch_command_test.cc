// SPDX-License-Identifier: Apache-2.0
// Launches on the command line: `tartan run k.ptx` with arguments and results, `tartan manifest`,
// and how findings name arrays. Files of numpy are tests/data/npy.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/paths.h"
#include "tests/support/shell.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

// __global__ void add(const float* a, const float* b, float* c, int n), as nvcc names it; and a
// kernel with names of its own: y[i] = s * x[i].
constexpr const char* module_text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry _Z3addPKfS0_Pfi(
  .param .u64 _Z3addPKfS0_Pfi_param_0,
  .param .u64 _Z3addPKfS0_Pfi_param_1,
  .param .u64 _Z3addPKfS0_Pfi_param_2,
  .param .u32 _Z3addPKfS0_Pfi_param_3)
{
  .reg .pred %p;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [_Z3addPKfS0_Pfi_param_0];
  ld.param.u64 %rd2, [_Z3addPKfS0_Pfi_param_1];
  ld.param.u64 %rd3, [_Z3addPKfS0_Pfi_param_2];
  ld.param.u32 %r1, [_Z3addPKfS0_Pfi_param_3];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p, %r5, %r1;
  @%p bra $done;
  mul.wide.s32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
$done:
  ret;
}
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 s, .param .align 4 .b8 rest[8])
.reqntid 64
{
  .reg .f32 %f<4>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.f32 %f1, [s];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  mul.f32 %f3, %f1, %f2;
  st.global.f32 [%rd5], %f3;
  ret;
}
)";

using test::Ran;

class LaunchCommand : public testing::Test {
 protected:
  LaunchCommand() : folder(fs::temp_directory_path() / fmt::format("tartan_launch_{}", getpid())) {
    fs::create_directories(folder);
    write("k.ptx", module_text);
    fs::copy(fs::path(TEST_DATA) / "npy/f4.npy", folder / "f4.npy");  // arange(6).reshape(2, 3) / 4
  }
  ~LaunchCommand() override { fs::remove_all(folder); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder / name, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return std::move(out).str();
  }

  Ran tartan(const std::string& words) const {
    return test::shell(
        fmt::format("(cd {} && exec {} {}) 2>&1", folder.string(), TARTAN_COMMAND, words));
  }
  Ran run(const std::string& words) const { return tartan("run k.ptx --device emulator " + words); }

  void expect(const Ran& ran, int code, const std::string& text) const {
    EXPECT_EQ(ran.code, code) << ran.out;
    EXPECT_NE(ran.out.find(text), std::string::npos) << ran.out << "\nexpected: " << text;
  }
  void refused(const std::string& words, const std::string& text) const {
    expect(run(words), 2, text);
  }

  // 256 threads, as numbers of one array each.
  static constexpr const char* add =
      "--kernel add --grid 4 --block 64 --arg a=random:f32:256:1 --arg b=full:f32:256:0.5 "
      "--arg c=empty:f32:256 --arg n=256 ";
  static constexpr const char* small =
      "--kernel add --grid 1 --block 8 --arg a=f4.npy --arg b=full:f32:2x3:1 --arg "
      "c=zeros:f32:2x3 --arg n=6 ";

  fs::path folder;
};

TEST_F(LaunchCommand, RunsAndComparesWithAFormula) {
  expect(run(std::string(add) + "--reference 'c = a + b'"), 0, "c: 256 elements as expected");
  const Ran wrong = run(std::string(add) + "--reference 'c = a + 2 * b'");
  expect(wrong, 1, "c: 256 of 256 elements differ, as f32 within 1e-05 relative or ");
  expect(wrong, 1, "first at c[0]: expected ");
  expect(run(std::string(add) + "--reference 'c = a + 2 * b' --max-abs 0.51"), 0, "as expected");
  const std::string scale =
      "--kernel scale --grid 1 --arg random:f32:64:3 --arg empty:f32:64 --arg 2.5 --arg "
      "bytes:0001020304050607 ";
  expect(run(scale + "--reference 'y = s * x'"), 0, "y: 64 elements as expected");
}

TEST_F(LaunchCommand, PrintsParts) {
  const Ran ran = run(std::string(small) + "--print c[0:2,1:3] --print c[1] --print a");
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("a[:], f32 2x3:\n"
                         "  0:     0  0.25   0.5\n"
                         "  1:  0.75     1  1.25\n"),
            std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("c[0:2,1:3], f32 2x3:\n"
                         "  0:  1.25   1.5\n"
                         "  1:     2  2.25\n"),
            std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("c[1], f32 2x3:\n  1:  1.75  2  2.25\n"), std::string::npos) << ran.out;
  // What nobody wrote, and what is left out.
  const std::string four =
      "--kernel add --grid 1 --block 8 --arg a=f4.npy --arg b=full:f32:2x3:1 --arg "
      "c=empty:f32:2x3 --arg n=4 ";
  expect(run(four + "--print c"), 0, "  1:  1.75     ?    ?\n");
  expect(run("--kernel add --grid 4 --block 64 --arg a=zeros:f32:2000 --arg b=zeros:f32:2000 "
             "--arg c=zeros:f32:2000 --arg n=8 --print c"),
         0, "  0:  0  0  0  ...  0  0  0\n");
  const auto json = nlohmann::json::parse(run(std::string(small) + "--print c[0] --json").out);
  EXPECT_EQ(json["printed"], "c[0], f32 2x3:\n  0:  1  1.25  1.5\n");
}

TEST_F(LaunchCommand, SavesAndExpectsNpy) {
  EXPECT_EQ(run(std::string(small) + "--save c=c.npy").code, 0);
  const std::string saved = read("c.npy");
  EXPECT_TRUE(saved.starts_with("\x93NUMPY")) << saved.size();
  EXPECT_NE(saved.find("'shape': (2, 3)"), std::string::npos);
  float last = 0;
  std::memcpy(&last, saved.data() + saved.size() - 4, 4);
  EXPECT_EQ(last, 2.25f);
  expect(run(std::string(small) + "--expect c=c.npy"), 0, "c: 6 elements as expected, as f32");
  const Ran wrong = run(std::string(small) + "--expect c=f4.npy");
  expect(wrong, 1, "6 of 6 elements differ, as f32, exactly; first at c[0,0]: expected 0, found 1");
  expect(run(std::string(small) + "--expect c=f4.npy --max-abs 1"), 0, "as expected");
  refused(std::string(add) + "--expect c=f4.npy",
          "--expect c=f4.npy: \"f4.npy\" has 24 bytes, buffer c has 1024");
  expect(run(std::string(small) + "--save c=no/such/folder.npy"), 2, "cannot write");
}

TEST_F(LaunchCommand, TakesNamesPlacesAndTypes) {
  // By the parameter's number, its own name, nvcc's name, and the rest in order.
  const std::string shape = "--kernel add --grid 1 --block 8 ";
  expect(run(shape + "--arg '#3=6' --arg _Z3addPKfS0_Pfi_param_2=zeros:f32:2x3 --arg f4.npy --arg "
                     "f4.npy --print param_2[1]"),
         0, "param_2[1], f32 2x3:\n  1:  1.5  2  2.5\n");
  expect(run(shape + "--arg s32:6 --arg f4.npy --arg f4.npy --arg zeros:f32:2x3"), 2,
         "parameter param_0: float const*: expected an array of f32, found the number s32:6");
  expect(run("--kernel scale --grid 1 --arg s=0x2 --arg x=full:f32:64:3 --arg y=zeros:f32:64 --arg "
             "bytes:0000000000000000 --print y[0]"),
         0, "  0:  6\n");
  write("raw.bin", std::string(256, '\0'));
  write("p.bin", std::string(8, '\1'));
  expect(run("--kernel scale --grid 1 --arg raw.bin:f32:64 --arg zeros:f32:64 --arg f32:1 --arg "
             "p.bin --print y[0]"),
         0, "  0:  0\n");
  expect(run("--kernel scale --grid 1 --arg x=zeros:f32:128 --arg y=address:x+256 --arg 1 --arg "
             "p.bin --print x[64]"),
         0, "  64:  0\n");
}

TEST_F(LaunchCommand, ListsKernels) {
  refused("--grid 1",
          "--kernel is required: the module has 2 kernels, add(float const*, float "
          "const*, float*, int), scale [usage]");
  refused("--kernel sclae --grid 1",
          "--kernel sclae: unknown kernel; the module has add(float const*, float const*, float*, "
          "int), scale; the nearest is scale [unknown-kernel]");
  for (const char* const name :
       {"add", "_Z3addPKfS0_Pfi", "'add(float const*, float const*, float*, int)'"})
    expect(run(std::string(add).replace(9, 3, name)), 0, "");
}

TEST_F(LaunchCommand, ComparesArgumentsWithParameters) {
  const std::string shape = "--kernel add --grid 1 --block 8 ";
  refused(shape + "--arg f4.npy",
          "kernel add takes 4 arguments, found 1 --arg: add(param_0: float const*, param_1: float "
          "const*, param_2: float*, param_3: int) [usage]");
  refused("--kernel scale --grid 1 --arg f4.npy",
          "scale(x: pointer to f32, y: pointer to f32, s: f32, rest: 8 bytes)");
  refused(std::string(small) + "--arg 7", "takes 4 arguments, found 5");
  const std::string arrays = "--arg f4.npy --arg f4.npy --arg zeros:f32:6 ";
  refused(shape + arrays + "--arg f4.npy",
          "--arg f4.npy: parameter param_3: int: expected a number of s32, found the file f4.npy");
  refused(shape + arrays + "--arg zeros:f32:6", "found the array zeros:f32:6");
  refused(shape + arrays + "--arg n=u64:6",
          "--arg n=u64:6: parameter param_3: int: expected 4 bytes, found 8 bytes of u64");
  refused(shape + arrays + "--arg n=1.5", "expected a whole number, found 1.5");
  refused(shape + arrays + "--arg n=5000000000",
          "--arg n=5000000000: expected a whole number from -2147483648 to 2147483647, found "
          "5000000000");
  refused(
      shape + arrays + "--arg n=f32:5000",
      "--arg n=f32:5000: parameter param_3: int: expected a number of s32, found one of f32; b32 "
      "takes bits as they are");
  refused(shape + "--arg x=random:f64:6 --arg f4.npy --arg zeros:f32:6 --arg 6",
          "--arg x=random:f64:6: parameter param_0: float const*: expected an array of f32, found "
          "one of f64 [usage]");
  refused(shape + "--arg x=f4.npy:s32 --arg f4.npy --arg zeros:f32:6 --arg 6",
          "expected an array of f32, found one of s32; b32 takes bits as they are");
  refused(shape + arrays + "--arg '#0=6'", "expected an array of f32, found the number 6");
  refused(shape + "--arg '#4=6'", "--arg #4=6: the kernel has 4 parameters, numbered from 0");
  refused(shape + "--arg param_0=f4.npy --arg '#0=f4.npy'",
          "--arg #0=f4.npy: parameter param_0 has an argument already, param_0=f4.npy");
}

TEST_F(LaunchCommand, RefusesWordsThatItCannotRead) {
  const std::string shape = "--kernel add --grid 1 --block 8 ";
  const auto first = [&](const std::string& value, const std::string& text) {
    refused(shape + "--arg a=" + value + " --arg f4.npy --arg f4.npy --arg 6", text);
  };
  first("none.npy", "--arg a=none.npy: cannot read none.npy: no such file");
  first("zero:f32:6",
        "no file zero, and no word for an array: expected zeros, empty, random or "
        "full; the nearest is zeros");
  first("zeros:f32", "expected zeros:TYPE:SHAPE, such as zeros:f32:256x128");
  first("zeros:f31:6", "unknown type f31: expected f64, f32");
  first("zeros:f32:6x", "expected a shape such as 256x128, found 6x");
  first("full:f32:6", "expected full:TYPE:SHAPE:NUMBER");
  const auto untyped = [&](const std::string& value, const std::string& text) {  // no types of C++
    refused("--kernel scale --grid 1 --arg " + value +
                " --arg empty:f32:6 --arg 2 --arg bytes:0000000000000000",
            text);
  };
  untyped("full:u8:6:256", "expected a number of u8, found 256");
  first("random:f32:6:-1", "expected a seed from 0 on, found -1");
  first("address:d+4", "unknown buffer d");
  first("address:+4", "expected address:NAME");
  untyped("f4.npy:s32", "f4.npy: element 1 is 0.25: s32 has no such number");
  first("f4.npy:f32:3x2", "expected that of f4.npy, 2x3, found 3x2");
  refused(shape + "--arg b=zeros:f32:6 --arg b=zeros:f32:6 --arg zeros:f32:6 --arg 6",
          "duplicate name");
  refused("--kernel add --block 8 --arg 1", "--grid is required: the number of thread blocks");
  refused("--kernel add --grid 1 --arg 1", "--block is required");
  refused("--kernel add --grid 1x --block 8 --arg 1", "--grid 1x: expected one to three numbers");
  refused("--kernel add --grid 1 --block 2000 --arg f4.npy --arg f4.npy --arg f4.npy --arg 6",
          "--block 2000: expected a whole number from 1 to 1024, found 2000");
  refused(std::string(small) + "--save d=d.npy",
          "--save d=d.npy: no array is called d: expected one of a, b, c");
  refused(std::string(small) + "--print c[2]",
          "--print c[2]: [2]: no index of dimension 0, which has 2");
  refused(std::string(small) + "--print c[0", "expected NAME or NAME[0:4,0:8]");
  refused(std::string(small) + "--max-rel 1", "--max-rel and --max-abs require --expect");
  refused(std::string(small) + "--reference 'c = a + d'",
          "--reference \"c = a + d\": no buffer is called d: expected one of a, b, c");
  refused(std::string(small) + "--reference 'c = a * b'", "no sizes m, n, k fit");
  refused(std::string(add) + "--reference 'c = c + b'", "c starts uninitialized");
}

TEST_F(LaunchCommand, FindingsNameArraysAndElements) {
  const Ran ran =
      run("--kernel add --grid 1 --block 64 --arg a=zeros:f32:8x8 --arg b=zeros:f32:8x8 --arg "
          "c=zeros:f32:4x4 --arg n=64");
  expect(ran, 3, "it is c[16], and c has 16 elements, f32 4x4");
  const Ran race =
      run("--kernel add --grid 2 --block 64 --arg a=zeros:f32:64 --arg b=zeros:f32:64 --arg "
          "c=zeros:f32:8x8 --arg n=64");
  EXPECT_EQ(race.out.find("param_2"), std::string::npos) << race.out;
  const Ran unwritten = run(
      "--kernel add --grid 1 --block 8 --arg a=f4.npy --arg b=f4.npy --arg c=empty:f32:2x3 --arg "
      "n=4 --expect c=f4.npy --max-abs 9");
  expect(unwritten, 3, "8 of its 24 bytes were never written, from c[1,1] on");
  const Ran read = run(
      "--kernel add --grid 1 --block 8 --arg a=empty:f32:2x3 --arg b=f4.npy --arg c=zeros:f32:2x3 "
      "--arg n=6 --expect c=f4.npy");
  expect(read, 3, "a[0,0]");
}

TEST_F(LaunchCommand, WritesTheSameLaunchAsAManifest) {
  fs::create_directories(folder / "sub");
  const std::string words =
      std::string(small) + "--reference 'c = a + b' --print c[0] --save c=c.npy --max-rel 1e-6";
  const Ran written = tartan("manifest k.ptx " + words + " -o sub/k.json");
  EXPECT_EQ(written.code, 0) << written.out;
  const auto json = nlohmann::json::parse(read("sub/k.json"));
  EXPECT_EQ(json["ptx"], "../k.ptx");
  EXPECT_EQ(json["kernel"], "_Z3addPKfS0_Pfi");
  EXPECT_EQ(json["params"][0], (nlohmann::json{{"buffer", "a"}, {"file", "../f4.npy"}}));
  EXPECT_EQ(json["params"][3], (nlohmann::json{{"s32", 6}, {"name", "n"}}));
  EXPECT_EQ(json["params"][2]["compare"], (nlohmann::json{{"max_rel", 1e-6}}));
  EXPECT_EQ(json["reference"], "c = a + b");
  const Ran one = run(words), other = tartan("run sub/k.json --device emulator");
  EXPECT_EQ(one.out, other.out);
  EXPECT_EQ(one.code, 0);
  EXPECT_EQ(other.code, 0);
  EXPECT_TRUE(fs::exists(folder / "c.npy"));
  // A manifest takes results too, and nothing of a launch.
  expect(tartan("run sub/k.json --device emulator --print a[0] --save a=a.npy"), 0,
         "a[0], f32 2x3:\n  0:  0  0.25  0.5\n");
  EXPECT_TRUE(fs::exists(folder / "a.npy"));
  expect(tartan("run sub/k.json --grid 4"), 2, "--grid: sub/k.json is a manifest");
  expect(tartan("manifest sub/k.json"), 2, "sub/k.json is a manifest already");
}

TEST_F(LaunchCommand, WritesAManifestToEdit) {
  const Ran add_blank = tartan("manifest k.ptx --kernel add");
  EXPECT_EQ(add_blank.code, 0) << add_blank.out;
  auto json = nlohmann::json::parse(add_blank.out);
  using Json = nlohmann::json;
  EXPECT_EQ(json["params"][0],
            (Json{{"buffer", "param_0"}, {"type", "f32"}, {"shape", {1024}}, {"random", 1}}));
  EXPECT_EQ(
      json["params"][2],
      (Json{{"buffer", "param_2"}, {"type", "f32"}, {"shape", {1024}}, {"uninitialized", true}}));
  EXPECT_EQ(json["params"][3], (Json{{"s32", 0}, {"name", "param_3"}}));
  write("m.json", add_blank.out);
  EXPECT_EQ(tartan("run m.json --device emulator").code, 0);
  json = Json::parse(tartan("manifest k.ptx --kernel scale").out);
  EXPECT_EQ(json["block"], (Json{64, 1, 1}));
  EXPECT_EQ(json["params"][0]["buffer"], "x");
  EXPECT_EQ(json["params"][0]["type"], "f32");  // by its loads
  EXPECT_EQ(json["params"][3], (Json{{"struct", 8}}));
  expect(tartan("manifest -"), 2, "the manifest names its PTX");
}

TEST_F(LaunchCommand, SaysWhatIsMissingForCudaSources) {
  write("k.cu", "__global__ void k(float* x) { x[threadIdx.x] = 1; }\n");
  const std::string none = "CUDA_HOME=/nowhere PATH=/nowhere ";
  const Ran run = test::shell(fmt::format("(cd {} && {} {} run k.cu --grid 1 --block 1) 2>&1",
                                          folder.string(), none, TARTAN_COMMAND));
  expect(run, 2,
         "CUDA C++ is compiled by nvcc, which was not found: install NVIDIA's CUDA toolkit");
  const Ran check = test::shell(
      fmt::format("(cd {} && {} {} check k.cu) 2>&1", folder.string(), none, TARTAN_COMMAND));
  expect(check, 2, "which was not found");
  // A file that is no compiler.
  fs::create_directories(folder / "bin");
  write("bin/nvcc", "#!/bin/sh\necho 'k.cu(1): error: no good'\nexit 1\n");
  fs::permissions(folder / "bin/nvcc", fs::perms::owner_all);
  const Ran wrong = test::shell(fmt::format("(cd {0} && CUDA_HOME={0} {1} check k.cu) 2>&1",
                                            folder.string(), TARTAN_COMMAND));
  expect(wrong, 2, "k.cu(1): error: no good");
  // And one that writes PTX, whatever it is asked.
  write("bin/nvcc", "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\ncp " +
                        (folder / "k.ptx").string() + " \"$2\"\n");
  const auto with_it = [&](const std::string& words) {
    return test::shell(fmt::format("(cd {0} && CUDA_HOME={0} {1} {2}) 2>&1", folder.string(),
                                   TARTAN_COMMAND, words));
  };
  EXPECT_EQ(with_it("check k.cu").code, 0);
  expect(with_it("run k.cu --device emulator " + std::string(small) + "--reference 'c = a + b'"), 0,
         "c: 6 elements as expected");
  EXPECT_EQ(with_it("manifest k.cu " + std::string(small) + " -o m/k.json").code, 2);
  fs::create_directories(folder / "m");
  EXPECT_EQ(with_it("manifest k.cu " + std::string(small) + " -o m/k.json").code, 0);
  EXPECT_EQ(read("m/k.ptx"), read("k.ptx"));
  EXPECT_EQ(tartan("run m/k.json --device emulator").code, 0);
  expect(with_it("manifest k.cu " + std::string(small)), 2, "expected -o FILE.json");
}

TEST_F(LaunchCommand, NamesForeignFiles) {
  write("k.cubin", std::string("\x7f"
                               "ELF\2\1\1\7\0\0\0\0\0\0\0\0\2\0\xbe\0",
                               20));
  for (const char* const words : {"check k.cubin", "print k.cubin", "run k.cubin --grid 1"})
    expect(tartan(words), std::string(words).starts_with("check") ? 1 : 2,
           "this is a cubin, machine code of a GPU: expected PTX text; nvcc -ptx writes it");
  expect(tartan("run f4.npy --grid 1"), 2, "this is an .npy file of numpy");
  write("m.json", R"({"ptx": "k.ptx"})");
  expect(tartan("check m.json"), 1, "expected PTX, found a manifest; tartan run takes it");
  write("c.txt", "#include <cstdio>\n");
  expect(tartan("run c.txt --grid 1"), 2, "expected PTX, found CUDA C; compile it with nvcc -ptx");
}

}  // namespace
}  // namespace tartan
