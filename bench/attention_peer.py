#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The attention kernel beside cuDNN's and FlashAttention, in one process on one GPU.

    gpu_attention --emit DIR                 # anywhere: PTX and launches.json
    python3 attention_peer.py DIR            # with PyTorch, on the GPU

The peers are torch.nn.functional.scaled_dot_product_attention restricted to one backend each. Kernels are
loaded from their PTX into PyTorch's context and launched on its current stream. Rounds are shuffled; "cool" is
one launch after 40 ms of rest and one untimed launch, "hot" 20 launches back to back; figures are medians.
Every output is compared with a plain f32 computation of the first and the last head.
"""
import argparse
import ctypes
import datetime
import json
import pathlib
import random
import struct
import sys
import time

REST = 0.040  # seconds
HOT = 20      # launches
DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER, its size
WRONG = 0.03  # of the largest value: not rounding any more


class Driver:
    """The CUDA driver's entry points, on the context that PyTorch made current."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code == 0:
            return
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"{name}: {code} {(text.value or b'').decode()}")

    def function(self, ptx, name, dynamic_shared):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(ptx), 2, options, values)
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{log.value.decode(errors='replace')}") from None
        self.call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(name.encode()))
        if dynamic_shared:
            self.call("cuFuncSetAttribute", function, DYNAMIC_SHARED, dynamic_shared)
        return function


def argument_bytes(argument, addresses):
    """An argument of launches.json as the bytes that the kernel gets."""
    if "s32" in argument:
        return struct.pack("<i", argument["s32"])
    if "f32" in argument:
        return struct.pack("<f", argument["f32"])
    address = struct.pack("<Q", addresses[argument["buffer"]])
    return address + bytes.fromhex(argument["map"])[8:] if "map" in argument else address


def own_launch(driver, folder, launch, addresses, stream):
    """A function that launches the kernel on PyTorch's current stream."""
    ptx = (folder / launch["ptx"]).read_bytes() + b"\0"
    function = driver.function(ptx, launch["kernel"], launch["dynamic_shared"])
    values = [ctypes.create_string_buffer(each, len(each))
              for each in (argument_bytes(each, addresses) for each in launch["arguments"])]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(each) for each in values))
    numbers = [ctypes.c_uint(each) for each in (*launch["grid"], launch["block"], 1, 1, launch["dynamic_shared"])]

    def run(keep=values):
        driver.call("cuLaunchKernel", function, *numbers, ctypes.c_void_p(stream()), pointers, None)

    return run


