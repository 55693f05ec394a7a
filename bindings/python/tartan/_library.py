# SPDX-License-Identifier: Apache-2.0
"""libtartan.so through ctypes: where it is, the functions of tartan/c.h, errors as exceptions."""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import operator
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Optional, Union

INTERFACE = 1  # TARTAN_C_VERSION


@dataclass(frozen=True)
class Diagnostic:
    """An error, a warning or a note: `message`, the id of its rule, and its place if it has one."""

    level: str
    id: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0


class Error(Exception):
    """What Tartan refused or what failed: all diagnostics; `rule` is that of the first error."""

    def __init__(self, text: str, diagnostics: List[Diagnostic], rule: str) -> None:
        super().__init__(text)
        self.diagnostics = diagnostics
        self.rule = rule


def usage_error(message: str, rule: str = "usage") -> Error:
    return Error(f"error: {message} [{rule}]", [Diagnostic("error", rule, message)], rule)


def bytes_of(text: Union[str, bytes], what: str) -> bytes:
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"{what}: expected str or bytes, found {type(text).__name__}")
    return text.encode() if isinstance(text, str) else text


def encoded(text: Union[str, bytes], what: str) -> bytes:
    """`text` for a function of C, which would read it up to a zero byte."""
    out = bytes_of(text, what)
    if b"\0" in out:
        raise usage_error(f"{what} contains a zero byte, at index {out.index(0)}", "encoding")
    return out


def without_terminator(ptx: Union[str, bytes]) -> bytes:
    """PTX text without the zero byte that may end it."""
    out = bytes_of(ptx, "ptx")
    return out[:-1] if out.endswith(b"\0") else out


def integer(value: Any, what: str, bits: int) -> int:
    """`value` as an unsigned integer of C, of which ctypes would take the low bits of any."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{what}: expected an integer, found {type(value).__name__}")
    number = operator.index(value)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{what}: expected 0 to 2^{bits} - 1, found {number}")
    return number


def diagnostics_of(text: str) -> List[Diagnostic]:
    known = Diagnostic.__dataclass_fields__
    rows = json.loads(text)["diagnostics"]
    return [Diagnostic(**{name: row[name] for name in row if name in known}) for row in rows]


class Argument(ctypes.Structure):
    """tartan_argument."""

    _fields_ = [
        ("value", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("extent", ctypes.c_uint64),
    ]


class LaunchOptions(ctypes.Structure):
    """tartan_launch_options."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_shared", ctypes.c_uint32),
        ("cooperative", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("programmatic", ctypes.c_uint32),
    ]


def _near_package() -> List[Path]:
    """The libraries of the prefix that this package is in, as PREFIX/lib*/python*/*/tartan."""
    found: List[Path] = []
    parents = Path(__file__).resolve().parents
    for prefix in parents[3:6]:
        for pattern in ("libtartan.so*", "lib*/libtartan.so*", "lib/*/libtartan.so*"):
            found += sorted(prefix.glob(pattern))
    return found


def _load() -> ctypes.CDLL:
    path = os.environ.get("TARTAN_LIBRARY")
    if path:
        return ctypes.CDLL(path)
    near = _near_package()
    name = str(near[0]) if near else ctypes.util.find_library("tartan")
    if not name:
        raise OSError(
            f"libtartan.so is neither in the prefix of {Path(__file__).parent} nor known to the "
            "loader; set TARTAN_LIBRARY to its path"
        )
    return ctypes.CDLL(name)


def _declare(library: ctypes.CDLL) -> None:
    handle, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    out = ctypes.POINTER(handle)
    error = handle
    functions = {
        "version": (text,),
        "c_version": (ctypes.c_int,),
        "error_text": (text, handle),
        "error_json": (text, handle),
        "error_rule": (text, handle),
        "error_free": (None, handle),
        "string_free": (None, handle),
        "list_kernels": (error, out),
        "use_cache": (error, text),
        "cache_problems": (error, out),
        "compile": (error, text, text, text, out),
        "kernel_name": (text, handle),
        "kernel_ptx": (text, handle),
        "kernel_info": (text, handle),
        "kernel_explain": (text, handle),
        "kernel_free": (None, handle),
        "check": (error, text, text, out, ctypes.POINTER(size)),
        "open": (error, text, text, out),
        "adopt": (error, handle, out),
        "device_name": (text, handle),
        "device_arch": (text, handle),
        "device_gpu": (text, handle),
        "device_multiprocessors": (ctypes.c_int, handle),
        "device_emulated": (ctypes.c_int, handle),
        "synchronize": (error, handle),
        "findings": (error, handle, out),
        "device_free": (None, handle),
        "allocate": (error, handle, size, out),
        "buffer_address": (ctypes.c_uint64, handle),
        "buffer_size": (size, handle),
        "write": (error, handle, size, handle, size),
        "read": (error, handle, size, handle, size),
        "fill": (error, handle, ctypes.c_uint8),
        "buffer_free": (None, handle),
        "load": (error, handle, handle, out),
        "load_ptx": (error, handle, text, text, out),
        "function_info": (text, handle),
        "work_space": (error, handle, text, ctypes.POINTER(ctypes.c_uint32), out),
        "function_free": (None, handle),
        "launch": (error, handle, ctypes.POINTER(LaunchOptions), ctypes.POINTER(Argument), size),
    }
    for name, (result, *arguments) in functions.items():
        try:
            function = getattr(library, "tartan_" + name)
        except AttributeError:
            raise OSError(
                f"{library._name} has no tartan_{name}; this package needs libtartan.so"
            ) from None
        function.restype = result
        function.argtypes = arguments


library = _load()
_declare(library)
if library.tartan_c_version() < INTERFACE:
    raise OSError(
        f"libtartan.so has version {library.tartan_c_version()} of the C interface; this package "
        f"needs {INTERFACE}"
    )


def check(error: Optional[int]) -> None:
    """Raises what a function returned, if anything."""
    if not error:
        return
    try:
        text = library.tartan_error_text(error).decode()
        diagnostics = diagnostics_of(library.tartan_error_json(error).decode())
        rule = library.tartan_error_rule(error).decode()
    finally:
        library.tartan_error_free(error)
    raise Error(text.rstrip("\n"), diagnostics, rule)


def take_json(string: ctypes.c_void_p) -> Any:
    """The value of a JSON string that came out of a function, which is freed."""
    if string.value is None:
        raise MemoryError
    try:
        return json.loads(ctypes.string_at(string.value))
    finally:
        library.tartan_string_free(string)


class Handle:
    """Owns a handle of the C interface."""

    def __init__(self, free: Any) -> None:
        self._free = free
        self.pointer = ctypes.c_void_p()

    def __del__(self) -> None:
        if self.pointer:
            self._free(self.pointer)
