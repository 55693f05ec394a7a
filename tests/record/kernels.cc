// SPDX-License-Identifier: Apache-2.0
// Writes the results of every kernel of a data folder on a device: the expectations of
// compiled_kernels_test.
//
//   record_kernels DATA OUTPUT [DEVICE]      DATA: tests/data/kernels; DEVICE: cuda where left out
//
// OUTPUT/<kernel>/<file> are the expected files of DATA/<kernel>/manifest.json; copy them there.
#include <fmt/format.h>

#include <fstream>

#include "tests/emulator/compiled_kernels.h"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc < 3 || argc > 4) {
    fmt::print(stderr, "usage: {} DATA OUTPUT [DEVICE]\n", argv[0]);
    return 2;
  }
  const fs::path data = argv[1], output = argv[2];
  const std::string device = argc > 3 ? argv[3] : "cuda";
  int failed = 0;
  const auto kernels = tartan::test::compiled_kernels(data);
  for (const std::string& kernel : kernels) {
    const auto written = tartan::test::written_buffers(data / kernel / "manifest.json", device);
    if (!written) {
      fmt::print(stderr, "{}: {}", kernel, written.diags().text());
      ++failed;
      continue;
    }
    fs::create_directories(output / kernel);
    for (const auto& [file, bytes] : *written) {
      std::ofstream(output / kernel / file, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
      fmt::print("{}/{}: {} bytes\n", kernel, file, bytes.size());
    }
  }
  fmt::print(stderr, "{} kernels, {} failed\n", kernels.size(), failed);
  return failed == 0 && !kernels.empty() ? 0 : 1;
}
