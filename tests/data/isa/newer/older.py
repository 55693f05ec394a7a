#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Minimum versions by the assemblers that first had them: older.py PTXAS MINOR asks the one of CUDA
13.MINOR, at .version 9.MINOR, for the statements of FAMILY.csv, and says where its verdict is not
the recorded one. explained_older.txt has patterns of differences that are known, with the reason;
one that explains nothing is an error as well, where all four assemblers are given:

    older.py 13.1/ptxas 1 13.2/ptxas 2 13.3/ptxas 3 13.4/ptxas 4
"""
import csv, os, re, sys
from judge import Judge
from record import HERE, TARGETS


def statements():
    for name in sorted(os.listdir(HERE)):
        if not name.endswith(".csv"): continue
        with open(f"{HERE}/{name}", newline="") as file:
            yield from list(csv.reader(file))[1:]


def explanations():
    with open(f"{HERE}/explained_older.txt") as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    return [re.compile(line) for line in lines]


def main():
    asked = list(zip(sys.argv[1::2], map(int, sys.argv[2::2])))
    rows, known = list(statements()), explanations()
    used, cells, differ = set(), 0, 0
    for ptxas, minor in asked:
        for t, target in enumerate(TARGETS):
            if "107" in target and minor < 4: continue
            found = Judge(ptxas, target, f"9.{minor}").verdicts([row[3] for row in rows], False)
            for row, verdict in zip(rows, found):
                first = row[0][t]
                if first == "!" or verdict == "!": continue  # one of the two dies
                cells += 1
                then, now = verdict != ".", first != "-" and int(first) <= minor
                if then == now: continue
                text = (f"9.{minor} {target} {'taken' if then else 'refused'} by 13.{minor}: "
                        f"{row[3]}")
                why = [i for i, each in enumerate(known) if each.search(text)]
                used.update(why)
                if not why: differ += 1; print(text)
    print(f"{cells} cells, {differ} unexplained")
    idle = [each.pattern for i, each in enumerate(known) if i not in used]
    if len(asked) == 4 and idle: print("explains nothing:", *idle, sep="\n  ")
    return 1 if differ or (len(asked) == 4 and idle) else 0


if __name__ == "__main__": sys.exit(main())
