// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/decode/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "compiler/ptx/kernel_directives.h"
#include "compiler/support/shared_layout.h"
#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/memory.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

std::uint32_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return static_cast<std::uint32_t>((value + multiple - 1) / multiple * multiple);
}

// The numbers of ".maxntid 128, 1, 1".
Dim3 read_dimensions(std::string_view text) {
  Dim3 out;
  std::uint32_t* parts[] = {&out.x, &out.y, &out.z};
  std::size_t at = text.find_first_of(" \t\n");
  for (std::uint32_t* part : parts) {
    at = at == std::string_view::npos ? at : text.find_first_of("0123456789", at);
    if (at == std::string_view::npos) break;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), *part);
    at = static_cast<std::size_t>(end - text.data());
  }
  return out;
}

// What a thread may have where setmaxnreg counts: .maxnreg, or what `blocks` of .minnctapersm
// leave, in the steps of 8 in which a multiprocessor allots its registers. It has four parts with
// 512 for each lane, among which it divides its warps.
std::uint32_t most_registers(const Program& program, std::uint32_t maxnreg, std::uint32_t blocks) {
  constexpr std::uint64_t of_part = 512, parts = 4, most = 248;
  if (maxnreg) return round_up(maxnreg, 8);
  const std::uint64_t threads = std::max(program.max_threads, program.required_block.count());
  if (!blocks || !threads) return 0;
  const std::uint64_t warps = blocks * ((threads + 31) / 32), deep = (warps + parts - 1) / parts;
  return static_cast<std::uint32_t>(std::min(of_part / deep / 8 * 8, most));
}

}  // namespace

// What there is: PTX ISA "Kernel Function Parameters", CUDA programming guide "Compute
// Capabilities". How much shared memory the hardware has is looked at when the kernel is launched.
struct Decoder::Room {
  std::string_view name;
  std::uint64_t most;  // bytes
  const Rule& rule;
};
constexpr Decoder::Room param_room{"the parameter space of a kernel", 32764,
                                   "unsupported-instruction"_rule},
    local_room{"the local memory of a thread", 512 * 1024, "unsupported-instruction"_rule},
    stack_room{"the stack of a thread", stack_bytes, "unsupported-instruction"_rule},
    shared_room{"the shared memory of a block", shared_offset_mask + 1, "shared-size"_rule};

Decoder::Decoder(const ptx::Module& module, const Globals& globals, Hardware hardware, Diags& diags)
    : module_(module), names_(module), globals_(globals), hardware_(hardware), diags_(diags) {
  for (const ptx::Item& item : module_.items) {
    if (item.kind != ptx::ItemKind::Variable) continue;
    const ptx::Variable& variable = module_.variables[item.index];
    if (variable.space == StateSpace::shared) module_shared_.add(variable, &variable);
  }
  program_.ordered = std::ranges::any_of(module_.spellings, [](const isa::Spelling& each) {
    return isa::uses_async_proxy(each.opcode) || isa::is_mbarrier(each.opcode);
  });
}

Program Decoder::decode(const ptx::Function& kernel) {
  program_.name = kernel.name;
  const std::uint32_t always = allocate(1);
  std::memset(program_.arena.data() + always, 0xFF, 4);
  read_directives(kernel);
  const std::vector<CallNode> functions = order_calls(kernel);
  for (const CallNode& node : functions) announce(node);
  for (const CallNode& node : functions) decode_function(*node.function);
  for (const auto& [op, name] : entries_) program_.ops[op].value = functions_.at(name).entry;
  program_.entry = functions_.at(kernel.name).entry;
  finish_shared();
  finish_stack();
  note_plain();
  for (const auto& each : program_.observations)
    if (each) each->finish(program_, module_);
  program_.arena.resize(round_up(program_.arena.size(), 256));
  return std::move(program_);
}

