// SPDX-License-Identifier: Apache-2.0
// Accumulators in tensor memory: their columns, and what reads and assignments take.
//
// Products are asynchronous. Whoever reads an accumulator lets the tensor core arrive at the
// warpgroup's mbarrier (tcgen05.commit, by the thread that issues products) and waits there. Behind
// a read or an assignment the warpgroup meets, so that the next product finds its operands written,
// and changes nothing that a warp has yet to load.
#include "dsl/units/tcgen05/tensor_sums.h"

#include <algorithm>
#include <bit>

#include "dsl/layout/fragments.h"
#include "dsl/layout/shared_memory.h"
#include "dsl/roles/role_ring.h"
#include "dsl/roles/warpgroups.h"
#include "dsl/state/operations.h"
#include "dsl/state/scalars.h"
#include "dsl/units/tcgen05/tensor_movements.h"
#include "dsl/value/indices.h"

namespace tartan::TARTAN_ABI::detail {
namespace {

using ir::FunctionBuilder;
using ir::Value;

constexpr int most_columns = 512, fewest_columns = 32;
constexpr int fragment_columns = 8, fragment_rows = 16;  // of m16n8, which tcgen05.ld.16x256b loads

Scalar warpgroup_index(KernelState& state) {
  if (state.roles.warpgroup >= 0) return state.roles.warpgroup;
  return warpgroups_of(state) == 1 ? Scalar(0) : consumer_index(state) / warpgroup_threads;
}

void run(KernelState& state, std::string_view text) {
  (void)state.f().statement(text, {}, {}, false);
}

// What all accumulators of the kernel share.
void begin(KernelState& state) {
  TensorSums& sums = state.tensor_sums;
  if (sums.first) return;
  FunctionBuilder& f = state.f();
  const std::int64_t barriers = warpgroups_of(state) * mbarrier_bytes;
  sums.done =
      state.memories.share(f, state.names.unused("products"), 2 * barriers + mbarrier_bytes);
  sums.met = f.offset(sums.done, barriers);
  sums.address = f.offset(sums.done, 2 * barriers);
  f.at_mark(state.roles.begin, [&] {
    sums.first = f.variable(f.load(sums.address, u32));
    sums.parity = f.variable(f.constant(u32, 0));
    sums.met_parity = f.variable(f.constant(u32, 0));
  });
}

ir::Pointer of_warpgroup(KernelState& state, ir::Pointer first) {
  return state.f().offset(first, state.value(warpgroup_index(state) * mbarrier_bytes, u32));
}

void flip(KernelState& state, ir::Variable parity) {
  FunctionBuilder& f = state.f();
  f.set(parity, f.bit_xor(f.get(parity), f.constant(u32, 1)));
}

}  // namespace

void await_products(KernelState& state) {
  FunctionBuilder& f = state.f();
  TensorSums& sums = state.tensor_sums;
  const ir::Pointer done = of_warpgroup(state, sums.done);
  f.if_then(issues_products(state), [&] { commit_products(state, done); });
  f.mbarrier_wait(done, f.get(*sums.parity));
  flip(state, *sums.parity);
  run(state, "tcgen05.fence::after_thread_sync;");
}

namespace {

// What a warp has read or written is done before the next product of both: the thread that issues
// for both waits for their warps.
void meet_pair(KernelState& state) {
  FunctionBuilder& f = state.f();
  TensorSums& sums = state.tensor_sums;
  const ir::Pointer met = of_warpgroup(state, sums.met);
  f.warp_sync();  // the lane that arrives does so for its warp
  f.if_then(state.value(consumer_index(state) % 32 == 0),
            [&] { f.cluster_mbarrier_arrive(met, f.constant(u32, 0)); });
  f.if_then(issues_products(state), [&] {
    f.cluster_mbarrier_wait(met, f.get(*sums.met_parity));
    run(state, "tcgen05.fence::after_thread_sync;");
  });
  flip(state, *sums.met_parity);
}

}  // namespace

void meet_warpgroup(KernelState& state) {
  run(state, "tcgen05.fence::before_thread_sync;");
  if (state.tensor_sums.pairs) return meet_pair(state);
  if (can_have_barriers(state)) take_barriers(state), warpgroup_barrier(state);
  else block_barrier(state);
  run(state, "tcgen05.fence::after_thread_sync;");
}

StageMeetings allocate_meetings(KernelState& state, int stages, bool of_all) {
  FunctionBuilder& f = state.f();
  StageMeetings out{.count = stages * (of_all ? warpgroups_of(state) : 1)};
  out.barriers = state.memories.share(f, state.names.unused("stored"), out.count * mbarrier_bytes);
  f.at_mark(state.roles.begin, [&] { out.parities = f.variable(f.constant(u32, 0)); });
  state.tensor_sums.meetings.push_back(out);
  return out;
}

void meet_in_stage(KernelState& state, const StageMeetings& meetings, int stages,
                   const Scalar& stage, bool of_all) {
  FunctionBuilder& f = state.f();
  const Scalar which = of_all ? warpgroup_index(state) * stages + stage : stage;
  const ir::Pointer stored = f.offset(meetings.barriers, state.value(which * mbarrier_bytes, u32));
  const Value parities = f.get(meetings.parities);
  run(state, "tcgen05.fence::before_thread_sync;");
  f.warp_sync();  // the lane that arrives does so for its warp
  f.if_then(state.value(consumer_index(state) % 32 == 0),
            [&] { f.cluster_mbarrier_arrive(stored, f.constant(u32, 0)); });
  f.if_then(issues_products(state), [&] {
    f.cluster_mbarrier_wait(stored, state.value((state.scalar(parities) >> stage) & 1, u32));
    run(state, "tcgen05.fence::after_thread_sync;");
  });
  f.set(meetings.parities,
        f.bit_xor(parities, state.value(state.scalar(f.constant(u32, 1)) << stage, u32)));
}

namespace {

// Fragments side by side, which one instruction moves: a power of two of them.
struct Run {
  int row, first, count;
};

std::vector<Run> runs_of(int down, TensorSum::Part part) {
  std::vector<Run> out;
  for (int row = 0; row < down; ++row)
    for (int done = 0; done < part.count;) {
      const int count =
          static_cast<int>(std::bit_floor(static_cast<unsigned>(std::min(part.count - done, 16))));
      out.push_back({row, part.first + done, count});
      done += count;
    }
  return out;
}

int across(const TensorSum& sum) { return sum.columns / fragment_columns; }

std::vector<Run> runs_of(const TensorSum& sum, TensorSum::Part part) {
  return runs_of(static_cast<int>(sum.fragments.size()) / across(sum), part);
}

// The variables of a run.
std::vector<ir::Variable> variables_of(const TensorSum& sum, const Run& run) {
  std::vector<ir::Variable> out;
  for (int i = 0; i < run.count; ++i) {
    const auto at = static_cast<std::size_t>(run.row * across(sum) + run.first + i);
    const VariableRecord& record = *sum.fragments[at];
    out.insert(out.end(), record.registers.begin(), record.registers.end());
  }
  return out;
}

// The place of a run in the warp's own lanes, from a first column on.
Value address_of(KernelState& state, const Value& first, const Run& run) {
  const Scalar lane =
      consumer_index(state) / 32 % warps_of_warpgroup * 32 + run.row * fragment_rows;
  return state.f().add(first, state.value(lane * (1 << 16) + run.first * fragment_columns, u32));
}

std::string vector_of(std::size_t first, std::size_t count) {
  std::string out = "{";
  for (std::size_t i = 0; i < count; ++i) out += fmt::format("{}%{}", i ? ", " : "", first + i);
  return out + "}";
}

// Of m16n8 a lane has two elements of 32 bits in each of two rows, or two registers of pairs of 16
// bits. An element of 16 bits takes a cell.
struct Moved {
  std::string_view shape, load_suffix, store_suffix;
  std::size_t registers;  // of a fragment
};
Moved moved(const TensorSum& sum) {
  if (bits(sum.type) == 16) return {"16x128b", ".pack::16b", ".unpack::16b", 2};
  return {"16x256b", "", "", 4};
}

// Loads and their wait are one text, and its results the registers: nothing that uses them comes
// before the wait.
void load_sum(KernelState& state, TensorSum& sum, TensorSum::Part part) {
  FunctionBuilder& f = state.f();
  constexpr std::size_t most_results = 128;
  const Value first = first_column(state, sum);
  const Moved how = moved(sum);
  const std::vector<Run> runs = runs_of(sum, part);
  for (std::size_t i = 0; i < runs.size();) {
    std::vector<ir::Variable> variables;
    std::vector<Run> together;
    do {
      const auto more = variables_of(sum, runs[i]);
      if (variables.size() + more.size() > most_results) break;
      variables.insert(variables.end(), more.begin(), more.end());
      together.push_back(runs[i]);
    } while (++i < runs.size());
    std::string text;
    std::vector<Value> addresses;
    std::size_t next = 0;
    for (const Run& each : together) {
      const std::size_t count = static_cast<std::size_t>(each.count) * how.registers;
      text +=
          fmt::format("tcgen05.ld.sync.aligned.{}.x{}{}.b32 {}, [%{}];\n", how.shape, each.count,
                      how.load_suffix, vector_of(next, count), variables.size() + addresses.size());
      addresses.push_back(address_of(state, first, each));
      next += count;
    }
    text += "tcgen05.wait::ld.sync.aligned;";
    std::vector<Type> types;
    for (const ir::Variable& each : variables) types.push_back(each.type);
    const std::vector<Value> loaded = f.statement(text, types, addresses, false);
    for (std::size_t v = 0; v < variables.size(); ++v) f.set(variables[v], loaded[v]);
  }
}

// `shape`: of the instruction for one fragment; it is repeated.
void store(KernelState& state, const Value& first, const Run& run, std::string_view shape,
           int repeats, std::string_view suffix, const std::vector<Value>& registers) {
  std::vector<Value> operands{address_of(state, first, run)};
  operands.insert(operands.end(), registers.begin(), registers.end());
  (void)state.f().statement(fmt::format("tcgen05.st.sync.aligned.{}.x{}{}.b32 [%0], {};", shape,
                                        repeats, suffix, vector_of(1, registers.size())),
                            {}, operands, false);
}

void store_sum(KernelState& state, TensorSum& sum, TensorSum::Part part) {
  const Value first = first_column(state, sum);
  const Moved how = moved(sum);
  for (const Run& each : runs_of(sum, part)) {
    std::vector<Value> registers;
    for (const ir::Variable& one : variables_of(sum, each)) registers.push_back(state.f().get(one));
    store(state, first, each, how.shape, each.count, how.store_suffix, registers);
  }
  run(state, "tcgen05.wait::st.sync.aligned;");
}

void set_zero(KernelState& state, const TensorSum& sum, TensorSum::Part part) {
  FunctionBuilder& f = state.f();
  for (const Run& run : runs_of(sum, part))
    for (const ir::Variable& each : variables_of(sum, run))
      f.set(each, each.type == f32 ? f.constant(f32, 0.0) : f.constant(each.type, 0));
}

void move(KernelState& state, const TensorMovement& movement) {
  FunctionBuilder& f = state.f();
  TensorSum& sum = *movement.sum;
  using enum TensorMovement::What;
  const bool moves = movement.what == load || movement.what == store;
  if (movement.what == await || (moves && movement.together)) await_products(state);
  if (movement.what == await && movement.assigns)  // in some warps
    f.if_then(f.compare(ir::Compare::eq, f.get(sum.begun), f.constant(u32, 0)), [&] {
      set_zero(state, sum, movement.part);
      store_sum(state, sum, movement.part);
      f.set(sum.begun, f.constant(u32, 1));
    });
  if (movement.what == load)
    f.if_else(
        f.compare(ir::Compare::ne, f.get(sum.begun), f.constant(u32, 0)),
        [&] { load_sum(state, sum, movement.part); }, [&] { set_zero(state, sum, movement.part); });
  if (movement.what == store) {
    store_sum(state, sum, movement.part);
    f.set(sum.begun, f.constant(u32, 1));
  }
  if (movement.what == meet || (moves && movement.together)) meet_warpgroup(state);
}

// What tcgen05.alloc takes: a power of two.
int allocated(const TensorSums& sums) {
  return static_cast<int>(
      std::bit_ceil(static_cast<unsigned>(std::max(sums.columns, fewest_columns))));
}

}  // namespace

int allocate_columns(KernelState& state, int columns, bool of_all) {
  begin(state);
  TensorSums& sums = state.tensor_sums;
  const int out = sums.columns;
  sums.columns += columns * (of_all ? warpgroups_of(state) : 1);
  if (sums.columns > most_columns)
    state.log.report("launch-bounds"_rule,
                     fmt::format("tensor memory: products take {} columns with this one, expected "
                                 "at most {}; use a smaller tile",
                                 sums.columns, most_columns));
  return out;
}

Value column_of(KernelState& state, int first, int columns, bool of_all) {
  const Scalar own = of_all ? warpgroup_index(state) * columns : Scalar(0);
  return state.f().add(state.f().get(*state.tensor_sums.first), state.value(own + first, u32));
}

Value first_column(KernelState& state, TensorSum& sum) {
  const bool of_all = sum.warpgroup < 0;
  if (!sum.column) sum.column = allocate_columns(state, sum.columns, of_all);
  return column_of(state, *sum.column, sum.columns, of_all);
}

// Two registers of a fragment of A, whatever its type, are a row and the one eight rows below in
// four columns.
Value store_operand(KernelState& state, TensorSum& sum, const WarpTile& a) {
  const bool of_all = sum.warpgroup < 0;
  const int columns = a.across() * fragment_columns;
  if (sum.operand.count < columns)
    sum.operand = {allocate_columns(state, columns, of_all), columns};
  const Value first = column_of(state, sum.operand.first, sum.operand.count, of_all);
  await_products(state);  // one may still read what was there
  for (const Run& each : runs_of(a.down(), {0, a.across()})) {
    std::vector<Value> registers;
    for (int i = 0; i < each.count; ++i)
      for (const Value& one : registers_of(a.fragment(each.row, each.first + i)))
        registers.push_back(one);
    store(state, first, each, "16x128b", 2 * each.count, "", registers);
  }
  run(state, "tcgen05.wait::st.sync.aligned;");
  meet_warpgroup(state);
  return first;
}

Value issues_products(KernelState& state) {
  const Scalar first = consumer_index(state) % warpgroup_threads == 0;
  return state.value(state.tensor_sums.pairs ? first & (block_of_cluster(state) == 0) : first);
}

void meet_stage_of_pair(KernelState& state, ir::Pointer peer, Value parity) {
  FunctionBuilder& f = state.f();
  const Scalar first = consumer_index(state) % warpgroup_threads == 0;
  f.if_then(state.value(first & (block_of_cluster(state) != 0)),
            [&] { f.cluster_mbarrier_arrive(peer, f.constant(u32, 0)); });
  f.if_then(issues_products(state), [&] { f.cluster_mbarrier_wait(peer, parity); });
}

void commit_products(KernelState& state, ir::Pointer mbarrier, Value blocks) {
  FunctionBuilder& f = state.f();
  const bool pairs = state.tensor_sums.pairs;
  const std::string arrives = fmt::format(
      "tcgen05.commit.cta_group::{}.mbarrier::arrive::one.shared::cluster", pairs ? 2 : 1);
  if (pairs) blocks = f.constant(u32, 3);
  std::vector<Value> operands{f.shared_address(mbarrier)};
  if (blocks.id >= 0) operands.push_back(f.convert(blocks, Type::u16));
  (void)f.statement(arrives + (blocks.id >= 0 ? ".multicast::cluster.b64 [%0], %1;" : ".b64 [%0];"),
                    {}, operands, false);
}

namespace {

// Whether a condition follows from the thread's index, and holds in whole warps.
bool divides_warps(const KernelState& state, int condition) {
  return state.threads.value(condition, 0, 0) &&
         state.threads.split(condition, 0, state.config.options.block) != Split::lanes;
}

}  // namespace

void settle_tensor_sums(KernelState& state, int body) {
  FunctionBuilder& f = state.f();
  std::vector<TensorMovement> all =
      tensor_movements(f, f.region_of(body), state.tensor_sums.all, [&](int condition) {
        return state.tensor_sums.votes.contains(condition) || divides_warps(state, condition);
      });
  // From behind, so that places stay what they are.
  std::ranges::reverse(all);
  std::ranges::stable_sort(all, [](const TensorMovement& x, const TensorMovement& y) {
    return std::pair(x.region, x.index) > std::pair(y.region, y.index);
  });
  std::vector<int> marks;
  for (const TensorMovement& each : all) marks.push_back(f.mark_at(each.region, each.index));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int around = std::exchange(state.roles.warpgroup, all[i].by->warpgroup);
    state.at(all[i].by->at);
    f.at_mark(marks[i], [&] { move(state, all[i]); });
    state.roles.warpgroup = around;
  }
}

