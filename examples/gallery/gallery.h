// SPDX-License-Identifier: Apache-2.0
// examples/gallery/gallery.h - shared by the pieces of the gallery: devices, numbers, verdicts.
//
//   gated_mlp [emulator]    as an sm_80, an sm_90a and an sm_100a, with all checks
//   gated_mlp cuda          on the first GPU, for its own architecture and for sm_80
//   gated_mlp ptx DIR       writes the texts, and runs nothing
//
// A piece runs its kernels at several sizes and compares each result with a loop in double. It
// prints the instructions that were chosen, and ends with 1 if anything was wrong: a result, a
// finding of the emulator, a warning of the compiler.
#pragma once

#include <tartan/tartan.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace gallery {

using namespace tartan;

/// Numbers of an element type from -1 to 1 (eighths, which all types have).
template <typename T>
std::vector<T> numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(T((static_cast<int>(random() % 17) - 8) / 8.0));
  return out;
}

/// f of the elements of two tiles at the same place. Fragments of one kind have the same element at
/// the same number.
inline WarpTile joined(Builder& k, const WarpTile& x, const WarpTile& y,
                       const std::function<Scalar(Scalar, Scalar)>& f) {
  std::vector<Fragment> out;
  for (std::size_t i = 0; i < x.fragments().size(); ++i) {
    std::vector<Scalar> elements = k.elements(x.fragments()[i]);
    const std::vector<Scalar> others = k.elements(y.fragments()[i]);
    for (std::size_t e = 0; e < elements.size(); ++e) elements[e] = f(elements[e], others[e]);
    out.push_back(k.pack(x.fragments()[i].kind(), elements));
  }
  return {out, x.across(), x.place()};
}

/// The value; without one, prints the diagnostics and exits.
template <typename T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::cerr << result.diags().text();
  std::exit(1);
}

/// A piece on one device, compiled for one architecture.
class Session {
 public:
  /// Without a device kernels are only compiled, and their texts written to `folder`.
  Session(Device* device, Arch arch, std::string folder)
      : device_(device), arch_(arch), folder_(std::move(folder)) {}

  const Arch& arch() const { return arch_; }

  /// Compiles the kernel and runs it on host data (tartan/run.h).
  template <typename... Arguments>
  void run(const Kernel& kernel, Dim3 grid, const Arguments&... arguments) {
    const Compiled compiled = must(compile(kernel, arch_));
    note(compiled);
    if (device_) must(tartan::run(*device_, compiled, grid, arguments...));
  }

  /// Counts a result; prints where it differs from the expected one (reference::difference()).
  template <typename R>
  void expect(const std::string& what, const R& got, const std::vector<double>& expected,
              std::size_t cols, reference::Tolerance tolerance) {
    if (!device_) return;
    ++results_;
    const std::string wrong = reference::difference(got, expected, cols, tolerance);
    if (wrong.empty()) return;
    ++wrong_;
    std::cerr << arch_.text() << ", " << what << ": " << wrong << '\n';
  }

  /// Prints the verdict; false if something was wrong.
  bool finish() const {
    std::printf("%s: %d of %d results right%s\n", arch_.text().c_str(), results_ - wrong_, results_,
                warnings_ ? ", with warnings" : "");
    for (const std::string& each : instructions_) std::printf("  %s\n", each.c_str());
    return !wrong_ && !warnings_;
  }

 private:
  // The chosen instructions that are in the text, each once: what computes, and what moves tiles.
  void note(const Compiled& compiled) {
    std::istringstream lines(compiled.ptx);
    std::string code;
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("//")) code += line + '\n';
    for (const Choice& choice : compiled.choices) {
      const std::string name = choice.taken.substr(0, choice.taken.find_first_of(" ,"));
      const bool is_used = name.find('.') != std::string::npos && name != "cp.async" &&
                           code.find(name) != std::string::npos;
      if (is_used && std::ranges::find(instructions_, name) == instructions_.end())
        instructions_.push_back(name);
    }
    warnings_ += static_cast<int>(compiled.warnings.size());
    std::cerr << compiled.warnings.text();
    if (!folder_.empty())
      std::ofstream(folder_ + "/" + compiled.name + "_" + std::to_string(texts_++) + "." +
                    arch_.text() + ".ptx")
          << compiled.ptx;
  }

  Device* device_;
  Arch arch_;
  std::string folder_;
  std::vector<std::string> instructions_;
  int results_ = 0, wrong_ = 0, warnings_ = 0, texts_ = 0;
};

/// main() of a piece, on the emulator as each of the targets.
inline int main(int argc, char** argv, const std::function<void(Session&)>& piece,
                const std::vector<const char*>& targets = {"sm_80", "sm_90a", "sm_100a"}) {
  const std::string where = argc > 1 ? argv[1] : "emulator";
  const auto on = [&](Device* device, const Arch& arch) {
    Session session(device, arch, where == "ptx" ? argc > 2 ? argv[2] : "." : "");
    piece(session);
    return session.finish();
  };
  bool right = true;
  if (where == "cuda") {
    Device device = must(Device::open("cuda"));
    std::cerr << "on " << device.name() << '\n';
    const Arch oldest = *Arch::parse(targets.front()), own = device.arch();
    right &= on(&device, oldest);
    if (own.text() != oldest.text()) right &= on(&device, own);
    return !right;
  }
  for (const char* name : targets) {
    Device device = must(Device::open("emulator", {.hardware = name, .checks = Checks::all}));
    right &= on(where == "ptx" ? nullptr : &device, *Arch::parse(name));
  }
  return !right;
}

}  // namespace gallery
