// SPDX-License-Identifier: Apache-2.0
// The command: help texts, emit, check and isa, and their errors for invalid arguments.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <utility>

#include "tartan/version.h"
#include "tests/paths.h"
#include "tests/support/shell.h"
#include "tests/support/text_files.h"

namespace {

using tartan::version;
using tartan::test::Ran;
using tartan::test::read_file;

Ran tartan(const std::string& words) {
  return tartan::test::shell(TARTAN_COMMAND " " + words + " 2>&1");
}

// tests/data/help
void expect_help(const std::string& name, const std::string& got) {
  tartan::test::expect_file(std::string(TEST_DATA) + "/help/" + name + ".txt", got);
}

TEST(Command, HelpTexts) {
  std::string program = TARTAN_COMMAND;
  for (const std::string name : {"", "check", "print", "isa", "layout", "run", "manifest", "equal",
                                 "replay", "cache", "explore", "emit", "tune"}) {
    Ran out = tartan(name + " --help");
    EXPECT_EQ(out.code, 0);
    for (std::size_t at = out.out.find(program); at != std::string::npos;
         at = out.out.find(program))
      out.out.replace(at, program.size(), "tartan");
    expect_help(name.empty() ? "tartan" : name, out.out);
  }
}

// One number for each compilation: emit takes the newest PTX version that the kernel asks for.
TEST(Command, DumpsWhatItCompiles) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / fmt::format("tartan_dump_{}", getpid());
  const std::string dump = "TARTAN_DUMP=" + folder.string() + " ";
  const auto run = [&](const std::string& words) {
    return tartan::test::shell(dump + TARTAN_COMMAND " " + words + " 2>&1");
  };
  const Ran emitted = run("emit one_mma --target sm_80");
  EXPECT_EQ(read_file(folder / "0001.one_mma.sm_80.ptx"), emitted.out);
  EXPECT_EQ(read_file(folder / "0001.one_mma.sm_80.ir"), run("emit one_mma --ir").out);
  const std::string ir = read_file(folder / "0001.one_mma.sm_80.ll");
  EXPECT_NE(ir.find("define ptx_kernel void @one_mma("), std::string::npos) << ir.substr(0, 400);
  EXPECT_EQ(run("emit one_mma --target sm_70").code, 1);
  EXPECT_NE(read_file(folder / "0001.one_mma.sm_70.txt").find("error"), std::string::npos);
  fs::remove_all(folder);
  const std::string nowhere =
      "TARTAN_DUMP=/dev/null/x " TARTAN_COMMAND " emit one_mma 2>&1 >/dev/null";
  EXPECT_EQ(tartan::test::shell(nowhere).out,
            "TARTAN_DUMP: /dev/null/x/0001.one_mma.sm_80.ir cannot be written\n");
}

TEST(Command, EmitWritesOperations) {
  const Ran out = tartan("emit one_mma --ir");
  EXPECT_EQ(out.code, 0);
  EXPECT_TRUE(out.out.starts_with("kernel one_mma(")) << out.out;
  EXPECT_NE(out.out.find("= matrix mma.sync.aligned.m16n8k16"), std::string::npos) << out.out;
  EXPECT_EQ(tartan("emit one_mma --target sm_70 --ir").code, 1);
  EXPECT_EQ(tartan("emit one_mma --ir --explain").code, 2);
}

TEST(Command, HelpOfAKernelHasItsOptions) {
  const Ran all = tartan("emit --help"), one = tartan("emit attention --help"),
            same = tartan("emit --help attention"), lesson = tartan("emit one_mma --help");
  for (const Ran& each : {one, same}) {
    EXPECT_EQ(each.code, 0);
    for (const char* option : {"--head-dim", "--causal", "--type", "--target", "--manifest"})
      EXPECT_NE(each.out.find(option), std::string::npos) << option;
    for (const char* option : {"--tile", "--epilogue", "--activation", "--page"})
      EXPECT_EQ(each.out.find(option), std::string::npos) << option;
  }
  EXPECT_LT(2 * one.out.size(), all.out.size());
  EXPECT_EQ(lesson.out.find("--m "), std::string::npos) << lesson.out;
  EXPECT_EQ(tartan("emit nosuch --help").out, all.out);
}

