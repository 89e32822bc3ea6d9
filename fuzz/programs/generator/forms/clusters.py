"""Clusters of blocks, from compute capability 9.0: shared memory of other blocks, and the barrier of a cluster."""

from .. import lanes as together
from ..kernel import form
from ..lanes import number, predicate, spend, variable

SIZES = (2, 2, 4, 8)


def join(kernel):
    """Makes the kernel one of clusters, if it can be; the blocks of a cluster."""
    if getattr(kernel, "cluster", 0):
        return kernel.cluster
    if kernel.cooperative or kernel.arch > 90:
        return 0
    sizes = [size for size in SIZES if kernel.grid[0] % size == 0 and size <= kernel.grid[0]]
    if not sizes:
        return 0
    kernel.need("together")
    kernel.cluster = kernel.rng.choice(sizes)
    kernel.attributes += f"BLOCKS_OF_A_CLUSTER({kernel.cluster}) "
    kernel.arch = 90
    kernel.host = False
    return kernel.cluster


def meet(kernel):
    """A meeting of all threads of a cluster, at once or in two halves."""
    rng = kernel.rng
    kernel.emit("cluster_arrive();")
    if rng.random() < 0.4:
        together.ordinary(kernel)
    kernel.emit("cluster_wait();")
    spend(kernel, 20)


@form(weight=0.8, needs="block", where="kernel", cost=80)
def shared_of_others(kernel):
    """Words that each block leaves in its shared memory and others of the cluster read, or add to."""
    if kernel.frame.nesting or not join(kernel):
        return
    rng = kernel.rng
    size = kernel.cluster
    count = kernel.threads
    cells = kernel.shared("u32", count)
    if cells is None:
        return
    for _ in range(rng.randrange(1, 3)):
        kernel.emit(f"{cells}[thread] = {kernel.expression('u32', 1)};")
        meet(kernel)
        other = variable(kernel, "u32", rng.choice((f"(cluster_rank() + {rng.randrange(1, size + 1)}u) % {size}u", number(kernel, size), f"cluster_rank() ^ 1u")))
        place = f"(thread * {rng.randrange(1, 9)}u + {rng.randrange(99)}u) % {count}u"
        shape = rng.randrange(3)
        if shape == 0:
            kernel.fold(f"*cluster_pointer(&{cells}[{place}], {other})")
        elif shape == 1:
            kernel.fold(f"cluster_load(&{cells}[{place}], {other})")
        else:
            kernel.emit(f"atomicAdd(cluster_pointer(&{cells}[{place}], {other}), {kernel.expression('u32', 1)});")
            meet(kernel)
            kernel.fold(f"{cells}[{place}]")
        meet(kernel)


@form(weight=0.5, needs="block", where="kernel", cost=60)
def written_by_others(kernel):
    """Words that a block writes into the shared memory of the next one."""
    if kernel.frame.nesting or not join(kernel):
        return
    rng = kernel.rng
    size = kernel.cluster
    cells = kernel.shared("u32", kernel.threads)
    if cells is None:
        return
    meet(kernel)
    next_ = variable(kernel, "u32", f"(cluster_rank() + {rng.randrange(1, size)}u) % {size}u")
    if rng.random() < 0.4:
        with kernel.block(f"if ({predicate(kernel)})"):
            together.delay(kernel)
    place = rng.choice(("thread", f"{kernel.threads - 1}u - thread"))
    if rng.random() < 0.5:
        kernel.emit(f"*cluster_pointer(&{cells}[{place}], {next_}) = {kernel.expression('u32', 1)};")
    else:
        kernel.emit(f"cluster_store(&{cells}[{place}], {next_}, {kernel.expression('u32', 1)});")
    meet(kernel)
    kernel.fold(f"{cells}[(thread + {rng.randrange(99)}u) % {kernel.threads}u]")
    kernel.fold("(u64)cluster_rank() << 8 | cluster_size()")
    meet(kernel)
