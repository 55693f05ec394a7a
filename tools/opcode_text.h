// SPDX-License-Identifier: Apache-2.0
// tools/opcode_text.h - describes rows of the opcode table (tartan/isa/opcode.h, signature.h): the
// output of `tartan isa cp.async.bulk`, as text and as JSON, and the page docs/opcodes.md.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tartan/isa/signature.h"

namespace tartan::tools {

/// An instruction, and those of its signatures that were requested.
struct OpcodeForms {
  isa::Opcode opcode = isa::Opcode::none;
  std::vector<const isa::Signature*> signatures;
};

/// Grammar, operands, versions, targets and effects of each signature.
std::string opcode_text(const OpcodeForms& forms);
nlohmann::ordered_json opcode_json(const OpcodeForms& forms);

/// Every instruction, one per line; with a target those that it has.
std::string opcode_list(const std::optional<Arch>& target);
nlohmann::ordered_json opcode_list_json(const std::optional<Arch>& target);
/// The same as a page: docs/opcodes.md.
std::string opcode_document();

}  // namespace tartan::tools
