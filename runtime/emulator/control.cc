// SPDX-License-Identifier: Apache-2.0
// Control flow (PTX ISA 9.7.12): branches, calls, returns, traps; printf and assertions of the
// device runtime.
#include <fmt/format.h>

#include <bit>
#include <cstdio>
#include <cstring>

#include "runtime/emulator/block.h"
#include "runtime/emulator/instructions.h"
#include "runtime/emulator/lanes.h"
#include "runtime/emulator/print.h"

namespace tartan::emulator {
namespace {

void branch(Warp& warp, const Op& op) { warp.branch(static_cast<std::uint32_t>(op.value)); }
void exit(Warp& warp, const Op&) { warp.exit(); }
void no_operation(Warp&, const Op&) {}
void yield(Warp& warp, const Op&) { warp.yield(); }

// Lanes go on at targets of their own: those of the first lane's target do now, the others run the
// op again.
void branch_by_lane(Warp& warp, const std::uint32_t* targets) {
  const std::uint32_t target = targets[std::countr_zero(warp.mask)];
  warp.defer_all_but(lanes_where(warp.mask, [&](int i) { return targets[i] == target; }));
  warp.branch(target);
}

void branch_indexed(Warp& warp, const Op& op) {
  const auto* index = lanes<std::uint32_t>(warp, op.a);
  std::uint32_t targets[32] = {};
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (index[lane] >= op.value) {
      warp.fail(
          "trap"_rule,
          fmt::format("brx.idx with index {} into a table of {} targets", index[lane], op.value),
          lane);
      return;
    }
    targets[lane] = warp.program->slots[op.list + index[lane]];
  }
  branch_by_lane(warp, targets);
}

// The lanes' return addresses go to the callee's slot op.d.
void call(Warp& warp, const Op& op) {
  auto* back = lanes<std::uint32_t>(warp, op.d);
  const std::uint32_t here = warp.pc;
  each_lane(warp.mask, [=](int i) { back[i] = here; });
  warp.branch(static_cast<std::uint32_t>(op.value));
}

void return_to_caller(Warp& warp, const Op& op) {
  branch_by_lane(warp, lanes<std::uint32_t>(warp, op.a));
}

void trap(Warp& warp, const Op& op) {
  warp.fail("trap"_rule, op.flags ? "the kernel executed brkpt" : "the kernel executed trap",
            std::countr_zero(warp.mask));
}

// Bytes between registers or local memory: arguments and results of calls. op.window is the
// destination's, op.count bytes for registers.
void copy_local(Warp& warp, const Op& op) {
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    std::byte* local =
        warp.local + warp.local_step * static_cast<std::uint64_t>(std::countr_zero(m));
    std::memmove(local + op.d, local + op.a, op.value);
  }
}
template <typename R>
void register_to_local(Warp& warp, const Op& op) {
  const auto* a = lanes<R>(warp, op.a);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::memcpy(warp.local + warp.local_step * static_cast<std::uint64_t>(lane) + op.d, &a[lane],
                op.value);
  }
}
template <typename R>
void local_to_register(Warp& warp, const Op& op) {
  auto* d = lanes<R>(warp, op.d);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    R value = 0;
    std::memcpy(&value, warp.local + warp.local_step * static_cast<std::uint64_t>(lane) + op.a,
                op.value);
    d[lane] = value;
  }
}
template <typename R>
void register_to_register(Warp& warp, const Op& op) {
  auto* d = lanes<R>(warp, op.d);
  const auto* a = lanes<R>(warp, op.a);
  each_lane(warp.mask, [=](int i) { d[i] = a[i]; });
}

void decode_bra(Decoder& d) {
  d.spelling.has("uni");
  if (!d.expect_operands(1, 1)) return;
  d.jump(d.emit(branch), d.operand(0).text);
}

void decode_brx(Decoder& d) {
  if (!d.spelling.has("idx")) return d.unsupported();
  d.spelling.has("uni");
  if (!d.expect_operands(2, 2)) return;
  const auto targets = d.branch_targets(d.operand(1).text);
  if (targets.empty())
    return d.error("undeclared-label"_rule,
                   fmt::format("there are no .branchtargets {}", d.operand(1).text));
  const std::uint32_t index = d.source(0, Type::u32);
  const std::uint32_t list = d.append(std::vector<std::uint32_t>(targets.size()));
  for (std::uint32_t i = 0; i < targets.size(); ++i) d.jump_table(list + i, targets[i]);
  Op& op = d.emit(branch_indexed);
  op.a = index;
  op.list = list;
  op.value = targets.size();
}

void decode_exit(Decoder& d) { d.emit(exit); }

void decode_ret(Decoder& d) {
  d.spelling.has("uni");
  if (d.in_kernel()) return decode_exit(d);
  d.emit(return_to_caller).a = d.current().return_slot;
}

void decode_trap(Decoder& d) { d.emit(trap).flags = d.spelling.name() == "brkpt"; }

void decode_nanosleep(Decoder& d) {
  d.spelling.type();
  d.emit(yield);
}

void decode_nothing(Decoder& d) {
  d.spelling.ignore_all();
  d.emit(no_operation);
}

// An argument or a result on the caller's side: a register, or a .param variable.
struct Place {
  bool in_register = false;
  std::uint32_t at = 0;
};

Place place_of(Decoder& d, const ptx::Operand& operand, std::uint64_t bytes, bool is_result) {
  if (operand.kind == ptx::OperandKind::Name && !d.register_of(operand))
    if (const auto symbol = d.symbol(operand.text); symbol && symbol->window == Window::local)
      return {false, static_cast<std::uint32_t>(symbol->address)};
  const Type type = bytes == 8 ? Type::b64 : Type::b32;
  return {true, is_result ? d.destination(operand, type) : d.source(operand, type)};
}

