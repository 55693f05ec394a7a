# SPDX-License-Identifier: Apache-2.0
"""Rows of statements, and how a random statement is made of one.

    @78,90: (add|sub)(|.rn)(T=.bf16|.bf16x2) <T!>, <T>, <T>

A row may begin with the need of all of it. `(a|b|)` is a choice; an alternative may begin with its
own need, `@78,90:`; a choice may have a name, `T=`. `$T` is what T became. `<...>` is an operand:

    <s32> <T>      a source of that type: a register or a constant
    <T!>           a register
    <T+> <T->      of twice, or half, the width
    <T~!>          of at least the width: data of loads, stores and cvt
    <T*4> <T*V>    a vector in braces, of 4 or as many as choice V says (.v2: 2, .x4: 4, none: no braces)
    <@S:T>         an address in state space S (a word or a choice) at which a T may lie
    <#0,31>        an integer constant
    <%32> <%64>    a special register of 32 or 64 bits
    <=NAME>        what the function in place generates: a label, a variable
"""
import re
from functools import lru_cache

WIDER = {"u8": "u16", "s8": "s16", "u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64",
         "b8": "b16", "b16": "b32", "b32": "b64", "f16": "f32", "f32": "f64", "b64": "b128"}
NARROWER = {wide: narrow for narrow, wide in WIDER.items()}


def split_top(text, separator):
    """The parts of text between separators that are in no parentheses."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == separator and depth == 0:
            parts.append(text[last:i])
            last = i + 1
    return parts + [text[last:]]


@lru_cache(None)
def parse(text):
    """Items: ("text", t), ("name", n), ("operand", o) or ("choice", name, ((need, items), ...))."""
    items, i = [], 0
    while i < len(text):
        c = text[i]
        if c == "(":
            depth, end = 1, i + 1
            while depth:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            inner = text[i + 1:end - 1]
            name = re.match(r"(\w+)=", inner)
            alternatives = []
            for part in split_top(inner[name.end():] if name else inner, "|"):
                need = re.match(r"@([^:]*):(?!:)", part)
                alternatives.append((need[1] if need else "",
                                     parse(part[need.end():] if need else part)))
            items.append(("choice", name[1] if name else None, tuple(alternatives)))
            i = end
        elif c == "<":
            end = text.index(">", i)
            items.append(("operand", text[i + 1:end]))
            i = end + 1
        elif c == "$":
            name = re.match(r"\w+", text[i + 1:])[0]
            items.append(("name", name))
            i += 1 + len(name)
        else:
            end = re.compile(r"[(<$]|$").search(text, i + 1).start()
            items.append(("text", text[i:end]))
            i = end
    return tuple(items)


@lru_cache(None)
def parse_row(row):
    need = re.match(r"@([^:]*):(?!:)\s*", row)
    return (need[1] if need else "", parse(row[need.end():] if need else row))


def rows_of(text):
    return [line.strip() for line in text.splitlines()
            if line.strip() and not line.strip().startswith("//")]


class Expansion:
    """One statement of a row; `place` generates operands."""

    def __init__(self, place):
        self.place, self.names = place, {}

    def expand(self, items):
        """The text, or None where no alternative is possible on this machine."""
        out = []
        for item in items:
            if item[0] == "text":
                out.append(item[1])
            elif item[0] == "name":
                out.append(self.names.get(item[1], ""))
            elif item[0] == "operand":
                out.append(self.operand(item[1]))
            else:
                choices = [inner for need, inner in item[2] if self.place.allows(need)]
                if not choices:
                    return None
                text = self.expand(self.place.rng.choice(choices))
                if text is None:
                    return None
                if item[1]:
                    self.names[item[1]] = text
                out.append(text)
        return "".join(out)

    def word(self, name):
        return self.names.get(name, name).lstrip(".")

    def operand(self, text):
        place = self.place
        if text[0] == "#":
            low, high = text[1:].split(",")
            return place.integer(int(low), int(high))
        if text[0] == "%":
            return place.special(text[1:])
        if text[0] == "=":
            return place.generate(text[1:])
        if text[0] == "@":
            space, kind = text[1:].split(":")
            return place.address(self.word(space), self.word(kind))
        name, marks, count = re.fullmatch(r"(\w+)([+\-~!]*)(?:\*(\w+))?!?", text).groups()
        kind = self.word(name)
        if "+" in marks:
            kind = WIDER.get(kind, kind)
        if "-" in marks:
            kind = NARROWER.get(kind, kind)
        make = place.wide_register if "~" in marks else place.register
        if "!" not in marks and not count:
            make = place.wide_source if "~" in marks else place.source
        if not count:
            return make(kind)
        digits = re.search(r"\d+", self.names.get(count, count))
        if not digits:
            return make(kind)
        return place.vector(kind, int(digits[0]), "~" in marks)


def statement(row, place):
    """A random statement of the row without its semicolon, or None."""
    need, items = parse_row(row)
    if not place.allows(need):
        return None
    return Expansion(place).expand(items)
