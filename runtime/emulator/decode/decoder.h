// SPDX-License-Identifier: Apache-2.0
// runtime/emulator/decode/decoder.h - from the PTX tree of a kernel to its Program.
//
// The Decoder knows names, scopes, registers, variables and labels. What an instruction means is in
// the tables of instructions.h: a row's decode function looks at the spelling, asks for operands as
// slots, and emits ops.
//
//   void decode_add(Decoder& d) {
//     const Type type = d.spelling.type();
//     Op& op = d.emit(select_integer<Add>(type));     // a null handler: reported as unsupported
//     op.d = d.destination(0, type);
//     ...
//   }
//
// A qualifier that no decode function asked for is reported too: nothing is ignored by accident.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ptx/call_graph.h"
#include "runtime/emulator/decode/symbols.h"
#include "runtime/emulator/machine/program.h"
#include "tartan/isa/instruction.h"
#include "tartan/isa/spelling.h"
#include "tartan/ptx/tree.h"

namespace tartan::TARTAN_ABI::emulator {

using isa::Opcode;
using isa::operator""_q;

/// The current instruction's words and types. Whoever asks for one uses it up.
class Spelling {
 public:
  void read(const isa::Spelling& spelling) { *this = Spelling(spelling); }
  const isa::Spelling& as_read() const { return *read_; }
  std::string_view text() const { return read_->text; }
  Opcode opcode() const { return read_->opcode; }
  /// Whether one of the words is there.
  bool has(const isa::QualifierSet& words) { return !(take(words)).empty(); }
  /// The first of the words that is there; empty if none is.
  std::string_view any(const isa::QualifierSet& words);
  void ignore(const isa::QualifierSet& words) { take(words); }
  void ignore_all() { ignored_ = true; }
  /// The state space that a word names, or none.
  StateSpace space() {
    const auto found = isa::state_spaces(*read_);
    if (found.size) take(isa::qualifier_of(found[0]));
    return found.size ? found[0] : StateSpace::none;
  }
  /// Elements of .v2, .v4, .v8; 1 without.
  int vector_length() { return ignore("v2 v4 v8"), isa::written_elements(*read_); }
  /// The `index`-th type as written, or none.
  Type type(std::size_t index = 0) {
    used_types_ = std::max(used_types_, index + 1);
    return read_->type(index);
  }
  std::size_t types() const { return read_->types.size; }
  /// What was not asked for, or is no word of PTX; empty if there is nothing.
  std::string_view unused() const;

  Spelling() = default;

 private:
  explicit Spelling(const isa::Spelling& spelling) : read_(&spelling) {}
  isa::QualifierSet take(const isa::QualifierSet& words) {
    used_ = used_ | words;
    return read_->words & words;
  }

  const isa::Spelling* read_ = nullptr;
  isa::QualifierSet used_;
  std::size_t used_types_ = 0;
  bool ignored_ = false;
};

/// The .global and .const variables of a module: where load() put them.
struct Globals {
  Symbols named;                                     // those outside of functions
  std::unordered_map<std::uint32_t, Symbol> nested;  // the others, by index into Module::variables
};

/// A register operand.
struct RegisterRef {
  std::uint32_t slot = 0;
  Type type = Type::none;
};

/// What the name of a function stands for; `function` is one of `module`.
std::uint64_t address_of(const ptx::Module& module, const ptx::Function& function);

class Decoder {
 public:
  Decoder(const ptx::Module& module, const Globals& globals, Hardware hardware, Diags& diags);

  /// Prepares what is decoded from now on for launches under a schedule.
  void set_scheduled() { scheduled_ = true; }
  bool is_scheduled() const { return scheduled_; }
  /// Prepares what is decoded from now on for launches with that observer.
  template <typename T>
  void attach(std::unique_ptr<T> observation) {
    program_.observations[T::seat] = std::move(observation);
    observed_ = true;
  }
  bool is_observed() const { return observed_; }
  /// Fills Program::registers for what is decoded from now on.
  void set_recorded() { recorded_ = true; }
  /// Stops then, with a diagnostic.
  void set_deadline(std::optional<std::chrono::steady_clock::time_point> deadline) {
    deadline_ = deadline;
  }
  /// Decodes `kernel` and everything that it calls.
  Program decode(const ptx::Function& kernel);
  /// Decodes each function of the module by itself, to hear what is wrong with it.
  void survey();

