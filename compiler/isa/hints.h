// SPDX-License-Identifier: Apache-2.0
// compiler/isa/hints.h - what an instruction requires, and for messages how to write it for a
// target.
#pragma once

#include <string>

#include "tartan/isa/spelling.h"
#include "tartan/support/rules.h"

namespace tartan::TARTAN_ABI::isa {

/// The rule that a spelling breaks for which mismatch() has a reason.
const Rule& mismatch_rule(const Spelling& spelling);

/// The legal spelling nearest to the written one, of those that the target has if one is given;
/// empty if none is near.
std::string nearest_spelling(const Spelling& spelling, const Target& target);

/// "; the nearest on sm_75, PTX 7.8 is mma...": empty if none is near.
std::string nearest_hint(const Spelling& spelling, const Target& target);

/// What the target lacks: "requires sm_90a (and no other target) and PTX 8.0, the target is sm_90
/// and PTX 7.8".
std::string lacking(const Since& since, const Target& target);

/// The first PTX version that has the spelling, on any target; 0.0 if no signature matches.
Version first_version(const Spelling& spelling);

/// The targets: "sm_80", "sm_50 to sm_62", "sm_90a (and no other target)".
std::string targets_text(const Since& since);

/// How to write the instruction for a target that lacks it, with more words: "; write
/// vote.sync.ballot.b32 with a member mask"; empty if that is no way.
std::string longer_hint(const Spelling& spelling, const Target& target);

/// The spelling with the operands of a signature that it matches: "vote.sync.any.pred d, a,
/// membermask".
std::string form_text(const Spelling& spelling, const Signature& signature);

}  // namespace tartan::TARTAN_ABI::isa
