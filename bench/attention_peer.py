#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The attention kernel beside cuDNN's and FlashAttention, in one process on one GPU.

    gpu_attention --emit DIR                 # anywhere: PTX and launches.json
    python3 attention_peer.py DIR            # with PyTorch, on the GPU

The peers are torch.nn.functional.scaled_dot_product_attention restricted to one backend each. How it
is timed: see peer.py. Every output is compared with a plain f32 computation of the first and the last head.
"""
import sys

from peer import Entry, measure, note_of, own_entries, race, run_contests, table


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

    entries = own_entries(torch, driver, folder, case, addresses, o, case["operations"], lambda: note_of(o, expected))
    for name, run in peers(torch, case, q, k, v):
        entries.append(Entry(name, True, run, case["operations"], note_of(run(), expected)))
    measure(torch, entries, rounds)
    title = "attention, " + case["title"]
    return race(title, entries, table(title, entries))


if __name__ == "__main__":
    run_contests("attention_peer", "gpu_attention", __doc__, "TFLOP/s", contest)
