# SPDX-License-Identifier: Apache-2.0
"""The Python package on the emulator: python_test.py needs nothing but Python, the tests of NumPy's
arrays also NumPy. PYTHONPATH and TARTAN_LIBRARY say where the package and the library are."""

import array
import gc
import importlib.util
import math
import os
import pathlib
import struct
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

import tartan

try:
    import numpy as np
except ImportError:
    np = None

SCALE = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 at, .param .f32 by) {
  .reg .b64 %a<3>; .reg .b32 %i; .reg .f32 %x<3>;
  ld.param.u64 %a0, [at]; ld.param.f32 %x0, [by];
  mov.u32 %i, %tid.x; mul.wide.u32 %a1, %i, 4; add.s64 %a2, %a0, %a1;
  ld.global.f32 %x1, [%a2]; mul.f32 %x2, %x1, %x0; st.global.f32 [%a2], %x2;
  ret;
}
"""


def element(i, j, seed):
    return (i * 7 + j * 3 + seed) % 11 - 5


class Kernels(unittest.TestCase):
    def test_version(self):
        self.assertRegex(tartan.__version__, r"^\d+\.\d+\.\d+$")

    def test_list_has_options_with_defaults(self):
        attention = next(each for each in tartan.kernels() if each.name == "attention")
        options = {each.name: each for each in attention.options}
        self.assertEqual(
            set(options),
            {"type", "head-dim", "causal", "window", "softcap", "sinks", "packed", "keys"}
            | {"gpu", "multiprocessors"},
        )
        self.assertEqual((options["head-dim"].type, options["head-dim"].default), ("integer", 64))
        self.assertEqual((options["causal"].type, options["causal"].default), ("boolean", False))

    def test_compiled_kernel_tells_its_parameters_and_choices(self):
        kernel = tartan.compile("attention", "sm_80", head_dim=128, type="bf16")
        queries = tartan.Parameter("queries", "s32", False, 0, False, False)
        self.assertEqual(kernel.parameters[0], queries)
        names = [each.name for each in kernel.parameters]
        self.assertEqual(names[5:], ["Q", "K", "V", "O", "LSE"])
        self.assertIn("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", kernel.ptx)
        self.assertTrue(any("ldmatrix" in each.taken for each in kernel.explain()))
        steps = [name for name, took in kernel.microseconds.items() if took > 0]
        self.assertEqual(steps, ["describe", "generate", "verify"])

    def test_a_cache_is_used_where_one_is_asked_for(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = pathlib.Path(parent, "cache")
            tartan.use_cache(folder)
            try:
                first = tartan.compile("gemm", "sm_80").ptx
                entries = sorted(each.name for each in folder.iterdir())
                self.assertEqual({name.split(".")[1] for name in entries}, {"kernel"})
                self.assertEqual(tartan.compile("gemm", "sm_80").ptx, first)
                self.assertEqual(sorted(each.name for each in folder.iterdir()), entries)
                self.assertEqual(tartan.cache_problems(), [])
            finally:
                tartan.use_cache("")
            tartan.compile("gemm", "sm_80", type="bf16")
            self.assertEqual(len(list(folder.iterdir())), len(entries))

    def test_all_mistakes_are_in_one_error(self):
        with self.assertRaises(tartan.Error) as caught:
            tartan.compile("gemm", "sm_80", typ="f16", m="x", causal=True)
        self.assertEqual(caught.exception.rule, "usage")
        messages = [each.message for each in caught.exception.diagnostics]
        self.assertEqual(len(messages), 2)
        self.assertIn("gemm: unknown option typ; the nearest is type", messages)
        with self.assertRaisesRegex(tartan.Error, r"no mma.sync of bf16.*\[no-instruction\]"):
            tartan.compile("attention", "sm_75", type="bf16")

    def test_a_gpu_is_chosen_for(self):
        small = {"m": 64, "n": 2112, "k": 7168}
        usual = tartan.compile("scaled_gemm", "sm_90a", **small)
        self.assertEqual(tartan.compile("scaled_gemm", "sm_90a", gpu="H100", **small).ptx, usual.ptx)
        other = tartan.compile("scaled_gemm", "sm_90a", gpu="H200", **small)
        self.assertNotEqual(other.ptx, usual.ptx)
        with self.assertRaisesRegex(tartan.Error, "GPU H300: unknown; expected one of A100"):
            tartan.compile("scaled_gemm", "sm_90a", gpu="H300")

    def test_a_part_of_a_gpu_is_chosen_for(self):
        few = {"m": 1, "n": 8192, "k": 8192}

        class Part(tartan.Device):
            """A device with half of the multiprocessors, as MIG makes them."""

        part = Part("emulator", hardware="sm_90a")
        self.assertEqual((part.gpu, part.multiprocessors), ("H100", 132))
        whole = tartan.compile("mixed_gemm", part, **few)
        self.assertEqual(whole.ptx, tartan.compile("mixed_gemm", "sm_90a", **few).ptx)
        part.multiprocessors = 66
        half = tartan.compile("mixed_gemm", part, **few)
        self.assertNotEqual(half.ptx, whole.ptx)
        other = tartan.compile("mixed_gemm", "sm_90a", gpu="H100", multiprocessors=66, **few)
        self.assertEqual(half.ptx, other.ptx)
        named = tartan.compile("mixed_gemm", part, gpu="H100", **few)  # all of it
        self.assertEqual(named.ptx, whole.ptx)

    def test_what_is_given_holds(self):
        product = {"m": 64, "n": 512, "k": 8192, "type": "bf16", "c": "bf16"}
        clusters = ".reqnctapercluster"
        self.assertIn(clusters, tartan.compile("gemm", "sm_90a", **product).ptx)
        alone = {"cluster_splits": 1, "cluster": 1, "cluster_columns": 1}
        self.assertNotIn(clusters, tartan.compile("gemm", "sm_90a", **product, **alone).ptx)
        default = {each.name: each for each in tartan.kernels()}["gemm"].options
        chosen = {each.name for each in default if each.type == "integer" and each.default is None}
        self.assertIn("cluster-splits", chosen)
        with self.assertRaisesRegex(tartan.Error, "--direct: the configurations"):
            tartan.compile("gemm", "sm_90a", direct=True)

    def test_check(self):
        self.assertEqual(tartan.check(SCALE), [])
        found = tartan.check(SCALE.replace("mul.f32", "mul.f31"), "sm_90")
        self.assertEqual({(each.level, each.line) for each in found}, {("error", 9)})

    def test_zero_bytes(self):
        self.assertEqual(tartan.check(SCALE + "\0"), [])
        self.assertEqual(tartan.check(SCALE.encode() + b"\0"), [])
        found = tartan.check(SCALE + "\0 no PTX")
        self.assertEqual([(each.level, each.id) for each in found], [("error", "encoding")])
        self.assertEqual(found[0].line, SCALE.count("\n") + 1)
        device = tartan.Device("emulator")
        device.load_ptx(SCALE + "\0", "scale")
        for ptx, name in (SCALE + "\0 no PTX", "scale"), (SCALE, "scale\0zz"):
            with self.assertRaisesRegex(tartan.Error, "contains a zero byte") as caught:
                device.load_ptx(ptx, name)
            self.assertEqual(caught.exception.rule, "encoding")
        with self.assertRaisesRegex(tartan.Error, r"U\+00F6.*\[encoding\]"):
            device.load_ptx(SCALE + "// gr\u00f6\u00dfe", "scale")


class Host(unittest.TestCase):
    """Arrays of the host, by the buffer protocol."""

    @classmethod
    def setUpClass(cls):
        cls.device = tartan.Device("emulator", hardware="sm_80")

    def product(self, device, m=70, n=24, k=40):
        kernel = tartan.compile(
            "gemm", device, m=0, n=0, k=0, type="f32", epilogue=["bias", "relu"]
        )
        a = array.array("f", [element(i, j, 0) for i in range(m) for j in range(k)])
        b = array.array("f", [element(i, j, 1) for j in range(n) for i in range(k)])
        bias = array.array("f", [element(0, j, 2) for j in range(n)])
        c = array.array("f", [99] * (m * n))
        device.load(kernel)(m, n, k, a, b, c, bias)
        for i in range(m):
            for j in range(n):
                total = sum(a[i * k + at] * b[j * k + at] for at in range(k)) + bias[j]
                self.assertEqual(c[i * n + j], max(total, 0), (i, j))

    def test_product_with_bias_and_relu(self):
        self.product(self.device)

    def test_threads_share_a_device(self):
        failures = []

        def run():
            try:
                self.product(self.device, 16, 8, 16)
            except BaseException as failure:  # noqa: B902
                failures.append(failure)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(failures, [])

    def test_work_space_is_told_and_checked(self):
        kernel = tartan.compile("decode", "sm_80", type="bf16", head_dim=64, queries=2, heads_per_kv=4)
        decode = self.device.load(kernel)
        # decode.h: 2 * blocks * rows * d, 4 * blocks * rows, batch * kv_heads, with 8 rows.
        work = {"P": 2 * 6 * 8 * 64, "L": 4 * 6 * 8, "counters": 15}
        self.assertEqual(decode.work_space(grid=(6,), batch=5, kv_heads=3), work)
        blocks = decode.work_space(batch=5, kv_heads=3)["L"] // 32  # those that fill the device
        self.assertGreaterEqual(blocks, self.device.multiprocessors)
        with self.assertRaisesRegex(tartan.Error, "batch: expected a size of kernel decode, found none"):
            decode.work_space(kv_heads=3)
        with self.assertRaisesRegex(tartan.Error, "bach: kernel decode has no such parameter"):
            decode.work_space(batch=5, bach=5, kv_heads=3)
        with self.assertRaisesRegex(tartan.Error, "batch: expected a size of kernel decode, found 2147483648"):
            decode.work_space(batch=2**31, kv_heads=3)
        q, o = (self.device.empty((5 * 8, 3 * 64), "bf16") for _ in range(2))
        k, v = (self.device.empty((15, 64, 64), "bf16") for _ in range(2))
        table, lengths = self.device.empty((5, 1), "s32"), self.device.empty((5,), "s32")
        small = [self.device.empty((work[name] - 1,), "u32" if name == "counters" else "f32") for name in work]
        with self.assertRaisesRegex(tartan.Error, "P of kernel decode: expected at least 24576 bytes, the work "
                                    "space of this launch, found 24572"):
            decode(5, 3, 1, 0.125, q, k, v, table, lengths, o, *small, grid=(6,))
        with self.assertRaisesRegex(tartan.Error, "batch of kernel decode: expected a size of at least 0, found -1"):
            decode(-1, 3, 1, 0.125, q, k, v, table, lengths, o, *small, grid=(6,))
        scale = self.device.load_ptx(SCALE, "scale")
        with self.assertRaisesRegex(tartan.Error, "only compiled kernels know it"):
            scale.work_space()

    def test_text_takes_block_and_numbers(self):
        scale = self.device.load_ptx(SCALE, "scale")
        values = array.array("f", range(32))
        scale(values, 2.5, block=(32,))
        self.assertGreater(scale.microseconds["load"], 0)
        self.assertEqual(list(values), [2.5 * i for i in range(32)])
        for block in ((), (0,)):
            with self.assertRaisesRegex(tartan.Error, "block: expected the number of threads"):
                scale(values, 2.5, block=block)
        with self.assertRaisesRegex(ValueError, "block: expected 0 to 2"):
            scale(values, 2.5, block=(-1,))
        with self.assertRaisesRegex(tartan.Error, "programmatic .* unsupported on sm_80"):
            scale(values, 2.5, block=(32,), programmatic=True)
        with self.assertRaisesRegex(tartan.Error, "unknown kernel scala; the module has scale"):
            self.device.load_ptx(SCALE, "scala")

    def test_numbers_have_the_types_of_the_text(self):
        scale = self.device.load_ptx(SCALE.encode(), "scale")
        self.assertEqual([each.type for each in scale.parameters], ["u64", "f32"])
        values = array.array("f", range(32))
        scale(values, 2, block=(32,))
        self.assertEqual(list(values), [2 * i for i in range(32)])
        whole = self.device.load_ptx(
            SCALE.replace(".param .f32 by", ".param .u32 by").replace(
                "ld.param.f32", "ld.param.b32"
            ),
            "scale",
        )
        with self.assertRaisesRegex(tartan.Error, "expected a u32, found 2.0, a floating-point"):
            whole(values, 2.0, block=(32,))

    def test_text_is_judged_when_it_is_loaded(self):
        with self.assertRaisesRegex(TypeError, "ptx: expected str or bytes, found NoneType"):
            self.device.load_ptx(None, "scale")
        with self.assertRaisesRegex(tartan.Error, "found the path kernels/k.ptx"):
            self.device.load_ptx("kernels/k.ptx", "k")
        with self.assertRaisesRegex(tartan.Error, "PTX 11.0 is newer than this release"):
            self.device.load_ptx(SCALE.replace("7.8", "11.0"), "scale")
        with self.assertRaisesRegex(tartan.Error, "unknown target sm_3"):
            self.device.load_ptx(SCALE.replace("sm_80", "sm_3"), "scale")

    def test_buffers(self):
        buffer = self.device.to_device(array.array("i", [1, 2, 3]))
        self.assertEqual((buffer.dtype, buffer.shape, buffer.nbytes), ("s32", (3,), 12))
        self.assertEqual(struct.unpack("=3i", buffer.read()), (1, 2, 3))
        buffer.write(b"\0" * 12)
        self.assertEqual(buffer.read(), b"\0" * 12)
        buffer.fill(255)
        self.assertEqual(buffer.read(), b"\xff" * 12)
        with self.assertRaisesRegex(ValueError, "expected an array of 12 bytes, found 11"):
            buffer.write(b"\0" * 11)
        with self.assertRaisesRegex(ValueError, "unknown element type f17"):
            self.device.empty((2, 3), "f17")
        with self.assertRaises(TypeError):
            self.device.to_device(7)
        scale = self.device.load_ptx(SCALE, "scale")
        ones = self.device.to_device(array.array("f", [1] * 32))
        scale(ones, 3.0, block=(32,))
        self.assertEqual(struct.unpack("=32f", ones.read()), (3.0,) * 32)

    def test_faults_are_raised_and_found(self):
        device = tartan.Device("emulator")
        scale = device.load_ptx(SCALE, "scale")
        with self.assertRaisesRegex(tartan.Error, r"out of bounds.*\[memory-fault\]"):
            scale(array.array("f", [0] * 16), 1.0, block=(32,))
        self.assertEqual([each["id"] for each in device.findings()], ["memory-fault"])
        self.assertEqual(device.findings(), [])

    def test_checks_find_races(self):
        device = tartan.Device("emulator", checks="all")
        racing = SCALE.replace("mov.u32 %i, %tid.x;", "mov.u32 %i, 0;")
        values = array.array("f", [1] * 32)
        try:
            device.load_ptx(racing, "scale")(values, 2.0, block=(64,))
        except tartan.Error as error:
            self.assertEqual(error.rule, "memory-race")
        self.assertIn("memory-race", {each["id"] for each in device.findings()})

    def test_devices_are_refused(self):
        with self.assertRaisesRegex(tartan.Error, "unknown device emulater"):
            tartan.Device("emulater")
        with self.assertRaisesRegex(tartan.Error, "expected none, memory or all"):
            tartan.Device("emulator", checks="some")
        self.assertTrue(self.device.emulated)
        self.assertEqual((self.device.arch, self.device.gpu), ("sm_80", "A100"))


class Misuse(unittest.TestCase):
    """Each argument that does not fit is named."""

    @classmethod
    def setUpClass(cls):
        cls.device = tartan.Device("emulator", hardware="sm_80")
        kernel = tartan.compile("gemm", cls.device, m=16, n=8, k=16, c="f16")
        cls.gemm = cls.device.load(kernel)
        cls.a = array.array("H", [0] * 16 * 16)  # the bits of f16
        cls.b = array.array("H", [0] * 16 * 8)
        cls.c = array.array("H", [0] * 16 * 8)

    def refused(self, pattern, *arguments, **options):
        with self.assertRaisesRegex(tartan.Error, pattern) as caught:
            self.gemm(*arguments, **options)
        self.assertIn(caught.exception.rule, ("launch-arguments", "usage"))

    def test_bits_of_other_types(self):
        self.gemm(self.a, self.b, self.c)

    def test_refused(self):
        a, b, c = self.a, self.b, self.c
        self.refused(r"expects 3 \(A, B, C\), found 2", a, b)
        self.refused(r"A \(parameter 0\).*expected a tensor of f16, found NoneType", None, b, c)
        self.refused(r"A \(parameter 0\).*found elements of f32", array.array("f", [0] * 256), b, c)
        self.refused(r"C \(parameter 2\).*read-only array", a, b, bytes(256))
        self.refused(r"A \(parameter 0\).*found 1.5", 1.5, b, c)
        self.refused("options->block: expected 0", a, b, c, block=(32,))
        other = tartan.Device("emulator").to_device(a)
        self.refused(r"A \(parameter 0\).*buffer of another device", other, b, c)

    def test_numbers_are_not_wrapped(self):
        d, ones = self.device, self.device.to_device(array.array("f", [1] * 32))
        scale = d.load_ptx(SCALE, "scale")
        for wrong, pattern, call in (
            (ValueError, r"shape: expected less than 2\^63 bytes", lambda: d.empty((2**40,) * 2, "f32")),
            (ValueError, "shape: expected 0 to .*, found -1", lambda: d.empty(-1, "f32")),
            (TypeError, "shape: .*found float", lambda: d.empty(1.5, "f32")),
            (TypeError, "shape: .*found str", lambda: d.empty((1, "2"), "f32")),
            (ValueError, "byte: expected 0 to .*, found 300", lambda: ones.fill(300)),
            (TypeError, "byte: .*found str", lambda: ones.fill("a")),
            (ValueError, "dynamic_shared: .*found 1099511627776",
             lambda: scale(ones, 3.0, block=(32,), dynamic_shared=2**40)),
            (ValueError, "grid: .*found -1", lambda: scale(ones, 3.0, grid=(-1,), block=(32,))),
            (TypeError, "grid: .*found int", lambda: scale(ones, 3.0, grid=1, block=(32,))),
            (ValueError, "stream: .*found -1", lambda: scale(ones, 3.0, block=(32,), stream=-1)),
            (TypeError, "stream: .*found str", lambda: scale(ones, 3.0, block=(32,), stream="x")),
            (ValueError, "timeout: .*found nan",
             lambda: tartan.Device("emulator", timeout=math.nan)),
            (ValueError, "threads: .*found -1", lambda: tartan.Device("emulator", threads=-1)),
        ):  # fmt: skip
            with self.assertRaisesRegex(wrong, pattern):
                call()
        self.assertEqual(struct.unpack("=32f", ones.read()), (1.0,) * 32)

    def test_types_are_named(self):
        for call in (
            lambda: tartan.check(None),
            lambda: tartan.check(SCALE, 5),
            lambda: tartan.compile(None, "sm_80"),
            lambda: tartan.compile("gemm", None),
            lambda: tartan.Device(None),
            lambda: self.device.load(None),
            lambda: self.device.load_ptx(SCALE, None),
        ):
            with self.assertRaisesRegex(TypeError, "expected .*, found"):
                call()
        with self.assertRaisesRegex(ValueError, "m: expected a number, found nan"):
            tartan.compile("gemm", "sm_80", m=math.nan)

    def test_numbers_out_of_range(self):
        kernel = tartan.compile("gemm", self.device, m=0, n=0, k=0, c="f16")
        gemm = self.device.load(kernel)
        for number in (2**31, -(2**31) - 1, 1.0):
            with self.assertRaisesRegex(tartan.Error, r"m \(parameter 0\).*expected a s32"):
                gemm(number, 8, 16, self.a, self.b, self.c)
        with self.assertRaisesRegex(tartan.Error, "m of kernel gemm: expected a size of at least"):
            gemm(-1, 8, 16, self.a, self.b, self.c)
        gemm(0, 8, 16, self.a, self.b, self.c)  # nothing to compute

    def test_launches_may_be_programmatic(self):
        gemm = self.device.load(tartan.compile("gemm", "sm_80", m=0, n=0, k=0, c="f16"))
        with self.assertRaisesRegex(tartan.Error, "programmatic .* unsupported on sm_80"):
            gemm(16, 8, 16, self.a, self.b, self.c, programmatic=True)


class Tensor:
    """A tensor on a GPU, as PyTorch has them: memory of a buffer, with strides or another type."""

    def __init__(self, buffer, shape, dtype, gpu=0):
        self.buffer, self.shape, self.dtype, self.gpu = buffer, shape, dtype, gpu
        self.streams = []

    def __dlpack_device__(self):
        return (2, self.gpu)

    def __dlpack__(self, *, stream=None):
        from tartan import _dlpack

        self.streams.append(stream)
        return _dlpack.capsule_of(self.buffer.address, self.shape, self.dtype, (2, self.gpu), self)


class TorchTensor(Tensor):
    """The same with the attributes of PyTorch's, which has a capsule too."""

    is_cuda, requires_grad, layout, contiguous = True, False, "strided", True
    is_neg = lambda self: False
    is_contiguous = lambda self: self.contiguous
    get_device = lambda self: self.gpu
    numel = lambda self: math.prod(self.shape)
    element_size = lambda self: {"bf16": 2, "f32": 4}[self.dtype]
    data_ptr = lambda self: self.buffer.address


