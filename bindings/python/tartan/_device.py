# SPDX-License-Identifier: Apache-2.0
"""Devices, their memory, and launches."""

from __future__ import annotations

import ctypes
import json
import math
import struct
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _dlpack
from ._kernel import Kernel, Parameter
from ._library import (
    Argument,
    Handle,
    LaunchOptions,
    check,
    encoded,
    integer,
    library,
    take_json,
    usage_error,
    without_terminator,
)

Shape = Union[int, Sequence[int]]


class Device:
    """A GPU ("cuda", "cuda:1"), the emulator, or "auto": the first GPU, else the emulator.

    A GPU's context is the one that PyTorch uses; adopt() takes another one. The options are for the
    emulator: `hardware`, whose arithmetic ("sm_90"); `checks`, "memory" or "all"; `timeout` in
    seconds; `threads`; `schedule`. With one of them "auto" is the emulator (with `hardware` alone,
    unless the GPU is that). Threads may share a device: one call at a time runs.
    """

    def __init__(
        self,
        name: str = "auto",
        *,
        hardware: Optional[str] = None,
        checks: Optional[str] = None,
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
        schedule: Optional[str] = None,
    ) -> None:
        if timeout is not None and not math.isfinite(timeout):
            raise ValueError(f"timeout: expected seconds, found {timeout}")
        if threads is not None:
            threads = integer(threads, "threads", 31)
        given = {
            "hardware": hardware,
            "checks": checks,
            "timeout": timeout,
            "threads": threads,
            "schedule": schedule,
        }
        options = {key: value for key, value in given.items() if value is not None}
        handle = Handle(library.tartan_device_free)
        check(
            library.tartan_open(
                encoded(name, "name"), json.dumps(options).encode(), ctypes.byref(handle.pointer)
            )
        )
        self._open(handle, int(name[5:]) if name.startswith("cuda:") else 0)

    def _open(self, handle: Handle, ordinal: int) -> None:
        self._handle = handle
        self._ordinal = ordinal
        self._lock = threading.RLock()
        self.name: str = library.tartan_device_name(handle.pointer).decode()
        self.arch: str = library.tartan_device_arch(handle.pointer).decode()
        self.gpu: str = library.tartan_device_gpu(handle.pointer).decode()
        self.multiprocessors: int = library.tartan_device_multiprocessors(handle.pointer)
        self.emulated: bool = bool(library.tartan_device_emulated(handle.pointer))

    @classmethod
    def adopt(cls, context: int = 0, ordinal: int = 0) -> "Device":
        """The GPU of an existing CUcontext, which the caller keeps alive; 0: the context that is
        current on this thread. `ordinal` is its GPU's number, that of tensors there."""
        handle = Handle(library.tartan_device_free)
        check(library.tartan_adopt(integer(context, "context", 64) or None, ctypes.byref(handle.pointer)))
        out = cls.__new__(cls)
        out._open(handle, ordinal)
        return out

    def load(self, kernel: Kernel) -> "Function":
        """Loads a compiled kernel."""
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel: expected tartan.Kernel, found {type(kernel).__name__}")
        handle = Handle(library.tartan_function_free)
        with self._lock:
            check(
                library.tartan_load(
                    self._handle.pointer, kernel._handle.pointer, ctypes.byref(handle.pointer)
                )
            )
        return Function(self, handle, kernel.parameters, True)

    def load_ptx(self, ptx: Union[str, bytes], name: str) -> "Function":
        """Loads the kernel `name` of PTX text."""
        text = encoded(without_terminator(ptx), "ptx")
        handle = Handle(library.tartan_function_free)
        with self._lock:
            check(
                library.tartan_load_ptx(
                    self._handle.pointer,
                    text,
                    encoded(name, "name"),
                    ctypes.byref(handle.pointer),
                )
            )
        info = json.loads(library.tartan_function_info(handle.pointer))
        parameters = [
            Parameter(each["name"], each.get("type", f"b{8 * each['bytes']}"))
            for each in info["parameters"]
        ]
        return Function(self, handle, parameters, False)

    def empty(self, shape: Shape, dtype: str) -> "Buffer":
        """An array in the device's memory, contents undefined; dtype: "f16", "bf16", "u8", ..."""
        return Buffer(self, _shape(shape), dtype)

    def to_device(self, array: Any) -> "Buffer":
        """A copy of an array of the host's."""
        view = _dlpack.view(array, 0)
        if view is None or view.gpu is not None:
            raise TypeError(f"expected an array in the host's memory, found {type(array).__name__}")
        out = Buffer(self, view.shape, view.dtype)
        out._write(view)
        return out

    def synchronize(self) -> None:
        """Waits for all work, and raises errors in it."""
        with self._lock:
            check(library.tartan_synchronize(self._handle.pointer))

    def findings(self) -> List[dict]:
        """What launches found since the last call: faults, and with `checks` races and the like."""
        out = ctypes.c_void_p()
        with self._lock:
            check(library.tartan_findings(self._handle.pointer, ctypes.byref(out)))
        return take_json(out)

    def __repr__(self) -> str:
        return f"<tartan.Device {self.name}>"


