#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches of small products beside cuBLAS's batched call (torch.bmm), in one process.

    python3 bench/small_products_peer.py    # with PyTorch and the package tartan, on a GPU

Figures are bytes of A, B and C over time, beside the read bandwidth (that of the fastest of some sums over 2 GiB, in
the same process). How it is timed: see peer.py. Each result is compared with a product in f32 (of f64: in f64) of
the first, middle and last matrices. Where C is f32 and A and B are not, the peer is torch.bmm with out_dtype, if
PyTorch has it.
"""

from peer import Entry, bandwidth_table, measure, note_of, race, read_bandwidth, run_contests, sizes, torch_type

CHECKED = 1000  # products at each of three places
# As many products as the bytes of A, B and C hold: beyond the L2.
AXES = {"type": ["f16", "f64"], "size": ["16x16x16", "32x32x32", "48x48x48", "64x64x64"],
        "majors": ["row,row", "row,col"], "c": "", "megabytes": 1024}


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


def contest(bench, case):
    """Measures one case; gives its race."""
    torch = bench.torch
    torch.manual_seed(1)
    m, n, k = sizes(case["size"])
    of_c = case["c"] or case["type"]
    majors, kind, kind_c = case["majors"].split(","), torch_type(torch, case["type"]), torch_type(torch, of_c)
    each = (m * k + k * n) * kind.itemsize + m * n * kind_c.itemsize
    batch = (case["megabytes"] << 20) // each
    a, a_memory = matrices(torch, batch, m, k, majors[0], kind)
    b, b_memory = matrices(torch, batch, k, n, majors[1], kind)
    c = torch.empty((batch, m, n), device="cuda", dtype=kind_c)
    values = {"batch": batch, "A": a_memory, "B": b_memory, "C": c}

    def make(**options):
        kernel = bench.compiled("small_products", type=case["type"], c=of_c, size=case["size"], a_major=majors[0],
                                b_major=majors[1], **options)
        return kernel.launch(values)

    wide = torch.float64 if case["type"] == "f64" else torch.float32
    places = [torch.arange(first, min(first + CHECKED, batch), device="cuda")
              for first in (0, batch // 2, max(batch - CHECKED, 0))]
    expected = {place: (a[place].to(wide) @ b[place].to(wide)).float() for place in places}
    note = lambda: note_of(c, expected)
    entries = bench.entries(make, c, each * batch, note)
    peer = peer_launch(torch, a, b, c)
    if peer:
        c.fill_(float("nan"))
        peer()
        torch.cuda.synchronize()
        entries.append(Entry("torch.bmm (cuBLAS)", True, peer, each * batch, note()))
    measure(torch, entries, bench.rounds)
    title = f"{batch} products of {case['size']}, {case['type']} to {of_c}, {case['majors']} major"
    return race(title, entries, bandwidth_table(title, entries, bench.found["read_bandwidth"], "A, B and C"))


if __name__ == "__main__":
    run_contests(__doc__, "TB/s", AXES, contest, lambda torch: {"read_bandwidth": read_bandwidth(torch)})
