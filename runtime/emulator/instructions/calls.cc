// SPDX-License-Identifier: Apache-2.0
// Calls (PTX ISA 9.0, 9.7.12.5): direct, indirect and recursive ones; printf, assertions, malloc
// and free of the device runtime.
//
// A function's registers and variables have fixed places, as a kernel's have. Only where a call may
// come back into its own function, they are on the executing lanes' stacks (stack.cc). An indirect
// call is a guarded direct one for each function that it may mean, so lanes that call different
// functions do so one after another.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/emulator/instructions/table.h"
#include "runtime/emulator/machine/cluster.h"
#include "runtime/emulator/machine/lanes.h"
#include "runtime/emulator/machine/print.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {

// The lanes' return addresses go to the callee's slot op.d.
void call(Warp& warp, const Op& op) {
  auto* back = lanes<std::uint32_t>(warp, op.d);
  const std::uint32_t here = warp.pc;
  each_lane(warp.mask, [=](int i) { back[i] = here; });
  warp.branch(static_cast<std::uint32_t>(op.value));
}

// Bytes between registers and local memory: arguments and results of calls. In local memory places
// count from what a register holds for the lane: op.e for the destination, op.b for the source.
std::byte* local_place(Warp& warp, int lane, std::uint32_t base, std::uint32_t at) {
  return warp.local + warp.local_step * static_cast<std::uint64_t>(lane) +
         lanes<std::uint32_t>(warp, base)[lane] + at;
}
// So many bytes of a lane's part of a register.
template <typename R>
ElementPlace first_bytes(std::uint32_t slot, std::uint64_t bytes) {
  return {.slot = slot, .width = static_cast<int>(8 * bytes), .register_bits = 8 * sizeof(R)};
}
void copy_local(Warp& warp, const Op& op) {
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::byte* const to = local_place(warp, lane, op.e, op.d);
    const std::byte* const from = local_place(warp, lane, op.b, op.a);
    tell(warp, &ValueEvents::move, to, from, op.value);
    std::memmove(to, from, op.value);
  }
}
template <typename R>
void register_to_local(Warp& warp, const Op& op) {
  const auto* a = lanes<R>(warp, op.a);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    std::byte* const to = local_place(warp, lane, op.e, op.d);
    tell(warp, &ValueEvents::store_element, lane, to, first_bytes<R>(op.a, op.value));
    std::memcpy(to, &a[lane], op.value);
  }
}
template <typename R>
void local_to_register(Warp& warp, const Op& op) {
  auto* d = lanes<R>(warp, op.d);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    R value = 0;
    const std::byte* const from = local_place(warp, lane, op.b, op.a);
    tell(warp, &ValueEvents::load_element, lane, from, first_bytes<R>(op.d, op.value));
    std::memcpy(&value, from, op.value);
    d[lane] = value;
  }
}
template <typename R>
void register_to_register(Warp& warp, const Op& op) {
  auto* d = lanes<R>(warp, op.d);
  const auto* a = lanes<R>(warp, op.a);
  tell(warp, &ValueEvents::copy_register, op.d, op.a, static_cast<int>(8 * sizeof(R)));
  each_lane(warp.mask, [=](int i) { d[i] = a[i]; });
}

void copy_predicate(Warp& warp, const Op& op) {
  tell(warp, &ValueEvents::copy_register, op.d, op.a, 1);
  set_predicate(warp, op.d, predicate(warp, op.a));
}

// ---- Targets of indirect calls.

// p = the instruction's guard and the lane's target is op.value. op.c, op.flags: the guard.
void match_target(Warp& warp, const Op& op) {
  const auto* targets = lanes<std::uint64_t>(warp, op.a);
  const std::uint32_t guard = predicate(warp, op.c) ^ (op.flags ? all_lanes : 0);
  set_predicate(warp, op.d,
                guard & lanes_where(warp.mask, [&](int i) { return targets[i] == op.value; }));
}

