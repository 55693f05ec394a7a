# SPDX-License-Identifier: Apache-2.0
"""Statements on memory, barriers and control, as the PTX manual describes them."""

LOAD_STORE = """
ld(|@60,70:.weak)(S=|.global|.shared|.local)(T=.b8|.u8|.s8|.b16|.u16|.s16|.b32|.u32|.s32|.b64|.u64|.s64|.f32|.f64) <T~!>, <@S:T>
ld.volatile(S=|.global|.shared)(T=.b8|.u8|.s8|.b16|.u16|.s16|.b32|.u32|.s32|.b64|.u64|.s64|.f32|.f64) <T~!>, <@S:T>
ld(S=.const|.param)(T=.b8|.u16|.s32|.u64|.f32|.f64) <T~!>, <@S:T>
ld(|@60,70:.weak)(S=.global|.shared|.const|.local)(V=.v2|.v4)(T=.b8|.u16|.s32|.b32|.f32) <T*V!>, <@S:v>
ld(S=.global|.shared|.local).v2(T=.b64|.u64|.s64|.f64) <T*2!>, <@S:v>
ld(|@60,70:.weak)(|.ca|.cg|.cs|.lu|.cv)(T=.b32|.f32|.u8) <T~!>, <@generic:T>
ld.global(|.ca|.cg|.cs|.lu|.cv)(T=.b32|.f32|.s16) <T~!>, <@global:T>
@60,70: ld(.relaxed|.acquire)(.cta|.gpu|.sys|@78,90:.cluster)(S=|.global|.shared)(T=.b32|.u32|.s64|.f32|.b8) <T~!>, <@S:T>
ld.volatile(S=|.global|.shared)(V=|.v2|.v4)(T=.b32|.f32|.u16) <T*V!>, <@S:v>
@82,70: ld.mmio.relaxed.sys(|.global)(T=.u32|.b64|.s8) <T~!>, <@global:T>
@83,70: ld(|.relaxed.gpu|.acquire.sys)(.global).b128 <b128!>, <@global:v>
@74,75: ld.global(|.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate)(|.L2::64B|.L2::128B|@74,80:.L2::256B)(V=|.v2|.v4)(T=.b32|.f32) <T*V!>, <@global:v>
@74,80: ld.global(|.L2::128B).L2::cache_hint(V=|.v2|.v4)(T=.b32|.f32) <T*V!>, <@global:v>, <b64!>
@78,90: ld.shared::cluster(T=.b32|.u64) <T!>, <@shared:T>
@78,30: (ld.shared::cta(T=.b32|.u64) <T!>, <@shared:T>)
ld.global(|.ca|.cg|.cs).nc(T=.b8|.u16|.s32|.u64|.f32|.f64) <T~!>, <@global:T>
ld.global.nc(V=.v2|.v4)(T=.u16|.s32|.f32|.b32) <T*V!>, <@global:v>
@74,75: ld.global.nc(|.L1::evict_normal|.L1::no_allocate)(|.L2::128B).f32 <f32!>, <@global:f32>
@88,100: ld.global(|.nc)(|.L2::evict_last|.L2::evict_first).v8(T=.b32|.f32|.u32) <T*8!>, <@global:v>
@88,100: ld.global.v4(T=.b64|.f64) <T*4!>, <@global:v>
ldu(|.global)(V=|.v2|.v4)(T=.u8|.b32|.f32|.s16) <T*V!>, <@global:v>
st(|@60,70:.weak)(S=|.global|.shared|.local)(T=.b8|.u8|.s8|.b16|.u16|.s16|.b32|.u32|.s32|.b64|.u64|.s64|.f32|.f64) <@S:T>, <T~>
st.volatile(S=|.global|.shared)(T=.b8|.u8|.s8|.b16|.u16|.s16|.b32|.u32|.s32|.b64|.u64|.s64|.f32|.f64) <@S:T>, <T~>
st(|@60,70:.weak)(S=.global|.shared|.local)(V=.v2|.v4)(T=.b8|.u16|.s32|.b32|.f32) <@S:v>, <T*V!>
st(S=.global|.shared|.local).v2(T=.b64|.u64|.f64) <@S:v>, <T*2!>
st(|.global)(|.wb|.cg|.cs|.wt)(T=.b32|.f32|.u8) <@global:T>, <T~>
@60,70: st(.relaxed|.release)(.cta|.gpu|.sys|@78,90:.cluster)(S=|.global|.shared)(T=.b32|.u32|.s64|.f32|.b8) <@S:T>, <T~>
@82,70: st.mmio.relaxed.sys(|.global)(T=.u32|.b64) <@global:T>, <T>
@83,70: st(|.relaxed.gpu|.release.sys).global.b128 <@global:v>, <b128!>
@74,75: st.global(|.L1::evict_normal|.L1::evict_first|.L1::evict_last|.L1::no_allocate)(V=|.v2|.v4)(T=.b32|.f32) <@global:v>, <T*V!>
@74,80: st.global.L2::cache_hint(V=|.v2|.v4)(T=.b32|.f32) <@global:v>, <T*V!>, <b64!>
@78,90: st.shared::cluster(T=.b32|.u64) <@shared:T>, <T>
@88,100: st.global(|.L2::evict_last).v8(T=.b32|.f32) <@global:v>, <T*8!>
@81,90: st.async(|@60,70:.weak)(|.shared::cluster).mbarrier::complete_tx::bytes(V=|.v2|.v4)(T=.b32|.u32|.s32|.f32) <@shared:v>, <T*V!>, <@shared:b64>
@81,90: red.async.relaxed.cluster(|.shared::cluster).mbarrier::complete_tx::bytes(.inc|.dec|.min|.max|.add).u32 <@shared:u32>, <u32!>, <@shared:b64>
@86,100: st.bulk(|@60,70:.weak)(|.shared::cta) <@shared:b64>, <u64!>, 0
prefetch(|.global|.local)(.L1|.L2) <@generic:b32>
@74,80: prefetch.global(.L2::evict_last|.L2::evict_normal) <@global:b32>
prefetchu.L1 <@generic:b32>
@80,90: prefetch(|.const|.param).tensormap <@generic:b64>
@74,80: applypriority(|.global).L2::evict_normal <@global:b32>, 128
@74,80: discard(|.global).L2 <@global:b32>, 128
@74,80: createpolicy.fractional(.L2::evict_last|.L2::evict_normal|.L2::evict_first|.L2::evict_unchanged)(|.L2::evict_first|.L2::evict_unchanged).b64 <b64!>(|, 1.0|, 0.5)
@74,80: createpolicy.range(|.global)(.L2::evict_last|.L2::evict_first)(|.L2::evict_unchanged).b64 <b64!>, <@global:b32>, <u32>, <u32>
@74,80: createpolicy.cvt.L2.b64 <b64!>, <b64!>
@71,80: (alloca(T=.u64) <T!>, <u64>|stacksave.u64 <u64!>|stackrestore.u64 <u64!>)
@73,52: (alloca(T=.u64) <T!>, <u64>|stacksave.u64 <u64!>|stackrestore.u64 <u64!>)
"""

