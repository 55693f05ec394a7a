#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention with few keys over drawn shapes, beside PyTorch's, in one process on one GPU.

    python3 bench/attention_drawn_peer.py --seed 71 --count 400     # with PyTorch and the package tartan, on a GPU

Head dimensions of 64, 96, 128 and 256; causal, full and with a window; 16 to 1024 keys; heads that share keys; packed
sequences; 16 to 4096 heads of all batches. Kernels are compiled without a number of keys, as for a model whose lengths
vary. The ratio is to the fastest of: scaled_dot_product_attention by cuDNN and by FlashAttention; with a window
FlashAttention alone; of packed sequences FlashAttention and, where causal, cuDNN's over padded ones. Times are medians
of ten launches back to back. Six heads of each are compared with a plain f32 computation.
"""
import argparse
import concurrent.futures
import math
import random
import statistics

from peer import seconds, torch_type

LAUNCHES, TIMES, WRONG = 10, 3, 0.03


def draw(rng):
    case = {"d": rng.choice([64, 96, 128, 256]),
            "mask": rng.choice(["causal", "causal", "full", "full", "window"]),
            "share": rng.choice([1, 2, 4, 8]), "packed": rng.random() < .25}
    keys = int(2 ** rng.uniform(4, 10.01))
    keys = min(keys if rng.random() < .5 else max(16, (keys + 63) // 64 * 64), 1024)
    kv_heads = rng.choice([1, 2, 4, 8, 16])
    heads = kv_heads * case["share"]
    batch = max(1, round(2 ** rng.uniform(4, 12) / heads))
    while batch * heads * keys * case["d"] * 2 > 600e6 and batch > 1:
        batch = batch * 3 // 4
    window = max(8, int(keys * rng.uniform(.1, .9))) if case["mask"] == "window" else 0
    lengths = [max(1, int(keys * rng.uniform(.1, 1))) for _ in range(batch)] if case["packed"] else [keys] * batch
    lengths[rng.randrange(batch)] = keys
    return {**case, "keys": keys, "kv_heads": kv_heads, "heads": heads, "batch": batch, "window": window,
            "lengths": lengths, "type": rng.choice(["bf16", "f16"]),
            "places": [(0, 0), (batch - 1, heads - 1)] + [(rng.randrange(batch), rng.randrange(heads))
                                                          for _ in range(4)]}


def options_of(case):
    out = {"type": case["type"], "head_dim": case["d"], "causal": case["mask"] != "full"}
    for name in ("window", "packed"):
        if case[name]:
            out[name] = True
    return out


def key_of(case):
    return tuple(sorted(options_of(case).items()))


def compile_all(tartan, device, cases):
    """Loaded kernels by their options; the driver assembles many at a time."""
    kernels = {}
    for case in cases:
        if key_of(case) not in kernels:
            kernels[key_of(case)] = tartan.compile("attention", device, **options_of(case))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return dict(zip(kernels, pool.map(device.load, kernels.values())))


class Problem:
    """A case's matrices."""

    def __init__(self, torch, case):
        self.torch, self.case = torch, case
        d, heads, kv_heads, lengths = (case[each] for each in ("d", "heads", "kv_heads", "lengths"))
        kind = torch_type(torch, case["type"])
        make = lambda of: torch.randn((sum(lengths), of, d) if case["packed"] else (case["batch"], of, case["keys"], d),
                                      device="cuda", dtype=kind)
        self.q, self.k, self.v = make(heads), make(kv_heads), make(kv_heads)
        self.o = torch.empty_like(self.q)
        self.lse = torch.empty(sum(lengths) * heads, device="cuda", dtype=torch.float32)
        self.begins = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        self.starts = torch.tensor(self.begins, device="cuda", dtype=torch.int32)

    def head(self, of, batch, head):
        """The rows of a head, in f32."""
        if self.case["packed"]:
            return of[self.begins[batch]:self.begins[batch + 1], head].float()
        return of[batch, head].float()

    def expected(self, batch, head):
        torch, case = self.torch, self.case
        shared = head // case["share"]
        q, k, v = self.head(self.q, batch, head), self.head(self.k, batch, shared), self.head(self.v, batch, shared)
        rows = torch.arange(q.shape[0], device="cuda")
        scores = q @ k.T * case["d"] ** -0.5
        if case["mask"] != "full":
            scores.masked_fill_(rows[None] > rows[:, None], float("-inf"))
        if case["window"]:
            scores.masked_fill_(rows[None] <= rows[:, None] - case["window"], float("-inf"))
        return torch.softmax(scores, -1) @ v

    def ours(self, function):
        case, stream = self.case, self.torch.cuda.current_stream().cuda_stream
        rows = self.q.shape[0] if case["packed"] else case["keys"]
        words = [rows, rows, case["heads"], case["kv_heads"], case["d"] ** -0.5]
        words += [case["window"]] if case["window"] else []
        words += [case["batch"]] if case["packed"] else []
        words += [self.q, self.k, self.v, self.o, self.lse]
        words += [self.starts, self.starts] if case["packed"] else []
        tile = 192 if case["d"] <= 96 else 128
        grid = (-(-case["keys"] // tile), 0, 0) if case["packed"] else (0, 0, case["batch"])
        return lambda: function(*words, grid=grid, stream=stream)

    def sdpa(self, name, q, k, v):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        attention = self.torch.nn.functional.scaled_dot_product_attention

        def run():
            with sdpa_kernel(getattr(SDPBackend, name)):
                return attention(q, k, v, is_causal=self.case["mask"] != "full", enable_gqa=self.case["share"] > 1)
        return run

    def padded(self, of):
        out = self.torch.zeros((self.case["batch"], of.shape[1], self.case["keys"], self.case["d"]), device="cuda",
                               dtype=of.dtype)
        for i, length in enumerate(self.case["lengths"]):
            out[i, :, :length] = of[self.begins[i]:self.begins[i + 1]].transpose(0, 1)
        return out

    def peers(self):
        case = self.case
        flash = self.torch.ops.aten._flash_attention_forward
        window = {"window_size_left": case["window"] - 1, "window_size_right": 0} if case["window"] else {}
        if case["packed"]:
            yield lambda: flash(self.q, self.k, self.v, self.starts, self.starts, case["keys"], case["keys"], 0.0,
                                case["mask"] != "full", False, **window)
            if case["mask"] == "causal" and case["batch"] * case["heads"] * case["keys"] * case["d"] < 7e8:
                yield self.sdpa("CUDNN_ATTENTION", *(self.padded(each) for each in (self.q, self.k, self.v)))
        elif window:
            q, k, v = (each.transpose(1, 2) for each in (self.q, self.k, self.v))
            yield lambda: flash(q, k, v, None, None, case["keys"], case["keys"], 0.0, True, False, **window)
        else:
            for name in ("CUDNN_ATTENTION", "FLASH_ATTENTION"):
                yield self.sdpa(name, self.q, self.k, self.v)


def microseconds(torch, run):
    run(), run()
    return statistics.median(seconds(torch, run, LAUNCHES) for _ in range(TIMES)) * 1e6


def measure(torch, kernels, case):
    """The ratio and the error."""
    problem = Problem(torch, case)
    times = []
    for run in problem.peers():
        try:
            times.append(microseconds(torch, run))
        except (RuntimeError, TypeError):  # a backend that does not take the problem
            pass
    run = problem.ours(kernels[key_of(case)])
    problem.o.fill_(float("nan"))
    run()
    torch.cuda.synchronize()
    error = float("inf") if problem.o.isnan().any() else 0.0
    for place in case["places"]:
        shown = problem.head(problem.o, *place)
        error = max(error, (shown - problem.expected(*place)).abs().max().item())
    return min(times) / microseconds(torch, run), error


def summary(name, rows):
    values = [each for _, each in rows]
    if rows:
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"{name:16}{len(rows):5}   {mean:5.2f} {min(values):5.2f} {sum(each < 1 for each in values):4}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=71)
    parser.add_argument("--count", type=int, default=400)
    words = parser.parse_args()
    import torch
    import tartan
    rng = random.Random(words.seed)
    torch.manual_seed(words.seed)
    cases = [draw(rng) for _ in range(words.count)]
    kernels = compile_all(tartan, tartan.Device("cuda:0"), cases)
    rows, wrong = [], 0
    for case in cases:
        ratio, error = measure(torch, kernels, case)
        wrong += not error < WRONG
        rows.append((case, ratio))
        print(f"{case['type']} d {case['d']} {case['mask']}{', packed' if case['packed'] else ''}, "
              f"batch {case['batch']}, {case['heads']} heads ({case['kv_heads']} of keys), {case['keys']} keys, "
              f"window {case['window']}: {ratio:.2f}, error {error:.0e}"
              f"{'' if error < WRONG else ' WRONG'}", flush=True)
    print(f"\nseed {words.seed}, {wrong} wrong; geometric mean, worst, below 1")
    summary("all", rows)
    for d in (64, 96, 128, 256):
        summary(f"d {d}", [each for each in rows if each[0]["d"] == d])
        for mask in ("causal", "full", "window"):
            summary(f"  {mask}", [each for each in rows if (each[0]["d"], each[0]["mask"], each[0]["packed"]) ==
                                  (d, mask, False)])
        summary("  packed", [each for each in rows if each[0]["d"] == d and each[0]["packed"]])
    for least, most in ((16, 64), (65, 128), (129, 256), (257, 512), (513, 1024)):
        summary(f"{least} to {most} keys", [each for each in rows if least <= each[0]["keys"] <= most])
    for least, most in ((0, 64), (65, 256), (257, 1024), (1025, 1 << 20)):
        summary(f"{least} to {most} heads" if most < 1 << 20 else f"from {least} heads",
                [each for each in rows if least <= each[0]["heads"] * each[0]["batch"] <= most])


if __name__ == "__main__":
    main()
