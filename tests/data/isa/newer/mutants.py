#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes tokens of PTX texts and compares what `tartan check` and ptxas say of each changed line:
mutants.py TARTAN PTXAS FOLDER [SEED [ROUNDS]]. Texts are those below FOLDER that state PTX 9.1 or
later. A round changes up to 25 lines of one text. Exit code 1 if fewer than 99.5 % agree.

Words that the assembler overlooks on every instruction, where the manual gives them to
tensormap.replace and ldmatrix, are not put in: `check` refuses them on purpose."""
import glob, os, random, re, subprocess, sys, tempfile

OVERLOOKED = set(".box_dim .element_stride .elemtype .global_address .global_dim .global_stride "
                 ".interleave_layout .rank .swizzle_atomicity .swizzle_mode .fill_mode .b4x16_p64 "
                 ".b6x16_p32 .b8x16".split())
EXTRA = (".relu .sat .ftz .v2 .v4 .global .shared .u32 .s32 .f32 .b64 .b16 .f16x2 .weak .acquire "
         ".gpu .sys .aligned .sync .rn .rz".split())
INSTRUCTION = re.compile(r"^(\s*(?:@!?%\w+ +)?)([a-z][\w:]*)((?:\.[\w:]+)*)\s*(.*?);")
FLOW = re.compile(r"^\s*(@\S+ +)?(ret|bra|call|exit)\b")


def texts(folder):
    for path in sorted(glob.glob(folder + "/**/*.ptx", recursive=True)):
        with open(path, errors="replace") as file: text = file.read()
        if len(text) < 150000 and re.search(r"^\.version 9\.[1-9]", text, re.M): yield text


def mutate(line, words, operands, draw):
    found = INSTRUCTION.match(line)
    if not found: return None
    guard, opcode, qualifiers, rest = found.groups()
    words_of = re.findall(r"\.[\w:]+", qualifiers)
    parts = [each.strip() for each in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rest)]
    kind = draw.random()
    if kind < 0.2 and words_of: words_of.pop(draw.randrange(len(words_of)))
    elif kind < 0.5 and words_of: words_of[draw.randrange(len(words_of))] = draw.choice(words)
    elif kind < 0.6: words_of.insert(draw.randrange(len(words_of) + 1), draw.choice(words))
    elif kind < 0.7 and len(words_of) > 1: draw.shuffle(words_of)
    elif kind < 0.78 and parts: parts.pop(draw.randrange(len(parts)))
    elif kind < 0.95 and parts: parts[draw.randrange(len(parts))] = draw.choice(operands)
    elif len(parts) > 1: draw.shuffle(parts)
    out = guard + opcode + "".join(words_of) + (" " + ", ".join(parts) if parts else "") + ";"
    return out if "".join(out.split()) != "".join(line.split()) else None


def assembler(ptxas, path, arch, *options):
    """Lines with errors, and the line at which it gave up; nothing where it says no line."""
    try:
        done = subprocess.run([ptxas, *options, "-arch", arch, path, "-o", "/dev/null"],
                              capture_output=True, text=True, errors="replace", timeout=100)
    except subprocess.TimeoutExpired:
        return None, None
    found = re.findall(r"^ptxas \S+, line (\d+); (error|fatal) *: (.*)$", done.stdout + done.stderr,
                       re.M)
    if done.returncode < 0 or (done.returncode and not found): return None, None
    fatal = [int(line) for line, kind, what in found if kind == "fatal" and "aborted" not in what]
    return {int(line) for line, _, _ in found}, min(fatal, default=None)


def checked(tartan, path):
    done = subprocess.run([tartan, "check", path], capture_output=True, text=True, timeout=100)
    out = {}
    for line, what in re.findall(r"^\S+?:(\d+):\d+: error: (.*)$", done.stdout + done.stderr, re.M):
        out.setdefault(int(line), what)
    return out


def main():
    tartan, ptxas, folder = sys.argv[1:4]
    draw = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 100
    all_texts = list(texts(folder))
    if not all_texts: sys.exit(f"mutants.py: no text of PTX 9.1 or later below {folder}")
    first_words = [line.split(" ")[0] for text in all_texts for line in text.split("\n") if line]
    words = sorted(({word for first in first_words for word in re.findall(r"\.[A-Za-z0-9_:]+", first)}
                    | set(EXTRA)) - OVERLOOKED)
    agree, differ, unjudged = 0, 0, 0
    scratch = tempfile.TemporaryDirectory()
    path = os.path.join(scratch.name, "mutant.ptx")
    for _ in range(rounds):
        text = draw.choice(all_texts)
        lines = text.split("\n")
        registers = re.findall(r"%[a-z]+\d+", text)
        places = [i for i, line in enumerate(lines) if INSTRUCTION.match(line) and not FLOW.match(line)]
        if len(places) < 5 or not registers: continue
        operands = [draw.choice(registers) for _ in range(30)]
        operands += ["0", "1", "-1", "0x10000", "1.5", "7", *(f"[{each}]" for each in operands[:6])]
        changed = {}
        for i in draw.sample(places, min(len(places) // 4 + 1, 25)):
            line = mutate(lines[i], words, operands, draw)
            if line: changed[i + 1], lines[i] = line, line
        arch = re.search(r"^\.target\s+sm_(\w+)", text, re.M).group(1)
        with open(path, "w") as file: file.write("\n".join(lines))
        bad, end = assembler(ptxas, path, "compute_" + arch)
        if bad is None: unjudged += 1; continue
        mine = checked(tartan, path)
        for line in changed:
            if end is not None and line >= end: break
            if (line in bad) == (line in mine): agree += 1; continue
            if line in mine:  # the parser of ptxas is not all of it
                alone = text.split("\n")
                alone[line - 1] = changed[line]
                with open(path, "w") as file: file.write("\n".join(alone))
                if assembler(ptxas, path, "sm_" + arch, "-O0")[0] != set(): agree += 1; continue
            differ += 1
            print("refused" if line in mine else "taken", arch, changed[line].strip()[:150], "|",
                  mine.get(line, "")[:160])
    rate = agree / max(1, agree + differ)
    print(f"{agree + differ} mutants, {100 * rate:.2f} % agree; of {unjudged} texts ptxas said nothing")
    return 0 if rate >= 0.995 and agree else 1


if __name__ == "__main__": sys.exit(main())