ATOMIC = """
@60,70: atom(|.relaxed|.acquire|.release|.acq_rel)(|.cta|.gpu|.sys|@78,90:.cluster)(S=|.global|.shared)(.add|.min|.max)(T=.u32|.s32|.u64) <T!>, <@S:T>, <T>
atom(S=|.global|.shared)(.min|.max|.inc|.dec)(T=.u32) <T!>, <@S:T>, <T>
atom(S=|.global|.shared)(.min|.max).s64 <s64!>, <@S:s64>, <s64>
atom(|.gpu)(S=|.global|.shared)(.and|.or|.xor|.exch)(T=.b32|.b64) <T!>, <@S:T>, <T>
atom(|@60,70:.relaxed.gpu|.sys)(S=|.global|.shared).cas(T=.b32|.b64|@63,70:.b16) <T!>, <@S:T>, <T!>, <T>
atom(S=|.global|.shared).add(T=.f32|.f64) <T!>, <@S:T>, <T>
@63,70: atom(S=|.global|.shared).add.noftz(T=.f16|.f16x2) <T!>, <@S:T>, <T!>
@78,90: atom(S=|.global|.shared).add.noftz(T=.bf16|.bf16x2) <T!>, <@S:T>, <T!>
@83,90: atom(S=|.global|.shared)(.exch).b128 <b128!>, <@S:v>, <b128!>
@83,90: atom(S=|.global|.shared).cas.b128 <b128!>, <@S:v>, <b128!>, <b128!>
@81,90: atom.global(V=.v2|.v4).add.f32 <f32*V!>, <@global:v>, <f32*V!>
@81,90: atom.global(V=.v2|.v4|.v8)(.add|.min|.max).noftz(T=.f16|.bf16) <T*V!>, <@global:v>, <T*V!>
@74,80: atom(|.global)(.add).L2::cache_hint(T=.u32|.f32) <T!>, <@global:T>, <T>, <b64!>
@60,70: red(|.relaxed|.release)(|.cta|.gpu|.sys|@78,90:.cluster)(S=|.global|.shared)(.add|.min|.max)(T=.u32|.s32|.u64) <@S:T>, <T>
red(S=|.global|.shared)(.and|.or|.xor)(T=.b32|.b64) <@S:T>, <T>
red(S=|.global|.shared)(.inc|.dec).u32 <@S:u32>, <u32>
red(S=|.global|.shared).add(T=.f32|.f64) <@S:T>, <T>
@63,70: red(S=|.global|.shared).add.noftz(T=.f16|.f16x2) <@S:T>, <T!>
@81,90: red.global(V=.v2|.v4).add.f32 <@global:v>, <f32*V!>
@81,90: red.global(V=.v2|.v4).add.noftz(T=.f16x2|.bf16x2) <@global:v>, <T*V!>
"""