TEST(Command, InvalidArguments) {
  for (const char* words : {"",
                            "unknown",
                            "check",
                            "check --target sm_9000 x.ptx",
                            "check --ptx eight x.ptx",
                            "check --max-errors -1 x.ptx",
                            "check /no/such/file.ptx",
                            "emit",
                            "emit unknown",
                            "emit one_mma --target sm_81",
                            "emit gemm --type f9",
                            "emit gemm --tile 64x",
                            "emit gemm --warps 4x1",
                            "emit gemm --tile 64x64 --warps 4",
                            "emit gemm --stages 0",
                            "emit gemm --promote -1",
                            "emit gemm --epilogue tan",
                            "emit gemm --epilogue relu,gelu",
                            "emit gate --activation tan",
                            "emit small_products --size 32x32",
                            "emit small_products --size 32x32x32x32",
                            "emit small_products --size 32xx32",
                            "emit mixed_gemm --weight u2",
                            "emit gemm --epilogue bias,bias",
                            "emit gemm --bit-op and",
                            "emit gemm --splits 300",
                            "emit gemm --stream-blocks 2147483647",
                            "emit gemm --stages 257",
                            "emit gemm --tile 64x64 --warps 65536x65536",
                            "emit gemm --m 20000000 --n 20000000",
                            "emit gemm --m 2147483647 --n 2147483647 --k 2147483647",
                            "emit gemm --a-major up",
                            "emit block_scaled --scale f16 --target sm_120a",
                            "emit block_scaled --kind mxf2 --target sm_120a",
                            "emit one_mma --ptx x",
                            "emit gemm --manifest x.json",
                            "emit one_mma -o /no/such/folder/x.ptx",
                            "emit one_mma -o ''",
                            "emit one_mma --target ''",
                            "emit gemm --tile ''",
                            "emit gemm --gpu ''",
                            "emit gemm --gpu H300",
                            "emit gemm --gpu H200 --target sm_100a",
                            "emit transpose --gpu H200",
                            "emit gemm --type s8 --a f16 --b f16",
                            "emit gemm --gpu 'H100 H200'",
                            "isa nothing",
                            "isa --target sm_1",
                            "layout nothing",
                            "run /no/such/manifest.json",
                            "replay a b",
                            "check .",
                            "run .",
                            "replay . .",
                            "run"}) {
    const Ran out = tartan(words);
    EXPECT_EQ(out.code, 2) << words << "\n" << out.out;
    EXPECT_NE(out.out.find("error: "), std::string::npos) << words << "\n" << out.out;
    EXPECT_TRUE(out.out.ends_with("]\n")) << words << "\n" << out.out;
  }
}

// Writes both files or, if one cannot be written, no manifest without its PTX.
TEST(Command, EmitWritesThePtxBeforeTheManifest) {
  const std::string at = testing::TempDir() + std::to_string(getpid()) + "_emit";
  const std::string manifest = at + ".json", ptx = at + ".ptx";
  const Ran same = tartan("emit gemm -o " + ptx + " --manifest " +
                          std::filesystem::path(ptx).parent_path().string() + "/./" +
                          std::filesystem::path(ptx).filename().string());
  EXPECT_EQ(same.code, 2);
  EXPECT_NE(same.out.find("-o and --manifest: expected two different files"), std::string::npos)
      << same.out;
  EXPECT_FALSE(std::filesystem::exists(ptx));
  EXPECT_EQ(tartan("emit gemm -o /no/such/folder/x.ptx --manifest " + manifest).code, 2);
  EXPECT_FALSE(std::filesystem::exists(manifest));
  EXPECT_EQ(tartan("emit gemm -o " + ptx + " --manifest " + manifest).out, "");
  EXPECT_TRUE(std::filesystem::remove(ptx) && std::filesystem::remove(manifest));
}

