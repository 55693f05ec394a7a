# SPDX-License-Identifier: Apache-2.0
"""ptxas as a judge of single statements. A first run parses a batch (-arch compute_X) and harvests
every error that has a line; a fatal one ends a run, and the rest is run again. A second run
assembles what parsed at -O0, a statement a kernel, halving where a failure has no line. A last
statement that must be refused proves that a run reached its end: ptxas may die silently."""
import os, re, resource, subprocess, tempfile

DIAG = re.compile(r"^ptxas (.*?), line (\d+); (error|fatal) *: (.*)$", re.M)
ANY = re.compile(r"^ptxas (?:.*?)(error|fatal) *: (.*)$", re.M)
REGISTERS = """.reg .b32 %r<300>; .reg .b64 %rd<40>; .reg .pred %p<8>; .reg .b16 %h<24>;
.reg .b8 %c<8>; .reg .f32 %f<140>; .reg .u32 %u<8>; .reg .s32 %s<8>; .reg .u64 %ud<8>;
.reg .s64 %sd<8>; .reg .u16 %uh<8>; .reg .s16 %sh<8>; .reg .f64 %d<8>; .reg .f16 %hf<8>;
.reg .b128 %q<8>; .shared .align 16 .b32 s_b32; .shared .align 16 .b64 s_bar;
.local .align 16 .b8 l_b[64];""".splitlines()
MODULE = [".global .align 64 .b8 g_b[256];", ".const .align 16 .b8 c_b[64];", ".global .b32 g_b32;"]
SECONDS = 60  # ptxas 13.5 does not end on some statements


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


class Judge:
    def __init__(self, ptxas, target, version):
        self.ptxas, self.target, self.version = ptxas, target, version

    def run(self, statements, size, *options):
        text = [f".version {self.version}", f".target {self.target}", ".address_size 64", *MODULE]
        place, last = {}, 0
        for i in range(0, len(statements), size):
            text += [f".visible .entry k{i}(.param .align 64 .b8 p_b[128])", "{", *REGISTERS]
            for one in statements[i:i + size]:
                text.append(one)
                place[len(text)] = len(place)
            text += ["ret;", "}"]
        if "-O0" not in options:
            text += [".visible .entry kz()", "{", *REGISTERS,
                     "add.nosuchmodifier.u32 %r1, %r1, %r1;"]
            last = len(text)
            text += ["ret;", "}"]
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/x.ptx"
            with open(path, "w") as file: file.write("\n".join(text) + "\n")
            seconds = 4 + 0.04 * len(statements) if "-O0" in options else 2 * SECONDS
            try:
                done = subprocess.run([self.ptxas, *options, path, "-o", "/dev/null"], text=True,
                                      capture_output=True, errors="replace", preexec_fn=limit,
                                      timeout=seconds)
            except subprocess.TimeoutExpired:
                return -1, [(None, "crash")]
            out = done.stdout + done.stderr
            found = [(int(line), kind) for name, line, kind, _ in DIAG.findall(out) if name == path]
        wrong = [(place.get(line), kind) for line, kind in found if line != last]
        if done.returncode < 0: return done.returncode, [(None, "crash")]
        if last and not any(line == last for line, _ in found) and not any(
                kind == "fatal" and at is not None for at, kind in wrong):
            return done.returncode, [(None, "crash")]
        if not wrong and done.returncode and not last:
            wrong = [(None, kind) for kind, _ in ANY.findall(out)] or [(None, "crash")]
        return done.returncode, wrong

    def parse(self, statements, which, verdicts, size=250):
        i = 0
        while i < len(which):
            part = which[i:i + 8000]
            _, wrong = self.run([statements[k] for k in part], size, "-arch",
                                "compute_" + self.target[3:])
            end = len(part)
            for at, kind in wrong:
                if at is None and kind == "crash":
                    if len(part) == 1: verdicts[part[0]] = "!"
                    else:
                        half = len(part) // 2
                        self.parse(statements, part[:half], verdicts, max(1, half))
                        self.parse(statements, part[half:], verdicts, max(1, len(part) - half))
                    break
                if at is None: continue
                verdicts[part[at]] = "."
                if kind == "fatal": end = at + 1
            i += end

    def assemble(self, statements, which, verdicts):
        if not which: return
        groups = [[k for k in which if ("cta_group::2" in statements[k]) == two]
                  for two in (False, True)]  # a function may use one group only
        if all(groups):
            for group in groups: self.assemble(statements, group, verdicts)
            return
        code, wrong = self.run([statements[k] for k in which], 1, "-O0", "-arch", self.target)
        if code == 0: return
        if len(which) == 1:
            verdicts[which[0]] = "!" if code < 0 or wrong[0][1] == "crash" else "c"
            return
        named = sorted({at for at, _ in wrong if at is not None})
        half = len(which) // 2
        parts = [which[:half], which[half:]]
        if named and len(named) < len(which):
            parts = [[which[k]] for k in named]
            parts.append([k for i, k in enumerate(which) if i not in set(named)])
        for part in parts: self.assemble(statements, part, verdicts)

    def verdicts(self, statements, assembles):
        """Of each: + taken, . refused, c taken without code, ! ptxas dies."""
        found = {}
        self.parse(statements, list(range(len(statements))), found)
        if assembles:
            left = [k for k in range(len(statements)) if k not in found]
            for i in range(0, len(left), 400): self.assemble(statements, left[i:i + 400], found)
        return [found.get(k, "+") for k in range(len(statements))]
