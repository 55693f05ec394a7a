#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gated delta rule and Kimi Delta Attention beside flash-linear-attention, in one process on one GPU.

    python3 bench/delta_rule_peer.py                       # with PyTorch, the packages tartan and fla, on a GPU
    python3 bench/delta_rule_peer.py --gates channel --shape 8192,4096,1000,7
    python3 bench/delta_rule_peer.py --decode --shape 128x1 1024x1

--shape: sequences x tokens, or the lengths of packed sequences. Figures are the bytes of Q, K, V, O and gates (with
--decode of the state, read and written) over time. Both sides are replayed as CUDA graphs, so that the host's time
does not count: see peer.py for the rest. Outputs are compared with the recurrence in f32, of two heads of the first
sequence.
"""
from peer import Entry, bandwidth_table, measure, note_of, race, read_bandwidth, run_contests, sizes, torch_type

AXES = {"shape": ["8x2048", "1x8192", "1x32768", "32x1024"], "heads": [32], "dims": ["128x128"],
        "gates": ["head"], "key_heads": 0, "type": "bf16", "decode": False}


def recurrence(torch, q, k, v, g, beta, state, scale):
    """[tokens, heads, value_dim] of [tokens, heads, ...], in f32; the state [heads, value_dim, key_dim] changes."""
    out = []
    for t in range(q.shape[0]):
        gate = g[t].float().exp()
        state *= gate[:, None, None] if gate.dim() == 1 else gate[:, None, :]
        change = beta[t, :, None] * (v[t].float() - torch.einsum("hvk,hk->hv", state, k[t].float()))
        state += change[:, :, None] * k[t].float()[:, None, :]
        out.append(torch.einsum("hvk,hk->hv", state, q[t].float()) * scale)
    return torch.stack(out)


def captured(torch, run):
    """run() as a graph, which keeps neither kernels nor tensors: what is returned does."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run(), run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()

    def replay():
        graph.replay()
    replay.keeps = run
    return replay


def inputs(torch, case, tokens):
    heads, key_heads, (dk, dv) = case["heads"], case["key_heads"] or case["heads"], sizes(case["dims"])
    kind = torch_type(torch, case["type"])
    normal = lambda *shape: torch.randn(shape, device="cuda")
    unit = lambda x: torch.nn.functional.normalize(x, dim=-1).to(kind)
    gates = normal(tokens, heads, dk) if case["gates"] == "channel" else normal(tokens, heads)
    return {"Q": unit(normal(tokens, key_heads, dk)), "K": unit(normal(tokens, key_heads, dk)),
            "V": normal(tokens, heads, dv).to(kind), "g": torch.nn.functional.logsigmoid(gates + 2),
            "beta": normal(tokens, heads).sigmoid()}


