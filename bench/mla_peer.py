#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoding with latent attention beside the GPU's read bandwidth.

    gpu_mla --emit DIR                 # anywhere: PTX and launches.json
    python3 mla_peer.py DIR            # with PyTorch, on the GPU

PyTorch has no such kernel. Figures are bytes of keys over time, beside the read bandwidth (that of the fastest of some
sums over 2 GiB, in the same process), and operations, 2 * heads * keys * (576 + 512) of each query token. How it is
timed: see peer.py. Outputs are compared with a plain f32 computation of the first and the last head.
"""

from peer import bandwidth_table, measure, median, note_of, own_entries, race, read_bandwidth, run_contests

LATENT, KEY = 512, 576


def reference(torch, case, q, kv, table, sequence, head):
    """[queries, 512] of one head, in f32."""
    keys = kv[table[sequence].long()].reshape(-1, KEY)[:case["length"]].float()
    scores = q[sequence, :, head].float() @ keys.T * 192 ** -0.5
    number, tokens = (torch.arange(each, device=q.device) for each in (case["length"], case["queries"]))
    last = case["length"] - case["queries"] + tokens
    scores.masked_fill_(number[None, :] > last[:, None], float("-inf"))
    return torch.softmax(scores, -1) @ keys[:, :LATENT]


def contest(torch, driver, folder, case, rounds, read_bandwidth):
    """Measures one case; gives its race."""
    kind = {"bf16": torch.bfloat16, "f16": torch.float16}[case["type"]]
    torch.manual_seed(1)
    batch, page, each = case["batch"], case["page"], -(-case["length"] // case["page"])
    table = torch.randperm(batch * each, device="cuda").to(torch.int32).view(batch, each)
    kv = torch.randn((batch * each, page, KEY), device="cuda", dtype=kind)
    q = torch.randn((batch, case["queries"], case["heads"], KEY), device="cuda", dtype=kind)
    o = torch.empty_like(q[..., :LATENT])
    lengths = torch.full((batch,), case["length"], device="cuda", dtype=torch.int32)
    tiles = max([1] + [launch["tiles"] for launch in case["launches"]])
    counters = torch.zeros((batch, tiles), device="cuda", dtype=torch.int32)
    work = [torch.empty(max([1] + [launch["partials"][i] for launch in case["launches"]]), device="cuda")
            for i in range(2)]
    addresses = {name: each.data_ptr() for name, each in (
        ("Q", q), ("KV", kv), ("table", table), ("lengths", lengths), ("O", o), ("P", work[0]), ("L", work[1]),
        ("counters", counters))}
    expected = {(sequence, slice(None), head): reference(torch, case, q, kv, table, sequence, head)
                for sequence, head in {(0, 0), (batch // 2, case["heads"] // 3), (batch - 1, case["heads"] - 1)}}
    size = batch * case["length"] * KEY * kv.element_size()
    operations = 2 * batch * case["length"] * case["queries"] * case["heads"] * (KEY + LATENT)
    note = lambda: "WRONG: counters are not zero" if counters.any() else note_of(o, expected)
    # The second run on the work space that the first one left.
    entries = own_entries(torch, driver, folder, case, addresses, o, size, note, runs=2)
    measure(torch, entries, rounds)
    for each in entries:
        rates = " ".join(f"{median(rates) * operations / size:.0f}" for rates in (each.cool, each.hot))
        each.note = f"{rates} TFLOP/s  {each.note}"
    title = "latent attention, " + case["title"]
    return race(title, entries, bandwidth_table(title, entries, read_bandwidth))


if __name__ == "__main__":
    run_contests("mla_peer", "gpu_mla", __doc__, "TB/s", contest,
                 lambda torch: {"read_bandwidth": read_bandwidth(torch)})
