"""CuPy: arrays, kernels from source by the run-time compiler, and algorithms of Thrust and CUB.

Products of matrices, transforms and random numbers call cuBLAS, cuFFT and cuRAND, which are closed; no check does.
"""

import cupy
import numpy
from checks import Checks, close, integers, random, same

check = Checks("cupy-cuda13x")


def host(array):
    """An array of the device as numpy has it."""
    return cupy.asnumpy(array)


@check
def elementwise_functions():
    x, y = random(3000), random(3000, seed=2)
    found = cupy.sqrt(cupy.abs(cupy.asarray(x))) * cupy.sin(cupy.asarray(y)) + 2
    close(host(found), numpy.sqrt(numpy.abs(x)) * numpy.sin(y) + 2)


@check
def broadcasting_and_kinds():
    x, y = integers(100, 20, 1), integers(100, 1, 30, kind=numpy.int64)
    same(host(cupy.asarray(x) * cupy.asarray(y)), x * y)
    same(host(cupy.asarray(x).astype(cupy.float16) / 4), x.astype(numpy.float16) / 4)
    z = random(50) + 1j * random(50, seed=2)
    close(host(cupy.asarray(z) ** 2), z**2, 1e-4)


@check
def elementwise_kernel():
    squared = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_distance")
    x, y = random(10, 100), random(100, seed=2)
    close(host(squared(cupy.asarray(x), cupy.asarray(y))), (x - y) ** 2)


@check
def reduction_kernel():
    norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "row_norm")
    x = random(40, 100)
    close(host(norm(cupy.asarray(x), axis=1)), numpy.sqrt((x * x).sum(axis=1)))


@check
def raw_kernel():
    kernel = cupy.RawKernel(
        r"""extern "C" __global__ void reverse(const float* x, float* y, int n) {
            extern __shared__ float held[];
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            held[threadIdx.x] = i < n ? x[i] : 0;
            __syncthreads();
            if (i < n) y[i] = held[blockDim.x - 1 - threadIdx.x];
        }""",
        "reverse",
    )
    x, y = cupy.asarray(random(1024)), cupy.zeros(1024, cupy.float32)
    kernel((8,), (128,), (x, y, numpy.int32(1024)), shared_mem=512)
    same(host(y).reshape(8, 128), host(x).reshape(8, 128)[:, ::-1])


@check
def raw_module():
    module = cupy.RawModule(
        code=r"""
        __constant__ int offset;
        template <typename T> __global__ void shift(T* x) {
            x[blockIdx.x * blockDim.x + threadIdx.x] += T(offset);
        }""",
        options=("-std=c++17",),
        name_expressions=["shift<int>", "shift<double>"],
    )
    pointer = module.get_global("offset")
    cupy.ndarray((1,), cupy.int32, pointer)[:] = 11
    for kind, name in ((numpy.int32, "shift<int>"), (numpy.float64, "shift<double>")):
        x = integers(1000, 256, kind=kind)
        device = cupy.asarray(x)
        module.get_function(name)((2,), (128,), (device,))
        same(host(device), x + 11)


@check
def sort():
    x = random(5000)
    same(host(cupy.sort(cupy.asarray(x))), numpy.sort(x))
    y = integers(1000, 20, 50)
    same(host(cupy.sort(cupy.asarray(y), axis=1)), numpy.sort(y, axis=1))


@check
def argsort_and_lexsort():
    x = integers(1 << 30, 3000)
    same(host(cupy.argsort(cupy.asarray(x))), numpy.argsort(x, kind="stable"))
    keys = integers(5, 2, 400)
    same(host(cupy.lexsort(cupy.asarray(keys))), numpy.lexsort(keys))


@check
def argmax_and_argmin():
    x = random(30, 200)
    device = cupy.asarray(x)
    same([int(device.argmax()), int(device.argmin())], [x.argmax(), x.argmin()])
    same(host(device.argmax(axis=1)), x.argmax(axis=1))


@check
def cumulative_sums():
    x = integers(100, 4000, kind=numpy.int64)
    same(host(cupy.cumsum(cupy.asarray(x))), numpy.cumsum(x))
    y = random(20, 60, kind=numpy.float64)
    close(host(cupy.cumsum(cupy.asarray(y), axis=1)), numpy.cumsum(y, axis=1), 1e-12, 1e-12)
    close(host(cupy.cumprod(cupy.asarray(1 + y[0] / 10))), numpy.cumprod(1 + y[0] / 10), 1e-12)


@check
def sums_over_axes():
    x = random(6, 40, 50, kind=numpy.float64)
    device = cupy.asarray(x)
    for axis in (None, 0, 1, 2, (0, 2)):
        close(host(device.sum(axis=axis)), x.sum(axis=axis), 1e-12, 1e-12)


