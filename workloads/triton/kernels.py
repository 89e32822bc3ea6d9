"""Kernels written in Triton, compiled ahead of time by compile.py beside this file."""

import triton
import triton.language as tl


@triton.jit
def softmax_rows(source, target, columns, BLOCK: tl.constexpr):
    """One program a row; the row fits into BLOCK."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(source + row * columns + offsets, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(target + row * columns + offsets, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def layer_norm_rows(source, weight, bias, target, columns, epsilon, BLOCK: tl.constexpr):
    """One program a row, which is read in pieces of BLOCK: mean, variance, result."""
    row = tl.program_id(0)
    source += row * columns
    target += row * columns
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        sums += tl.load(source + offsets, mask=offsets < columns, other=0.0)
    mean = tl.sum(sums, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        values = tl.load(source + offsets, mask=offsets < columns, other=0.0)
        centred = tl.where(offsets < columns, values - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        inside = offsets < columns
        values = tl.load(source + offsets, mask=inside)
        factors = tl.load(weight + offsets, mask=inside)
        shifts = tl.load(bias + offsets, mask=inside)
        tl.store(target + offsets, (values - mean) * scale * factors + shifts, mask=inside)


@triton.jit
def matmul_bias_relu(a, b, bias, c, rows, columns, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = relu(a b + bias) in fp16 with fp32 sums; edges are multiples of the tile."""
    row_offsets = tl.program_id(0) * M + tl.arange(0, M)
    column_offsets = tl.program_id(1) * N + tl.arange(0, N)
    depth_offsets = tl.arange(0, K)
    a_tile = a + row_offsets[:, None] * depth + depth_offsets[None, :]
    b_tile = b + depth_offsets[:, None] * columns + column_offsets[None, :]
    sums = tl.zeros([M, N], dtype=tl.float32)
    for _ in range(0, depth, K):
        sums = tl.dot(tl.load(a_tile), tl.load(b_tile), sums)
        a_tile += K
        b_tile += K * columns
    sums += tl.load(bias + column_offsets)[None, :]
    result = tl.maximum(sums, 0.0).to(tl.float16)
    tl.store(c + row_offsets[:, None] * columns + column_offsets[None, :], result)


@triton.jit
def attention_forward(q, k, v, target, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Causal attention of one head with a running maximum; the length is a multiple of both tiles."""
    block = tl.program_id(0)
    head = tl.program_id(1) * length * D
    rows = block * M + tl.arange(0, M)
    inner = tl.arange(0, D)
    queries = tl.load(q + head + rows[:, None] * D + inner[None, :])
    maximum = tl.full([M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([M], dtype=tl.float32)
    sums = tl.zeros([M, D], dtype=tl.float32)
    for start in range(0, (block + 1) * M, N):
        columns = start + tl.arange(0, N)
        keys = tl.load(k + head + columns[None, :] * D + inner[:, None])
        scores = tl.dot(queries, keys) * scale
        scores = tl.where(rows[:, None] >= columns[None, :], scores, -float("inf"))
        larger = tl.maximum(maximum, tl.max(scores, axis=1))
        weights = tl.exp2(scores - larger[:, None])
        fading = tl.exp2(maximum - larger)
        total = total * fading + tl.sum(weights, axis=1)
        values = tl.load(v + head + columns[:, None] * D + inner[None, :])
        sums = tl.dot(weights.to(tl.float16), values, sums * fading[:, None])
        maximum = larger
    result = (sums / total[:, None]).to(tl.float16)
    tl.store(target + head + rows[:, None] * D + inner[None, :], result)