class Buffer:
    """A row-major array in a device's memory, freed with this object.

    `numpy.from_dlpack(buffer)` and `torch.from_dlpack(buffer)`: on a GPU they share its memory; of
    the emulator's they get a copy in the host's.
    """

    def __init__(self, device: Device, shape: Tuple[int, ...], dtype: str) -> None:
        self.device = device
        self.shape = shape
        self.dtype = dtype
        bits = math.prod(shape) * _dlpack.element_bits(dtype)
        if bits // 8 >= 1 << 63:
            raise ValueError(f"shape: expected less than 2^63 bytes, found {shape} of {dtype}")
        self.nbytes: int = bits // 8
        self._handle = Handle(library.tartan_buffer_free)
        with device._lock:
            check(
                library.tartan_allocate(
                    device._handle.pointer, self.nbytes, ctypes.byref(self._handle.pointer)
                )
            )
        self.address: int = library.tartan_buffer_address(self._handle.pointer)

    def write(self, array: Any) -> None:
        """Copies an array of the host's of as many bytes, after all work of the device."""
        view = _dlpack.view(array, 0)
        if view is None or view.gpu is not None:
            raise TypeError(f"expected an array in the host's memory, found {type(array).__name__}")
        if view.bytes != self.nbytes:
            raise ValueError(f"expected an array of {self.nbytes} bytes, found {view.bytes}")
        self._write(view)

    def read(self) -> bytes:
        """The contents, after all work of the device."""
        out = ctypes.create_string_buffer(max(self.nbytes, 1))
        self._read(ctypes.addressof(out))
        return out.raw[: self.nbytes]

    def fill(self, byte: int) -> None:
        """Sets each byte."""
        with self.device._lock:
            check(library.tartan_fill(self._handle.pointer, integer(byte, "byte", 8)))

    def _write(self, view: _dlpack.View) -> None:
        with self.device._lock:
            check(library.tartan_write(self._handle.pointer, 0, view.address, view.bytes))

    def _read(self, address: int) -> None:
        with self.device._lock:
            check(library.tartan_read(self._handle.pointer, 0, address, self.nbytes))

    def __dlpack_device__(self) -> Tuple[int, int]:
        if self.device.emulated:
            return (_dlpack.CPU, 0)
        return (_dlpack.CUDA, self.device._ordinal)

    def __dlpack__(self, *, stream: Optional[int] = None, **_: Any) -> Any:
        if self.device.emulated:
            copy = ctypes.create_string_buffer(self.read(), max(self.nbytes, 1))
            return _dlpack.capsule_of(
                ctypes.addressof(copy), self.shape, self.dtype, (_dlpack.CPU, 0), copy
            )
        if stream != -1:
            self.device.synchronize()  # for whatever stream wrote it
        return _dlpack.capsule_of(
            self.address, self.shape, self.dtype, (_dlpack.CUDA, self.device._ordinal), self
        )

    def __repr__(self) -> str:
        return f"<tartan.Buffer {self.dtype}{list(self.shape)} on {self.device.name}>"


_INTEGERS = {"s8": "b", "u8": "B", "s16": "h", "u16": "H", "s32": "i", "u32": "I", "s64": "q"}
_INTEGERS.update({"u64": "Q", "b8": "B", "b16": "H", "b32": "I", "b64": "Q"})
_FLOATS = {"f16": "e", "f32": "f", "f64": "d", "b32": "f", "b64": "d", "b16": "e"}


def _bits(dtype: str) -> int:
    return int("".join(c for c in dtype if c.isdigit()) or 0) if dtype[0] in "usbf" else 0


