#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where two assemblers disagree on the statements of the sweep: compare.py OLD NEW [--share N]
[FAMILY ..]. OLD and NEW are folders with a ptxas; one statement in N is asked (60), each on one of its
block's pairs. assemblers.txt has the differences that are known, with their reasons; any other is
printed, and the exit status is 1."""
import argparse
import os
import re
import sys
from pathlib import Path

import oracle
import spec


def known():
    """[(kind, family, pattern)]: KIND FAMILY : PATTERN below the reason."""
    rows = []
    for line in (spec.HERE / "assemblers.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            words, pattern = line.split(" : ", 1)
            kind, family = words.split()
            pattern = ".*".join(re.escape(part) for part in pattern.split("*"))
            rows.append((kind, family, re.compile(pattern)))
    return rows


def verdicts(folder, pair, lines):
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}:{path}"
    try:
        with oracle.temporary_folder() as at:
            witness = oracle.Oracle(pair, at)
            return witness.taken(lines), set(witness.crashes)
    finally:
        os.environ["PATH"] = path


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("old")
    arguments.add_argument("new")
    arguments.add_argument("families", nargs="*")
    arguments.add_argument("--share", type=int, default=60)
    asked = arguments.parse_args()
    common, rows, asked_of, differ, explained = spec.read_common(), known(), 0, 0, 0
    for family in asked.families or (spec.HERE / "families.txt").read_text().split():
        by_pair = {}
        for block in spec.read_family(common, spec.HERE / f"{family}.txt"):
            if block.alone:
                continue
            pairs = common.pairs[block.pairs]
            for i, line in enumerate(spec.expand(common, block)):
                if spec.mix(i) % asked.share == 0:
                    by_pair.setdefault(pairs[i // asked.share % len(pairs)], []).append(line)
        for pair, lines in sorted(by_pair.items()):
            (old, dead), (new, died) = (verdicts(f, pair, lines) for f in (asked.old, asked.new))
            asked_of += len(lines)
            for line, was, now in zip(lines, old, new):
                if was == now or line in dead | died:
                    continue
                kind = "takes" if now else "refuses"
                if any(kind == k and f in (family, "*") and p.fullmatch(line) for k, f, p in rows):
                    explained += 1
                    continue
                differ += 1
                print(f"{kind} {family} {pair} : {line}", flush=True)
    print(f"{asked_of} statements, {explained} differences explained, {differ} not")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main())
