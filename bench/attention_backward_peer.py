#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gradients of attention beside cuDNN's and FlashAttention's, in one process on one GPU.

    python3 bench/attention_backward_peer.py     # with PyTorch and the package tartan, on a GPU

The peers are the backward pass of torch.nn.functional.scaled_dot_product_attention restricted to one backend each.
Each figure has all kernels of a backward pass; five products are counted, half of them when causal. How it is
timed: see peer.py. Gradients are
compared with a plain f32 computation of the first and the last head.
"""
import sys

from attention_peer import AXES, operations_of, problem_of, title_of
from peer import WRONG, Entry, error_of, measure, race, run_contests, table, torch_type



def peers(torch, case, q, k, v, d_o):
    """(name, function that gives the gradients) of every backend that takes the problem."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    attention = torch.nn.functional.scaled_dot_product_attention
    share = case["heads"] // case["kv_heads"]
    for name, backend in (("cuDNN", "CUDNN_ATTENTION"), ("FlashAttention", "FLASH_ATTENTION")):
        try:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                leaves = [each.detach().requires_grad_() for each in (q, k, v)]
                out = attention(*leaves, is_causal=bool(case["causal"]), **({"enable_gqa": True} if share > 1 else {}))

            def run(out=out, leaves=leaves):
                return torch.autograd.grad(out, leaves, d_o, retain_graph=True)

            run()
            torch.cuda.synchronize()
        except (RuntimeError, TypeError) as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        yield name, run


def reference(torch, case, q, k, v, d_o, batch, kv_head):
    """Gradients of one head of keys and of its heads of queries, in f32, some queries at a time."""
    length, share, scale = case["length"], case["heads"] // case["kv_heads"], case["head_dim"] ** -0.5
    keys, values = k[batch, kv_head].float(), v[batch, kv_head].float()
    d_q, d_k, d_v = [], torch.zeros_like(keys), torch.zeros_like(values)
    for head in range(kv_head * share, kv_head * share + share):
        for begin in range(0, length, 2048):
            queries, slopes = (each[batch, head, begin:begin + 2048].float() for each in (q, d_o))
            scores = queries @ keys.T * scale
            if case["causal"]:
                rows = torch.arange(begin, begin + queries.shape[0], device=q.device)
                scores.masked_fill_(torch.arange(length, device=q.device)[None, :] > rows[:, None], float("-inf"))
            p = torch.softmax(scores, -1)
            d_v += p.T @ slopes
            d_s = slopes @ values.T
            d_s = p * (d_s - (p * d_s).sum(-1, keepdim=True)) * scale
            d_k += d_s.T @ queries
            d_q.append(d_s @ keys)
    return torch.cat(d_q).view(share, length, -1)[0], d_k, d_v


def note_of(got, expected):
    worst = [error_of(each, expected[i]) for i, each in enumerate(got)]
    return ("WRONG: " if max(worst) > WRONG else "") + "errors " + " ".join(f"{each:.1e}" for each in worst)


def contest(bench, case):
    torch, case = bench.torch, problem_of(case)
    batch, heads, kv_heads, length, d = (case[each] for each in ("batch", "heads", "kv_heads", "length", "head_dim"))
    kind, share, causal = torch_type(torch, case["type"]), case["share"], bool(case["causal"])
    torch.manual_seed(1)
    make_matrix = lambda heads: torch.randn((batch, heads, length, d), device="cuda", dtype=kind)
    q, k, v, d_o = (make_matrix(each) for each in (heads, kv_heads, kv_heads, heads))
    o, lse = torch.ops.aten._scaled_dot_product_flash_attention(
        q, *(each.repeat_interleave(share, 1) for each in (k, v)), 0.0, causal)[:2]
    o = o.contiguous()
    gradients = [torch.empty_like(each) for each in (q, k, v)]
    values = {"queries": length, "keys": length, "heads": heads, "kv_heads": kv_heads, "scale": d ** -0.5, "Q": q,
              "K": k, "V": v, "O": o, "dO": d_o, "LSE": lse, "dQ": gradients[0], "dK": gradients[1],
              "dV": gradients[2]}

    def make(**options):
        kernels = [bench.compiled("attention_backward" + name, type=case["type"], head_dim=d, causal=causal,
                                  **options) for name in ("_rows", "", "_queries")]
        work = kernels[0].work(values, (0, 0, batch))
        steps = [each.launch({**work, **values}, grid=(0, 0, batch)) for each in kernels]

        def run():
            for each in steps:
                each()

        return run

    expected = [{}, {}, {}]
    for of_batch, kv_head in {(0, 0), (batch - 1, kv_heads - 1)}:
        parts = reference(torch, case, q, k, v, d_o, of_batch, kv_head)
        expected[0][of_batch, kv_head * share] = parts[0]
        expected[1][of_batch, kv_head], expected[2][of_batch, kv_head] = parts[1], parts[2]
    operations = operations_of(case, 5)
    # The second run on the work space that the first one left.
    entries = bench.entries(make, gradients, operations, lambda: note_of(gradients, expected), runs=2)
    for name, run in peers(torch, case, q, k, v, d_o):
        entries.append(Entry(name, True, run, operations, note_of(run(), expected)))
    measure(torch, entries, bench.rounds)
    title = "attention backward, " + title_of(case)
    return race(title, entries, table(title, entries))


def contest_with_gradients(bench, case):
    with bench.torch.inference_mode(False):
        return contest(bench, case)


if __name__ == "__main__":
    run_contests(__doc__, "TFLOP/s", {**AXES, "head_dim": [128]}, contest_with_gradients)
