"""Nodes of a CPU and a GPU: the CPU plays the CUDA calls of a program, the GPU runs its kernels.

    lockstep run --record full --out run -- ./vector_add
    sst --add-lib-path=sst/build sst/examples/node.py -- --record run/calls.record

With several threads (`sst -n 2`) or ranks (`mpirun -n 2 sst`), the GPU of a node is on one, its CPU and its memory of
SST's on another. No cycle, statistic or digest depends on that.
"""

import argparse
import sys

import sst

# The link between CPU and GPU of the SST-GPU report (its listing 1).
LINK_LATENCY = "23840ps"
# L2 of `--memory hierarchy`, by GPU: slices, what one holds, its ways and the clock of the crossbar. The SST-GPU
# report's CPU + V100 (its table 2) and Broadwell + P100 (table 6), and something for others.
L2S = {"v100-sst": (32, "192KiB", 24, "1.2GHz"), "p100": (8, "512KiB", 16, "1GHz")}
OTHER_L2 = (32, "1MiB", 16, "1.5GHz")
# Misses that a slice has open at once; one of them it keeps for itself.
MSHRS = 128
# Between the GPU and a slice, and within the slice: most of it in the link, which lets ranks meet less often.
CROSSBAR_LATENCY = "20ns"
SLICE_CYCLES = 32


def arguments():
    parser = argparse.ArgumentParser(prog="node.py", description=__doc__)
    parser.add_argument("--record", required=True, help="calls.record of a run with --record full")
    parser.add_argument("--gpu", default="h200", help="GPU of the catalogue, or a .toml file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--sm-groups", type=int, default=1, help="worker threads of a GPU")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument(
        "--memory",
        choices=["own", "flat", "hierarchy"],
        default="own",
        help="behind the L1 caches: the GPU's own L2 and DRAM, one latency, or SST's memHierarchy",
    )
    parser.add_argument("--latency", default="300ns", help="of the memory with one latency")
    parser.add_argument("--statistics", default="", help="a CSV file for SST's statistics")
    parser.add_argument("--gpu-statistics", default="", help="a CSV file for those of the GPU's parts (one node)")
    return parser.parse_args(sys.argv[1:])


def fill_memory(gpu, name, given):
    """Puts a memory behind the L1 caches; the components that it takes."""
    if given.memory == "flat":
        memory = gpu.setSubComponent("memory", "lockstep.flatMemory")
        memory.addParams({"latency": given.latency})
    elif given.memory == "hierarchy":
        gpu.addParams({"max_outstanding": MSHRS - 1})
        slices, *shape = L2S.get(given.gpu, OTHER_L2)
        return [part for slice in range(slices) for part in l2_slice(gpu, name, slice, *shape)]
    return []


def l2_slice(gpu, name, slice, size, ways, clock):
    """A slice of L2 with its memory controller, of SST's memHierarchy."""
    interface = gpu.setSubComponent("memory", "memHierarchy.standardInterface", slice)
    cache = sst.Component(f"{name}.l2_{slice}", "memHierarchy.Cache")
    cache.addParams(
        {
            "cache_frequency": clock,
            "cache_size": size,
            "associativity": ways,
            "access_latency_cycles": SLICE_CYCLES,
            "mshr_num_entries": MSHRS,
            "max_requests_per_cycle": 2,
            "cache_line_size": 128,
            "L1": 1,
        }
    )
    controller = sst.Component(f"{name}.memory_{slice}", "memHierarchy.MemController")
    # Values stay in the GPU.
    controller.addParams({"clock": "1GHz", "addr_range_start": 0, "addr_range_end": 16 * 2**30 - 1, "backing": "none"})
    backend = controller.setSubComponent("backend", "memHierarchy.simpleMem")
    backend.addParams({"mem_size": "16GiB", "access_time": "200ns", "max_requests_per_cycle": 1})
    above = sst.Link(f"{name}.above_l2_{slice}")
    above.connect((interface, "lowlink", CROSSBAR_LATENCY), (cache, "highlink", CROSSBAR_LATENCY))
    below = sst.Link(f"{name}.below_l2_{slice}")
    below.connect((cache, "lowlink", "1ns"), (controller, "highlink", "1ns"))
    return [cache, controller]


def build(given):
    ranks, threads = sst.getMPIRankCount(), sst.getThreadCount()
    places = [(rank, thread) for rank in range(ranks) for thread in range(threads)]
    if len(places) > 1:
        sst.setProgramOption("partitioner", "sst.self")
    for node in range(given.nodes):
        name = f"node{node}"
        host = sst.Component(f"{name}.cpu", "lockstep.host")
        host.addParams({"record": given.record})
        gpu = sst.Component(f"{name}.gpu", "lockstep.gpu")
        gpu.addParams(
            {
                "gpu": given.gpu,
                "settings": given.set,
                "sm_groups": given.sm_groups,
                "statistics_file": given.gpu_statistics if node == 0 else "",
                "verbose": 1,
            }
        )
        others = [host, *fill_memory(gpu, name, given)]
        link = sst.Link(f"{name}.calls")
        link.connect((host, "gpu", LINK_LATENCY), (gpu, "host", LINK_LATENCY))
        if len(places) > 1:
            for other in others:
                other.setRank(*places[2 * node % len(places)])
            gpu.setRank(*places[(2 * node + 1) % len(places)])


def main():
    given = arguments()
    build(given)
    if given.statistics:
        sst.setStatisticLoadLevel(1)
        sst.setStatisticOutput("sst.statOutputCSV", {"filepath": given.statistics})
        sst.enableAllStatisticsForComponentType("lockstep.gpu")
        sst.enableAllStatisticsForComponentType("lockstep.host")


main()