def torch_double(current):
    """As much of the module torch as the package asks for; its current stream is `current`."""
    of_gpu = lambda gpu: types.SimpleNamespace(cuda_stream=current)
    return types.SimpleNamespace(Tensor=TorchTensor, strided="strided", bfloat16="bf16", float32="f32",
                                 cuda=types.SimpleNamespace(current_stream=of_gpu))


@unittest.skipUnless("TARTAN_CUDA_DRIVER" in os.environ, "no double of the driver")
class Gpu(unittest.TestCase):
    """On the driver's double, whose launches do nothing."""

    def setUp(self):
        self.device = tartan.Device("cuda")
        kernel = tartan.compile("gemm", self.device, m=16, n=8, k=16, type="bf16")
        self.gemm = self.device.load(kernel)
        self.memory = self.device.empty((1024,), "u8")

    def test_tensors_are_ordered_before_the_stream(self):
        a, b = Tensor(self.memory, (16, 16), "bf16"), Tensor(self.memory, (8, 16), "bf16")
        c = Tensor(self.memory, (16, 8), "f32")
        self.gemm(a, b, c, stream=0x1234560)
        self.gemm(a, b, c)
        self.assertEqual(a.streams, [0x1234560, 1])  # 1: the default stream, in DLPack's words

    def test_torch_tensors_need_no_capsule(self):
        make = lambda shape, dtype: TorchTensor(self.memory, shape, dtype)
        a, b, c = make((16, 16), "bf16"), make((8, 16), "bf16"), make((16, 8), "f32")
        modules = unittest.mock.patch.dict(sys.modules, {"torch": torch_double(7)})
        with modules, unittest.mock.patch.dict("tartan._dlpack._torch_names", clear=True):
            self.gemm(a, b, c, stream=7)
            self.assertEqual(a.streams, [])
            self.gemm(a, b, c, stream=9)  # another stream than the current one: ordered by the capsule
            self.assertEqual(a.streams, [9])
            with self.assertRaisesRegex(tartan.Error, r"C \(parameter 2\).*too small"):
                self.gemm(a, b, make((16, 7), "f32"), stream=7)
            with self.assertRaisesRegex(tartan.Error, r"C \(parameter 2\).*found elements of bf16"):
                self.gemm(a, b, make((16, 8), "bf16"), stream=7)
            for name, value in (("contiguous", False), ("requires_grad", True), ("layout", "sparse")):
                odd = make((8, 16), "bf16")
                setattr(odd, name, value)
                self.gemm(a, odd, c, stream=7)
                self.assertEqual(odd.streams, [7], name)

    def test_what_does_not_fit_is_refused(self):
        a, b = Tensor(self.memory, (16, 16), "bf16"), Tensor(self.memory, (8, 16), "bf16")
        for c, pattern in (
            (Tensor(self.memory, (16, 7), "f32"), r"C \(parameter 2\).*too small"),
            (Tensor(self.memory, (16, 8), "s32"), r"C \(parameter 2\).*found elements of s32"),
            (Tensor(self.memory, (16, 8), "f32", 1), "on GPU 1, and the device is GPU 0"),
            (array.array("f", [0] * 128), r"C \(parameter 2\).*host's memory"),
        ):
            with self.assertRaisesRegex(tartan.Error, pattern):
                self.gemm(a, b, c)
        emulated = tartan.Device("emulator", hardware="sm_90")
        gemm = emulated.load(tartan.compile("gemm", emulated, m=16, n=8, k=16, type="bf16"))
        with self.assertRaisesRegex(tartan.Error, "on a GPU, and the device is the emulator"):
            gemm(a, b, array.array("f", [0] * 128))

    def test_buffers_are_shared(self):
        self.assertEqual(self.memory.__dlpack_device__(), (2, 0))
        tensor = Tensor(self.memory, (16, 16), "bf16")
        del tensor
        self.memory.write(bytes(range(256)) * 4)
        self.assertEqual(self.memory.read(), bytes(range(256)) * 4)

    def test_a_context_is_adopted(self):
        device = tartan.Device.adopt(0x1234560)
        self.assertEqual((device.arch, device.emulated), ("sm_90a", False))