// op.list: op.value predicates of targets that there are.
void require_target(Warp& warp, const Op& op) {
  std::uint32_t known = 0;
  for (std::uint64_t i = 0; i < op.value; ++i)
    known |= predicate(warp, warp.program->slots[op.list + i]);
  if (const std::uint32_t lost = warp.mask & ~known) {
    const int lane = std::countr_zero(lost);
    const std::uint64_t target = lanes<std::uint64_t>(warp, op.a)[lane];
    warp.fail(
        "call-target"_rule,
        fmt::format("indirect call of 0x{:x}, which is not a function with that signature", target),
        lane, target);
  }
}

// An argument or a result: a register, or a place in local memory.
struct ValueLocation {
  bool in_register = false;
  std::uint32_t at = 0;    // slot, or bytes behind the base
  std::uint32_t base = 0;  // slot, 32 bits
  bool is_predicate = false;
};

ValueLocation location_of(Decoder& d, const Symbol& symbol) {
  return {false, static_cast<std::uint32_t>(symbol.address),
          symbol.framed ? d.frame().base : d.constant(0, 32)};
}

// On the caller's side.

ValueLocation location_of(Decoder& d, const ptx::Operand& operand, std::uint64_t bytes,
                          bool is_result) {
  if (operand.kind == ptx::OperandKind::Name && !d.register_of(operand))
    if (const auto symbol = d.symbol(operand.text); symbol && symbol->window == Window::local)
      return location_of(d, *symbol);
  const auto named = d.register_of(operand);
  const bool is_predicate = named && named->type == Type::pred;
  const Type type = is_predicate ? Type::pred : bytes == 8 ? Type::b64 : Type::b32;
  return {.in_register = true,
          .at = is_result ? d.destination(operand, type) : d.source(operand, type),
          .is_predicate = is_predicate};
}

void emit_predicate(Decoder& d, ValueLocation to, ValueLocation from) {
  if (!to.in_register || !from.in_register)
    return d.unsupported("a predicate that a recursive function takes or gives");
  Op& op = d.emit(copy_predicate);
  op.d = to.at;
  op.a = from.at;
}

void emit_copy(Decoder& d, ValueLocation to, ValueLocation from, std::uint64_t bytes) {
  if (to.is_predicate || from.is_predicate) return emit_predicate(d, to, from);
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
  op.e = to.base;
  op.a = from.at;
  op.b = from.base;
  op.value = bytes;
}

void allocate(Warp& warp, const Op& op) {
  auto* d = lanes<std::uint64_t>(warp, op.d);
  const auto* sizes = lanes<std::uint64_t>(warp, op.a);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    d[lane] = warp.block->context().heap->allocate(sizes[lane]);
    if (d[lane]) tell(warp, &Events::allocated, d[lane], sizes[lane]);
  }
}

void release(Warp& warp, const Op& op) {
  const auto* at = lanes<std::uint64_t>(warp, op.a);
  for (std::uint32_t m = warp.mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (at[lane] != 0 && !warp.block->context().heap->free(at[lane]))
      return warp.fail("memory-fault"_rule,
                       fmt::format("free of 0x{:x}, which malloc did not return", at[lane]), lane,
                       at[lane]);
  }
}

// malloc(size) and free(address), of the module's heap.
void decode_heap_call(Decoder& d, bool gives, std::span<const ptx::Operand> arguments,
                      std::span<const ptx::Operand> results) {
  if (arguments.size() != 1 || results.size() != (gives ? 1u : 0u)) return d.unsupported();
  const std::uint32_t argument = d.scratch(64), result = d.scratch(64);
  emit_copy(d, {true, argument}, location_of(d, arguments[0], 8, false), 8);
  Op& op = d.emit(gives ? allocate : release);
  op.d = result;
  op.a = argument;
  d.program().uses_heap = true;
  if (gives) emit_copy(d, location_of(d, results[0], 8, true), {true, result}, 8);
}

