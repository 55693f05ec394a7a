// SPDX-License-Identifier: Apache-2.0
// Adds to kernels what writes timestamps. Every thread has records of its own, so that no thread
// waits for another: of those that execute an instruction together, the one with the lowest lane
// writes. The code branches nowhere and touches no register of the kernel.
#include "tartan/ptx/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "compiler/ptx/trace_sites.h"
#include "tartan/ptx/parser.h"

namespace tartan::TARTAN_ABI::ptx {
namespace {

using isa::Timed;

// At a kernel's start. Parameters: the base of shared memory, or 0.
constexpr std::string_view prologue = R"(
	// Timestamps (tartan_trace): where this thread's next record is, and its last one.
	.reg .b64 %tartan_next, %tartan_last;
	.reg .b32 %tartan_poll;  // the poll that has not succeeded yet
	{{
	.reg .b64 %tartan_d<4>;
	.reg .b32 %tartan_r<10>;
	.reg .pred %tartan_p;
	ld.global.b64 %tartan_d0, [tartan_trace];
	ld.global.v2.b32 {{%tartan_r0, %tartan_r1}}, [tartan_trace+8];
	mov.u32 %tartan_r2, %ctaid.x;
	mov.u32 %tartan_r3, %ctaid.y;
	mov.u32 %tartan_r4, %ctaid.z;
	mov.u32 %tartan_r5, %nctaid.x;
	mov.u32 %tartan_r6, %nctaid.y;
	mad.lo.u32 %tartan_r3, %tartan_r4, %tartan_r6, %tartan_r3;
	mad.lo.u32 %tartan_r2, %tartan_r3, %tartan_r5, %tartan_r2;
	setp.lt.u32 %tartan_p, %tartan_r2, %tartan_r0;
	setp.ne.and.b64 %tartan_p, %tartan_d0, 0, %tartan_p;
	mov.u32 %tartan_r3, %tid.x;
	mov.u32 %tartan_r4, %tid.y;
	mov.u32 %tartan_r5, %tid.z;
	mov.u32 %tartan_r6, %ntid.x;
	mov.u32 %tartan_r7, %ntid.y;
	mov.u32 %tartan_r8, %ntid.z;
	mad.lo.u32 %tartan_r4, %tartan_r5, %tartan_r7, %tartan_r4;
	mad.lo.u32 %tartan_r3, %tartan_r4, %tartan_r6, %tartan_r3;
	mul.lo.u32 %tartan_r6, %tartan_r6, %tartan_r7;
	mul.lo.u32 %tartan_r6, %tartan_r6, %tartan_r8;
	mad.lo.u32 %tartan_r2, %tartan_r2, %tartan_r6, %tartan_r3;
	shl.b32 %tartan_r1, %tartan_r1, 4;
	mul.wide.u32 %tartan_d1, %tartan_r2, %tartan_r1;
	add.s64 %tartan_d0, %tartan_d0, %tartan_d1;
	cvt.u64.u32 %tartan_d2, %tartan_r1;
	add.s64 %tartan_d2, %tartan_d0, %tartan_d2;
	add.s64 %tartan_d2, %tartan_d2, -16;
	mov.u64 %tartan_d3, %globaltimer;
	mov.b64 {{%tartan_r4, %tartan_r5}}, %tartan_d3;
	mov.u32 %tartan_r6, {};
	mov.u32 %tartan_r3, %clock;
	@%tartan_p st.global.v4.b32 [%tartan_d0], {{%tartan_r3, %tartan_r4, %tartan_r5, %tartan_r6}};
	add.s64 %tartan_d0, %tartan_d0, 16;
	selp.b64 %tartan_next, %tartan_d0, 0, %tartan_p;
	selp.b64 %tartan_last, %tartan_d2, 0, %tartan_p;
	mov.b32 %tartan_poll, 0;
	}}
)";

// Where a thread ends. Parameters: the guard of what ends it, the word of exits.
constexpr std::string_view epilogue = R"({{
	.reg .b64 %tartan_d<2>;
	.reg .b32 %tartan_r<4>;
	.reg .pred %tartan_p;
	setp.ne.b64 %tartan_p, %tartan_last, 0;
{}	sub.s64 %tartan_d0, %tartan_next, %tartan_last;
	max.s64 %tartan_d0, %tartan_d0, 0;
	shr.u64 %tartan_d0, %tartan_d0, 4;
	cvt.u32.u64 %tartan_r0, %tartan_d0;
	min.u64 %tartan_d1, %tartan_next, %tartan_last;
	mov.u32 %tartan_r1, %globaltimer_lo;
	mov.b32 %tartan_r2, {};
	mov.u32 %tartan_r3, %clock;
	@%tartan_p st.global.v4.b32 [%tartan_d1], {{%tartan_r3, %tartan_r2, %tartan_r1, %tartan_r0}};
	}}
)";