def _fits(wanted: str, found: str) -> bool:
    """Whether a tensor may be an argument. Unsigned integers stand for bits of any type, of their
    width or, as u8, of any; so does a parameter that is declared as unsigned or untyped."""
    if wanted == found or found == "u8" or wanted[0] in "ub":
        return True
    if wanted == "tf32":
        return found in ("f32", "u32")
    widths = {"bf16": 16, "e4m3": 8, "e5m2": 8}
    return found[0] == "u" and _bits(found) == widths.get(wanted, _bits(wanted))


def _shape(shape: Shape) -> Tuple[int, ...]:
    sizes = (shape,) if hasattr(shape, "__index__") else shape
    if isinstance(sizes, (str, bytes)) or not hasattr(sizes, "__iter__"):
        raise TypeError(f"shape: expected an integer or several, found {type(shape).__name__}")
    return tuple(integer(each, "shape", 63) for each in sizes)


def _extents(what: str, values: Sequence[int]) -> Any:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise TypeError(f"{what}: expected a tuple such as (128,), found {type(values).__name__}")
    if len(values) > 3:
        raise ValueError(f"{what}: expected at most three sizes, found {values}")
    return (ctypes.c_uint32 * 3)(*[integer(each, what, 32) for each in values])


class _Launch:
    """The arguments of one launch, as the C interface takes them."""

    def __init__(self, function: "Function", stream: int) -> None:
        self.function = function
        self.stream = stream
        self.keep: List[Any] = []
        self.after: List[Callable[[], None]] = []  # copies back to the host

    def argument(self, parameter: Parameter, value: Any) -> Argument:
        if isinstance(value, Buffer):
            return self.buffer(parameter, value)
        if isinstance(value, (bool, int, float)):
            return self.number(parameter, value)
        view = _dlpack.view(value, self.stream)
        if view is None:
            raise self.wrong(parameter, f"found {type(value).__name__}")
        if self.function._compiled and not parameter.pointer:
            raise self.wrong(parameter, f"found an array of shape {view.shape}")
        return self.memory(parameter, view)

    def wrong(self, parameter: Parameter, found: str) -> Exception:
        index = self.function.parameters.index(parameter)
        what = f"a tensor of {parameter.type}" if parameter.pointer else f"a {parameter.type}"
        return usage_error(
            f"{parameter.name} (parameter {index}) of kernel {self.function.name}: expected "
            f"{what}, {found}",
            "launch-arguments",
        )

    def number(self, parameter: Parameter, value: Union[int, float]) -> Argument:
        of = "u64" if parameter.pointer else parameter.type
        untyped = isinstance(value, float) and of in ("b16", "b32", "b64")
        formats = _FLOATS if untyped or of in ("f16", "f32", "f64") else _INTEGERS
        if isinstance(value, float) and formats is _INTEGERS:
            raise self.wrong(parameter, f"found {value!r}, a floating-point number")
        try:
            data = struct.pack("=" + formats[of], value)
        except (KeyError, struct.error, OverflowError):
            raise self.wrong(parameter, f"found {value!r}") from None
        return self.bytes(data, 0)

    def bytes(self, data: bytes, extent: int) -> Argument:
        place = ctypes.create_string_buffer(data, len(data))
        self.keep.append(place)
        return Argument(ctypes.addressof(place), len(data), extent)

    def address(self, address: int, extent: int) -> Argument:
        return self.bytes(struct.pack("=Q", address), extent)

    def buffer(self, parameter: Parameter, buffer: Buffer) -> Argument:
        if buffer.device is not self.function.device:
            raise self.wrong(parameter, f"found a buffer of another device, {buffer.device.name}")
        self.check_type(parameter, buffer.dtype)
        self.keep.append(buffer)
        return self.address(buffer.address, buffer.nbytes)

    def check_type(self, parameter: Parameter, found: str) -> None:
        if parameter.pointer and not _fits(parameter.type, found):
            raise self.wrong(parameter, f"found elements of {found}")

    def memory(self, parameter: Parameter, view: _dlpack.View) -> Argument:
        self.check_type(parameter, view.dtype)
        self.keep.append(view)
        device = self.function.device
        if view.gpu is not None:
            if device.emulated:
                raise self.wrong(parameter, "found one on a GPU, and the device is the emulator")
            if view.gpu != device._ordinal:
                where = f"GPU {view.gpu}, and the device is GPU {device._ordinal}"
                raise self.wrong(parameter, f"found a tensor on {where}")
            return self.address(view.address, view.bytes)
        if not device.emulated:
            raise self.wrong(
                parameter, "found one in the host's memory; take one on the GPU, or to_device()"
            )
        if parameter.writes and self.function._compiled and not view.writable:
            raise self.wrong(parameter, "found a read-only array, and the kernel writes it")
        buffer = Buffer(device, (view.bytes,), "u8")
        buffer._write(view)
        self.keep.append(buffer)
        if parameter.writes and view.writable:
            self.after.append(lambda: buffer._read(view.address))
        return self.address(buffer.address, view.bytes)


