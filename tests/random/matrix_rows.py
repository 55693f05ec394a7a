# SPDX-License-Identifier: Apache-2.0
"""Matrix instructions and tensor memory, as the PTX manual describes them."""

MATRIX = """
@65,75: ldmatrix.sync.aligned.m8n8(X=.x1|.x2|.x4)(|.trans)(|.shared|@78,75:.shared::cta).b16 <b32*X!>, <@shared:v>
@86,100f/120f: ldmatrix.sync.aligned.m16n16(.x1.trans.shared.b8 <b32*2!>|.x2.trans.shared.b8 <b32*4!>), <@shared:v>
@86,100f/120f: ldmatrix.sync.aligned.m16n16(.x1).trans.shared.b8x16(.b6x16_p32|.b4x16_p64) <b32*2!>, <@shared:v>
@86,100f/120f: ldmatrix.sync.aligned.m8n16(X=.x1|.x2|.x4).shared.b8x16(.b6x16_p32|.b4x16_p64) <b32*X!>, <@shared:v>
@78,90: stmatrix.sync.aligned.m8n8(X=.x1|.x2|.x4)(|.trans)(|.shared|.shared::cta).b16 <@shared:v>, <b32*X!>
@86,100f/120f: stmatrix.sync.aligned.m16n8(X=.x1|.x2|.x4).trans.shared.b8 <@shared:v>, <b32*X!>
@78,75: movmatrix.sync.aligned.m8n8.trans.b16 <b32!>, <b32!>
@65,75: mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 <f32*4!>, <b32*2!>, <b32*1!>, <f32*4!>
@65,75: mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 <b32*2!>, <b32*2!>, <b32*1!>, <b32*2!>
@64,70: mma.sync.aligned.m8n8k4(.row|.col)(.row|.col).f32.f16.f16.f32 <f32*8!>, <b32*2!>, <b32*2!>, <f32*8!>
@64,70: mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 <b32*4!>, <b32*2!>, <b32*2!>, <b32*4!>
@70,80: mma.sync.aligned.m16n8k16.row.col.f32(.f16.f16|.bf16.bf16).f32 <f32*4!>, <b32*4!>, <b32*2!>, <f32*4!>
@70,80: mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 <b32*2!>, <b32*4!>, <b32*2!>, <b32*2!>
@70,80: mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 <f32*4!>, <b32*2!>, <b32*1!>, <f32*4!>
@70,80: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 <f32*4!>, <b32*4!>, <b32*2!>, <f32*4!>
@70,80: mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 <f64*2!>, <f64*1!>, <f64*1!>, <f64*2!>
@78,90: mma.sync.aligned.m16n8k(8.row.col.f64.f64.f64.f64 <f64*4!>, <f64*4!>, <f64*2!>, <f64*4!>|4.row.col.f64.f64.f64.f64 <f64*4!>, <f64*2!>, <f64*1!>, <f64*4!>)
@65,75: mma.sync.aligned.m8n8k16.row.col(|.satfinite).s32(.u8|.s8)(.u8|.s8).s32 <s32*2!>, <b32*1!>, <b32*1!>, <s32*2!>
@70,80: mma.sync.aligned.m16n8k16.row.col(|.satfinite).s32(.u8|.s8)(.u8|.s8).s32 <s32*4!>, <b32*2!>, <b32*1!>, <s32*4!>
@70,80: mma.sync.aligned.m16n8k32.row.col(|.satfinite).s32(.u8|.s8)(.u8|.s8).s32 <s32*4!>, <b32*4!>, <b32*2!>, <s32*4!>
@70,80: mma.sync.aligned.m16n8k64.row.col(|.satfinite).s32(.u4|.s4)(.u4|.s4).s32 <s32*4!>, <b32*4!>, <b32*2!>, <s32*4!>
@70,80: mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32(.xor|@71,80:.and).popc <s32*4!>, <b32*4!>, <b32*2!>, <s32*4!>
@84,89: mma.sync.aligned.m16n8k32.row.col.f32(.e4m3|.e5m2)(.e4m3|.e5m2).f32 <f32*4!>, <b32*4!>, <b32*2!>, <f32*4!>
@87,120f: mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32(.e4m3|.e5m2|.e3m2|.e2m3|.e2m1)(.e4m3|.e2m1).f32 <f32*4!>, <b32*4!>, <b32*2!>, <f32*4!>
@87,120f: mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32(.e4m3|.e2m1)(.e4m3|.e5m2).f32.ue8m0 <f32*4!>, <b32*4!>, <b32*2!>, <f32*4!>, <b32!>, {<#0,3>, <#0,1>}, <b32!>, {<#0,3>, 0}
@87,120f: mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 <f32*4!>, <b32*4!>, <b32*2!>, <f32*4!>, <b32!>, {0, <#0,1>}, <b32!>, {0, 0}
@71,80: mma.sp.sync.aligned.m16n8k(16.row.col.f32(.f16.f16|.bf16.bf16).f32 <f32*4!>, <b32*2!>, <b32*2!>|32.row.col.f32.f16.f16.f32 <f32*4!>, <b32*4!>, <b32*4!>), <f32*4!>, <b32!>, <#0,1>
@85,80: mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 <f32*4!>, <b32*4!>, <b32*4!>, <f32*4!>, <b32!>, <#0,1>
@71,80: mma.sp.sync.aligned.m16n8k32.row.col.s32(.u8|.s8)(.u8|.s8).s32 <s32*4!>, <b32*2!>, <b32*2!>, <s32*4!>, <b32!>, <#0,1>
@60,70: wmma.load(.a|.b).sync.aligned(.row|.col).m16n16k16(|.shared|.global).f16 <b32*8!>, <@shared:v>(|, <u32>)
@60,70: wmma.load.c.sync.aligned(.row|.col).m16n16k16(|.global).f32 <f32*8!>, <@global:v>(|, <u32>)
@60,70: wmma.store.d.sync.aligned(.row|.col).m16n16k16(|.global).f32 <@global:v>, <f32*8!>(|, <u32>)
@60,70: wmma.store.d.sync.aligned(.row|.col)(.m8n32k16|.m32n8k16).global.f16 <@global:v>, <b32*4!>, <u32>
@60,70: wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k16.f32.f32 <f32*8!>, <b32*8!>, <b32*8!>, <f32*8!>
@60,70: wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 <b32*4!>, <b32*8!>, <b32*8!>, <b32*4!>
@63,72: wmma.mma.sync.aligned.row.col.m16n16k16.s32(.u8.u8|.s8.s8).s32(|.satfinite) <s32*8!>, <b32*2!>, <b32*2!>, <s32*8!>
@70,80: wmma.mma.sync.aligned.row.col.m8n8k4(|.rn|.rz).f64.f64.f64.f64 <f64*2!>, <f64*1!>, <f64*1!>, <f64*2!>
@80,90a: wgmma.fence.sync.aligned
@80,90a: wgmma.commit_group.sync.aligned
@80,90a: wgmma.wait_group.sync.aligned <#0,7>
@80,90a: wgmma.mma_async.sync.aligned.m64n8k16.f32(.f16.f16|.bf16.bf16) <f32*4!>, <b64!>, <b64!>, (1|<pred!>), <=sign>, <=sign>, (0|1), (0|1)
@80,90a: wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 <f32*8!>, <b32*4!>, <b64!>, (1|<pred!>), <=sign>, <=sign>, (0|1)
@80,90a: wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 <b32*2!>, <b64!>, <b64!>, <pred!>, <=sign>, <=sign>, (0|1), (0|1)
@80,90a: wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 <f32*4!>, <b64!>, <b64!>, <pred!>, <=sign>, <=sign>
@80,90a: wgmma.mma_async.sync.aligned.m64n8k32.f32(.e4m3|.e5m2)(.e4m3|.e5m2) <f32*4!>, <b64!>, <b64!>, <pred!>, <=sign>, <=sign>
@80,90a: wgmma.mma_async.sync.aligned.m64n16k32.s32(.u8|.s8)(.u8|.s8)(|.satfinite) <s32*8!>, <b64!>, <b64!>, <pred!>
@82,90a: wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 <f32*4!>, <b64!>, <b64!>, <b32!>, <#0,1>, <pred!>, <=sign>, <=sign>, 0, 1
"""