void allocate_tensor_memory(KernelState& state) {
  if (!state.tensor_sums.first) return;
  FunctionBuilder& f = state.f();
  const int ctas = state.tensor_sums.pairs ? 2 : 1;
  if (ctas == 2) f.cluster_barrier(false);  // the other CTA has been launched
  f.if_then(state.value(thread_index(state) < 32), [&] {
    (void)f.statement(
        fmt::format("tcgen05.alloc.cta_group::{1}.sync.aligned.shared::cta.b32 [%0], {0};\n"
                    "tcgen05.relinquish_alloc_permit.cta_group::{1}.sync.aligned;",
                    allocated(state.tensor_sums), ctas),
        {}, std::vector<Value>{f.shared_address(state.tensor_sums.address)}, false);
  });
}

void init_tensor_barriers(KernelState& state) {
  if (!state.tensor_sums.first) return;
  FunctionBuilder& f = state.f();
  for (int i = 0; i < warpgroups_of(state); ++i) {
    f.mbarrier_init(f.offset(state.tensor_sums.done, i * mbarrier_bytes), 1);
    if (state.tensor_sums.pairs)
      f.mbarrier_init(f.offset(state.tensor_sums.met, i * mbarrier_bytes), 2 * warps_of_warpgroup);
  }
  for (const StageMeetings& each : state.tensor_sums.meetings)
    for (int i = 0; i < each.count; ++i)
      f.mbarrier_init(f.offset(each.barriers, i * mbarrier_bytes), 2 * warps_of_warpgroup);
}

