// SPDX-License-Identifier: Apache-2.0
// Bundles: the bytes are those of NVIDIA's fatbinary, recorded and live; which module a device
// gets; what is damaged is refused. NVIDIA's linker picks the same modules.
#include "tartan/bundle.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/runtime/fake_cuda.h"

namespace tartan {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return std::move(out).str();
}

std::string recorded() { return contents(fs::path(TEST_DATA) / "bundle/fatbinary.fatbin"); }

std::string store(const std::string& target, const std::string& version, int value) {
  return ".version " + version + "\n.target " + target +
         "\n.address_size 64\n.visible .entry store_" + target +
         "(.param .u64 p)\n{\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [p];\n"
         "cvta.to.global.u64 %rd2, %rd1;\nst.global.u32 [%rd2], " +
         std::to_string(value) + ";\nret;\n}\n";
}

Bundle of(const std::vector<std::string>& targets) {
  std::vector<BundleImage> images;
  for (const std::string& each : targets) {
    const Arch arch = *Arch::parse(each);
    images.push_back({arch, false, store(each, "8.8", 10 * arch.sm + (arch.suffix ? 1 : 0))});
  }
  return Bundle(std::move(images));
}

std::string picked(const Bundle& bundle, int sm) {
  const BundleImage* const image = bundle.best(sm);
  return image ? image->arch.text() : "none";
}

TEST(Bundle, WritesWhatNvidiasToolWrote) {
  const std::string bytes = recorded();
  const auto bundle = Bundle::parse(bytes);
  ASSERT_TRUE(bundle) << bundle.diags().text();
  std::vector<std::string> found;
  for (const BundleImage& each : bundle->images())
    found.push_back(each.arch.text() + (each.cubin ? " cubin" : " PTX"));
  EXPECT_EQ(found, (std::vector<std::string>{"sm_80 PTX", "sm_80 cubin", "sm_90a PTX",
                                             "sm_90a cubin", "sm_100f PTX"}));
  EXPECT_EQ(bundle->bytes(), bytes);
  EXPECT_TRUE(bundle->best(90)->bytes.starts_with(".version 8.0\n.target sm_90a\n"));
  EXPECT_TRUE(bundle->best(90)->bytes.ends_with("ret;\n}\n"));
}

// With names of every length, so that each padding comes up.
TEST(Bundle, WritesWhatNvidiasToolWrites) {
  const fs::path tool = "/usr/local/cuda/bin/fatbinary";
  if (!fs::exists(tool)) GTEST_SKIP() << "no " << tool;
  const fs::path folder = fs::path(testing::TempDir()) / ("bundle_" + std::to_string(getpid()));
  fs::create_directories(folder);
  for (int length = 1; length <= 8; ++length) {
    std::string ptx = store("sm_90a", "8.3", 7);
    ptx.insert(ptx.find("store"), std::string(static_cast<std::size_t>(length), 'x'));
    std::ofstream(folder / "in.ptx") << ptx;
    const std::string command = tool.string() +
                                " --64 --compress=false --create=" + (folder / "out").string() +
                                " --image3=kind=ptx,sm=90a,file=" + (folder / "in.ptx").string();
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(Bundle({{{90, 'a'}, false, ptx}}).bytes(), contents(folder / "out")) << length;
  }
  fs::remove_all(folder);
}

TEST(Bundle, PicksTheHighestTargetThatTheDeviceRuns) {
  const Bundle bundle = of({"sm_80", "sm_90", "sm_90a", "sm_100f", "sm_120a"});
  EXPECT_EQ(picked(bundle, 75), "none");
  EXPECT_EQ(picked(bundle, 80), "sm_80");
  EXPECT_EQ(picked(bundle, 89), "sm_80");
  EXPECT_EQ(picked(bundle, 90), "sm_90a");
  EXPECT_EQ(picked(bundle, 100), "sm_100f");
  EXPECT_EQ(picked(bundle, 103), "sm_100f");
  EXPECT_EQ(picked(bundle, 110), "sm_90");
  EXPECT_EQ(picked(bundle, 120), "sm_120a");
  EXPECT_EQ(picked(bundle, 121), "sm_90");
  EXPECT_EQ(picked(Bundle(), 90), "none");
}

