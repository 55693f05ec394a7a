# SPDX-License-Identifier: Apache-2.0
"""Built-in kernels, and the checker of PTX text."""

from __future__ import annotations

import ctypes
import functools
import json
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, FrozenSet, List, Optional, Union

from ._library import (
    Diagnostic,
    Handle,
    check as _check,
    diagnostics_of,
    encoded,
    library,
    take_json,
    without_terminator,
)

if TYPE_CHECKING:
    from ._device import Device


@dataclass(frozen=True)
class Option:
    """An option of built-in kernels: "head-dim" is head_dim=... of compile()."""

    name: str
    type: str  # "integer", "string", "boolean", "strings"
    default: Any  # None: the kernel chooses
    help: str


@dataclass(frozen=True)
class KernelSummary:
    """A row of kernels()."""

    name: str
    summary: str
    options: List[Option]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel. Of a pointer, `type` is that of its elements."""

    name: str
    type: str  # "bf16"; of PTX text "u64" or "b64", as it says, and of an array the bits: "b512"
    pointer: bool = False
    elements: int = 0  # that the kernel accesses; 0: arguments decide
    reads: bool = True
    writes: bool = True
    multiple_of: int = 1


@dataclass(frozen=True)
class Choice:
    """One decision of Tartan, with its reason."""

    what: str
    taken: str
    reason: str
    refused: List[str]
    file: str
    line: int


class Kernel:
    """A compiled kernel; compile() makes one, Device.load() loads it."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        info = json.loads(library.tartan_kernel_info(handle.pointer))
        self.name: str = info["name"]
        self.target: str = info["target"]
        self.ptx_version: str = info["ptx_version"]
        self.block: int = info["block"]
        self.dynamic_shared: int = info["dynamic_shared"]
        self.parameters: List[Parameter] = [Parameter(**each) for each in info["parameters"]]
        # Kernels that are faster for some arguments, by the option that makes them: ["keys=256"].
        # Device.load() loads them, too, and a launch takes the one that suits its arguments.
        self.variants: List[str] = info.get("variants", [])
        self.warnings: List[Diagnostic] = diagnostics_of(
            json.dumps({"diagnostics": info["warnings"]})
        )
        # What each step of compile() took: describe, generate (LLVM), verify, cache.
        self.microseconds: Dict[str, float] = info.get("microseconds", {})

    @property
    def ptx(self) -> str:
        """The PTX text."""
        return library.tartan_kernel_ptx(self._handle.pointer).decode()

    def explain(self) -> List[Choice]:
        """What Tartan chose, and why."""
        choices = json.loads(library.tartan_kernel_explain(self._handle.pointer))
        return [Choice(**each) for each in choices]

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self.parameters)
        return f"<tartan.Kernel {self.name}({names}) for {self.target}>"


def kernels() -> List[KernelSummary]:
    """The built-in kernels with their options."""
    out = ctypes.c_void_p()
    _check(library.tartan_list_kernels(ctypes.byref(out)))
    return [
        KernelSummary(each["name"], each["summary"], [Option(**of) for of in each["options"]])
        for each in take_json(out)
    ]


@functools.lru_cache(maxsize=None)
def _choosing() -> FrozenSet[str]:
    """The kernels that choose for a GPU."""
    return frozenset(of.name for of in kernels() if any(each.name == "gpu" for each in of.options))


def compile(name: str, target: Union[str, "Device"], **options: Any) -> Kernel:
    """Compiles a built-in kernel for "sm_90a" and the like, or for a device.

    Options are those of `tartan emit`: --head-dim is head_dim. A size of 0 becomes a parameter.
    With a device, what is not given is chosen for its GPU, as with gpu="H200" and the number of its
    multiprocessors.
    """
    arch = target if isinstance(target, str) else getattr(target, "arch", None)
    if arch is None:
        raise TypeError(f"target: expected str or Device, found {type(target).__name__}")
    for key, value in options.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{key}: expected a number, found {value}")
    members = {key.replace("_", "-"): value for key, value in options.items()}
    if not isinstance(target, str) and "gpu" not in members and name in _choosing():
        members.setdefault("multiprocessors", target.multiprocessors)
        if target.gpu:
            members["gpu"] = target.gpu
    handle = Handle(library.tartan_kernel_free)
    _check(
        library.tartan_compile(
            encoded(name, "name"),
            encoded(arch, "target"),
            json.dumps(members).encode(),
            ctypes.byref(handle.pointer),
        )
    )
    return Kernel(handle)


def use_cache(folder: Union[str, "os.PathLike[str]", None] = None) -> None:
    """From now on compile() and Device.load() find PTX and machine code in a folder, and keep them
    there, for all of this user's processes. None: TARTAN_CACHE_DIR, else XDG_CACHE_HOME/tartan,
    else ~/.cache/tartan; "": no cache, as at the start."""
    _check(library.tartan_use_cache(None if folder is None else os.fsencode(folder)))


def cache_problems() -> List[Diagnostic]:
    """What the cache could not read or write, as warnings: results do without it."""
    out = ctypes.c_void_p()
    _check(library.tartan_cache_problems(ctypes.byref(out)))
    return diagnostics_of(json.dumps(take_json(out)))


def check(ptx: Union[str, bytes], target: Optional[str] = None) -> List[Diagnostic]:
    """The diagnostics of PTX text for a target, or for the text's own, with at most a hundred
    errors: none is of level "error" if the text is legal."""
    out = ctypes.c_void_p()
    arch = encoded(target, "target") if target else None
    read, zero, _ = without_terminator(ptx).partition(b"\0")
    _check(library.tartan_check(read, arch, ctypes.byref(out), None))
    found = diagnostics_of(json.dumps(take_json(out)))
    if zero:
        lines = read.split(b"\n")
        found.append(
            Diagnostic(
                "error",
                "encoding",
                "the text contains a zero byte, and what is behind it is not read",
                "<ptx>",
                len(lines),
                len(lines[-1]) + 1,
            )
        )
    return found