// A record, of the lane that writes. Beyond the last place records are only counted.
std::string record(const std::string& lanes, const std::string& word, const std::string& barrier,
                   const std::string& only_if) {
  return fmt::format(R"({{
	.reg .b64 %tartan_d;
	.reg .b32 %tartan_r<5>;
	.reg .pred %tartan_p<2>;
	activemask.b32 %tartan_r0;
{}	mov.u32 %tartan_r1, %lanemask_lt;
	and.b32 %tartan_r1, %tartan_r1, %tartan_r0;
	setp.eq.u32 %tartan_p0, %tartan_r1, 0;
{}	setp.ne.and.b64 %tartan_p0, %tartan_last, 0, %tartan_p0;
	setp.lt.and.u64 %tartan_p1, %tartan_next, %tartan_last, %tartan_p0;
{}{}	mov.u32 %tartan_r4, %clock;
	@%tartan_p1 st.global.v4.b32 [%tartan_next], {{%tartan_r4, %tartan_r2, %tartan_r0, %tartan_r3}};
	@%tartan_p0 add.s64 %tartan_next, %tartan_next, 16;
	}}
)",
                     lanes, only_if, word, barrier);
}

// The predicate of a guard, as an operand: %p1, or its negation through a register.
std::string and_guard(const Instruction& instruction, const char* into) {
  if (instruction.guard.empty()) return {};
  if (!instruction.guard_negated)
    return fmt::format("\tand.pred {0}, {0}, {1};\n", into, instruction.guard);
  return fmt::format("\tnot.pred %tartan_p1, {1};\n\tand.pred {0}, {0}, %tartan_p1;\n", into,
                     instruction.guard);
}

class Tracer {
 public:
  explicit Tracer(const Module& module) : module_(module), text_(module.source->text()) {}

  Traced operator()() {
    add(first_item(), "\n.visible .global .align 8 .b64 tartan_trace[2];\n\n");
    const auto sites = trace_sites(module_);
    for (std::size_t i = 0; i < sites.size(); ++i) add_site(sites[i], static_cast<unsigned>(i));
    for (const Item& item : module_.items) {
      if (item.kind != ItemKind::Function) continue;
      const Function& function = module_.functions[item.index];
      if (function.entry && function.body) add_ends(function);
    }
    return joined();
  }

 private:
  struct Insertion {
    std::size_t offset;
    std::string text;
  };

  void add(std::size_t offset, std::string text) { added_.push_back({offset, std::move(text)}); }

  // Behind .address_size, or what else precedes the first function or variable.
  std::size_t first_item() const {
    const auto after = [&](std::size_t offset) {
      const std::size_t end = text_.find('\n', offset);
      return end == std::string_view::npos ? text_.size() : end + 1;
    };
    const std::size_t size = text_.find(".address_size", module_.target_offset);
    return after(size == std::string_view::npos ? module_.target_offset : size);
  }

