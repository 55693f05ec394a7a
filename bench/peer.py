#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the programs share that measure built-in kernels beside PyTorch's, in one process on one GPU.

Kernels are compiled and launched by the Python package, on PyTorch's current stream. Rounds are shuffled; "cool" is
one launch after 40 ms of rest and one untimed launch, "hot" 20 launches back to back; figures are medians. The GPU
waits in front of each measured launch until the host has made it: the host's time does not count.
"""
import argparse
import datetime
import itertools
import json
import pathlib
import random
import sys
import time

REST = 0.040  # seconds
HOT = 20      # launches
AHEAD = 400_000  # cycles of the GPU for the host's part of a launch; four more for its first one
READ_BYTES = 2**31
WRONG = 0.03  # of the largest value: not rounding any more


class Bench:
    """The GPU, as PyTorch and the Python package see it, and what the command line says."""

    def __init__(self, torch, tartan, words):
        self.torch, self.tartan = torch, tartan
        self.device = tartan.Device("cuda:0")
        self.rounds, self.configs = words.rounds, words.config
        self.found = {}    # of prepare()
        self.refused = []  # configurations of ours that were not measured

    def compiled(self, kernel, **options):
        """A kernel on the GPU: call launch() of it."""
        return Ours(self, self.device.load(self.tartan.compile(kernel, self.device, **options)))

    def entries(self, make, outputs, operations, note, runs=1):
        """An entry for each configuration: `make(**options)` gives a function that launches ours, which runs
        on outputs of NaN. What is refused is said and left out, and the program fails for it at its end."""
        out = []
        for config in self.configs:
            try:
                run = make(**options_of(config))
                for _ in range(runs):
                    for each in outputs if isinstance(outputs, list) else [outputs]:
                        each.fill_(float("nan"))
                    run()
            except self.tartan.Error as error:
                print(f"{config}: {error}", file=sys.stderr)
                self.refused.append(config)
                continue
            self.torch.cuda.synchronize()
            out.append(Entry(config, False, run, operations, note()))
        return out


class Ours:
    def __init__(self, bench, function):
        self.torch, self.stream, self.function = bench.torch, bench.torch.cuda.current_stream, function

    def work(self, values, grid=()):
        """Work space of a launch by name, zeros."""
        types = {each.name: each.type for each in self.function.parameters}
        sizes = {each.name: values[each.name] for each in self.function.parameters
                 if not each.pointer and each.type != "f32"}
        return {name: self.torch.zeros(count * int(types[name].lstrip("bfsu")) // 8, dtype=self.torch.uint8, device="cuda")
                for name, count in self.function.work_space(grid=grid, **sizes).items()}

    def launch(self, values, grid=(), programmatic=False):
        """A function that launches the kernel, its arguments by name, on PyTorch's current stream. What work space
        `values` lacks is made."""
        values = {**self.work(values, grid), **values}
        arguments = [values[each.name] for each in self.function.parameters]
        return lambda: self.function(*arguments, grid=grid, stream=self.stream().cuda_stream,
                                     programmatic=programmatic)


def options_of(config):
    """"tuned" or "stages=3,tile=128x128" as options of tartan.compile()."""
    if config == "tuned":
        return {}
    pairs = (each.partition("=")[::2] for each in config.split(","))
    return {name: int(value) if value.isdigit() else value or True for name, value in pairs}


class Entry:
    def __init__(self, name, peer, launch, operations, note):
        self.name, self.peer, self.launch, self.operations, self.note = name, peer, launch, operations, note
        self.cool, self.hot = [], []


def seconds(torch, launch, count):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(AHEAD * (count + 4))
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


def torch_type(torch, name):
    return {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}[name]


def sizes(word):
    """"128x4096" as numbers."""
    return [int(each) for each in word.split("x")]


def read_words(description, axes):
    """Command line: an option for each axis, of which a list may have several values."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, values in axes.items():
        several = isinstance(values, list)
        kind = type(values[0] if several else values)
        word = "--" + name.replace("_", "-")
        if kind is bool:
            parser.add_argument(word, action="store_true")
        else:
            parser.add_argument(word, type=kind, nargs="+" if several else None, default=values,
                                help=" ".join(map(str, values)) if several else str(values))
    parser.add_argument("--config", action="append", metavar="NAME=VALUE,...",
                        help='options of tartan.compile() in addition to the problem\'s; default: "tuned", none')
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures; bench_plot draws them")
    words = parser.parse_args()
    words.config = words.config or ["tuned"]
    return words


def cases_of(words, axes):
    """All combinations of the axes' values."""
    values = [getattr(words, name) for name in axes]
    lists = [each if isinstance(of, list) else [each] for each, of in zip(values, axes.values())]
    return [dict(zip(axes, each)) for each in itertools.product(*lists)]


def run_contests(description, unit, axes, contest, prepare=lambda torch: {}):
    """main(): `contest(bench, case)` measures a case, a value of each axis, and gives its race; `prepare(torch)` finds
    what goes into the head of the results: names and TB/s."""
    words = read_words(description, axes)
    try:
        import torch
        import tartan
    except ImportError as error:
        sys.exit(f"PyTorch and the package tartan are needed: {error}")
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    torch.zeros(1, device="cuda")  # its context, which the device shares
    bench = Bench(torch, tartan, words)
    with torch.inference_mode():
        bench.found = prepare(torch)
        torch.cuda.empty_cache()
        run = {"program": pathlib.Path(sys.argv[0]).stem, "command": " ".join(sys.argv),
               "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
               "device": torch.cuda.get_device_name(0), "driver": driver_version(), "unit": unit, **bench.found,
               "libraries": {"PyTorch": torch.__version__, "cuDNN": str(torch.backends.cudnn.version())}, "races": []}
        print(f"{run['device']}, driver {run['driver']}, {run['libraries']}"
              + "".join(f", {name.replace('_', ' ')} {value:.3f} TB/s" for name, value in bench.found.items()),
              flush=True)
        for case in cases_of(words, axes):
            run["races"].append(contest(bench, case))
            torch.cuda.empty_cache()
            if words.json:  # what there is so far, should a later case fail
                words.json.write_text(json.dumps(run, indent=1) + "\n")
    wrong = [f"{case['title']}: {figure['name']}" for case in run["races"] for figure in case["figures"]
             if not figure["peer"] and "WRONG" in figure["note"]]
    problems = [f"{what}: {'; '.join(names)}" for what, names in (("wrong results", wrong),
                                                                  ("not measured", bench.refused)) if names]
    if problems:
        sys.exit("\n".join(problems))
