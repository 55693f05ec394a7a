# SPDX-License-Identifier: Apache-2.0
"""What ptxas says of many PTX statements, each on its own: taken, refused, or it crashes.

It reports all errors of a run, but a syntax error ends the run, and after any error it generates no
code, which refuses more. So statements are parsed in batches, those after a syntax error again, and
what is left is assembled without errors in the way, halved where something fails without a line.
What is a syntax error both for the oldest target and version and for the newest is not tried again.
"""
import re
import resource
import subprocess
import tempfile
from pathlib import Path

import spec

PARSED, ASSEMBLED = 500, 50  # statements of a function
FUNCTIONS = 40, 12  # of a module
ON_LINE = re.compile(r"^ptxas warning : .* on line '(\d+)'", re.M)
DIAG = re.compile(r"^ptxas (.*?), line (\d+); (error|fatal) *: (.*)$", re.M)


def limit():
    """Some statements make ptxas take all memory or time there is: as if it crashed."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (6, 6))


def arch_of(target):
    """The -arch for a .target: ptxas 13.0 has none older than sm_75, and calls sm_101 sm_110."""
    name = target.split(",")[0][3:]
    if int(re.match(r"\d+", name)[0]) < 75:
        return "75"
    return name.replace("101", "110")


class Oracle:
    def __init__(self, pair, folder, hopeless=frozenset()):
        self.pair, (self.target, self.ptx) = pair, pair.split("/")
        self.path = Path(folder) / "sweep.ptx"
        self.module, self.function = (spec.prelude(f, pair) for f in ("module.ptx", "function.ptx"))
        self.crashes, self.messages, self.runs = [], {}, 0
        self.syntax = set()  # statements that end a run
        self.hopeless = hopeless  # those known to do so

    def text(self, statements, size):
        """A module and the line of each statement."""
        lines = [f".version {self.ptx}", f".target {self.target.replace(',', ', ')}",
                 ".address_size 64", *self.module]
        places = {}
        for start in range(0, len(statements), size):
            lines += [line.replace("$NAME", f"k{start}") for line in self.function]
            for statement in statements[start:start + size]:
                lines.append(statement)
                places[len(lines)] = len(places)
            lines += ["L_end:", "ret;", "}"]
        return "\n".join(lines) + "\n", places

    def run(self, statements, size, *options):
        """Exit status, and the diagnostics: (index of a statement or None, severity, message)."""
        text, places = self.text(statements, size)
        self.path.write_text(text)
        self.runs += 1
        done = subprocess.run(["ptxas", *options, str(self.path), "-o", "/dev/null"],
                              capture_output=True, text=True, errors="replace", check=False,
                              preexec_fn=limit)
        if "Memory allocation failure" in done.stderr:
            return -1, []
        diags = [(places.get(int(line)) if name == str(self.path) else None, severity, message)
                 for name, line, severity, message in DIAG.findall(done.stdout + done.stderr)]
        if done.returncode == 255:  # what is fatal to the module is a mere warning of the line
            diags += [(places.get(int(line)), "warning", "") for line in
                      ON_LINE.findall(done.stdout + done.stderr)]
        return done.returncode, diags

    def parse(self, statements, size):
        """The set of statements that the parser refuses."""
        refused, start = set(), 0
        while start < len(statements):
            rest = statements[start:start + FUNCTIONS[0] * size]
            code, diags = self.run(rest, size, "-arch", "compute_" + arch_of(self.target))
            end = len(rest)
            for index, severity, message in diags:
                if severity == "warning":
                    continue
                if index is None and severity == "fatal":
                    return refused | self.halve(statements, start, end, size)
                if index is None:  # in a macro: shows again when the rest is assembled
                    continue
                if severity == "fatal":
                    end = index + 1
                    self.syntax.add(rest[index])
                refused.add(start + index)
                self.messages.setdefault(message, statements[start + index])
            if code < 0 or (code and not diags):
                return refused | self.halve(statements, start, len(rest), size)
            start += end
        return refused

    def halve(self, statements, start, count, size):
        """As parse, from `start` on, where a batch of `count` broke off for no line."""
        if count == 1:
            self.crashes.append(statements[start])
            found = {start}
        else:
            half = (count + 1) // 2
            parts = (start, half), (start + half, count - half)
            found = {first + index for first, many in parts
                     for index in self.parse(statements[first:first + many], size)}
        rest = start + count
        return found | {rest + i for i in self.parse(statements[rest:], size)}

    def assemble(self, statements, size):
        """The set of those statements, all right to the parser, that become no code."""
        if not statements:
            return set()
        code, diags = self.run(statements, size, "-O0", "-arch", "sm_" + arch_of(self.target))
        if code == 0:
            return set()
        if len(statements) == 1:
            if code < 0:
                self.crashes.append(statements[0])
            for _, _, message in diags:
                self.messages.setdefault(message, statements[0])
            return {0}
        named = {index for index, _, _ in diags if index is not None}
        if named and len(named) < len(statements):
            groups = [[i] for i in sorted(named)]
            groups.append([i for i in range(len(statements)) if i not in named])
        else:
            half = len(statements) // 2
            groups = [range(half), range(half, len(statements))]
        return {group[i] for group in groups
                for i in self.assemble([statements[i] for i in group], size)}

    def takes_module(self, statement):
        """Whether the module of a block `alone` assembles. What no module defines may be elsewhere."""
        self.path.write_text(spec.module(statement, self.pair))
        self.runs += 1
        done = subprocess.run(["ptxas", "-O0", "-c", "-arch", "sm_" + arch_of(self.target),
                               str(self.path), "-o", "/dev/null"], capture_output=True, text=True,
                              errors="replace", check=False, preexec_fn=limit)
        return done.returncode == 0

    def taken(self, statements, apart=False):
        """One verdict of each statement: True if it assembles."""
        right = [i for i, text in enumerate(statements) if text not in self.hopeless]
        bad = self.parse([statements[i] for i in right], 1 if apart else PARSED)
        right = [each for i, each in enumerate(right) if i not in bad]
        size = 1 if apart else ASSEMBLED
        verdicts = [False] * len(statements)
        for start in range(0, len(right), FUNCTIONS[1] * size):
            part = right[start:start + FUNCTIONS[1] * size]
            bad = self.assemble([statements[i] for i in part], size)
            for i, each in enumerate(part):
                verdicts[each] = i not in bad
        return verdicts


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="sweep")
