# SPDX-License-Identifier: Apache-2.0
# The kernels behind tests/data/triton: compiled by Triton, recorded on a GPU.
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr, B_BY_COLUMNS: tl.constexpr, IMPRECISE: tl.constexpr):
    """C = A B; A row-major, B by rows or by columns; ragged edges masked. Accumulates in f32."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + row[:, None] * stride_a + k[None, :]
    if B_BY_COLUMNS:
        b = b_ptr + column[None, :] * stride_b + k[:, None]
        b_step = BK
    else:
        b = b_ptr + k[:, None] * stride_b + column[None, :]
        b_step = BK * stride_b
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        left = K - i * BK
        x = tl.load(a, mask=(row[:, None] < M) & (k[None, :] < left), other=0.0)
        y = tl.load(b, mask=(column[None, :] < N) & (k[:, None] < left), other=0.0)
        acc = tl.dot(x, y, acc, max_num_imprecise_acc=IMPRECISE)
        a += BK
        b += b_step
    c = c_ptr + row[:, None] * stride_c + column[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(row[:, None] < M) & (column[None, :] < N))


@triton.jit
def matmul_even(a_ptr, b_ptr, c_ptr, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr):
    """C = A B, all row-major, whole tiles: no masks."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + row[:, None] * stride_a + k[None, :]
    b = b_ptr + k[:, None] * stride_b + column[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK * stride_b
    tl.store(c_ptr + row[:, None] * stride_c + column[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def matmul_dequant(a_ptr, b_ptr, c_ptr, K, scale, stride_a, stride_b, stride_c, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr):
    """C = (A * scale) B with A in bytes, made f16 in registers: A of the product comes from registers."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + row[:, None] * stride_a + k[None, :]
    b = b_ptr + k[:, None] * stride_b + column[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(a).to(tl.float16), tl.load(b), acc)
        a += BK
        b += BK * stride_b
    tl.store(c_ptr + row[:, None] * stride_c + column[None, :], acc * scale)


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, l_ptr, scale, tokens, stride_head, CAUSAL: tl.constexpr,
              D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """softmax(Q K^T scale) V by the online recurrence, in powers of two; scale includes log2(e)."""
    head = tl.program_id(1)
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    n = tl.arange(0, BN)
    base = head * stride_head
    q = tl.load(q_ptr + base + row[:, None] * D + d[None, :], mask=row[:, None] < tokens, other=0.0)
    most = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = tokens
    if CAUSAL:
        end = tl.minimum(tokens, (tl.program_id(0) + 1) * BM)
    for start in range(0, end, BN):
        column = start + n
        k = tl.load(k_ptr + base + column[None, :] * D + d[:, None], mask=column[None, :] < tokens, other=0.0)
        s = tl.dot(q, k) * scale
        inside = column[None, :] < tokens
        if CAUSAL:
            inside = inside & (column[None, :] <= row[:, None])
        s = tl.where(inside, s, -1e30)
        new = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(most - new)
        total = total * fade + tl.sum(p, 1)
        v = tl.load(v_ptr + base + column[:, None] * D + d[None, :], mask=column[:, None] < tokens, other=0.0)
        acc = tl.dot(p.to(v_ptr.dtype.element_ty), v, acc * fade[:, None])
        most = new
    acc = acc / total[:, None]
    tl.store(o_ptr + base + row[:, None] * D + d[None, :], acc.to(o_ptr.dtype.element_ty), mask=row[:, None] < tokens)
    tl.store(l_ptr + head * tokens + row, most + tl.log2(total), mask=row < tokens)


@triton.jit
def matmul_described(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B^T through tensor descriptors that the host made."""
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row, k]), b.load([column, k]).T, acc)
    c.store([row, column], acc.to(c.dtype))


@triton.jit
def matmul_describing(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B^T through tensor descriptors made on the device."""
    a = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row, k]), b.load([column, k]).T, acc)
    c.store([row, column], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def softmax(x_ptr, y_ptr, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < columns, other=-1e30)
    p = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * stride + i, p / tl.sum(p, 0), mask=i < columns)


@triton.jit
def scans(x_ptr, sums_ptr, order_ptr, BLOCK: tl.constexpr):
    """Running sums and a sort of integers: shuffles and shared memory."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + i)
    tl.store(sums_ptr + row * BLOCK + i, tl.cumsum(x, 0))
    tl.store(order_ptr + row * BLOCK + i, tl.sort(x))


@triton.jit
def histogram(x_ptr, bins_ptr, count, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < count, other=0) & (BINS - 1)
    tl.atomic_add(bins_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))


@triton.jit
def turned(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    """A transposition: the layout changes through shared memory."""
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r[:, None] * columns + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < columns))
    tl.store(y_ptr + c[:, None] * rows + r[None, :], tl.trans(x), mask=(c[:, None] < columns) & (r[None, :] < rows))
