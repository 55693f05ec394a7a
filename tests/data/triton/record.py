# SPDX-License-Identifier: Apache-2.0
"""Compiles kernels.py with Triton and records what an NVIDIA GPU makes of them.

    OUT=folder python3 record.py

writes $OUT/triton.tgz: inputs as *.bin, and for each kernel a folder with kernel.ptx, manifest.json and the outputs as
*.bin; beside them, not kept here, kernel.ttgir and recording.json, which says everything about the launch.
Each launch is repeated through the driver with the recorded argument list alone, and its outputs compared.
"""
import ctypes
import importlib.util
import io
import json
import os
import re
import struct
import sys
import tarfile
import time
import traceback

os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")
WORK = "/tmp/tartan"
os.environ.setdefault("TRITON_CACHE_DIR", WORK + "/cache-%d" % os.getpid())
OUT = os.environ.get("OUT", ".")
os.makedirs(WORK, exist_ok=True)

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.py")) as f:
    KERNELS = f.read()

with open(WORK + "/kernels.py", "w") as f:
    f.write(KERNELS)

import torch  # noqa: E402
import triton  # noqa: E402

spec = importlib.util.spec_from_file_location("kernels", WORK + "/kernels.py")
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)

LOG, FILES, SUMMARY = [], {}, []


def log(text):
    LOG.append(text)
    print(text, flush=True)


log("torch %s, triton %s, %s, driver CUDA %s" %
    (torch.__version__, triton.__version__, torch.cuda.get_device_name(0), torch.version.cuda))

triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))

# ---- Inputs: few pools that the kernels share, one file each.

torch.manual_seed(2718)
POOL = {}


def pool(name, tensor):
    POOL[name] = tensor.contiguous().cuda()
    FILES[name + ".bin"] = tensor.contiguous().view(torch.uint8).numpy().tobytes()


pool("halves", torch.randn(98304).to(torch.float16))
pool("brains", torch.randn(98304).to(torch.bfloat16))
pool("floats", torch.randn(32768))
pool("tiny_floats", (torch.randn(65536) * 0.5).to(torch.float8_e4m3fn))
pool("wide_floats", torch.randn(32768).to(torch.float8_e5m2))
pool("bytes", torch.randint(-128, 128, (65536,), dtype=torch.int8))


# Kernels whose last bits hang on approximations that the hardware's manual only bounds: compared within a few units of the
# last place of what they write. All others bit for bit.
TOLERANCES = {
    "attention_f16": {"o_ptr": ("f16", 0.002, 1e-4), "l_ptr": ("f32", 1e-6, 1e-6)},
    "attention_f16_unfused": {"o_ptr": ("f16", 0.002, 1e-4), "l_ptr": ("f32", 1e-6, 1e-6)},
    "attention_bf16_causal": {"o_ptr": ("bf16", 0.008, 1e-4), "l_ptr": ("f32", 1e-6, 1e-6)},
    "softmax": {"y_ptr": ("f32", 1e-6, 0)},
}
ELEMENTS = {"torch.float16": "f16", "torch.bfloat16": "bf16", "torch.float32": "f32", "torch.uint8": "u8"}


def manifest_text(name, recording):
    """What `tartan run` takes: the launch and its data, the files as they lie in the archive."""

    def buffer(key):
        about = recording["buffers"][key]
        if "file" in about:
            return {"buffer": key, "file": about["file"], "part": [about["start"], about["bytes"]]}
        compare = "bits"
        if key in TOLERANCES.get(name, {}):
            kind, relative, absolute = TOLERANCES[name][key]
            compare = {"type": kind, "max_rel": relative, "max_abs": absolute}
        return {"buffer": key, "bytes": about["bytes"], "fill": about["fill"], "expect": about["expect"], "compare": compare}

    params, described = [], []
    for param in recording["params"]:
        if "tensor_map" in param:
            map_ = param["tensor_map"]
            described.append(map_["of"])
            params.append({"tensor_map": map_["of"], "type": ELEMENTS[map_["dtype"]], "extents": map_["shape"][::-1],
                           "strides": [s * map_["element_bytes"] for s in map_["strides"][-2::-1]],
                           "box": map_["about"]["block_size"][::-1], "swizzle": [0, 32, 64, 128][map_["about"]["swizzle"]],
                           "promotion": 128})
        elif "scratch" in param:
            params.append({"buffer": param["scratch"], "bytes": param["bytes"], "fill": 0})
        elif "buffer" in param:
            params.append(buffer(param["buffer"]))
        else:
            params.append({key: value for key, value in param.items() if key != "hidden"})
    manifest = {"ptx": "kernel.ptx", "kernel": recording["kernel"], "grid": recording["grid"], "block": recording["block"],
                "dynamic_shared": recording["dynamic_shared"], "hardware": "sm_90"}
    lines = ["{"] + [' "%s": %s,' % (key, json.dumps(value)) for key, value in manifest.items()]
    lines += [' "params": [', ",\n".join("  " + json.dumps(param) for param in params), " ]" + ("," if described else "")]
    if described:
        lines += [' "buffers": [', ",\n".join("  " + json.dumps(buffer(key)) for key in described), " ]"]
    return "\n".join(lines + ["}"]) + "\n"


