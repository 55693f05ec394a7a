#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects audit.txt and audit_sm_90.bin from sweeps that were run on an H200.

  collect_audit.py CASES H200 WRITTEN OUTPUT

CASES/<case>: k.ptx and manifest.json, whose expectations are an emulator's of then. H200: what
`tartan run` said of each on the GPU: of a buffer how many elements differ from the expectation, the
first one's index and value. WRITTEN/<case>/<file>: what the emulator writes today (record_kernels
CASES WRITTEN emulator). A buffer is taken where today's elements differ from the expectation exactly
as the GPU's did; of its rows those that differ, and others at even distances.
"""
import json, os, re, struct, sys

cases, h200, written, output = sys.argv[1:]
rows_kept = 32
left_out = ("params", "isspacep", "special", "approx")

said = {}
for line in open(h200):
    if head := re.match(r"(pass|FAIL) (\S+)", line): differences = said.setdefault(head[2], {})
    elif re.match(r"BROKEN", line): differences = {}
    elif found := re.match(r"     (.*): (\d+) of \d+ elements differ, bit for bit; first at index (\d+): expected \S+, got 0x(\w+)", line):
        differences[found[1]] = (int(found[2]), int(found[3]), int(found[4], 16))


def words(path, count):
    data = open(path, "rb").read()
    width = len(data) // count
    return width, [int.from_bytes(data[i * width:(i + 1) * width], "little") for i in range(count)]


text, binary, skipped = [], bytearray(), []
for case in sorted(said):
    folder = os.path.join(cases, case)
    manifest = json.load(open(os.path.join(folder, "manifest.json")))
    counts = [p["u32"] for p in manifest["params"] if "u32" in p]
    if not counts or case.startswith(left_out): continue
    count = counts[0]
    inputs = [words(os.path.join(folder, p["file"]), count) for p in manifest["params"] if "file" in p]
    ptx = open(os.path.join(folder, "k.ptx")).read()
    bodies = re.findall(r"^\{ .*?\.reg \.b(\d+) d; (.*?)\s*ld\.param\.u64 X,\[o\d+\]", ptx, re.M)
    more = re.search(r"^(\.reg .*\bha\b.*)$", ptx, re.M)  # halves of a, and a in 64 bits
    buffers = [p for p in manifest["params"] if "expect" in p]
    assert len(bodies) == len(buffers), case
    forms, differing = [], set()
    for (bits, body), buffer in zip(bodies, buffers):
        if re.search(r"\bI\b", body): continue  # asks for the row's number
        width, expected = words(os.path.join(folder, buffer["expect"]), count)
        _, today = words(os.path.join(written, case, buffer["expect"]), count)
        differ = [i for i in range(count) if expected[i] != today[i]]
        now = (len(differ), differ[0], today[differ[0]]) if differ else None
        if now != said[case].get(buffer["buffer"]):
            skipped.append(f"{case}: {body}")
            continue
        differing.update(differ[:4] + differ[-2:])
        if more and re.search(r"\b(aa|ha|hb)\b", body): body = f"{more[1]} {body}"
        forms.append((int(bits), body, today))
    step = max(1, len(differing) * 2 // rows_kept)
    chosen = sorted(differing)[::step]
    chosen += [i * count // rows_kept for i in range(rows_kept - len(chosen))]
    rows = sorted(set(chosen))
    text.append(f"{case} {len(rows)} {' '.join(str(8 * width) for width, _ in inputs)}")
    for width, values in inputs:
        for row in rows: binary += values[row].to_bytes(width, "little")
    for bits, body, today in forms:
        text.append(f"{bits} | {body}")
        for row in rows: binary += today[row].to_bytes(bits // 8, "little")

open(os.path.join(output, "audit.txt"), "w").write("\n".join(text) + "\n")
open(os.path.join(output, "audit_sm_90.bin"), "wb").write(binary)
print(len(text), "lines,", len(binary), "bytes; not taken:", *skipped, sep="\n  ")
