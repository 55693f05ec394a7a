#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Token mutants of the repository's PTX and the assembler's verdicts on them: mutants.py

A unit is a file of tests/data with one of its entries, the others left out. A mutant of it has one
token dropped, doubled, swapped with the next or replaced by another of the unit, in a module whose
.version and .target are those of a pair. tests/check_mutants_test.cc makes the same mutants; their
checksum proves it. Writes verdicts.txt: a line for each unit and pair on which the unit assembles:
FILE ENTRY PAIR COUNT CRC-32 and a bit a mutant, 1 for what assembles, the first mutant the highest
bit of the first digit.
"""
import re
import resource
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DATA = Path(__file__).parents[2]
PAIRS = ("sm_80/9.0", "sm_90a/9.0", "sm_100a/9.0")
MUTANTS = 110  # of a unit and a pair
LONGEST = 420  # lines of a unit
MASK = (1 << 32) - 1
TOKEN = re.compile(r"\.?[A-Za-z0-9_$%]+(?:::[A-Za-z0-9_]+)*|[^\sA-Za-z0-9_$%]")


def mix(value):
    value = (value ^ (value >> 16)) * 0x7FEB352D & MASK
    value = (value ^ (value >> 15)) * 0x846CA68B & MASK
    return value ^ (value >> 16)


def units(path):
    """Lines of each unit. An entry goes from a line that begins with its directive to a brace alone."""
    lines, owner, entries, inside = path.read_text().splitlines(), [], 0, False
    for line in lines:
        if not inside and re.match(r"(\.visible )?\.entry ", line):
            inside, entries = True, entries + 1
        owner.append(entries if inside else 0)
        inside = inside and line != "}"
    return [[line for line, entry in zip(lines, owner) if entry in (0, one)]
            for one in range(1, entries + 1)]


def retargeted(lines, pair):
    target, version = pair.split("/")
    out = []
    for line in lines:
        if line.startswith(".version "):
            line = ".version " + version
        elif line.startswith(".target "):
            line = ".target " + target
        out.append(line)
    return out


def tokens(lines):
    """(line, begin, end) of each token that may change: none of the header or of a comment."""
    return [(number, match.start(), match.end()) for number, line in enumerate(lines)
            if not line.startswith((".version ", ".target ", ".address_size "))
            for match in TOKEN.finditer(line.split("//")[0])]


def mutant(lines, places, seed):
    """The number of the line that changes, and its text; or None where nothing would change."""
    operation, which = mix(seed) % 4, mix(seed + 1) % (len(places) - 1)
    number, begin, end = places[which]
    line = lines[number]
    token = line[begin:end]
    if operation == 0:
        text = line[:begin] + line[end:]
    elif operation == 1:
        text = line[:end] + ("" if token.startswith(".") else " ") + token + line[end:]
    elif operation == 2:
        other, first, last = places[which + 1]
        if other != number:
            return None
        text = line[:begin] + line[first:last] + line[end:first] + token + line[last:]
    else:
        other, first, last = places[mix(seed + 2) % len(places)]
        text = line[:begin] + lines[other][first:last] + line[end:]
    return None if text == line else (number, text)


def mutants(lines, seed):
    places = tokens(lines)
    made = (mutant(lines, places, mix(seed + 3 * n)) for n in range(MUTANTS))
    return [each for each in made if each]


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


def assembles(lines, pair, folder, name):
    path = Path(folder) / f"{name}.ptx"
    path.write_text("\n".join(lines) + "\n")
    arch = pair.split("/")[0][3:]
    for options in (["-arch", "compute_" + arch], ["-O0", "-arch", "sm_" + arch]):
        done = subprocess.run(["ptxas", *options, str(path), "-o", "/dev/null"], check=False,
                              capture_output=True, preexec_fn=limit)
        if done.returncode:
            path.unlink()
            return False
    path.unlink()
    return True


def judge(task):
    file, entry, pair, lines, folder = task
    name = f"{file}-{entry}-{pair}".replace("/", "_")
    lines = retargeted(lines, pair)
    if not assembles(lines, pair, folder, name):
        return None
    made = mutants(lines, zlib.crc32(f"{file} {entry} {pair}".encode()))
    checksum = zlib.crc32("".join(f"{number} {text}\n" for number, text in made).encode())
    bits = "".join("01"[assembles(lines[:n] + [text] + lines[n + 1:], pair, folder, name)]
                   for n, text in made)
    padded = bits + "0" * (-len(bits) % 4)
    digits = "".join(f"{int(padded[i:i + 4], 2):x}" for i in range(0, len(padded), 4))
    return f"{file} {entry} {pair} {len(made)} {checksum:08x} {digits}"


def main():
    files = sorted(str(p.relative_to(DATA)) for p in DATA.glob("**/*.ptx")
                   if "isa" not in p.parts and not p.name.startswith("bad-"))
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        tasks = [(file, entry, pair, lines, folder) for file in files
                 for entry, lines in enumerate(units(DATA / file)) if len(lines) <= LONGEST
                 for pair in PAIRS]
        if sys.argv[1:] == ["count"]:
            print(len(tasks))
            return
        with ThreadPoolExecutor(int(sys.argv[1]) if sys.argv[1:] else 2) as pool:
            rows = [row for row in pool.map(judge, tasks) if row]
    (Path(__file__).parent / "verdicts.txt").write_text(
        "# FILE ENTRY PAIR COUNT CRC-32 VERDICTS, by mutants.py\n" + "\n".join(rows) + "\n")
    print(f"{len(rows)} units and pairs, {sum(int(row.split()[3]) for row in rows)} mutants")


if __name__ == "__main__":
    main()
