"""The names that NVIDIA's profilers have for what is measured, by our name."""

import re

# In the order in which they are dropped, last first, where one pass does not take all.
ONE_PASS = {
    "cycles": "sm__cycles_elapsed.max",
    "duration_ns": "gpu__time_duration.sum",
    "inst_executed": "smsp__inst_executed.sum",
    "thread_inst_executed": "smsp__thread_inst_executed.sum",
    "warps_launched": "smsp__warps_launched.sum",
    "inst_issued": "smsp__inst_issued.sum",
    "active_cycles": "sm__cycles_active.sum",
    "l2_cycles": "lts__cycles_elapsed.max",
    "dram_cycles": "dram__cycles_elapsed.max",
}
TRAFFIC = {
    "l1_sectors": "l1tex__t_sectors.sum",
    "l1_sector_hits": "l1tex__t_sectors_lookup_hit.sum",
    "l1_requests": "l1tex__t_requests.sum",
    "l2_sectors": "lts__t_sectors.sum",
    "l2_sector_hits": "lts__t_sectors_lookup_hit.sum",
    "l2_sectors_of_sms": "lts__t_sectors_srcunit_tex.sum",
    "l2_sector_hits_of_sms": "lts__t_sectors_srcunit_tex_lookup_hit.sum",
    "dram_bytes_read": "dram__bytes_read.sum",
    "dram_bytes_written": "dram__bytes_write.sum",
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "shared_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
}
# Who asks L2: what GPCs and the fabric between its partitions ask is the kernel's, what others ask (host, copy
# engines, profiler) is not.
SOURCES = {
    "l2_sectors_of_gpcs": "lts__t_sectors_srcnode_gpc.sum",
    "l2_sectors_of_fabric": "lts__t_sectors_srcunit_ltcfabric.sum",
    "l2_sectors": TRAFFIC["l2_sectors"],
    "l2_sectors_of_sms": TRAFFIC["l2_sectors_of_sms"],
    "dram_bytes_read": TRAFFIC["dram_bytes_read"],
}
PIPES = {
    name: f"sm__inst_executed_pipe_{name}.sum"
    for name in ["alu", "fma", "fmaheavy", "fp16", "fp64", "lsu", "xu", "tensor", "uniform", "cbu", "adu", "tex"]
}
STALLED = re.compile(r"smsp__average_warps_issue_stalled_(?!.*not_issued)([a-z_]+)_per_issue_active")
# The counters of the exact mode of `lockstep sample`.
EVENTS = {
    name: ONE_PASS[name]
    for name in ["inst_executed", "active_cycles", "inst_issued", "thread_inst_executed", "warps_launched"]
}
