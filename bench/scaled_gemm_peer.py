#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scaled_gemm beside DeepGEMM, in one process on one GPU.

    python3 bench/scaled_gemm_peer.py --peer DEEPGEMM [--config NAME=VALUE,... ...]

It needs PyTorch, the package tartan, nvcc and DeepGEMM's sources (commit 8dfa329 with CUTLASS's include/cute and
include/cutlass at eefa171 in deep_gemm/include). Of dense problems tuned kernels are measured and, with each --config
(options of tartan.compile()), others. Operands are DeepGEMM's own test's. Each output is compared with DeepGEMM's and
with the product in bf16. Both run in CUDA graphs of some launches back to back, so that the host's launches do not
count; problems of few rows on operands that are not in the L2, one after the other. Rounds are shuffled, figures are
medians.
"""
import argparse
import concurrent.futures
import functools
import itertools
import os
import random
import statistics
import sys
import time

from peer import options_of

DENSE = [(4096, 7168, 16384), (8192, 8192, 8192), (4096, 2112, 7168), (4096, 24576, 1536), (4096, 4096, 7168)]
SMALL = [(m, n, k) for m in (64, 128)
         for n, k in ((2112, 7168), (24576, 1536), (7168, 16384), (4096, 7168), (7168, 2048))]
NARROW = [(64, 1536, 7168), (64, 1024, 7168), (64, 576, 7168), (64, 256, 16384), (16, 576, 7168), (128, 1024, 7168),
          (128, 576, 7168)]
CONTIGUOUS = [(4, 8192, 4096, 7168), (4, 8192, 7168, 2048), (8, 4096, 4096, 7168), (32, 256, 4096, 7168)]
MASKED = [(1, 1024, 4096, 7168), (2, 512, 4096, 7168), (4, 256, 4096, 7168), (8, 64, 4096, 7168)]
MASKED_ROWS = 4096
# How many rows a group has, no option says: grouped kernels have the configurations of tuned() for that many.
GROUPED_CONFIG = "tile=128x256,warps=8x1,stages=4,cluster=2,share_a"
MASKED_CONFIGS = {1024: "tile=128x128,warps=8x1,stages=3,blocks_k=2,cluster=2,share_a",
                  512: "tile=128x128,warps=8x1,stages=3,blocks_k=2,cluster=2,share_a",
                  256: "tile=128x128,warps=8x1,stages=3,blocks_k=2",
                  64: "tile=64x128,warps=4x1,stages=4,blocks_k=2"}


def cases():
    """Name, grouping, groups, rows (of a group), n and k."""
    for m, n, k in DENSE + SMALL + NARROW:
        yield f"{m}x{n}x{k}", "none", 1, m, n, k
    for groups, m, n, k in CONTIGUOUS:
        yield f"contiguous {groups}x{m}x{n}x{k}", "contiguous", groups, m, n, k
    for groups, m, n, k in MASKED:
        yield f"masked {groups}x{m}x{n}x{k}", "masked", groups, m, n, k


def group_rows(name, groups, rows, draw=0):
    """Rows of each group, 0.7 to 1.3 times as many as expected: the same in both runs."""
    choice = random.Random(f"{name} {draw}" if draw else name)
    return [int(rows * choice.uniform(0.7, 1.3)) for _ in range(groups)]


def stored_rows(name, grouping, groups, rows):
    if grouping == "contiguous":
        return sum((each + 127) // 128 * 128 for each in group_rows(name, groups, rows))
    return MASKED_ROWS if grouping == "masked" else rows


def configs_of(grouping, rows, given):
    """Of a case: tuned, and those that are given."""
    if grouping == "none":
        return ["tuned", *given]
    return [GROUPED_CONFIG if grouping == "contiguous" else MASKED_CONFIGS[rows], *given]


@functools.cache
def function_of(tartan, device, config, grouping, rows, n, k):
    """Once for each kernel: copies of it would each be fetched into the instruction caches."""
    return device.load(tartan.compile("scaled_gemm", device, m=rows, n=n, k=k, grouping=grouping,
                                      **options_of(config)))


def own_launch(torch, function, tensors, groups, alone):
    """A function that launches the kernel on PyTorch's current stream. `alone`: it begins when the launch in front
    has ended, not beside its end."""
    values = {**tensors, "groups": groups}
    arguments = [values[each.name] for each in function.parameters]
    return lambda: function(*arguments, stream=torch.cuda.current_stream().cuda_stream, programmatic=not alone)


class Problem:
    """Operands, the peer's launch, and what C should be."""

    def __init__(self, torch, deep_gemm, test, name, grouping, groups, rows, n, k, draw=0):
        self.grouping, self.groups = grouping, groups
        index = None
        if grouping == "none":
            a, b, self.peer_c, self.expected = test.construct(rows, k, n)
            self.valid = None
            valid_rows = rows
            self.peer = lambda: deep_gemm.gemm_fp8_fp8_bf16_nt(a, b, self.peer_c)
        else:
            counts = iter(group_rows(name, groups, rows, draw))
            test.random = argparse.Namespace(uniform=lambda low, high: next(counts) / rows + 1e-9)
            if grouping == "contiguous":
                _, a, b, index, self.peer_c, self.expected = test.construct_contiguous_grouped(groups, rows, k, n)
                a = (a[0], deep_gemm.get_col_major_tma_aligned_tensor(a[1]))
                self.valid = index >= 0
                self.peer = lambda: deep_gemm.m_grouped_gemm_fp8_fp8_bf16_nt_contiguous(a, b, self.peer_c, index)
            else:
                a, b, index, self.peer_c, self.expected = test.construct_masked_grouped(groups, MASKED_ROWS, rows, k, n)
                line = torch.arange(MASKED_ROWS, device="cuda")
                self.valid = line[None, :] < index[:, None]
                self.peer = lambda: deep_gemm.m_grouped_gemm_fp8_fp8_bf16_nt_masked(a, b, self.peer_c, index, rows)
            valid_rows = int(self.valid.sum())
        self.operations = 2 * valid_rows * n * k
        self.bytes = valid_rows * (k + 2 * n) + groups * n * k
        bits = lambda x: x.view(torch.uint8)
        # DeepGEMM has the scales of A with columns that are contiguous: as they lie, rows of its transpose.
        self.tensors = {"A": bits(a[0]), "SA": a[1].mT, "B": bits(b[0]), "SB": b[1], "C": torch.empty_like(self.peer_c),
                        "group_of_row": index, "rows_of_group": index}

    def wrong(self, torch, deep_gemm):
        """What is wrong with C; empty if nothing is."""
        c = self.tensors["C"]
        if self.valid is None:
            kept, want, theirs = c, self.expected, self.peer_c
        else:
            if not torch.isnan(c[~self.valid]).all():
                return "rows that do not exist were written"
            kept, want, theirs = c[self.valid], self.expected[self.valid], self.peer_c[self.valid]
        difference = deep_gemm.calc_diff(kept, want)
        if not difference < 1e-3:
            return f"differs from the product: {difference:.2e}"
        apart = (kept.float() - theirs.float()).abs().max().item() / want.float().abs().max().item()
        return f"differs from DeepGEMM: {apart:.2e}" if not apart < 0.01 else ""


