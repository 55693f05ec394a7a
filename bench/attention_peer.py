#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The attention kernel beside cuDNN's and FlashAttention, in one process on one GPU.

    python3 bench/attention_peer.py          # with PyTorch and the package tartan, on a GPU

The peers are torch.nn.functional.scaled_dot_product_attention restricted to one backend each. How it
is timed: see peer.py. Every output is compared with a plain f32 computation of the first and the last head.
"""
import sys

from peer import Entry, measure, note_of, race, run_contests, table, torch_type

AXES = {"head_dim": [64, 128], "length": [4096, 16384], "causal": [0, 1], "tokens": 16384, "width": 2048, "share": 1,
        "type": "bf16"}


def problem_of(case):
    """The case with its heads and batch."""
    heads, length = case["width"] // case["head_dim"], case["length"]
    return {**case, "heads": heads, "kv_heads": heads // case["share"], "batch": max(1, case["tokens"] // length)}


def title_of(case):
    shared = f" ({case['kv_heads']} of keys)" if case["kv_heads"] != case["heads"] else ""
    return (f"{case['type']}, {case['length']} queries and keys, {case['heads']} heads of {case['head_dim']}{shared}, "
            f"batch {case['batch']}{', causal' if case['causal'] else ''}")


def operations_of(case, products):
    """Of so many products of queries and keys, half of them when causal."""
    return (2 * products * case["batch"] * case["heads"] * case["head_dim"] * case["length"] ** 2
            / (2 if case["causal"] else 1))


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
                    return attention(q, keys, values, is_causal=bool(case["causal"]), **words)

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


def contest(bench, case):
    """Measures one case; gives its race."""
    torch, case = bench.torch, problem_of(case)
    batch, heads, kv_heads, length, d = (case[each] for each in ("batch", "heads", "kv_heads", "length", "head_dim"))
    kind = torch_type(torch, case["type"])
    torch.manual_seed(1)
    make_matrix = lambda heads: torch.randn((batch, heads, length, d), device="cuda", dtype=kind)
    q, k, v = make_matrix(heads), make_matrix(kv_heads), make_matrix(kv_heads)
    o = torch.empty_like(q)
    lse = torch.empty((batch, heads, length), device="cuda", dtype=torch.float32)
    values = {"queries": length, "keys": length, "heads": heads, "kv_heads": kv_heads, "scale": d ** -0.5, "Q": q,
              "K": k, "V": v, "O": o, "LSE": lse}

    def make(**options):
        kernel = bench.compiled("attention", type=case["type"], head_dim=d, causal=bool(case["causal"]), **options)
        return kernel.launch(values, grid=(0, 0, batch))

    places = {(0, 0), (batch - 1, heads - 1)}
    expected = {place: reference(torch, case, q, k, v, *place) for place in places}
    operations = operations_of(case, 2)
    entries = bench.entries(make, o, operations, lambda: note_of(o, expected))
    for name, run in peers(torch, case, q, k, v):
        entries.append(Entry(name, True, run, operations, note_of(run(), expected)))
    measure(torch, entries, bench.rounds)
    title = "attention, " + title_of(case)
    return race(title, entries, table(title, entries))


if __name__ == "__main__":
    run_contests(__doc__, "TFLOP/s", AXES, contest)