# ---- Buffers.

class In:
    """A slice of a pool, as a matrix."""

    def __init__(self, name, shape, start=0):
        count = 1
        for extent in shape:
            count *= extent
        whole = POOL[name]
        self.file, self.start, self.bytes = name + ".bin", start * whole.element_size(), count * whole.element_size()
        assert start + count <= whole.numel(), name
        self.tensor = whole.view(torch.uint8)[self.start:self.start + self.bytes].clone().view(whole.dtype).view(shape)


class Outgo:
    """A buffer the kernel writes; every byte is `fill` before."""

    def __init__(self, shape, dtype, fill=0xA5, compare="bits"):
        self.tensor = torch.empty(shape, dtype=dtype, device="cuda")
        self.fill, self.compare = fill, compare
        self.clear()

    def clear(self):
        self.tensor.view(-1).view(torch.uint8).fill_(self.fill)


class Described:
    """A host-made descriptor over an In or Outgo."""

    def __init__(self, buffer, block):
        from triton.tools.tensor_descriptor import TensorDescriptor
        self.buffer, self.block = buffer, block
        self.value = TensorDescriptor.from_tensor(buffer.tensor, list(block))
        self.tensor = buffer.tensor

    def clear(self):
        self.buffer.clear()


def raw(tensor):
    return tensor.detach().contiguous().cpu().view(-1).view(torch.uint8).numpy().tobytes()


# ---- The driver, to launch again with nothing but the recorded list.

cuda = ctypes.CDLL("libcuda.so.1")


def check(code, what):
    if code:
        raise RuntimeError("%s: CUDA error %d" % (what, code))


def encode_tiled(meta, base, shape, strides, element_bytes):
    """cuTensorMapEncodeTiled as Triton's launcher calls it; shape and strides slowest first."""
    rank = len(shape)
    memory = (ctypes.c_char * 256)()
    address = (ctypes.addressof(memory) + 63) // 64 * 64
    extents = (ctypes.c_uint64 * rank)(*reversed(shape))
    steps = (ctypes.c_uint64 * max(rank - 1, 1))(*[s * element_bytes for s in reversed(strides[:-1])])
    box = (ctypes.c_uint32 * rank)(*reversed(meta["block_size"]))
    ones = (ctypes.c_uint32 * rank)(*([1] * rank))
    check(cuda.cuTensorMapEncodeTiled(ctypes.c_void_p(address), ctypes.c_int(meta["elem_type"]), ctypes.c_uint32(rank),
                                      ctypes.c_void_p(base), extents, steps, box, ones, ctypes.c_int(0),
                                      ctypes.c_int(meta["swizzle"]), ctypes.c_int(2), ctypes.c_int(0)),
          "cuTensorMapEncodeTiled")
    return ctypes.string_at(address, 128)


SCALARS = {"i32": ("s32", "<i"), "u32": ("u32", "<I"), "i64": ("s64", "<q"), "u64": ("u64", "<Q"),
           "fp32": ("f32", "<f"), "f32": ("f32", "<f"), "fp64": ("f64", "<d"), "i1": ("u8", "<B"),
           "i8": ("s8", "<b"), "i16": ("s16", "<h"), "u8": ("u8", "<B"), "u16": ("u16", "<H")}