  // Before the guard, where there is one.
  std::size_t begin_of(const Instruction& instruction) const {
    return instruction.guard.empty() ? instruction.offset
                                     : text_.rfind('@', module_.offset_of(instruction.guard));
  }

  // The lanes of a guarded instruction are those that it lets through.
  std::string lanes_of(const Instruction& instruction) const {
    if (instruction.guard.empty()) return {};
    return fmt::format("\tvote.sync.ballot.b32 %tartan_r0, {}{}, %tartan_r0;\n",
                       instruction.guard_negated ? "!" : "", instruction.guard);
  }

  Type type_of(std::string_view name) const {
    const auto numbered = numbered_name(name);
    for (const Registers& each : module_.registers)
      if (each.name == name || (each.numbered && numbered && each.name == numbered->row))
        return each.type;
    return Type::none;  // a variable, a number
  }

  // Moves the barrier's number, or the address of the mbarrier, to a register.
  std::string barrier_code(const Instruction& instruction) const {
    const Operand* const barrier = barrier_of(module_, instruction);
    if (!barrier) return "\tmov.b32 %tartan_r3, 0;\n";
    if (barrier->kind != OperandKind::Address)
      return fmt::format("\tmov.b32 %tartan_r3, {};\n", barrier->text);
    const Operand& base = module_.children(*barrier)[0];
    const auto offset = static_cast<std::int64_t>(barrier->value);
    std::string code;
    const bool wide = bits(type_of(base.text)) == 64;
    if (wide) {
      const bool generic = isa::state_spaces(module_.spelling(instruction)).size == 0;
      code = fmt::format("\t{} %tartan_d, {};\n\tcvt.u32.u64 %tartan_r3, %tartan_d;\n",
                         generic ? "cvta.to.shared.u64" : "mov.b64", base.text);
    } else {
      code = fmt::format("\tmov.b32 %tartan_r3, {};\n", base.text);
    }
    if (offset) code += fmt::format("\tadd.s32 %tartan_r3, %tartan_r3, {};\n", offset);
    return code;
  }

  static std::string word_code(std::uint32_t word) {
    return fmt::format("\tmov.b32 %tartan_r2, {};\n", static_cast<std::int32_t>(word));
  }

  // The parity that an mbarrier's wait names, as a flag.
  std::string parity_code(const Instruction& instruction) const {
    if (module_.spelling(instruction).text.find(".parity") == std::string_view::npos) return {};
    const auto operands = module_.operands_of(instruction);
    if (operands.size() < 3) return {};
    const Operand& parity = operands[2];
    if (parity.kind == OperandKind::Integer)
      return parity.value & 1
                 ? fmt::format("\tor.b32 %tartan_r2, %tartan_r2, {};\n", trace_record::odd)
                 : std::string();
    return fmt::format(
        "\tand.b32 %tartan_r4, {}, 1;\n\tshl.b32 %tartan_r4, %tartan_r4, 30;\n"
        "\tor.b32 %tartan_r2, %tartan_r2, %tartan_r4;\n",
        parity.text);
  }

  void add_site(const TraceSite& site, std::uint32_t number) {
    const Instruction& instruction = *site.instruction;
    if (site.kind == Timed::WaitsAtMbarrier) return add_poll(site, number);
    const std::string lanes = lanes_of(instruction), barrier = barrier_code(instruction);
    const std::string guarded = and_guard(instruction, "%tartan_p0");
    if (site.first)
      add(begin_of(instruction), record(lanes, word_code(number), barrier, guarded) + "\t");
    if (site.last && has_end(module_, site))
      add(instruction.end,
          "\n\t" + record(lanes, word_code(number | trace_record::end), barrier, guarded));
  }

