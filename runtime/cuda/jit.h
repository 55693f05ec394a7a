// SPDX-License-Identifier: Apache-2.0
// runtime/cuda/jit.h - the driver's assembler: the PTX versions that it takes, its options, and
// what its log says about a text.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "tartan/isa/target.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::cuda {

/// The newest PTX version that a driver of CUDA version `version` (12020 for 12.2) compiles, from
/// the release notes of the PTX manual. A driver newer than the table gives the table's last.
Version newest_ptx(int version);

/// "12.2" of 12020.
std::string cuda_version_text(int version);

/// Parses a text, and compares its version with what the driver takes.
Result<ptx::Module> parse_for(const Driver& driver, const std::string& ptx,
                              const std::string& name);

/// Options of a call that assembles, and the logs that it writes. It stays where it is until the
/// last such call.
class Jit {
 public:
  Jit() = default;
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;
  /// Assembles for an architecture that has a suffix: sm_90a on a GPU of sm_90. Without, the driver
  /// takes the GPU's.
  void set_target(unsigned target);

  unsigned count() const { return count_; }
  JitOption* options() { return options_.data(); }
  void** values() { return values_.data(); }

  /// What the logs say of `ptx`, each line at its level: `ptxas application ptx input, line 5;
  /// error : ...`. The place is the C++ line if the text says which made it, else the line of the
  /// text. Lines of another form are added to `rest`.
  Diags remarks(const std::string& ptx, const std::string& name, std::string& rest) const;

 private:
  static constexpr std::size_t capacity = 16 * 1024;

  std::vector<char> info_ = std::vector<char>(capacity + 1);
  std::vector<char> error_ = std::vector<char>(capacity + 1);
  unsigned count_ = 4;
  std::array<JitOption, 5> options_{JitOption::InfoLog, JitOption::InfoLogBytes,
                                    JitOption::ErrorLog, JitOption::ErrorLogBytes,
                                    JitOption::Target};
  // Numbers are passed in place of pointers.
  std::array<void*, 5> values_{info_.data(), reinterpret_cast<void*>(capacity), error_.data(),
                               reinterpret_cast<void*>(capacity), nullptr};
};

/// Diagnostics of a text that `call` has rejected.
Diags rejection(const Driver& driver, const char* call, Code code, const ptx::Module& module,
                const std::string& name, const Jit& jit);

}  // namespace tartan::TARTAN_ABI::cuda