// The grid of a manifest is the kernel's.
TEST(Command, EmitManifestsRun) {
  const std::string at = testing::TempDir() + std::to_string(getpid()) + "_launch";
  for (const char* kernel :
       {"gemm --target sm_90a", "gemm --persistent --target sm_80", "one_mma --target sm_80",
        "block_scaled --m 64 --n 64 --k 128 --type e4m3 --target sm_120a"}) {
    const Ran written = tartan(fmt::format("emit {0} -o {1}.ptx --manifest {1}.json", kernel, at));
    EXPECT_EQ(written.code, 0) << kernel << "\n" << written.out;
    const Ran ran = tartan(fmt::format("run {}.json", at));
    EXPECT_EQ(ran.code, 0) << kernel << "\n" << ran.out;
  }
  std::filesystem::remove(at + ".ptx"), std::filesystem::remove(at + ".json");
}

// Each kernel of --list has a launch of its own, without an option, on the first of these targets
// that has its instructions; and it is right.
TEST(Command, EveryKernelHasALaunch) {
  const std::string at = testing::TempDir() + std::to_string(getpid()) + "_each";
  std::istringstream list(tartan("emit --list").out);
  int kernels = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line[0] == ' ') continue;
    const std::string kernel = line.substr(0, line.find(' '));
    SCOPED_TRACE(kernel);
    ++kernels;
    bool written = false;
    for (const char* target : {"sm_80", "sm_90a", "sm_120a"}) {
      const Ran out = tartan(
          fmt::format("emit {1} --target {2} -o {0}.ptx --manifest {0}.json", at, kernel, target));
      if (out.code == 1) continue;  // the target lacks the instruction
      ASSERT_EQ(out.code, 0) << target << "\n" << out.out;
      const Ran ran = tartan(fmt::format("run {}.json --device emulator", at));
      EXPECT_EQ(ran.code, 0) << target << "\n" << ran.out;
      written = true;
      break;
    }
    EXPECT_TRUE(written);
  }
  EXPECT_GE(kernels, 21);
  // TMA's extents end with the buffers.
  for (const char* kernel : {"attention", "decode", "mla_decode", "k_grouped_gemm", "delta_rule"}) {
    const Ran out = tartan(fmt::format(
        "emit {1} --target sm_90a -o {0}.ptx --manifest {0}.json && {2} run {0}.json --device "
        "emulator",
        at, kernel, TARTAN_COMMAND));
    EXPECT_EQ(out.code, 0) << kernel << "\n" << out.out;
  }
  std::filesystem::remove(at + ".ptx"), std::filesystem::remove(at + ".json");
}

TEST(Command, ManifestsGoToStandardOutput) {
  const std::string at = testing::TempDir() + std::to_string(getpid()) + "_dash.ptx";
  const Ran out = tartan("emit one_mma --manifest - -o " + at);
  EXPECT_EQ(out.code, 0);
  EXPECT_EQ(out.out.find("{\n \"ptx\": "), 0u) << out.out;
  EXPECT_FALSE(std::filesystem::exists("-"));
  std::filesystem::remove(at);
}