// vprintf(format, arguments) and __assertfail(message, file, line, function, size): generic
// addresses in local .param variables.
void decode_runtime_call(Decoder& d, std::string_view name, std::span<const ptx::Operand> arguments,
                         std::span<const ptx::Operand> results) {
  if (name == "malloc" || name == "free")
    return decode_heap_call(d, name == "malloc", arguments, results);
  const bool print = name == "vprintf";
  if (!print && name != "__assertfail")
    return d.unsupported(fmt::format("{} has no body in the module", name));
  if (arguments.size() != (print ? 2u : 5u)) return d.unsupported();
  std::uint32_t slots[5] = {};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool narrow = !print && i == 2;
    const ValueLocation place = location_of(d, arguments[i], narrow ? 4 : 8, false);
    slots[i] = d.scratch(narrow ? 32 : 64);
    emit_copy(d, {true, slots[i]}, place, narrow ? 4 : 8);
  }
  const std::uint32_t count = d.scratch(32), list = d.append(slots);
  Op& op = d.emit(print ? print_formatted : fail_assertion);
  op.d = count;
  op.list = list;
  for (const ptx::Operand& result : results)
    emit_copy(d, location_of(d, result, 4, true), {true, count}, 4);
}

// What a call passes, and where to.
struct Call {
  std::span<const ptx::Operand> results, arguments;
};

bool fits(Decoder& d, const ptx::Operand& operand, std::uint64_t bytes) {
  if (const auto ref = d.register_of(operand))
    return (ref->type != Type::pred) && (tartan::bits(ref->type) == 64) == (bytes == 8);
  if (const auto symbol = d.symbol(operand.text);
      operand.kind == ptx::OperandKind::Name && symbol && symbol->window == Window::local)
    return symbol->bytes == bytes;
  return bytes <= 8;
}

bool fits(Decoder& d, const Decoder::Function& callee, const Call& call) {
  const auto all = [&](std::span<const ptx::Operand> actual, const std::vector<Symbol>& formal) {
    if (actual.size() != formal.size()) return false;
    for (std::size_t i = 0; i < actual.size(); ++i)
      if (!fits(d, actual[i], formal[i].bytes)) return false;
    return true;
  };
  return all(call.arguments, callee.params) && all(call.results, callee.results);
}

// On the callee's side, for a caller: a frame starts where the stack is taken up to.
ValueLocation room_of(Decoder& d, const Symbol& symbol) {
  return {false, static_cast<std::uint32_t>(symbol.address),
          symbol.framed ? d.stack_slot() : d.constant(0, 32)};
}

// A callee that may come back into its caller may have its parameters in the very registers that
// the arguments are in: those change places on the stack.
void emit_arguments(Decoder& d, const Decoder::Function& callee, const Call& call, bool recursive) {
  const auto in_register = [&](std::size_t i) { return callee.param_slots[i] != 0; };
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const std::uint64_t bytes = callee.params[i].bytes;
    const ValueLocation to = in_register(i) && !recursive
                                 ? ValueLocation{true, callee.param_slots[i]}
                                 : room_of(d, callee.params[i]);
    emit_copy(d, to, location_of(d, call.arguments[i], bytes, false), bytes);
  }
  for (std::size_t i = 0; i < call.arguments.size() && recursive; ++i)
    if (in_register(i))
      emit_copy(d, {true, callee.param_slots[i]}, room_of(d, callee.params[i]),
                callee.params[i].bytes);
}

void skip(Warp& warp, const Op& op) { warp.branch(static_cast<std::uint32_t>(op.value)); }

