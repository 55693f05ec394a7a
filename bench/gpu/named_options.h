// SPDX-License-Identifier: Apache-2.0
// bench/gpu/named_options.h - what programs share that write kernels for a comparison beside
// PyTorch: configurations, parts joined by colons that set options of a kernel, and files.
//
//   constexpr gpu::NamedOption<kernels::Decode> options[] = {
//       {"keys", [](kernels::Decode& a, int value) { a.keys_per_step = value; }, "of a step"}};
//   const auto with = gpu::configured(kernels::Decode{}, "tuned:keys=32", options, target);
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include "bench/gpu/words.h"
#include "tartan/dsl/builder.h"
#include "tartan/kernels/gpu.h"

namespace gpu {

/// A named part of a configuration.
template <typename Kernel>
struct NamedOption {
  std::string_view name;
  void (*set)(Kernel& options, int value);
  std::string_view help;
};

template <typename Kernel, std::size_t count>
std::string config_help(const NamedOption<Kernel> (&options)[count]) {
  std::string out = "  tuned  what tuned() chooses\n";
  for (const auto& option : options) out += fmt::format("  {}=N {}\n", option.name, option.help);
  return out;
}

/// `kernel` with the parts of a configuration; exits at one that is not an option.
template <typename Kernel, std::size_t count>
Kernel configured(Kernel kernel, const std::string& config,
                  const NamedOption<Kernel> (&options)[count], const tartan::kernels::Gpu& gpu) {
  for (const std::string_view part : split(config, ':')) {
    if (part == "tuned") {
      kernel = tuned(kernel, gpu);
      continue;
    }
    const auto named = read_named(part);
    const NamedOption<Kernel>* found = nullptr;
    for (const auto& option : options)
      if (named && option.name == named->name) found = &option;
    if (!found)
      refuse("--config", config,
             "tuned or NAME=NUMBER, joined by colons, of\n" + config_help(options));
    found->set(kernel, named->value);
  }
  return kernel;
}

/// A file's name: that of a configuration, and what distinguishes its problem.
inline std::string file_of(const std::string& config, const std::string& problem) {
  std::string out = config + "_" + problem + ".ptx";
  for (char& each : out)
    if (each == ':' || each == '=') each = '_';
  return out;
}

/// Whether the file was written; reports an error otherwise.
inline bool write_file(const std::string& folder, const std::string& file,
                       const std::string& text) {
  std::ofstream out(std::filesystem::path(folder) / file);
  out << text;
  out.close();
  if (!out) std::cerr << folder << '/' << file << ": cannot be written\n";
  return bool(out);
}

inline tartan::Target target_of(const std::string& word) {
  const auto out = tartan::Target::parse(word);
  if (!out) refuse("--target", word, "an architecture such as sm_90a");
  return *out;
}

/// That of a name, or the usual one of a target.
inline tartan::kernels::Gpu gpu_of(const std::string& name, const std::string& target) {
  const tartan::Target compiled = target_of(target);
  if (name.empty()) return compiled;
  const auto out = tartan::kernels::Gpu::find(name, compiled);
  if (!out) refuse("--gpu", name, "a GPU of the table:\n" + out.diags().text());
  return *out;
}

inline void expect_16_bits(const std::string& type) {
  const auto parsed = tartan::parse_type(type);
  if (parsed != tartan::f16 && parsed != tartan::bf16) refuse("--type", type, "f16 or bf16");
}

}  // namespace gpu