def relaunch(compiled, grid, threads, shared, params, scratch_keep):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    image = compiled.asm["cubin"]
    check(cuda.cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, compiled.metadata.name.encode()), "cuModuleGetFunction")
    check(cuda.cuFuncSetAttribute(function, 8, shared), "cuFuncSetAttribute")
    blobs, pointers = [], (ctypes.c_void_p * len(params))()
    for i, value in enumerate(params):
        blob = (ctypes.c_char * (len(value) + 64))()
        at = (ctypes.addressof(blob) + 63) // 64 * 64
        ctypes.memmove(at, value, len(value))
        blobs.append(blob)
        pointers[i] = at
    check(cuda.cuLaunchKernel(function, *[ctypes.c_uint(g) for g in grid], ctypes.c_uint(threads), ctypes.c_uint(1),
                              ctypes.c_uint(1), ctypes.c_uint(shared), ctypes.c_void_p(0), pointers, None), "cuLaunchKernel")
    torch.cuda.synchronize()
    cuda.cuModuleUnload(module)


def entry_params(ptx):
    header = re.search(r"\.entry\s+\S+?\s*\((.*?)\)", ptx, re.S)
    return re.findall(r"\.param\s+([^\n]*?)(?:,|$)", header.group(1), re.M) if header else []


def record(name, kernel, grid, arguments, constants, outputs, reference=None, **options):
    """Launches, writes down the list of PTX parameters, launches that list again."""
    started = time.time()
    grid = tuple(grid) + (1,) * (3 - len(grid))
    values = [a.value if isinstance(a, Described) else a.tensor if isinstance(a, (In, Outgo)) else a
              for a in arguments.values()]
    compiled = kernel[grid](*values, **constants, **options)
    torch.cuda.synchronize()
    meta = compiled.metadata
    ptx = compiled.asm["ptx"]
    found = {key: raw(arguments[key].tensor) for key in outputs}

    params, bytes_ = [], []
    keep = []
    maps = list(getattr(meta, "tensordesc_meta", None) or [])
    signature = dict(compiled.src.signature)
    for key, kind in signature.items():
        if key not in arguments or kind == "constexpr":
            continue
        value = arguments[key]
        if isinstance(value, Described):
            about = maps.pop(0) if maps else None
            if about is None:
                raise RuntimeError("a descriptor without tensordesc_meta: %r" % (kind,))
            about = {k: (list(v) if isinstance(v, (list, tuple)) else v) for k, v in dict(about).items()}
            t = value.buffer.tensor
            shape, strides = list(t.shape), list(t.stride())
            encoded = encode_tiled(about, t.data_ptr(), shape, strides, t.element_size())
            params.append({"tensor_map": {"of": key, "about": about, "shape": shape, "strides": strides,
                                          "element_bytes": t.element_size(), "dtype": str(t.dtype),
                                          "base": t.data_ptr(), "encoded": encoded.hex()}})
            bytes_.append(encoded)
            for extent in shape:
                params.append({"s32": extent})
                bytes_.append(struct.pack("<i", extent))
            for step in strides:
                params.append({"s64": step})
                bytes_.append(struct.pack("<q", step))
        elif isinstance(value, (In, Outgo)):
            params.append({"buffer": key})
            bytes_.append(struct.pack("<Q", value.tensor.data_ptr()))
        else:
            word, form = SCALARS[kind]
            params.append({word: value})
            bytes_.append(struct.pack(form, value))
    blocks = grid[0] * grid[1] * grid[2]
    in_ptx = entry_params(ptx)
    hidden = [("global_scratch", getattr(meta, "global_scratch_size", 0) or 0, getattr(meta, "global_scratch_align", 1)),
              ("profile_scratch", getattr(meta, "profile_scratch_size", 0) or 0, getattr(meta, "profile_scratch_align", 1))]
    while len(params) < len(in_ptx) and hidden:
        what, size, align = hidden.pop(0)
        if size:
            room = torch.zeros(size * blocks, dtype=torch.uint8, device="cuda")
            keep.append(room)
            params.append({"scratch": what, "bytes": size * blocks, "align": align})
            bytes_.append(struct.pack("<Q", room.data_ptr()))
        else:
            params.append({"u64": 0, "hidden": what})
            bytes_.append(struct.pack("<Q", 0))
    if len(params) != len(in_ptx):
        log("  %s: %d arguments, %d PTX parameters: %r" % (name, len(params), len(in_ptx), in_ptx))

    again = "not tried"
    threads = int(re.search(r"\.reqntid\s+(\d+)", ptx).group(1)) if ".reqntid" in ptx else 32 * meta.num_warps
    try:
        for key in outputs:
            arguments[key].clear()
        torch.cuda.synchronize()
        relaunch(compiled, grid, threads, meta.shared, bytes_, keep)
        same = all(raw(arguments[key].tensor) == found[key] for key in outputs)
        again = "same bits" if same else "OTHER BITS"
    except Exception as error:
        again = "failed: %s" % error

    error = None
    if reference:
        try:
            error = reference()
        except Exception as complaint:
            error = "failed: %s" % complaint

    record_ = {"kernel": meta.name, "grid": list(grid), "block": [threads], "dynamic_shared": meta.shared,
               "num_warps": meta.num_warps, "options": {k: v for k, v in options.items()},
               "constants": {k: str(v) for k, v in constants.items()}, "params": params,
               "signature": {k: str(v) for k, v in signature.items()}, "ptx_params": in_ptx,
               "device": torch.cuda.get_device_name(0), "triton": triton.__version__, "relaunch": again,
               "difference": str(error), "buffers": {}, "metadata": {}}
    for field in getattr(meta, "_fields", ()):
        record_["metadata"][field] = str(getattr(meta, field))
    for key, value in arguments.items():
        buffer = value.buffer if isinstance(value, Described) else value
        if isinstance(buffer, In):
            record_["buffers"][key] = {"file": "../" + buffer.file, "start": buffer.start, "bytes": buffer.bytes}
        elif isinstance(buffer, Outgo):
            record_["buffers"][key] = {"bytes": len(found[key]) if key in found else buffer.tensor.numel() * buffer.tensor.element_size(),
                                       "fill": buffer.fill, "dtype": str(buffer.tensor.dtype), "expect": key + ".bin"}
    FILES[name + "/kernel.ptx"] = ptx.encode()
    if "ttgir" in compiled.asm:
        FILES[name + "/kernel.ttgir"] = str(compiled.asm["ttgir"]).encode()
    FILES[name + "/recording.json"] = json.dumps(record_, indent=1).encode()
    FILES[name + "/manifest.json"] = manifest_text(name, record_).encode()
    for key, content in found.items():
        FILES[name + "/" + key + ".bin"] = content
    counts = " ".join("%s %d" % (word, ptx.count(word)) for word in
                      ("wgmma.mma_async", "mma.sync", "cp.async.bulk", "cp.async.cg", "cp.async.ca", "mbarrier", "ldmatrix",
                       "stmatrix", "tensormap", "setmaxnreg", "ex2.approx", "shfl", "fence.proxy") if word in ptx)
    SUMMARY.append("%-24s ptx %6d B, shared %6d, threads %4d, again: %s, difference %s, %.1f s | %s" %
                   (name, len(ptx), meta.shared, threads, again, error, time.time() - started, counts))
    log(SUMMARY[-1])