  // For decode functions: the current instruction.
  Spelling spelling;
  std::size_t operand_count() const { return operands_.size(); }
  const ptx::Operand& operand(std::size_t i) const { return operands_[i]; }
  std::span<const ptx::Operand> children(const ptx::Operand& operand) const {
    if (operand.first < module_.operands.size() || operand.count == 0)
      return module_.children(operand);
    return {elements_.data() + (operand.first - module_.operands.size()), operand.count};
  }
  Hardware hardware() const { return hardware_; }
  /// "sm_103a"; empty where the module names none.
  std::string_view target() const {
    return module_.targets.empty() ? std::string_view() : module_.targets.front();
  }
  bool in_kernel() const { return function_->entry; }

  /// Appends an op, guarded as the instruction is. The reference is good until the next emit.
  Op& emit(Handler handler);
  void unsupported(std::string_view why = {});
  void error(const Rule& rule, std::string message);
  bool failed() const { return failed_; }
  /// The current instruction's numbers are as good as that: for NumericTrust. `source` is static.
  void rest_on(Trust trust, std::string_view source);
  /// Reports unless the operand count is within [low, high].
  bool expect_operands(std::size_t low, std::size_t high);

  /// The slot of a source operand, read as `type`: a register of its width, or a constant.
  std::uint32_t source(const ptx::Operand& operand, Type type);
  std::uint32_t source(std::size_t i, Type type) { return source(operand(i), type); }
  std::uint32_t destination(const ptx::Operand& operand, Type type);
  std::uint32_t destination(std::size_t i, Type type) { return destination(operand(i), type); }
  /// The slots of a fragment's registers: a vector, or one register where braces may be left out.
  std::vector<std::uint32_t> fragment(const ptx::Operand& operand, const isa::OperandSpec& spec,
                                      bool is_destination);
  /// A predicate source: p or !p.
  std::uint32_t predicate_source(const ptx::Operand& operand);
  /// The register that an operand names, whatever its type; nothing for other operands. `_` is a
  /// register that nobody reads.
  std::optional<RegisterRef> register_of(const ptx::Operand& operand);
  /// A source whose register may be wider than `type` (ld, st, cvt): its slot and the register's
  /// bits.
  RegisterRef flexible(const ptx::Operand& operand, Type type);
  /// Reads an address operand [base + offset] into op.a, op.value, op.wide; `window` says what a
  /// variable's name means there.
  void address(Op& op, const ptx::Operand& operand, Window window);
  /// The bits of what an op with a member mask (op.e) takes and gives; 0: no slot.
  struct MemberOperands {
    std::uint64_t a = 0, b = 0, c = 0, d = 0, list = 0;
  };
  /// Says so to Warp::gather_anywhere(), in op.value.
  void gather_anywhere(Op& op, const MemberOperands& bits);
  /// The op that was emitted last.
  Op& last() { return program_.ops.back(); }

  std::uint32_t constant(std::uint64_t bits, int width);
  std::uint32_t scratch(int width);
  std::uint32_t append(std::span<const std::uint32_t> slots);
  std::uint32_t special(isa::SpecialRegister which, int width);
  /// The predicate that holds the condition code's carry.
  std::uint32_t carry() {
    if (!carry_) carry_ = scratch(1);
    record_carry(carry_);
    return carry_;
  }
  Program& program() { return program_; }
  /// The integer value of a constant operand.
  std::optional<std::int64_t> integer(const ptx::Operand& operand) const;
  /// The same of a matrix instruction's operand, in the range of its row; 0 after an error.
  int immediate(const ptx::Operand& operand, const isa::OperandSpec& spec);
  /// The variable of that name, as seen from here.
  std::optional<Symbol> symbol(std::string_view name);
  /// The module's variables of an opaque type: ".texref", ".samplerref" or ".surfref".
  std::vector<Symbol> opaque_variables(std::string_view type) const;
  /// Makes the op jump to the label: its `value` is set when the function is complete.
  void jump(Op& op, std::string_view label);
  /// The same for entry `index` of a branch table in Program::slots.
  void jump_table(std::uint32_t index, std::string_view label);
  /// The names that `.branchtargets` or `.calltargets` lists under that label.
  std::span<const ptx::Operand> targets(std::string_view label) const;