TEST(Bundle, PicksMachineCodeForExactlyTheDevice) {
  const auto bundle = Bundle::parse(recorded());
  ASSERT_TRUE(bundle);
  EXPECT_EQ(bundle->best_cubin(80), &bundle->images()[1]);
  EXPECT_EQ(bundle->best_cubin(90), &bundle->images()[3]);
  EXPECT_EQ(bundle->best_cubin(86), nullptr);   // machine code for sm_80 would run
  EXPECT_EQ(bundle->best_cubin(100), nullptr);  // the best has none
}

// nvJitLink reads a fatbin and picks a module as the driver does.
TEST(Bundle, NvidiasLinkerPicksTheSame) {
  void* const library = dlopen("/usr/local/cuda/lib64/libnvJitLink.so", RTLD_NOW | RTLD_LOCAL);
  if (!library) GTEST_SKIP() << "no libnvJitLink.so";
  // What it allocates it keeps: in a build with sanitizers their leak checker is not told.
  if (auto* const ignore = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "__lsan_disable")))
    ignore();
  const auto find = [&](const std::string& name) {
    return dlsym(library, ("nvJitLink" + name).c_str());
  };
  using Handle = void*;
  auto* const create =
      reinterpret_cast<int (*)(Handle*, std::uint32_t, const char**)>(find("Create"));
  auto* const add = reinterpret_cast<int (*)(Handle, int, const void*, std::size_t, const char*)>(
      find("AddData"));
  auto* const complete = reinterpret_cast<int (*)(Handle)>(find("Complete"));
  auto* const size = reinterpret_cast<int (*)(Handle, std::size_t*)>(find("GetLinkedCubinSize"));
  auto* const get = reinterpret_cast<int (*)(Handle, void*)>(find("GetLinkedCubin"));
  auto* const destroy = reinterpret_cast<int (*)(Handle*)>(find("Destroy"));
  if (!create || !add || !complete || !size || !get || !destroy)
    GTEST_SKIP() << "libnvJitLink.so has other entry points";
  constexpr int fatbin = 4;
  const std::vector<std::string> targets = {"sm_80", "sm_90", "sm_90a", "sm_100f"};
  for (const bool reversed : {false, true}) {
    std::vector<std::string> order = targets;
    if (reversed) std::ranges::reverse(order);
    const Bundle bundle = of(order);
    const std::string bytes = bundle.bytes();
    for (const int sm : {80, 89, 90, 100, 103, 120}) {
      const std::string arch = "-arch=sm_" + std::to_string(sm) + (sm >= 90 ? "a" : "");
      const char* options[] = {arch.c_str()};
      Handle handle = nullptr;
      ASSERT_EQ(create(&handle, 1, options), 0);
      ASSERT_EQ(add(handle, fatbin, bytes.data(), bytes.size(), "bundle"), 0) << arch;
      ASSERT_EQ(complete(handle), 0) << arch;
      std::size_t count = 0;
      ASSERT_EQ(size(handle, &count), 0);
      std::string cubin(count, 0);
      ASSERT_EQ(get(handle, cubin.data()), 0);
      destroy(&handle);
      for (const std::string& each : targets)
        EXPECT_EQ(cubin.find(".text.store_" + each + std::string(1, '\0')) != std::string::npos,
                  each == picked(bundle, sm))
            << each << " on " << arch;
    }
  }
}

TEST(Bundle, LoadsTheBestOnTheEmulator) {
  const Bundle bundle = of({"sm_80", "sm_90a"});
  for (const auto& [hardware, kernel, value] : {std::tuple{"sm_86", "store_sm_80", 800u},
                                                {"sm_90", "store_sm_90a", 901u},
                                                {"sm_100", "store_sm_80", 800u}}) {
    auto device = Device::open("emulator", {.hardware = hardware});
    ASSERT_TRUE(device);
    const auto module = load(*device, bundle, "test.fatbin");
    ASSERT_TRUE(module) << module.diags().text();
    EXPECT_EQ(module->kernels(), std::vector<std::string>{kernel});
    auto loaded = module->kernel(kernel);
    auto out = device->allocate(4);
    ASSERT_TRUE(loaded && out);
    ASSERT_TRUE(loaded->launch({}, Arguments().add(*out)));
    EXPECT_EQ(out->read_all<std::uint32_t>()->at(0), value) << hardware;
  }
  auto old = Device::open("emulator", {.hardware = "sm_75"});
  const auto none = load(*old, bundle, "test.fatbin");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.diags()[0].message, "test.fatbin has no PTX for sm_75: it has sm_80, sm_90a");
}

