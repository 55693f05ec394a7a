#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed-input GEMM (W4A16, W8A16) beside the GPU's read bandwidth and cuBLAS's product of 16 bits.

    python3 bench/mixed_peer.py        # with PyTorch and the package tartan, on a GPU

A measured launch is a CUDA graph of launches that rotate through copies of the weights, 256 MB of them at least, so that
neither the second-level cache nor the host's launches count. Figures are the bytes of weights, scales, zero points and X
over time, beside the read bandwidth (that of the fastest of some sums over 2 GiB, in the same process); cuBLAS's are the
same bytes over its time, with weights of 16 bits, so that ratios are those of times. Outputs of the first and the last
copy are compared with a product in f32, for which the weights are put back in order here. Our
launches are programmatic dependent ones (each may copy weights while the one before it ends), and "alone" others.
"""
from peer import (WRONG, Entry, bandwidth_table, error_of, measure, median, options_of, race, read_bandwidth,
                  run_contests, sizes, torch_type)

ROTATED = 2**28  # bytes
LAUNCHES = 20    # of a graph, at least
ROWS = 256       # of X that are compared
AXES = {"shape": [f"{m}x{matrix}" for matrix in ("8192x8192", "14336x4096", "4096x14336")
                  for m in (1, 4, 8, 16, 64, 4096)],
        "type": "bf16", "weight": "u4", "group": 128, "zeros": False}


def dense(torch, case, w, s, z):
    """W transposed, n x k in f32: the inverse of kernels::shuffled_weights()."""
    n, k, group = case["n"], case["k"], case["group"]
    if case["bits"] == 4:
        # columns, k, g, t, MMA, half, row half, column half
        shifts = torch.arange(0, 32, 4, device=w.device, dtype=torch.int32)
        values = (w.view(torch.int32)[:, None] >> shifts & 15).view(n // 16, k // 64, 8, 4, 4, 2, 2, 2)
        values = values.permute(0, 7, 2, 1, 4, 6, 3, 5)
    else:
        # columns, k, block, g, t, MMA, row half, half, column half
        values = w.view(n // 16, k // 64, 2, 8, 4, 2, 2, 2, 2).permute(0, 8, 3, 1, 2, 5, 6, 4, 7)
    in_order = lambda x: x.view(k // group, n // 16, 8, 2).permute(1, 3, 2, 0).reshape(n, k // group, 1).float()
    zero = in_order(z) if case["zeros"] else float(1 << case["bits"] - 1)
    values = values.reshape(n, k // group, group).float()
    return ((values - zero) * in_order(s)).view(n, k)


def graph_of(torch, calls):
    """A function that launches a CUDA graph of the calls in turn, and how many there are."""
    for each in calls:  # outside of the capture: cuBLAS makes its handle
        each()
    torch.cuda.synchronize()
    graph, count = torch.cuda.CUDAGraph(), max(LAUNCHES, len(calls))
    with torch.cuda.graph(graph):
        for i in range(count):
            calls[i % len(calls)]()
    return lambda keep=calls: graph.replay(), count  # the graph does not keep the kernels


def contest(bench, case):
    """Measures one case; gives its race."""
    torch = bench.torch
    case["m"], case["n"], case["k"] = m, n, k = sizes(case["shape"])
    case["bits"] = int(case["weight"][1:])
    kind, groups = torch_type(torch, case["type"]), k // case["group"]
    torch.manual_seed(1)
    weight_bytes = n * k * case["bits"] // 8
    size = weight_bytes + n * groups * (3 if case["zeros"] else 2) + m * k * 2
    copies = max(2, -(-ROTATED // weight_bytes))
    most = (1 << case["bits"]) - 1
    bytes_of = lambda count, end: torch.randint(0, end, (count,), device="cuda", dtype=torch.uint8)
    x = torch.randn((m, k), device="cuda", dtype=kind)
    y = torch.empty((m, n), device="cuda", dtype=kind)
    weights = [bytes_of(weight_bytes, 256) for _ in range(copies)]
    scales = [((torch.rand(n * groups, device="cuda") + 0.5) / most).to(kind) for _ in range(copies)]
    zeros = [bytes_of(n * groups, most + 1) for _ in range(copies)] if case["zeros"] else [None] * copies
    expected = {copy: x[:ROWS].float() @ dense(torch, case, weights[copy], scales[copy], zeros[copy]).T
                for copy in (0, copies - 1)}
    entries, work = [], {}

    def add(name, peer, calls):
        """`calls`: of copies of the weights."""
        worst = 0.0
        for copy in expected:
            y.fill_(float("nan"))
            calls[copy]()
            worst = max(worst, error_of(y[:ROWS], {slice(None): expected[copy]}))
        run, count = graph_of(torch, list(calls.values()))
        note = f"{'WRONG: ' if worst > WRONG else ''}error {worst:.1e}"
        if "counters" in work and work["counters"].any():
            note = "WRONG: counters are not zero"
        entries.append(Entry(name, peer, run, size * count, note))

    for config in bench.configs:
        try:
            kernel = bench.compiled("mixed_gemm", m=m, n=n, k=k, type=case["type"], weight=case["weight"],
                                    scale_group=case["group"], zeros=case["zeros"], **options_of(config))
            work = kernel.work({})
            for programmatic in (True, False):
                add(config + " (alone)" * (not programmatic), False,
                    {copy: kernel.launch({"X": x, "W": weights[copy], "S": scales[copy],
                                          "Z": zeros[copy], "Y": y, **work},
                                         programmatic=programmatic) for copy in range(copies)})
        except bench.tartan.Error as error:
            print(f"{config}: {error}", flush=True)
            bench.refused.append(config)
    # Two copies suffice: each has four (two) times as many bytes.
    wide = {copy: dense(torch, case, weights[copy], scales[copy], zeros[copy]).to(kind) for copy in expected}
    add("cuBLAS", True, {copy: lambda each=each: torch.matmul(x, each.T, out=y) for copy, each in wide.items()})
    measure(torch, entries, bench.rounds)
    for each in entries:
        rates = " ".join(f"{median(rates) * 2 * m * n * k / size:.0f}" for rates in (each.cool, each.hot))
        each.note = f"{rates} TFLOP/s  {each.note}"
    title = (f"mixed input, {case['shape']} {case['weight']}, {case['type']}, group {case['group']}"
             f"{', zeros' * case['zeros']}")
    return race(title, entries, bandwidth_table(title, entries, bench.found["read_bandwidth"], "operands"))


if __name__ == "__main__":
    run_contests(__doc__, "TB/s", AXES, contest, lambda torch: {"read_bandwidth": read_bandwidth(torch)})
