// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of code generation: kernel frames, and NVIDIA's assembler, if installed, as a
// witness.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/codegen/code.h"
#include "compiler/ir/function_builder.h"
#include "tartan/verify/verify.h"

namespace tartan::codegen {

using namespace ir;

// ---- The assembler, if installed.

inline std::optional<std::filesystem::path> assembler() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const auto file = std::filesystem::path(folder) / "ptxas"; std::filesystem::exists(file))
      return file;
  return std::nullopt;
}

// The assembler's errors for `ptx`; empty if it accepts the text, if there is no assembler, or if
// it is too old or too new for the target or the version.
inline std::string assemble(const std::string& ptx, const Target& target) {
  const auto tool = assembler();
  if (!tool) return "";
  static std::atomic<int> number = 0;
  const std::string base = (std::filesystem::temp_directory_path() / "tartan_codegen_").string() +
                           std::to_string(getpid()) + "_" + std::to_string(number++);
  const std::string text = base + ".ptx", log = base + ".log";
  std::ofstream(text) << ptx;
  const std::string command = tool->string() + " -O0 -arch=" + target.arch.text() +
                              " -o /dev/null " + text + " > " + log + " 2>&1";
  const int status = std::system(command.c_str());
  std::ostringstream said;
  said << std::ifstream(log).rdbuf();
  std::filesystem::remove(text);
  std::filesystem::remove(log);
  if (status == 0) return "";
  for (const char* const foreign : {"Unsupported .version", "is not defined for option 'gpu-name'"})
    if (said.str().find(foreign) != std::string::npos) return "";
  return "exit status " + std::to_string(status) + ": " + said.str();
}

// The text, in which every instruction, from LLVM or inline assembly, must be in the table with
// legal operands, and legal for the target.
inline std::string emit(FunctionBuilder& f) {
  Result<std::string> ptx = Code(f.finish()).emit();
  EXPECT_TRUE(ptx) << ptx.diags().text();
  if (!ptx) return "";
  const Diags found = verify::check(std::make_shared<const Source>("emitted.ptx", *ptx));
  EXPECT_TRUE(found.ok()) << found.text() << *ptx;
  return *ptx;
}

// The text, which the assembler must accept.
inline std::string emit_and_assemble(FunctionBuilder& f) {
  const std::string ptx = emit(f);
  EXPECT_EQ(assemble(ptx, f.target()), "") << ptx;
  return ptx;
}

inline int count(const std::string& text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

inline const std::vector<Param> in_out{{"in", StateSpace::global}, {"out", StateSpace::global}};

inline FunctionBuilder simple(const char* target, const char* name = "kernel") {
  return {name, *Target::parse(target), {.block = {128, 1, 1}}, in_out};
}

}  // namespace tartan::codegen
