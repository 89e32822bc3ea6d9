"""NVIDIA Warp: kernels in Python, compiled by its own native library, which carries the CUDA runtime."""

import numpy
import warp
from checks import Checks, random, same

check = Checks("warp-lang")
warp.init()


@warp.kernel
def add(x: warp.array(dtype=float), y: warp.array(dtype=float), out: warp.array(dtype=float)):
    i = warp.tid()
    out[i] = x[i] + y[i]


@check
def vector_add():
    assert warp.is_cuda_available(), "Warp finds no CUDA device"
    x, y = random(1000), random(1000, seed=2)
    out = warp.zeros(1000, dtype=float, device="cuda")
    arrays = [warp.array(x, device="cuda"), warp.array(y, device="cuda"), out]
    warp.launch(add, dim=1000, inputs=arrays, device="cuda")
    same(out.numpy(), numpy.add(x, y))


check.run()
