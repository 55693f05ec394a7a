# SPDX-License-Identifier: Apache-2.0
"""Statements on numbers, as the PTX manual describes them (grammar.py reads the rows)."""

INTEGER = """
(add|sub)(T=.u16|.s16|.u32|.s32|.u64|.s64) <T!>, <T>, <T>
(add|sub).sat.s32 <s32!>, <s32>, <s32>
@80,90: add(T=.u16x2|.s16x2) <T!>, <T!>, <T!>
(add|sub|addc|subc).cc(T=.u32|.s32|@43,20:.u64|@43,20:.s64) <T!>, <T>, <T>
(addc|subc)(T=.u32|.s32|.u64|.s64) <T!>, <T>, <T>
mul(.lo|.hi)(T=.u16|.s16|.u32|.s32|.u64|.s64) <T!>, <T>, <T>
mul.wide(T=.u16|.s16|.u32|.s32) <T+!>, <T>, <T>
mad(.lo|.hi)(T=.u16|.s16|.u32|.s32|.u64|.s64) <T!>, <T>, <T>, <T>
mad.wide(T=.u16|.s16|.u32|.s32) <T+!>, <T>, <T>, <T+>
(mad|mad24).hi.sat.s32 <s32!>, <s32>, <s32>, <s32>
mad(.lo|.hi).cc(T=.u32|.s32|.u64|.s64) <T!>, <T>, <T>, <T>
madc(.lo|.hi)(|.cc)(T=.u32|.s32|.u64|.s64) <T!>, <T>, <T>, <T>
mul24(.lo|.hi)(T=.u32|.s32) <T!>, <T>, <T>
mad24(.lo|.hi)(T=.u32|.s32) <T!>, <T>, <T>, <T>
sad(T=.u16|.s16|.u32|.s32|.u64|.s64) <T!>, <T>, <T>, <T>
(div|rem)(T=.u16|.s16|.u32|.s32|.u64|.s64) <T!>, <T>, <T>
(abs|neg)(T=.s16|.s32|.s64) <T!>, <T>
(min|max)(T=.u16|.s16|.u32|.s32|.u64|.s64|@80,90:.u16x2) <T!>, <T>, <T!>
@80,90: (min|max)(.relu|)(T=.s16x2|.s32) <T!>, <T!>, <T!>
(popc|clz)(T=.b32|.b64) <u32!>, <T>
bfind(|.shiftamt)(T=.u32|.s32|.u64|.s64) <u32!>, <T>
fns.b32 <b32!>, <b32>, <b32>, <s32>
brev(T=.b32|.b64) <T!>, <T>
bfe(T=.u32|.s32|.u64|.s64) <T!>, <T>, (<#0,64>|<u32!>), (<#0,255>|<u32!>)
bfi(T=.b32|.b64) <T!>, <T>, <T>, (<#0,64>|<u32!>), (<#0,255>|<u32!>)
@76,70: szext(.clamp|.wrap)(T=.u32|.s32) <T!>, <T>, <u32>
@76,70: bmsk(.clamp|.wrap).b32 <b32!>, <u32>, <u32>
@50,61: dp4a(A=.u32|.s32)(B=.u32|.s32) <s32!>, <b32>, <b32>, <s32>
@50,61: dp2a(.lo|.hi)(.u32|.s32)(.u32|.s32) <s32!>, <b32>, <b32>, <s32>
"""

