# SPDX-License-Identifier: Apache-2.0
"""The opcode sweep's lines: reads the specification of a family and expands it (README.md).

tests/opcode_sweep.cc does the same for the tests; a checksum of each block's lines, recorded beside
the assembler's verdicts, proves that both make the same lines.
"""
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
MASK = (1 << 32) - 1


def mix(value):
    """A number that looks random, of another: the same in both programs."""
    value = (value ^ (value >> 16)) * 0x7FEB352D & MASK
    value = (value ^ (value >> 15)) * 0x846CA68B & MASK
    return value ^ (value >> 16)


@dataclass
class Common:
    pairs: dict = field(default_factory=dict)
    types: dict = field(default_factory=dict)
    words: list = field(default_factory=list)
    lists: dict = field(default_factory=dict)


def read_common():
    common, name = Common(), ""
    for line in (HERE / "common.txt").read_text().splitlines():
        key, *rest = line.split() or [""]
        if key == "pairs":
            common.pairs[rest[0]] = rest[1:]
        elif key == "type":
            common.types[rest[0]] = rest[1:]
        elif key == "words":
            common.words = rest
        elif key == "operands":
            common.operands = rest
        elif key == "list":
            name = rest[0]
            common.lists[name] = []
        elif key == "=":
            common.lists[name].append(line[2:])
    return common


@dataclass
class Block:
    name: str
    pairs: str = "usual"
    keep: tuple = (1, 1)
    mutate: int = 0
    apart: bool = False
    alone: bool = False
    slots: list = field(default_factory=list)  # (letter, alternatives, part of the mnemonic)
    operands: list = field(default_factory=list)


def read_family(common, path):
    blocks = []
    for line in path.read_text().splitlines():
        key, _, rest = line.partition(" ")
        words = rest.split()
        if not line or key == "#":
            continue
        if key == "block":
            blocks.append(Block(words[0]))
            options = iter(words[1:])
            for option in options:
                if option == "apart":
                    blocks[-1].apart = True
                elif option == "alone":
                    blocks[-1].alone = True
                elif option == "keep":
                    blocks[-1].keep = tuple(int(n) for n in next(options).split("/"))
                elif option == "mutate":
                    blocks[-1].mutate = int(next(options))
                elif option == "pairs":
                    blocks[-1].pairs = next(options)
                else:
                    raise ValueError(f"{path}: {line}")
        elif key == "=":
            blocks[-1].operands.append(rest)
        elif key == "use":
            blocks[-1].operands += [each for word in words for each in common.lists[word]]
        elif key in (".", "op") or re.fullmatch("[A-Z][:=]", key):
            words = ["" if word == "-" else word.replace("~", " ") for word in words]
            blocks[-1].slots.append((key[0], words, key[-1] != "="))
        else:
            raise ValueError(f"{path}: {line}")
    return blocks


KINDS = {"": 0, "+": 1, "-": 2, "~": 3, "b": 4}


class Lacking(Exception):
    """The type has no such register: the line is left out."""


def fill(common, text, chosen):
    """<T>0 and its like in `text`, of the words chosen in lettered slots."""

    def one(match):
        name, kind, count, first, index = match.groups()
        word = chosen.get(name, name)
        if kind == "!":
            return word
        row = common.types.get(word)
        if row is None:
            assert name in chosen, f"{name} is neither a slot nor a type: {text}"
            raise Lacking
        if kind == "#":
            return row[5]
        register = row[KINDS[kind]]
        if register == "-":
            raise Lacking
        if count is None:
            return f"%{register}_{index}"
        digits = re.findall(r"\d+", chosen.get(count, count))
        first = int(first or 0)
        if not digits:
            return f"%{register}_{first}"
        listed = ", ".join(f"%{register}_{first + i}" for i in range(int(digits[-1])))
        return "{" + listed + "}"

    return re.sub(r"<(\w+?)([-+~b#!]?)(?:\*(\w+)(?:@(\d+))?)?>(\d*)", one, text)


def split_operands(text):
    """At the commas that no brackets hold."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "[{(") - (char in "]})")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts] if text else []


def join(words, operands):
    text = ".".join(word for word in words if word)
    if operands:
        return text + " " + ", ".join(operands) + ";"
    return text if text[-1:] in ("}", ":") else text + ";"


def mutated(common, words, operands, seed):
    """One random change: the words and operands that result."""
    words, operands = [w for w in ".".join(filter(None, words)).split(".")], list(operands)
    kind, where, which = mix(seed) % 8, mix(seed + 1), mix(seed + 2)
    word = 1 + where % max(len(words) - 1, 1)
    operand = where % max(len(operands), 1)
    if kind >= 4 and not operands:
        kind -= 4
    if kind < 2 and len(words) == 1:
        kind = 2
    if kind == 0:
        del words[word]
    elif kind == 1:
        words.insert(word, words[word])
    elif kind in (2, 3):
        words.insert(word, common.words[which % len(common.words)])
    elif kind == 4:
        del operands[operand]
    elif kind == 5:
        operands.insert(operand, operands[operand])
    else:
        operands[operand] = common.operands[which % len(common.operands)]
    return words, operands


def expand(common, block):
    """The block's lines, in order."""
    if block.alone:
        return list(block.operands)
    radices = [len(words) for _, words, _ in block.slots] + [len(block.operands)]
    total = 1
    for radix in radices:
        total *= radix
    lines = []
    for i in range(total):
        if mix(i) % block.keep[1] >= block.keep[0]:
            continue
        rest, digits = i, []
        for radix in reversed(radices):
            digits.append(rest % radix)
            rest //= radix
        digits.reverse()
        words = [words[digit] for (_, words, _), digit in zip(block.slots, digits)]
        chosen = {letter: word for (letter, _, _), word in zip(block.slots, words)}
        words = [word for (_, _, part), word in zip(block.slots, words) if part]
        try:
            operands = split_operands(fill(common, block.operands[digits[-1]], chosen))
        except Lacking:
            continue
        lines.append(join(words, operands))
        if block.mutate and mix(i + 77) % block.mutate == 0:
            lines.append(join(*mutated(common, words, operands, i * 3 + 1)))
    return lines


def checksum(lines):
    """CRC-32 of the lines, each with a line break."""
    return f"{zlib.crc32(''.join(line + chr(10) for line in lines).encode()):08x}"


def module(text, pair):
    """The module that a statement of a block `alone` is."""
    target, ptx = pair.split("/")
    target = target.replace(",", ", ")
    text = text.replace("\\n", "\n")
    if ".version" in text:
        return text.replace("$PTX", ptx).replace("$TARGET", target) + "\n"
    return f".version {ptx}\n.target {target}\n.address_size 64\n{text}\n"


def version(text):
    major, minor = text.split(".")
    return int(major), int(minor)


def prelude(name, pair):
    """module.ptx or function.ptx as `pair` has it: "?sm_70/8.3 text" stands from there
    on, "?texmode_independent text" for targets with that option."""
    target, ptx = pair.split("/")
    lines = []
    for line in (HERE / name).read_text().splitlines():
        if line.startswith("//"):
            continue
        if line.startswith("?"):
            condition, line = line[1:].split(" ", 1)
            arch, _, first = condition.partition("/")
            if not first and condition not in target:
                continue
            if first and (int(re.search(r"\d+", target)[0]) < int(arch[3:])
                          or version(ptx) < version(first)):
                continue
        lines.append(line)
    return lines
