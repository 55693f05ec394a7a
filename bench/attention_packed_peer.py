#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The attention kernel over packed sequences beside PyTorch's, in one process on one GPU.

    python3 bench/attention_packed_peer.py --lengths 8192,4096,1000,7    # with PyTorch and tartan, on a GPU

The peers are PyTorch's FlashAttention with the same starts and, where causal, cuDNN's over sequences padded to the
longest one: its time has the padding, its rate counts what the sequences need. (PyTorch's call of cuDNN with starts takes
74 ms whatever the lengths.) How it is timed: see peer.py. The longest, the first and the last sequence are compared with a plain f32 computation.
"""
import sys

from attention_peer import reference
from peer import Entry, measure, note_of, race, run_contests, table, torch_type

AXES = {"lengths": ["8192,4096,1000,7"], "head_dim": [64, 128], "causal": [0, 1], "width": 2048, "share": 1,
        "type": "bf16"}


def peers(torch, case, q, k, v, starts):
    """(name, function that gives O of all sequences) of every peer that takes the problem."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    lengths, share, causal = case["packed"], case["heads"] // case["kv_heads"], bool(case["causal"])
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


def contest(bench, case):
    """Measures one case; gives its race."""
    torch = bench.torch
    torch.manual_seed(1)
    lengths = [int(each) for each in case["lengths"].split(",")]
    kind, d, heads, causal = (torch_type(torch, case["type"]), case["head_dim"], case["width"] // case["head_dim"],
                              bool(case["causal"]))
    case = {**case, "packed": lengths, "length": sum(lengths), "heads": heads, "kv_heads": heads // case["share"]}
    make_matrix = lambda heads: torch.randn((case["length"], heads, d), device="cuda", dtype=kind)
    q, k, v = make_matrix(heads), make_matrix(case["kv_heads"]), make_matrix(case["kv_heads"])
    o = torch.empty_like(q)
    lse = torch.empty((heads, case["length"]), device="cuda", dtype=torch.float32)
    begins = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    starts = torch.tensor(begins, device="cuda", dtype=torch.int32)
    values = {"queries": case["length"], "keys": case["length"], "heads": heads, "kv_heads": case["kv_heads"],
              "scale": d ** -0.5, "sequences": len(lengths), "query_starts": starts, "key_starts": starts, "Q": q,
              "K": k, "V": v, "O": o, "LSE": lse}

    def make(**options):
        kernel = bench.compiled("attention", type=case["type"], head_dim=d, causal=causal, packed=True, **options)
        # Of a tile of queries: what tuned() takes for Hopper, for few keys at least.
        rows = 64 if "keys" in options else 192 if d <= 96 else 128
        return kernel.launch(values, grid=(-(-max(lengths) // rows), 0, 0))

    expected = {}
    for i in {0, len(lengths) - 1, lengths.index(max(lengths))}:
        rows = slice(begins[i], begins[i + 1])
        one = [each[None, rows].transpose(1, 2) for each in (q, k, v)]
        for head in {0, heads - 1}:
            expected[(i, head)] = reference(torch, {**case, "length": lengths[i]}, *one, 0, head)
    parts = lambda out: {(i, head): out[begins[i]:begins[i + 1], head] for i, head in expected}
    operations = sum(4 * heads * d * length ** 2 / (2 if causal else 1) for length in lengths)

    entries = bench.entries(make, o, operations, lambda: note_of(parts(o), expected))
    for name, run, rows in peers(torch, case, q, k, v, starts):
        entries.append(Entry(name, True, run, operations, note_of(parts(rows(run())), expected)))
    measure(torch, entries, bench.rounds)
    title = (f"attention, {case['type']}, {len(lengths)} packed sequences of {case['lengths']}, {heads} heads of {d}"
             f"{', causal' * causal}")
    return race(title, entries, table(title, entries))


if __name__ == "__main__":
    run_contests(__doc__, "TFLOP/s", AXES, contest)
