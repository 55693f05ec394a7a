// SPDX-License-Identifier: Apache-2.0
#include "tartan/isa/opcode.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "compiler/isa/timed.h"

namespace tartan::TARTAN_ABI::isa {
namespace {

// OpcodeRow, and what compiler/isa/timed.h gives.
struct Row {
  Opcode opcode;
  std::string_view name;
  Control control = Control::FallsThrough;
  Convergence convergence = Convergence::None;
  QualifierSet leading = {};
  AsyncGroup group = {};
  Timed timed = Timed::No;
};

// clang-format off
constexpr Row rows[] = {
    {Opcode::none, ""},
    {.opcode = Opcode::ldmatrix, .name = "ldmatrix", .convergence = Convergence::Warp},
    {.opcode = Opcode::stmatrix, .name = "stmatrix", .convergence = Convergence::Warp},
    {.opcode = Opcode::movmatrix, .name = "movmatrix", .convergence = Convergence::Warp},
    {.opcode = Opcode::wmma_load, .name = "wmma.load", .convergence = Convergence::Warp, .leading = "a b c"},
    {.opcode = Opcode::wmma_store, .name = "wmma.store", .convergence = Convergence::Warp, .leading = "d"},
    {.opcode = Opcode::wmma_mma, .name = "wmma.mma", .convergence = Convergence::Warp, .timed = Timed::Multiplies},
    {.opcode = Opcode::mma, .name = "mma", .convergence = Convergence::Warp, .timed = Timed::Multiplies},
    {.opcode = Opcode::wgmma, .name = "wgmma.mma_async", .convergence = Convergence::Warpgroup, .group = {GroupStep::Issues, GroupKind::products}, .timed = Timed::Wgmma},
    {.opcode = Opcode::wgmma_fence, .name = "wgmma.fence", .convergence = Convergence::Warpgroup},
    {.opcode = Opcode::wgmma_commit_group, .name = "wgmma.commit_group", .convergence = Convergence::Warpgroup, .group = {GroupStep::Commits, GroupKind::products}},
    {.opcode = Opcode::wgmma_wait_group, .name = "wgmma.wait_group", .convergence = Convergence::Warpgroup, .group = {GroupStep::Waits, GroupKind::products}},
    {Opcode::add, "add"}, {Opcode::addc, "addc"}, {Opcode::sub, "sub"}, {Opcode::subc, "subc"},
    {.opcode = Opcode::mul, .name = "mul", .leading = "lo hi wide"},
    {.opcode = Opcode::mad, .name = "mad", .leading = "lo hi wide"},
    {.opcode = Opcode::madc, .name = "madc", .leading = "lo hi"},
    {.opcode = Opcode::mul24, .name = "mul24", .leading = "lo hi"},
    {.opcode = Opcode::mad24, .name = "mad24", .leading = "lo hi"},
    {Opcode::sad, "sad"}, {.opcode = Opcode::div, .name = "div", .leading = "full"}, {Opcode::rem, "rem"},
    {Opcode::abs, "abs"}, {Opcode::neg, "neg"}, {Opcode::min, "min"}, {Opcode::max, "max"},
    {Opcode::popc, "popc"}, {Opcode::clz, "clz"}, {Opcode::bfind, "bfind"}, {Opcode::fns, "fns"},
    {Opcode::brev, "brev"}, {Opcode::bfe, "bfe"}, {Opcode::bfi, "bfi"}, {Opcode::szext, "szext"},
    {Opcode::bmsk, "bmsk"}, {Opcode::dp4a, "dp4a"}, {.opcode = Opcode::dp2a, .name = "dp2a", .leading = "lo hi"}, {.opcode = Opcode::clmad, .name = "clmad", .leading = "lo hi"},
    {Opcode::fma, "fma"},
    {Opcode::rcp, "rcp"}, {Opcode::sqrt, "sqrt"}, {Opcode::rsqrt, "rsqrt"}, {Opcode::sin, "sin"},
    {Opcode::cos, "cos"}, {Opcode::lg2, "lg2"}, {Opcode::ex2, "ex2"}, {Opcode::tanh, "tanh"},
    {Opcode::testp, "testp"}, {Opcode::copysign, "copysign"}, {Opcode::set, "set"},
    {Opcode::setp, "setp"}, {Opcode::selp, "selp"}, {Opcode::slct, "slct"}, {Opcode::and_, "and"},
    {Opcode::or_, "or"}, {Opcode::xor_, "xor"}, {Opcode::not_, "not"}, {Opcode::cnot, "cnot"},
    {Opcode::lop3, "lop3"}, {.opcode = Opcode::shf, .name = "shf", .leading = "l r"},
    {Opcode::shl, "shl"}, {Opcode::shr, "shr"},
    {Opcode::mov, "mov"},
    {.opcode = Opcode::shfl, .name = "shfl", .convergence = Convergence::Mask},
    {Opcode::prmt, "prmt"}, {Opcode::ld, "ld"}, {Opcode::ldu, "ldu"}, {Opcode::st, "st"},
    {.opcode = Opcode::st_async, .name = "st.async", .timed = Timed::Bulk}, {Opcode::st_bulk, "st.bulk"},
    {Opcode::multimem_ld_reduce, "multimem.ld_reduce"}, {Opcode::multimem_st, "multimem.st"},
    {Opcode::multimem_red, "multimem.red"},
    {Opcode::multimem_st_async, "multimem.st.async"}, {Opcode::multimem_red_async, "multimem.red.async"},
    {Opcode::multimem_cp_async_bulk, "multimem.cp.async.bulk"},
    {Opcode::multimem_cp_reduce_async_bulk, "multimem.cp.reduce.async.bulk"},
    {Opcode::prefetch, "prefetch"}, {Opcode::prefetchu, "prefetchu"},
    {Opcode::applypriority, "applypriority"},
    {Opcode::applypriority_async_bulk, "applypriority.async.bulk"},
    {Opcode::applypriority_async_bulk_tensor, "applypriority.async.bulk.tensor"},
    {Opcode::discard, "discard"},
    {.opcode = Opcode::createpolicy, .name = "createpolicy", .leading = "fractional range cvt"}, {Opcode::isspacep, "isspacep"},
    {.opcode = Opcode::cvta, .name = "cvta", .leading = "to"},
    {Opcode::cvt, "cvt"}, {Opcode::cvt_pack, "cvt.pack"},
    {Opcode::mapa, "mapa"}, {Opcode::getctarank, "getctarank"}, {.opcode = Opcode::cp_async, .name = "cp.async", .group = {GroupStep::Issues, GroupKind::copies}, .timed = Timed::CopyAsync},
    {.opcode = Opcode::cp_async_commit_group, .name = "cp.async.commit_group", .group = {GroupStep::Commits, GroupKind::copies}},
    {.opcode = Opcode::cp_async_wait_group, .name = "cp.async.wait_group", .group = {GroupStep::Waits, GroupKind::copies}},
    {.opcode = Opcode::cp_async_wait_all, .name = "cp.async.wait_all", .group = {GroupStep::Waits, GroupKind::copies}},
    {.opcode = Opcode::cp_async_mbarrier_arrive, .name = "cp.async.mbarrier.arrive", .timed = Timed::Arrives},
    {.opcode = Opcode::cp_async_bulk, .name = "cp.async.bulk", .group = {GroupStep::Issues, GroupKind::bulk}, .timed = Timed::Bulk},
    {Opcode::cp_async_bulk_prefetch, "cp.async.bulk.prefetch"},
    {.opcode = Opcode::cp_async_bulk_tensor, .name = "cp.async.bulk.tensor", .group = {GroupStep::Issues, GroupKind::bulk}, .timed = Timed::Bulk},
    {Opcode::cp_async_bulk_prefetch_tensor, "cp.async.bulk.prefetch.tensor"},
    {.opcode = Opcode::cp_async_bulk_commit_group, .name = "cp.async.bulk.commit_group", .group = {GroupStep::Commits, GroupKind::bulk}},
    {.opcode = Opcode::cp_async_bulk_wait_group, .name = "cp.async.bulk.wait_group", .group = {GroupStep::Waits, GroupKind::bulk}},
    {.opcode = Opcode::cp_reduce_async_bulk, .name = "cp.reduce.async.bulk", .group = {GroupStep::Issues, GroupKind::bulk}, .timed = Timed::Bulk},
    {.opcode = Opcode::cp_reduce_async_bulk_tensor, .name = "cp.reduce.async.bulk.tensor", .group = {GroupStep::Issues, GroupKind::bulk}, .timed = Timed::Bulk},
    {Opcode::tensormap_replace, "tensormap.replace"}, {.opcode = Opcode::tensormap_query, .name = "tensormap.query", .leading = "alloc_class_large"},
    {.opcode = Opcode::tensormap_cp_fenceproxy, .name = "tensormap.cp_fenceproxy", .convergence = Convergence::Warp},
    {.opcode = Opcode::tex, .name = "tex", .leading = "base level grad"},
    {Opcode::tld4, "tld4"}, {Opcode::txq, "txq"}, {Opcode::istypep, "istypep"},
    {.opcode = Opcode::suld, .name = "suld", .leading = "b"}, {.opcode = Opcode::sust, .name = "sust", .leading = "b p"}, {.opcode = Opcode::sured, .name = "sured", .leading = "b p"},
    {Opcode::suq, "suq"},
    {.opcode = Opcode::bra, .name = "bra", .control = Control::Branches},
    {.opcode = Opcode::brx_idx, .name = "brx.idx", .control = Control::Branches},
    {.opcode = Opcode::call, .name = "call", .control = Control::Calls},
    {.opcode = Opcode::ret, .name = "ret", .control = Control::Returns},
    {.opcode = Opcode::exit, .name = "exit", .control = Control::Exits},
    {.opcode = Opcode::bar, .name = "bar", .convergence = Convergence::Cta, .leading = "cta red", .timed = Timed::Arrives},
    {.opcode = Opcode::bar_warp, .name = "bar.warp", .convergence = Convergence::Mask},
    {.opcode = Opcode::barrier, .name = "barrier", .convergence = Convergence::Cta, .leading = "cta red", .timed = Timed::Arrives},
    {.opcode = Opcode::barrier_cluster_arrive, .name = "barrier.cluster.arrive", .convergence = Convergence::Cluster, .timed = Timed::Arrives},
    {.opcode = Opcode::barrier_cluster_wait, .name = "barrier.cluster.wait", .convergence = Convergence::Cluster, .timed = Timed::WaitsForCluster},
    {Opcode::membar, "membar"}, {Opcode::fence, "fence"}, {Opcode::fence_proxy, "fence.proxy"},
    {Opcode::fence_mbarrier_init, "fence.mbarrier_init"}, {Opcode::atom, "atom"},
    {Opcode::red, "red"}, {.opcode = Opcode::red_async, .name = "red.async", .timed = Timed::Bulk},
    {.opcode = Opcode::vote, .name = "vote", .convergence = Convergence::Mask},
    {.opcode = Opcode::match, .name = "match", .convergence = Convergence::Mask},
    {Opcode::activemask, "activemask"},
    {.opcode = Opcode::redux, .name = "redux", .convergence = Convergence::Mask},
    {Opcode::griddepcontrol, "griddepcontrol"},
    {.opcode = Opcode::elect, .name = "elect", .convergence = Convergence::Mask},
    {.opcode = Opcode::mbarrier_init, .name = "mbarrier.init", .timed = Timed::Arrives}, {.opcode = Opcode::mbarrier_inval, .name = "mbarrier.inval", .timed = Timed::Arrives},
    {.opcode = Opcode::mbarrier_expect_tx, .name = "mbarrier.expect_tx", .timed = Timed::Arrives},
    {.opcode = Opcode::mbarrier_complete_tx, .name = "mbarrier.complete_tx", .timed = Timed::Arrives},
    {.opcode = Opcode::mbarrier_arrive, .name = "mbarrier.arrive", .leading = "expect_tx", .timed = Timed::Arrives},
    {.opcode = Opcode::mbarrier_arrive_drop, .name = "mbarrier.arrive_drop", .leading = "expect_tx", .timed = Timed::Arrives},
    {.opcode = Opcode::mbarrier_test_wait, .name = "mbarrier.test_wait", .leading = "parity", .timed = Timed::WaitsAtMbarrier},
    {.opcode = Opcode::mbarrier_try_wait, .name = "mbarrier.try_wait", .leading = "parity", .timed = Timed::WaitsAtMbarrier},
    {Opcode::mbarrier_pending_count, "mbarrier.pending_count"},
    {Opcode::mbarrier_check_layout, "mbarrier.check_layout"},
    {.opcode = Opcode::clusterlaunchcontrol_try_cancel, .name = "clusterlaunchcontrol.try_cancel", .leading = "async"},
    {Opcode::clusterlaunchcontrol_query_cancel, "clusterlaunchcontrol.query_cancel"},
    {Opcode::fabric_try_put_async, "fabric.try_put.async"},
    {Opcode::fabric_try_put_async_tensor, "fabric.try_put.async.tensor"},
    {Opcode::fabric_try_red_async, "fabric.try_red.async"},
    {Opcode::fabric_try_red_async_tensor, "fabric.try_red.async.tensor"},
    {Opcode::fabric_try_get_async, "fabric.try_get.async"},
    {Opcode::fabric_try_get_async_tensor, "fabric.try_get.async.tensor"},
    {.opcode = Opcode::fabric_try_pullred_async, .name = "fabric.try_pullred.async", .convergence = Convergence::Mask},
    {Opcode::fabric_try_atom_async, "fabric.try_atom.async"},
    {Opcode::fabric_submit, "fabric.submit"},
    {Opcode::fabric_submit_commit_group, "fabric.submit.commit_group"},
    {Opcode::fabric_wait, "fabric.wait"},
    {Opcode::spcompress, "spcompress"}, {Opcode::spdecompress, "spdecompress"},
    {.opcode = Opcode::tcgen05_alloc, .name = "tcgen05.alloc", .convergence = Convergence::Warp},
    {.opcode = Opcode::tcgen05_dealloc, .name = "tcgen05.dealloc", .convergence = Convergence::Warp},
    {.opcode = Opcode::tcgen05_relinquish_alloc_permit, .name = "tcgen05.relinquish_alloc_permit", .convergence = Convergence::Warp},
    {.opcode = Opcode::tcgen05_ld, .name = "tcgen05.ld", .convergence = Convergence::Warp},
    {.opcode = Opcode::tcgen05_ld_red, .name = "tcgen05.ld.red", .convergence = Convergence::Warp},
    {.opcode = Opcode::tcgen05_ld_spcompress, .name = "tcgen05.ld.spcompress", .convergence = Convergence::Warp},
    {.opcode = Opcode::tcgen05_ld_red_spcompress, .name = "tcgen05.ld.red.spcompress", .convergence = Convergence::Warp},
    {.opcode = Opcode::tcgen05_st, .name = "tcgen05.st", .convergence = Convergence::Warp},
    {.opcode = Opcode::tcgen05_wait_ld, .name = "tcgen05.wait::ld", .convergence = Convergence::Warp},
    {.opcode = Opcode::tcgen05_wait_st, .name = "tcgen05.wait::st", .convergence = Convergence::Warp},
    {Opcode::tcgen05_cp, "tcgen05.cp"}, {Opcode::tcgen05_shift, "tcgen05.shift"},
    {Opcode::tcgen05_mma, "tcgen05.mma"}, {Opcode::tcgen05_mma_sp, "tcgen05.mma.sp"},
    {Opcode::tcgen05_mma_ws, "tcgen05.mma.ws"}, {Opcode::tcgen05_mma_ws_sp, "tcgen05.mma.ws.sp"},
    {Opcode::tcgen05_fence_before_thread_sync, "tcgen05.fence::before_thread_sync"},
    {Opcode::tcgen05_fence_after_thread_sync, "tcgen05.fence::after_thread_sync"},
    {Opcode::tcgen05_commit, "tcgen05.commit"}, {Opcode::stacksave, "stacksave"},
    {Opcode::stackrestore, "stackrestore"}, {Opcode::alloca, "alloca"}, {Opcode::vadd, "vadd"},
    {Opcode::vsub, "vsub"}, {Opcode::vabsdiff, "vabsdiff"}, {Opcode::vmin, "vmin"},
    {Opcode::vmax, "vmax"}, {Opcode::vshl, "vshl"}, {Opcode::vshr, "vshr"},
    {Opcode::vmad, "vmad"}, {Opcode::vset, "vset"}, {Opcode::vadd2, "vadd2"},
    {Opcode::vsub2, "vsub2"}, {Opcode::vavrg2, "vavrg2"}, {Opcode::vabsdiff2, "vabsdiff2"},
    {Opcode::vmin2, "vmin2"}, {Opcode::vmax2, "vmax2"}, {Opcode::vset2, "vset2"},
    {Opcode::vadd4, "vadd4"}, {Opcode::vsub4, "vsub4"}, {Opcode::vavrg4, "vavrg4"},
    {Opcode::vabsdiff4, "vabsdiff4"}, {Opcode::vmin4, "vmin4"}, {Opcode::vmax4, "vmax4"},
    {Opcode::vset4, "vset4"}, {Opcode::brkpt, "brkpt"}, {Opcode::nanosleep, "nanosleep"},
    {Opcode::pmevent, "pmevent"},
    {.opcode = Opcode::trap, .name = "trap", .control = Control::Traps},
    {.opcode = Opcode::setmaxnreg, .name = "setmaxnreg", .convergence = Convergence::Warp, .leading = "inc dec", .timed = Timed::WaitsForRegisters},
    {Opcode::trace_mark, "trace.mark"},
};
// clang-format on

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (rows[i].opcode != static_cast<Opcode>(i)) return false;
  return std::size(rows) == static_cast<std::size_t>(Opcode::count);
}
static_assert(in_order(), "rows are indexed by Opcode");

constexpr auto texts = [] {
  std::array<OpcodeRow, std::size(rows)> out{};
  std::ranges::transform(rows, out.begin(), [](const Row& each) {
    return OpcodeRow{each.opcode, each.name, each.control, each.convergence, each.leading};
  });
  return out;
}();

// Rows by the name's first word, longest names first.
using Candidates = std::unordered_map<std::string_view, std::vector<const OpcodeRow*>>;

std::string_view first_word(std::string_view text) { return text.substr(0, text.find('.')); }

const Candidates& candidates() {
  static const Candidates all = [] {
    Candidates out;
    for (const OpcodeRow& each : texts)
      if (!each.name.empty()) out[first_word(each.name)].push_back(&each);
    for (auto& [word, list] : out)
      std::sort(list.begin(), list.end(), [](const OpcodeRow* x, const OpcodeRow* y) {
        return x->name.size() > y->name.size();
      });
    return out;
  }();
  return all;
}

}  // namespace

const OpcodeRow& row(Opcode opcode) { return texts[static_cast<std::size_t>(opcode)]; }

AsyncGroup group_of(Opcode opcode) { return rows[static_cast<std::size_t>(opcode)].group; }

Timed timed_as(Opcode opcode) {
  switch (group_of(opcode).step) {
    case GroupStep::Commits: return Timed::Commits;
    case GroupStep::Waits: return Timed::Waits;
    case GroupStep::None:
    case GroupStep::Issues: break;
  }
  return rows[static_cast<std::size_t>(opcode)].timed;
}

Opcode find_opcode(std::string_view text) {
  const auto found = candidates().find(first_word(text));
  if (found == candidates().end()) return Opcode::none;
  for (const OpcodeRow* each : found->second)
    if (text.starts_with(each->name) &&
        (text.size() == each->name.size() || text[each->name.size()] == '.'))
      return each->opcode;
  return Opcode::none;
}

}  // namespace tartan::TARTAN_ABI::isa
