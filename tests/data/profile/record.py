#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes patterns.ptx, one kernel of one warp per access pattern, and, on a machine with a GPU and
NVIDIA's profiler, records what ncu counts for each of them in patterns.json:

    tests/data/profile/record.py            # patterns.ptx
    tests/data/profile/record.py RUNNER     # patterns.json too; RUNNER launches every kernel once

RUNNER is build/release/bin/record_patterns.
"""
import csv
import io
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
METRICS = {
    "shared_ld": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_st": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "conflicts_ld": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "conflicts_st": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "sectors_ld": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "sectors_st": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "requests_ld": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "requests_st": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
}


def kernel(name, body, lanes=32):
    return f"""
.visible .entry {name}(.param .u64 out)
{{
  .reg .pred %p;
  .reg .b16 %h<2>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  .reg .b64 %d<1>;
  .shared .align 1024 .b8 tile[16384];
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mov.b32 %r4, 0;
  mov.b32 %r5, 0;
  mov.b32 %r6, 0;
  mov.b32 %r7, 0;
  setp.ge.u32 %p, %r0, {lanes};
  @%p exit;
{body}
  ret;
}}
"""


def address(stride, swizzle=False, offset=0, mask=31):
    """%r2: of shared memory; %rd1: of the buffer. Lanes that `mask` does not tell apart share it."""
    out = f"  and.b32 %r9, %r0, {mask};\n  mul.lo.u32 %r3, %r9, {stride};\n"
    out += f"  add.u32 %r3, %r3, {offset};\n"
    if swizzle:  # of 128 bytes
        out += "  shr.u32 %r8, %r3, 3;\n  and.b32 %r8, %r8, 112;\n  xor.b32 %r3, %r3, %r8;\n"
    return out + "  add.u32 %r2, %r1, %r3;\n  cvt.u64.u32 %rd2, %r3;\n  add.u64 %rd1, %rd0, %rd2;\n"


REGISTERS = {"b32": "%r4", "v2.b32": "{%r4, %r5}", "b64": "%d0", "v4.b32": "{%r4, %r5, %r6, %r7}",
             "b16": "%h0", "u8": "%h0"}


def keep(kind):
    if kind == "b64":
        return "  mov.b64 {%r4, %r5}, %d0;\n  xor.b32 %r4, %r4, %r5;\n"
    if kind in ("b16", "u8"):
        return "  cvt.u32.u16 %r4, %h0;\n"
    if kind == "v4.b32":
        return "  xor.b32 %r4, %r4, %r5;\n  xor.b32 %r6, %r6, %r7;\n  xor.b32 %r4, %r4, %r6;\n"
    return "  xor.b32 %r4, %r4, %r5;\n" if kind == "v2.b32" else ""


def loaded(kind):
    """Stores where only lane 99 would: nothing is counted, nothing can be dropped."""
    return keep(kind) + "  setp.eq.u32 %p, %r4, 123456789;\n  @%p trap;\n"


def patterns():
    def load(name, kind, stride, lanes=32, **where):
        yield name, kernel(name, address(stride, **where) +
                           f"  ld.volatile.shared.{kind} {REGISTERS[kind]}, [%r2];\n" +
                           loaded(kind), lanes)

    def store(name, kind, stride, lanes=32, **where):
        zero = "  mov.b64 %d0, 0;\n  mov.b16 %h0, 0;\n"
        yield name, kernel(name, zero + address(stride, **where) +
                           f"  st.volatile.shared.{kind} [%r2], {REGISTERS[kind]};\n", lanes)

    def rows(name, opcode, count, stride, stores=False, **where):
        registers = "{" + ", ".join(f"%r{4 + i}" for i in range(count)) + "}"
        text = (f"  {opcode} [%r2], {registers};\n" if stores else
                f"  {opcode} {registers}, [%r2];\n" + loaded("v4.b32" if count == 4 else "b32"))
        yield name, kernel(name, address(stride, **where) + text)

    for each in (load, store):
        op = "ld" if each is load else "st"
        for kind, strides in (("b32", (0, 4, 8, 12, 64, 128, 132)),
                              ("b64", (0, 8, 16, 24, 128, 136)),
                              ("v2.b32", (8, 16)),
                              ("v4.b32", (0, 16, 32, 48, 64, 128, 144)),
                              ("b16", (0, 2, 4, 64)),
                              ("u8", (1, 4, 128))):
            for stride in strides:
                yield from each(f"{op}_{kind.replace('.', '_')}_{stride}", kind, stride)
        yield from each(f"{op}_v4_b32_128_swizzled", "v4.b32", 128, swizzle=True)
        yield from each(f"{op}_v4_b32_128_of_8_lanes", "v4.b32", 128, lanes=8)
        yield from each(f"{op}_b64_16_of_16_lanes", "b64", 16, lanes=16)
        yield from each(f"{op}_b32_128_of_5_lanes", "b32", 128, lanes=5)
        for kind, size in (("b32", 4), ("v2.b32", 8), ("v4.b32", 16)):
            for mask in (30, 29, 27, 23, 15, 28, 24, 12):
                name = f"{op}_{kind.replace('.', '_')}_mask_{mask}"
                yield from each(name, kind, size, mask=mask)
        yield from each(f"{op}_v2_b32_mask_30_of_15_lanes", "v2.b32", 8, lanes=15, mask=30)
        yield from each(f"{op}_v2_b32_of_19_lanes", "v2.b32", 8, lanes=19)
        yield from each(f"{op}_v4_b32_mask_30_of_11_lanes", "v4.b32", 16, lanes=11, mask=30)
        yield from each(f"{op}_v4_b32_48_mask_28", "v4.b32", 48, mask=28)
        yield from each(f"{op}_v2_b32_64_mask_28", "v2.b32", 64, mask=28)
    for count in (1, 2, 4):
        for stride in (0, 16, 32, 64, 128, 144):
            yield from rows(f"ldmatrix_x{count}_{stride}",
                            f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16", count, stride)
        for stride in (16, 128, 144):
            yield from rows(f"stmatrix_x{count}_{stride}",
                            f"stmatrix.sync.aligned.m8n8.x{count}.shared.b16", count, stride, True)
    yield from rows("ldmatrix_trans_x4_128", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", 4, 128)
    yield from rows("ldmatrix_x4_128_swizzled", "ldmatrix.sync.aligned.m8n8.x4.shared.b16", 4, 128, swizzle=True)
    for kind, strides in (("b32", (0, 4, 8, 128)), ("v4.b32", (16, 32, 64)), ("b64", (8, 40)), ("u8", (1,))):
        for stride in strides:
            name = f"global_ld_{kind.replace('.', '_')}_{stride}"
            yield name, kernel(name, address(stride) + f"  ld.volatile.global.{kind} {REGISTERS[kind]}, [%rd1];\n" + loaded(kind))
            name = f"global_st_{kind.replace('.', '_')}_{stride}"
            zero = "  mov.b64 %d0, 0;\n  mov.b16 %h0, 0;\n"
            yield name, kernel(name, zero + address(stride) + f"  st.volatile.global.{kind} [%rd1], {REGISTERS[kind]};\n")
    name = "global_ld_b32_4_offset_4"
    yield name, kernel(name, address(4, offset=4) + "  ld.volatile.global.b32 %r4, [%rd1];\n" + loaded("b32"))


def write_ptx():
    all_patterns = list(patterns())
    text = "// SPDX-License-Identifier: Apache-2.0\n// Written by record.py.\n.version 7.8\n.target sm_90\n.address_size 64\n"
    (HERE / "patterns.ptx").write_text(text + "".join(each for _, each in all_patterns))
    return [name for name, _ in all_patterns]


def record(runner, names):
    out = subprocess.run(["ncu", "--csv", "--page", "raw", "--metrics", ",".join(METRICS.values()),
                          runner, str(HERE / "patterns.ptx"), *names],
                         check=True, capture_output=True, text=True).stdout
    table = out[out.index('"ID"'):]
    recorded = {}
    for row in csv.DictReader(io.StringIO(table)):
        name = row["Kernel Name"].split("(")[0]
        if name in names:
            recorded[name] = {key: int(float(row[metric].replace(",", ""))) for key, metric in METRICS.items()}
    assert len(recorded) == len(names), set(names) - set(recorded)
    lines = ",\n".join(f'  "{name}": {json.dumps(recorded[name])}' for name in names)
    (HERE / "patterns.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    written = write_ptx()
    if len(sys.argv) > 1:
        record(sys.argv[1], written)
