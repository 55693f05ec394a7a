# SPDX-License-Identifier: Apache-2.0
"""Tartan: tensor-core kernels as validated PTX, run on a GPU or on a bit-exact emulator.

    import tartan

    device = tartan.Device("cuda")
    kernel = tartan.compile(
        "gemm", device, m=0, n=0, k=0, type="bf16", c="bf16", epilogue=["bias", "gelu"]
    )
    gemm = device.load(kernel)
    gemm(m, n, k, x, weight, out, bias, stream=torch.cuda.current_stream().cuda_stream)

Arguments are numbers, tensors with DLPack (PyTorch's, CuPy's) and this package's buffers; on the
emulator also NumPy arrays and whatever else has the buffer protocol. Failures are `tartan.Error`s.
"""

from ._device import Buffer, Device, Function
from ._kernel import Choice, Kernel, KernelSummary, Option, Parameter, cache_problems, check
from ._kernel import compile, kernels, use_cache
from ._library import Diagnostic, Error, library as _library

__version__: str = _library.tartan_version().decode()

__all__ = [
    "Buffer",
    "Choice",
    "Device",
    "Diagnostic",
    "Error",
    "Function",
    "Kernel",
    "KernelSummary",
    "Option",
    "Parameter",
    "cache_problems",
    "check",
    "compile",
    "kernels",
    "use_cache",
]
