#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoding with latent attention beside the GPU's read bandwidth.

    python3 bench/mla_peer.py          # with PyTorch and the package tartan, on a GPU

PyTorch has no such kernel. Figures are bytes of keys over time, beside the read bandwidth (that of the fastest of some
sums over 2 GiB, in the same process), and operations, 2 * heads * keys * (576 + 512) of each query token. How it is
timed: see peer.py. Outputs are compared with a plain f32 computation of the first and the last head.
"""

from peer import bandwidth_table, measure, median, note_of, race, read_bandwidth, run_contests, sizes, torch_type

LATENT, KEY = 512, 576
TILE = 64  # rows of a tile: query tokens times heads
AXES = {"shape": ["128x4096", "128x8192"], "heads": [16, 64, 128], "queries": [1], "page": 64, "type": "bf16"}


def reference(torch, case, q, kv, table, sequence, head):
    """[queries, 512] of one head, in f32."""
    keys = kv[table[sequence].long()].reshape(-1, KEY)[:case["length"]].float()
    scores = q[sequence, :, head].float() @ keys.T * 192 ** -0.5
    number, tokens = (torch.arange(each, device=q.device) for each in (case["length"], case["queries"]))
    last = case["length"] - case["queries"] + tokens
    scores.masked_fill_(number[None, :] > last[:, None], float("-inf"))
    return torch.softmax(scores, -1) @ keys[:, :LATENT]


def contest(bench, case):
    """Measures one case; gives its race."""
    torch = bench.torch
    case["batch"], case["length"] = sizes(case["shape"])
    batch, length, heads, queries, page = (case[each] for each in ("batch", "length", "heads", "queries", "page"))
    kind, pages = torch_type(torch, case["type"]), -(-length // page)
    torch.manual_seed(1)
    table = torch.randperm(batch * pages, device="cuda").to(torch.int32).view(batch, pages)
    kv = torch.randn((batch * pages, page, KEY), device="cuda", dtype=kind)
    q = torch.randn((batch, queries, heads, KEY), device="cuda", dtype=kind)
    o = torch.empty_like(q[..., :LATENT])
    lengths = torch.full((batch,), length, device="cuda", dtype=torch.int32)
    counters = torch.zeros((batch, -(-queries * heads // TILE)), device="cuda", dtype=torch.int32)
    values = {"batch": batch, "most_pages": pages, "scale": 192 ** -0.5, "Q": q, "KV": kv, "table": table,
              "lengths": lengths, "O": o, "counters": counters}

    def make(**options):
        kernel = bench.compiled("mla_decode", type=case["type"], heads=heads, queries=queries, page=page, **options)
        return kernel.launch(values)

    expected = {(sequence, slice(None), head): reference(torch, case, q, kv, table, sequence, head)
                for sequence, head in {(0, 0), (batch // 2, heads // 3), (batch - 1, heads - 1)}}
    size = batch * length * KEY * kv.element_size()
    operations = 2 * batch * length * queries * heads * (KEY + LATENT)
    note = lambda: "WRONG: counters are not zero" if counters.any() else note_of(o, expected)
    # The second run on the work space that the first one left.
    entries = bench.entries(make, o, size, note, runs=2)
    measure(torch, entries, bench.rounds)
    for each in entries:
        rates = " ".join(f"{median(rates) * operations / size:.0f}" for rates in (each.cool, each.hot))
        each.note = f"{rates} TFLOP/s  {each.note}"
    title = (f"latent attention, {batch} sequences of {length} keys, {heads} heads, {queries} query "
             f"token{'s' * (queries > 1)}")
    return race(title, entries, bandwidth_table(title, entries, bench.found["read_bandwidth"]))


if __name__ == "__main__":
    run_contests(__doc__, "TB/s", AXES, contest, lambda torch: {"read_bandwidth": read_bandwidth(torch)})
