// SPDX-License-Identifier: Apache-2.0
// runtime/equal_launch.h - one run of `tartan equal`: a kernel under algebra, on given buffers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/algebra/algebra.h"
#include "runtime/equal.h"

namespace tartan::TARTAN_ABI::detail {

/// A buffer that both sides have.
struct EqualBuffer {
  std::string name;  // in the first manifest
  std::size_t bytes = 0;
  std::vector<std::byte> contents;
  bool given = false;   // by a file, or by a fill that a kernel adds to
  bool filled = false;  // a manifest states its fill
  bool exact = false;
  std::uint64_t key = 0;
};

/// What a run came to; `tags` and `bits` are the buffers' afterwards.
struct EqualRun {
  std::unique_ptr<emulator::Algebra> algebra;
  std::vector<std::vector<std::byte>> bits;
  std::vector<std::vector<emulator::Tag>> tags;
  Diags refused;
  std::vector<Finding> findings;
  std::uint64_t steps = 0;  // instructions of all warps

  bool good() const { return refused.ok() && findings.empty(); }
};

using Replaced = std::unordered_map<std::uint64_t, std::uint64_t>;

/// `buffers[i]` is the buffer of the manifest that `names[i]` is; those that are not named are
/// filled as the manifest says.
EqualRun run_under_algebra(const Manifest& manifest, const std::vector<EqualBuffer>& buffers,
                           const std::vector<std::string>& names, const EqualOptions& options,
                           const Replaced& replaced = {});

/// Why `tartan run` rejects a kernel; nothing if it does not.
struct RunErrors {
  std::vector<Finding> findings;
  Diags refused;
};

/// The errors that `tartan run` reports of the kernel on these contents, with all of its checks.
RunErrors errors_of_run(const Manifest& manifest, const std::vector<EqualBuffer>& buffers,
                        const std::vector<std::string>& names, const EqualOptions& options);

}  // namespace tartan::TARTAN_ABI::detail
