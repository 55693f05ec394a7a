// SPDX-License-Identifier: Apache-2.0
// From IR to PTX text.
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/CodeGen/CodeGenTargetMachineImpl.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Utils.h>

#include <cassert>
#include <utility>

#include "compiler/codegen/accumulators.h"
#include "compiler/codegen/llvm_builder.h"
#include "compiler/codegen/narrow_stores.h"
#include "compiler/codegen/target_machine.h"
#include "compiler/codegen/value_scopes.h"

namespace tartan::TARTAN_ABI::codegen {
namespace {

// Turns LLVM's diagnostics into Tartan's. After some, such as an impossible asm constraint, the
// passes finish as if nothing had happened.
class Collector : public llvm::DiagnosticHandler {
 public:
  explicit Collector(Diags& diags) : diags_(diags) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error) return true;
    std::string message;
    llvm::raw_string_ostream out(message);
    llvm::DiagnosticPrinterRawOStream printer(out);
    info.print(printer);
    diags_.report("codegen"_rule, {}, "LLVM: " + message);
    return true;
  }

 private:
  Diags& diags_;
};

// NVPTX's back end as TargetMachine::addPassesToEmitFile() sets it up, but without the address and
// loop optimisations before instruction selection: they take a quarter of the time, and the
// assembler does as much again.
void add_back_end(llvm::legacy::PassManager& passes, llvm::TargetMachine& machine,
                  llvm::raw_pwrite_stream& out) {
  auto* const steps =
      static_cast<llvm::CodeGenTargetMachineImpl&>(machine).createPassConfig(passes);
  auto* const functions = new llvm::MachineModuleInfoWrapperPass(&machine);
  steps->setDisableVerify(true);
  // They find nothing to do in this code.
  for (char* const each :
       {&llvm::OptimizePHIsLegacyID, &llvm::PeepholeOptimizerLegacyID,
        // Garbage collectors, exceptions, and values of variables in debug information.
        &llvm::GCLoweringID, &llvm::ShadowStackGCLoweringID, &llvm::GCMachineCodeAnalysisID,
        &llvm::StackMapLivenessID, &llvm::FuncletLayoutID, &llvm::RemoveRedundantDebugValuesID,
        &llvm::LiveDebugValuesID, &llvm::FixupStatepointCallerSavedID,
        // Spilled registers and the order of instructions, which the assembler chooses.
        &llvm::StackColoringLegacyID, &llvm::StackSlotColoringID, &llvm::MachineSchedulerID,
        &llvm::LocalStackSlotAllocationID, &llvm::StackFrameLayoutAnalysisPassID,
        // Instrumentation.
        &llvm::FEntryInserterID, &llvm::XRayInstrumentationID, &llvm::PatchableFunctionID,
        &llvm::MachineSanitizerBinaryMetadataID, &llvm::RemoveLoadsIntoFakeUsesID})
    steps->disablePass(each);
  passes.add(steps);
  passes.add(functions);
  machine.setOptLevel(llvm::CodeGenOptLevel::None);
  steps->addIRPasses();
  machine.setOptLevel(llvm::CodeGenOptLevel::Default);
  steps->addCodeGenPrepare();
  steps->addPassesToHandleExceptions();
  steps->addISelPrepare();
  steps->addInstSelector();
  passes.add(llvm::Pass::createPass(&llvm::FinalizeISelID));
  steps->addMachinePasses();
  steps->setInitialized();
  [[maybe_unused]] const bool unsupported = machine.addAsmPrinter(
      passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile, functions->getMMI().getContext());
  assert(!unsupported);
  passes.add(llvm::createFreeMachineFunctionPass());
}

// One pass manager for the few optimisations that pay off, and the back end. LLVM's O2 pipeline
// takes 30 times as long and gives no faster code.
void run_passes(llvm::Module& module, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out,
                std::string& declaration) {
  auto* const passes = new llvm::legacy::PassManager;  // leaked if LLVM gives up in it
  passes->add(new llvm::TargetLibraryInfoWrapperPass(machine.getTargetTriple()));
  passes->add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  passes->add(llvm::createPromoteMemoryToRegisterPass());
  passes->add(llvm::createEarlyCSEPass());
  passes->add(name_accumulators(declaration));
  passes->add(move_before_narrow_stores());
  add_back_end(*passes, machine, out);
  passes->run(module);
  delete passes;
}

// LLVM's text, ending in one line break. With line directives on, LLVM also prints an empty debug
// section.
std::string finished(std::string_view text, const std::string& declaration) {
  constexpr std::string_view section = "\t.section\t.debug_macinfo\t{\t}\n";
  std::string out(text);
  if (!declaration.empty()) {
    const std::size_t start = out.find("\n{\n");
    assert(start != std::string::npos && "the back end printed no function");
    out.insert(start + 3, declaration);
  }
  if (const std::size_t at = out.rfind(section); at != std::string::npos)
    out.erase(at, section.size());
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ' || out.back() == '\t'))
    out.pop_back();
  assert(!out.empty() && "the back end produced no text");
  return out + '\n';
}

// With the version and the target that LLVM did not know.
std::string restated(std::string text, const Target& target) {
  const Target printed = known_to_llvm(target);
  const auto replace = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    assert(at != std::string::npos && "the back end printed another header");
    text.replace(at, from.size(), to);
  };
  if (printed.ptx != target.ptx)
    replace(".version " + printed.ptx.text(), ".version " + target.ptx.text());
  if (printed.arch != target.arch)
    replace(".target " + printed.arch.text(), ".target " + target.arch.text());
  return text;
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::string LlvmBuilder::layout_comment() const {
  return shared_layout.empty() ? std::string()
                               : detail::text(dynamic_memory->getName().str(), shared_layout);
}

// Ends the function, once.
Status LlvmBuilder::finish() {
  assert(module && "emit() was already called");
  if (std::exchange(ended, true)) return Done{};
  build.CreateRetVoid();
  settle_params();
  if (debug) debug->finalize();
  if (Diags diags = values_out_of_scope(*function); !diags.ok()) return diags;
  assert(!llvm::verifyModule(*module, &llvm::errs()) && "IR that LLVM's verifier refuses");
  return Done{};
}

Result<std::string> LlvmBuilder::ir() {
  if (const Status sound = finish(); !sound) return sound.diags();
  std::string text = layout_comment();
  llvm::raw_string_ostream out(text);
  module->print(out, nullptr);
  return text;
}

Result<std::string> LlvmBuilder::emit() {
  if (const Status sound = finish(); !sound) return sound.diags();
  const std::string layout = layout_comment();
  Diags diags;
  context->setDiagnosticHandler(std::make_unique<Collector>(diags), false);
  llvm::SmallVector<char, 0> text;
  std::string declaration;
  try {
    guard_fatal_errors([&] {
      llvm::raw_svector_ostream out(text);
      run_passes(*module, target_machine(target), out, declaration);
    });
  } catch (const FatalError& error) {
    diags.report("codegen"_rule, {},
                 "LLVM failed on kernel " + name + ": " + one_line(error.what()));
    abandon_target_machine(target);
    (void)debug.release();
    (void)module.release();
    (void)context.release();
    return diags;
  }
  context->setDiagnosticHandler(std::make_unique<llvm::DiagnosticHandler>(), false);
  module.reset();
  if (!diags.ok()) return diags;

  return layout + restated(finished({text.data(), text.size()}, declaration), target);
}

}  // namespace tartan::TARTAN_ABI::codegen
