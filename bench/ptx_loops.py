#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/ptx_loops.py TEXT...: what the innermost loops of PTX texts execute that multiply by tcgen05, and
that load by TMA: how many instructions, and how many of each kind.

  build/release/bin/tartan emit gemm --target sm_100a --tile 128x128x64 --warps 4x1 --producers 4 \\
      --products 2 --persistent --m 0 --n 0 --k 0 -o ours.ptx
  bench/ptx_loops.py ours.ptx theirs.ptx
"""
import collections
import re
import sys

PARTS = ("tcgen05.mma", "cp.async.bulk.tensor")
LABEL = re.compile(r"\s*(\$?[\w$]+):\s*$")
BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(\$?[\w$]+)\s*;")
OPCODE = re.compile(r"\s*\{?\s*(?:@!?%\w+\s+)?([a-z]\w*(?:\.[\w:]+)*)")


def innermost(lines, part):
    """The first and the last line of the shortest loop with an instruction."""
    labels = {found.group(1): i for i, line in enumerate(lines) if (found := LABEL.match(line))}
    loops = [(labels[found.group(1)], i) for i, line in enumerate(lines)
             if (found := BRANCH.search(line)) and labels.get(found.group(1), i) < i]
    holding = [(end - begin, begin, end) for begin, end in loops
               if any(part in line for line in lines[begin:end])]
    return min(holding)[1:] if holding else None


def kind(opcode):
    words = opcode.split(".")
    if opcode.startswith("cp.async.bulk"): return "cp.async.bulk"
    return ".".join(words[:2]) if words[0] in ("tcgen05", "mbarrier") else words[0]


def main():
    if len(sys.argv) < 2: sys.exit(__doc__)
    for path in sys.argv[1:]:
        with open(path, errors="replace") as file: lines = file.read().split("\n")
        for part in PARTS:
            loop = innermost(lines, part)
            if not loop: continue
            counts = collections.Counter(
                kind(found.group(1)) for line in lines[loop[0]:loop[1] + 1]
                if not line.lstrip().startswith(("//", ".")) and (found := OPCODE.match(line)))
            print(f"{path}: loop with {part}: {sum(counts.values())} instructions,",
                  ", ".join(f"{count} {name}" for name, count in counts.most_common()))


if __name__ == "__main__": main()