// What CLI11 says of a value is said as everywhere else.
TEST(Command, NumbersAreNamed) {
  for (const auto& [words, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"emit gemm --m 1.5", "emit: --m 1.5: expected a whole number of at most 32 bits"},
           {"emit gemm --m x", "emit: --m x: expected a number"},
           {"emit gemm --m", "emit: --m: expected a value behind it"},
           {"emit gemm --m 1 --m 2", "emit: --m: expected once, found 2 times"},
           {"run x --timeout -1", "run: --timeout -1: expected a number from 0 to 1000000000"},
           {"run x --max-steps 0",
            "run: --max-steps 0: expected a whole number from 1 to 18446744073709551615"},
           {"run x --checks some", "run: --checks some: expected none, memory or all"},
           {"emit gem", "unknown kernel gem; the nearest is gemm; `tartan emit --list`"},
           {"tune attention",
            "tune: KERNEL: only configurations of gemm are searched, found attention"},
           {"--verbose", "unknown option --verbose"},
           {"layout mma", "incomplete instruction mma; mma has "},
           {"layout mma.m16n8k16", "of shape m16n8k16; `tartan isa mma` lists them"},
           {"isa ld --opcodes", "isa: --opcodes lists all instructions, without ld"},
           {"run x --timeline -", "--timeline -: expected the name of a file"}}) {
    const Ran out = tartan(words);
    EXPECT_EQ(out.code, 2) << words << "\n" << out.out;
    EXPECT_NE(out.out.find(expected), std::string::npos) << words << "\n" << out.out;
  }
  EXPECT_EQ(tartan("-V").out, tartan("--version").out);
  EXPECT_EQ(tartan("isa --opcodes --json").out.find("{\n \"schema_version\""), 0u);
}

