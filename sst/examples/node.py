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
        interface = gpu.setSubComponent("memory", "memHierarchy.standardInterface")
        cache = sst.Component(f"{name}.l2", "memHierarchy.Cache")
        cache.addParams(
            {
                "cache_frequency": "1.2GHz",
                "cache_size": "6MiB",
                "associativity": 16,
                "access_latency_cycles": 80,
                "mshr_num_entries": 4096,
                "max_requests_per_cycle": 32,
                "cache_line_size": 128,
                "L1": 1,
            }
        )
        controller = sst.Component(f"{name}.memory", "memHierarchy.MemController")
        controller.addParams({"clock": "1GHz", "addr_range_start": 0, "addr_range_end": 16 * 2**30 - 1})
        backend = controller.setSubComponent("backend", "memHierarchy.simpleMem")
        backend.addParams({"mem_size": "16GiB", "access_time": "200ns", "max_requests_per_cycle": -1})
        above = sst.Link(f"{name}.above_l2")
        above.connect((interface, "lowlink", "1ns"), (cache, "highlink", "1ns"))
        below = sst.Link(f"{name}.below_l2")
        below.connect((cache, "lowlink", "1ns"), (controller, "highlink", "1ns"))
        return [cache, controller]
    return []


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
