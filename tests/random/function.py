# SPDX-License-Identifier: Apache-2.0
"""A random body of a function: its registers, its variables, its statements."""
import grammar
import matrix_rows
import memory_rows
import scalar_rows

FAMILIES = {name: grammar.rows_of(rows) for table in (scalar_rows, memory_rows, matrix_rows)
            for name, rows in table.FAMILIES.items()}
WEIGHTS = {"integer": 4, "float": 4, "compare": 3, "logic": 2, "move": 4, "convert": 4, "video": 1,
           "load_store": 6, "atomic": 3, "barrier": 3, "async": 3, "control": 2, "image": 2,
           "matrix": 3, "tensor_memory": 1}

# The types of registers that an operand of a type may have.
REGISTERS = {
    "pred": ["pred"], "b128": ["b128"],
    "b16": ["b16", "b16", "u16", "s16"], "u16": ["u16", "u16", "b16", "s16"],
    "s16": ["s16", "s16", "b16", "u16"], "f16": ["f16", "b16"], "bf16": ["b16"],
    "b32": ["b32", "b32", "b32", "b32", "b32", "u32", "u32", "s32"], "u32": ["u32", "b32", "s32"],
    "s32": ["s32", "b32", "u32"], "f32": ["f32", "f32", "b32"], "f16x2": ["b32", "f16x2"],
    "bf16x2": ["b32"], "tf32": ["b32"], "u16x2": ["b32"], "s16x2": ["b32"],
    "b64": ["b64", "b64", "u64", "s64"], "u64": ["u64", "b64", "s64"],
    "s64": ["s64", "b64", "u64"], "f64": ["f64", "f64", "b64"], "f32x2": ["b64"],
    "x16": ["b16"],
    "b8": ["b16", "u16", "b32", "u32"], "u8": ["u16", "b16", "u32"], "s8": ["s16", "b16", "s32"],
}
# Those that loads, stores and conversions may have, which can be wider.
WIDE = {
    "b8": ["b16", "b32", "u32", "b64", "b8"], "u8": ["u16", "u32", "b16", "u8", "u64"],
    "s8": ["s16", "s32", "b16", "s8", "s64"], "b16": ["b16", "u16", "b32", "u32"],
    "u16": ["u16", "u16", "u32", "s32", "u64"], "s16": ["s16", "s16", "s32", "u32", "s64"],
    "b32": ["b32", "u32", "f32", "b64"], "u32": ["u32", "u32", "b32", "u64"],
    "s32": ["s32", "s32", "b32", "s64"],
}
BITS = {"b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "b32": 32, "u32": 32,
        "s32": 32, "f32": 32, "f16x2": 32, "b64": 64, "u64": 64, "s64": 64, "f64": 64, "b128": 128}
DECLARED = ["pred", "b8", "u8", "s8", "b16", "u16", "s16", "f16", "b32", "u32", "s32", "f32",
            "f16x2", "b64", "u64", "s64", "f64"]
COUNT = 5
SPECIAL = {
    "32": ["%tid.x", "%tid.y", "%ntid.z", "%ctaid.x", "%nctaid.y", "%laneid", "%warpid", "%nwarpid",
           "%smid", "%nsmid", "%gridid", "%clock", "%clock_hi", "%lanemask_eq", "%lanemask_lt",
           "%lanemask_ge", "%pm0", "%pm7", "%envreg3", "%envreg31", "%globaltimer_lo",
           "%total_smem_size", "%dynamic_smem_size"],
    "64": ["%clock64", "%globaltimer", "%pm0_64", "%gridid"],
}
CLUSTER = ["%clusterid.x", "%nclusterid.y", "%cluster_ctaid.z", "%cluster_nctaid.x",
           "%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster", "%aggr_smem_size"]
INTEGERS = ["0", "1", "2", "7", "31", "255", "-1", "-2", "0x10", "0xffff", "0x7fffffff", "077",
            "0b101", "12U", "(1+2)*3", "1<<4", "!0", "-(5)", "5>4", "1?2:3", "4096", "16/3"]
FLOATS = {"f32": ["0f3F800000", "0f00000000", "1.0", "-2.5", "1e3", "0.5", "1.5e-2"],
          "f64": ["0d3FF0000000000000", "1.0", "-0.25", "1e300", "2.5e-1", "0d0000000000000000"]}