void emit_returning_call(Decoder& d, const Decoder::Function& callee, const Call& call,
                         bool recursive) {
  const auto in_register = [&](std::size_t i) { return callee.result_slots[i] != 0; };
  if (recursive) emit_save_registers(d);
  emit_arguments(d, callee, call, recursive);
  Op& op = d.emit(emulator::call);
  op.d = callee.return_slot;
  d.go_to_entry(op, callee);
  if (recursive) {
    for (std::size_t i = 0; i < call.results.size(); ++i)
      if (in_register(i))
        emit_copy(d, room_of(d, callee.results[i]), {true, callee.result_slots[i]},
                  callee.results[i].bytes);
    emit_restore_registers(d);
  }
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    const std::uint64_t bytes = callee.results[i].bytes;
    const ValueLocation from = in_register(i) && !recursive
                                   ? ValueLocation{true, callee.result_slots[i]}
                                   : room_of(d, callee.results[i]);
    emit_copy(d, location_of(d, call.results[i], bytes, true), from, bytes);
  }
  if (recursive) emit_drop_registers(d);
}

void emit_call(Decoder& d, const Decoder::Function& callee, const Call& call) {
  const bool recursive = d.may_return_into_itself(callee);
  const Decoder::Guard guard = d.guard();
  if (!recursive || guard.slot == always_slot)
    return emit_returning_call(d, callee, call, recursive);
  // The guard may have changed when the call comes back: other lanes go around all of it.
  const std::size_t around = d.program().ops.size();
  d.set_guard({guard.slot, ~guard.flip});
  d.emit(skip);
  d.set_guard({});
  emit_returning_call(d, callee, call, recursive);
  d.program().ops[around].value = d.program().ops.size();
  d.set_guard(guard);
}

void emit_indirect_call(Decoder& d, const ptx::Operand& target, std::string_view label,
                        const Call& call) {
  const std::uint32_t from = d.source(target, Type::u64);
  if (d.failed()) return;
  std::vector<const Decoder::Function*> callees;
  for (const Decoder::Function* callee : d.call_targets(label))
    if (fits(d, *callee, call)) callees.push_back(callee);
  if (d.failed()) return;
  const Decoder::Guard guard = d.guard();
  std::vector<std::uint32_t> matches;
  d.set_guard({});
  for (const Decoder::Function* callee : callees) {
    matches.push_back(d.scratch(1));
    Op& op = d.emit(match_target);
    op.d = matches.back();
    op.a = from;
    op.c = guard.slot;
    op.flags = guard.flip != 0;
    op.value = d.address_of(*callee);
  }
  d.set_guard(guard);
  const std::uint32_t list = d.append(matches);
  Op& op = d.emit(require_target);
  op.a = from;
  op.list = list;
  op.value = matches.size();
  for (std::size_t i = 0; i < callees.size() && !d.failed(); ++i) {
    d.set_guard({matches[i], 0});
    emit_call(d, *callees[i], call);
  }
  d.set_guard(guard);
}

}  // namespace

void decode_call(Decoder& d) {
  d.spelling.ignore("uni");
  std::size_t at = 0;
  Call call;
  if (at < d.operand_count() && d.operand(at).kind == ptx::OperandKind::List)
    call.results = d.children(d.operand(at++));
  if (at >= d.operand_count() || d.operand(at).kind != ptx::OperandKind::Name)
    return d.unsupported();
  const ptx::Operand& target = d.operand(at++);
  if (at < d.operand_count() && d.operand(at).kind == ptx::OperandKind::List)
    call.arguments = d.children(d.operand(at++));
  if (d.register_of(target)) {
    const bool labelled = at < d.operand_count();
    return emit_indirect_call(d, target, labelled ? d.operand(at).text : "", call);
  }

  const Decoder::Function* callee = d.function(target.text);
  if (!callee) return decode_runtime_call(d, target.text, call.arguments, call.results);
  if (call.arguments.size() != callee->params.size() ||
      call.results.size() != callee->results.size())
    return d.error(
        "operand-count"_rule,
        fmt::format(
            "call mismatch: {} has {} parameters and {} results, the call passes {} and takes {}",
            target.text, callee->params.size(), callee->results.size(), call.arguments.size(),
            call.results.size()));
  emit_call(d, *callee, call);
}

}  // namespace tartan::TARTAN_ABI::emulator
