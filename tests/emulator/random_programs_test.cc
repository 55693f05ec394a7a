// SPDX-License-Identifier: Apache-2.0
// Random kernels: legal, with the same bits from every path of the emulator and from a GPU, if
// there is one. TARTAN_RANDOM_PROGRAMS and TARTAN_RANDOM_SEED set their number and the first seed.
//
// NVIDIA's assembler optimizes some kernels wrongly (random_scalar.cc and random_matrix.cc avoid
// the mistakes that were met often), about one in 6,000, and dies of one in 10,000. A kernel in
// which the GPU differs is therefore assembled again without optimization: if that gives the
// emulator's bits, it is printed and counted, no failure.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <set>

#include "runtime/emulator/matrix/matrix.h"
#include "runtime/emulator/matrix/tile.h"
#include "tartan/ptx/parser.h"
#include "tartan/verify/verify.h"
#include "tests/emulator/random_writer.h"
#include "tests/support/sanitizer.h"
#include "tests/support/unoptimized.h"

namespace tartan {
namespace {

using emulator::Path;
using test::RandomProgram;

constexpr std::uint64_t programs_per_module = 25;

std::uint64_t chosen(const char* variable, std::uint64_t usual) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}
std::uint64_t first_seed() { return chosen("TARTAN_RANDOM_SEED", 1); }
std::uint64_t program_count() {
  return chosen("TARTAN_RANDOM_PROGRAMS", test::sanitized() ? 100 : 1000);
}

using Batch = std::vector<RandomProgram>;

Batch batch_from(std::uint64_t seed, std::uint64_t count) {
  Batch out;
  for (std::uint64_t i = 0; i < count; ++i) out.push_back(test::random_program(seed + i));
  return out;
}

// Calls body(batch) for all programs, until a batch fails.
void each_batch(const std::function<void(const Batch&)>& body) {
  const std::uint64_t end = first_seed() + program_count();
  for (std::uint64_t seed = first_seed(); seed < end && !testing::Test::HasFailure();
       seed += programs_per_module)
    body(batch_from(seed, std::min(programs_per_module, end - seed)));
}

// The output of a program: `out` and `sums`, in words of 8 bytes.
struct Written {
  std::vector<std::uint64_t> out, sums;
};

class Machine {
 public:
  explicit Machine(Device device)
      : device_(std::move(device)), in_(allocate(test::random_inputs().size())) {
    EXPECT_TRUE(in_.write(test::random_inputs()));
  }

  std::vector<Written> run(const Batch& batch) {
    return run(batch, device_.load(test::random_module(batch), "random.ptx"));
  }

  /// On a GPU: one program, assembled without optimization.
  Written run_unoptimized(const RandomProgram& program) {
    const auto cubin = test::assemble_unoptimized(test::random_module({program}));
    EXPECT_FALSE(cubin.empty()) << program.name << ": the driver does not assemble it";
    if (cubin.empty()) return {};
    return run({program}, device_.load(std::span(cubin), "random.cubin")).at(0);
  }

 private:
  std::vector<Written> run(const Batch& batch, const Result<Module>& module) {
    std::vector<Written> out;
    EXPECT_TRUE(module) << module.diags().text();
    if (!module) return std::vector<Written>(batch.size());
    for (const RandomProgram& program : batch) out.push_back(run(*module, program));
    return out;
  }

  Written run(const Module& module, const RandomProgram& program) {
    auto kernel = module.kernel(program.name);
    EXPECT_TRUE(kernel) << program.name << ": " << kernel.diags().text();
    if (!kernel) return {};
    Buffer out = allocate(program.out_bytes()), sums = allocate(program.sums_bytes());
    EXPECT_TRUE(out.fill(0) && sums.fill(0x5A));
    const Status launched = kernel->launch(
        program.launch, Arguments().add(in_).add(out).add(sums).add(program.uniform));
    EXPECT_TRUE(launched) << program.name << ": " << launched.diags().text();
    const Status done = device_.synchronize();
    EXPECT_TRUE(done) << program.name << ": " << done.diags().text();
    return {*out.read_all<std::uint64_t>(), *sums.read_all<std::uint64_t>()};
  }

  Buffer allocate(std::size_t bytes) {
    auto buffer = device_.allocate(bytes);
    EXPECT_TRUE(buffer) << buffer.diags().text();
    return *buffer;
  }