BARRIER = """
(bar|barrier).sync <#0,15>(|, 96)
bar.sync <#0,15>(|, 64|, 128)
bar.sync <u32!>(|, <u32!>)
(bar|barrier).arrive <#0,15>, (32|64|<u32!>)
(bar|barrier).red.popc.u32 <u32!>, <#0,15>(|, 64), (|!)<pred!>
(bar|barrier).red(.and|.or).pred <pred!>, <#0,15>(|, 64), (|!)<pred!>
@78,50: barrier.cta.sync(|.aligned) <#0,15>
@78,50: barrier.cta.red.popc(|.aligned).u32 <u32!>, <#0,15>, <pred!>
barrier.sync.aligned <#0,15>(|, 64)
bar.warp.sync <b32>
@78,90: barrier.cluster.arrive(|.release|@80,90:.relaxed)(|.aligned)
@78,90: barrier.cluster.wait(|.acquire)(|.aligned)
membar(.cta|.gl|.sys)
@60,70: fence(|.sc|.acq_rel)(.cta|.gpu|.sys|@78,90:.cluster)
@86,90: fence(.acquire|.release)(.cta|.gpu|.sys|.cluster)
@80,70: fence.proxy(.alias|@80,90:.async|@80,90:.async.global|@80,90:.async.shared::cta)
@80,90: fence.mbarrier_init.release.cluster
@83,90: fence.proxy.tensormap::generic.release(.cta|.cluster|.gpu|.sys)
@83,90: fence.proxy.tensormap::generic.acquire(.cta|.gpu|.sys) <@generic:v>, 128
@70,80: mbarrier.init(|.shared).b64 <@shared:b64>, (1|128|<u32!>)
@70,80: mbarrier.inval(|.shared).b64 <@shared:b64>
@70,80: mbarrier.arrive(|.shared).b64 <b64!>, <@shared:b64>(|@78,90:, (1|5|<u32!>))
@70,80: mbarrier.arrive.noComplete(|.shared).b64 <b64!>, <@shared:b64>, (1|3|<u32!>)
@70,80: mbarrier.arrive_drop(|.shared).b64 <b64!>, <@shared:b64>
@80,90: mbarrier.arrive(|.release.cta|.release.cluster)(.shared::cluster).b64 _, <@shared:b64>(|, <u32>)
@80,90: mbarrier.arrive.expect_tx(|.release.cta|@86,90:.relaxed.cta)(|.shared|.shared::cta).b64 (_|<b64!>), <@shared:b64>, <u32>
@80,90: mbarrier.expect_tx(|.relaxed.cta|.relaxed.cluster)(|.shared|.shared::cta).b64 <@shared:b64>, <u32>
@80,90: mbarrier.complete_tx(|.relaxed.cta|.relaxed.cluster)(|.shared|.shared::cta).b64 <@shared:b64>, <u32>
@70,80: mbarrier.test_wait(|.shared).b64 <pred!>, <@shared:b64>, <b64!>
@71,80: mbarrier.test_wait.parity(|.shared).b64 <pred!>, <@shared:b64>, (0|1|<u32!>)
@78,90: mbarrier.try_wait(|@80,90:.acquire.cta|@80,90:.acquire.cluster)(|.shared).b64 <pred!>, <@shared:b64>, <b64!>(|, <u32>)
@78,90: mbarrier.try_wait.parity(|.shared|.shared::cta).b64 <pred!>, <@shared:b64>, (0|1|<u32!>)(|, <u32>)
@70,80: mbarrier.pending_count.b64 <u32!>, <b64!>
@70,80: cp.async.mbarrier.arrive(|.noinc)(|.shared).b64 <@shared:b64>
"""