void Decoder::read_directives(const ptx::Function& kernel) {
  std::uint32_t maxnreg = 0, blocks = 0;
  for (std::uint32_t index : kernel.directives) {
    const ptx::Directive& directive = module_.directives[index];
    if (directive.name == ".reqntid") program_.required_block = read_dimensions(directive.text);
    if (directive.name == ".reqnctapercluster")
      program_.required_cluster = read_dimensions(directive.text);
    if (directive.name == ".explicitcluster") program_.explicit_cluster = true;
    if (directive.name == ".maxclusterrank")
      program_.max_cluster = read_dimensions(directive.text).x;
    if (directive.name == ".maxntid")
      program_.max_threads = read_dimensions(directive.text).count();
    if (directive.name == ".maxnreg") maxnreg = read_dimensions(directive.text).x;
    if (directive.name == ".minnctapersm") blocks = read_dimensions(directive.text).x;
  }
  const auto [x, y, z] = ptx::grid_unit(module_, kernel);
  program_.grid_unit = {x, y, z};
  program_.most_registers = most_registers(program_, maxnreg, blocks);
  for (std::uint32_t index : kernel.params) {
    const ptx::Variable& param = module_.variables[index];
    program_.param_offsets.push_back(make_room(program_.param_bytes, param, param_room));
    program_.params.push_back({std::string(param.name), size_of(param)});
  }
}

// ---- Functions and statements.

void Decoder::announce(const CallNode& node) {
  const ptx::Function& tree = *node.function;
  function_ = &tree;
  Function& made = functions_[tree.name];
  made = {.tree = &tree,
          .frame = static_cast<std::uint32_t>(program_.frames.size()),
          .component = node.component,
          .framed = !tree.entry && (node.recursive || takes_stack(tree))};
  program_.frames.emplace_back();
  if (tree.entry) return;
  made.return_slot = scratch(32);
  if (made.framed) {
    stack_slot();
    frame().base = scratch(32);
  }
  const auto place = [&](const std::vector<std::uint32_t>& list, std::vector<Symbol>& symbols,
                         std::vector<std::uint32_t>& slots) {
    for (const std::uint32_t index : list) {
      const ptx::Variable& variable = module_.variables[index];
      const bool in_register = variable.space == StateSpace::reg;
      slots.push_back(in_register ? new_register(variable.type) : 0);
      // On the stack registers have room, too, to change places in.
      symbols.push_back(in_register && !made.framed ? Symbol{.bytes = size_of(variable)}
                                                    : place_local(variable, made));
    }
  };
  place(tree.params, made.params, made.param_slots);
  place(tree.results, made.results, made.result_slots);
}

void Decoder::decode_function(const ptx::Function& function) {
  scopes_.assign(1, {});
  scope_ = 0;
  has_vectors_ = false;
  frame_addresses_.clear();
  function_ = &function;
  Function& made = functions_.at(function.name);
  bind_params(function);
  made.entry = static_cast<std::uint32_t>(program_.ops.size());
  instruction_ = nullptr;
  origin_ = {.offset = function.offset};
  set_guard({});
  if (made.framed) emit_enter_frame(*this);
  decode_statements(function);
  if (function.entry) program_.kernel_end = static_cast<std::uint32_t>(program_.ops.size());
  resolve_labels();
}

void Decoder::bind_params(const ptx::Function& function) {
  const Function& made = current();
  const auto bind = [&](const std::vector<std::uint32_t>& list, const std::vector<Symbol>& symbols,
                        const std::vector<std::uint32_t>& slots) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const ptx::Variable& variable = module_.variables[list[i]];
      const ptx::Registers declaration{
          .type = variable.type, .name = variable.name, .offset = variable.offset};
      if (slots[i]) scope().registers.emplace(variable.name, Range{declaration, {slots[i]}});
      else scope().variables.add(variable, symbols[i]);
    }
  };
  if (!function.entry) {
    bind(function.params, made.params, made.param_slots);
    bind(function.results, made.results, made.result_slots);
    return;
  }
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ptx::Variable& param = module_.variables[function.params[i]];
    scope().variables.add(param, {Window::param, program_.param_offsets[i], size_of(param)});
  }
}