@check
def means_and_variances():
    x = random(50, 80, kind=numpy.float64)
    device = cupy.asarray(x)
    close(host(device.mean(axis=0)), x.mean(axis=0), 1e-12, 1e-12)
    close(host(device.var(axis=1)), x.var(axis=1), 1e-12)
    close(host(cupy.linalg.norm(device, axis=1)), numpy.linalg.norm(x, axis=1), 1e-12)


@check
def boolean_masks():
    x = random(4000)
    device = cupy.asarray(x)
    same(host(device[device > 0.5]), x[x > 0.5])
    device[device < 0] = 0
    same(host(device), numpy.where(x < 0, 0, x))
    same(host(cupy.nonzero(device)[0]), numpy.nonzero(host(device))[0])


@check
def unique():
    x = integers(50, 2000)
    found = cupy.unique(cupy.asarray(x), return_inverse=True, return_counts=True)
    for part, expected in zip(found, numpy.unique(x, return_inverse=True, return_counts=True)):
        same(host(part), expected)


@check
def indexing_and_scatter():
    x, places = random(300), integers(300, 1000)
    device, indices = cupy.asarray(x), cupy.asarray(places)
    same(host(device[indices]), x[places])
    same(host(cupy.take(device.reshape(30, 10), indices[:20] % 10, axis=1)), x.reshape(30, 10)[:, places[:20] % 10])
    counts, expected = cupy.zeros(300, cupy.int32), numpy.zeros(300, numpy.int32)
    cupy.add.at(counts, indices, 1)
    numpy.add.at(expected, places, 1)
    same(host(counts), expected)


@check
def histograms():
    x = integers(64, 5000)
    same(host(cupy.bincount(cupy.asarray(x))), numpy.bincount(x))
    y = random(3000, kind=numpy.float64)
    for found, expected in zip(cupy.histogram(cupy.asarray(y), 20), numpy.histogram(y, 20)):
        close(host(found), expected, 1e-12, 1e-12)
    edges = numpy.linspace(-2, 2, 9)
    same(host(cupy.digitize(cupy.asarray(y), cupy.asarray(edges))), numpy.digitize(y, edges))


@check
def shapes_and_joins():
    x = integers(1000, 24, 10)
    device = cupy.asarray(x)
    same(host(cupy.concatenate([device.T, device.reshape(10, 24)[:, ::-1]], axis=1)),
         numpy.concatenate([x.T, x.reshape(10, 24)[:, ::-1]], axis=1))
    same(host(cupy.roll(cupy.pad(device, 2), 3, axis=0)), numpy.roll(numpy.pad(x, 2), 3, axis=0))
    same(host(cupy.tile(device, (2, 3))[::5]), numpy.tile(x, (2, 3))[::5])


@check
def fused_functions():
    @cupy.fuse()
    def activation(x, y):
        return cupy.maximum(x, 0) * y + cupy.exp(-x * x)

    x, y = random(2000), random(2000, seed=2)
    close(host(activation(cupy.asarray(x), cupy.asarray(y))), numpy.maximum(x, 0) * y + numpy.exp(-x * x), 1e-5, 1e-5)


@check
def streams_events_and_graphs():
    stream = cupy.cuda.Stream(non_blocking=True)
    x = random(1000)
    with stream:
        device, out = cupy.asarray(x), cupy.zeros(1000, cupy.float32)
        cupy.add(device, out, out=out)
        stream.synchronize()
        stream.begin_capture()
        cupy.add(device, out, out=out)
        graph = stream.end_capture()
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record(stream)
        for _ in range(3):
            graph.launch(stream)
        end.record(stream)
    stream.synchronize()
    close(host(out), 4 * x)
    assert cupy.cuda.get_elapsed_time(begin, end) >= 0


@check
def memory_pools_and_managed_memory():
    pool = cupy.get_default_memory_pool()
    with cupy.cuda.using_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc):
        x = cupy.arange(2000, dtype=cupy.int64)
        same(host(x[::-1] * 2), numpy.arange(2000)[::-1] * 2)
    before = pool.used_bytes()
    held = cupy.zeros(1 << 16, cupy.uint8)
    assert pool.used_bytes() - before == 1 << 16, (before, pool.used_bytes())
    del held
    assert pool.used_bytes() == before
    pinned = cupy.cuda.alloc_pinned_memory(4000)
    staged = numpy.frombuffer(pinned, numpy.float32, 1000)
    staged[:] = random(1000)
    same(host(cupy.asarray(staged)), staged)


check.run()