FLOAT = """
testp(.finite|.infinite|.number|.notanumber|.normal|.subnormal)(T=.f32|.f64) <pred!>, <T>
copysign(T=.f32|.f64) <T!>, <T>, <T>
(add|sub|mul)(|.rn|.rz|.rm|.rp)(|.ftz)(|.sat).f32 <f32!>, <f32>, <f32>
(add|sub|mul)(|.rn|.rz|.rm|.rp).f64 <f64!>, <f64>, <f64>
@86,100: (add|sub|mul)(|.rn|.rz|.rm|.rp)(|.ftz).f32x2 <f32x2!>, <f32x2!>, <f32x2!>
@86,100: fma(.rn|.rz|.rm|.rp)(|.ftz).f32x2 <f32x2!>, <f32x2!>, <f32x2!>, <f32x2!>
@86,100: (add|sub)(|.rn|.rz|.rm|.rp)(|.sat).f32(T=.f16|.bf16) <f32!>, <T!>, <f32!>
@86,100: fma(.rn|.rz|.rm|.rp)(|.sat).f32(T=.f16|.bf16) <f32!>, <T!>, <T!>, <f32!>
(fma|mad)(.rn|.rz|.rm|.rp)(|.ftz)(|.sat).f32 <f32!>, <f32>, <f32>, <f32>
(fma|mad)(.rn|.rz|.rm|.rp).f64 <f64!>, <f64>, <f64>, <f64>
div(.approx|.full|.rn|.rz|.rm|.rp)(|.ftz).f32 <f32!>, <f32>, <f32>
div(.rn|.rz|.rm|.rp).f64 <f64!>, <f64>, <f64>
(abs|neg)(|.ftz).f32 <f32!>, <f32>
(abs|neg).f64 <f64!>, <f64>
(min|max)(|.ftz)(|@70,80:.NaN)(|@72,86:.xorsign.abs).f32 <f32!>, <f32>, <f32>
@88,100: (min|max)(|.ftz)(|.NaN)(|.abs).f32 <f32!>, <f32>, <f32>, <f32>
(min|max).f64 <f64!>, <f64>, <f64>
(rcp|sqrt)(.approx|.rn|.rz|.rm|.rp)(|.ftz).f32 <f32!>, <f32>
(rcp|sqrt)(.rn|.rz|.rm|.rp).f64 <f64!>, <f64>
rcp.approx.ftz.f64 <f64!>, <f64>
rsqrt.approx(|.ftz).f32 <f32!>, <f32>
rsqrt.approx(|.ftz).f64 <f64!>, <f64>
(sin|cos|lg2|ex2).approx(|.ftz).f32 <f32!>, <f32>
@70,75: tanh.approx.f32 <f32!>, <f32>
@60,53: (add|sub|mul)(|.rn)(|.ftz)(|.sat)(T=.f16|.f16x2) <T!>, <T!>, <T!>
@78,90: (add|sub|mul)(|.rn)(T=.bf16|.bf16x2) <T!>, <T!>, <T!>
@60,53: fma.rn(|.ftz)(|.sat|@70,80:.relu)(T=.f16|.f16x2) <T!>, <T!>, <T!>, <T!>
@70,80: fma.rn(|.relu)(T=.bf16|.bf16x2) <T!>, <T!>, <T!>, <T!>
@81,90: fma.rn.oob(|.relu)(T=.f16|.f16x2|.bf16|.bf16x2) <T!>, <T!>, <T!>, <T!>
@60,53: (neg|abs)(|.ftz)(T=.f16|.f16x2) <T!>, <T!>
@70,80: (neg|abs)(T=.bf16|.bf16x2) <T!>, <T!>
@70,80: (min|max)(|.ftz)(|.NaN)(|@72,86:.xorsign.abs)(T=.f16|.f16x2) <T!>, <T!>, <T!>
@70,80: (min|max)(|.NaN)(|@72,86:.xorsign.abs)(T=.bf16|.bf16x2) <T!>, <T!>, <T!>
@70,75: (tanh|ex2).approx(T=.f16|.f16x2) <T!>, <T!>
@78,90: tanh.approx(T=.bf16|.bf16x2) <T!>, <T!>
@78,90: ex2.approx.ftz(T=.bf16|.bf16x2) <T!>, <T!>
"""

COMPARE = """
set(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan)(|.ftz)(D=.u32|.s32|.f32).f32 <D!>, <f32>, <f32>
set(.eq|.ne|.lt|.ge|.lo|.hs)(D=.u32|.s32|.f32)(T=.u16|.u32|.u64) <D!>, <T>, <T>
set(.eq|.ne)(D=.u32|.s32|.f32)(T=.b16|.b32|.b64) <D!>, <T>, <T>
set(.eq|.ne|.lt|.nan)(.and|.or|.xor)(D=.u32|.s32|.f32).f64 <D!>, <f64>, <f64>, (|!)<pred!>
set(.eq|.lt|.ge)(D=.u32|.f32).s32 <D!>, <s32>, <s32>
@65,53: set(.lt|.le|.gtu|.num)(|.ftz)(D=.f16|.u16|.s16|.u32|.s32).f16 <D!>, <f16!>, <f16!>
@60,53: set(.lt|.le|.gtu|.num)(|.ftz).f16x2.f16x2 <f16x2!>, <f16x2!>, <f16x2!>
@78,90: set(.lt|.le|.gtu|.num)(D=.bf16|.u16|.s16|.u32|.s32).bf16 <D!>, <bf16!>, <bf16!>
setp(.eq|.ne|.lt|.le|.gt|.ge)(T=.s16|.u16|.s32|.u32|.s64|.u64|.f32|.f64) <pred!>, <T>, <T>
setp(.lo|.ls|.hi|.hs)(T=.u16|.u32|.u64) <pred!>, <T>, <T>
setp(.eq|.ne)(T=.b16|.b32|.b64) <pred!>, <T>, <T>
setp(.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan)(|.ftz).f32 <pred!>|<pred!>, <f32>, <f32>
setp(.equ|.neu|.ltu|.geu|.num|.nan)(.and|.or|.xor).f64 <pred!>|<pred!>, <f64>, <f64>, (|!)<pred!>
setp(.lt|.ge)(.and|.or|.xor).s32 <pred!>, <s32>, <s32>, (|!)<pred!>
@60,53: setp(.lt|.ge|.num|.neu)(|.ftz).f16 <pred!>, <f16!>, <f16!>
@60,53: setp(.lt|.ge|.num|.neu)(|.ftz).f16x2 <pred!>|<pred!>, <f16x2!>, <f16x2!>
@78,90: setp(.lt|.ge|.num|.neu).bf16 <pred!>, <bf16!>, <bf16!>
@78,90: setp(.lt|.ge|.num|.neu).bf16x2 <pred!>|<pred!>, <bf16x2!>, <bf16x2!>
selp(T=.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64) <T!>, <T>, <T>, <pred!>
slct(T=.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64).s32 <T!>, <T>, <T>, <s32>
slct(|.ftz)(T=.b16|.b32|.b64|.u16|.u32|.s64|.f32|.f64).f32 <T!>, <T>, <T>, <f32>
"""