class Function:
    """A kernel that a device has loaded: call it to launch it."""

    def __init__(
        self, device: Device, handle: Handle, parameters: List[Parameter], compiled: bool
    ) -> None:
        self.device = device
        self.parameters = parameters
        self._handle = handle
        self._compiled = compiled
        info = json.loads(library.tartan_function_info(handle.pointer))
        self.name: str = info["name"]
        # What each step of loading took: cache, assemble (the driver's assembler), load.
        self.microseconds: Dict[str, float] = info.get("microseconds", {})

    def work_space(self, *, grid: Sequence[int] = (), **sizes: int) -> Dict[str, int]:
        """The elements of each buffer of work space among the parameters of a built-in kernel, for
        a launch of `grid` with these scalar arguments: decode.work_space(batch=4, kv_heads=8) is
        {"P": ..., "L": ..., "counters": 32}. Buffers named "counters" are zeros before the first
        launch."""
        out = ctypes.c_void_p()
        check(
            library.tartan_work_space(
                self._handle.pointer,
                json.dumps({name: integer(size, name, 63) for name, size in sizes.items()}).encode(),
                _extents("grid", grid),
                ctypes.byref(out),
            )
        )
        return {name: each["elements"] for name, each in take_json(out).items()}

    def __call__(
        self,
        *arguments: Any,
        grid: Sequence[int] = (),
        block: Sequence[int] = (),
        dynamic_shared: int = 0,
        cooperative: bool = False,
        stream: int = 0,
        programmatic: bool = False,
    ) -> None:
        """Launches the kernel, its arguments in the order of `parameters`.

        `grid`: blocks along x, y, z; 0 or left out: built-in kernels compute it, where something
        tells it. `block`, `dynamic_shared` and `cooperative` are for kernels of PTX text. Where the
        text declares a parameter without a type (.b32), 3 is an integer and 3.0 a floating-point
        number. `stream`: a CUstream as a number, such as
        torch.cuda.current_stream().cuda_stream; 0: the default one. `programmatic`, from sm_90 on:
        a programmatic dependent launch, which may start before the previous launch in its stream
        ends, and built-in products wait for the results of that one by themselves.

        On a GPU the call does not wait: the tensors must live until the kernel has ended, as they
        do where PyTorch frees them in the order of the same stream. On the emulator the kernel has
        run, and arrays of the host that it writes have their results.
        """
        if len(arguments) != len(self.parameters):
            names = ", ".join(each.name for each in self.parameters)
            raise usage_error(
                f"wrong number of arguments: kernel {self.name} expects {len(self.parameters)} "
                f"({names}), found {len(arguments)}",
                "launch-arguments",
            )
        threads = _extents("block", block)
        if not self._compiled and threads[0] == 0:
            raise usage_error(
                f"block: expected the number of threads along x, such as block=(128,), found {block}"
            )
        stream = integer(stream, "stream", 64)
        with self.device._lock:
            launch = _Launch(self, stream)
            values = [launch.argument(*each) for each in zip(self.parameters, arguments)]
            options = LaunchOptions(
                ctypes.sizeof(LaunchOptions),
                _extents("grid", grid),
                threads,
                integer(dynamic_shared, "dynamic_shared", 32),
                bool(cooperative),
                stream or None,
                bool(programmatic),
            )
            check(
                library.tartan_launch(
                    self._handle.pointer,
                    ctypes.byref(options),
                    (Argument * max(len(values), 1))(*values),
                    len(values),
                )
            )
            if self.device.emulated:
                self.device.synchronize()  # raises what the kernel did
            for copy_back in launch.after:
                copy_back()

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self.parameters)
        return f"<tartan.Function {self.name}({names}) on {self.device.name}>"