def expected_of(torch, case, x, tokens, scale, state=None):
    """place -> matrix, of the first and last head of the first sequence."""
    share = x["V"].shape[1] // x["Q"].shape[1]
    out = {}
    for head in {0, x["V"].shape[1] - 1}:
        own = lambda name, at: x[name][:tokens, at:at + 1]
        s = torch.zeros((1, x["V"].shape[2], x["Q"].shape[2]), device="cuda") if state is None else \
            state[0, head:head + 1].clone()
        out[(slice(0, tokens), head)] = recurrence(
            torch, own("Q", head // share), own("K", head // share), own("V", head), own("g", head),
            own("beta", head), s, scale)[:, 0]
    return out


def prefill(bench, case):
    import fla.ops.gated_delta_rule
    import fla.ops.kda
    torch = bench.torch
    dk, dv = sizes(case["dims"])
    even = "x" in case["shape"]
    lengths = [sizes(case["shape"])[1]] * sizes(case["shape"])[0] if even else \
        [int(each) for each in case["shape"].split(",")]
    tokens, heads, channels = sum(lengths), case["heads"], case["gates"] == "channel"
    torch.manual_seed(1)
    x = inputs(torch, case, tokens)
    scale = dk ** -0.5
    starts = torch.tensor([0] + lengths).cumsum(0).to(device="cuda", dtype=torch.int32)
    o, s1 = torch.empty_like(x["V"]), torch.empty((len(lengths), heads, dv, dk), device="cuda")
    values = {**x, "tokens": tokens, "heads": heads, "key_heads": x["Q"].shape[1], "sequences": len(lengths),
              "scale": scale, "starts": starts, "O": o, "S1": s1}

    def make(**options):
        both = [bench.compiled(name, key_dim=dk, value_dim=dv, type=case["type"], channel_gates=channels,
                               final_state=True, **options) for name in ("delta_rule_chunks", "delta_rule")]
        work = both[0].work(values)
        runs = [both[0].launch({**values, **work}, grid=(-(-max(lengths) // 64), heads, len(lengths))),
                both[1].launch({**values, **work})]

        def run():
            for each in runs:
                each()
        return captured(torch, run)

    expected = expected_of(torch, case, x, lengths[0], scale)
    size = sum(each.numel() * each.element_size() for each in (*x.values(), o))
    entries = bench.entries(make, [o, s1], size, lambda: note_of(o, expected))
    batched = {name: each.view(len(lengths), -1, *each.shape[1:]) if even else each[None] for name, each in x.items()}
    function = fla.ops.kda.chunk_kda if channels else fla.ops.gated_delta_rule.chunk_gated_delta_rule
    packed = {} if even else {"cu_seqlens": starts.long(), "cu_seqlens_cpu": starts.long().cpu()}

    def peer():
        return function(batched["Q"], batched["K"], batched["V"], batched["g"], batched["beta"], scale=scale,
                        output_final_state=True, state_v_first=True, **packed)

    theirs = peer()[0].reshape(tokens, heads, dv)
    entries.append(Entry("fla", True, captured(torch, peer), size, note_of(theirs, expected)))
    return entries, "inputs and outputs"


def decode(bench, case):
    import fla.ops.gated_delta_rule
    import fla.ops.kda
    torch = bench.torch
    dk, dv = sizes(case["dims"])
    sequences, tokens = sizes(case["shape"])
    heads, channels, scale = case["heads"], case["gates"] == "channel", dk ** -0.5
    torch.manual_seed(1)
    x = inputs(torch, case, sequences * tokens)
    state = torch.randn((sequences, heads, dv, dk), device="cuda")
    own, o = state.clone(), torch.empty_like(x["V"])
    values = {**x, "sequences": sequences, "tokens": tokens, "heads": heads, "key_heads": x["Q"].shape[1],
              "scale": scale, "S": own, "O": o}
    expected = expected_of(torch, case, x, tokens, scale, state)

    def make(**options):
        kernel = bench.compiled("delta_rule_decode", key_dim=dk, value_dim=dv, type=case["type"],
                                channel_gates=channels, **options)
        run = captured(torch, kernel.launch(values))
        own.copy_(state)
        return run

    size = 2 * state.numel() * 4
    entries = bench.entries(make, o, size, lambda: note_of(o, expected))
    batched = {name: each.view(sequences, tokens, *each.shape[1:]) for name, each in x.items()}
    function = fla.ops.kda.fused_recurrent_kda if channels else \
        fla.ops.gated_delta_rule.fused_recurrent_gated_delta_rule

    def peer():
        return function(batched["Q"], batched["K"], batched["V"], batched["g"], beta=batched["beta"], scale=scale,
                        initial_state=state, output_final_state=True, state_v_first=True)

    theirs = peer()[0].reshape(sequences * tokens, heads, dv)
    entries.append(Entry("fla", True, captured(torch, peer), size, note_of(theirs, expected)))
    return entries, "states"


def contest(bench, case):
    entries, what = (decode if case["decode"] else prefill)(bench, case)
    measure(bench.torch, entries, bench.rounds)
    title = (f"delta rule{', decoding' * case['decode']}, {case['shape']} tokens, {case['heads']} heads, "
             f"{case['dims']}, gates of {'elements' if case['gates'] == 'channel' else 'heads'}")
    return race(title, entries, bandwidth_table(title, entries, bench.found["read_bandwidth"], what))


if __name__ == "__main__":
    run_contests(__doc__, "TB/s", AXES, contest, lambda torch: {"read_bandwidth": read_bandwidth(torch)})