ASYNC = """
@70,80: cp.async.ca.shared.global(|@74,80:.L2::128B) <@shared:v>, <@global:v>, (4|8|16)
@70,80: cp.async.cg.shared.global(|@74,80:.L2::64B) <@shared:v>, <@global:v>, 16
@70,80: cp.async.ca.shared.global <@shared:v>, <@global:v>, (4|8|16), (0|4|<u32!>|@75,80:<pred!>)
@74,80: cp.async.cg.shared.global.L2::cache_hint <@shared:v>, <@global:v>, 16(|, 0|, <u32!>), <b64!>
@70,80: cp.async.commit_group
@70,80: cp.async.wait_group <#0,7>
@70,80: cp.async.wait_all
@80,90: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes <@shared:v>, <@global:v>, (16|64|<u32!>), <@shared:b64>
@80,90: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster <@shared:v>, <@global:v>, <u32!>, <@shared:b64>, <b16!>
@80,90: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint <@shared:v>, <@global:v>, 128, <@shared:b64>, <b64!>
@86,90: cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes <@shared:v>, <@global:v>, (16|<u32!>), <@shared:b64>
@80,90: cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes <@shared:v>, <@shared:v>, (16|<u32!>), <@shared:b64>
@80,90: cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint <@global:v>, <@shared:v>, 32, <b64!>
@80,90: cp.async.bulk.global.shared::cta.bulk_group <@global:v>, <@shared:v>, (32|<u32!>)
@86,100: cp.async.bulk.global.shared::cta.bulk_group.cp_mask <@global:v>, <@shared:v>, 32, <b16!>
@80,90: cp.async.bulk.prefetch.L2.global(.L2::cache_hint <@global:v>, (32|<u32!>), <b64!>| <@global:v>, (32|<u32!>))
@80,90: cp.async.bulk.commit_group
@80,90: cp.async.bulk.wait_group(|.read) <#0,7>
@80,90: cp.reduce.async.bulk.global.shared::cta.bulk_group(.add|.min|.max)(.u32|.s32|.u64) <@global:v>, <@shared:v>, <u32!>
@80,90: cp.reduce.async.bulk.global.shared::cta.bulk_group(.add.f32|.add.f64|.add.noftz.f16|.min.bf16|.and.b32|.inc.u32) <@global:v>, <@shared:v>, 64
@80,90: cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes(.add.u32|.add.s32|.add.u64|.and.b32|.inc.u32) <@shared:v>, <@shared:v>, <u32!>, <@shared:b64>
@80,90: cp.async.bulk.tensor.(N=1d|2d|3d|4d|5d).shared::cluster.global(|.tile).mbarrier::complete_tx::bytes <@shared:v>, [<u64!>, <s32*N!>], <@shared:b64>
@80,90: cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster <@shared:v>, [<u64!>, <s32*2!>], <@shared:b64>, <b16!>
@80,90: cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes <@shared:v>, [<u64!>, <s32*4!>], <@shared:b64>, <b16*2!>
@80,90: cp.async.bulk.tensor.(N=1d|2d|3d).global.shared::cta(|.tile).bulk_group [<u64!>, <s32*N!>], <@shared:v>
@80,90: cp.async.bulk.prefetch.tensor.(N=1d|2d|5d).L2.global(|.tile) [<u64!>, <s32*N!>]
@80,90: cp.reduce.async.bulk.tensor.(N=1d|2d|3d).global.shared::cta(.add|.min|.max|.and|.inc)(|.tile).bulk_group [<u64!>, <s32*N!>], <@shared:v>
@83,90a: tensormap.replace.tile(.global_address.global.b1024.b64 <@global:v>, <b64!>|.rank.shared::cta.b1024.b32 <@shared:v>, <b32!>|.box_dim.global.b1024.b32 <@global:v>, <#0,4>, <b32!>|.swizzle_mode.global.b1024.b32 <@global:v>, <#0,3>)
@78,90: griddepcontrol(.launch_dependents|.wait)
@86,100: clusterlaunchcontrol.try_cancel.async(|.shared::cta).mbarrier::complete_tx::bytes(|.multicast::cluster::all).b128 <@shared:v>, <@shared:b64>
@86,100: clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 <pred!>, <b128!>
@86,100: clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 <b32!>, <b128!>
@80,90a: setmaxnreg(.inc|.dec).sync.aligned.u32 (24|40|128|232)
@81,90: multimem.ld_reduce(|.weak|.relaxed.gpu|.acquire.sys).global(.add|.min|.max)(T=.u32|.s32|.u64) <T!>, <@global:T>
@81,90: multimem.ld_reduce.global.add(|.acc::f32)(V=|.v2|.v4)(T=.f16x2|.bf16x2) <T*V!>, <@global:v>
@81,90: multimem.st(|.weak|.release.gpu).global(V=|.v2|.v4).f32 <@global:v>, <f32*V!>
@81,90: multimem.red(|.relaxed.gpu).global(.add.u32|.and.b32|.min.s32) <@global:b32>, <b32!>
"""

