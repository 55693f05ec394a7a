# SPDX-License-Identifier: Apache-2.0
"""gelu(x @ weight.T + bias) on NumPy arrays, on the emulator: no GPU is needed. Exit code 77: no
NumPy."""

import sys

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)

import tartan

device = tartan.Device("emulator", hardware="sm_90", checks="all")
kernel = tartan.compile(
    "gemm", device, m=0, n=0, k=0, type="f16", c="f16", epilogue=["bias", "gelu"]
)
linear = device.load(kernel)

rows, features, depth = 100, 72, 64
random = np.random.default_rng(0)
x = random.standard_normal((rows, depth)).astype(np.float16)
weight = random.standard_normal((features, depth)).astype(np.float16)
bias = random.standard_normal(features).astype(np.float32)
y = np.empty((rows, features), np.float16)

linear(rows, features, depth, x, weight, y, bias)  # m, n, k, A, B, C, bias

z = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
expected = 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
difference, findings = np.abs(y - expected).max(), device.findings()
print(f"largest difference {difference:.1e}, findings {findings}")
sys.exit(0 if difference < 0.02 and not findings else 1)