LOGIC = """
(and|or|xor)(T=.b16|.b32|.b64) <T!>, <T>, <T>
(and|or|xor).pred <pred!>, <pred!>, <pred!>
not(T=.b16|.b32|.b64|.pred) <T!>, <T!>
cnot(T=.b16|.b32|.b64) <T!>, <T>
lop3.b32 <b32!>, <b32>, <b32>, <b32>, <#0,255>
@82,70: lop3(.and|.or).b32 <b32!>|<pred!>, <b32>, <b32>, <b32>, <#0,255>, (|!)<pred!>
@82,70: lop3(.and|.or).b32 _|<pred!>, <b32>, <b32>, <b32>, <#0,255>, <pred!>
shf(.l|.r)(.clamp|.wrap).b32 <b32!>, <b32>, <b32>, <u32>
shl(T=.b16|.b32|.b64) <T!>, <T>, <u32>
shr(T=.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64) <T!>, <T>, <u32>
"""

MOVE = """
mov(T=.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64|@83,70:.b128) <T!>, <T!>
mov(T=.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64) <T!>, <T>
mov.pred <pred!>, <pred!>
mov.pred <pred!>, (0|1)
mov.u32 <u32!>, <%32>
mov.u64 <u64!>, <%64>
mov(.u64|.b64) <u64!>, <=variable>
mov.u32 <u32!>, <=shared>
mov.u64 <u64!>, <=function>
mov.b32 <b32!>, <b16*2!>
mov.b32 <b16*2!>, <b32!>
mov.b32 <b32!>, {%b8_1, %b8_2, %b8_0, %b8_3}
mov.b64 <b64!>, <b32*2!>
mov.b64 <b64!>, <b16*4!>
mov.b64 <b32*2!>, <b64!>
mov.b64 <b16*4!>, <b64!>
@83,70: mov.b128 <b128!>, <b64*2!>
@83,70: mov.b128 <b64*2!>, <b128!>
@71,50: mov.b64 {<b32!>, _}, <b64!>
@71,50: mov.b64 {_, <b32!>}, <b64!>
prmt.b32 <b32!>, <b32>, <b32>, <b32>
prmt.b32(.f4e|.b4e|.rc8|.ecl|.ecr|.rc16) <b32!>, <b32>, <b32>, <b32>
shfl.sync(.up|.down|.bfly|.idx).b32 <b32!>, <b32!>, <b32>, <b32>, <b32>
shfl.sync(.up|.down|.bfly|.idx).b32 <b32!>|<pred!>, <b32!>, <b32>, <b32>, <b32>
vote.sync(.all|.any|.uni).pred <pred!>, (|!)<pred!>, <b32>
vote.sync.ballot.b32 <b32!>, (|!)<pred!>, <b32>
@60,70: match.any.sync(T=.b32|.b64) <b32!>, <T>, <b32>
@60,70: match.all.sync(T=.b32|.b64) <b32!>|<pred!>, <T>, <b32>
activemask.b32 <b32!>
@70,80: redux.sync(.add|.min|.max)(T=.u32|.s32) <T!>, <T!>, <b32>
@70,80: redux.sync(.and|.or|.xor).b32 <b32!>, <b32!>, <b32>
@86,100f: redux.sync(.min|.max)(|.abs)(|.NaN).f32 <f32!>, <f32!>, <b32>
@80,90: elect.sync <b32!>|<pred!>, <b32>
@80,90: elect.sync _|<pred!>, <b32>
cvta(.global|.shared|.local|.const).u64 <u64!>, <u64!>
cvta.to(.global|.shared|.local|.const).u64 <u64!>, <u64!>
@77,70: cvta(|.to).param.u64 <u64!>, <u64!>
cvta.global.u64 <u64!>, <=global>
cvta.shared.u64 <u64!>, <=shared>
isspacep(.global|.shared|.local|.const|@77,70:.param|@78,90:.shared::cluster|@78,30:.shared::cta) <pred!>, <u64!>
@78,90: mapa(|.shared::cluster).u64 <u64!>, <u64!>, <u32>
@78,90: mapa.shared::cluster.u32 <u32!>, <u32!>, <u32>
@78,90: getctarank(|.shared::cluster).u64 <u32!>, <u64!>
@78,90: getctarank.shared::cluster.u32 <u32!>, <u32!>
"""

