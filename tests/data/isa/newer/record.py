#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks the assembler of CUDA 13.5 for its verdicts on the statements of FAMILY.csv, and says which
of those recorded differ: record.py PTXAS [FAMILY ..]. With --write they are recorded anew."""
import argparse, csv, os, sys
from judge import Judge

HERE = os.path.dirname(os.path.abspath(__file__))
TARGETS = ("sm_75 sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_103 sm_103a "
           "sm_103f sm_107 sm_107a sm_107f sm_110 sm_110a sm_110f sm_120 sm_120a sm_120f sm_121 "
           "sm_121a sm_121f").split()
ASSEMBLED = ("sm_80 sm_90 sm_100 sm_100a sm_103a sm_107a sm_107f sm_110f sm_120a sm_120f").split()
NEWEST = 5


def record(ptxas, statements):
    cells = [["-"] * len(TARGETS) for _ in statements]
    codes = [["."] * len(ASSEMBLED) for _ in statements]
    for t, target in enumerate(TARGETS):
        for minor in range(4 if "107" in target else 0, NEWEST + 1):
            assembles = minor == NEWEST and target in ASSEMBLED
            found = Judge(ptxas, target, f"9.{minor}").verdicts(statements, assembles)
            for i, verdict in enumerate(found):
                if verdict == "!" and not assembles: cells[i][t] = "!"
                elif verdict != "." and cells[i][t] == "-": cells[i][t] = str(minor)
                if assembles: codes[i][ASSEMBLED.index(target)] = verdict
    return [("".join(cells[i]), "".join(codes[i])) for i in range(len(statements))]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("ptxas")
    arguments.add_argument("families", nargs="*")
    arguments.add_argument("--write", action="store_true")
    asked = arguments.parse_args()
    differ = 0
    for name in sorted(os.listdir(HERE)):
        family = name.removesuffix(".csv")
        if not name.endswith(".csv") or (asked.families and family not in asked.families): continue
        with open(f"{HERE}/{name}", newline="") as file: rows = list(csv.reader(file))[1:]
        found = record(asked.ptxas, [row[3] for row in rows])
        for row, (cells, code) in zip(rows, found):
            if (row[0], row[1]) == (cells, code): continue
            differ += 1
            print(f"{family}: {row[3]}\n  was {row[0]} {row[1]}\n  is  {cells} {code}")
        if asked.write:
            with open(f"{HERE}/{name}", "w", newline="") as file:
                out = csv.writer(file, lineterminator="\n")
                out.writerow(["cells", "code", "message", "statement"])
                for row, (cells, code) in zip(rows, found): out.writerow([cells, code, "0", row[3]])
        print(f"{family}: {len(rows)} statements")
    return 1 if differ and not asked.write else 0


if __name__ == "__main__": sys.exit(main())