TEST(Bundle, LoadsTheBestThroughTheDriver) {
  FakeCuda& fake = fake_cuda();
  fake.capability = 90;
  auto device = Device::open("cuda");
  ASSERT_TRUE(device) << device.diags().text();
  const auto module = load(*device, of({"sm_80", "sm_90a"}));
  ASSERT_TRUE(module) << module.diags().text();
  EXPECT_NE(fake.loaded.find(".target sm_90a"), std::string::npos);

  // Machine code for the very GPU, unless the driver is older than the assembler.
  const auto with_cubins = Bundle::parse(recorded());
  Diags none;
  ASSERT_TRUE(with_cubins && load(*device, *with_cubins, "x", &none));
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(fake.loaded, machine_code_kernels);
  fake.machine_code_failure = 209;  // CUDA_ERROR_NO_BINARY_FOR_GPU
  Diags warnings;
  const auto compiled = load(*device, *with_cubins, "x", &warnings);
  fake.machine_code_failure = 0;
  ASSERT_TRUE(compiled) << compiled.diags().text();
  EXPECT_NE(fake.loaded.find(".entry on_sm_90a"), std::string::npos);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].level, Level::Warning);
  EXPECT_TRUE(warnings[0].message.starts_with(
      "the driver compiles the PTX of x (sm_90a), because it refused its machine code: "))
      << warnings.text();
}

std::string refusal(const std::string& bytes) {
  const auto bundle = Bundle::parse(bytes, "x");
  return bundle ? "accepted" : bundle.diags()[0].message;
}

TEST(Bundle, RefusesWhatIsDamaged) {
  const std::string bytes = recorded();
  const auto changed = [&](std::size_t at, int byte) {
    std::string out = bytes;
    out[at] = static_cast<char>(byte);
    return out;
  };
  EXPECT_EQ(refusal(""),
            "x is not a bundle: expected a fatbin, which begins with the number 0xBA55ED50");
  EXPECT_EQ(refusal(changed(0, 0)), refusal(""));
  EXPECT_EQ(refusal(changed(4, 2)),
            "x is not a bundle: expected version 1 and a header of 16 bytes, found 2 and 16");
  EXPECT_NE(refusal(bytes.substr(0, bytes.size() - 1)).find("bytes follow, found"),
            std::string::npos);
  EXPECT_NE(refusal(changed(16 + 4, 8)).find("image at byte 16: a header of 8 bytes"),
            std::string::npos);
  EXPECT_NE(refusal(changed(16 + 13, 1)).find("where"), std::string::npos);
  EXPECT_EQ(refusal(changed(16 + 28, 81)),
            "x is not a bundle: image at byte 16: unknown target sm_81");
  EXPECT_NE(refusal(changed(16 + 41, 0x80)).find("compressed"), std::string::npos);
  EXPECT_NE(refusal(changed(16 + 80 + 5, 0)).find("a zero inside of the PTX"), std::string::npos);
  EXPECT_EQ(Bundle::read("no such file").diags()[0].id, "file");
  EXPECT_NE(Bundle::parse(changed(16, 0x10))->images(), Bundle::parse(bytes)->images());
}

// Whatever the bytes are: a diagnostic, or a bundle that is written as it was understood.
TEST(Bundle, SurvivesMutations) {
  const std::string bytes = recorded();
  std::mt19937 random(1);
  int refused = 0;
  constexpr int trials = 20'000;
  for (int trial = 0; trial < trials; ++trial) {
    std::string changed = bytes;
    for (unsigned i = 0, count = 1 + random() % 4; i < count; ++i) {
      // Headers are more than a tenth of all bytes' share.
      const std::size_t at = random() % 2 ? random() % bytes.size() : random() % 96;
      changed[at] = static_cast<char>(random());
    }
    if (random() % 8 == 0) changed.resize(random() % changed.size());
    const auto bundle = Bundle::parse(changed);
    if (!bundle) {
      ++refused;
      EXPECT_FALSE(bundle.diags()[0].message.empty());
      continue;
    }
    const auto again = Bundle::parse(bundle->bytes());
    ASSERT_TRUE(again) << again.diags().text();
    EXPECT_EQ(again->images(), bundle->images());
  }
  EXPECT_GT(refused, trials / 4);
  EXPECT_LT(refused, trials);
}

}  // namespace
}  // namespace tartan