  // A loop of polls is one wait: it begins at the first one, and ends at the one that succeeds.
  void add_poll(const TraceSite& site, std::uint32_t number) {
    const Instruction& instruction = *site.instruction;
    const Operand& result = module_.operands_of(instruction)[0];
    const std::string parity = parity_code(instruction), barrier = barrier_code(instruction);
    const std::string guard = and_guard(instruction, "%tartan_p0");
    const std::string fresh =
        fmt::format("\tsetp.ne.and.u32 %tartan_p0, %tartan_poll, {}, %tartan_p0;\n", number + 1);
    add(begin_of(instruction),
        record(lanes_of(instruction), word_code(number) + parity, barrier, guard + fresh) +
            fmt::format("\tmov.b32 %tartan_poll, {};\n\t", number + 1));
    const std::string done = fmt::format("\tand.pred %tartan_p0, %tartan_p0, {};\n", result.text);
    add(instruction.end,
        "\n\t" +
            record(lanes_of(instruction), word_code(number | trace_record::end) + parity, barrier,
                   guard + done) +
            fmt::format("\t@{} mov.b32 %tartan_poll, 0;", result.text));
  }

  // The opening brace of its body.
  std::size_t body_of(const Function& function) const {
    for (std::size_t i = function.offset; i < text_.size(); ++i) {
      if (text_.substr(i, 2) == "//") i = text_.find('\n', i);
      else if (text_.substr(i, 2) == "/*") i = text_.find("*/", i) + 1;
      else if (text_[i] == '{') return i;
    }
    return text_.size();
  }

  // The first variable of the module in shared memory: mbarriers are named by their distance.
  std::string_view shared_base() const {
    for (const Item& item : module_.items) {
      if (item.kind != ItemKind::Variable) continue;
      const Variable& variable = module_.variables[item.index];
      if (variable.space == StateSpace::shared) return variable.name;
    }
    return "0";
  }

  void add_ends(const Function& function) {
    add(body_of(function) + 1, fmt::format(prologue, shared_base()));
    for (const Statement& each : function.statements) {
      if (each.kind != StatementKind::Instruction) continue;
      const Instruction& instruction = module_.instructions[each.index];
      const isa::Control control = module_.spelling(instruction).row().control;
      if (control != isa::Control::Returns && control != isa::Control::Exits) continue;
      std::string guard = and_guard(instruction, "%tartan_p");
      if (instruction.guard_negated)
        guard = fmt::format("\t@{} setp.ne.b64 %tartan_p, 0, 0;\n", instruction.guard);
      add(begin_of(instruction), fmt::format(epilogue, guard, trace_record::exited) + "\t");
    }
  }

  Traced joined() {
    std::ranges::stable_sort(added_, {}, &Insertion::offset);
    Traced out;
    out.lines = {0, 0};  // no line 0; line 1
    int line = 1;
    std::size_t at = 0;
    const auto copy = [&](std::size_t until) {
      for (; at < until; ++at) {
        out.text += text_[at];
        if (text_[at] == '\n') ++line, out.lines.push_back(0);
        else if (text_[at] != ' ' && text_[at] != '\t') out.lines.back() = line;
      }
    };
    for (const Insertion& each : added_) {
      copy(each.offset);
      out.text += each.text;
      out.lines.insert(out.lines.end(),
                       static_cast<std::size_t>(std::ranges::count(each.text, '\n')), 0);
    }
    copy(text_.size());
    return out;
  }

  const Module& module_;
  const std::string_view text_;
  std::vector<Insertion> added_;
};

}  // namespace

bool is_traced(const Module& module) { return module.has_global_variable(trace_variable); }

Result<Traced> traced(const std::string& ptx, const std::string& name) {
  Diags diags;
  const Module module = parse(std::make_shared<Source>(name, ptx), diags);
  if (!diags.ok()) return diags;
  if (is_traced(module))
    return {"usage"_rule,
            fmt::format("{} has timestamps already: it declares {}", name, trace_variable)};
  return Tracer(module)();
}

}  // namespace tartan::TARTAN_ABI::ptx