  struct Function {
    const ptx::Function* tree = nullptr;
    std::uint32_t entry = 0;
    std::uint32_t return_slot = 0;
    std::vector<Symbol> params, results;  // local memory
    std::vector<std::uint32_t> param_slots,
        result_slots;             // .reg parameters; 0 where it is a .param
    std::uint32_t frame = 0;      // index into Program::frames
    std::uint32_t component = 0;  // functions that may call each other have the same
    bool framed = false;          // parameters, results and variables are on the stack
  };
  /// The decoded function of that name, or null (undefined, or external).
  const Function* function(std::string_view name) const;
  const Function& current() const { return functions_.at(function_->name); }
  /// The functions that an indirect call with that label of .calltargets or .callprototype may
  /// mean.
  std::vector<const Function*> call_targets(std::string_view label);
  std::uint64_t address_of(const Function& function) const {
    return emulator::address_of(module_, *function.tree);
  }
  /// Whether a call of `callee` from the current function may lead back into the latter.
  bool may_return_into_itself(const Function& callee) const;
  /// The current function's frame.
  Frame& frame() { return program_.frames[current().frame]; }
  /// The register that says up to where the lanes' stacks are taken.
  std::uint32_t stack_slot();
  struct Room;  // of a state space
  /// False, with a diagnostic, where the module's indirect calls may mean too many functions to
  /// try each of them at each call: `count` more.
  bool may_mean(std::size_t count);
  /// Makes the op go to `callee`, which may not be decoded yet.
  void go_to_entry(Op& op, const Function& callee);

  /// The guard of the ops that are emitted.
  struct Guard {
    std::uint32_t slot = always_slot, flip = 0;
  };
  Guard guard() const { return {guard_, guard_flip_}; }
  void set_guard(Guard guard) { guard_ = guard.slot, guard_flip_ = guard.flip; }

 private:
  // Registers of one declaration.
  struct Range {
    ptx::Registers declaration;
    std::vector<std::uint32_t> slots;  // of each its elements; 0: not used yet
  };
  struct Scope {
    int parent = -1;
    std::unordered_map<std::string_view, Range> registers;
    Symbols variables;
    std::unordered_map<std::string_view, std::uint32_t> labels;
    std::unordered_map<std::string_view, const ptx::Directive*> targets;
  };
  struct Fixup {
    std::size_t index;
    bool table;
    int scope;
    std::string_view label;
    std::uint32_t offset;
  };