def peers(torch, case, q, k, v):
    """(name, function that gives the output) of every backend that takes the problem."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    attention = torch.nn.functional.scaled_dot_product_attention
    share = case["heads"] // case["kv_heads"]
    for name, backend in (("cuDNN", "CUDNN_ATTENTION"), ("FlashAttention", "FLASH_ATTENTION")):
        # Where a backend has no shared heads of keys, it gets copies of them.
        for copies in ((False, True) if share > 1 else (False,)):
            keys, values = ((each.repeat_interleave(share, 1) for each in (k, v)) if copies else (k, v))
            words = {"enable_gqa": True} if share > 1 and not copies else {}

            def run(keys=keys, values=values, words=words, backend=getattr(SDPBackend, backend)):
                with sdpa_kernel(backend):
                    return attention(q, keys, values, is_causal=case["causal"], **words)

            try:
                run()
                torch.cuda.synchronize()
            except (RuntimeError, TypeError) as error:
                print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            yield name + (" (keys and values copied)" if copies else ""), run
            break


def reference(torch, case, q, k, v, batch, head):
    """One head in f32, some queries at a time."""
    length, share = case["length"], case["heads"] // case["kv_heads"]
    keys, values = k[batch, head // share].float(), v[batch, head // share].float()
    out = []
    for begin in range(0, length, 2048):
        queries = q[batch, head, begin:begin + 2048].float()
        scores = queries @ keys.T * case["head_dim"] ** -0.5
        if case["causal"]:
            rows = torch.arange(begin, begin + queries.shape[0], device=q.device)
            scores.masked_fill_(torch.arange(length, device=q.device)[None, :] > rows[:, None], float("-inf"))
        out.append(torch.softmax(scores, -1) @ values)
    return torch.cat(out)


def error_of(output, expected):
    """The largest difference from `expected` (place -> matrix), as a part of the largest value."""
    worst = 0.0
    for (batch, head), matrix in expected.items():
        apart = ((output[batch, head].float() - matrix).abs().max() / matrix.abs().max()).item()
        worst = max(worst, apart if apart == apart else float("inf"))
    return worst


class Entry:
    def __init__(self, name, peer, launch, operations, note):
        self.name, self.peer, self.launch, self.operations, self.note = name, peer, launch, operations, note
        self.cool, self.hot = [], []


def seconds(torch, launch, count):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        launch()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000 / count


def measure(torch, entries, rounds):
    shuffled, order = random.Random(1), list(entries)
    for _ in range(rounds):
        shuffled.shuffle(order)
        for each in order:
            time.sleep(REST)
            each.launch()
            each.cool.append(each.operations / seconds(torch, each.launch, 1) / 1e12)
            each.hot.append(each.operations / seconds(torch, each.launch, HOT) / 1e12)


def median(values):
    return sorted(values)[len(values) // 2] if values else 0.0


def ratio(mine, theirs):
    return median(mine) / median(theirs) if median(theirs) else 0.0


def table(title, entries):
    others = [each for each in entries if each.peer]
    width = max([24] + [len(each.name) + 2 for each in entries])
    lines = [f"\n{title}", "TFLOP/s".ljust(width) + "    cool     hot  us, hot"
             + "".join("  " + f"of {each.name}".rjust(13) for each in others)]
    for each in entries:
        hot = each.operations / median(each.hot) / 1e6 if median(each.hot) else 0.0
        line = each.name.ljust(width) + f"{median(each.cool):8.1f}{median(each.hot):8.1f}{hot:9.1f}"
        for peer in others:
            both = f"{ratio(each.cool, peer.cool):.3f} {ratio(each.hot, peer.hot):.3f}"
            line += "  " + both.rjust(max(13, len(peer.name) + 3))
        lines.append(line + "  " + each.note)
    return "\n".join(lines)


def figure_json(each, others):
    """As bench/gpu/figures.h has it."""
    time_of = lambda rates: each.operations / median(rates) / 1e6 if median(rates) else 0.0
    return {"name": each.name, "peer": each.peer, "operations": each.operations, "cool": each.cool, "hot": each.hot,
            "note": each.note, "cool_median": median(each.cool), "hot_median": median(each.hot),
            "cool_us": time_of(each.cool), "hot_us": time_of(each.hot),
            "ratios": {peer.name: {"cool": ratio(each.cool, peer.cool), "hot": ratio(each.hot, peer.hot)}
                       for peer in others if peer is not each}}


def contest(torch, driver, folder, case, rounds):
    """Measures one case; gives its race."""
    kind = {"bf16": torch.bfloat16, "f16": torch.float16}[case["type"]]
    torch.manual_seed(1)
    shape = lambda heads: (case["batch"], heads, case["length"], case["head_dim"])
    make = lambda heads: torch.randn(shape(heads), device="cuda", dtype=kind)
    q, k, v = make(case["heads"]), make(case["kv_heads"]), make(case["kv_heads"])
    o = torch.empty_like(q)
    lse = torch.empty(shape(case["heads"])[:3], device="cuda", dtype=torch.float32)
    addresses = {name: each.data_ptr() for name, each in (("Q", q), ("K", k), ("V", v), ("O", o), ("LSE", lse))}
    places = {(0, 0), (case["batch"] - 1, case["heads"] - 1)}
    expected = {place: reference(torch, case, q, k, v, *place) for place in places}

    def note(error):
        return f"{'WRONG: ' if error > WRONG else ''}error {error:.1e}"

    entries = []
    for launch in case["launches"]:
        try:
            run = own_launch(driver, folder, launch, addresses, lambda: torch.cuda.current_stream().cuda_stream)
            o.fill_(float("nan"))
            run()
        except RuntimeError as error:
            print(f"{launch['name']}: {error}", file=sys.stderr)
            continue
        torch.cuda.synchronize()
        entries.append(Entry(launch["name"], False, run, case["operations"], note(error_of(o, expected))))
    for name, run in peers(torch, case, q, k, v):
        entries.append(Entry(name, True, run, case["operations"], note(error_of(run(), expected))))
    measure(torch, entries, rounds)
    title = "attention, " + case["title"]
    print(table(title, entries), flush=True)
    others = [each for each in entries if each.peer]
    return {"title": title, "how": "a launch", "figures": [figure_json(each, others) for each in entries]}


def driver_version():
    try:
        words = pathlib.Path("/proc/driver/nvidia/version").read_text().split()
    except OSError:
        return ""
    return next((word for word in words if word[0].isdigit() and "." in word), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="what gpu_attention --emit wrote")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="WORDS", help="cases whose title has these words")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures; bench_plot draws them")
    parser.add_argument("--driver", default="libcuda.so.1", help=argparse.SUPPRESS)
    words = parser.parse_args()
    try:
        cases = json.loads((words.folder / "launches.json").read_text())["cases"]
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{words.folder}/launches.json: {error}")
    try:
        import torch
    except ImportError as error:
        sys.exit(f"PyTorch is needed: {error}")
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    torch.zeros(1, device="cuda")  # its context becomes this thread's
    run = {"program": "attention_peer", "command": " ".join(sys.argv),
           "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
           "device": torch.cuda.get_device_name(0), "driver": driver_version(), "unit": "TFLOP/s",
           "libraries": {"PyTorch": torch.__version__, "cuDNN": str(torch.backends.cudnn.version())}, "races": []}
    print(f"{run['device']}, driver {run['driver']}, {run['libraries']}")
    driver = Driver(words.driver)
    with torch.inference_mode():
        for case in cases:
            if words.only in case["title"]:
                run["races"].append(contest(torch, driver, words.folder, case, words.rounds))
                torch.cuda.empty_cache()
                if words.json:  # what there is so far, should a later case fail
                    words.json.write_text(json.dumps(run, indent=1) + "\n")


if __name__ == "__main__":
    main()