// Without a GPU there is nothing to keep.
TEST(Command, TuneWithoutAGpuWritesNothing) {
  const std::string file = testing::TempDir() + std::to_string(getpid()) + "_tune.json";
  const Ran out = tartan("tune gemm --m 64 --n 64 --k 64 --file " + file);
  if (out.code == 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(out.code, 2);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_FALSE(std::filesystem::exists(file + ".lock"));
}

// --gpu says for which GPU is chosen what is not given, and without --target what is compiled for.
TEST(Command, EmitChoosesForAGpu) {
  const auto emit = [](const std::string& words) {
    const Ran out = tartan("emit scaled_gemm --m 64 --n 2112 --k 7168 " + words);
    EXPECT_EQ(out.code, 0) << words << "\n" << out.out;
    return out.out;
  };
  const std::string usual = emit("--target sm_90a"), other = emit("--gpu H200");
  EXPECT_NE(other.find(".target sm_90a"), std::string::npos);
  EXPECT_NE(usual, other);
  EXPECT_EQ(usual, emit("--gpu h100"));
  EXPECT_EQ(other, emit("--gpu 'NVIDIA H200' --target sm_90a"));
  EXPECT_EQ(emit("--target sm_89 --ptx 8.4"), emit("--gpu L40S --ptx 8.4"));
}

// Errors of a built-in kernel refer to its options, not to lines of Tartan's source.
TEST(Command, EmitErrorsNameTheKernel) {
  const Ran out = tartan("emit gemm --tile 60x60");
  EXPECT_EQ(out.code, 1);
  EXPECT_TRUE(out.out.starts_with("error: gemm: ")) << out.out;
  EXPECT_EQ(out.out.find(".cc:"), std::string::npos) << out.out;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++out;
  return out;
}

// Each kernel with every option: options that --list does not show for it are rejected, each once.
TEST(Command, EmitRefusesWhatAKernelIgnores) {
  const std::string all =
      " --m 64 --n 64 --k 64 --multiple 8 --multiple-c 8 --type f16 --a f16 --b f16 "
      "--accumulator f32 --c f32 --a-major row --b-major col --tile 64x64 --warps 2x2 --stages 2 "
      "--promote 0 --epilogue bias --splits 1 --stream-blocks 0 --producers 0 --cluster 1 "
      "--cluster-columns 1 "
      "--cluster-splits 1 --products 1 --swap --direct "
      "--group 8 --bit-op xor --batched --persistent --dynamic --scale ue8m0 --kind mxf8f6f4 "
      "--head-dim 64 "
      "--causal --window --softcap none --sinks --packed --keys 0 --activation relu --queries 1 "
      "--heads-per-kv 8 "
      "--page 64 --heads 128 --grouping "
      "none "
      "--blocks-k 1 --share-a --tuning x.json --workspace 0 --deterministic --size 32x32x32 "
      "--key-dim 64 --value-dim 64 --channel-gates --initial-state --final-state "
      "--accumulate --weight u4 --scale-group 64 --zeros --gpu A100 --multiprocessors 0";
  const std::string list = tartan("emit --list").out;
  for (const std::string kernel :
       {"gemm", "gemm_sum", "sparse_gemm", "block_scaled", "wmma_gemm", "scaled_gemm",
        "k_grouped_gemm", "mixed_gemm", "attention", "attention_backward", "decode", "mla_decode",
        "delta_rule_chunks", "delta_rule", "delta_rule_decode", "transpose", "gate",
        "small_products", "one_mma"}) {
    SCOPED_TRACE(kernel);
    const std::size_t line = list.find("\n", list.find("\n" + kernel + " ") + 1);
    std::string options = list.substr(line + 1, list.find("\n", line + 1) - line);
    if (options[0] != ' ') options.clear();
    const std::size_t taken = count(options, "--");
    const Ran out = tartan("emit " + kernel + all);
    EXPECT_EQ(out.code, 2) << out.out;
    EXPECT_EQ(count(out.out, ": unsupported by kernel " + kernel + "; "), count(all, " --") - taken)
        << out.out;
    EXPECT_EQ(taken == 0, kernel == "one_mma");
  }
  const auto message = [](const std::string& words) { return tartan(words).out; };
  EXPECT_EQ(message("emit attention --stages 3"),
            "error: --stages: unsupported by kernel attention; gemm, gemm_sum, sparse_gemm, "
            "block_scaled, scaled_gemm, k_grouped_gemm support it [usage]\n");
  EXPECT_EQ(message("emit gemm --causal"),
            "error: --causal: unsupported by kernel gemm; attention, attention_backward_rows, "
            "attention_backward, attention_backward_queries support it [usage]\n");
  EXPECT_EQ(message("emit gemm --epilogue bias,relu,gelu"),
            "error: --epilogue bias,relu,gelu: expected at most one activation [usage]\n");
  EXPECT_EQ(message("emit gemm --splits 300"),
            "error: --splits 300: expected a number from 1 to 256 [usage]\n");
  EXPECT_NE(message("emit gemm --m 20000000 --n 20000000").find("--m 20000000 --n 20000000: C"),
            std::string::npos);
}

TEST(Command, EmitRefusesWhatNoConfigurationHas) {
  const Ran one = tartan("emit scaled_gemm --cluster-columns 2");
  EXPECT_EQ(one.out,
            "error: --cluster-columns: unsupported by kernel scaled_gemm; gemm, gemm_sum support "
            "it [usage]\n");
  const Ran two = tartan("emit gemm --multiprocessors -1");
  EXPECT_EQ(two.code, 2);
  EXPECT_NE(two.out.find("--multiprocessors -1: expected a number of at least 1"),
            std::string::npos)
      << two.out;
}

// The partial sums of a transpose have another order.
TEST(Command, SumsTakeTheOptionsOfTheProduct) {
  const std::string options =
      " --target sm_90a --m 100 --n 200 --k 136 --c f16 --tile 64x96x64 --warps 4x1 --producers 4 "
      "--splits 3 -o -";
  EXPECT_EQ(tartan("emit gemm --swap" + options).code, 0);
  const Ran swapped = tartan("emit gemm_sum --swap" + options),
            plain = tartan("emit gemm_sum" + options);
  EXPECT_EQ(swapped.code, 0) << swapped.out;
  EXPECT_EQ(plain.code, 0) << plain.out;
  EXPECT_NE(swapped.out, plain.out);
}

TEST(Command, EmitWritesWhatCheckAccepts) {
  const std::string path = testing::TempDir() + std::to_string(getpid()) + "_one_mma.ptx";
  std::filesystem::remove(path);
  EXPECT_EQ(tartan("emit one_mma --target sm_90a --ptx 8.0 -o " + path).out, "");
  EXPECT_NE(read_file(path).find(".version 8.0\n.target sm_90a"), std::string::npos);
  EXPECT_TRUE(
      read_file(path).starts_with("// Generated by Tartan " + std::string(version()) + "\n"));
  EXPECT_EQ(tartan("check " + path).code, 0);
  EXPECT_EQ(tartan("check --target sm_75 " + path).code, 1);
  EXPECT_EQ(tartan("check --ptx 6.5 " + path).code, 1);
  // A target that cannot run it: exit 1, and no file.
  std::filesystem::remove(path);
  const Ran refused = tartan("emit one_mma --target sm_75 -o " + path);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.out.find("requires sm_80"), std::string::npos) << refused.out;
  EXPECT_FALSE(std::filesystem::exists(path));
}

