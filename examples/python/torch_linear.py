# SPDX-License-Identifier: Apache-2.0
"""Tartan's kernels in place of PyTorch's, on PyTorch's tensors and stream: a linear layer with bias
and gelu, and attention, compared and timed by events. Exit code 77: no PyTorch, or no GPU."""

import math
import statistics
import sys

try:
    import torch
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: PyTorch finds no GPU")
    sys.exit(77)

import tartan

DTYPE, NAME = torch.bfloat16, "bf16"


def stream():
    return torch.cuda.current_stream().cuda_stream


class Linear:
    """gelu(x @ weight.T + bias); a row of weight is a column of B."""

    def __init__(self, device):
        self.kernel = device.load(
            tartan.compile(
                "gemm", device, m=0, n=0, k=0, type=NAME, c=NAME, epilogue=["bias", "gelu"]
            )
        )

    def __call__(self, x, weight, bias):
        (m, k), n = x.shape, weight.shape[0]
        y = torch.empty(m, n, dtype=x.dtype, device=x.device)
        self.kernel(m, n, k, x, weight, y, bias, stream=stream())
        return y


class Attention:
    """Causal attention of [batch, heads, length, 128]."""

    def __init__(self, device):
        self.kernel = device.load(
            tartan.compile("attention", device, type=NAME, head_dim=128, causal=True)
        )

    def __call__(self, q, k, v):
        batch, heads, queries, d = q.shape
        out = torch.empty_like(q)
        lse = torch.empty(batch, heads, queries, dtype=torch.float32, device=q.device)
        self.kernel(
            queries, k.shape[2], heads, k.shape[1], 1 / math.sqrt(d), q, k, v, out, lse,
            grid=(0, 0, batch), stream=stream(),
        )  # fmt: skip
        return out


def milliseconds(function, times=20):
    """The median, by events around each call."""
    out = []
    for _ in range(times + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        end.synchronize()
        out.append(start.elapsed_time(end))
    return statistics.median(out[3:])


def compare(name, ours, theirs, exact, tolerance):
    """Both against a product in higher precision; the work before and after is PyTorch's."""
    a, b, e = ours().float(), theirs().float(), exact()
    scale = e.abs().max().item()
    error, other = ((each - e).abs().max().item() / scale for each in (a, b))
    right = error < tolerance
    print(
        f"{name}: {'right' if right else 'WRONG'}; error {error:.1e} of the largest result, "
        f"PyTorch's {other:.1e}; {milliseconds(ours):.3f} ms, PyTorch {milliseconds(theirs):.3f} ms"
    )
    return right


def linear(device, m, n, k):
    x = torch.randn(m, k, dtype=DTYPE, device="cuda")
    weight = torch.randn(n, k, dtype=DTYPE, device="cuda") / math.sqrt(k)
    bias = torch.randn(n, device="cuda")
    functional, ours = torch.nn.functional, Linear(device)

    def layer(x, weight, bias):
        return functional.gelu(functional.linear(x, weight, bias), approximate="tanh")

    rounded = bias.to(DTYPE)
    return compare(
        f"linear {m} x {n} x {k}",
        lambda: ours(x, weight, bias),
        lambda: layer(x, weight, rounded),
        lambda: layer(x.double(), weight.double(), bias.double()).float(),
        1e-2,
    )


def attention(device, batch, heads, kv_heads, length):
    q = torch.randn(batch, heads, length, 128, dtype=DTYPE, device="cuda")
    k, v = (torch.randn(batch, kv_heads, length, 128, dtype=DTYPE, device="cuda") for _ in range(2))
    of = torch.nn.functional.scaled_dot_product_attention
    ours = Attention(device)
    wide_k, wide_v = (each.repeat_interleave(heads // kv_heads, dim=1) for each in (k, v))
    return compare(
        f"attention {batch} x {heads} heads ({kv_heads} of keys) x {length}",
        lambda: ours(q, k, v),
        lambda: of(q, wide_k, wide_v, is_causal=True),
        lambda: of(q.float(), wide_k.float(), wide_v.float(), is_causal=True),
        2e-2,
    )


def main():
    device = tartan.Device(f"cuda:{torch.cuda.current_device()}")
    print(f"{device.name}, PyTorch {torch.__version__}, Tartan {tartan.__version__}")
    side = torch.cuda.Stream()  # PyTorch's kernels and Tartan's in the order of one stream
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        results = [
            linear(device, 4096, 4096, 4096),
            linear(device, 1000, 1536, 512),
            attention(device, 2, 16, 4, 4096),
            attention(device, 1, 8, 8, 777),
        ]
    torch.cuda.synchronize()
    sys.exit(0 if all(results) else 1)


main()
