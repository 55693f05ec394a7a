// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/assemble.h"

#include <fmt/format.h>

#include <cstring>

#include "compiler/isa/target_name.h"
#include "compiler/ptx/line_table.h"
#include "runtime/cuda/jit.h"
#include "runtime/cuda/module.h"

namespace tartan::TARTAN_ABI::cuda {
namespace {

// A linker of the driver, which owns the cubin.
class Link {
 public:
  explicit Link(Context& context) : context_(context) {}
  ~Link() {
    if (handle_) context_.invoke(driver().link_destroy, handle_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // `call` is set to the one that failed.
  Code run(Jit& jit, const std::string& ptx, const std::string& name, std::vector<std::byte>& cubin,
           const char*& call) {
    call = driver().link_create.symbol;
    if (const Code code = context_.invoke(driver().link_create, jit.count(), jit.options(),
                                          jit.values(), &handle_);
        code != Code::Success)
      return code;
    call = driver().link_add.symbol;
    constexpr unsigned no_options = 0;
    if (const Code code = context_.invoke(
            driver().link_add, handle_, jit_input_ptx,
            static_cast<void*>(const_cast<char*>(ptx.c_str())), ptx.size() + 1, name.c_str(),
            no_options, static_cast<JitOption*>(nullptr), static_cast<void**>(nullptr));
        code != Code::Success)
      return code;
    call = driver().link_complete.symbol;
    void* image = nullptr;
    std::size_t bytes = 0;
    const Code code = context_.invoke(driver().link_complete, handle_, &image, &bytes);
    if (code != Code::Success) return code;
    cubin.resize(bytes);
    std::memcpy(cubin.data(), image, bytes);
    return code;
  }

 private:
  const Driver& driver() const { return context_.driver(); }
  Context& context_;
  LinkHandle handle_ = nullptr;
};

// The driver takes the GPU's architecture without a suffix unless it is told one.
void set_target(Jit& jit, const ptx::Module& module, int capability) {
  const auto named = named_target(module.targets);
  if (!named || named->arch.suffix == 0) return;
  jit.set_target((named->arch.suffix == 'a' ? suffix_a_target : suffix_f_target) +
                 static_cast<unsigned>(capability));
}

// The linker compiles a part of a program, and ignores setmaxnreg there: a warning for each kernel
// that has it, at the C++ line if the text tells that.
Diags ignored_moves(const ptx::Module& module, const std::string& ptx, const std::string& name) {
  Diags out;
  for (const std::string_view each : module.kernels())
    for (const ptx::Statement& statement : module.function(each)->statements) {
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      const ptx::Instruction& instruction = module.instructions[statement.index];
      if (module.spelling(instruction).opcode != isa::Opcode::setmaxnreg) continue;
      const int line = module.source->line(instruction.offset);
      auto place = detail::LineTable(ptx).place(line);
      out.add({.level = Level::Warning,
               .id = "register-bounds"_rule.id,
               .place = place ? *std::move(place) : Place{name, line, 0},
               .message = fmt::format(
                   "{} has no effect in machine code of the driver's linker, which ignores it: "
                   "kernel {} may spill what its threads then have no registers for; load() of the "
                   "text keeps it, and NVIDIA's ptxas does",
                   instruction.opcode, each),
               .source = {}});
      break;
    }
  return out;
}

}  // namespace

Result<Assembled> assemble(Context& context, const std::string& ptx, const std::string& name) {
  const Driver& driver = context.driver();
  const auto module = parse_for(driver, ptx, name);
  if (!module) return module.diags();
  Assembled out;
  Jit jit;
  set_target(jit, *module, context.capability());
  const char* call = nullptr;
  const Code code = Link(context).run(jit, ptx, name, out.cubin, call);
  if (kernel_failed(code) || code == Code::ContextIsDestroyed) return context.failure(call, code);
  if (code != Code::Success) return rejection(driver, call, code, *module, name, jit);
  std::string rest;
  out.warnings = jit.remarks(ptx, name, rest);
  out.warnings.append(ignored_moves(*module, ptx, name));
  out.kernels = interfaces_of(*module);
  return out;
}

}  // namespace tartan::TARTAN_ABI::cuda
