"""numba-cuda: kernels written in Python, compiled through NVVM and linked by nvJitLink, launched by the driver API."""

import math

import numpy
from checks import Checks, close, integers, random, same
from numba import cuda, float32, float64, int32, vectorize, guvectorize

check = Checks("numba-cuda")
THREADS = 128


def blocks(count):
    """Blocks that cover so many elements."""
    return (count + THREADS - 1) // THREADS


@check
def vector_add():
    @cuda.jit
    def add(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i] + y[i]

    x, y, out = random(1000), random(1000, seed=2), numpy.zeros(1000, numpy.float32)
    add[blocks(1000), THREADS](x, y, out)
    same(out, x + y)


@check
def shared_memory_reduction():
    @cuda.jit
    def block_sums(x, out):
        held = cuda.shared.array(THREADS, float64)
        thread = cuda.threadIdx.x
        i = cuda.grid(1)
        held[thread] = x[i] if i < x.size else 0.0
        step = THREADS // 2
        while step > 0:
            cuda.syncthreads()
            if thread < step:
                held[thread] += held[thread + step]
            step //= 2
        if thread == 0:
            out[cuda.blockIdx.x] = held[0]

    x = random(2000, kind=numpy.float64)
    out = numpy.zeros(blocks(2000))
    block_sums[blocks(2000), THREADS](x, out)
    padded = numpy.zeros(blocks(2000) * THREADS)
    padded[:2000] = x
    close(out, padded.reshape(-1, THREADS).sum(axis=1), 1e-12)


@check
def atomics():
    @cuda.jit
    def gather(x, out):
        i = cuda.grid(1)
        if i < x.size:
            cuda.atomic.add(out, 0, x[i])
            cuda.atomic.max(out, 1, x[i])
            cuda.atomic.min(out, 2, x[i])
            cuda.atomic.xor(out, 3, x[i])
            cuda.atomic.cas(out, 4, 0, 7)

    x = integers(1 << 20, 3000)
    out = numpy.array([0, 0, 1 << 30, 0, 0], numpy.int32)
    gather[blocks(3000), THREADS](x, out)
    same(out, [x.sum(dtype=numpy.int32), x.max(), x.min(), numpy.bitwise_xor.reduce(x), 7])


