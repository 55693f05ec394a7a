# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's linear layer on all GPUs of a host, a process for each: the product, then NCCL's collective.

  python3 bench/tensor_parallel_peer.py --rows 8192 --out 8192 --in 8192 --times 20

The same layers, in the same order, as examples/tensor_parallel: beside it in one command, this is its peer. The sums
of each collective are compared with a product in f32 of the whole matrices.
"""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")


def matrices(options, rank):
    """Small integers, whose sums are exact in bf16 for the most part, the same on all ranks."""
    generator = torch.Generator(device=rank).manual_seed(1)
    x = torch.randint(-1, 2, (options.rows, options.depth), generator=generator, device=rank)
    w = torch.randint(-1, 2, (options.out, options.depth), generator=generator, device=rank)
    w *= torch.randint(0, 16, w.shape, generator=generator, device=rank) == 0
    return x.bfloat16(), w.bfloat16().t()


def layer_of(collective, x, w, rank, ranks):
    """A function that computes the rank's result, and what that must be."""
    rows, columns, depth = x.shape[0] // ranks, w.shape[1] // ranks, x.shape[1] // ranks
    own_rows, own_columns = (slice(rank * each, (rank + 1) * each) for each in (rows, columns))
    own_depth = slice(rank * depth, (rank + 1) * depth)
    expected = x.float() @ w.float()
    if collective == "all_gather":
        share, part = x[own_rows].contiguous(), w.t()[own_columns].contiguous().t()
        whole = torch.empty_like(x)

        def run():
            dist.all_gather_into_tensor(whole, share)
            return whole @ part

        return run, expected[:, own_columns]
    own_x, part = x[:, own_depth].contiguous(), w.t()[:, own_depth].contiguous().t()
    if collective == "all_reduce":
        def run():
            y = own_x @ part
            dist.all_reduce(y)
            return y

        return run, expected
    scattered = torch.empty(rows, w.shape[1], dtype=x.dtype, device=x.device)

    def run():
        dist.reduce_scatter_tensor(scattered, own_x @ part)
        return scattered

    return run, expected[own_rows]


def milliseconds(run, times):
    for _ in range(3):
        run()
    dist.barrier()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times


def work(rank, ranks, options, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    torch.backends.cuda.matmul.allow_tf32 = False
    x, w = matrices(options, rank)
    all_right = True
    for collective in COLLECTIVES:
        run, expected = layer_of(collective, x, w, rank, ranks)
        wrong = torch.tensor((run().float() != expected.bfloat16().float()).sum().item(), device=rank)
        slowest = torch.tensor(milliseconds(run, options.times), device=rank)
        dist.all_reduce(wrong)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        all_right &= not wrong
        if rank == 0:
            verdict = f"{wrong.item()} elements are wrong" if wrong else "right"
            print(f"{collective:14} {options.rows} x {options.out} x {options.depth}: {verdict}, "
                  f"PyTorch {slowest.item():.3f} ms", flush=True)
    dist.destroy_process_group()
    if not all_right:
        raise SystemExit("tensor_parallel_peer.py: wrong elements")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--out", type=int, default=8192)
    parser.add_argument("--in", type=int, default=8192, dest="depth")
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    ranks = torch.cuda.device_count()
    if not ranks:
        raise SystemExit("tensor_parallel_peer.py: no GPU")
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, (ranks, options, os.path.join(folder, "meeting")), ranks)


if __name__ == "__main__":
    main()
