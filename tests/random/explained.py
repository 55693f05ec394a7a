# SPDX-License-Identifier: Apache-2.0
"""Where `check` and ptxas differ, and why: (who refuses, pattern in the reduced program, reason)."""

EXPLAINED = [
    ("tartan", r"cannot pass scalars of 8 or 16 bits",
     "ptxas generates no code of a function that nothing calls, so it does not see what that passes"),
    ("ptxas", r"Debug information not found in presence of .target debug",
     "of debug information check judges only the syntax"),
    ("ptxas", r"fatal   : \(C\d+\) ", "an internal error of ptxas"),
    ("ptxas", r"specified register target constraints|Insufficient registers",
     "check does not allocate registers"),
    ("tartan", r"cp\.(reduce\.)?async\.bulk\.[^\n]*expected an address",
     "ptxas reads registers without brackets as addresses of the copy engine"),
    ("tartan", r"without a constant, which only integers take",
     "ptxas takes a constant behind a register of floats in dead code, and dies of it elsewhere"),
    ("tartan", r"expected a number of at most 64 bits", "ptxas drops bits of some constants"),
    ("tartan", r"expected a variable's name, found ';'",
     "ptxas takes declarations that declare nothing"),
    ("tartan", r"has no form with [.\w]*\.pred", "ptxas overlooks .pred beside another type"),
    ("tartan", r"error: v\w+\.[^\n]*expected a part of a register",
     "a third source of video instructions is for .add, .min, .max or a part of the result"),
    ("tartan", r"(red|st)\.async[^\n]*wrong number of operands",
     "ptxas takes st.async and red.async without their mbarrier, and generates no code of them"),
]
