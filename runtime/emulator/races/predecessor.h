// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/races/predecessor.h - the launch before one that may start early (programmatic
// dependent launch, Launch::programmatic): what it did to global memory may happen at the same
// time.
//
// The emulator runs launches one after the other. So the earlier one's last accesses are kept, and
// an access of the later one is compared with them until its thread knows that
// griddepcontrol.wait has returned (PTX ISA 9.0, 9.7.13.13): by its own wait, or by being ordered
// behind a thread that has waited. griddepcontrol.launch_dependents orders nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/emulator/machine/program.h"
#include "runtime/emulator/races/shadow.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::emulator {

class Predecessor {
 public:
  /// `queue`: the stream, of which only the address counts.
  Predecessor(std::shared_ptr<const Program> program, std::shared_ptr<const ptx::Module> module,
              const void* queue, Shadow memory)
      : program_(std::move(program)),
        module_(std::move(module)),
        queue_(queue),
        memory_(std::move(memory)) {}

  const void* queue() const { return queue_; }

  /// The access that does not go together with one to those bytes; `wide`: an atomic one at the
  /// scope of the GPU.
  struct Conflict {
    std::uint32_t pc = 0;
    bool writes = false;
  };
  std::optional<Conflict> conflict(std::uint64_t address, std::uint64_t bytes, bool writes,
                                   bool wide);
  /// "st.global.u32 on line 16 of kernel first".
  std::string text(std::uint32_t pc) const;

 private:
  std::shared_ptr<const Program> program_;
  // Not the emulator's Module, whose machine keeps this.
  std::shared_ptr<const ptx::Module> module_;
  const void* queue_;
  Shadow memory_;
};

}  // namespace tartan::TARTAN_ABI::emulator