def seconds_of(torch, replay):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e-3


def graph_of(torch, runs):
    """One graph of all launches."""
    runs[0]()
    torch.cuda.synchronize()
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):
        for run in runs:
            run()
    return graph.replay


failed = []  # kernels of ours whose results were wrong


def measure(torch, tartan, device, deep_gemm, test, name, given, seconds, ways, draw=0):
    """Ratios of each configuration."""
    rest = next(each[1:] for each in cases() if each[0] == name)
    small = rest[0] == "none" and rest[2] <= 128
    copies = 1
    if small:
        copies = max(2, -(-(160 << 20) // (rest[3] * rest[4])))
    problems = [Problem(torch, deep_gemm, test, name, *rest, draw) for _ in range(copies)]
    first = problems[0]
    first.peer()
    runs = {"DeepGEMM": [each.peer for each in problems]}
    grouping, groups, rows, n, k = rest
    for config, way in itertools.product(configs_of(grouping, rows, given), ways):
        key = f"{config} {way}".strip()
        try:
            function = function_of(tartan, device, config, grouping, stored_rows(name, grouping, groups, rows), n, k)
        except tartan.Error as error:
            print(f"{name}, {config}: {error}", file=sys.stderr)
            failed.append(f"{name}: {config}")
            continue
        own = [own_launch(torch, function, each.tensors, groups, bool(way)) for each in problems]
        first.tensors["C"].fill_(float("nan"))
        own[0]()
        torch.cuda.synchronize()
        wrong = first.wrong(torch, deep_gemm)
        if wrong:
            print(f"{name}, {key}: WRONG: {wrong}")
            failed.append(f"{name}: {key}")
        runs[key] = own
    count = copies if small else 6
    graphs = {key: graph_of(torch, each if small else each * count) for key, each in runs.items()}
    times = {key: [] for key in runs}
    begin = time.time()
    while time.time() - begin < seconds and len(times["DeepGEMM"]) < 31:
        for key in random.sample(list(runs), len(runs)):
            times[key].append(seconds_of(torch, graphs[key]) / count)
    median = {key: statistics.median(of) for key, of in times.items()}
    theirs = median["DeepGEMM"]
    rate = lambda of: f"{first.operations / of / 1e12:.0f} TFLOP/s, {of * 1e6:.1f} us, {first.bytes / of / 1e9:.0f} GB/s"
    print(f"{name}{f', draw {draw}' if draw else ''}: DeepGEMM {rate(theirs)}")
    for key in sorted(runs, key=lambda key: median[key]):
        if key != "DeepGEMM":
            print(f"  {theirs / median[key]:.3f}   {rate(median[key])}   {key}", flush=True)
    return {key: theirs / of for key, of in median.items() if key != "DeepGEMM"}


def measure_draws(draws, *arguments):
    """Several draws of the rows of masked groups, and the geometric means of their ratios."""
    ratios = [measure(*arguments, draw) for draw in range(draws)]
    print(f"geometric mean of {draws} draws:")
    mean = {key: statistics.geometric_mean(each[key] for each in ratios) for key in ratios[0]}
    for key in sorted(mean, key=lambda key: -mean[key]):
        print(f"  {mean[key]:.3f}   {key}", flush=True)


def warm(torch, deep_gemm, test, names):
    """Compiles the peer's kernels, many at once."""
    todo = [each for each in cases() if each[0] in names]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for each in todo:
            problem = Problem(torch, deep_gemm, test, *each)
            pool.submit(problem.peer)
            del problem
    torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", action="append", default=[], help="options of the kernel, beside tuned")
    parser.add_argument("--case", default="", help="only cases with this text in their names")
    parser.add_argument("--peer", default="p", help="the folder with deep_gemm/ and tests/")
    parser.add_argument("--draws", type=int, default=1, help="of the rows of masked groups; default: 1")
    parser.add_argument("--alone", action="store_true",
                        help="measure launches of ours, too, that begin when the one in front has ended")
    parser.add_argument("--seconds", type=float, default=2, help="time for each case")
    options = parser.parse_args()
    import cuda.bindings.nvrtc  # noqa: F401  before PyTorch, whose NVRTC is older
    import torch
    import tartan
    deep_gemm_folder = os.path.abspath(options.peer)
    sys.path[:0] = [deep_gemm_folder, f"{deep_gemm_folder}/tests"]
    import deep_gemm
    import test_core
    torch.zeros(1, device="cuda")
    device = tartan.Device("cuda:0")
    names = [each[0] for each in cases() if options.case in each[0]]
    print(torch.cuda.get_device_name(), device.multiprocessors, "multiprocessors")
    warm(torch, deep_gemm, test_core, names)
    for name in names:
        arguments = (torch, tartan, device, deep_gemm, test_core, name, options.config, options.seconds,
                     ["", "alone"] if options.alone else [""])
        if options.draws > 1 and name.startswith("masked"):
            measure_draws(options.draws, *arguments)
        else:
            measure(*arguments)
        torch.cuda.empty_cache()
    if failed:
        sys.exit("wrong or refused: " + "; ".join(failed))


if __name__ == "__main__":
    main()
