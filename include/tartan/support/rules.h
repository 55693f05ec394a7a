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

namespace tartan::TARTAN_ABI {

/// How severe a diagnostic is.
enum class Level : std::uint8_t { Error, Warning, Note };

/// A row of the table of diagnostics.
struct Rule {
  std::string_view id;
  Level level;
  std::string_view meaning;   // one or two sentences: what it means, what to do
  std::string_view why = {};  // of a finding of a launch: the reason for its level
};

// clang-format off
inline constexpr Rule rules[] = {
    // Text (PTX).
    {"syntax", Level::Error, "Not valid PTX. The message says what was expected."},
    {"encoding", Level::Error, "Bytes that no PTX text has: PTX is ASCII, in comments and strings too, without a zero byte or a byte-order mark. The message names the bytes, or what the file is instead."},
    {"unexpected-end", Level::Error, "The text ends inside a statement, a block or a comment: it is truncated."},
    {"missing-version", Level::Error, "A PTX module starts with .version and .target."},
    {"unknown-version", Level::Error, "This PTX version does not exist. The message names the nearest one."},
    {"unknown-target", Level::Error, "This target does not exist. The message names the nearest one, if the name may be a slip."},
    {"newer-than-known", Level::Warning, "The PTX version, or the target, is newer than this release of Tartan. The module is judged by the newest version that it knows, and as if for the nearest older target; instructions, qualifiers and forms that it does not know are warnings.", "The emulator refuses such an instruction when its kernel is launched."},
    {"old-target", Level::Note, "The target is a GPU before sm_50, the oldest one that Tartan knows: the module is judged as one for sm_50, and runs as such."},
    {"target-version", Level::Error, "The target requires a later PTX version than the module states: raise .version."},
    {"undeclared-register", Level::Error, "The register is used without a .reg declaration in an enclosing block."},
    {"undeclared-label", Level::Error, "A branch names a label that its function does not define."},
    {"unknown-directive", Level::Error, "No such directive, or not legal here. The message names the nearest one."},
    {"redefined-name", Level::Error, "A name is declared twice in the same scope."},
    {"declaration", Level::Error, "Illegal declaration of a register, variable or parameter: its state space, linkage, type, length, array or alignment."},
    {"initializer", Level::Error, "The initializer does not match the variable, or names something without an address."},
    {"redeclaration", Level::Error, "Two declarations of one name disagree in linkage, type, parameters or directives."},
    {"function-directive", Level::Error, "Illegal directive of a kernel or function (.maxntid and the like): wrong place, wrong values, or in conflict with another one."},
    {"unknown-pragma", Level::Warning, "No such pragma: the assembler ignores it. The message names the nearest one."},
    {"alias", Level::Error, ".alias needs two functions declared before it: a declaration without a body, and the function with a body that it aliases."},
    {"unwritten-parameter", Level::Error, "A .param variable of the body is read, but no call writes it."},
    {"unresolved-symbol", Level::Error, "An .extern variable of unknown size that this module does not define: a module that is assembled or loaded alone cannot have one. For a part of a program that is linked later (ptxas -c), make it a warning: --warn unresolved-symbol."},
    {"undefined-extern", Level::Warning, "An .extern variable that this module does not define: the assembler ignores .extern and makes a variable of its own, which holds zeros. Or a call of such a function, which only a program that is linked later can have (ptxas -c): the driver does not load the module alone."},
    {"debug-section", Level::Error, "Line information that the assembler refuses: the target option debug without a .debug section, or inlined_at without the .loc that it refers to."},
    {"shared-memory", Level::Error, "A kernel's static shared memory exceeds what a block of the target can have. Use less."},
    {"static-shared", Level::Warning, "A kernel's static shared memory exceeds what the offline assembler (ptxas) accepts, though a driver may load it: use dynamic shared memory (.extern .shared)."},
    {"deprecated-form", Level::Warning, "The form is deprecated: its results may be wrong on this target, and later PTX versions refuse it. The message names the form that replaces it."},
    {"llvm-leftover", Level::Error, "The text calls an llvm.* symbol: the code generator used an intrinsic that its back end does not support."},
    // Instructions.
    {"unknown-instruction", Level::Error, "No such instruction. The message names the nearest one."},
    {"unknown-qualifier", Level::Error, "The instruction does not accept this qualifier, or it is repeated."},
    {"unknown-form", Level::Error, "Illegal combination of qualifiers: each exists, but no form has them all. The message names the nearest legal form."},
    {"target-support", Level::Error, "The form is unsupported on this target. The message names the oldest target that supports it."},
    {"version-support", Level::Error, "The form requires a later PTX version on this target: raise .version."},
    {"undocumented-form", Level::Error, "NVIDIA's assembler accepts the form, but no manual documents it, so its semantics are unknown. --allow-undocumented makes it a warning."},
    {"operand-count", Level::Error, "Wrong number of operands."},
    {"register-count", Level::Error, "Wrong number of registers in a fragment operand."},
    {"register-type", Level::Error, "The register's type does not match the operand."},
    {"operand-kind", Level::Error, "Wrong kind of operand. The message says which is expected: a vector, an address, an immediate or a register."},
    {"immediate-range", Level::Error, "The immediate is outside the operand's range."},
    // Branches and calls.
    {"branch-table", Level::Error, "brx.idx requires the label of a .branchtargets directive declared before it; other branches cannot name such a label."},
    {"call-callee", Level::Error, "The callee is not a function, or an indirect call lacks a .callprototype or .calltargets."},
    {"call-signature", Level::Error, "The arguments or results of a call do not match the function: number, types, sizes or alignments."},
    {"cta-group", Level::Error, "Instructions with .cta_group::1 and with .cta_group::2 are mixed in one kernel, or in functions that it may call."},
    // Sane matrix code: legal, but probably not what was meant.
    {"fragment-provenance", Level::Warning, "A register holds a fragment of a different operand, shape, layout or type than the instruction reads. The message names both places."},
    {"maybe-divergent", Level::Warning, "A warp-wide instruction (.sync.aligned) is control-dependent on a lane-varying branch or guard, or in a loop that lanes leave in different iterations."},
    {"missing-wait", Level::Warning, "Shared memory written by cp.async is read before cp.async.wait_group or cp.async.wait_all."},
    {"missing-barrier", Level::Warning, "ldmatrix reads shared memory that other lanes wrote, without bar.sync or bar.warp.sync in between."},
    {"wgmma-fence", Level::Warning, "wgmma.mma_async uses registers that were accessed since the last wgmma.fence: its result is undefined. Insert wgmma.fence before it."},
    {"wgmma-wait", Level::Warning, "A register of a wgmma.mma_async in flight is accessed: insert wgmma.commit_group and wgmma.wait_group before the access. The message names both places. The emulator also reports a product for which nobody waits before its threads exit."},
    {"proxy-fence", Level::Warning, "wgmma or TMA reads shared memory written by ordinary stores, without fence.proxy.async in between: it may see stale data."},
    {"register-bounds", Level::Warning, "setmaxnreg has no effect: the assembler ignores it unless the kernel states its initial register count by .maxnreg, by .minnctapersm with .maxntid or .reqntid, or, with wgmma and more than 192 threads, by .maxntid or .reqntid alone. Device::assemble(): the driver's linker ignores it in every kernel; ptxas and load() of the text do not."},
    {"tensor-map-space", Level::Warning, "A tensor map is passed by an address in local or shared memory: it must be in a kernel parameter, or in global or constant memory."},
    {"misaligned-matrix", Level::Warning, "The address or stride of a matrix is not a multiple of what the instruction requires (ldmatrix: 16 bytes per row)."},
    {"narrow-store", Level::Warning, "A store of fewer bits than the register has, which an instruction of floating-point numbers wrote. The manual says that the low bits are stored; NVIDIA's assembler (as of CUDA 13.0) may store the number converted to an integer. Store the result of a mov (b16, b32, b64) of that register."},
    {"slow-instruction", Level::Note, "Legal but slow: the target emulates the instruction or has a faster one. The message names it."},
    // Kernel descriptions (DSL).
    {"kernel-name", Level::Error, "A kernel's name must be a PTX identifier: letters, digits, _ and $, not starting with a digit."},
    {"duplicate-name", Level::Error, "Two parameters or shared tiles of a kernel have the same name."},
    {"launch-bounds", Level::Error, "Illegal thread block: empty, larger than 1024 threads, or not a whole number of warps."},
    {"wrong-role", Level::Error, "In the wrong role. A fragment or tile is not the operand that the call takes: A as B, or no accumulators, or partial sums. A call belongs elsewhere: roles() inside roles(), warpgroups() or in_turn() outside of it. A copy by producer warps depends on a result that only consumers have."},
    {"fragment-mismatch", Level::Error, "The fragments belong to different instructions, or their types do not match."},
    {"kernel-option", Level::Error, "Illegal value of a kernel option, or two options in conflict."},
    {"tile-divide", Level::Error, "The tile's size is not a multiple of the shape of the instruction or copy."},
    {"tile-bounds", Level::Error, "The tile lies outside its tensor."},
    {"layout-mismatch", Level::Error, "Source and destination differ in shape or type, or the instruction cannot address their layout."},
    {"layout-alignment", Level::Error, "Rows of the tile are misaligned for the instruction (ldmatrix: 16 bytes)."},
    {"no-instruction", Level::Error, "No instruction of the target does this. The message names the targets that have one."},
    {"unsynchronized-tile", Level::Error, "Shared memory is read without a barrier after other threads' writes, which may be missing, or written without one after their reads, which may see it. The message says which barrier orders them, and where."},
    {"shared-size", Level::Error, "The kernel uses more shared memory than a thread block of the target can have."},
    {"scalar-type", Level::Error, "A scalar operation does not support the type of its operands."},
    {"foreign-value", Level::Error, "A value, tile or fragment belongs to another kernel."},
    {"value-scope", Level::Error, "A value made in the body of a loop, condition or pipeline is used after that body: carry it out in a variable() or an accumulator."},
    {"pipeline-stage", Level::Error, "A pipeline's callback indexes a ring by something else than the stage that it is given, such as the stage of another pipeline or of a step that is over, or a ring that only another pipeline fills; or fill, which runs ahead, reads a variable that use changes."},
    {"register-pressure", Level::Warning, "The accumulators and fragments that live at once need more registers than a thread has: the assembler will spill them to local memory. An error where it would refuse the kernel. The message names a tile that fits."},
    // Code generation.
    {"codegen", Level::Error, "LLVM failed to generate code. This is a bug in Tartan: its checks should have found the cause."},
    // Running.
    {"no-driver", Level::Error, "No CUDA driver: libcuda.so.1 is missing or finds no GPU. Install NVIDIA's driver, or use the emulator."},
    {"no-device", Level::Error, "The driver finds no GPU (see CUDA_VISIBLE_DEVICES), or no device of that number or name."},
    {"driver-version", Level::Error, "The driver is older than the module's PTX version: install a newer driver, or emit for an older --ptx."},
    {"module-load", Level::Error, "The driver's JIT rejected the module. The message includes its log."},
    {"driver", Level::Error, "A call of the CUDA driver failed. The message names the call and the error."},
    {"unknown-kernel", Level::Error, "The module has no kernel of that name. The message lists those it has."},
    {"unknown-variable", Level::Error, "The module has no .global or .const variable of that name. The message lists those it has."},
    {"launch-arguments", Level::Error, "The launch does not match the kernel: number or size of arguments, grid, block, cluster or shared memory."},
    {"buffer-range", Level::Error, "A copy starts or ends outside its buffer. Nothing was copied."},
    {"foreign-device", Level::Error, "The stream or event belongs to another device."},
    {"unsupported-instruction", Level::Error, "The emulator does not support this instruction. Nothing was run."},
    {"memory-fault", Level::Error, "Out-of-bounds access: outside every buffer, or past the end of shared or local memory.", "The launch ends there."},
    {"misaligned-access", Level::Error, "Misaligned access: the address is not a multiple of the access size.", "The launch ends there."},
    {"divergent-collective", Level::Error, "Not all required lanes reached a collective instruction (.sync.aligned, or .sync with a mask), a member mask does not name its lane or differs in the lanes that it names, a shuffle reads a lane that does not take part, or the warps of a warpgroup execute different setmaxnreg.", "The manual leaves the result undefined, and GPUs hang or give other values."},
    {"warpgroup-operand", Level::Error, "The threads of a warpgroup pass different descriptors or scale-d values to one wgmma instruction.", "The manual leaves the result undefined."},
    {"scale-selector", Level::Error, "The lanes of a warp pass different {byte-id, thread-id} pairs to one block-scaled mma, or values out of range.", "The manual leaves the result undefined."},
    {"sparse-metadata", Level::Error, "The metadata of a sparse product is illegal: the two indices of a group must ascend, each in range. The hardware's result is undefined.", "The manual leaves the result undefined."},
    {"barrier-deadlock", Level::Error, "Deadlock at a barrier: every warp of the CTA waits.", "The launch does not end."},
    {"deadlock", Level::Error, "Deadlock: every thread of a CTA or cluster waits for another one, at a phase of an mbarrier that nobody completes or at a barrier. The message lists who waits where.", "The launch does not end."},
    {"livelock", Level::Error, "Livelock: threads that can go on may come back to the same state for ever, each undoing what others do. Found by --schedules all.", "The launch need not end."},
    {"cluster-barrier", Level::Error, "barrier.cluster.arrive and barrier.cluster.wait must alternate in each thread.", "The manual leaves the behaviour undefined."},
    {"tensor-map", Level::Error, "TMA does not support such a tensor map: the message names the field and its rule. In a kernel: the 128 bytes at the address are not a tensor map, or not one of the instruction's rank; a reduction that tensors of its type do not have; a box with a coordinate outside of what the instruction may access (stores and reductions: below 0).", "The driver or the copy refuses it."},
    {"mbarrier", Level::Error, "An mbarrier is used without mbarrier.init, or without a fence or barrier between its initialization and its use.", "The operation may find other contents than those that were set up."},
    {"asynchronous-race", Level::Error, "Race with an asynchronous copy: its destination is still in use, is read before the copy is waited for, or its source is overwritten too early, or its CTA may exit before it is over. The message names both places. The result may be correct by chance.", "The outcome depends on when the copy is done."},
    {"store-at-exit", Level::Warning, "A CTA may exit while a bulk or tensor store still reads its shared memory. The manual asks the thread that issued the store to wait: cp.async.bulk.wait_group.read before its exit.", "The store is not known to fail: kernels of the field end so, and their results are right."},
    {"store-by-every-lane", Level::Warning, "Several lanes of a warp issue the same bulk or tensor store: each copies the same bytes to the same place. Let one lane issue it (elect.sync).", "Each of the stores leaves the same."},
    {"proxy-fence-read", Level::Warning, "A bulk copy or TMA writes where ordinary loads have read before, without fence.proxy.async in between. The manual asks for the fence between any two accesses of the generic and the async proxy; CUTLASS and older Triton leave it out behind loads, so this warns. One finding for each kernel.", "Kernels of the field leave the fence out, and are not known to fail."},
    {"mbarrier-init-fence", Level::Warning, "A copy completes at an mbarrier, and between mbarrier.init and the copy stands neither fence.mbarrier_init nor fence.proxy.async: the async proxy need not see the initialization. Triton leaves the fence out, so this warns. One finding for each kernel.", "Kernels of the field leave the fence out, and are not known to fail."},
    {"mbarrier-wait-scope", Level::Warning, "A thread uses what a thread of another CTA has written, ordered by mbarrier.test_wait or try_wait of scope .cta alone, which is the default. The manual asks for .acquire.cluster. One finding for each kernel.", "Kernels of the field wait so, and are not known to fail."},
    {"memory-race", Level::Error, "Race: two threads access the same bytes of shared or global memory, at least one writes, and nothing orders the two. The message names both accesses and what would order them. The result may be correct by chance.", "The outcome depends on the order. A warning of `tartan run` where a load races, and a second run shows that what it reads reaches no output, branch, address or barrier: no order then gives another outcome. That one other order gave the same numbers is no reason."},
    {"same-value-race", Level::Warning, "Several threads store the same value to the same bytes without order between the stores. The final value is correct, but a read of it must be ordered after all of them.", "Whichever store comes last, the memory holds the same."},
    {"weak-cas-read", Level::Warning, "A weak load reads what atom.cas of another thread changes, without order. Compare-and-swap loops often start like this and retry, but the memory model calls it a race: use ld.relaxed.", "The compare-and-swap that follows sees what the load did not."},
    {"converged-exchange", Level::Warning, "Lanes of a warp exchange values through shared memory without bar.warp.sync, by volatile accesses or others. From sm_70 on lanes of a warp may run apart: insert bar.warp.sync between the store and the load.", "The lanes executed the first of the two together, so that the other one comes behind it; where they had parted it is a `memory-race`."},
    {"repeated-init", Level::Warning, "Several lanes execute one mbarrier.init of the same mbarrier with the same count: let one elected lane do it.", "Each of them leaves the same contents, before any lane goes on."},
    {"uninitialized-read", Level::Error, "The result depends on a register, or on shared, local or global memory, that was never written. The message names where the value was read first and where it is used.", "The outcome depends on what was there. A warning of `tartan run` where further runs leave the same bits in all buffers with zeros, ones, NaNs and random bits in its place."},
    {"schedule-dependent", Level::Warning, "The result depends on the order in which warps, CTAs or asynchronous copies run: two schedules end differently. The message names a schedule that --schedule repeats.", "Sums of floating-point numbers in another order differ by rounding alone: whether more than that differs is for the user to say."},
    {"unwritten-tile", Level::Error, "wgmma reads shared memory that was never written: the preceding wait returned early.", "The product reads what nobody wrote."},
    {"matrix-descriptor", Level::Warning, "The descriptor of a tile of wgmma or tcgen05 is illegal, or does not match the data: a different swizzle than the copy's, a start address that runs past the end of a row, or an 8x8 matrix with rows of two tensors. `tartan check` judges what constants of the text decide.", "The product reads other elements than were meant."},
    {"tensor-memory", Level::Warning, "Tensor memory is used against its rules: cells that are not allocated or another warp's, an allocation of a wrong size, after relinquish_alloc_permit or never freed, a deallocation of what alloc did not give. The message says which.", "The manual leaves the behaviour undefined."},
    {"instruction-descriptor", Level::Warning, "The instruction descriptor of a tcgen05.mma is illegal for its kind, its target or its qualifiers. The message names the field. `tartan check` judges those that constants of the text make.", "The manual leaves the result undefined."},
    {"tensor-fence", Level::Note, "Two threads access the same tensor memory, a barrier orders the two, but tcgen05.fence::before_thread_sync does not stand in front of it, or ::after_thread_sync behind it. The manual asks for both, but where tcgen05.commit, which contains the first, stands there. One finding for each kernel.", "Triton and the CuTe DSL write neither, and their kernels are not known to fail. Where arrivals and waits are relaxed, or nothing but the tensor core's own order keeps the two apart, a missing fence is an `asynchronous-race`."},
    {"unspecified-order", Level::Warning, "Two products of tcgen05 are in flight whose accumulators overlap and differ in place or shape, or the second writes D over an operand of the first in tensor memory: the tensor core keeps the order of those alone that have the same one. Wait for a commit between the two.", "The manual leaves the order open; whether hardware ever changes it is not known."},
    {"unspecified-value", Level::Warning, "A value that decides something comes from a row that tcgen05.shift, or .ashift of a product, moved: the manual says \"down by one\", and no source tells which way that is. A row whose neighbours are equal to it is known.", "The emulator moves rows to the next lane; hardware may move them to the one before."},
    {"collector-use", Level::Warning, "tcgen05.mma with .collector::a::use or ::lastuse, though no product with ::fill and the same A came before it, or A has changed since.", "The hardware may read A from memory all the same: the result is right by chance."},
    {"trap", Level::Error, "The kernel executed trap, or a device assertion failed.", "The launch ends there."},
    {"stack-overflow", Level::Error, "A recursive call or an alloca exceeds the emulator's stack: 64 KiB of saved registers and variables per lane.", "The launch ends there."},
    {"call-target", Level::Error, "An indirect call to an address that is not a function, or to a function with another signature.", "The launch ends there."},
    {"step-limit", Level::Error, "The kernel exceeded --max-steps instructions: an infinite loop, or a limit that is too low.", "The launch was stopped."},
    {"time-limit", Level::Error, "The launch exceeded --timeout and was stopped: an infinite loop, an unbounded grid, or a limit that is too low.", "The launch was stopped."},
    {"interrupted", Level::Error, "Ctrl-C stopped the launch. The message says where the warps were.", "The launch was stopped."},
    // Files and manifests.
    {"file", Level::Error, "A file cannot be read or written."},
    {"manifest", Level::Error, "Invalid manifest for `tartan run`. The message names the field."},
    {"recording", Level::Error, "The index or data of a recording is invalid for `tartan replay`, or truncated. The message says where."},
    {"different-function", Level::Error, "`tartan equal`: the two kernels compute different functions of their inputs. The message names the first element and the terms that differ."},
    {"undecided", Level::Error, "`tartan equal` or `tartan run --schedules` cannot decide. The message names what stood in the way, and where."},
    {"usage", Level::Error, "Invalid command-line arguments. The message names the argument."},
    {"out-of-memory", Level::Error, "Out of host memory or threads: use smaller buffers or a smaller launch."},
    {"tuning-entry", Level::Warning, "The tuning file has no entry for this product on this target: the model chooses the configuration instead, as without the file."},
    {"nothing-compared", Level::Warning, "`tartan run` compared no buffer: the manifest states no \"expect\". --require-expectations makes it exit 1."},
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

}  // namespace tartan::TARTAN_ABI