@check
def matrix_product():
    tile = 16

    @cuda.jit
    def product(a, b, c):
        left = cuda.shared.array((tile, tile), float32)
        right = cuda.shared.array((tile, tile), float32)
        column, row = cuda.grid(2)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0)
        for k in range(a.shape[1] // tile):
            left[y, x] = a[row, k * tile + x]
            right[y, x] = b[k * tile + y, column]
            cuda.syncthreads()
            for j in range(tile):
                total += left[y, j] * right[j, x]
            cuda.syncthreads()
        c[row, column] = total

    a, b, c = random(64, 48), random(48, 32, seed=2), numpy.zeros((64, 32), numpy.float32)
    product[(32 // tile, 64 // tile), (tile, tile)](a, b, c)
    close(c, a @ b, 1e-4, 1e-4)


@check
def streams_and_events():
    @cuda.jit
    def scale(x, factor):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= factor

    first, second = cuda.stream(), cuda.stream()
    hosts = [cuda.pinned_array(1024, numpy.float32) for _ in range(2)]
    for host in hosts:
        host[:] = random(1024)
    expected = hosts[0].copy()
    begin, end = cuda.event(), cuda.event()
    begin.record(first)
    devices = [cuda.to_device(host, stream) for host, stream in zip(hosts, (first, second))]
    for device, stream, factor in zip(devices, (first, second), (2.0, 3.0)):
        scale[blocks(1024), THREADS, stream](device, factor)
    for device, stream, host in zip(devices, (first, second), hosts):
        device.copy_to_host(host, stream)
    end.record(first)
    first.synchronize()
    second.synchronize()
    same(hosts[0], expected * numpy.float32(2))
    same(hosts[1], expected * numpy.float32(3))
    assert cuda.event_elapsed_time(begin, end) >= 0


@check
def cooperative_grid():
    @cuda.jit
    def sweep(rows):
        column = cuda.grid(1)
        grid = cuda.cg.this_grid()
        for row in range(1, rows.shape[0]):
            opposite = rows.shape[1] - column - 1
            rows[row, column] = rows[row - 1, opposite] + 1
            grid.sync()

    rows = numpy.zeros((16, 512), numpy.int32)
    sweep[512 // THREADS, THREADS](rows)
    same(rows, numpy.repeat(numpy.arange(16)[:, None], 512, axis=1))


@check
def universal_functions():
    @vectorize(["float32(float32, float32)"], target="cuda")
    def hypotenuse(x, y):
        return math.sqrt(x * x + y * y)

    x, y = random(5000), random(5000, seed=2)
    close(hypotenuse(x, y), numpy.hypot(x, y))


@check
def generalised_universal_functions():
    @guvectorize(["void(float64[:], float64[:], float64[:])"], "(n),(n)->()", target="cuda")
    def inner(x, y, out):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i] * y[i]
        out[0] = total

    x, y = random(40, 12, kind=numpy.float64), random(40, 12, seed=2, kind=numpy.float64)
    close(inner(x, y), (x * y).sum(axis=1), 1e-12)


@check
def reduce():
    add = cuda.reduce(lambda a, b: a + b)
    largest = cuda.reduce(lambda a, b: max(a, b))
    x = integers(1000, 5000, kind=numpy.int64)
    assert add(x) == x.sum()
    assert largest(cuda.to_device(x), init=0) == x.max()


@check
def device_functions():
    @cuda.jit(device=True)
    def step(z, c):
        return z * z + c

    @cuda.jit
    def escape(centres, counts, limit):
        i = cuda.grid(1)
        if i < centres.size:
            z = 0j
            count = 0
            while count < limit and z.real * z.real + z.imag * z.imag <= 4.0:
                z = step(z, centres[i])
                count += 1
            counts[i] = count

    centres = (random(600, kind=numpy.float64) + 1j * random(600, seed=2, kind=numpy.float64)).astype(numpy.complex128)
    counts = numpy.zeros(600, numpy.int32)
    escape[blocks(600), THREADS](centres, counts, 40)
    same(counts, [escape_count(c, 40) for c in centres])


def escape_count(c, limit):
    """Steps until the point leaves the circle, by the host."""
    z, count = 0j, 0
    while count < limit and z.real * z.real + z.imag * z.imag <= 4.0:
        z, count = z * z + c, count + 1
    return count


@check
def histogram():
    @cuda.jit
    def count(x, bins):
        held = cuda.shared.array(64, int32)
        if cuda.threadIdx.x < 64:
            held[cuda.threadIdx.x] = 0
        cuda.syncthreads()
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            cuda.atomic.add(held, x[i], 1)
        cuda.syncthreads()
        if cuda.threadIdx.x < 64:
            cuda.atomic.add(bins, cuda.threadIdx.x, held[cuda.threadIdx.x])

    x, bins = integers(64, 20000), numpy.zeros(64, numpy.int32)
    count[8, THREADS](x, bins)
    same(bins, numpy.bincount(x, minlength=64))


@check
def warp_shuffles():
    @cuda.jit
    def scan(x, out):
        i = cuda.grid(1)
        lane = cuda.laneid
        value = x[i]
        step = 1
        while step < 32:
            other = cuda.shfl_up_sync(0xFFFFFFFF, value, step)
            if lane >= step:
                value += other
            step *= 2
        out[i] = value + 1000 * cuda.popc(cuda.ballot_sync(0xFFFFFFFF, x[i] & 1))

    x, out = integers(100, 256), numpy.zeros(256, numpy.int32)
    scan[2, THREADS](x, out)
    warps = x.reshape(-1, 32)
    same(out.reshape(-1, 32), warps.cumsum(axis=1) + 1000 * (warps & 1).sum(axis=1)[:, None])


@check
def constant_and_local_arrays():
    weights = numpy.arange(1, 9, dtype=numpy.float64)

    @cuda.jit
    def filtered(x, out):
        factors = cuda.const.array_like(weights)
        window = cuda.local.array(8, float64)
        i = cuda.grid(1)
        if i < out.size:
            for j in range(8):
                window[j] = x[i + j]
            total = 0.0
            for j in range(8):
                total += window[j] * factors[7 - j]
            out[i] = total

    x = random(507, kind=numpy.float64)
    out = numpy.zeros(500)
    filtered[blocks(500), THREADS](x, out)
    close(out, numpy.convolve(x, weights, "valid"), 1e-12, 1e-12)


check.run()
