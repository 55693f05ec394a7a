# SPDX-License-Identifier: Apache-2.0
"""What the programs share that measure a kernel beside PyTorch's, in one process on one GPU.

Kernels are loaded from their PTX into PyTorch's context and launched on its current stream. Rounds are shuffled;
"cool" is one launch after 40 ms of rest and one untimed launch, "hot" 20 launches back to back; figures are medians.
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
READ_BYTES = 2**31
DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
PROGRAMMATIC = 6    # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER, its size
WRONG = 0.03  # of the largest value: not rounding any more


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute"""
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig"""
    _fields_ = [("sizes", ctypes.c_uint * 7), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(LaunchAttribute)), ("count", ctypes.c_uint)]


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
    """A function that launches the kernel on PyTorch's current stream; by a programmatic dependent launch where the
    launch says so: the kernel waits for the one before it itself."""
    ptx = (folder / launch["ptx"]).read_bytes() + b"\0"
    function = driver.function(ptx, launch["kernel"], launch["dynamic_shared"])
    values = [ctypes.create_string_buffer(each, len(each))
              for each in (argument_bytes(each, addresses) for each in launch["arguments"])]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(each) for each in values))
    numbers = (ctypes.c_uint * 7)(*launch["grid"], launch["block"], 1, 1, launch["dynamic_shared"])
    attribute = LaunchAttribute(PROGRAMMATIC, 0, (1,))
    config = LaunchConfig(numbers, None, ctypes.pointer(attribute), 1)

    def run(keep=values):
        if launch.get("programmatic"):
            config.stream = stream()
            driver.call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)
        else:
            driver.call("cuLaunchKernel", function, *map(ctypes.c_uint, numbers), ctypes.c_void_p(stream()), pointers, None)

    return run


class Entry:
    def __init__(self, name, peer, launch, operations, note):
        self.name, self.peer, self.launch, self.operations, self.note = name, peer, launch, operations, note
        self.cool, self.hot = [], []


def own_entries(torch, driver, folder, case, addresses, output, operations, note, runs=1):
    """The case's kernels, each run on an output of NaN. What the driver refuses is said and left out, and
    the program fails for it at its end."""
    entries = []
    for launch in case["launches"]:
        try:
            run = own_launch(driver, folder, launch, addresses, lambda: torch.cuda.current_stream().cuda_stream)
            for _ in range(runs):
                output.fill_(float("nan"))
                run()
        except RuntimeError as error:
            print(f"{launch['name']}: {error}", file=sys.stderr)
            continue
        torch.cuda.synchronize()
        entries.append(Entry(launch["name"], False, run, operations, note()))
    return entries


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


def figure_json(each, others):
    """As bench/gpu/figures.h has it."""
    time_of = lambda rates: each.operations / median(rates) / 1e6 if median(rates) else 0.0
    return {"name": each.name, "peer": each.peer, "operations": each.operations, "cool": each.cool, "hot": each.hot,
            "note": each.note, "cool_median": median(each.cool), "hot_median": median(each.hot),
            "cool_us": time_of(each.cool), "hot_us": time_of(each.hot),
            "ratios": {peer.name: {"cool": ratio(each.cool, peer.cool), "hot": ratio(each.hot, peer.hot)}
                       for peer in others if peer is not each}}


def error_of(output, expected):
    """The largest difference from `expected` (place -> matrix), as a part of the largest value."""
    worst = 0.0
    for place, matrix in expected.items():
        apart = ((output[place].float() - matrix).abs().max() / matrix.abs().max()).item()
        worst = max(worst, apart if apart == apart else float("inf"))
    return worst


def note_of(output, expected):
    """The same in words."""
    worst = error_of(output, expected)
    return f"{'WRONG: ' if worst > WRONG else ''}error {worst:.1e}"


def read_bandwidth(torch):
    """TB/s of reading alone."""
    data = torch.empty(READ_BYTES, dtype=torch.uint8, device="cuda").random_(0, 127)
    views = [data.view(kind) for kind in (torch.float32, torch.int32, torch.float64)]
    best = max(READ_BYTES / seconds(torch, call, HOT) / 1e12
               for call in [lambda each=each: each.sum() for each in views]
               + [lambda each=each: each.max() for each in views[:2]] for _ in range(3))
    return best


def table(title, entries):
    """Of entries whose operations are floating-point operations."""
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


def race(title, entries, text):
    """Prints the table of a case; gives its figures for the results' JSON."""
    print(text, flush=True)
    others = [each for each in entries if each.peer]
    return {"title": title, "how": "a launch", "figures": [figure_json(each, others) for each in entries]}


def bandwidth_table(title, entries, bandwidth, of="keys and values"):
    """Of entries whose operations are bytes."""
    others = [each for each in entries if each.peer]
    width = max([24] + [len(each.name) + 2 for each in entries])
    lines = [f"\n{title}", f"GB/s of {of}".ljust(width) + "    cool     hot  us, hot  of reading"
             + "".join("  " + f"of {each.name}".rjust(17) for each in others)]
    for each in entries:
        rates = [median(each.cool) * 1e3, median(each.hot) * 1e3]
        time = each.operations / rates[1] / 1e3 if rates[1] else 0.0
        line = each.name.ljust(width) + f"{rates[0]:8.0f}{rates[1]:8.0f}{time:9.1f}{rates[1] / bandwidth / 1e3:12.3f}"
        for peer in others:
            line += "  " + f"{ratio(each.cool, peer.cool):.3f} {ratio(each.hot, peer.hot):.3f}".rjust(17)
        lines.append(line + "  " + each.note)
    return "\n".join(lines)


def driver_version():
    try:
        words = pathlib.Path("/proc/driver/nvidia/version").read_text().split()
    except OSError:
        return ""
    return next((word for word in words if word[0].isdigit() and "." in word), "")


def run_contests(program, emitter, description, unit, contest, prepare=lambda torch: {}):
    """main(): `contest(torch, driver, folder, case, rounds, **found)` measures a case of launches.json and gives its
    race; `prepare(torch)` finds what goes into the head of the results: names and TB/s."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help=f"what {emitter} --emit wrote")
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
    driver = Driver(words.driver)
    with torch.inference_mode():
        found = prepare(torch)
        torch.cuda.empty_cache()
        run = {"program": program, "command": " ".join(sys.argv),
               "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
               "device": torch.cuda.get_device_name(0), "driver": driver_version(), "unit": unit, **found,
               "libraries": {"PyTorch": torch.__version__, "cuDNN": str(torch.backends.cudnn.version())}, "races": []}
        print(f"{run['device']}, driver {run['driver']}, {run['libraries']}"
              + "".join(f", {name.replace('_', ' ')} {value:.3f} TB/s" for name, value in found.items()), flush=True)
        refused = []  # kernels of ours
        for case in cases:
            if words.only in case["title"]:
                result = contest(torch, driver, words.folder, case, words.rounds, **found)
                run["races"].append(result)
                measured = {figure["name"] for figure in result["figures"]}
                refused += [f"{result['title']}: {launch['name']}" for launch in case["launches"]
                            if launch["name"] not in measured]
                torch.cuda.empty_cache()
                if words.json:  # what there is so far, should a later case fail
                    words.json.write_text(json.dumps(run, indent=1) + "\n")
    wrong = [f"{case['title']}: {figure['name']}" for case in run["races"] for figure in case["figures"]
             if not figure["peer"] and "WRONG" in figure["note"]]
    problems = [f"{what}: {'; '.join(names)}" for what, names in (("wrong results", wrong), ("not measured", refused))
                if names]
    if problems:
        sys.exit("\n".join(problems))