// Defaults: tiles for the sizes and the target, and the first version that has everything.
TEST(Command, EmitChoosesTiles) {
  struct Case {
    const char *words, *version, *product;
    int threads;  // 128 of them copy
  };
  for (const Case& each :
       {Case{"--target sm_90a --m 8192 --n 8192 --k 8192", "8.0",
             "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", 384},
        {"--target sm_90a --type e4m3 --m 1024 --n 1024 --k 1024", "8.4",
         "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3", 384},
        {"--target sm_90a --tile 64x64", "8.0", "mma.sync.aligned.m16n8k16", 128},
        {"--target sm_90a --m 4096 --n 4096 --k 4096 --producers 0", "8.0",
         "mma.sync.aligned.m16n8k16", 256},
        {"--m 4096 --n 4096 --k 4096", "7.8", "mma.sync.aligned.m16n8k16", 256}}) {
    const Ran out = tartan(std::string("emit gemm ") + each.words);
    EXPECT_EQ(out.code, 0) << out.out;
    for (const std::string& part :
         {std::string(".version ") + each.version + "\n", std::string(each.product),
          ".reqntid " + std::to_string(each.threads)})
      EXPECT_NE(out.out.find(part), std::string::npos) << each.words << ": " << part;
  }
  EXPECT_EQ(tartan("emit gemm --type e4m3 --target sm_90a --ptx 8.0").code, 1);
  EXPECT_EQ(tartan("emit gemm --type e4m3 --target sm_80").code, 1);
}

TEST(Command, CheckAsJson) {
  const std::string path = testing::TempDir() + std::to_string(getpid()) + "_wrong.ptx";
  std::ofstream(path) << ".version 7.0\n.target sm_80\n.visible .entry k()\n{\n.reg .b32 %r<9>;\n"
                         "movmatrix.sync.aligned.m8n8.trans.b16 %r1, "
                         "%r2;\nldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r2];\nret;\n}\n";
  const Ran out = tartan("check --json " + path);
  EXPECT_EQ(out.code, 1);
  EXPECT_EQ(out.out,
            "{\"schema_version\":1,\"diagnostics\":[{\"file\":\"" + path +
                "\",\"line\":6,\"column\":1,\"level\":\"error\",\"id\":\"version-support\","
                "\"message\":\"movmatrix.sync.aligned.m8n8.trans.b16 requires PTX 7.8, the module "
                "states 7.0\"},{\"file\":\"" +
                path +
                "\",\"line\":7,\"column\":43,\"level\":\"error\",\"id\":\"register-count\","
                "\"message\":\"ldmatrix.sync.aligned.m8n8.x2.shared.b16: expected 2 registers as "
                "operand d, found a vector of 1\"}],\"truncated\":0}\n");
  EXPECT_EQ(tartan("check --max-errors 1 " + path).out.find("register-count"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(Command, IsaAnswersForATarget) {
  EXPECT_NE(tartan("isa stmatrix --target sm_90").out.find("18 forms"), std::string::npos);
  EXPECT_NE(tartan("isa stmatrix --target sm_80").out.find("0 forms"), std::string::npos);
  EXPECT_TRUE(
      tartan("isa movmatrix --csv")
          .out.starts_with("family,mnemonic,operands,min_version,targets\nmovmatrix,movmatrix."
                           "sync.aligned.m8n8.trans.b16,d=.b32; a=.b32,7.8,sm_75 sm_80 "));
}

}  // namespace
