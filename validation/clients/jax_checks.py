"""JAX: programs compiled by XLA, whose CUDA plugin loads NVIDIA's libraries."""

import os

import numpy
from checks import Checks, close, random, same

# The plugin compares versions of libraries, CUPTI's among them, which have none without a driver of NVIDIA's.
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
os.environ["JAX_PLATFORMS"] = "cuda"

import jax
from jax._src import hardware_utils

# JAX looks for the driver's device files before it asks the driver.
hardware_utils.has_visible_nvidia_gpu = lambda: True

check = Checks("jax")


@check
def elementwise():
    device = jax.devices("cuda")[0]
    x, y = random(1000), random(1000, seed=2)
    found = jax.jit(lambda x, y: x * y + 1)(jax.device_put(x, device), jax.device_put(y, device))
    close(numpy.asarray(found), x * y + 1)


@check
def sort():
    device = jax.devices("cuda")[0]
    x = random(1000)
    same(numpy.asarray(jax.jit(jax.numpy.sort)(jax.device_put(x, device))), numpy.sort(x))


check.run()