std::uint32_t Decoder::make_room(std::uint32_t& used, std::uint64_t bytes, std::uint64_t alignment,
                                 std::uint32_t offset, const Room& room) {
  const std::uint64_t at = (used + alignment - 1) / alignment * alignment;
  if (at <= room.most && bytes <= room.most - at) {
    used = static_cast<std::uint32_t>(at + bytes);
    return static_cast<std::uint32_t>(at);
  }
  diags_.report(
      room.rule, module_.source->place(offset),
      fmt::format("{} exceeded: at most {} bytes, {} are in use and {} more are declared here",
                  room.name, room.most, used, bytes));
  return 0;
}

std::uint32_t Decoder::make_room(std::uint32_t& used, const ptx::Variable& variable,
                                 const Room& room) {
  return make_room(used, size_with_row(variable), alignment_of(variable), variable.offset, room);
}

// Of a function's body. Parameters of functions, and those that a call passes, are in local memory.
void Decoder::declare(const ptx::Variable& variable, std::uint32_t index) {
  switch (variable.space) {
    case StateSpace::shared: scope().variables.add(variable, place_shared(variable)); return;
    case StateSpace::local:
    case StateSpace::param:
      scope().variables.add(variable, place_local(variable, current()));
      return;
    default:  // .global and .const have their place since the module was loaded
      if (const auto found = globals_.nested.find(index); found != globals_.nested.end())
        scope().variables.add(variable, found->second);
  }
}

Symbol Decoder::place_local(const ptx::Variable& variable, const Function& owner) {
  if (!owner.framed)
    return {Window::local, make_room(program_.local_bytes, variable, local_room),
            size_of(variable)};
  program_.stack_alignment = std::max(program_.stack_alignment, alignment_of(variable));
  return {.window = Window::local,
          .address = make_room(program_.frames[owner.frame].bytes, variable, stack_room),
          .bytes = size_of(variable),
          .framed = true};
}

void Decoder::decode_statements(const ptx::Function& function) {
  std::string_view last_label;  // the one in front of a directive is its name
  for (const ptx::Statement& statement : function.statements) {
    switch (statement.kind) {
      case ptx::StatementKind::Instruction:
        decode_instruction(module_.instructions[statement.index]);
        break;
      case ptx::StatementKind::Label: {
        const ptx::Label& label = module_.labels[statement.index];
        scope().labels[label.name] = static_cast<std::uint32_t>(program_.ops.size());
        last_label = label.name;
        break;
      }
      case ptx::StatementKind::Registers: {
        const ptx::Registers& declaration = module_.registers[statement.index];
        if (constexpr std::uint32_t most = 1 << 20;
            declaration.numbered && declaration.count > most) {
          error("unsupported-instruction"_rule,
                fmt::format("too many registers of one name: expected at most {}, found {}", most,
                            declaration.count));
          break;
        }
        const std::size_t count = declaration.numbered ? declaration.count : 1;
        has_vectors_ |= declaration.vector > 1;
        scope().registers[declaration.name] = {
            declaration, std::vector<std::uint32_t>(count * declaration.vector)};
        break;
      }
      case ptx::StatementKind::Variable:
        declare(module_.variables[statement.index], statement.index);
        break;
      case ptx::StatementKind::Location: origin_.location = statement.index + 1; break;
      case ptx::StatementKind::Directive: {
        const ptx::Directive& directive = module_.directives[statement.index];
        if (directive.name == ".branchtargets" || directive.name == ".calltargets" ||
            directive.name == ".callprototype")
          scope().targets[last_label] = &directive;
        break;
      }
      case ptx::StatementKind::BlockBegin:
        scopes_.push_back({.parent = scope_});
        scope_ = static_cast<int>(scopes_.size()) - 1;
        break;
      case ptx::StatementKind::BlockEnd: scope_ = scope().parent; break;
    }
  }
  // Running off the end is a return.
  instruction_ = nullptr;
  origin_.offset = function.offset;
  operands_ = {};
  guard_ = always_slot;
  guard_flip_ = 0;
  static const isa::Spelling ret = isa::read_spelling("ret");
  spelling.read(ret);
  emulated(Opcode::ret).decode(*this);
}

