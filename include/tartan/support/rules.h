// SPDX-License-Identifier: Apache-2.0
// tartan/support/rules.h - every diagnostic that Tartan can give: stable id, usual level, what it
// means and what to do.
//
// docs/diagnostics.md is generated from this table. A diagnostic is written as
//   diags.report("register-count"_rule, place, message);
// and a misspelled id does not compile.
#pragma once

#include <cstdint>
#include <string_view>

#include "tartan/abi.h"

namespace tartan::inline TARTAN_ABI {

/// How severe a diagnostic is.
enum class Level : std::uint8_t { Error, Warning, Note };

/// A row of the table of diagnostics.
struct Rule {
  std::string_view id;
  Level level;
  std::string_view meaning;  // one or two sentences: what it means, what to do
};

// clang-format off
inline constexpr Rule rules[] = {
    // Text (PTX).
    {"syntax", Level::Error, "The text is not PTX here. The message says what was expected."},
    {"unexpected-end", Level::Error, "The text ends inside a statement, a block or a comment: it was cut off."},
    {"missing-version", Level::Error, "A PTX module starts with .version and .target."},
    {"unknown-version", Level::Error, "This PTX version does not exist, or Tartan does not know it yet."},
    {"unknown-target", Level::Error, "This target does not exist. The message names the nearest one."},
    {"target-version", Level::Error, "The target came with a later PTX version than the module states: raise .version."},
    {"undeclared-register", Level::Error, "The register is used without a .reg declaration in an enclosing block."},
    {"undeclared-label", Level::Error, "A branch goes to a label that its function does not define."},
    {"unknown-directive", Level::Error, "There is no directive of that name, or none that may stand here. The message names the nearest one."},
    {"redefined-name", Level::Error, "A name is declared twice in one scope."},
    {"declaration", Level::Error, "A register, variable or parameter cannot be declared so: its state space, linkage, type, length, array or alignment."},
    {"initializer", Level::Error, "The initial value does not fit the variable, or names what has no address yet."},
    {"redeclaration", Level::Error, "Two declarations of one name do not go together: linkage, type, parameters or directives differ."},
    {"function-directive", Level::Error, "A directive of a kernel or function (.maxntid and its like) that it does not take: its place, its numbers, or beside another one."},
    {"alias", Level::Error, ".alias takes two functions that are declared before it: one without a body, and the one with a body that it stands for."},
    {"unwritten-parameter", Level::Error, "A .param variable of the body is read, and no call writes it."},
    {"llvm-leftover", Level::Error, "The text calls an llvm.* symbol: the code generator met an intrinsic that its back end does not have."},
    // Instructions.
    {"unknown-instruction", Level::Error, "There is no instruction of that name. The message names the nearest one."},
    {"unknown-qualifier", Level::Error, "A qualifier that the instruction does not take, or that stands twice."},
    {"unknown-form", Level::Error, "Each qualifier exists, but not together: no such instruction form. The message names the nearest legal one."},
    {"target-support", Level::Error, "The form exists, but not on this target. The message names the oldest target that has it."},
    {"version-support", Level::Error, "The form exists on this target from a later PTX version on: raise .version."},
    {"undocumented-form", Level::Error, "NVIDIA's assembler takes the form, but no manual has it: nobody says what it computes. --allow-undocumented makes it a warning."},
    {"operand-count", Level::Error, "The instruction takes another number of operands."},
    {"register-count", Level::Error, "A fragment operand takes another number of registers."},
    {"register-type", Level::Error, "The register's type does not fit the operand."},
    {"operand-kind", Level::Error, "The operand is of the wrong kind: a vector, an address, an immediate or a bare register is expected."},
    {"immediate-range", Level::Error, "The immediate is outside the range that the operand allows."},
    // Branches and calls.
    {"branch-table", Level::Error, "brx.idx takes a label in front of .branchtargets that is declared before it, and no branch leads to such a label."},
    {"call-callee", Level::Error, "What is called is no function, or an indirect call has no .callprototype or .calltargets in front of it."},
    {"call-signature", Level::Error, "The arguments or results of a call do not fit the function's: their number, types, sizes or alignments."},
    {"cta-group", Level::Error, "tcgen05 instructions with .cta_group::1 and with .cta_group::2 in one kernel, or in functions that it may call."},
    // Sane matrix code: legal, but probably not what was meant.
    {"fragment-provenance", Level::Warning, "A register holds a fragment of another operand, shape, layout or type than the instruction that reads it takes. The message names both places."},
    {"maybe-divergent", Level::Warning, "An instruction for whole warps (.sync.aligned) stands behind a branch or guard that differs between the lanes of a warp."},
    {"missing-wait", Level::Warning, "Shared memory that cp.async writes is read before cp.async.wait_group or cp.async.wait_all."},
    {"missing-barrier", Level::Warning, "ldmatrix reads shared memory that other lanes wrote, with no bar.sync or bar.warp.sync in between."},
    {"wgmma-fence", Level::Warning, "wgmma.mma_async takes registers that were touched since the last wgmma.fence: what it reads is undefined. Put wgmma.fence in front of it."},
    {"wgmma-wait", Level::Warning, "A register of a wgmma.mma_async in flight is read or written: put wgmma.commit_group and wgmma.wait_group in front. The message names both places."},
    {"proxy-fence", Level::Warning, "Shared memory that ordinary stores wrote is read by wgmma or the copy engine without fence.proxy.async in between: they may see what was there before."},
    {"register-bounds", Level::Warning, "setmaxnreg in a kernel that does not state how many registers it starts with, as .maxnreg does, or .minnctapersm beside .maxntid or .reqntid: the assembler ignores it."},
    {"tensor-map-space", Level::Warning, "A tensor map is used at an address in local or shared memory: it must lie in a kernel parameter, in global or in constant memory."},
    {"misaligned-matrix", Level::Warning, "The address or stride of a matrix is no multiple of what the instruction needs (ldmatrix: 16 bytes a row)."},
    {"slow-instruction", Level::Note, "Legal, but the target emulates the instruction or has a faster one. The message names it."},
    // Kernel descriptions (DSL).
    {"kernel-name", Level::Error, "A kernel's name becomes a PTX identifier: letters, digits, _ and $, not starting with a digit."},
    {"duplicate-name", Level::Error, "Two parameters or shared tiles of a kernel have the same name."},
    {"launch-bounds", Level::Error, "The block is empty, larger than 1024 threads, or not a whole number of warps."},
    {"wrong-role", Level::Error, "A fragment was passed where another operand of the MMA belongs (an A fragment as B, and the like)."},
    {"fragment-mismatch", Level::Error, "The fragments come from different instructions, or their types do not go together."},
    {"kernel-option", Level::Error, "An option of a kernel has a value that it does not take, or two options do not go together."},
    {"tile-divide", Level::Error, "The tile does not divide: its size is no multiple of what the instruction or the copy handles at once."},
    {"tile-bounds", Level::Error, "The tile lies outside the tensor it is taken from."},
    {"layout-mismatch", Level::Error, "Source and destination have different shapes or types, or a layout that the instruction cannot address."},
    {"layout-alignment", Level::Error, "Rows of the tile do not start on the boundary that the instruction needs (ldmatrix: 16 bytes)."},
    {"no-instruction", Level::Error, "The target has no instruction that does this. The message says which targets have."},
    {"unsynchronized-tile", Level::Error, "A tile of shared memory is loaded, and no barrier stands between that and what wrote it: other threads' writes may not be there."},
    {"shared-size", Level::Error, "The kernel's shared memory is larger than a block of this target can have."},
    {"scalar-type", Level::Error, "A scalar operation got operands of a type that it does not take."},
    {"foreign-value", Level::Error, "A value, tile or fragment of another kernel was used."},
    // Code generation.
    {"codegen", Level::Error, "LLVM could not generate code. This is a bug in Tartan: its checks should have caught the cause."},
    // Running.
    {"no-driver", Level::Error, "No CUDA driver: libcuda.so.1 is not installed or has no GPU. Install NVIDIA's driver, or use the emulator."},
    {"no-device", Level::Error, "The driver is there but shows no GPU (see CUDA_VISIBLE_DEVICES), or there is no device of that number or name."},
    {"driver-version", Level::Error, "The driver is older than the PTX version of the module: install a newer driver, or emit for an older --ptx."},
    {"module-load", Level::Error, "The driver's JIT refused the module. The message carries its log."},
    {"driver", Level::Error, "A call of the CUDA driver failed. The message names the call and the driver's error."},
    {"unknown-kernel", Level::Error, "The module has no kernel of that name. The message lists those it has."},
    {"unknown-variable", Level::Error, "The module has no .global or .const variable of that name. The message lists those it has."},
    {"launch-arguments", Level::Error, "The launch does not fit the kernel: number or size of arguments, grid, block or shared memory."},
    {"buffer-range", Level::Error, "A copy starts or ends outside its buffer. Nothing was copied."},
    {"foreign-device", Level::Error, "A stream or event of another device was used."},
    {"unsupported-instruction", Level::Error, "The emulator does not know this instruction. Nothing was run."},
    {"memory-fault", Level::Error, "The kernel accessed memory outside any buffer, or past the end of its shared or local memory."},
    {"misaligned-access", Level::Error, "The kernel accessed memory at an address that is no multiple of the access's size."},
    {"divergent-collective", Level::Error, "A collective instruction (.sync.aligned, or .sync with a mask) was reached without all the lanes it needs."},
    {"warpgroup-operand", Level::Error, "The threads of a warpgroup passed different descriptors or another scale-d to one wgmma instruction."},
    {"scale-selector", Level::Error, "The lanes of a warp passed different {byte-id, thread-id} pairs to one block-scaled mma, or values that it does not take."},
    {"barrier-deadlock", Level::Error, "Every warp of a block waits, and none can go on."},
    {"deadlock", Level::Error, "Every thread of a block or cluster waits for what only they could do. The message says who waits where: a phase of an mbarrier that nobody completes, a barrier of the block or the cluster."},
    {"cluster-barrier", Level::Error, "barrier.cluster.arrive and barrier.cluster.wait do not take turns in a thread."},
    {"tensor-map", Level::Error, "The copy engine does not take such a tensor map: the message names the argument and its rule. In a kernel: the 128 bytes at the address are no tensor map, or not one of the instruction's rank."},
    {"mbarrier", Level::Error, "An mbarrier is used where mbarrier.init has made none, or where nothing orders that before its use."},
    {"asynchronous-race", Level::Error, "A copy fills shared memory that is still in use, its box is used before anybody has waited for it, or what it takes is overwritten before: nothing orders the two. The message names both places. Numbers that look right are luck."},
    {"unwritten-tile", Level::Error, "wgmma reads a tile of shared memory where nothing was ever written: the wait in front of it did not wait."},
    {"matrix-descriptor", Level::Error, "The descriptor of a wgmma tile does not fit what lies there: another swizzle than that of the copy, a start that leads out of a row, or rows of two tensors in one 8x8 matrix."},
    {"trap", Level::Error, "The kernel executed trap, or an assertion in it failed."},
    {"stack-overflow", Level::Error, "A recursive call or an alloca went deeper than the stack of a lane on the emulator: 64 KiB of saved registers and variables."},
    {"call-target", Level::Error, "An indirect call to an address where no function is, or to a function with other parameters or results."},
    {"step-limit", Level::Error, "The kernel ran for more steps than --max-steps allows: an endless loop, or a limit set too low."},
    {"time-limit", Level::Error, "The launch ran for longer than --timeout allows, and was stopped: an endless loop, a grid without end, or a limit set too low."},
    // Files and manifests.
    {"file", Level::Error, "A file cannot be read or written."},
    {"manifest", Level::Error, "The manifest is not what `tartan run` takes. The message names the field."},
    {"recording", Level::Error, "The index or data of a recording is not what `tartan replay` takes, or was cut off. The message says where."},
    {"usage", Level::Error, "Invalid command-line arguments. The message names the argument."},
    {"out-of-memory", Level::Error, "The host has no memory, or no thread, for what was asked: smaller buffers, or a smaller launch, would do."},
};
// clang-format on

/// "error", "warning" or "note".
constexpr std::string_view level_name(Level level) {
  switch (level) {
    case Level::Error: return "error";
    case Level::Warning: return "warning";
    case Level::Note: return "note";
  }
  return "";
}

/// The row of `id`, or null.
constexpr const Rule* find_rule(std::string_view id) {
  for (const Rule& rule : rules)
    if (rule.id == id) return &rule;
  return nullptr;
}

inline namespace literals {
/// "register-count"_rule: the row of that id; an unknown id does not compile.
consteval const Rule& operator""_rule(const char* id, std::size_t length) {
  const Rule* rule = find_rule({id, length});
  if (!rule) throw "no such rule: add a row to tartan/support/rules.h";
  return *rule;
}
}  // namespace literals

}  // namespace tartan::inline TARTAN_ABI
