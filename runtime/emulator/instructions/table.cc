// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/instructions/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <span>

#include "runtime/emulator/machine/lanes.h"

namespace tartan::TARTAN_ABI::emulator {
namespace {
std::atomic<bool> vectors_allowed = true;
}

bool use_vectors() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has && vectors_allowed;
#else
  return false;
#endif
}

void set_vectors(bool allowed) { vectors_allowed = allowed; }

namespace {

// What is not emulated, in the words of the message.
struct RefusedRow {
  Opcode opcode;
  std::string_view what;
};
constexpr RefusedRow refused[] = {
    {Opcode::tex, "textures and samplers"},
    {Opcode::tld4, "textures and samplers"},
    {Opcode::txq, "textures and samplers"},
    {Opcode::suld, "surfaces"},
    {Opcode::sust, "surfaces"},
    {Opcode::sured, "surfaces"},
    {Opcode::suq, "surfaces"},
    {Opcode::multimem_ld_reduce, "multimem addresses (memory of several GPUs)"},
    {Opcode::multimem_st, "multimem addresses (memory of several GPUs)"},
    {Opcode::multimem_red, "multimem addresses (memory of several GPUs)"},
    {Opcode::multimem_st_async, "multimem addresses (memory of several GPUs)"},
    {Opcode::multimem_red_async, "multimem addresses (memory of several GPUs)"},
    {Opcode::multimem_cp_async_bulk, "multimem addresses (memory of several GPUs)"},
    {Opcode::multimem_cp_reduce_async_bulk, "multimem addresses (memory of several GPUs)"},
    {Opcode::tcgen05_ld_spcompress, "loads of tensor memory that compress"},
    {Opcode::tcgen05_ld_red_spcompress, "loads of tensor memory that compress"},
    {Opcode::fabric_try_put_async, "copies to and from other nodes (fabric)"},
    {Opcode::fabric_try_put_async_tensor, "copies to and from other nodes (fabric)"},
    {Opcode::fabric_try_red_async, "copies to and from other nodes (fabric)"},
    {Opcode::fabric_try_red_async_tensor, "copies to and from other nodes (fabric)"},
    {Opcode::fabric_try_get_async, "copies to and from other nodes (fabric)"},
    {Opcode::fabric_try_get_async_tensor, "copies to and from other nodes (fabric)"},
    {Opcode::fabric_try_pullred_async, "copies to and from other nodes (fabric)"},
    {Opcode::fabric_try_atom_async, "copies to and from other nodes (fabric)"},
    {Opcode::fabric_submit, "copies to and from other nodes (fabric)"},
    {Opcode::fabric_submit_commit_group, "copies to and from other nodes (fabric)"},
    {Opcode::fabric_wait, "copies to and from other nodes (fabric)"},
    {Opcode::spcompress, "compression of sparse data"},
    {Opcode::spdecompress, "compression of sparse data"},
    {Opcode::applypriority_async_bulk, "priorities of L2 lines by the copy engine"},
    {Opcode::applypriority_async_bulk_tensor, "priorities of L2 lines by the copy engine"},
    {Opcode::tensormap_query, "allocation classes of tensor maps"},
    {Opcode::trace_mark, "marks of a trace"},
};

void refuse(Decoder& d) {
  const auto row = std::ranges::find(refused, d.spelling.opcode(), &RefusedRow::opcode);
  if (row == std::end(refused)) return d.unsupported();
  d.error("unsupported-instruction"_rule,
          fmt::format("{} are not emulated: {}", row->what, d.spelling.text()));
}

constexpr EmulatedRow refused_row = {Opcode::none,       refuse,        Flow::Uses,
                                     ValueSources::None, Meaning::Bits, AccessKind::None,
                                     Idle::No,           nothing};

struct Topic {
  std::span<const Opcode> opcodes;
  const EmulatedRow* rows;
};
constexpr Topic all_topics[] = {
    {topics::integer, integer_rows},
    {topics::carry, carry_rows},
    {topics::bits, bits_rows},
    {topics::bytes, bytes_rows},
    {topics::video, video_rows},
    {topics::comparison, comparison_rows},
    {topics::conversion, conversion_rows},
    {topics::move, move_rows},
    {topics::load_store, load_store_rows},
    {topics::atomics, atomics_rows},
    {topics::copies, copies_rows},
    {topics::mbarriers, mbarriers_rows},
    {topics::bulk, bulk_rows},
    {topics::bulk_tensor, bulk_tensor_rows},
    {topics::tensormap, tensormap_rows},
    {topics::collectives, collectives_rows},
    {topics::barriers, barriers_rows},
    {topics::control, control_rows},
    {topics::stack, stack_rows},
    {topics::matrix, matrix_rows},
    {topics::warpgroup, warpgroup_rows},
    {topics::tensor_memory, tensor_memory_rows},
    {topics::tensor_copies, tensor_copies_rows},
    {topics::tensor_shifts, tensor_shifts_rows},
    {topics::tensor_products, tensor_products_rows},
    {topics::approximations, approximations_rows},
    {topics::launch_control, launch_control_rows},
};

constexpr std::size_t opcode_count = static_cast<std::size_t>(Opcode::count);
constexpr std::size_t index(Opcode opcode) { return static_cast<std::size_t>(opcode); }

constexpr bool each_has_one_row() {
  std::array<int, opcode_count> rows{};
  ++rows[index(Opcode::none)];
  for (const Topic& topic : all_topics)
    for (const Opcode opcode : topic.opcodes) ++rows[index(opcode)];
  for (const RefusedRow& row : refused) ++rows[index(row.opcode)];
  return std::ranges::count(rows, 1) == std::ssize(rows);
}
static_assert(each_has_one_row(), "an opcode has no row, or several");

constexpr std::array<const EmulatedRow*, opcode_count> table = [] {
  std::array<const EmulatedRow*, opcode_count> out;
  out.fill(&refused_row);
  for (const Topic& topic : all_topics)
    for (std::size_t i = 0; i < topic.opcodes.size(); ++i)
      out[index(topic.opcodes[i])] = &topic.rows[i];
  return out;
}();

}  // namespace

const EmulatedRow& emulated(Opcode opcode) { return *table[index(opcode)]; }

const EmulatedRow& emulated(const isa::Spelling& spelling) {
  if (spelling.has("release"_q)) {
    if (spelling.opcode == Opcode::st_async) return emulated(Opcode::st);
    if (spelling.opcode == Opcode::red_async) return emulated(Opcode::red);
  }
  return emulated(spelling.opcode);
}

bool is_emulated(Opcode opcode) { return table[index(opcode)] != &refused_row; }

}  // namespace tartan::TARTAN_ABI::emulator
