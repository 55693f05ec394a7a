#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `tartan check` and ptxas say of random programs, side by side.

  judge.py TARTAN [--first SEED] [--count N]     compares; exit 1 where a disagreement is unexplained
  judge.py TARTAN --reduce SEED                  prints the least program that they disagree on
  judge.py TARTAN --recorded             whether both say what tests/data/random/verdicts.txt says
  judge.py TARTAN --print --count N              whether ptxas takes what `tartan print` writes

A disagreement is reduced line by line and reported under the reduced statement. Those of explained.py
are counted under their reasons.
"""
import argparse
import collections
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import machine
import ptx_programs
from explained import EXPLAINED

LEGAL, ILLEGAL, CRASHED = "legal", "illegal", "crashed"


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


class Judges:
    def __init__(self, tartan, folder):
        self.tartan, self.folder = tartan, Path(folder)
        self.ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")

    def file_of(self, text):
        handle, path = tempfile.mkstemp(".ptx", dir=self.folder)
        with os.fdopen(handle, "w", encoding="latin-1") as file:
            file.write(text)
        return path

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                              preexec_fn=limit)
        verdict = {0: LEGAL, 1: ILLEGAL, 255: ILLEGAL}.get(done.returncode, CRASHED)
        return verdict, done.stdout + done.stderr

    def checked(self, path):
        return self.run(self.tartan, "check", "--max-errors", "3", path)

    def assembled(self, path, text, *options):
        target = re.search(r"^\s*\.target\s+(\w+)", text, re.M)
        arch = machine.arch_of(target[1] if target else "sm_75")
        verdict, said = self.run(self.ptxas, *options, "-arch", arch, "-o", "/dev/null", path)
        return (CRASHED if "Memory allocation failure" in said else verdict), said

    def both(self, text):
        """Verdict and words of tartan and of ptxas."""
        path = self.file_of(text)
        try:
            mine, theirs = self.checked(path), self.assembled(path, text)
            if mine[0] != theirs[0]:  # dead code is judged only without optimization
                unoptimized = self.assembled(path, text, "-O0")
                if unoptimized[0] != theirs[0]:
                    theirs = (f"{theirs[0]}, at -O0 {unoptimized[0]}", theirs[1] + unoptimized[1])
            return mine, theirs
        finally:
            os.unlink(path)

    def reduced(self, text):
        """The least lines on which the two verdicts are as they are of text."""
        wanted = tuple(v for v, _ in self.both(text))

        def same(lines):
            shorter = "\n".join(lines) + "\n"
            path = self.file_of(shorter)
            mine = self.checked(path)[0]
            os.unlink(path)
            return mine == wanted[0] and tuple(v for v, _ in self.both(shorter)) == wanted

        lines = text.splitlines()
        step = len(lines) // 2
        while step:
            at, shrunk = 0, False
            while at < len(lines):
                shorter = lines[:at] + lines[at + step:]
                if shorter and same(shorter):
                    lines, shrunk = shorter, True
                else:
                    at += 1 if step < 3 else step
            if not (shrunk and step == 1):
                step //= 2
        return "\n".join(self.without_braces(lines, same)) + "\n"

    @staticmethod
    def without_braces(lines, same):
        """Without the pairs of braces that are in lines of their own."""
        at = 0
        while at < len(lines):
            if lines[at] == "{":
                for end in range(at + 1, len(lines)):
                    shorter = lines[:at] + lines[at + 1:end] + lines[end + 1:]
                    if lines[end] == "}" and same(shorter):
                        lines = shorter
                        break
            at += 1
        return lines


def explanation(verdicts, reduced, words):
    """The reason of explained.py, or None."""
    mine, theirs = verdicts
    if CRASHED in theirs:
        return "ptxas crashes"
    if "-O0" in theirs:
        return "ptxas takes it at one level of optimization and refuses it at another"
    who = "tartan" if mine == ILLEGAL else "ptxas"
    for refuser, pattern, reason in EXPLAINED:
        if refuser == who and re.search(pattern, reduced + words, re.M | re.S):
            return reason
    return None


def judge(judges, seed):
    """The seed's verdicts; of a disagreement also the reduced program and what was said."""
    text = ptx_programs.program(seed)
    (mine, _), (theirs, _) = judges.both(text)
    if mine == theirs:
        return mine, theirs, None, None
    small = judges.reduced(text)
    (_, said), (_, answered) = judges.both(small)
    return mine, theirs, small, said + answered


def compare(judges, seeds):
    counts, explained, open_cases = collections.Counter(), collections.Counter(), 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for seed, (mine, theirs, small, said) in zip(
                seeds, pool.map(lambda seed: judge(judges, seed), seeds)):
            counts[f"tartan {mine}, ptxas {theirs}"] += 1
            if small is None:
                continue
            reason = explanation((mine, theirs), small, said)
            if reason:
                explained[reason] += 1
            else:
                open_cases += 1
                print(f"-- seed {seed}: tartan {mine}, ptxas {theirs}\n{small}{said}", flush=True)
    for title, table in (("verdicts", counts), ("explained", explained)):
        print(f"{title}:")
        for name, count in table.most_common():
            print(f"  {count:6d}  {name}")
    print(f"{len(seeds)} programs, {open_cases} unexplained disagreements")
    return not open_cases


def printed_alike(judges, seeds):
    """Whether ptxas judges what `tartan print` writes of a program as it judges the program."""
    different = skipped = 0
    for seed in seeds:
        text = ptx_programs.program(seed)
        path = judges.file_of(text)
        done = subprocess.run([judges.tartan, "print", path], capture_output=True, text=True,
                              check=False)
        verdict = judges.assembled(path, text)[0]
        os.unlink(path)
        if done.returncode:
            skipped += 1
            continue
        path = judges.file_of(done.stdout)
        printed, said = judges.assembled(path, done.stdout)
        os.unlink(path)
        if printed != verdict:
            different += 1
            print(f"-- seed {seed}: {verdict}, as printed {printed}\n{said}")
    print(f"{len(seeds)} programs, {skipped} do not parse, {different} differ when printed")
    return not different


def recorded_alike(judges):
    """Whether both judge the programs of verdicts.txt as it says."""
    path = Path(__file__).parent.parent / "data" / "random" / "verdicts.txt"
    right = True
    for block in path.read_text(encoding="latin-1").split("\n== ")[1:]:
        title, text = block.split("\n", 1)
        verdicts = [verdict for verdict, _ in judges.both(text + "\n")]
        if verdicts != [title.split(":")[0]] * 2:
            right = False
            print(f"{title}: tartan {verdicts[0]}, ptxas {verdicts[1]}")
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tartan")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--reduce", type=int, metavar="SEED")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--print", action="store_true", dest="prints")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        judges = Judges(options.tartan, folder)
        if not judges.ptxas:
            print("skipped: there is no ptxas")
            return 0
        if options.recorded:
            return 0 if recorded_alike(judges) else 1
        seeds = range(options.first, options.first + options.count)
        if options.reduce is not None:
            mine, theirs, small, said = judge(judges, options.reduce)
            print(f"tartan {mine}, ptxas {theirs}\n{small or ''}{said or ''}")
            return 0
        return 0 if (printed_alike if options.prints else compare)(judges, seeds) else 1


if __name__ == "__main__":
    sys.exit(main())