namespace {

void deallocate(KernelState& state, const Value& first, int ctas) {
  (void)state.f().statement(fmt::format("tcgen05.dealloc.cta_group::{}.sync.aligned.b32 %0, {};",
                                        ctas, allocated(state.tensor_sums)),
                            {}, std::vector<Value>{first}, false);
}

}  // namespace

void free_tensor_memory(KernelState& state) {
  if (!state.tensor_sums.first) return;
  FunctionBuilder& f = state.f();
  await_products(state);
  run(state, "tcgen05.fence::before_thread_sync;");
  if (state.tensor_sums.pairs) return;  // when the cluster has met
  block_barrier(state);
  run(state, "tcgen05.fence::after_thread_sync;");
  const Value first = f.get(*state.tensor_sums.first);
  f.if_then(state.value(consumer_index(state) < 32), [&] { deallocate(state, first, 1); });
}

void free_tensor_memory_of_pair(KernelState& state) {
  if (!state.tensor_sums.first || !state.tensor_sums.pairs) return;
  FunctionBuilder& f = state.f();
  f.if_then(state.value(thread_index(state) < 32), [&] {
    run(state, "tcgen05.fence::after_thread_sync;");
    deallocate(state, f.load(state.tensor_sums.address, u32), 2);
  });
}

}  // namespace tartan::TARTAN_ABI::detail