bool Decoder::is_late() {
  constexpr std::uint64_t step = 64;
  if (late_ || !deadline_ || looked_++ % step) return late_;
  if (std::chrono::steady_clock::now() < *deadline_) return false;
  error("time-limit"_rule, "the kernel has not been loaded within the time limit");
  return late_ = true;
}

void Decoder::decode_instruction(const ptx::Instruction& instruction) {
  instruction_ = &instruction;
  operands_ = module_.operands_of(instruction);
  if (has_vectors_) expand_vectors();
  origin_.offset = instruction.offset;
  spelling.read(module_.spelling(instruction));
  failed_ = false;
  if (is_late()) return;
  guard_ = always_slot;
  guard_flip_ = 0;
  if (!instruction.guard.empty()) {
    const auto guard = find_register(instruction.guard);
    if (!guard || guard->type != Type::pred)
      return error("undeclared-register"_rule,
                   fmt::format("{} is not a declared predicate register", instruction.guard));
    guard_ = guard->slot;
    guard_flip_ = instruction.guard_negated ? ~std::uint32_t{0} : 0;
  }
  const std::size_t first = program_.ops.size();
  first_use_ = static_cast<std::ptrdiff_t>(program_.registers.uses.size());
  emulated(spelling.opcode()).decode(*this);
  if (recorded_) finish_recording(first);
  note_plain();
  for (const auto& each : program_.observations)
    if (each && !failed_ && program_.ops.size() > first) each->decoded(*this, first);
  if (!failed_)
    if (const std::string_view left = spelling.unused(); !left.empty())
      unsupported(fmt::format("unsupported word .{}", left));
}

void Decoder::note_plain() {
  for (std::size_t i = program_.plain.size(); observed_ && i < program_.ops.size(); ++i)
    program_.plain.push_back(program_.ops[i].run);
}

void Decoder::resolve_labels() {
  for (const Fixup& fixup : fixups_) {
    bool found = false;
    for (int at = fixup.scope; at >= 0 && !found;
         at = scopes_[static_cast<std::size_t>(at)].parent) {
      const auto& labels = scopes_[static_cast<std::size_t>(at)].labels;
      if (const auto label = labels.find(fixup.label); label != labels.end()) {
        if (fixup.table) program_.slots[fixup.index] = label->second;
        else program_.ops[fixup.index].value = label->second;
        found = true;
      }
    }
    if (!found)
      diags_.report("undeclared-label"_rule, module_.source->place(fixup.offset),
                    fmt::format("undefined label {}", fixup.label));
  }
  fixups_.clear();
}

// ---- Emitting.

Op& Decoder::emit(Handler handler) {
  if (!handler) unsupported();
  program_.ops.push_back({.run = handler, .guard = guard_, .guard_flip = guard_flip_});
  program_.origins.push_back(origin_);
  return program_.ops.back();
}

void Decoder::unsupported(std::string_view why) {
  if (failed_) return;
  error("unsupported-instruction"_rule, fmt::format("the emulator does not support {}{}{}",
                                                    spelling.text(), why.empty() ? "" : ": ", why));
}

void Decoder::error(const Rule& rule, std::string message) {
  if (failed_) return;
  failed_ = true;
  Diag& diag = diags_.report(rule, module_.source->place(origin_.offset), std::move(message));
  module_.source->quote(diag, instruction_ ? instruction_->opcode.size() : 1);
}

void Decoder::rest_on(Trust trust, std::string_view source) {
  if (program_.basis && program_.basis->trust >= trust) return;
  program_.basis = {trust, std::string(spelling.text()), source};
}

bool Decoder::expect_operands(std::size_t low, std::size_t high) {
  if (operands_.size() >= low && operands_.size() <= high) return true;
  error("operand-count"_rule,
        low == high ? fmt::format("wrong number of operands: {} expects {}, found {}",
                                  spelling.text(), low, operands_.size())
                    : fmt::format("wrong number of operands: {} expects {} to {}, found {}",
                                  spelling.text(), low, high, operands_.size()));
  return false;
}

