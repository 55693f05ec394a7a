#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random PTX modules, most of them legal: ptx_programs.py SEED [--plain]

Shares no code and no table with Tartan: what it knows of PTX is in the rows beside it, from the
manual. With --plain it makes no mistakes on purpose (mutations.py).
"""
import random
import sys
from dataclasses import dataclass

from function import BITS, Function
from machine import Machine
import mutations

SCALARS = ["b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64",
           "f64"]


@dataclass
class Variable:
    name: str
    space: str
    kind: str
    length: object = None  # of an array: a number, or () where the declaration leaves it open
    vector: int = 1
    align: int = 1
    prefix: str = ""
    initial: str = ""
    aligned: bool = False

    @property
    def size(self):
        return BITS.get(self.kind, 64) // 8 * self.vector * (self.length or 1)

    def declared(self, name):
        align = f".align {self.align} " if self.aligned else ""
        length = f"[{self.length}]" if self.length else ""
        return f".{self.space} {align}.{self.kind} {name}{length};"

    def declaration(self):
        if self.space in ("texref", "surfref", "samplerref"):
            return f"{self.prefix}.global .{self.space} {self.name};"
        align = f".align {self.align} " if self.aligned else ""
        vector = f".v{self.vector} " if self.vector > 1 else ""
        length = "" if self.length is None else f"[{self.length}]" if self.length else "[]"
        return (f"{self.prefix}.{self.space} {align}{vector}.{self.kind} {self.name}{length}"
                f"{self.initial};")


@dataclass
class Signature:
    name: str
    is_kernel: bool
    params: list
    results: list
    is_weak: bool


class Module:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.machine = Machine(self.rng)
        self.variables, self.functions, self.files, self.placed = [], [], [], set()
        self.count, self.independent = 0, False

    def fresh(self):
        self.count += 1
        return self.count

    def maybe(self, chance):
        return self.rng.random() < chance

    # Variables.

    def shape(self, variable):
        """Gives a variable a vector or array and an alignment."""
        rng = self.rng
        natural = BITS[variable.kind] // 8
        if self.maybe(0.2) and natural <= 8:
            variable.vector = rng.choice([2, 4]) if natural <= 4 else 2
            natural *= variable.vector
        if self.maybe(0.5):
            variable.length = rng.choice([1, 2, 3, 4, 8, 16, 32])
        variable.align = natural
        if self.maybe(0.4):
            variable.aligned = True
            variable.align = max(natural, rng.choice([1, 2, 4, 8, 16, 32, 128]))
        return variable

    def value(self, kind):
        rng = self.rng
        if kind[0] == "f":
            return rng.choice(["0.0", "1.5", "-2.0", "0f3F800000" if kind == "f32" else
                               "0d3FF0000000000000"])
        return str(rng.choice([0, 1, 7, 100, -1, "0x7f", "(3*4)"]))

    def initial_value(self, variable):
        rng = self.rng
        names = [v.name for v in self.variables if v.space in ("global", "const")]
        if variable.vector > 1:
            inner = "{" + ", ".join(self.value(variable.kind) for _ in range(variable.vector)) + "}"
            return f" = {{{inner}}}" if variable.length else f" = {inner}"
        if variable.kind in ("u64", "b64") and names and self.maybe(0.5):
            value = rng.choice(["{}", "generic({})", "{}+4", "generic({})+8"]).format(
                rng.choice(names))
        else:
            value = self.value(variable.kind)
        if not variable.length:
            return f" = {value}"
        return " = {" + ", ".join([value] + [self.value(variable.kind) for _ in range(
            rng.randrange(min(variable.length, 4)))]) + "}"

    def module_variable(self):
        rng = self.rng
        space = rng.choice(["global", "global", "global", "const", "shared", "shared", "texref",
                            "surfref", "samplerref"])
        variable = Variable(f"{space[0]}v{self.fresh()}", space, rng.choice(SCALARS))
        if space == "samplerref" and not self.independent:
            variable.space = "surfref"
        if space in ("texref", "surfref", "samplerref"):
            return variable
        self.shape(variable)
        if space == "shared":
            if self.maybe(0.15):
                variable.prefix, variable.length = ".extern ", 0
            return variable
        variable.prefix = rng.choice(["", "", "", ".visible ", ".weak ", ".common "])
        if variable.prefix == ".common " and space != "global":
            variable.prefix = ""
        if variable.prefix != ".common " and self.maybe(0.5):
            variable.initial = self.initial_value(variable)
        if self.maybe(0.05) and space == "global":
            variable.prefix += ".global .attribute(.managed)"
            text = variable.declaration().replace(".attribute(.managed).global", ".attribute(.managed)")
            variable.declaration = lambda: text
        return variable

    # Functions.

    def parameter(self, name, is_kernel):
        rng = self.rng
        kind = rng.choice(SCALARS)
        if not is_kernel and BITS[kind] < 32 and self.maybe(0.95):
            kind = "b32"  # functions of the ABI pass no less
        param = Variable(name, "param", kind, align=BITS[kind] // 8)
        if self.maybe(0.2):
            param.kind, param.length = "b8", rng.choice([1, 4, 8, 16, 24])
            param.aligned, param.align = True, rng.choice([1, 4, 8, 16])
        elif not is_kernel and self.maybe(0.25):
            param.space, param.kind = "reg", rng.choice(["u32", "b32", "f32", "u64", "f64", "b16"])
        return param

    def pointer_marks(self, param):
        if param.kind in ("u64", "b64") and not param.length and self.maybe(0.3):
            space = self.rng.choice(["", ".global ", ".const ", ".shared ", ".local "])
            align = self.rng.choice(["", ".align 4 ", ".align 16 "])
            return f".param .{param.kind} .ptr {space}{align}{param.name};"
        return param.declared(param.name)

    def linkage(self):
        return self.rng.choice([".visible ", ".visible ", "", ".weak "])

    def kernel_directives(self):
        rng, out = self.rng, []
        if self.maybe(0.3):
            out.append(rng.choice([".maxntid", ".reqntid"]) +
                       rng.choice([" 128", " 32, 4", " 8, 8, 8", " 1024, 1, 1"]))
            if self.maybe(0.5):
                out.append(f".minnctapersm {rng.choice([1, 2])}")
        if self.maybe(0.1):
            out.append(f".maxnreg {rng.choice([32, 64, 128])}")
        if self.machine.has("78,90") and self.maybe(0.3):
            out += rng.choice([[".explicitcluster"], [".reqnctapercluster 2"], [".maxclusterrank 8"],
                               [".explicitcluster", ".maxclusterrank 4"],
                               [".reqnctapercluster 2, 2, 1", ".explicitcluster"]])
        if self.machine.has("90,90") and self.maybe(0.1):
            out = [".reqntid 64", ".reqnctapercluster 2", ".blocksareclusters"]
        return out

    def function(self, is_kernel):
        name = f"{'k' if is_kernel else 'f'}{self.fresh()}"
        params = [self.parameter(f"{name}_p{i}", is_kernel) for i in range(self.rng.randrange(4))]
        results = [] if is_kernel or self.maybe(0.4) else [self.parameter(f"{name}_r", False)]
        linkage = self.linkage()
        signature = Signature(name, is_kernel, params, results, linkage == ".weak ")
        marks = self.pointer_marks if is_kernel else lambda p: p.declared(p.name)
        listed = [marks(p)[:-1] for p in params]
        head = f"{linkage}.{'entry' if is_kernel else 'func'} "
        if results:
            head += f"({results[0].declared(results[0].name)[:-1]}) "
        head += f"{name}({', '.join(listed)})"
        lines = []
        if not is_kernel and self.maybe(0.2):
            lines.append(head + ";")
        self.functions.append(signature)
        lines.append(head)
        if is_kernel:
            lines += self.kernel_directives()
        elif self.maybe(0.1) and not results:
            lines[-1] += " .noreturn"
            if len(lines) > 1:
                lines[0] = lines[0][:-1] + " .noreturn;"
        body = Function(self, name, [p for p in params if p.space == "param"], is_kernel)
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            local = Variable(f"l{self.fresh()}", self.rng.choice(["local", "shared"]),
                             self.rng.choice(SCALARS))
            body.locals.append(self.shape(local))
        return lines + body.body(self.rng.randint(2, 9))

    def head(self):
        machine, rng = self.machine, self.rng
        target = machine.target
        if self.maybe(0.06):
            mode = rng.choice(["texmode_unified", "texmode_independent"] * 3 + ["debug"])
            self.independent = mode == "texmode_independent"
            target += ", " + mode
        return [f".version {machine.version}", f".target {target}", ".address_size 64"]

    def alias(self):
        plain = [f for f in self.functions if not f.is_kernel and not f.is_weak]
        if not plain or not self.machine.has("63,30"):
            return []
        function, name = self.rng.choice(plain), f"a{self.fresh()}"
        results = f"({function.results[0].declared('r')[:-1]}) " if function.results else ""
        params = ", ".join(p.declared(f"p{i}")[:-1] for i, p in enumerate(function.params))
        return [f".visible .func {results}{name}({params});", f".alias {name}, {function.name};"]

    def declared_elsewhere(self):
        """What another module defines, or this one later or never."""
        number, rng = self.fresh(), self.rng
        return rng.choice([
            [f".extern .global .b32 e{number};"], [f".extern .const .u64 e{number};"],
            [f".extern .func e{number}(.param .b32 x);"], [f".extern .func (.reg .u32 r) e{number}();"],
            [f".visible .func e{number}();", f".visible .func e{number}() {{ ret; }}"],
            [f".func e{number}() {{ trap; }}"], [f".entry e{number}() {{ exit; }}"],
            [f".local .b32 e{number}[4];"], [f".global .align 4 .b8 e{number}[3] = {{1, 2}};"],
            [f".global .u32 e{number}[2][3] = {{{{1, 2, 3}}, {{4}}}};"],
            [f".global .b64 e{number}[] = {{1, 2}};"], [f".const .f32 e{number} = 0f7F800000;"],
            [f".global .u32 e{number}, e{number}b = 2;"],
            [f".extern .shared .align 16 .b8 e{number}[];"],
            [f".global .s16 e{number}[2] = {{-1, 65535}};"], [f".global .u8 e{number} = 0xff(e{number});"],
        ])

    def lines(self):
        out = self.head()
        if self.maybe(0.3):
            out += self.declared_elsewhere()
        if self.maybe(0.2):
            self.files.append(1)
            out.append('.file 1 "kernel.cu"')
        for _ in range(self.rng.randrange(6)):
            variable = self.module_variable()
            out.append(variable.declaration())
            self.variables.append(variable)
        for _ in range(self.rng.randrange(3)):
            out += self.function(False)
        if self.maybe(0.1):
            out += self.alias()
        for _ in range(self.rng.choice([1, 1, 2])):
            out += self.function(True)
        if self.files and self.maybe(0.2):
            out += [".section .debug_str {", ".b8 97, 98, 0", "}"]
        return out


def program(seed, plain=False):
    """The text of the seed."""
    module = Module(seed)
    lines = module.lines()
    if not plain and module.maybe(0.55):
        for _ in range(module.rng.choice([1, 1, 1, 2])):
            lines = mutations.mutated(lines, module.rng)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(program(int(sys.argv[1]), "--plain" in sys.argv))
