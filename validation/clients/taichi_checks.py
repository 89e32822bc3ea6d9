"""Taichi: kernels in its language, compiled by LLVM to PTX and launched by the driver API."""

import math

import numpy
import taichi as ti
from checks import Checks, close, integers, random, same

check = Checks("taichi")
ti.init(arch=ti.cuda, offline_cache=False, log_level=ti.WARN, device_memory_GB=0.5)


@check
def the_gpu_is_used():
    assert ti.lang.impl.current_cfg().arch == ti.cuda, ti.lang.impl.current_cfg().arch


@check
def fields():
    x = ti.field(ti.f32, shape=(30, 40))

    @ti.kernel
    def fill():
        for i, j in x:
            x[i, j] = i * 100 + j

    fill()
    same(x.to_numpy(), numpy.arange(30)[:, None] * 100 + numpy.arange(40))


@check
def arrays_of_the_host():
    @ti.kernel
    def scale(x: ti.types.ndarray(), factor: ti.f32):
        for i in range(x.shape[0]):
            x[i] = x[i] * factor

    x = random(1000)
    scaled = x.copy()
    scale(scaled, 3.0)
    same(scaled, x * numpy.float32(3))


@check
def reductions_and_atomics():
    total, largest = ti.field(ti.i32, shape=()), ti.field(ti.i32, shape=())
    bins = ti.field(ti.i32, shape=32)

    @ti.kernel
    def count(x: ti.types.ndarray()):
        for i in range(x.shape[0]):
            total[None] += x[i]
            ti.atomic_max(largest[None], x[i])
            ti.atomic_add(bins[x[i] % 32], 1)

    x = integers(1000, 3000)
    count(x)
    same([total[None], largest[None]], [x.sum(), x.max()])
    same(bins.to_numpy(), numpy.bincount(x % 32, minlength=32))


@check
def vectors_and_matrices():
    n = 64
    points = ti.Vector.field(3, ti.f32, shape=n)

    @ti.kernel
    def turn(angle: ti.f32):
        turned = ti.Matrix([[ti.cos(angle), -ti.sin(angle), 0.0], [ti.sin(angle), ti.cos(angle), 0.0], [0.0, 0.0, 1.0]])
        for i in points:
            points[i] = turned @ points[i]

    x = random(n, 3)
    points.from_numpy(x)
    turn(0.5)
    c, s = math.cos(0.5), math.sin(0.5)
    close(points.to_numpy(), x @ numpy.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]), 1e-4, 1e-5)


@check
def functions_and_loops():
    @ti.func
    def step(z, c):
        return ti.Vector([z[0] ** 2 - z[1] ** 2, 2 * z[0] * z[1]]) + c

    counts = ti.field(ti.i32, shape=(40, 40))

    @ti.kernel
    def julia():
        for i, j in counts:
            z = ti.Vector([i / 20.0 - 1, j / 20.0 - 1])
            count = 0
            while z.norm() < 20 and count < 30:
                z = step(z, ti.Vector([-0.8, 0.156]))
                count += 1
            counts[i, j] = count

    julia()
    same(counts.to_numpy().ravel()[::97], [julia_count(i // 40, i % 40) for i in range(0, 1600, 97)])


def julia_count(i, j):
    """Steps until the point leaves the circle, by the host in single precision."""
    z, count = numpy.complex64(complex(i / 20 - 1, j / 20 - 1)), 0
    while abs(z) < 20 and count < 30:
        z, count = numpy.complex64(z * z + numpy.complex64(-0.8 + 0.156j)), count + 1
    return count


@check
def sparse_fields():
    x = ti.field(ti.i32)
    block = ti.root.pointer(ti.ij, 8)
    block.dense(ti.ij, 8).place(x)
    total = ti.field(ti.i32, shape=())

    @ti.kernel
    def activate():
        for i in range(8):
            x[i * 8, i * 8] = i + 1

    @ti.kernel
    def gather():
        for i, j in x:
            total[None] += x[i, j] + 1

    activate()
    gather()
    assert total[None] == sum(range(1, 9)) + 8 * 64, total[None]


@check
def automatic_differentiation():
    x = ti.field(ti.f32, shape=100, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += ti.sin(x[i]) * x[i]

    values = random(100)
    x.from_numpy(values)
    with ti.ad.Tape(loss):
        energy()
    close(x.grad.to_numpy(), numpy.cos(values) * values + numpy.sin(values), 1e-4, 1e-4)
    close(loss[None], (numpy.sin(values) * values).sum(), 1e-4, 1e-4)


@check
def prefix_sums_and_sorts():
    scan = ti.algorithms.PrefixSumExecutor(1000)
    x = integers(100, 1000)
    field = ti.field(ti.i32, shape=1000)
    field.from_numpy(x)
    scan.run(field)
    same(field.to_numpy(), numpy.cumsum(x))
    keys = ti.field(ti.i32, shape=256)
    keys.from_numpy(integers(5000, 256))
    ti.algorithms.parallel_sort(keys)
    same(keys.to_numpy(), numpy.sort(integers(5000, 256)))


check.run()