def relative(got, expected):
    got, expected = got.double(), expected.double()
    return "%.3g" % ((got - expected).norm() / expected.norm()).item()


path = os.path.join(OUT, "triton.tgz")


def archive():
    """One archive of all so far: what comes later may end the process."""
    FILES["summary.txt"] = ("\n".join(SUMMARY) + "\n").encode()
    FILES["log.txt"] = ("\n".join(LOG) + "\n").encode()
    os.makedirs(OUT, exist_ok=True)
    with tarfile.open(path + ".part", "w:gz", compresslevel=9) as tar:
        for file in sorted(FILES):
            info = tarfile.TarInfo("triton/" + file)
            info.size = len(FILES[file])
            tar.addfile(info, io.BytesIO(FILES[file]))
    os.replace(path + ".part", path)


def attempt(name, make):
    try:
        make()
    except Exception:
        SUMMARY.append("%-24s FAILED" % name)
        log("%s FAILED\n%s" % (name, traceback.format_exc()))
        try:
            torch.cuda.synchronize()
        except Exception as error:
            log("the device is lost: %s" % error)
    archive()


# ---- Each recording.

def product(name, pool_name, m, n, k, out, blocks=(128, 128, 64), by_columns=False, imprecise=None, even=False, **options):
    def make():
        start = m * k if m * k + n * k <= POOL[pool_name].numel() else 0
        a = In(pool_name, (m, k))
        b = In(pool_name, (n, k) if by_columns else (k, n), start)
        c = Outgo((m, n), out)
        bm, bn, bk = blocks
        grid = (-(-m // bm), -(-n // bn))
        constants = dict(BM=bm, BN=bn, BK=bk)

        def reference():
            y = b.tensor.float().T if by_columns else b.tensor.float()
            return relative(c.tensor, a.tensor.double() @ y.double())

        if even:
            record(name, kernels.matmul_even, grid,
                   dict(a_ptr=a, b_ptr=b, c_ptr=c, K=k, stride_a=k, stride_b=n, stride_c=n), constants, ["c_ptr"],
                   reference, **options)
        else:
            constants.update(B_BY_COLUMNS=by_columns, IMPRECISE=imprecise)
            record(name, kernels.matmul, grid,
                   dict(a_ptr=a, b_ptr=b, c_ptr=c, M=m, N=n, K=k, stride_a=k, stride_b=k if by_columns else n, stride_c=n),
                   constants, ["c_ptr"], reference, **options)
    attempt(name, make)


F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
# (a) cp.async rings feeding wgmma; whole tiles and ragged ones; also the warp-level path
product("matmul_f16", "halves", 128, 256, 256, F16, even=True, num_warps=4, num_stages=3)
product("matmul_f16_two_groups", "halves", 128, 256, 192, F32, blocks=(128, 256, 64), even=True, num_warps=8, num_stages=4)
product("matmul_bf16_ragged", "brains", 200, 144, 160, BF16, num_warps=4, num_stages=3)
product("matmul_f16_odd", "halves", 100, 72, 88, F32, blocks=(64, 64, 32), num_warps=4, num_stages=3)
product("matmul_f16_columns", "halves", 128, 128, 256, F16, by_columns=True, num_warps=4, num_stages=3)
product("matmul_f16_warps", "halves", 64, 64, 160, F16, blocks=(32, 32, 32), even=True, num_warps=2, num_stages=3)
product("matmul_tf32", "floats", 128, 64, 128, F32, blocks=(64, 64, 32), by_columns=True, num_warps=4, num_stages=3)
# (c) bytes
product("matmul_e4m3", "tiny_floats", 128, 128, 256, F32, blocks=(128, 128, 64), by_columns=True, num_warps=4, num_stages=3)
product("matmul_e4m3_precise", "tiny_floats", 128, 128, 256, F16, blocks=(64, 128, 128), by_columns=True, imprecise=64,
        num_warps=4, num_stages=3)
product("matmul_e5m2", "wide_floats", 64, 128, 128, F32, blocks=(64, 64, 64), by_columns=True, num_warps=4, num_stages=3)


def dequant():
    a, b, c = In("bytes", (128, 192)), In("halves", (192, 64)), Outgo((128, 64), F32)
    record("matmul_dequant", kernels.matmul_dequant, (1, 1),
           dict(a_ptr=a, b_ptr=b, c_ptr=c, K=192, scale=0.0078125, stride_a=192, stride_b=64, stride_c=64),
           dict(BM=128, BN=64, BK=64), ["c_ptr"],
           lambda: relative(c.tensor, a.tensor.double() @ b.tensor.double() * 0.0078125), num_warps=4, num_stages=3)


attempt("matmul_dequant", dequant)


# (b) attention
def attend(name, pool_name, tokens, causal, heads=2, bm=128, bn=64, **options):
    def make():
        size = heads * tokens * 64
        q, k, v = (In(pool_name, (heads, tokens, 64), i * size) for i in range(3))
        o, l = Outgo((heads, tokens, 64), POOL[pool_name].dtype), Outgo((heads, tokens), F32)
        scale = 0.125 * 1.4426950408889634

        def reference():
            s = q.tensor.double() @ k.tensor.double().transpose(1, 2) * 0.125
            if causal:
                s = s.masked_fill(torch.triu(torch.ones(tokens, tokens, device="cuda"), 1).bool(), float("-inf"))
            return relative(o.tensor, s.softmax(-1) @ v.tensor.double())

        record(name, kernels.attention, (-(-tokens // bm), heads),
               dict(q_ptr=q, k_ptr=k, v_ptr=v, o_ptr=o, l_ptr=l, scale=scale, tokens=tokens, stride_head=tokens * 64),
               dict(CAUSAL=causal, D=64, BM=bm, BN=bn), ["o_ptr", "l_ptr"], reference, **options)
    attempt(name, make)


attend("attention_f16", "halves", 256, False, num_warps=4, num_stages=3)
attend("attention_bf16_causal", "brains", 200, True, num_warps=4, num_stages=2)
attend("attention_f16_unfused", "halves", 128, False, bm=64, num_warps=4, num_stages=2, enable_fp_fusion=False)


# (d) tensor descriptors
def described(name, kernel, m=256, n=128, k=256, blocks=(128, 128, 64), **options):
    def make():
        bm, bn, bk = blocks
        a, b, c = In("halves", (m, k)), In("halves", (n, k), 16384), Outgo((m, n), F16)
        record(name, kernel, (-(-m // bm), -(-n // bn)),
               dict(a=Described(a, (bm, bk)), b=Described(b, (bn, bk)), c=Described(c, (bm, bn)), K=k),
               dict(BM=bm, BN=bn, BK=bk), ["c"],
               lambda: relative(c.tensor, a.tensor.double() @ b.tensor.double().T), **options)
    attempt(name, make)


described("matmul_described", kernels.matmul_described, num_warps=4, num_stages=3)
described("matmul_described_ragged", kernels.matmul_described, m=200, n=72, k=136, blocks=(64, 64, 64), num_warps=4, num_stages=3)


def describing(name, m, n, k, blocks, **options):
    def make():
        bm, bn, bk = blocks
        a, b, c = In("halves", (m, k)), In("halves", (n, k), 16384), Outgo((m, n), F16)
        record(name, kernels.matmul_describing, (-(-m // bm), -(-n // bn)),
               dict(a_ptr=a, b_ptr=b, c_ptr=c, M=m, N=n, K=k), dict(BM=bm, BN=bn, BK=bk), ["c_ptr"],
               lambda: relative(c.tensor, a.tensor.double() @ b.tensor.double().T), **options)
    attempt(name, make)


describing("matmul_describing", 256, 128, 256, (128, 128, 64), num_warps=4, num_stages=3)
describing("matmul_describing_two_groups", 256, 128, 128, (128, 128, 64), num_warps=8, num_stages=3)


# ordinary code
def softmax():
    x, y = In("floats", (16, 512)), Outgo((16, 512), F32)
    record("softmax", kernels.softmax, (16,), dict(x_ptr=x, y_ptr=y, columns=500, stride=512), dict(BLOCK=512), ["y_ptr"],
           lambda: relative(y.tensor[:, :500], x.tensor[:, :500].double().softmax(-1)), num_warps=4)


def scans():
    x = In("bytes", (4, 1024))
    sums, order = Outgo((4, 256), torch.int32), Outgo((4, 256), torch.int32)
    x.tensor = x.tensor.view(torch.int32)
    record("scans", kernels.scans, (4,), dict(x_ptr=x, sums_ptr=sums, order_ptr=order), dict(BLOCK=256),
           ["sums_ptr", "order_ptr"],
           lambda: "%d %d" % ((sums.tensor != x.tensor.cumsum(1).int()).sum(), (order.tensor != x.tensor.sort(1)[0]).sum()),
           num_warps=4)


def histogram():
    x = In("bytes", (8192,))
    bins = Outgo((64,), torch.int32, fill=0)
    x.tensor = x.tensor.view(torch.int32)
    record("histogram", kernels.histogram, (2,), dict(x_ptr=x, bins_ptr=bins, count=2000), dict(BLOCK=1024, BINS=64),
           ["bins_ptr"], None, num_warps=4)


def turned():
    x, y = In("halves", (200, 120)), Outgo((120, 200), F16)
    record("turned", kernels.turned, (4, 2), dict(x_ptr=x, y_ptr=y, rows=200, columns=120), dict(BLOCK=64), ["y_ptr"],
           lambda: "%d" % (y.tensor != x.tensor.T).sum(), num_warps=4)


attempt("softmax", softmax)
attempt("scans", scans)
attempt("histogram", histogram)
attempt("turned", turned)


# With line numbers: the text alone, for the parser.
def with_lines():
    triton.knobs.compilation.disable_line_info = False
    a, b, c = In("halves", (64, 64)), In("halves", (64, 64), 4096), Outgo((64, 64), F32)
    record("with_lines", kernels.matmul_even, (1, 1),
           dict(a_ptr=a, b_ptr=b, c_ptr=c, K=64, stride_a=64, stride_b=64, stride_c=64), dict(BM=64, BN=64, BK=32),
           ["c_ptr"], lambda: relative(c.tensor, a.tensor.double() @ b.tensor.double()), num_warps=4, num_stages=2)


attempt("with_lines", with_lines)
print("\n---- summary")
print("\n".join(SUMMARY))
print("%s: %d bytes, %d files" % (path, os.path.getsize(path), len(FILES)))
sys.exit(0 if not any("FAILED" in line for line in SUMMARY) else 3)