@unittest.skipUnless(np, "no NumPy")
class Numpy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = tartan.Device("emulator", hardware="sm_80")
        cls.random = np.random.default_rng(1)

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(np.float16)

    def test_linear_layer_with_bias_and_gelu(self):
        m, n, k = 70, 24, 40
        x, weight = self.normal(m, k), self.normal(n, k)
        bias = self.random.standard_normal(n).astype(np.float32)
        y = np.zeros((m, n), np.float16)
        kernel = tartan.compile(
            "gemm", self.device, m=0, n=0, k=0, type="f16", c="f16", epilogue=["bias", "gelu"]
        )
        self.device.load(kernel)(m, n, k, x, weight, y, bias)
        z = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
        gelu = 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
        np.testing.assert_allclose(y, gelu, rtol=2e-3, atol=2e-3)

    def attend(self, device, batch, heads, kv_heads, queries, keys, d=64, about=0):
        """Arguments of causal attention, the loaded kernel, and a check of what it has written."""
        q, k = self.normal(batch, heads, queries, d), self.normal(batch, kv_heads, keys, d)
        v = self.normal(batch, kv_heads, keys, d)
        out = np.full((batch, heads, queries, d), np.nan, np.float16)
        lse = np.full((batch, heads, queries), np.nan, np.float32)
        scale = 1 / math.sqrt(d)

        def check():
            K, V = (np.repeat(each.astype(np.float64), heads // kv_heads, axis=1) for each in (k, v))
            scores = scale * q.astype(np.float64) @ K.transpose(0, 1, 3, 2)
            seen = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
            weights = np.where(seen, np.exp(scores), 0)
            np.testing.assert_allclose(lse, np.log(weights.sum(-1)), rtol=1e-3, atol=1e-3)
            weights /= weights.sum(-1, keepdims=True)
            np.testing.assert_allclose(out, weights @ V, rtol=1e-2, atol=3e-3)

        attention = device.load(
            tartan.compile("attention", device, head_dim=d, causal=True, keys=about)
        )
        return attention, (queries, keys, heads, kv_heads, scale, q, k, v, out, lse), check

    def test_attention(self):
        attention, arguments, check = self.attend(self.device, 2, 4, 2, 33, 50)
        with self.assertRaisesRegex(tartan.Error, "the grid's z is 0"):
            attention(*arguments)  # how many batches there are, no argument tells
        attention(*arguments, grid=(0, 0, 2))
        check()

    def test_persistent_attention(self):
        device = tartan.Device("emulator", hardware="sm_90a")
        # Three batches on 132 multiprocessors: 44 blocks of 46 tiles each.
        attention, arguments, check = self.attend(device, 3, 46, 2, 33, 50)
        attention(*arguments, grid=(0, 0, 3))
        check()

    def test_attention_for_few_keys(self):
        device = tartan.Device("emulator", hardware="sm_90a")
        for about in (50, 16):  # more than are expected, too
            attention, arguments, check = self.attend(device, 2, 4, 2, 70, 80, about=about)
            attention(*arguments, grid=(0, 0, 2))
            check()

    def test_attention_is_launched_by_the_kernel_for_its_keys(self):
        device = tartan.Device("emulator", hardware="sm_90a", checks="all")
        kernel = tartan.compile("attention", device, head_dim=128, causal=True)
        self.assertEqual(kernel.variants, ["keys=256", "keys=768"])
        attention = device.load(kernel)
        for queries, keys in ((70, 80), (3, 300), (1, 800)):
            _, arguments, check = self.attend(device, 1, 2, 1, queries, keys, d=128, about=keys)
            attention(*arguments, grid=(0, 0, 1))
            check()
        self.assertEqual(device.findings(), [])
        self.assertEqual(tartan.compile("attention", device, keys=256).variants, [])
        self.assertEqual(tartan.compile("gemm", device).variants, [])

    def test_dlpack_round_trip(self):
        for dtype in ("f16", "f32", "f64", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
            numpy_type = {"f": "float", "s": "int", "u": "uint"}[dtype[0]] + dtype[1:]
            there = np.arange(24).reshape(2, 3, 4).astype(numpy_type)
            buffer = self.device.to_device(there)
            self.assertEqual((buffer.dtype, buffer.shape), (dtype, (2, 3, 4)))
            back = np.from_dlpack(buffer)
            del buffer
            gc.collect()
            self.assertEqual(back.dtype, there.dtype)
            np.testing.assert_array_equal(back, there)

    def test_dlpack_frees_what_it_exported(self):
        from tartan import _dlpack

        buffer = self.device.empty((3,), "f32")
        _dlpack._free_unused()
        before = len(_dlpack._exported)
        capsule = buffer.__dlpack__()  # nobody consumes it
        taken = np.from_dlpack(buffer)
        self.assertEqual(len(_dlpack._exported), before + 2)
        del capsule, taken
        gc.collect()
        np.from_dlpack(buffer)  # an export frees what nobody took
        self.assertEqual(len(_dlpack._exported), before)

    def test_an_error_of_the_consumer_arrives(self):
        with self.assertRaises((RuntimeError, BufferError, TypeError)):
            np.from_dlpack(self.device.empty((4, 4), "bf16"))

    def test_layouts_and_types_are_refused(self):
        with self.assertRaisesRegex(ValueError, r"strides \(1, 4\): expected a contiguous one"):
            self.device.to_device(np.zeros((3, 4), np.float32).T)
        with self.assertRaisesRegex(TypeError, "elements of"):
            self.device.to_device(np.zeros(3, np.complex64))

    def test_read_only_arrays_are_read(self):
        there = np.arange(3, dtype=np.float32)
        there.flags.writeable = False
        np.testing.assert_array_equal(np.from_dlpack(self.device.to_device(there)), there)

    def test_bits_of_bf16(self):
        m = n = k = 16
        one = np.full((m, k), 0x3F80, np.uint16)  # 1.0
        c = np.zeros((m, n), np.float32)
        kernel = tartan.compile("gemm", self.device, m=m, n=n, k=k, type="bf16")
        self.device.load(kernel)(one, one, c)
        np.testing.assert_array_equal(c, np.full((m, n), 16, np.float32))


@unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch")
class Torch(unittest.TestCase):
    """PyTorch's tensors on the CPU; on a GPU: examples/python/torch_linear.py."""

    def test_attention_in_bf16(self):
        import torch

        device = tartan.Device("emulator", hardware="sm_90")
        q, k, v = (torch.randn(1, 2, 65, 64, dtype=torch.bfloat16) for _ in range(3))
        out, lse = torch.empty_like(q), torch.empty(1, 2, 65)
        attention = device.load(tartan.compile("attention", device, type="bf16"))
        attention(65, 65, 2, 2, 0.125, q, k, v, out, lse, grid=(0, 0, 1))
        scores = 0.125 * q.double() @ k.double().transpose(2, 3)
        difference = (out.double() - scores.softmax(-1) @ v.double()).abs().max().item()
        self.assertLess(difference, 0.02)
        self.assertLess((lse.double() - scores.logsumexp(-1)).abs().max().item(), 1e-3)
        with self.assertRaisesRegex(ValueError, "take tensor.contiguous"):
            attention(65, 65, 2, 2, 0.125, q.transpose(2, 3), k, v, out, lse, grid=(0, 0, 1))
        with self.assertRaisesRegex((RuntimeError, BufferError), "require gradient"):
            attention(65, 65, 2, 2, 0.125, q.requires_grad_(), k, v, out, lse, grid=(0, 0, 1))
        shared = torch.from_dlpack(device.to_device(k))
        self.assertTrue(torch.equal(shared, k))


if __name__ == "__main__":
    unittest.main()
