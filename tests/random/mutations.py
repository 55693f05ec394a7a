# SPDX-License-Identifier: Apache-2.0
"""Local changes of a program that often make it wrong."""
import re

TYPES = [".b8", ".u8", ".s8", ".b16", ".u16", ".s16", ".f16", ".bf16", ".f16x2", ".bf16x2", ".b32",
         ".u32", ".s32", ".f32", ".tf32", ".b64", ".u64", ".s64", ".f64", ".b128", ".pred"]
SPACES = [".global", ".shared", ".local", ".const", ".param", ".shared::cta", ".shared::cluster"]
WORDS = TYPES + SPACES + [
    ".sat", ".ftz", ".rn", ".rz", ".rni", ".approx", ".lo", ".wide", ".cc", ".sync", ".aligned",
    ".relaxed", ".acquire", ".release", ".gpu", ".cta", ".sys", ".cluster", ".volatile", ".weak",
    ".ca", ".cg", ".cv", ".nc", ".v2", ".v4", ".v8", ".x2", ".x4", ".trans", ".relu", ".satfinite",
    ".NaN", ".eq", ".lt", ".and", ".uni", ".to", ".add", ".max", ".inc", ".noftz", ".L2::cache_hint",
    ".full", ".row", ".col", ".read", ".noinc", ".parity", ".b1", ".clamp"]
IMMEDIATES = ["-1", "16", "256", "65536", "4294967296", "1.5", "0x1ffffffffffffffff", "0f3F800000",
              "3", "-32769", "128", "0", "1.0", "99999999999999999999"]
REGISTERS = ["pred", "b16", "u16", "f16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]
PTX = ["6.0", "6.3", "6.5", "7.0", "7.1", "7.4", "7.8", "8.0", "8.1", "8.3", "8.6", "8.8", "9.0",
       "9.1", "5.0", "1.4"]
TARGETS = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100",
           "sm_100a", "sm_100f", "sm_103a", "sm_110", "sm_120", "sm_120a", "sm_121f", "sm_99"]
OPCODES = ["add", "mul", "mov", "ld", "st", "cvt", "setp", "and", "min", "fma", "mad", "shl", "atom",
           "red", "neg", "abs", "div", "rcp", "selp", "bfe", "popc", "not", "bar", "tex"]

MNEMONIC = re.compile(r"((?:@!?%\w+ )?)([a-z][\w]*)((?:(?:\.|::)[\w]+)*)(.*)$", re.S)


def split_statement(line):
    """Guard, opcode, qualifiers, operands of an instruction; None for other lines."""
    found = MNEMONIC.match(line)
    if not found or not line.endswith(";") or line.startswith("."):
        return None
    return found[1], found[2], re.findall(r"\.\w+(?:::\w+)*|::\w+", found[3]), found[4][:-1]


def split_operands(text):
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[last:i].strip())
            last = i + 1
    rest = text[last:].strip()
    return parts + [rest] if rest else parts


def mutate_qualifier(quals, rng):
    quals = list(quals)
    at = rng.randrange(len(quals)) if quals else 0
    kind = rng.choice(["replace", "replace", "remove", "insert", "swap"])
    if not quals or kind == "insert":
        quals.insert(at, rng.choice(WORDS))
    elif kind == "remove":
        del quals[at]
    elif kind == "swap" and len(quals) > 1:
        at = rng.randrange(len(quals) - 1)
        quals[at], quals[at + 1] = quals[at + 1], quals[at]
    else:
        group = next((g for g in (TYPES, SPACES) if quals[at] in g), WORDS)
        quals[at] = rng.choice(group)
    return quals


def mutate_operand(operand, rng):
    kind = rng.choice(["constant", "register", "bracket", "offset", "vector", "negate"])
    if kind == "constant":
        return rng.choice(IMMEDIATES)
    if kind == "register":
        register = f"%{rng.choice(REGISTERS)}_{rng.randrange(5)}"
        found = re.search(r"%\w+", operand)
        return operand.replace(found[0], register, 1) if found else register
    if kind == "bracket":
        return operand[1:-1] if operand[:1] in "[{" and len(operand) > 2 else f"[{operand}]"
    if kind == "offset":
        return operand[:-1] + "+3]" if operand.endswith("]") else operand + "+1"
    if kind == "vector":
        return f"{{{operand}, {operand}}}"
    return "-" + operand if rng.random() < 0.5 else "!" + operand


def mutate_operands(operands, rng):
    operands = list(operands)
    kind = rng.choice(["drop", "repeat", "swap", "change", "change", "change"])
    if not operands:
        return ["1"]
    at = rng.randrange(len(operands))
    if kind == "drop":
        del operands[at]
    elif kind == "repeat":
        operands.insert(at, operands[at])
    elif kind == "swap":
        other = rng.randrange(len(operands))
        operands[at], operands[other] = operands[other], operands[at]
    else:
        operands[at] = mutate_operand(operands[at], rng)
    return operands


def mutated_instruction(parts, rng):
    guard, opcode, quals, operands = parts
    kind = rng.random()
    if kind < 0.45:
        quals = mutate_qualifier(quals, rng)
    elif kind < 0.9:
        operands = " " + ", ".join(mutate_operands(split_operands(operands), rng))
    elif kind < 0.95:
        opcode = rng.choice(OPCODES)
    else:
        guard = rng.choice(["@%pred_0 ", "@!%pred_1 ", "@%b32_0 ", "@1 "])
    return guard + opcode + "".join(quals) + operands.rstrip() + ";"


def mutated_directive(line, rng):
    """A word of it replaced, removed or repeated."""
    words = re.findall(r"\.?[\w$%]+|\S", line)
    at = rng.randrange(len(words))
    kind = rng.choice(["replace", "remove", "repeat", "swap"])
    if kind == "remove":
        del words[at]
    elif kind == "repeat":
        words.insert(at, words[at])
    elif kind == "swap" and len(words) > 1:
        at = rng.randrange(len(words) - 1)
        words[at], words[at + 1] = words[at + 1], words[at]
    elif words[at].isdigit():
        words[at] = rng.choice(IMMEDIATES)
    elif words[at] in TYPES:
        words[at] = rng.choice(TYPES)
    elif words[at] in SPACES:
        words[at] = rng.choice(SPACES + [".reg"])
    else:
        words[at] = rng.choice(["x", "1", ",", "(", "]", ".b32", ".align", ".visible"])
    return " ".join(words).replace(" . ", ".")


def mutated(lines, rng):
    lines = list(lines)
    kind = rng.random()
    if kind < 0.03:
        lines[0] = f".version {rng.choice(PTX)}"
        return lines
    if kind < 0.06:
        lines[1] = f".target {rng.choice(TARGETS)}"
        return lines
    if kind < 0.09:
        at = rng.randrange(3, len(lines))
        del lines[at]
        return lines
    if kind < 0.10:
        at = rng.randrange(3, len(lines) - 1)
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
        return lines
    if kind < 0.12:
        at = rng.randrange(3, len(lines))
        lines.insert(at, rng.choice(lines[3:]))
        return lines
    statements = [i for i, line in enumerate(lines) if split_statement(line)]
    if statements and kind < 0.78:
        at = rng.choice(statements)
        lines[at] = mutated_instruction(split_statement(lines[at]), rng)
        return lines
    directives = [i for i, line in enumerate(lines) if line[:1] == "." and i > 2]
    if directives:
        at = rng.choice(directives)
        lines[at] = mutated_directive(lines[at], rng)
    return lines
