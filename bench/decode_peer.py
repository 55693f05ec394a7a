#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paged decoding beside cuDNN's and FlashAttention's decoding, in one process on one GPU.

    python3 bench/decode_peer.py          # with PyTorch and the package tartan, on a GPU

The peers are torch.nn.functional.scaled_dot_product_attention restricted to one backend each; they read the same
keys and values without pages. Figures are bytes of keys and values over time, beside the read bandwidth: that of
the fastest of some sums over 2 GiB, in the same process. How it is timed: see peer.py. Outputs are
compared with a plain f32 computation of the first and the last head; of the peers, whose mask is not aligned with
the last key, the last token's.
"""
import sys

from peer import Entry, bandwidth_table, measure, note_of, race, read_bandwidth, run_contests, sizes, torch_type

AXES = {"shape": ["128x8192", "16x8192", "4x32768"], "queries": [1, 8], "page": [64, 16], "heads": 64, "kv_heads": 8,
        "head_dim": 128, "type": "bf16", "in_order": False}


def make_cache(torch, case, kind):
    """K, V [pages, kv_heads, page, d], and the table: pages at random, or in the order of their keys."""
    page = case["page"]
    each = -(-case["length"] // page)
    pages = case["batch"] * each
    place = torch.arange if case["in_order"] else torch.randperm
    table = place(pages, device="cuda").to(torch.int32).view(case["batch"], each)
    shape = (pages, case["kv_heads"], page, case["head_dim"])
    return tuple(torch.randn(shape, device="cuda", dtype=kind) for _ in range(2)) + (table,)


def contiguous(torch, case, paged, table):
    """[batch, kv_heads, keys, d]"""
    shape = (case["batch"], case["kv_heads"], case["length"], case["head_dim"])
    out = torch.empty(shape, device=paged.device, dtype=paged.dtype)
    for sequence in range(case["batch"]):
        rows = paged[table[sequence].long()].transpose(0, 1).reshape(case["kv_heads"], -1, case["head_dim"])
        out[sequence] = rows[:, :case["length"]]
    return out


def peers(torch, case, q, k, v):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    attention = torch.nn.functional.scaled_dot_product_attention
    q = q.transpose(1, 2).contiguous()
    for name, backend in (("cuDNN", "CUDNN_ATTENTION"), ("FlashAttention", "FLASH_ATTENTION")):
        def run(backend=getattr(SDPBackend, backend)):
            with sdpa_kernel(backend):
                return attention(q, k, v, enable_gqa=True).transpose(1, 2)

        try:
            run()
            torch.cuda.synchronize()
        except (RuntimeError, TypeError) as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        yield name, run


def reference(torch, case, q, k, v, sequence, head):
    """[queries, d] of one head, in f32."""
    kv_head = head // (case["heads"] // case["kv_heads"])
    scores = q[sequence, :, head].float() @ k[sequence, kv_head].float().T * case["head_dim"] ** -0.5
    keys, tokens = (torch.arange(each, device=q.device) for each in (case["length"], case["queries"]))
    last = case["length"] - case["queries"] + tokens
    scores.masked_fill_(keys[None, :] > last[:, None], float("-inf"))
    return torch.softmax(scores, -1) @ v[sequence, kv_head].float()


def contest(bench, case):
    torch = bench.torch
    case["batch"], case["length"] = sizes(case["shape"])
    batch, queries, heads, kv_heads, d = (case[each] for each in ("batch", "queries", "heads", "kv_heads", "head_dim"))
    kind = torch_type(torch, case["type"])
    torch.manual_seed(1)
    paged_k, paged_v, table = make_cache(torch, case, kind)
    q = torch.randn((batch, queries, heads, d), device="cuda", dtype=kind)
    o = torch.empty_like(q)
    lengths = torch.full((batch,), case["length"], device="cuda", dtype=torch.int32)
    counters = torch.zeros((batch, kv_heads), device="cuda", dtype=torch.int32)
    values = {"batch": batch, "kv_heads": kv_heads, "most_pages": table.shape[1], "scale": d ** -0.5, "Q": q,
              "K": paged_k, "V": paged_v, "table": table, "lengths": lengths, "O": o, "counters": counters}

    def make(**options):
        kernel = bench.compiled("decode", type=case["type"], head_dim=d, queries=queries,
                                heads_per_kv=heads // kv_heads, page=case["page"], **options)
        return kernel.launch(values)

    k, v = (contiguous(torch, case, each, table) for each in (paged_k, paged_v))
    places = {(0, 0), (batch - 1, heads - 1)}
    whole = {place: reference(torch, case, q, k, v, *place) for place in places}
    expected = {(sequence, slice(None), head): matrix for (sequence, head), matrix in whole.items()}
    last = {(sequence, slice(-1, None), head): matrix[-1:] for (sequence, head), matrix in whole.items()}
    size = 2 * k.numel() * k.element_size()
    note = lambda: "WRONG: counters are not zero" if counters.any() else note_of(o, expected)
    # The second run on the work space that the first one left.
    entries = bench.entries(make, o, size, note, runs=2)
    for name, run in peers(torch, case, q, k, v):
        entries.append(Entry(name, True, run, size, note_of(run(), last)))
    measure(torch, entries, bench.rounds)
    title = (f"decode, {batch} sequences of {case['length']} keys, {queries} query token{'s' * (queries > 1)}, {heads} "
             f"heads on {kv_heads}, d {d}, pages of {case['page']}{' in order' * case['in_order']}")
    return race(title, entries, bandwidth_table(title, entries, bench.found["read_bandwidth"]))


if __name__ == "__main__":
    run_contests(__doc__, "TB/s", AXES, contest, lambda torch: {"read_bandwidth": read_bandwidth(torch)})