CONVERT = """
cvt(D=.u8|.s8|.u16|.s16|.u32|.s32|.u64|.s64)(S=.u8|.s8|.u16|.s16|.u32|.s32|.u64|.s64) <D~!>, <S~!>
cvt.sat(.u8|.s8)(S=.s16|.u32|.s32|.u64|.s64) <u32!>, <S~!>
cvt.sat(.u16|.s16)(S=.u32|.s32|.u64) <u32!>, <S~!>
cvt.sat.u32(S=.s32|.s64) <u32!>, <S~!>
cvt(.rn|.rz|.rm|.rp)(D=.f16|.f32|.f64)(S=.u8|.s8|.u16|.s16|.u32|.s32|.u64|.s64) <D!>, <S~!>
cvt(.rni|.rzi|.rmi|.rpi)(D=.u8|.s8|.u16|.s16|.u32|.s32|.u64|.s64)(S=.f16|.f32|.f64) <D~!>, <S!>
cvt(.rni|.rzi|.rmi|.rpi)(|.ftz)(|.sat)(D=.u8|.s16|.u32|.s32|.f32).f32 <D~!>, <f32!>
cvt(.rn|.rz|.rm|.rp)(|.ftz)(|.sat).f32.f64 <f32!>, <f64!>
cvt(.rn|.rz|.rm|.rp)(|.ftz)(|.sat).f16.f32 <f16!>, <f32!>
cvt(.rn|.rz|.rm|.rp)(|.sat).f16.f64 <f16!>, <f64!>
cvt(|.ftz)(|.sat).f64.f32 <f64!>, <f32!>
cvt(|.ftz)(|.sat).f32.f16 <f32!>, <f16!>
cvt(|.sat).f64.f16 <f64!>, <f16!>
cvt(|.rni)(|.ftz)(|.sat).f32.f32 <f32!>, <f32!>
cvt(|.rzi)(|.sat).f64.f64 <f64!>, <f64!>
@70,80: cvt(.rn|.rz)(|.relu)(D=.f16x2|.bf16x2).f32 <D!>, <f32!>, <f32!>
@70,80: cvt(.rn|.rz)(|.relu)(D=.f16|.bf16).f32 <D!>, <f32!>
@71,80: cvt.f32.bf16 <f32!>, <bf16!>
@78,90: cvt(.rn|.rz|.rm|.rp)(D=.bf16)(S=.f16|.f64|.u16|.s16|.u32|.s32|.u64|.s64) <D!>, <S!>
@78,90: cvt(.rni|.rzi|.rmi|.rpi)(D=.u16|.s16|.u32|.s32|.u64|.s64).bf16 <D!>, <bf16!>
@78,90: cvt(|.rn).f16.bf16 <f16!>, <bf16!>
@78,90: cvt.f64.bf16 <f64!>, <bf16!>
@70,80: cvt.rna.tf32.f32 <tf32!>, <f32!>
@78,90: cvt(.rn|.rz)(|.relu).tf32.f32 <tf32!>, <f32!>
@81,80: cvt(.rna)(|.satfinite).tf32.f32 <tf32!>, <f32!>
@81,80: cvt(.rn|.rz)(|.relu).satfinite(D=.f16|.bf16).f32 <D!>, <f32!>
@81,80: cvt(.rn|.rz)(|.relu).satfinite(D=.f16x2|.bf16x2).f32 <D!>, <f32!>, <f32!>
@81,89: cvt.rn.satfinite(|.relu)(.e4m3x2|.e5m2x2).f32 <x16!>, <f32!>, <f32!>
@81,89: cvt.rn.satfinite(|.relu)(.e4m3x2|.e5m2x2).f16x2 <x16!>, <f16x2!>
@81,89: cvt.rn(|.relu).f16x2(.e4m3x2|.e5m2x2) <f16x2!>, <x16!>
@86,100f/120f: cvt.rn.satfinite(|.relu)(.e2m3x2|.e3m2x2).f32 <x16!>, <f32!>, <f32!>
@86,100f/120f: cvt.rn(|.relu).f16x2(.e2m3x2|.e3m2x2) <f16x2!>, <x16!>
@86,100f/120f: cvt(.rz|.rp)(|.satfinite).ue8m0x2.f32 <x16!>, <f32!>, <f32!>
@86,100f/120f: cvt(.rz|.rp)(|.satfinite).ue8m0x2.bf16x2 <x16!>, <bf16x2!>
@86,100f/120f: cvt.rn.bf16x2.ue8m0x2 <bf16x2!>, <x16!>
@87,100a/103a: cvt.rs(|.relu)(D=.f16x2|.bf16x2).f32 <D!>, <f32!>, <f32!>, <b32!>
@87,100a/103a: cvt.rs(|.relu).satfinite(.e4m3x4|.e5m2x4|.e2m3x4|.e3m2x4).f32 <b32!>, <f32*4!>, <b32!>
@87,100a/103a: cvt.rs(|.relu).satfinite.e2m1x4.f32 <x16!>, <f32*4!>, <b32!>
@65,72: cvt.pack.sat(D=.u16|.s16).s32 <u32!>, <s32>, <s32>
@65,72: cvt.pack.sat(D=.u8|.s8|@65,75:.u4|@65,75:.s2).s32.b32 <u32!>, <s32>, <s32>, <b32>
"""

