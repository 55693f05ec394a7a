#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fp8 products grouped along k, with fine scales, beside DeepGEMM's.

    gpu_k_grouped --emit DIR                          # anywhere: PTX and launches.json
    PYTHONPATH=DEEPGEMM python3 k_grouped_peer.py DIR # with PyTorch and nvcc, on the GPU

DEEPGEMM is the folder of deep_gemm/, as for scaled_gemm_peer.py (commit 8dfa329, which launches a kernel for each
group; later ones, one for all). It adds to C; its A and B lie group after group, each with rows of its own length, so
they are copies of ours. Both run as CUDA graphs. How they are timed: see peer.py. Results of the first and the last
group are compared with a plain f32 product of the scaled elements, and all of C with DeepGEMM's.
"""
import sys

from peer import WRONG, Entry, measure, note_of, own_launch, race, run_contests, table

BLOCK = 128


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
    return graph.replay


def expected_of(torch, a, b, depths, group):
    """[m, n] of one group, in f32."""
    begin = sum(depths[:group])
    blocks = slice(begin // BLOCK, (begin + depths[group]) // BLOCK)

    def scaled(operand):
        elements, scales = operand
        part = elements[:, begin:begin + depths[group]].float()
        return part * scales[blocks].T.repeat_interleave(BLOCK, dim=1)

    return scaled(a) @ scaled(b).T


def contest(torch, driver, folder, case, rounds):
    """Measures one case; gives its race."""
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    m, n, depths = case["m"], case["n"], case["depths"]
    a, b = quantized(torch, m, sum(depths)), quantized(torch, n, sum(depths))
    before = torch.randn((len(depths), m, n), device="cuda") * 10
    c, on_gpu = torch.empty_like(before), torch.tensor(depths, device="cuda", dtype=torch.int32)
    addresses = {name: each.data_ptr() for name, each in (
        ("A", a[0]), ("SA", a[1]), ("B", b[0]), ("SB", b[1]), ("C", c), ("depths", on_gpu))}
    checked = {0, len(depths) - 1}
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
        theirs = c.clone() if case["accumulate"] else c - before
    for launch in case["launches"]:
        run = own_launch(driver, folder, launch, addresses, lambda: torch.cuda.current_stream().cuda_stream)
        each = entry(launch["name"], run, False, case["accumulate"])
        if other:
            apart = ((c - theirs).abs().max() / theirs.abs().max()).item()
            each.note += f", {'' if apart < WRONG else 'WRONG: '}{apart:.1e} from DeepGEMM"
        entries.append(each)
    measure(torch, entries, rounds)
    title = "grouped along k, " + case["title"]
    return race(title, entries, table(title, entries))


if __name__ == "__main__":
    run_contests("k_grouped_peer", "gpu_k_grouped", __doc__, "TFLOP/s", contest)
