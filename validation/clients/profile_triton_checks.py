"""`lockstep.profile` of kernels of Triton, against programs that launch them by Triton's own launcher."""

import numpy
import triton
import triton.language as tl
from checks import Checks, close, random, same, softmax
from profiles import asked_launch, refused, same_counters

check = Checks("triton")
COUNT, ROWS, COLUMNS = 5000, 12, 300


@triton.jit
def add(x, y, out, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    held = place < count
    tl.store(out + place, tl.load(x + place, held) + tl.load(y + place, held), held)


@triton.jit
def soft(x, out, columns, scale, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    row = tl.program_id(0) * columns
    values = tl.load(x + row + place, place < columns, -float("inf")) * scale
    powers = tl.exp(values - tl.max(values))
    tl.store(out + row + place, powers / tl.sum(powers), place < columns)


@triton.jit
def product(a, b, c, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(
        c + i * SIZE + j, tl.dot(tl.load(a + i * SIZE + j), tl.load(b + i * SIZE + j))
    )


def vectors():
    return random(COUNT), random(COUNT, seed=2), numpy.zeros(COUNT, numpy.float32)


def rows():
    return random(ROWS, COLUMNS), numpy.zeros((ROWS, COLUMNS), numpy.float32)


def squares():
    return (
        random(64, 64, kind=numpy.float16),
        random(64, 64, seed=2, kind=numpy.float16),
        numpy.zeros((64, 64), numpy.float32),
    )


#: Kernel, arrays, further arguments, options and grid of each launch.
LAUNCHES = {
    "add": (add, vectors, (COUNT,), {"BLOCK": 256}, (triton.cdiv(COUNT, 256),)),
    "soft": (soft, rows, (COLUMNS, 0.5), {"BLOCK": 512, "num_warps": 8}, (ROWS,)),
    "product": (product, squares, (), {"SIZE": 64}, (1,)),
}


def by_triton(name):
    """The launch as a program makes it."""
    import torch

    kernel, arrays, others, options, grid = LAUNCHES[name]
    tensors = [torch.from_numpy(array).cuda() for array in arrays()]
    kernel[grid](*tensors, *others, **options)
    torch.cuda.synchronize()


def by_profile(name):
    """The same through `lockstep.profile`; the arrays after it."""
    kernel, arrays, others, options, grid = LAUNCHES[name]
    held = arrays()
    same_counters(__file__, name, kernel, [*held, *others], grid=grid, **options)
    return held


@check
def vector_add():
    x, y, out = by_profile("add")
    same(out, x + y)


@check
def scalars_and_warps():
    x, out = by_profile("soft")
    close(out, softmax(x * numpy.float32(0.5)))


@check
def tensor_cores():
    a, b, c = by_profile("product")
    close(c, a.astype(numpy.float32) @ b.astype(numpy.float32), 1e-3, 1e-3)


@check
def refusals():
    tuned = triton.autotune([triton.Config({"BLOCK": 64})], key=["count"])(add)
    refused("measures or chooses on a GPU", tuned, *vectors(), COUNT, grid=(1,))
    refused(
        "Triton decides block", add, *vectors(), COUNT, BLOCK=64, grid=(1,), block=64
    )


if asked_launch():
    by_triton(asked_launch())
else:
    check.run()
