#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches of small products beside cuBLAS's batched call (torch.bmm), in one process.

    gpu_small_products --emit DIR                 # anywhere: PTX and launches.json
    python3 small_products_peer.py DIR            # with PyTorch, on the GPU

Figures are bytes of A, B and C over time, beside the read bandwidth (that of the fastest of some sums over 2 GiB, in
the same process). How it is timed: see peer.py. Each result is compared with a product in f32 (of f64: in f64) of
the first, middle and last matrices. Where C is f32 and A and B are not, the peer is torch.bmm with out_dtype, if
PyTorch has it.
"""

from peer import Entry, bandwidth_table, measure, note_of, own_entries, race, read_bandwidth, run_contests

CHECKED = 1000  # products at each of three places


def matrices(torch, batch, rows, cols, major, kind):
    """[batch, rows, cols], in memory as `major` says, and the memory itself."""
    shape = (batch, rows, cols) if major == "row" else (batch, cols, rows)
    memory = torch.randn(shape, device="cuda", dtype=kind)
    return memory if major == "row" else memory.transpose(1, 2), memory


def peer_launch(torch, a, b, c):
    """torch.bmm into `c`; None where it has no such output type."""
    if a.dtype == c.dtype:
        return lambda: torch.bmm(a, b, out=c)
    call = lambda: torch.bmm(a, b, out_dtype=c.dtype, out=c)
    try:
        call()
    except (TypeError, RuntimeError):
        return None
    return call


def contest(torch, driver, folder, case, rounds, read_bandwidth):
    """Measures one case; gives its race."""
    kinds = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}
    torch.manual_seed(1)
    m, n, k = case["size"]
    batch = case["batch"]
    a, a_memory = matrices(torch, batch, m, k, case["majors"][0], kinds[case["type"]])
    b, b_memory = matrices(torch, batch, k, n, case["majors"][1], kinds[case["type"]])
    c = torch.empty((batch, m, n), device="cuda", dtype=kinds[case["c"]])
    addresses = {"A": a_memory.data_ptr(), "B": b_memory.data_ptr(), "C": c.data_ptr()}
    wide = torch.float64 if case["type"] == "f64" else torch.float32
    places = [torch.arange(first, min(first + CHECKED, batch), device="cuda")
              for first in (0, batch // 2, max(batch - CHECKED, 0))]
    expected = {place: (a[place].to(wide) @ b[place].to(wide)).float() for place in places}
    note = lambda: note_of(c, expected)
    entries = own_entries(torch, driver, folder, case, addresses, c, case["bytes"], note)
    peer = peer_launch(torch, a, b, c)
    if peer:
        c.fill_(float("nan"))
        peer()
        torch.cuda.synchronize()
        entries.append(Entry("torch.bmm (cuBLAS)", True, peer, case["bytes"], note()))
    measure(torch, entries, rounds)
    return race(case["title"], entries, bandwidth_table(case["title"], entries, read_bandwidth, "A, B and C"))


if __name__ == "__main__":
    run_contests("small_products_peer", "gpu_small_products", __doc__, "TB/s", contest,
                 lambda torch: {"read_bandwidth": read_bandwidth(torch)})
