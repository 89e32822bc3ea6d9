"""Triton: kernels in its language, compiled to machine code by its own assembler and launched by the driver API."""

import numpy
import torch
import triton
import triton.language as tl
from checks import Checks, close, integers, normalised, random, same, softmax
from tensors import host, put

check = Checks("triton")


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@check
def vector_add():
    x, y = random(3001), random(3001, seed=2)
    out = torch.zeros(3001, device="cuda")
    add_kernel[(triton.cdiv(3001, 256),)](put(x), put(y), out, 3001, BLOCK=256)
    same(host(out), x + y)


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + i, powers / tl.sum(powers, 0), mask=i < columns)


@check
def row_softmax():
    x = random(20, 200)
    out = torch.empty(20, 200, device="cuda")
    softmax_kernel[(20,)](put(x), out, 200, BLOCK=256)
    close(host(out), softmax(x), 1e-4)


@triton.jit
def dot_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@check
def matrix_product_by_tensor_cores():
    a, b = random(128, 96).astype(numpy.float16), random(96, 64, seed=2).astype(numpy.float16)
    c = torch.empty(128, 64, device="cuda")
    dot_kernel[(2, 1)](put(a), put(b), c, 128, 64, 96, BM=64, BN=64, BK=32, num_warps=4)
    close(host(c), a.astype(numpy.float32) @ b.astype(numpy.float32), 1e-3, 1e-3)


@triton.jit
def attention_kernel(q, k, v, out, N, scale, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    rows, lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, WIDTH)
    query = tl.load(q + rows[:, None] * WIDTH + lanes[None, :])
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    held = tl.zeros((BLOCK, WIDTH), tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        keys = tl.load(k + columns[None, :] * WIDTH + lanes[:, None])
        scores = tl.dot(query, keys) * scale
        higher = tl.maximum(largest, tl.max(scores, 1))
        powers = tl.exp(scores - higher[:, None])
        shrink = tl.exp(largest - higher)
        total = total * shrink + tl.sum(powers, 1)
        values = tl.load(v + columns[:, None] * WIDTH + lanes[None, :])
        held = held * shrink[:, None] + tl.dot(powers.to(tl.float16), values)
        largest = higher
    tl.store(out + rows[:, None] * WIDTH + lanes[None, :], held / total[:, None])


@check
def attention():
    q, k, v = (random(128, 64, seed=seed).astype(numpy.float16) for seed in (1, 2, 3))
    out = torch.empty(128, 64, device="cuda")
    attention_kernel[(2,)](put(q), put(k), put(v), out, 128, 0.125, BLOCK=64, WIDTH=64)
    wide = [part.astype(numpy.float32) for part in (q, k, v)]
    close(host(out), softmax(wide[0] @ wide[1].T * 0.125) @ wide[2], 1e-2, 1e-2)


@triton.jit
def reduce_kernel(x, total, largest, place, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    values = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(total + row, tl.sum(values, 0))
    tl.store(largest + row, tl.max(values, 0))
    tl.store(place + row, tl.argmin(values, 0))


@check
def reductions():
    x = integers(1 << 20, 10, 512)
    total, largest, place = (torch.empty(10, dtype=torch.int32, device="cuda") for _ in range(3))
    reduce_kernel[(10,)](put(x), total, largest, place, BLOCK=512)
    same(host(total), x.sum(axis=1))
    same(host(largest), x.max(axis=1))
    same(host(place), x.argmin(axis=1))


@triton.jit
def layer_norm_kernel(x, weight, bias, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + i, mask=i < columns, other=0.0)
    mean = tl.sum(values, 0) / columns
    centred = tl.where(i < columns, values - mean, 0.0)
    scaled = centred * tl.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5)
    result = scaled * tl.load(weight + i, mask=i < columns) + tl.load(bias + i, mask=i < columns)
    tl.store(out + row * columns + i, result, mask=i < columns)


@check
def layer_norm():
    x, weight, bias = random(12, 300), random(300, seed=2), random(300, seed=3)
    out = torch.empty(12, 300, device="cuda")
    layer_norm_kernel[(12,)](put(x), put(weight), put(bias), out, 300, BLOCK=512)
    close(host(out), normalised(x) * weight + bias, 1e-4, 1e-4)


@triton.jit
def histogram_kernel(x, bins, largest, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(bins + values, 1, mask=i < n)
    tl.atomic_max(largest, tl.max(values, 0))


@check
def atomics():
    x = integers(100, 4000)
    bins = torch.zeros(100, dtype=torch.int32, device="cuda")
    largest = torch.zeros(1, dtype=torch.int32, device="cuda")
    histogram_kernel[(triton.cdiv(4000, 256),)](put(x), bins, largest, 4000, BLOCK=256)
    same(host(bins), numpy.bincount(x, minlength=100))
    same(host(largest), [x.max()])


@triton.jit
def scan_kernel(x, out, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * BLOCK + i)
    tl.store(out + row * BLOCK + i, tl.cumsum(tl.sort(values), 0))


@check
def scan_and_sort():
    x = integers(1000, 6, 256)
    out = torch.empty(6, 256, dtype=torch.int32, device="cuda")
    scan_kernel[(6,)](put(x), out, BLOCK=256)
    same(host(out), numpy.cumsum(numpy.sort(x, axis=1), axis=1))


@triton.autotune([triton.Config({"BLOCK": size}, num_warps=warps) for size, warps in ((128, 2), (256, 4))], key=["n"])
@triton.jit
def scale_kernel(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


def bench(call, quantiles=None, **_):
    """Times a call by events, a few times only: the tuner's own warm-up is a matter of host time."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    end.synchronize()
    return [begin.elapsed_time(end)] * len(quantiles or [1])


@check
def autotuning():
    x = random(2000)
    out = torch.zeros(2000, device="cuda")
    scale_kernel._do_bench = bench
    scale_kernel[lambda values: (triton.cdiv(2000, values["BLOCK"]),)](put(x), out, 2000, 3.0)
    same(host(out), x * numpy.float32(3))
    assert scale_kernel.best_config.kwargs["BLOCK"] in (128, 256)


check.run()
