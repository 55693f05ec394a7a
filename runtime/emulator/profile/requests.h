// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/profile/requests.h - who accesses which address of shared memory: one request of
// each instruction, for pictures of bank conflicts.
//
//   RequestRecorder recorder;
//   exploration->requests = &recorder;
//   run(manifest, "emulator", {.exploration = exploration, .profile = true});
//   for (const RecordedRequest& each : recorder.requests()) draw(phases(each.request));
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/emulator/profile/banks.h"

namespace tartan::TARTAN_ABI::emulator {

/// Of all requests of an instruction the one with the most conflicts, the first of its equals.
/// Addresses are those of its block's shared memory.
struct RecordedRequest {
  int line = 0;  // of the PTX text
  SharedRequest request;
};

/// The requests of launches with a profile (Exploration::requests).
class RequestRecorder {
 public:
  /// By line; of several launches, of the one with the most conflicts.
  const std::vector<RecordedRequest>& requests() const { return requests_; }

  /// Where the block's variables begin, by name, those in dynamic shared memory included.
  const std::map<std::string, std::uint64_t>& variables() const { return variables_; }

  void add(int line, const SharedRequest& request);
  void place(const std::string& variable, std::uint64_t first) { variables_[variable] = first; }

 private:
  std::vector<RecordedRequest> requests_;
  std::map<std::string, std::uint64_t> variables_;
};

}  // namespace tartan::TARTAN_ABI::emulator
