#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gradients of attention beside cuDNN's and FlashAttention's, in one process on one GPU.

    gpu_attention_backward --emit DIR            # anywhere: PTX and launches.json
    python3 attention_backward_peer.py DIR       # with PyTorch, on the GPU

The peers are the backward pass of torch.nn.functional.scaled_dot_product_attention restricted to one backend each.
Each figure has all kernels of a backward pass; five products are counted, half of them when causal. How it is
timed: see attention_peer.py; of the cool figures, the peers' have PyTorch's time to start, too. Gradients are
compared with a plain f32 computation of the first and the last head.
"""
import sys

from peer import Entry, WRONG, error_of, measure, own_launch, race, run_contests, table


def peers(torch, case, q, k, v, d_o):
    """(name, function that gives the gradients) of every backend that takes the problem."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    attention = torch.nn.functional.scaled_dot_product_attention
    share = case["heads"] // case["kv_heads"]
    for name, backend in (("cuDNN", "CUDNN_ATTENTION"), ("FlashAttention", "FLASH_ATTENTION")):
        try:
            with sdpa_kernel(getattr(SDPBackend, backend)):
                leaves = [each.detach().requires_grad_() for each in (q, k, v)]
                out = attention(*leaves, is_causal=case["causal"], **({"enable_gqa": True} if share > 1 else {}))

            def run(out=out, leaves=leaves):
                return torch.autograd.grad(out, leaves, d_o, retain_graph=True)

            run()
            torch.cuda.synchronize()
        except (RuntimeError, TypeError) as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        yield name, run


def reference(torch, case, q, k, v, d_o, batch, kv_head):
    """Gradients of one head of keys and of its heads of queries, in f32, some queries at a time."""
    length, share, scale = case["length"], case["heads"] // case["kv_heads"], case["head_dim"] ** -0.5
    keys, values = k[batch, kv_head].float(), v[batch, kv_head].float()
    d_q, d_k, d_v = [], torch.zeros_like(keys), torch.zeros_like(values)
    for head in range(kv_head * share, kv_head * share + share):
        for begin in range(0, length, 2048):
            queries, slopes = (each[batch, head, begin:begin + 2048].float() for each in (q, d_o))
            scores = queries @ keys.T * scale
            if case["causal"]:
                rows = torch.arange(begin, begin + queries.shape[0], device=q.device)
                scores.masked_fill_(torch.arange(length, device=q.device)[None, :] > rows[:, None], float("-inf"))
            p = torch.softmax(scores, -1)
            d_v += p.T @ slopes
            d_s = slopes @ values.T
            d_s = p * (d_s - (p * d_s).sum(-1, keepdim=True)) * scale
            d_k += d_s.T @ queries
            d_q.append(d_s @ keys)
    return torch.cat(d_q).view(share, length, -1)[0], d_k, d_v


def note_of(got, expected):
    worst = [error_of(each, expected[i]) for i, each in enumerate(got)]
    return ("WRONG: " if max(worst) > WRONG else "") + "errors " + " ".join(f"{each:.1e}" for each in worst)


def contest(torch, driver, folder, case, rounds):
    kind = {"bf16": torch.bfloat16, "f16": torch.float16}[case["type"]]
    torch.manual_seed(1)
    shape = lambda heads: (case["batch"], heads, case["length"], case["head_dim"])
    make = lambda heads: torch.randn(shape(heads), device="cuda", dtype=kind)
    q, k, v, d_o = make(case["heads"]), make(case["kv_heads"]), make(case["kv_heads"]), make(case["heads"])
    share = case["heads"] // case["kv_heads"]
    o, lse = torch.ops.aten._scaled_dot_product_flash_attention(
        q, *(each.repeat_interleave(share, 1) for each in (k, v)), 0.0, case["causal"])[:2]
    o = o.contiguous()
    gradients = [torch.empty_like(each) for each in (q, k, v)]
    most = {name: max([16] + [launch["elements"][name] for launch in case["launches"]])
            for name in ("stats", "sums", "turns")}
    work = {name: torch.empty(count, device="cuda", dtype=torch.float32) for name, count in most.items()}
    everything = {"Q": q, "K": k, "V": v, "O": o, "dO": d_o, "LSE": lse, "dQ": gradients[0], "dK": gradients[1],
                  "dV": gradients[2], **work}
    addresses = {name: each.data_ptr() for name, each in everything.items()}
    expected = [{}, {}, {}]
    for batch, kv_head in {(0, 0), (case["batch"] - 1, case["kv_heads"] - 1)}:
        parts = reference(torch, case, q, k, v, d_o, batch, kv_head)
        expected[0][batch, kv_head * share] = parts[0]
        expected[1][batch, kv_head], expected[2][batch, kv_head] = parts[1], parts[2]
    entries = []
    for launch in case["launches"]:
        try:
            steps = [own_launch(driver, folder, each, addresses, lambda: torch.cuda.current_stream().cuda_stream)
                     for each in launch["kernels"]]

            def run(steps=steps):
                for each in steps:
                    each()

            for _ in range(2):  # the second one on the work space that the first one left
                for each in gradients:
                    each.fill_(float("nan"))
                run()
            torch.cuda.synchronize()
        except RuntimeError as error:
            print(f"{launch['name']}: {error}", file=sys.stderr)
            if "illegal" in str(error) or "unspecified" in str(error):
                raise
            continue
        entries.append(Entry(launch["name"], False, run, case["operations"], note_of(gradients, expected)))
    for name, run in peers(torch, case, q, k, v, d_o):
        entries.append(Entry(name, True, run, case["operations"], note_of(run(), expected)))
    measure(torch, entries, rounds)
    title = "attention backward, " + case["title"]
    return race(title, entries, table(title, entries))


def contest_with_gradients(torch, *rest):
    with torch.inference_mode(False):
        return contest(torch, *rest)


if __name__ == "__main__":
    run_contests("attention_backward_peer", "gpu_attention_backward", __doc__, "TFLOP/s", contest_with_gradients)