TENSOR_MEMORY = """
@86,100f: tcgen05.alloc(A=.cta_group::1|.cta_group::2).sync.aligned(|.shared::cta).b32 <@shared:b32>, (32|64|512|<u32!>)
@86,100f: tcgen05.dealloc.cta_group::1.sync.aligned.b32 <b32!>, (32|<u32!>)
@86,100f: tcgen05.relinquish_alloc_permit(.cta_group::1|.cta_group::2).sync.aligned
@86,100f: tcgen05.fence(::before_thread_sync|::after_thread_sync)
@86,100f: tcgen05.wait(::ld|::st).sync.aligned
@86,100f: tcgen05.ld.sync.aligned.32x32b(X=.x1|.x2|.x4|.x8)(|.pack::16b).b32 <b32*X!>, [<b32!>]
@86,100f: tcgen05.ld.sync.aligned(.16x64b.x2|.16x128b.x1)(|.pack::16b).b32 <b32*2!>, [<b32!>]
@86,100f: tcgen05.ld.sync.aligned.16x256b.x1.b32 <b32*4!>, [<b32!>]
@86,100f: tcgen05.ld.sync.aligned.16x32bx2.x4.b32 <b32*4!>, [<b32!>], <#0,64>
@86,100f: tcgen05.st.sync.aligned.32x32b(X=.x1|.x2|.x4)(|.unpack::16b).b32 [<b32!>], <b32*X!>
@86,100f: tcgen05.cp(.cta_group::1|.cta_group::2)(.128x256b|.4x256b|.128x128b|.64x128b.warpx2::02_13|.32x128b.warpx4) [<b32!>], <b64!>
@86,100f: tcgen05.shift(.cta_group::1|.cta_group::2).down [<b32!>]
@86,100f: tcgen05.commit(.cta_group::1|.cta_group::2).mbarrier::arrive::one(|.shared::cluster).b64 <@shared:b64>
@86,100f: tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 <@shared:b64>, <b16!>
@86,100f: tcgen05.mma.cta_group::1(.kind::f16|.kind::tf32|.kind::f8f6f4|@86,100a:.kind::i8) [<b32!>], <b64!>, <b64!>, <b32!>, <pred!>
@86,100f: tcgen05.mma.cta_group::1.kind::f16 [<b32!>], [<b32!>], <b64!>, <b32!>, <b32*4!>, <pred!>
@86,100f: tcgen05.mma.cta_group::2(.kind::f16|.kind::tf32) [<b32!>], <b64!>, <b64!>, <b32!>, <b32*8!>, <pred!>(|, <#0,15>)
@86,100f: tcgen05.mma.sp.cta_group::1.kind::f16 [<b32!>], <b64!>, <b64!>, [<b32!>], <b32!>, <pred!>
@86,100f: tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale(|@86,100f:.scale_vec::1X|@88,100f:.block32) [<b32!>], <b64!>, <b64!>, <b32!>, [<b32!>], [<b32!>], <pred!>
@86,100f: tcgen05.mma.ws.cta_group::1(.kind::f16|.kind::tf32)(|.collector::b0::fill|.collector::b1::use) [<b32!>], <b64!>, <b64!>, <b32!>, <pred!>(|, <b64!>)
"""

FAMILIES = {"matrix": MATRIX, "tensor_memory": TENSOR_MEMORY}