class Function:
    """What statements of a body can name. `module` has the variables and functions in scope."""

    def __init__(self, module, name, params, is_kernel):
        self.module, self.rng = module, module.rng
        self.name, self.params, self.is_kernel = name, params, is_kernel
        self.locals, self.labels, self.used_labels = [], [], set()
        self.used, self.depth = set(), 0
        self.family_names = list(FAMILIES)

    def allows(self, need):
        return self.module.machine.has(need) or self.rng.random() < 0.002

    # Operands.

    def of_type(self, name):
        if name == "b128" and not self.module.machine.has("83,70"):
            name = "b64"
        self.used.add(name)
        return f"%{name}_{self.rng.randrange(COUNT)}"

    def register(self, kind):
        if kind in ("b16", "b32", "b64") and self.rng.random() < 0.003:
            return self.of_type("f" + kind[1:])
        return self.of_type(self.rng.choice(REGISTERS.get(kind, ["b32"])))

    def vector(self, kind, count, wide):
        """Registers of one type, as most instructions want them."""
        table = WIDE if wide and kind in WIDE and self.rng.random() < 0.3 else REGISTERS
        name = kind
        if kind not in DECLARED or self.rng.random() < 0.05 or (wide and self.rng.random() < 0.4):
            name = self.rng.choice(table.get(kind, ["b32"]))
        return "{" + ", ".join(self.of_type(name) for _ in range(count)) + "}"

    def wide_register(self, kind):
        return self.of_type(self.rng.choice(WIDE.get(kind, REGISTERS.get(kind, ["b32"]))))

    def constant(self, kind):
        if kind in FLOATS:
            return self.rng.choice(FLOATS[kind])
        return self.rng.choice(INTEGERS)

    def may_be_constant(self, kind):
        return kind in FLOATS or kind in ("u16", "s16", "u32", "s32", "u64", "s64", "b16", "b32",
                                          "b64")

    def source(self, kind):
        if self.may_be_constant(kind) and self.rng.random() < 0.2:
            return self.constant(kind)
        return self.register(kind)

    def wide_source(self, kind):
        if self.may_be_constant(kind) and self.rng.random() < 0.1:
            return self.constant(kind)
        return self.wide_register(kind)

    def integer(self, low, high):
        return str(self.rng.choice([low, high, self.rng.randint(low, high)]))

    def special(self, width):
        if width == "32" and self.module.machine.has("78,90") and self.rng.random() < 0.3:
            return self.rng.choice(CLUSTER)
        return self.rng.choice(SPECIAL[width])

    def variables(self, *spaces):
        return [v for v in self.module.variables + self.locals if v.space in spaces]

    def address(self, space, kind):
        size = 16 if kind in ("v", "b128") else BITS.get(kind, 32) // 8
        space = space.split("::")[0] or "generic"
        if space == "param":
            return self.parameter(size)
        named = self.variables(space)
        fitting = [v for v in named if v.align >= size and v.size >= size]
        offset = size * self.rng.choice([1, 2, 4, -1])
        if fitting and self.rng.random() < 0.4:
            variable = self.rng.choice(fitting)
            places = variable.size // size
            at = size * self.rng.randrange(places)
            return f"[{variable.name}]" if not at else f"[{variable.name}+{at}]"
        base = self.of_type(self.rng.choice(["u64", "b64", "u64", "s64"]))
        if space in ("shared", "local", "const") and self.rng.random() < 0.5:
            base = self.of_type(self.rng.choice(["u32", "b32", "s32"]))
        return f"[{base}]" if self.rng.random() < 0.6 else f"[{base}+{offset}]"

    def parameter(self, size):
        fitting = [p for p in self.params if p.align >= size and p.size >= size]
        if not fitting:
            return f"[{self.of_type('u64')}]"
        return f"[{self.rng.choice(fitting).name}]"

    def generate(self, what):
        return getattr(self, "make_" + what)()

    def make_label(self):
        if not self.labels:
            self.labels.append(f"L{self.name}_0")
        label = self.rng.choice(self.labels)
        self.used_labels.add(label)
        return label

    def make_guard(self):
        return f"@{self.rng.choice(['', '!'])}{self.of_type('pred')} "

    def named(self, *spaces):
        found = self.variables(*spaces)
        if not found:
            return "0"
        variable = self.rng.choice(found)
        return variable.name + self.rng.choice(["", "", "+4", "+8"])

    def make_variable(self):
        return self.named("global", "shared", "const", "local")

    def make_shared(self):
        return self.named("shared")

    def make_global(self):
        return self.named("global")

    def make_function(self):
        functions = [f for f in self.module.functions if not f.is_kernel]
        return self.rng.choice(functions).name if functions else "0"

    def make_sign(self):
        return self.rng.choice(["1", "-1"])

    def make_texture(self):
        found = [v.name for v in self.module.variables if v.space == "texref"]
        return self.rng.choice(found) if found else self.of_type("u64")

    def make_surface(self):
        found = [v.name for v in self.module.variables if v.space == "surfref"]
        return self.rng.choice(found) if found else self.of_type("u64")

    # Statements.

    def instruction(self):
        """A line, or None where the row drawn has nothing for this machine."""
        weights = [WEIGHTS[name] for name in self.family_names]
        family = self.rng.choices(self.family_names, weights)[0]
        text = grammar.statement(self.rng.choice(FAMILIES[family]), self)
        if text is None:
            return None
        if text[0] != "@" and self.rng.random() < 0.12:
            text = self.make_guard() + text
        return text + ";"

    def statements(self, count):
        out = []
        while count > 0:
            made = self.compound() if self.rng.random() < 0.12 else [self.instruction()]
            if made and made[0]:
                out += made
                count -= 1
        return out

    def compound(self):
        makers = [self.label, self.block, self.call, self.call, self.table_branch, self.pragma,
                  self.location, self.indirect_call, self.vector_register, self.comment, self.loop]
        return self.rng.choice(makers)()

    def label(self):
        name = f"L{self.name}_{len(self.labels)}"
        if name in self.used_labels or not self.labels:
            self.labels.append(name)
        self.labels = list(dict.fromkeys(self.labels + [name]))
        self.module.placed.add(name)
        return [name + ":"]

    def block(self):
        if self.depth > 1:
            return None
        self.depth += 1
        out = ["{"]
        if self.rng.random() < 0.5:
            kind = self.rng.choice(["u32", "b64", "f32", "b16"])
            out.append(f".reg .{kind} inner{self.depth}, inner_{self.depth}_<3>;")
            if kind in ("u32", "f32"):
                out.append(f"mov.{kind} inner_{self.depth}_1, inner{self.depth};")
        elif self.rng.random() < 0.5:
            space = self.rng.choice(["local", "shared"])
            out.append(f".{space} .align 8 .b8 room{self.depth}[16];")
            out.append(f"st.{space}.u32 [room{self.depth}+4], {self.register('u32')};")
        out += self.statements(self.rng.randint(1, 3)) + ["}"]
        self.depth -= 1
        return out

    def vector_register(self):
        """A register that is a vector, and what may name its elements."""
        rng, name = self.rng, f"vec{self.module.fresh()}"
        kind, size = rng.choice([("f32", 4), ("u32", 2), ("b32", 4), ("f64", 2), ("u16", 2)])
        lines = [f".reg .v{size} .{kind} {name};",
                 f"ld.global.v{size}.{kind} {name}, {self.address('global', 'v')};"]
        if kind[0] != "b":
            rounded = ".rn" if kind == "f64" else ""
            lines.append(f"add{rounded}.{kind} {name}.{rng.choice('xy')}, {name}.{rng.choice('xy')}, "
                         f"{self.register(kind)};")
        lines.append(f"mov.{kind} {self.register(kind)}, {name}.{rng.choice('xyzw'[:size] + 'r')};")
        lines.append(f"st.global.v{size}.{kind} {self.address('global', 'v')}, {name};")
        return rng.sample(lines, len(lines)) if rng.random() < 0.05 else lines

    def comment(self):
        return [self.rng.choice(["// a comment; with { signs", "/* over", "mov.u32 %u32_0, 1; // two", "//",
                                 "/* one */ mov.u32 %u32_1, 2;", "{ }"])
                .replace("/* over", "/* over a line */")]

    def loop(self):
        """A loop of its own, whose counter decides."""
        number = self.module.fresh()
        counter = self.of_type("u32")
        return [f"$loop{number}:", f"add.u32 {counter}, {counter}, 1;", *self.statements(1),
                f"setp.lt.u32 %pred_0, {counter}, {self.integer(1, 99)};",
                f"@%pred_0 bra $loop{number};"]

    def pragma(self):
        words = ['"nounroll"', '"unheard of"']
        if self.module.machine.has("90,75"):
            words.append('"frequency 4"')
        return [f".pragma {self.rng.choice(words)};"]

    def location(self):
        if not self.module.files:
            return None
        return [f".loc {self.rng.choice(self.module.files)} {self.rng.randrange(1, 99)} "
                f"{self.rng.randrange(9)}"]

    def table_branch(self):
        if not self.module.machine.has("60,30") or not self.labels:
            return None
        number = self.module.fresh()
        targets = ", ".join(self.make_label() for _ in range(self.rng.randint(1, 3)))
        name = f"table{number}"
        return [f"{name}: .branchtargets {targets};",
                f"{self.rng.choice(['', self.make_guard()])}brx.idx{self.rng.choice(['', '.uni'])} "
                f"{self.register('u32')}, {name};"]

    def argument(self, param, lines, number):
        """What is passed for a parameter, after the lines that prepare it."""
        if param.space == "reg":
            return self.register(param.kind)
        name = f"arg{self.module.fresh()}_{number}"
        lines.append(param.declared(name))
        if param.length is None:
            lines.append(f"st.param.{param.kind} [{name}], {self.wide_register(param.kind)};")
        else:
            lines.append(f"st.param.b8 [{name}+{self.rng.randrange(param.size)}], "
                         f"{self.of_type('u16')};")
        return name

    def call(self, callee=None, through=None, prototype=None):
        functions = [f for f in self.module.functions if not f.is_kernel]
        if not functions and not callee:
            return None
        callee = callee or self.rng.choice(functions)
        lines, after, text = [], [], "call" + self.rng.choice(["", ".uni"])
        if callee.results:
            result = callee.results[0]
            if result.space == "reg":
                name = self.register(result.kind)
            else:
                name = f"result{self.module.fresh()}"
                lines.append(result.declared(name))
                if result.length is None:
                    after.append(f"ld.param.{result.kind} {self.wide_register(result.kind)}, [{name}];")
            text += f" ({name}),"
        text += " " + (through or callee.name)
        if callee.params:
            arguments = [self.argument(p, lines, i) for i, p in enumerate(callee.params)]
            text += f", ({', '.join(arguments)})"
        elif prototype and self.rng.random() < 0.5:
            text += ", ()"
        if prototype:
            text += f", {prototype}"
        guard = self.make_guard() if self.rng.random() < 0.1 else ""
        return ["{", *lines, guard + text + ";", *after, "}"]

    def indirect_call(self):
        functions = [f for f in self.module.functions if not f.is_kernel and
                     all(p.space == "param" for p in f.params + f.results)]
        if not functions:
            return None
        callee, number = self.rng.choice(functions), self.module.fresh()
        pointer = self.of_type("u64")
        lines = [f"mov.u64 {pointer}, {callee.name};"]
        if self.rng.random() < 0.3:
            lines.append(f"known{number}: .calltargets {callee.name};")
            return lines + self.call(callee, pointer, f"known{number}")
        results = f"({callee.results[0].declared('_')[:-1]}) " if callee.results else ""
        params = ", ".join(p.declared("_")[:-1] for p in callee.params)
        lines.append(f"shape{number}: .callprototype {results}_ ({params});")
        return lines + self.call(callee, pointer, f"shape{number}")

    def body(self, size):
        lines = self.statements(size)
        end = [f"{label}:" for label in dict.fromkeys(list(self.labels) + sorted(self.used_labels))
               if label not in self.module.placed]
        wide = ["b128"] if "b128" in self.used else []
        registers = [f".reg .{kind} %{kind}_<{COUNT}>;" for kind in DECLARED + wide
                     if kind != "f16x2" or self.module.machine.has("60,53")]
        self.rng.shuffle(registers)
        variables = [v.declaration() for v in self.locals]
        return ["{", *registers, *variables, *lines, *end, "ret;", "}"]