VIDEO = """
(vadd|vsub|vmin|vmax|vabsdiff)(.u32|.s32)(.u32|.s32)(.u32|.s32)(|.sat) <s32!>, <s32!>, <s32!>
(vadd|vsub|vmin|vmax|vabsdiff)(.u32|.s32).u32.u32(|.sat) <u32!>(|.b0|.b3|.h0|.h1), <u32!>(|.b0|.b2|.h1), <u32!>(|.b1|.h0), <u32!>
(vadd|vsub|vmin|vmax|vabsdiff)(.u32|.s32).s32.u32(|.sat)(.add|.min|.max) <s32!>, <s32!>, <u32!>, <s32!>
(vshl|vshr)(.u32|.s32)(.u32|.s32).u32(|.sat)(.clamp|.wrap) <u32!>, <s32!>, <u32!>
(vshl|vshr).u32.u32.u32(|.sat)(.clamp|.wrap)(.add|.min|.max) <u32!>, <u32!>(|.b0|.h1), <u32!>, <u32!>
vmad(.u32|.s32)(.u32|.s32)(.u32|.s32)(|.sat)(|.shr7|.shr15) <s32!>, <s32!>(|.b1|.h0), <s32!>, <s32!>
vmad.s32.s32.s32(.po <s32!>, <s32!>, <s32!>, <s32!>|.sat <s32!>, <s32!>, -<s32!>, <s32!>|<s32!>, -<s32!>, <s32!>, <s32!>)
vset(.u32|.s32)(.u32|.s32)(.eq|.ne|.lt|.le|.gt|.ge) <u32!>, <s32!>, <u32!>
vset(.u32|.s32)(.u32|.s32)(.eq|.ne|.lt)(.add|.min|.max) <u32!>, <s32!>, <u32!>, <u32!>
(vadd2|vsub2|vmin2|vmax2|vabsdiff2|vavrg2)(.u32|.s32)(.u32|.s32)(.u32|.s32)(|.sat) <u32!>(|.h0|.h1|.h10), <u32!>, <u32!>(|.h32|.h01), <u32!>
(vadd4|vsub4|vmin4|vmax4|vabsdiff4|vavrg4)(.u32|.s32)(.u32|.s32)(.u32|.s32)(|.sat|.add) <u32!>, <u32!>, <u32!>, <u32!>
vset4(.u32|.s32)(.u32|.s32)(.eq|.ne|.lt)(|.add) <u32!>(|), <u32!>, <u32!>, <u32!>
"""

FAMILIES = {"integer": INTEGER, "float": FLOAT, "compare": COMPARE, "logic": LOGIC, "move": MOVE,
            "convert": CONVERT, "video": VIDEO}