void emit_copy(Decoder& d, Place to, Place from, std::uint64_t bytes) {
  const bool wide = bytes == 8;
  Handler handler = copy_local;
  if (to.in_register && from.in_register)
    handler = wide ? register_to_register<std::uint64_t> : register_to_register<std::uint32_t>;
  else if (to.in_register)
    handler = wide ? local_to_register<std::uint64_t> : local_to_register<std::uint32_t>;
  else if (from.in_register)
    handler = wide ? register_to_local<std::uint64_t> : register_to_local<std::uint32_t>;
  if ((to.in_register || from.in_register) && bytes > 8)
    return d.unsupported("a register argument of more than 64 bits");
  Op& op = d.emit(handler);
  op.d = to.at;
  op.a = from.at;
  op.value = bytes;
}

void allocate(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint64_t>(warp, op.d);
  const auto* sizes = lanes<std::uint64_t>(warp, op.a);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    d[lane] = warp.block->context().heap->allocate(sizes[lane]);
  }
}

void release(Warp& warp, const Op& op) {
  const auto* at = lanes<std::uint64_t>(warp, op.a);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (at[lane] != 0 && !warp.block->context().heap->free(at[lane]))
      return warp.fail("memory-fault"_rule,
                       fmt::format("free of 0x{:x}, which malloc did not give", at[lane]), lane,
                       at[lane]);
  }
}

// malloc(size) and free(address), of the module's heap.
void decode_heap_call(Decoder& d, bool gives, std::span<const ptx::Operand> arguments,
                      std::span<const ptx::Operand> results) {
  if (arguments.size() != 1 || results.size() != (gives ? 1u : 0u)) return d.unsupported();
  const std::uint32_t argument = d.scratch(64), result = d.scratch(64);
  emit_copy(d, {true, argument}, place_of(d, arguments[0], 8, false), 8);
  Op& op = d.emit(gives ? allocate : release);
  op.d = result;
  op.a = argument;
  d.program().uses_heap = true;
  if (gives) emit_copy(d, place_of(d, results[0], 8, true), {true, result}, 8);
}

// vprintf(format, arguments) and __assertfail(message, file, line, function, size): generic
// addresses in local .param variables.
void decode_runtime_call(Decoder& d, std::string_view name, std::span<const ptx::Operand> arguments,
                         std::span<const ptx::Operand> results) {
  if (name == "malloc" || name == "free")
    return decode_heap_call(d, name == "malloc", arguments, results);
  const bool print = name == "vprintf";
  if (!print && name != "__assertfail")
    return d.unsupported(fmt::format("{} is not defined in the module", name));
  if (arguments.size() != (print ? 2u : 5u)) return d.unsupported();
  std::uint32_t slots[5] = {};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool narrow = !print && i == 2;
    const Place place = place_of(d, arguments[i], narrow ? 4 : 8, false);
    slots[i] = d.scratch(narrow ? 32 : 64);
    emit_copy(d, {true, slots[i]}, place, narrow ? 4 : 8);
  }
  const std::uint32_t count = d.scratch(32), list = d.append(slots);
  Op& op = d.emit(print ? print_formatted : fail_assertion);
  op.d = count;
  op.list = list;
  for (const ptx::Operand& result : results)
    emit_copy(d, place_of(d, result, 4, true), {true, count}, 4);
}

void decode_call(Decoder& d) {
  d.spelling.has("uni");
  std::size_t at = 0;
  std::span<const ptx::Operand> results, arguments;
  if (at < d.operand_count() && d.operand(at).kind == ptx::OperandKind::List)
    results = d.children(d.operand(at++));
  if (at >= d.operand_count() || d.operand(at).kind != ptx::OperandKind::Name)
    return d.unsupported();
  const ptx::Operand& target = d.operand(at++);
  const std::string_view name = target.text;
  if (at < d.operand_count() && d.operand(at).kind == ptx::OperandKind::List)
    arguments = d.children(d.operand(at++));
  if (d.register_of(target)) return d.unsupported("indirect calls are not known");

  const Decoder::Function* callee = d.function(name);
  if (!callee) return decode_runtime_call(d, name, arguments, results);
  if (callee->open) return d.unsupported(fmt::format("recursive call of {}", name));
  if (arguments.size() != callee->params.size() || results.size() != callee->results.size())
    return d.error("operand-count"_rule,
                   fmt::format("{} takes {} arguments and gives {} results, the call has {} and {}",
                               name, callee->params.size(), callee->results.size(),
                               arguments.size(), results.size()));
  const auto formal = [](std::uint32_t slot, const Symbol& symbol) {
    return slot ? Place{true, slot} : Place{false, static_cast<std::uint32_t>(symbol.address)};
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::uint64_t bytes = callee->params[i].bytes;
    emit_copy(d, formal(callee->param_slots[i], callee->params[i]),
              place_of(d, arguments[i], bytes, false), bytes);
  }
  Op& op = d.emit(call);
  op.d = callee->return_slot;
  op.value = callee->entry;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::uint64_t bytes = callee->results[i].bytes;
    emit_copy(d, place_of(d, results[i], bytes, true),
              formal(callee->result_slots[i], callee->results[i]), bytes);
  }
}

constexpr InstructionRow rows[] = {
    {"bra", decode_bra},
    {"brx", decode_brx},
    {"exit", decode_exit},
    {"ret", decode_ret},
    {"trap", decode_trap},
    {"brkpt", decode_trap},
    {"nanosleep", decode_nanosleep},
    {"call", decode_call},
    {"pmevent", decode_nothing},
    {"setmaxnreg", decode_nothing},
    {"griddepcontrol", decode_nothing},
};

}  // namespace

std::span<const InstructionRow> control_instructions() { return rows; }

}  // namespace tartan::emulator