void Decoder::jump(Op& op, std::string_view label) {
  fixups_.push_back(
      {static_cast<std::size_t>(&op - program_.ops.data()), false, scope_, label, origin_.offset});
}

void Decoder::jump_table(std::uint32_t index, std::string_view label) {
  fixups_.push_back({index, true, scope_, label, origin_.offset});
}

// ---- Shared memory.

Symbol Decoder::place_shared(const ptx::Variable& variable) {
  const bool dynamic = variable.unsized && !variable.initialiser;
  if (dynamic) {
    dynamic_alignment_ = std::max(dynamic_alignment_, alignment_of(variable));
    program_.shared_variables.push_back({std::string(variable.name), 0, 0, true});
    // The comment that says so is looked for in all of the text.
    constexpr std::size_t many = 64;
    if (program_.shared_variables.size() < many)
      for (auto& [name, at] : detail::read_shared_layout(module_.source->text(), variable.name))
        program_.shared_variables.push_back({std::move(name), at, 0, true});
    return {Window::shared, 0, 0, true};
  }
  const std::uint32_t at = make_room(program_.shared_bytes, variable, shared_room);
  program_.shared_variables.push_back({std::string(variable.name), at, size_of(variable)});
  return {Window::shared, at, size_of(variable)};
}

void Decoder::finish_shared() {
  program_.dynamic_shared_base = round_up(program_.shared_bytes, dynamic_alignment_);
  for (const SharedSlot& each : program_.shared_slots)
    if (each.dynamic) move_address(program_.arena.data(), each, program_.dynamic_shared_base);
}

// ---- The stack.

std::uint32_t Decoder::stack_slot() {
  if (!program_.stack_slot) program_.stack_slot = allocate(32);
  return program_.stack_slot;
}

void Decoder::finish_stack() {
  if (!program_.stack_slot) return;
  const std::uint32_t alignment = program_.stack_alignment;
  program_.stack_begin = round_up(program_.local_bytes, alignment);
  program_.local_bytes = program_.stack_begin + stack_bytes;
  for (int lane = 0; lane < 32; ++lane)
    std::memcpy(program_.arena.data() + program_.stack_slot + 4 * lane, &program_.stack_begin, 4);
  for (Frame& frame : program_.frames) {
    frame.bytes = round_up(frame.bytes, alignment);
    for (const SavedRegister& each : frame.registers)
      frame.saved_bytes += std::max<std::uint32_t>(each.bytes, 1);
    frame.saved_bytes = round_up(frame.saved_bytes, alignment);
  }
}

// ---- Names.

// All digits at a name's end may be its number in a row, %r<N>.
Decoder::Declared Decoder::declared(std::string_view name) {
  const auto numbered = ptx::numbered_name(name);
  for (int at = scope_; at >= 0; at = scopes_[static_cast<std::size_t>(at)].parent) {
    Scope& scope = scopes_[static_cast<std::size_t>(at)];
    if (const auto found = scope.registers.find(name);
        found != scope.registers.end() && !found->second.declaration.numbered)
      return {&found->second};
    if (const auto found = scope.variables.find(name)) return {.variable = found};
    if (!numbered) continue;
    if (const auto found = scope.registers.find(numbered->row);
        found != scope.registers.end() && found->second.declaration.numbered &&
        numbered->number < found->second.declaration.count)
      return {&found->second, numbered->number};
  }
  return {};
}

std::optional<Symbol> Decoder::symbol(std::string_view name) {
  if (const Declared found = declared(name); found.variable) return found.variable;
  else if (found.range) return std::nullopt;
  if (const auto found = shared_.find(name)) return found;
  if (const auto found = globals_.named.find(name)) return found;
  // A shared variable of the module takes room only in kernels that use it.
  if (const auto found = module_shared_.find(name); found.value) {
    shared_.add(**found.value, place_shared(**found.value));
    return shared_.find(name);
  }
  return std::nullopt;
}

}  // namespace tartan::TARTAN_ABI::emulator
