"""`lockstep.profile` of kernels of numba, against programs that launch them by numba itself, and of cuda.core."""

import numpy
from checks import Checks, close, random, same
from cuda.core import Program, ProgramOptions
from numba import cuda, float32
from profiles import asked_launch, refused, same_counters, scratch

import lockstep

check = Checks("numba-cuda")
COUNT, THREADS = 5000, 128
BLOCKS = (COUNT + THREADS - 1) // THREADS

SCALE = """
extern "C" __global__ void scale(float *x, float factor, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[i] *= factor;
}
extern "C" __global__ void nothing() {}
"""


@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@cuda.jit(fastmath=True)
def scaled(x, factor, offset, out):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[i, j] = x[i, j] * factor + offset


@cuda.jit
def sums(x, out):
    held = cuda.shared.array(THREADS, float32)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    held[thread] = x[i] if i < x.size else 0
    step = THREADS // 2
    while step > 0:
        cuda.syncthreads()
        if thread < step:
            held[thread] += held[thread + step]
        step //= 2
    if thread == 0:
        out[cuda.blockIdx.x] = held[0]


def vectors():
    return random(COUNT), random(COUNT, seed=2), numpy.zeros(COUNT, numpy.float32)


def squares():
    return random(40, 50, kind=numpy.float64), 3, 0.25, numpy.zeros((40, 50))


def parts():
    return random(COUNT), numpy.zeros(BLOCKS, numpy.float32)


#: Kernel, arguments, grid and block of each launch.
LAUNCHES = {
    "add": (add, vectors, BLOCKS, THREADS),
    "scaled": (scaled, squares, (5, 7), (8, 8)),
    "sums": (sums, parts, BLOCKS, THREADS),
}


def by_numba(name):
    """The launch as a program makes it."""
    kernel, arguments, grid, block = LAUNCHES[name]
    kernel[grid, block](*arguments())


def by_profile(name):
    """The same through `lockstep.profile`; the arguments after it."""
    kernel, arguments, grid, block = LAUNCHES[name]
    held = arguments()
    same_counters(__file__, name, kernel, held, grid=grid, block=block)
    return held


@check
def vector_add():
    x, y, out = by_profile("add")
    same(out, x + y)


@check
def planes_and_scalars():
    x, factor, offset, out = by_profile("scaled")
    close(out, x * factor + offset, 1e-12)


@check
def shared_memory():
    x, out = by_profile("sums")
    padded = numpy.zeros(BLOCKS * THREADS, numpy.float32)
    padded[:COUNT] = x
    close(out, padded.reshape(-1, THREADS).sum(axis=1), 1e-4, 1e-4)


@check
def code_of_cuda_core():
    code = Program(SCALE, "c++", ProgramOptions(arch="sm_90")).compile("cubin")
    x = random(COUNT)
    expected = x * numpy.float32(2.5)
    with scratch():
        profile = lockstep.profile(
            code, x, 2.5, COUNT, entry="scale", grid=BLOCKS, block=THREADS
        )
    same(x, expected)
    assert profile["sm__warps_launched.sum"] == BLOCKS * THREADS // 32


@check
def refusals():
    @cuda.jit(debug=True, opt=False)
    def watched(x):
        x[0] = 1

    refused("made with `debug`", watched, *parts()[:1], grid=1, block=1)
    refused("is no kernel; give the function", add[1, 1], *vectors(), grid=1, block=1)
    refused("the block is None", add, *vectors(), grid=1)


if asked_launch():
    by_numba(asked_launch())
else:
    check.run()
