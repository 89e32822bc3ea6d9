//! Options of one number that are a key of ours, and options without a counterpart.

/// An option that is a key here.
pub(super) struct Row {
    /// The option.
    pub option: &'static str,
    /// The key.
    pub key: &'static str,
    /// What follows the number.
    pub unit: &'static str,
}

const fn row(option: &'static str, key: &'static str, unit: &'static str) -> Row {
    Row { option, key, unit }
}

/// Options of one number.
pub(super) const TAKEN: &[Row] = &[
    row("gpgpu_shader_registers", "sm.registers", ""),
    row("gpgpu_shader_cta", "sm.blocks", ""),
    row("gpgpu_num_sched_per_core", "sm.sub-cores", ""),
    row("gpgpu_shmem_num_banks", "sm.shared-banks", ""),
    row("gpgpu_smem_latency", "sm.latency.shared", " cycles"),
    row("smem_latency", "sm.latency.shared", " cycles"),
    row("gpgpu_l1_latency", "l1.hit-latency", " cycles"),
    row(
        "gpgpu_kernel_launch_latency",
        "launch.start-latency",
        " cycles",
    ),
    row(
        "gpgpu_max_concurrent_kernel",
        "dispatch.concurrent-kernels",
        "",
    ),
    row("tlb_size", "uvm.tlb.entries", ""),
    row("reserve_accessed_page_percent", "uvm.evict.reserve", ""),
    row(
        "percentage_of_free_page_buffer",
        "uvm.evict.free-buffer",
        "",
    ),
    row("migrate_threshold", "uvm.zero-copy.threshold", ""),
    row("multiply_dma_penalty", "uvm.zero-copy.penalty", ""),
];

/// Options that need more than a row: those that a misspelt one may have meant.
pub(super) const COMPUTED: &[&str] = &[
    "gpgpu_n_clusters",
    "gpgpu_n_cores_per_cluster",
    "gpgpu_n_mem",
    "gpgpu_n_sub_partition_per_mchannel",
    "gpgpu_n_mem_per_ctrlr",
    "gpgpu_clock_domains",
    "gpgpu_compute_capability_major",
    "gpgpu_compute_capability_minor",
    "gpgpu_shader_core_pipeline",
    "gpgpu_scheduler",
    "gpgpu_cache:dl1",
    "gpgpu_cache:dl2",
    "gpgpu_cache:il1",
    "gpgpu_const_cache:l1",
    "gpgpu_perfect_inst_const_cache",
    "gpgpu_shmem_size",
    "gpgpu_shmem_option",
    "gpgpu_shmem_per_block",
    "gpgpu_unified_l1d_size",
    "gpgpu_adaptive_cache_config",
    "gpgpu_l2_rop_latency",
    "icnt_flit_size",
    "dram_latency",
    "dram_data_command_freq_ratio",
    "gpgpu_dram_scheduler",
    "gpgpu_dram_buswidth",
    "gpgpu_dram_burst_length",
    "gpgpu_dram_timing_opt",
    "page_size",
    "page_table_walk_latency",
    "page_fault_latency",
    "gddr_size",
    "pcie_bandwidth",
    "hardware_prefetch",
    "hwprefetch_oversub",
    "eviction_policy",
    "enable_dma",
    "invalidate_clean",
    "enable_accurate_simulation",
];