  /// A function that the kernel calls, or the kernel.
  struct CallNode {
    const ptx::Function* function = nullptr;
    std::uint32_t component = 0;  // functions that may call each other have the same
    bool recursive = false;       // it may be called from within itself
  };
  /// All that `kernel` may call, callees first, and itself at the end.
  std::vector<CallNode> order_calls(const ptx::Function& kernel);
  std::vector<const ptx::Function*> callees_of(const ptx::Function& function);
  const std::vector<const ptx::Function*>& address_taken();
  /// Forgets what the survey of one function has made; the arena keeps `bytes`.
  void forget_function(std::size_t bytes);
  /// Places what callers of a function need to know.
  void announce(const CallNode& node);
  bool takes_stack(const ptx::Function& function) const;
  void decode_function(const ptx::Function& function);
  void bind_params(const ptx::Function& function);
  void declare(const ptx::Variable& variable, std::uint32_t index);
  /// Local memory for a variable of the current function, or of `owner`.
  Symbol place_local(const ptx::Variable& variable, const Function& owner);
  void finish_stack();
  /// Takes `bytes` bytes behind the `used` ones and gives their place; reports at `offset` of the
  /// text where the room has no more.
  std::uint32_t make_room(std::uint32_t& used, std::uint64_t bytes, std::uint64_t alignment,
                          std::uint32_t offset, const Room& room);
  std::uint32_t make_room(std::uint32_t& used, const ptx::Variable& variable, const Room& room);
  void decode_statements(const ptx::Function& function);
  void decode_instruction(const ptx::Instruction& instruction);
  void note_plain();
  /// Whether the deadline has passed.
  bool is_late();
  void resolve_labels();
  void read_directives(const ptx::Function& kernel);
  void finish_shared();
  /// The current instruction uses that slot (op_registers.h).
  void record(const ptx::Operand& operand, std::uint32_t slot, Type type, bool constant = false);
  void record_carry(std::uint32_t slot);
  /// Its ops are those from `first_op` on.
  void finish_recording(std::size_t first_op);
  std::uint32_t allocate(int width);
  std::uint32_t new_register(Type type);
  std::uint32_t register_slot(Range& range, std::uint32_t index);
  /// What a name means in a function: a register or a variable of the innermost scope that has it.
  struct Declared {
    Range* range = nullptr;
    std::uint32_t index = 0;  // of the register in its range
    std::optional<Symbol> variable = {};
  };
  Declared declared(std::string_view name);
  std::optional<RegisterRef> register_at(const Declared& declared, std::size_t element);
  std::optional<RegisterRef> find_register(std::string_view name);
  /// Whole vector registers among the operands become the vectors of their elements.
  void expand_vectors();
  std::uint32_t special_source(std::string_view name, Type type, bool& found);
  std::uint32_t find_source(const ptx::Operand& operand, Type type);
  /// An instruction has the address of the variable of that name among its sources.
  void take_address(std::string_view name, const Symbol& symbol);
  void undeclared(std::string_view name);
  Symbol place_shared(const ptx::Variable& variable);
  std::uint32_t symbol_slot(const Symbol& symbol, int width, std::uint64_t offset = 0);
  Scope& scope() { return scopes_[static_cast<std::size_t>(scope_)]; }

  const ptx::Module& module_;
  const ptx::FunctionNames names_;
  const Globals& globals_;
  Hardware hardware_;
  Diags& diags_;
  Program program_;
  const ptx::Function* function_ = nullptr;
  std::unordered_map<std::string_view, Function> functions_;
  std::optional<std::vector<const ptx::Function*>> address_taken_;
  std::vector<std::pair<std::size_t, std::string_view>> entries_;  // ops that go to functions
  std::span<const ptx::Operand> operands_;
  const ptx::Instruction* instruction_ = nullptr;
  Origin origin_;
  std::uint32_t guard_ = always_slot, guard_flip_ = 0;
  bool failed_ = false, recorded_ = false, scheduled_ = false, observed_ = false, late_ = false;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::uint64_t looked_ = 0;      // how often is_late() was asked
  std::size_t meant_ = 0;         // functions, by indirect calls
  std::ptrdiff_t first_use_ = 0;  // of the current instruction, in Program::registers

  std::vector<Scope> scopes_;
  int scope_ = -1;
  // Of the current instruction, where vector registers are among its operands.
  bool has_vectors_ = false;  // the function declares some
  std::vector<ptx::Operand> expanded_, elements_;
  std::deque<std::string> element_names_;
  std::vector<Fixup> fixups_;
  std::map<std::pair<std::uint64_t, int>, std::uint32_t> constants_;
  std::map<std::pair<isa::SpecialRegister, int>, std::uint32_t> specials_;
  // Shared variables of the module, and those that the kernel uses.
  VariableNames<const ptx::Variable*> module_shared_;
  Symbols shared_;
  // Slots of addresses of shared memory, by offset and width.
  std::map<std::pair<std::uint64_t, int>, std::uint32_t> static_addresses_, dynamic_addresses_;
  // Of variables on the stack: of the current function.
  std::map<std::pair<std::uint64_t, int>, std::uint32_t> frame_addresses_;
  std::set<std::pair<Window, std::string_view>> taken_;
  std::uint32_t dynamic_alignment_ = 16;
  std::uint32_t carry_ = 0;
  std::uint32_t predicates_ = 0, predicates_left_ = 0;
};

}  // namespace tartan::TARTAN_ABI::emulator
