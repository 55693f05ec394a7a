# SPDX-License-Identifier: Apache-2.0
"""Targets and PTX versions, and what a `need` asks of them.

A need is "PTX,SM" with SM one or more of N (sm_N and later), Na (sm_Na alone) and Nf (the family of
sm_N, with a suffix), apart by "/": "78,90", "80,90a", "86,100f/120f".
"""
import re

FAMILIES = {100: (100, 103), 110: (110,), 101: (101,), 120: (120, 121), 90: (90,)}

# The first PTX version of a target, times ten: plain, with "a", with "f".
TARGETS = {
    50: (40, 0, 0), 52: (41, 0, 0), 53: (42, 0, 0), 60: (50, 0, 0), 61: (50, 0, 0),
    62: (50, 0, 0), 70: (60, 0, 0), 72: (61, 0, 0), 75: (63, 0, 0), 80: (70, 0, 0),
    86: (71, 0, 0), 87: (74, 0, 0), 88: (90, 0, 0), 89: (78, 0, 0), 90: (78, 80, 0),
    100: (86, 86, 88), 101: (86, 86, 88), 103: (88, 88, 88), 110: (90, 90, 90),
    120: (87, 87, 88), 121: (88, 88, 88),
}
VERSIONS = [60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86,
            87, 88, 90]
USUAL = [75, 80, 80, 86, 89, 90, 90, 90, 100, 100, 103, 120, 120]


class Machine:
    def __init__(self, rng):
        self.sm = rng.choice(USUAL if rng.random() < 0.7 else list(TARGETS))
        suffixes = [s for s, first in zip(("", "a", "f"), TARGETS[self.sm]) if first]
        self.suffix = rng.choice(suffixes)
        first = TARGETS[self.sm][("", "a", "f").index(self.suffix)]
        # PTX 9.0 has no sm_101 any more: it is sm_110.
        versions = [v for v in VERSIONS if v >= first and not (self.sm == 101 and v >= 90)]
        self.ptx = rng.choice(versions[-4:] if rng.random() < 0.5 else versions)

    @property
    def version(self):
        return f"{self.ptx // 10}.{self.ptx % 10}"

    @property
    def target(self):
        return f"sm_{self.sm}{self.suffix}"

    def has(self, need):
        if not need:
            return True
        ptx, targets = need.split(",")
        return self.ptx >= int(ptx) and any(self.is_one_of(t) for t in targets.split("/"))

    def is_one_of(self, wanted):
        number, reach = re.fullmatch(r"(\d+)([af]?)", wanted).groups()
        number = int(number)
        if not reach:
            return self.sm >= number
        if reach == "a":
            return self.sm == number and self.suffix == "a"
        return self.sm in FAMILIES[number] and self.sm >= number and (
            self.suffix == "a" or (self.suffix == "f" and self.ptx >= 88))


def arch_of(target):
    """The -arch for a .target: ptxas 13.0 has none older than sm_75, and calls sm_101 sm_110."""
    name = re.match(r"(?:sm|compute)_(\d+)([af]?)", target)
    if not name:
        return "sm_75"
    number, suffix = name.groups()
    if int(number) < 75:
        return "sm_75"
    return f"sm_{110 if number == '101' else number}{suffix}"
