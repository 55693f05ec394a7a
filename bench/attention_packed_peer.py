#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The attention kernel over packed sequences beside PyTorch's, in one process on one GPU.

    gpu_attention --packed 8192 4096 1000 7 --emit DIR   # anywhere: PTX and launches.json
    python3 attention_packed_peer.py DIR                 # with PyTorch, on the GPU

The peers are PyTorch's FlashAttention with the same starts and, where causal, cuDNN's over sequences padded to the
longest one: its time has the padding, its rate counts what the sequences need. (PyTorch's call of cuDNN with starts takes
74 ms whatever the lengths.) How it is timed: see peer.py. The longest, the first and the last sequence are compared with a plain f32 computation.
"""
import sys

from attention_peer import reference
from peer import Entry, measure, note_of, own_entries, race, run_contests, table


def peers(torch, case, q, k, v, starts):
    """(name, function that gives O of all sequences) of every peer that takes the problem."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    lengths, share, causal = case["packed"], case["heads"] // case["kv_heads"], case["causal"]
    longest = max(lengths)

    def flash():
        return torch.ops.aten._flash_attention_forward(q, k, v, starts, starts, longest, longest, 0.0, causal,
                                                       False)[0]

    def padded(each):
        out = torch.zeros((len(lengths), longest, *each.shape[1:]), device="cuda", dtype=each.dtype)
        for i, length in enumerate(lengths):
            out[i, :length] = each[starts[i]:starts[i] + length]
        return out.transpose(1, 2).contiguous()

    wide = [padded(each) for each in (q, k, v)] if causal and len(lengths) * longest * q[0].numel() < 2**31 else []

    def cudnn_padded():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=True, enable_gqa=share > 1)

    def of_sequences(out):  # causal: padding comes after all that a query sees
        return torch.cat([out[i, :, :length].transpose(0, 1) for i, length in enumerate(lengths)])

    for name, run, rows in (("FlashAttention", flash, lambda out: out),
                            ("cuDNN, padded", cudnn_padded, of_sequences)):
        if run is cudnn_padded and not wide:
            continue
        try:
            rows(run())
            torch.cuda.synchronize()
        except (RuntimeError, TypeError) as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        yield name, run, rows


def contest(torch, driver, folder, case, rounds):
    """Measures one case; gives its race."""
    kind = {"bf16": torch.bfloat16, "f16": torch.float16}[case["type"]]
    torch.manual_seed(1)
    lengths = case["packed"]
    make = lambda heads: torch.randn((case["length"], heads, case["head_dim"]), device="cuda", dtype=kind)
    q, k, v = make(case["heads"]), make(case["kv_heads"]), make(case["kv_heads"])
    o = torch.empty_like(q)
    lse = torch.empty((case["heads"], case["length"]), device="cuda", dtype=torch.float32)
    begins = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    starts = torch.tensor(begins, device="cuda", dtype=torch.int32)
    addresses = {name: each.data_ptr()
                 for name, each in (("Q", q), ("K", k), ("V", v), ("O", o), ("LSE", lse), ("starts", starts))}
    expected = {}
    for i in {0, len(lengths) - 1, lengths.index(max(lengths))}:
        rows = slice(begins[i], begins[i + 1])
        one = [each[None, rows].transpose(1, 2) for each in (q, k, v)]
        for head in {0, case["heads"] - 1}:
            expected[(i, head)] = reference(torch, {**case, "length": lengths[i]}, *one, 0, head)
    parts = lambda out: {(i, head): out[begins[i]:begins[i + 1], head] for i, head in expected}

    entries = own_entries(torch, driver, folder, case, addresses, o, case["operations"],
                          lambda: note_of(parts(o), expected))
    for name, run, rows in peers(torch, case, q, k, v, starts):
        entries.append(Entry(name, True, run, case["operations"], note_of(parts(rows(run())), expected)))
    measure(torch, entries, rounds)
    title = "attention, " + case["title"]
    return race(title, entries, table(title, entries))


if __name__ == "__main__":
    run_contests("attention_packed_peer", "gpu_attention --packed", __doc__, "TFLOP/s", contest)
