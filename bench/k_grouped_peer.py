#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fp8 products grouped along k, with fine scales, beside DeepGEMM's.

    PYTHONPATH=DEEPGEMM python3 bench/k_grouped_peer.py    # with PyTorch, tartan and nvcc, on a GPU

DEEPGEMM is the folder of deep_gemm/, as for scaled_gemm_peer.py (commit 8dfa329, which launches a kernel for each
group; later ones, one for all). It adds to C; its A and B lie group after group, each with rows of its own length, so
they are copies of ours. Both run as CUDA graphs. How they are timed: see peer.py. Results of the first and the last
group are compared with a plain f32 product of the scaled elements, and all of C with DeepGEMM's.
"""
import random
import sys

from peer import WRONG, Entry, measure, note_of, options_of, race, run_contests, sizes, table

BLOCK = 128
AXES = {"shape": ["4x4096x7168x8192", "4x7168x2048x8192", "8x4096x7168x4096", "8x7168x2048x4096", "16x4096x7168x2048",
                  "16x7168x2048x2048"], "overwrite": False}


def drawn(groups, depth):
    """Depths from 0.7 to 1.3 times that, multiples of 128: the same in each run."""
    choice = random.Random(groups)
    return [-(-int(depth * choice.uniform(0.7, 1.3)) // BLOCK) * BLOCK for _ in range(groups)]


def quantized(torch, rows, k):
    """[rows, k] in e4m3, and a scale for 128 of each row: [k / 128, rows]."""
    x = torch.randn((rows, k // BLOCK, BLOCK), device="cuda", dtype=torch.bfloat16)
    scale = x.abs().float().amax(dim=2).clamp(1e-4) / 448
    elements = (x.float() / scale[:, :, None]).to(torch.float8_e4m3fn).view(rows, k)
    return elements, scale.T.contiguous()


def by_group(torch, elements, depths):
    """One group's rows after the other's, contiguous each."""
    out, begin = [], 0
    for depth in depths:
        out.append(elements[:, begin:begin + depth].contiguous().view(-1))
        begin += depth
    return torch.cat(out)


def peer_launch(torch, a, b, c, depths):
    """A function that launches DeepGEMM's; none without it."""
    try:
        import cuda.bindings.nvrtc  # noqa: F401  before DeepGEMM
        import deep_gemm
    except ImportError as error:
        print(f"DeepGEMM is not measured: {error}", file=sys.stderr)
        return None
    a, b = ((by_group(torch, elements, depths), scales) for elements, scales in (a, b))
    old = getattr(deep_gemm, "k_grouped_wgrad_gemm_fp8_fp8_fp32_nt", None)
    if old:
        return lambda: old(a, b, c, depths)
    a, b = ((elements, scales.T) for elements, scales in (a, b))
    on_gpu = torch.tensor(depths, device="cuda", dtype=torch.int32)
    return lambda: deep_gemm.k_grouped_fp8_gemm_nt_contiguous(a, b, c, depths, on_gpu, c)


def graph_of(torch, run):
    """A function that launches a graph of what `run` launches, so that the host's time for each does not count."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        run()
    return lambda keep=run: graph.replay()  # the graph does not keep the kernel


def expected_of(torch, a, b, depths, group):
    """[m, n] of one group, in f32."""
    begin = sum(depths[:group])
    blocks = slice(begin // BLOCK, (begin + depths[group]) // BLOCK)

    def scaled(operand):
        elements, scales = operand
        part = elements[:, begin:begin + depths[group]].float()
        return part * scales[blocks].T.repeat_interleave(BLOCK, dim=1)

    return scaled(a) @ scaled(b).T


def contest(bench, case):
    """Measures one case; gives its race."""
    torch = bench.torch
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    groups, m, n, depth = sizes(case["shape"])
    depths, accumulate = drawn(groups, depth), not case["overwrite"]
    a, b = quantized(torch, m, sum(depths)), quantized(torch, n, sum(depths))
    before = torch.randn((groups, m, n), device="cuda") * 10
    c, on_gpu = torch.empty_like(before), torch.tensor(depths, device="cuda", dtype=torch.int32)
    values = {"groups": groups, "A": a[0].view(torch.uint8), "SA": a[1], "B": b[0].view(torch.uint8), "SB": b[1],
              "C": c, "depth_of_group": on_gpu}
    checked = {0, groups - 1}
    products = {group: expected_of(torch, a, b, depths, group) for group in checked}
    operations = 2 * m * n * sum(depths)

    def entry(name, run, peer, accumulates):
        c.copy_(before) if accumulates else c.fill_(float("nan"))
        run()
        torch.cuda.synchronize()
        want = {group: product + before[group] if accumulates else product for group, product in products.items()}
        note = note_of(c, want)
        return Entry(name, peer, graph_of(torch, run), operations, note)

    entries = []
    other = peer_launch(torch, a, b, c, depths)
    if other:
        entries.append(entry("DeepGEMM", other, True, True))
        theirs = c.clone() if accumulate else c - before
    for config in bench.configs:
        try:
            kernel = bench.compiled("k_grouped_gemm", m=m, n=n, k=sum(depths), accumulate=accumulate,
                                    **options_of(config))
        except bench.tartan.Error as error:
            print(f"{config}: {error}", file=sys.stderr)
            bench.refused.append(config)
            continue
        each = entry(config, kernel.launch(values), False, accumulate)
        if other:
            apart = ((c - theirs).abs().max() / theirs.abs().max()).item()
            each.note += f", {'' if apart < WRONG else 'WRONG: '}{apart:.1e} from DeepGEMM"
        entries.append(each)
    measure(torch, entries, bench.rounds)
    title = f"grouped along k, {groups} groups of {m} x {n} x ~{depth}{', added to C' * accumulate}"
    return race(title, entries, table(title, entries))


if __name__ == "__main__":
    run_contests(__doc__, "TFLOP/s", AXES, contest)
