# SPDX-License-Identifier: Apache-2.0
"""DLPack (https://dmlc.github.io/dlpack): tensors of other libraries in, buffers of ours out."""

from __future__ import annotations

import ctypes
import itertools
import math
import sys
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType


class _Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _ManagedTensor(ctypes.Structure):
    _fields_ = [
        ("dl_tensor", _Tensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


# (code, bits) of DLPack, and the names that PTX has for these types.
_NAMES = {
    (0, 8): "s8", (0, 16): "s16", (0, 32): "s32", (0, 64): "s64",
    (1, 8): "u8", (1, 16): "u16", (1, 32): "u32", (1, 64): "u64",
    (2, 16): "f16", (2, 32): "f32", (2, 64): "f64",
    (4, 16): "bf16", (6, 8): "u8",
    (10, 8): "e4m3", (12, 8): "e5m2", (14, 8): "ue8m0",
}  # fmt: skip
_CODES = {name: key for key, name in reversed(list(_NAMES.items()))}

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

_CAPSULE = b"dltensor"  # named used_dltensor once a consumer owns the tensor


def element_bits(dtype: str) -> int:
    """The bits of an element: those in a type's name, or of DLPack's table."""
    if dtype not in _CODES:
        known = ", ".join(sorted(_CODES))
        raise ValueError(f"unknown element type {dtype}; expected one of {known}")
    return _CODES[dtype][1]


@dataclass
class View:
    """Memory of a tensor, valid as long as this object: row-major, without gaps."""

    address: int
    bytes: int
    dtype: str
    shape: Tuple[int, ...]
    gpu: Optional[int]  # its number; None: in the host's memory
    writable: bool
    keep: Any


def _contiguous(shape: Sequence[int], strides: Optional[Sequence[int]]) -> bool:
    if strides is None or 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def view_of_tensor(tensor: Any, stream: int) -> View:
    """The memory of an object with __dlpack__; on a GPU `stream` waits for its work so far."""
    kind, ordinal = (int(number) for number in tensor.__dlpack_device__())
    on_gpu = kind in (CUDA, CUDA_MANAGED)
    if not on_gpu and kind not in (CPU, CUDA_HOST):
        raise TypeError(f"a tensor on a device of DLPack's type {kind}; expected a CPU or CUDA GPU")
    # The capsule is not consumed: it frees its tensor with itself. 1: CUDA's default stream.
    capsule = tensor.__dlpack__(stream=stream or 1) if on_gpu else tensor.__dlpack__()
    managed = _ManagedTensor.from_address(_api.PyCapsule_GetPointer(id(capsule), _CAPSULE))
    of = managed.dl_tensor
    name = _NAMES.get((of.dtype.code, of.dtype.bits))
    if name is None or of.dtype.lanes != 1:
        raise TypeError(
            f"elements of DLPack's type (code {of.dtype.code}, {of.dtype.bits} bits, "
            f"{of.dtype.lanes} lanes), which Tartan does not know; view them as unsigned integers"
        )
    shape = tuple(of.shape[: of.ndim])
    strides = tuple(of.strides[: of.ndim]) if of.strides else None
    if not _contiguous(shape, strides):
        raise ValueError(
            f"a tensor of shape {shape} and strides {strides}: expected a contiguous one; take "
            "tensor.contiguous()"
        )
    size = math.prod(shape) * of.dtype.bits // 8
    address, gpu = (of.data or 0) + of.byte_offset, ordinal if on_gpu else None
    return View(address, size, name, shape, gpu, True, capsule)


# Format characters of the buffer protocol, by kind of number; their sizes are the platform's.
_FORMATS = {"e": "f", "f": "f", "d": "f", "?": "u"}
_FORMATS.update({letter: "s" for letter in "bhilqn"})
_FORMATS.update({letter: "u" for letter in "BHILQNc"})


def view_of_buffer(array: Any) -> View:
    """The memory of an object with the buffer protocol: bytes, array.array, numpy.ndarray."""
    memory = memoryview(array)
    kind = _FORMATS.get(memory.format.lstrip("@=<"))
    if kind is None:
        raise TypeError(f"elements of format {memory.format!r}; expected numbers")
    if not memory.c_contiguous:
        raise ValueError(f"an array of shape {memory.shape} that is not contiguous in C's order")
    name = f"{kind}{8 * memory.itemsize}"
    if memory.nbytes == 0:
        return View(0, 0, name, memory.shape, None, not memory.readonly, None)
    flat = memory.cast("B")
    if memory.readonly:
        copy = ctypes.create_string_buffer(flat.tobytes(), flat.nbytes)
        return View(ctypes.addressof(copy), flat.nbytes, name, memory.shape, None, False, copy)
    place = (ctypes.c_char * flat.nbytes).from_buffer(flat)
    return View(ctypes.addressof(place), flat.nbytes, name, memory.shape, None, True, place)


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


_TORCH = {
    "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64", "uint8": "u8", "bool": "u8",
    "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip
_torch_names: Dict[Any, str] = {}  # of its element types


def _view_of_torch(value: Any, stream: int) -> Optional[View]:
    """The memory of PyTorch's tensor on a GPU, whose capsule takes 20 us to make and read. None: the
    capsule is to say what is wrong with it, or has to order the stream after another one."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor) or not value.is_cuda:
        return None
    if not _torch_names:
        _torch_names.update(
            {getattr(torch, name): of for name, of in _TORCH.items() if hasattr(torch, name)}
        )
    name, gpu = _torch_names.get(value.dtype), value.get_device()
    plain = value.layout is torch.strided and not value.requires_grad and not value.is_neg()
    if name is None or not plain or not value.is_contiguous():
        return None
    if torch.cuda.current_stream(gpu).cuda_stream != stream:
        return None
    size = value.numel() * value.element_size()
    return View(value.data_ptr(), size, name, tuple(value.shape), gpu, True, value)


def view(value: Any, stream: int) -> Optional[View]:
    """The memory of a tensor or array; None if the object is neither."""
    plain = _view_of_torch(value, stream)
    if plain is not None:
        return plain
    if hasattr(value, "__dlpack__"):
        try:
            return view_of_tensor(value, stream)
        except BufferError:
            if not _has_buffer(value):
                raise
            return view_of_buffer(value)  # NumPy exports read-only arrays only so
    return view_of_buffer(value) if _has_buffer(value) else None


# ---- Out

_exported: Dict[int, Tuple[Any, ...]] = {}  # what a consumer's tensor needs, by its number
_numbers = itertools.count(1)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(managed: int) -> None:
    _exported.pop(_ManagedTensor.from_address(managed).manager_ctx, None)


def _free_unused() -> None:
    """Frees what no consumer has taken, and nobody can take any more. A destructor of the capsule
    could do so at once, but may not run Python code: an exception may be on its way."""
    for number, exported in list(_exported.items()):
        capsule = exported[0]
        elsewhere = sys.getrefcount(capsule) > 3  # than in the tuple, `capsule` and the argument
        if not elsewhere and _api.PyCapsule_IsValid(id(capsule), _CAPSULE):
            _exported.pop(number, None)


def capsule_of(
    address: int, shape: Sequence[int], dtype: str, device: Tuple[int, int], keep: Any
) -> Any:
    """A DLPack capsule of row-major memory, which keeps `keep` alive."""
    _free_unused()
    code, bits = _CODES[dtype]
    extents = (ctypes.c_int64 * len(shape))(*shape)
    strides = (ctypes.c_int64 * len(shape))(*[math.prod(shape[i + 1 :]) for i in range(len(shape))])
    number = next(_numbers)
    pointer = ctypes.POINTER(ctypes.c_int64)
    tensor = _Tensor(
        address, _Device(*device), len(shape), _DataType(code, bits, 1),
        ctypes.cast(extents, pointer), ctypes.cast(strides, pointer), 0,
    )  # fmt: skip
    managed = _ManagedTensor(tensor, number, ctypes.cast(_delete, ctypes.c_void_p))
    capsule = _api.PyCapsule_New(ctypes.addressof(managed), _CAPSULE, None)
    _exported[number] = (capsule, managed, extents, strides, keep)
    return capsule