  Device device_;
  Buffer in_;
};

Device emulator_device() { return *Device::open("emulator", {.hardware = "sm_90", .threads = 1}); }

// The first result that differs, in the order of computation.
std::string difference(const RandomProgram& program, const Written& expected, const Written& got) {
  if (expected.out.size() != got.out.size()) return "the kernel did not run";
  const std::size_t threads = expected.out.size() / program.results.size();
  for (std::size_t i = 0; i < expected.out.size(); ++i) {
    if (expected.out[i] == got.out[i]) continue;
    const auto& result = program.results[i / threads];
    const std::size_t thread = i % threads;
    return fmt::format(
        "seed {}: {} of block {}, thread {}: expected 0x{:x}, got 0x{:x}; from\n  {}\n",
        program.seed, result.reg, thread / program.launch.block.x, thread % program.launch.block.x,
        expected.out[i], got.out[i], result.instruction);
  }
  for (std::size_t i = 0; i < program.sums.size(); ++i)
    if (expected.sums[i] != got.sums[i])
      return fmt::format("seed {}: expected 0x{:x}, got 0x{:x} in memory; from\n  {}\n",
                         program.seed, expected.sums[i], got.sums[i], program.sums[i]);
  return "";
}

void compare(const Batch& batch, const std::vector<Written>& expected,
             const std::vector<Written>& got, std::string_view who) {
  ASSERT_EQ(expected.size(), batch.size());
  ASSERT_EQ(got.size(), batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::string text = difference(batch[i], expected[i], got[i]);
    EXPECT_EQ(text, "") << who;
  }
}

// Products that are made during its lifetime use a path.
class OnPath {
 public:
  explicit OnPath(Path path) { emulator::set_best_path(path); }
  ~OnPath() { emulator::set_best_path(Path::best); }
};

TEST(RandomPrograms, AreTheSameEveryTime) {
  for (std::uint64_t seed = 1; seed < 20; ++seed)
    EXPECT_EQ(test::random_program(seed).text, test::random_program(seed).text);
  EXPECT_NE(test::random_program(1).text, test::random_program(2).text);
}

TEST(RandomPrograms, ReportTheFirstDifference) {
  const RandomProgram program = test::random_program(3);
  const std::size_t threads = program.launch.grid.x * program.launch.block.x;
  Written expected{std::vector<std::uint64_t>(program.out_bytes() / 8, 1),
                   std::vector<std::uint64_t>(program.sums_bytes() / 8)};
  Written got = expected;
  EXPECT_EQ(difference(program, expected, got), "");
  got.out[7 * threads + 5] = got.out[9 * threads] = 2;
  const std::string text = difference(program, expected, got);
  EXPECT_TRUE(text.starts_with("seed 3: " + program.results[7].reg + " of block 0, thread 5: "))
      << text;
  EXPECT_NE(text.find(program.results[7].instruction), std::string::npos) << text;
}

TEST(RandomPrograms, CheckClean) {
  each_batch([](const Batch& batch) {
    const auto source = std::make_shared<const Source>("random.ptx", test::random_module(batch));
    Diags diags;
    const ptx::Module module = ptx::parse(source, diags);
    diags.append(verify::verify(module));
    EXPECT_EQ(module.kernels().size(), batch.size());
    EXPECT_TRUE(diags.ok()) << "first seed " << batch[0].seed << "\n" << diags.text();
  });
}

TEST(RandomPrograms, EveryPathGivesTheSameBits) {
  Machine machine(emulator_device());
  each_batch([&](const Batch& batch) {
    std::vector<Written> expected;
    {
      const OnPath path(Path::reference);
      expected = machine.run(batch);
    }
    for (const Path which : {Path::portable, Path::avx2, Path::avx512}) {
      if (!emulator::tile_kernel(which)) continue;
      const OnPath path(which);
      compare(batch, expected, machine.run(batch), fmt::format("path {}", static_cast<int>(which)));
    }
  });
}

TEST(RandomPrograms, GpuGivesTheSameBits) {
  auto device = Device::open("cuda");
  if (!device) GTEST_SKIP() << device.diags().text();
  if (device->arch().sm != 90) GTEST_SKIP() << "expects an sm_90, found " << device->name();
  Machine gpu(*device), machine(emulator_device());
  int compared = 0, optimized_wrongly = 0;
  const std::uint64_t end = first_seed() + program_count();
  for (std::uint64_t seed = first_seed(); seed < end; seed += programs_per_module) {
    const Batch batch = batch_from(seed, std::min(programs_per_module, end - seed));
    const std::vector<Written> expected = machine.run(batch), got = gpu.run(batch);
    for (std::size_t i = 0; i < batch.size(); ++i, ++compared) {
      const std::string text = difference(batch[i], expected[i], got[i]);
      if (text.empty()) continue;
      EXPECT_EQ(difference(batch[i], expected[i], gpu.run_unoptimized(batch[i])), "");
      fmt::print("the assembler optimizes wrongly: {}", text);
      ++optimized_wrongly;
    }
  }
  RecordProperty("programs", compared);
  RecordProperty("optimized_wrongly", optimized_wrongly);
  EXPECT_LE(optimized_wrongly, 2 + compared / 1000);
}

// Names of rows that no program used.
std::string missing(const std::vector<std::string>& rows, const std::set<std::size_t>& used) {
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!used.contains(i)) out += "  " + rows[i] + "\n";
  return out;
}

TEST(RandomPrograms, UseEveryInstruction) {
  if (program_count() < 1000) GTEST_SKIP() << "too few programs";
  std::set<std::size_t> scalars, matrices;
  each_batch([&](const Batch& batch) {
    for (const RandomProgram& program : batch) {
      scalars.insert(program.scalar_rows.begin(), program.scalar_rows.end());
      matrices.insert(program.matrix_rows.begin(), program.matrix_rows.end());
    }
  });
  EXPECT_GT(test::random_scalar_instructions().size(), 900u);
  EXPECT_GT(test::random_matrix_instructions().size(), 300u);
  EXPECT_EQ(missing(test::random_scalar_instructions(), scalars), "");
  EXPECT_EQ(missing(test::random_matrix_instructions(), matrices), "");
}

TEST(RandomPrograms, Assemble) {
  if (std::system("ptxas --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no ptxas";
  const std::string base = testing::TempDir() + "tartan_random_" + std::to_string(getpid());
  std::ofstream(base + ".ptx") << test::random_module(batch_from(first_seed(), 40));
  const int code = std::system(
      fmt::format("ptxas -O0 -arch sm_90 {0}.ptx -o /dev/null > {0}.log 2>&1", base).c_str());
  std::ifstream log(base + ".log");
  EXPECT_EQ(code, 0) << std::string(std::istreambuf_iterator<char>(log), {}).substr(0, 4000);
  for (const char* end : {".ptx", ".log"}) std::remove((base + end).c_str());
}

}  // namespace
}  // namespace tartan