/// Options without a counterpart, and what they would have changed. A name that ends in `*` stands
/// for all that begin with it; the first row that fits counts.
pub(super) const LEFT: &[(&str, &str)] = &[
    (
        "gpgpu_ptx_force_max_capability",
        "the newest PTX that programs may carry; every image that the GPU can run is taken here",
    ),
    (
        "gpgpu_ptx_*",
        "which code is executed and how it is written out; here --frontend and --mode say that",
    ),
    (
        "gpgpu_experimental_lib_support",
        "which libraries are looked into for code; here every program is run as it is",
    ),
    (
        "gpgpu_stack_size_limit",
        "the stack of a thread; here programs ask for it by cudaDeviceSetLimit",
    ),
    (
        "gpgpu_heap_size_limit",
        "the heap of the device; here programs ask for it by cudaDeviceSetLimit",
    ),
    (
        "gpgpu_runtime_sync_depth_limit",
        "how deep kernels may wait for kernels; here limits of CUDA 12 hold",
    ),
    (
        "gpgpu_runtime_pending_launch_count_limit",
        "launches by kernels that may wait; here programs ask for it by cudaDeviceSetLimit",
    ),
    (
        "gpgpu_cdp_enabled",
        "whether kernels launch kernels; here they always may",
    ),
    (
        "cdp_latency",
        "what launches by kernels cost; here the section [launch.device] has other parts",
    ),
    (
        "gpgpu_TB_launch_latency",
        "how much longer every block takes to start; here blocks leave at `dispatch.block-interval`",
    ),
    (
        "gpgpu_simd_model",
        "how lanes reconverge; here machine code and PTX say that themselves",
    ),
    (
        "gpgpu_occupancy_sm_number",
        "which rules give the occupancy; here the GPU's own",
    ),
    (
        "gpgpu_registers_per_block",
        "registers of a block at most; here those of the SM and of a thread bound it",
    ),
    (
        "gpgpu_ignore_resources_limitation",
        "blocks that fit nowhere would start; here they are refused",
    ),
    ("gpgpu_num_cta_barriers", "barriers of a block; here 16"),
    (
        "gpgpu_concurrent_kernel_sm",
        "whether kernels share an SM; here they do",
    ),
    (
        "gpgpu_pipeline_widths",
        "registers between stages of the pipeline; here a sub-core issues one instruction a cycle into units with intervals",
    ),
    ("gpgpu_num_sp_units", "nothing more: intervals have it"),
    ("gpgpu_num_int_units", "nothing more: intervals have it"),
    ("gpgpu_num_dp_units", "nothing more: intervals have it"),
    ("gpgpu_num_sfu_units", "nothing more: intervals have it"),
    (
        "gpgpu_num_tensor_core_units",
        "nothing more: intervals have it",
    ),
    (
        "gpgpu_num_mem_units",
        "load/store units of an SM; here it has one, behind a MIO queue for each sub-core",
    ),
    (
        "gpgpu_mem_unit_ports",
        "ports of the load/store unit; here `sm.interval.load-store` says how often it takes an instruction",
    ),
    (
        "gpgpu_tensor_core_avail",
        "whether there are tensor cores; here the compute capability says that",
    ),
    (
        "gpgpu_sub_core_model",
        "whether schedulers have units of their own; here they have",
    ),
    (
        "gpgpu_enable_specialized_operand_collector",
        "operand collectors; here operands are read within `sm.register-file.read-window`",
    ),
    (
        "gpgpu_operand_collector_*",
        "operand collectors; here operands are read within `sm.register-file.read-window`",
    ),
    (
        "gpgpu_num_reg_banks",
        "banks of the register file behind operand collectors; here `sm.register-file.banks` are of a sub-core, with ports of another kind",
    ),
    (
        "gpgpu_reg_file_port_throughput",
        "ports of register banks; here each has one",
    ),
    (
        "gpgpu_reg_bank_use_warp_id",
        "in which bank a register lies; here its number says that",
    ),
    (
        "gpgpu_shmem_limited_broadcast",
        "conflicts of old shared memories; here a word goes to all lanes that want it",
    ),
    (
        "gpgpu_shmem_warp_parts",
        "conflicts of old shared memories; here a warp is served as a whole",
    ),
    (
        "gpgpu_shmem_size*",
        "other sizes of shared memory that a program may prefer; here `sm.shared-carveouts` has them",
    ),
    (
        "gpgpu_coalesce_arch",
        "how lanes become accesses; here by lines of 128 and sectors of 32 bytes",
    ),
    (
        "gpgpu_max_insn_issue_per_warp",
        "instructions that a scheduler issues in a cycle; here one",
    ),
    (
        "gpgpu_dual_issue_diff_exec_units",
        "whether two instructions of a warp issue at once; here one does",
    ),
    (
        "gpgpu_inst_fetch_throughput",
        "instructions fetched in a cycle; here a sub-core's cache delivers one",
    ),
    (
        "gpgpu_cache:dl1Pref*",
        "L1 of another size that a program may prefer; here L1 is what shared memory leaves",
    ),
    (
        "gpgpu_cache:dl2_texture_only",
        "L2 would hold textures only; here it holds everything",
    ),
    (
        "gpgpu_tex_cache:l1",
        "a texture cache of its own; here textures are read through L1",
    ),
    (
        "gpgpu_l1_banks*",
        "banks of L1; here `l1.bytes-per-cycle` says what hits deliver",
    ),
    (
        "gpgpu_l1_cache_write_ratio",
        "how many lines of L1 may be written; here L1 writes through",
    ),
    (
        "gpgpu_gmem_skip_L1D",
        "loads of global memory would pass L1 by; here instructions say that themselves",
    ),
    (
        "gmem_skip_L1D",
        "loads of global memory would pass L1 by; here instructions say that themselves",
    ),
    (
        "gpgpu_flush_l1_cache",
        "L1 is emptied between kernels; here it is, as on a GPU",
    ),
    (
        "gpgpu_flush_l2_cache",
        "L2 would be emptied between kernels; here --cold-caches does that",
    ),
    (
        "gpgpu_perfect_mem",
        "every access would hit; no such memory is here",
    ),
    (
        "l2_ideal",
        "every access would hit L2; no such cache is here",
    ),
    (
        "gpgpu_dram_partition_queues",
        "queues around a slice; here a slice takes what arrives in order of time",
    ),
    (
        "gpgpu_n_cluster_ejection_buffer_size",
        "flits that wait at an SM; here credits bound messages under way",
    ),
    (
        "gpgpu_n_ldst_response_buffer_size",
        "replies that wait at a load/store unit; here they are taken as they come",
    ),
    (
        "gpgpu_memory_partition_indexing",
        "how addresses are hashed to slices; here the hash is the model's own",
    ),
    (
        "gpgpu_mem_addr*",
        "which bits of an address choose channel, bank and row; here the hash is the model's own",
    ),
    (
        "gpgpu_perf_sim_memcpy",
        "whether copies leave lines in L2; here they do",
    ),
    (
        "gpgpu_local_mem_map",
        "where local memory lies; here lanes of a warp lie side by side",
    ),
    (
        "network_mode",
        "which network is simulated; here `interconnect.kind` is kept from the GPU below",
    ),
    (
        "inter_config_file",
        "a network in a file of its own, which is not read; `interconnect.kind` and `interconnect.network` can be set by hand",
    ),
    (
        "icnt_*",
        "buffers and arbiters of the crossbar; here ports have a bandwidth and messages arrive in order of time",
    ),
    (
        "gpgpu_frfcfs_dram_sched_queue_size",
        "requests among which a channel chooses; here `dram.back-end` has a queue of its own",
    ),
    (
        "gpgpu_dram_return_queue_size",
        "replies that wait at a channel; here they leave as they are ready",
    ),
    (
        "gpgpu_simple_dram_model",
        "DRAM without banks; here `dram.back-end = \"simple\"` is the nearest",
    ),
    (
        "dram_dual_bus_interface",
        "row and column commands at once; here they do not wait for each other",
    ),
    (
        "dram_bnk*",
        "which bits choose a bank; here the hash is the model's own",
    ),
    (
        "dram_seperate_write_queue_enable",
        "whether writes wait in a queue of their own; here `dram.back-end` decides",
    ),
    (
        "dram_write_queue_size",
        "how many writes wait; here `dram.back-end` decides",
    ),
    (
        "dram_elimnate_rw_turnaround",
        "turning the bus would be free; here tWTR is between reads and writes",
    ),
    (
        "enable_smart_runtime",
        "policies would change with the pattern of accesses; here they stay what they are",
    ),
    (
        "sim_prof_enable",
        "statistics of the GMMU; here every run has them",
    ),
    (
        "gpgpu_deadlock_detect",
        "whether a kernel that stands still is ended; here it always is",
    ),
    (
        "gpgpu_max_*",
        "how much is simulated; here --launches and --kernels choose",
    ),
    (
        "gpgpu_memlatency_stat",
        "which statistics are kept; here all are",
    ),
    (
        "gpgpu_runtime_stat",
        "which statistics are kept; here all are",
    ),
    (
        "gpgpu_cflog_interval",
        "which statistics are kept; here all are",
    ),
    ("gpgpu_warp*", "which statistics are kept; here all are"),
    (
        "enable_ptx_file_line_stats",
        "which statistics are kept; here all are",
    ),
    (
        "ptx_line_stats_filename",
        "where statistics go; here into the run folder",
    ),
    (
        "liveness_message_freq",
        "how often progress is told; here a terminal shows it",
    ),
    (
        "gpgpu_simt_core_sim_order",
        "in which order cores are simulated; no result depends on it here",
    ),
    (
        "save_embedded_ptx",
        "whether code is written out; `lockstep disasm` shows it",
    ),
    ("keep", "whether files are left behind; nothing is"),
    (
        "visualizer*",
        "output for a viewer; here the run folder has it",
    ),
    ("checkpoint*", "checkpoints; there are none here"),
    ("resume*", "checkpoints; there are none here"),
    ("power*", "power; no model here knows it"),
    ("steady*", "power; no model here knows it"),
    ("gpuwattch*", "power; no model here knows it"),
    ("accelwattch*", "power; no model here knows it"),
    ("hw_perf*", "power; no model here knows it"),
    ("dvfs*", "power; no model here knows it"),
    ("gpgpu_clock_gated*", "power; no model here knows it"),
    ("n_regfile_gating_group", "power; no model here knows it"),
    (
        "trace_opcode_latency_initiation_*",
        "latency and interval of a unit that no other option describes",
    ),
    (
        "trace_*",
        "messages about what happens; here --debug writes them",
    ),
    (
        "ptx_opcode_*",
        "latencies of operations that have no unit of their own here",
    ),
];

/// What a row of [`LEFT`] says about an option.
pub(super) fn left(option: &str) -> Option<&'static str> {
    let exact = LEFT.iter().find(|(name, _)| *name == option);
    let fits = |name: &str| {
        let begin = name.strip_suffix('*');
        begin.is_some_and(|begin| option.starts_with(begin))
    };
    let found = exact.or_else(|| LEFT.iter().find(|(name, _)| fits(name)));
    found.map(|(_, because)| *because)
}
