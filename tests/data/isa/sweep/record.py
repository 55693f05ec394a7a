#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the assembler's verdict on each line of the sweep: record.py [FAMILY ...]

Writes verdicts/FAMILY.txt: of each block the number of lines and their checksum, the verdicts that
occur (a bit a pair of target and PTX version, the block's first pair the highest), and which of them
each line has, as letters with repeat counts; and the lines that have no verdict, because ptxas
crashes on them.
"""
import string
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import oracle
import spec

LETTERS = string.ascii_letters


def letter(index):
    """a..z, A..Z, then two of them behind a dot: .aa, .ab, ..."""
    if index < len(LETTERS):
        return LETTERS[index]
    index -= len(LETTERS)
    return "." + LETTERS[index // len(LETTERS)] + LETTERS[index % len(LETTERS)]


def syntax_errors(task):
    """The lines that are syntax errors on a pair."""
    pair, lines = task
    with oracle.temporary_folder() as folder:
        witness = oracle.Oracle(pair, folder)
        witness.parse(lines, oracle.PARSED)
        return witness.syntax


def judge(task):
    """The verdicts of one pair on the lines of all blocks."""
    pair, blocks, hopeless = task
    with oracle.temporary_folder() as folder:
        witness = oracle.Oracle(pair, folder, hopeless)
        verdicts = {}
        together = [(name, line) for name, apart, lines in blocks if apart is False
                    for line in lines]
        results = iter(witness.taken([line for _, line in together]))
        for name, _ in together:
            verdicts.setdefault(name, []).append(next(results))
        for name, apart, lines in blocks:
            if apart == "alone":
                verdicts[name] = [witness.takes_module(line) for line in lines]
            elif apart:
                verdicts[name] = witness.taken(lines, apart=True)
    return verdicts, witness.crashes, witness.messages, witness.runs


def encode(block, pairs, lines, rows, crashed):
    """The block's paragraph; a row is a line's verdicts, of all pairs."""
    masks = [sum(int(taken) << (len(pairs) - 1 - i) for i, taken in enumerate(row)) for row in rows]
    order = sorted(set(masks), key=lambda mask: (-masks.count(mask), mask))
    names = {mask: letter(i) for i, mask in enumerate(order)}
    runs, text = [], []
    for mask in masks:
        if runs and runs[-1][0] == mask:
            runs[-1][1] += 1
        else:
            runs.append([mask, 1])
    for mask, count in runs:
        text.append(names[mask] + (str(count) if count > 1 else ""))
    packed, width = [""], 100
    for part in text:
        if len(packed[-1]) + len(part) > width:
            packed.append("")
        packed[-1] += part
    digits = (len(pairs) + 3) // 4
    head = [f"block {block.name} {len(lines)} {spec.checksum(lines)}"]
    indices = [str(i) for i, line in enumerate(lines) if line in crashed]
    if indices:
        head.append("crashes " + " ".join(indices))
    head.append("verdicts " + " ".join(f"{mask:0{digits}x}" for mask in order))
    return "\n".join([*head, *packed, ""])


def record(common, family, jobs):
    blocks = spec.read_family(common, spec.HERE / f"{family}.txt")
    lines = {block.name: spec.expand(common, block) for block in blocks}
    assert len(lines) == len(blocks), "two blocks of one name"
    pairs = sorted({pair for block in blocks for pair in common.pairs[block.pairs]})
    found, crashes, messages, runs = {}, {}, {}, 0
    with ProcessPoolExecutor(jobs) as pool:
        together = sorted({line for b in blocks if not b.alone for line in lines[b.name]})
        ends = pool.map(syntax_errors, [("sm_50/4.0", together), ("sm_121f/9.0", together)])
        hopeless = set.intersection(*ends)
        tasks = [(pair, [(b.name, "alone" if b.alone else b.apart, lines[b.name]) for b in blocks
                         if pair in common.pairs[b.pairs]]) for pair in pairs]
        tasks.sort(key=lambda task: (-sum(len(each[2]) for each in task[1]), task[0]))
        # Where ptxas crashes there is no verdict: not tried again on other pairs.
        first, *others = tasks
        done = [pool.submit(judge, (*first, hopeless)).result()]
        hopeless |= set(done[0][1])
        done += pool.map(judge, [(*task, hopeless) for task in others])
    for (pair, _), (verdicts, crashed, said, ran) in zip(tasks, done):
        found[pair] = verdicts
        runs += ran
        for line in crashed:
            crashes.setdefault(line, []).append(pair)
        for message, line in said.items():
            messages.setdefault(message, line)
    out = [f"# ptxas 13.0's verdicts on {family}.txt, by record.py. README.md tells the format.", ""]
    total = accepted = 0
    for block in blocks:
        own = common.pairs[block.pairs]
        rows = list(zip(*(found[pair][block.name] for pair in own)))
        out.append(encode(block, own, lines[block.name], rows, crashes))
        total += len(rows) * len(own)
        accepted += sum(map(sum, rows))
    folder = spec.HERE / "verdicts"
    folder.mkdir(exist_ok=True)
    (folder / f"{family}.txt").write_text("\n".join(out))
    print(f"{family}: {sum(map(len, lines.values()))} lines, {total} verdicts, {accepted} taken, "
          f"{runs} runs of ptxas")
    for line in list(crashes)[:5]:
        print(f"  one of {len(crashes)} crashes, on {crashes[line][0]}: {line}")
    return messages


def main():
    arguments = [a for a in sys.argv[1:] if a != "--messages"]
    families = arguments or sorted(p.stem for p in spec.HERE.glob("*.txt") if p.stem != "common")
    common = spec.read_common()
    for family in families:
        messages = record(common, family, 2)
        if "--messages" in sys.argv:
            for message, line in sorted(messages.items()):
                print(f"    {message}: {line}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
