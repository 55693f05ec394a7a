// SPDX-License-Identifier: Apache-2.0
#include "dsl/compile/dump.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "compiler/ir/function_text.h"
#include "dsl/state/names.h"

namespace tartan::TARTAN_ABI::detail {

Dump::Dump(const std::string& kernel, const Target& target) {
  static const char* const folder = std::getenv("TARTAN_DUMP");
  static std::atomic<int> compilations;
  if (!folder || !*folder) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // write() says what is wrong
  stem_ = fmt::format("{}/{:04}.{}.{}", folder, ++compilations,
                      is_identifier(kernel) ? kernel : "misnamed", target.arch.text());
}

void Dump::operations(const ir::Function& function) const {
  if (!stem_.empty()) write(".ir", ir::text(function));
}

void Dump::ir(codegen::Code& code) const {
  if (stem_.empty()) return;
  if (const auto text = code.ir()) write(".ll", *text);
}

void Dump::result(const Result<Compiled>& compiled) const {
  if (stem_.empty()) return;
  if (compiled) write(".ptx", compiled->ptx);
  else write(".txt", compiled.diags().text());
}

void Dump::write(const char* suffix, const std::string& text) const {
  std::ofstream file(stem_ + suffix);
  file << text;
  file.close();
  static std::once_flag said;
  if (!file)
    std::call_once(said, [&] {
      std::fprintf(stderr, "TARTAN_DUMP: %s%s cannot be written\n", stem_.c_str(), suffix);
    });
}

}  // namespace tartan::TARTAN_ABI::detail