CONTROL = """
bra(|.uni) <=label>
<=guard>bra <=label>
<=guard>exit
<=guard>ret(|.uni)
<=guard>trap
brkpt
pmevent <#0,15>
@63,70: nanosleep.u32 <u32>
"""

IMAGE = """
tex.1d.v4(.s32|.f32|.u32).s32 <b32*4!>, [<=texture>, {<s32!>}]
tex(.1d.v4(.s32|.f32).f32 <b32*4!>, [<=texture>, {<f32!>}]|.level.1d.v4.f32.f32 <f32*4!>, [<=texture>, {<f32!>}], <f32!>|.grad.1d.v4.u32.f32 <b32*4!>, [<=texture>, {<f32!>}], {<f32!>}, {<f32!>})
tex.1d.v4.f32.f32 <f32*4!>, [<=texture>, <f32!>]
tex.2d.v4(.s32|.f32|.u32)(T=.s32|.f32) <b32*4!>, [<=texture>, <T*2!>]
tex.level.2d.v4.f32.f32 <f32*4!>, [<=texture>, <f32*2!>], <f32!>
tex.grad.2d.v4.f32.f32 <f32*4!>, [<=texture>, <f32*2!>], <f32*2!>, <f32*2!>
tex.3d.v4.f32(T=.s32|.f32) <f32*4!>, [<=texture>, <T*4!>]
tex.a1d.v4.f32.s32 <f32*4!>, [<=texture>, {<u32!>, <s32!>}]
tex.a2d.v4.f32.f32 <f32*4!>, [<=texture>, {<u32!>, <f32!>, <f32!>, <f32!>}]
tex.cube.v4.f32.f32 <f32*4!>, [<=texture>, <f32*4!>]
tld4(.r|.g|.b|.a).2d.v4(.f32|.s32|.u32).f32 <b32*4!>, [<=texture>, <f32*2!>]
txq(.width|.height|.depth|.channel_data_type|.channel_order|.normalized_coords|.num_mipmap_levels).b32 <b32!>, [<=texture>]
suq(.width|.height|.depth|.channel_data_type|.channel_order|.array_size).b32 <b32!>, [<=surface>]
suld.b.1d(|.ca|.cg|.cs|.cv)(V=|.v2|.v4)(T=.b8|.b16|.b32)(.trap|.clamp|.zero) <T*V!>, [<=surface>, {<s32!>}]
suld.b.2d(V=|.v2)(T=.b32|.b64).trap <T*V!>, [<=surface>, <s32*2!>]
sust.b.1d(|.wb|.cg|.cs|.wt)(V=|.v2|.v4)(T=.b8|.b16|.b32)(.trap|.clamp|.zero) [<=surface>, {<s32!>}], <T*V!>
sust.b.3d(V=|.v2).b32.trap [<=surface>, <s32*4!>], <b32*V!>
sust.p.2d.v4.b32.trap [<=surface>, <s32*2!>], <b32*4!>
sured.b.1d(.add|.min|.max)(T=.u32|.s32|.u64).trap [<=surface>, {<s32!>}], <T!>
sured.b.2d(.and|.or).b32.clamp [<=surface>, <s32*2!>], <b32!>
istypep(.texref|.samplerref|.surfref) <pred!>, <u64!>
"""

FAMILIES = {"load_store": LOAD_STORE, "atomic": ATOMIC, "barrier": BARRIER, "async": ASYNC,
            "control": CONTROL, "image": IMAGE}
