// SPDX-License-Identifier: Apache-2.0
// The demo: a 256 x 256 x 256 matrix product on the tensor cores, from its description in C++ to
// the checked result.
#include <unistd.h>

#include <sstream>

#include "lesson.h"

using namespace tartan;

namespace {

constexpr int size = 256;

void title(const char* text) { std::printf("\n%s\n", text); }

// The inner loop of the PTX: from the label that a branch goes back to, matrix instructions and
// their neighbours.
void print_heart(const std::string& ptx) {
  std::istringstream lines(ptx);
  std::string line;
  int shown = 0;
  while (std::getline(lines, line)) {
    if (line.starts_with("//")) continue;  // the choices, once more
    const bool heart = line.find("ldmatrix") != std::string::npos ||
                       line.find("mma.sync") != std::string::npos || line.find("\t\t{%") == 0;
    if (heart && shown++ < 14) std::printf("%s\n", line.c_str());
  }
  std::printf("\t... (%zu bytes of PTX in all)\n", ptx.size());
}

// A of m16n8k16: which lane holds which element, a colour for each lane.
void print_fragment() {
  const FragmentKind kind = operand_a(m16n8k16, f16);
  const isa::Fragment fragment = kind.fragment();
  const bool colour = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  std::vector<std::vector<std::pair<int, int>>> cells(
      fragment.rows, std::vector<std::pair<int, int>>(fragment.cols));
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < fragment.elements(); ++i) {
      const isa::Coord at = kind.coord(lane, i);
      cells[at.row][at.col] = {lane, i / fragment.per_register};
    }
  for (const auto& row : cells) {
    for (const auto& [lane, reg] : row) {
      if (colour)
        std::printf("\x1b[30;48;5;%dm",
                    16 + 36 * (lane % 4 + 2) + 6 * (lane / 4 % 4 + 2) + lane / 16 * 2 + 2);
      std::printf("T%02d:R%d", lane, reg);
      std::printf(colour ? "\x1b[0m " : " ");
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Device device = lesson::must(Device::open(argc > 1 ? argv[1] : "auto"));
  const kernels::Gemm options{size, size, size};
  const Kernel kernel = kernels::gemm(options);
  const Compiled compiled = lesson::must(compile(kernel, device.arch()));

  title("What was chosen, and why");
  std::printf("%s", explain(compiled.choices).c_str());
  title("The heart of the PTX");
  print_heart(compiled.ptx);
  title("Fragment A of m16n8k16: lane and register of each element");
  print_fragment();
  title("The device");
  std::printf("%s\n", device.name().c_str());

  // Small integers: every product and sum is exact, so the naive loop must agree to the bit.
  std::vector<int> a(size * size), b(size * size);
  std::vector<std::uint16_t> a_bits, b_bits;
  for (int i = 0; i < size * size; ++i) {
    a[i] = (i * 7 + i / 256 * 3) % 15 - 7;
    b[i] = (i * 5 + i / 256 * 11) % 13 - 6;
    a_bits.push_back(lesson::half(a[i]));
    b_bits.push_back(lesson::half(b[i]));
  }
  const auto c = lesson::run<float>(device, kernel, size * size, {a_bits, b_bits},
                                    {options.blocks(size, size)});
  int mismatches = 0;
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j) {
      int sum = 0;
      for (int k = 0; k < size; ++k) sum += a[i * size + k] * b[j * size + k];  // B is column-major
      mismatches += c[i * size + j] != static_cast<float>(sum);
    }
  title("The result against the naive product");
  std::printf("mismatches: %d of %d\n", mismatches, size * size);
  return mismatches != 0;
}
