//! Whole files in, GPU files out.

use super::*;
use crate::{GpuConfig, load};
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// A small GPU in the words of Accel-Sim.
const SMALL: &str = "\
# a comment
-gpgpu_compute_capability_major 7
-gpgpu_compute_capability_minor 5
-gpgpu_n_clusters 4
-gpgpu_n_cores_per_cluster 2
-gpgpu_n_mem 2
-gpgpu_n_sub_partition_per_mchannel 2
-gpgpu_clock_domains 1000.0:1000.0:900.0:500.0
-gpgpu_shader_registers 65536
-gpgpu_shader_core_pipeline 1024:32
-gpgpu_shader_cta 16
-gpgpu_num_sched_per_core 4
-gpgpu_scheduler lrr
-ptx_opcode_latency_int 4,13,4,5,145,21
-ptx_opcode_initiation_int 2,2,2,2,8,4
-gpgpu_num_int_units 2
-gpgpu_adaptive_cache_config 1
-gpgpu_shmem_option 32,64
-gpgpu_unified_l1d_size 96
-gpgpu_cache:dl1 S:4:128:64,L:T:m:L:L,A:384:48,16:0,32
-gpgpu_shmem_size 65536
-gpgpu_cache:dl2 S:64:128:16,L:B:m:L:P,A:192:4,32:0,32
-gpgpu_perfect_inst_const_cache 1
-icnt_flit_size 40
-gpgpu_l2_rop_latency 160
-dram_latency 100
-gpgpu_dram_scheduler 1
-gpgpu_dram_buswidth 2
-gpgpu_dram_burst_length 16
-dram_data_command_freq_ratio 4  # quad
-gpgpu_dram_timing_opt \"nbk=16:CCD=4:RRD=10:RCD=20:RAS=50:RP=20:RC=62:
                        CL=20:WL=8:CDLR=9:WR=20:nbkgrp=4:CCDL=4:RTPL=4\"
-gpgpu_n_clustres 4
-power_simulation_enabled 0
";

/// What a second file adds.
const TRACE: &str = "\
-trace_opcode_latency_initiation_int 2,4
-specialized_unit_1 1,4,4,4,4,BRA
-trace_opcode_latency_initiation_spec_op_1 3,2
-specialized_unit_4 1,4,200,4,4,XYZ
-trace_opcode_latency_initiation_spec_op_4 200,4
";

fn files(texts: &[&str]) -> Vec<(String, String)> {
    let named = texts.iter().enumerate();
    named
        .map(|(index, text)| (format!("file{index}.config"), (*text).to_string()))
        .collect()
}

/// The GPU that an imported file describes, read as a user's file is.
fn read(imported: &Imported) -> GpuConfig {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("lockstep-import-{}-{number}.toml", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, &imported.text).unwrap();
    let config = load::<&str>(path.to_str(), &[]);
    std::fs::remove_file(&path).unwrap();
    config.unwrap_or_else(|error| panic!("{error}\n{}", imported.text))
}

fn check(texts: &[&str], expected: Expect) {
    match import(&files(texts), None) {
        Ok(imported) => expected.assert_eq(&imported.text),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

#[test]
fn options_become_a_gpu_file_with_their_places() {
    check(
        &[SMALL, TRACE],
        expect![[r##"
            # Imported from file0.config and file1.config
            base = "rtx2060"

            [device]
            compute-capability = "7.5"  # [published: -gpgpu_compute_capability_major 7, -gpgpu_compute_capability_minor 5]
            sms = 8  # [derived: -gpgpu_n_clusters 4, -gpgpu_n_cores_per_cluster 2; clusters times cores]
            clock = "1000 MHz"  # [published: -gpgpu_clock_domains 1000.0:1000.0:900.0:500.0]
            memory-clock = "1000 MHz"  # [derived: -gpgpu_clock_domains 1000.0:1000.0:900.0:500.0, -dram_data_command_freq_ratio 4; the fourth; what a program reads is half the data rate]
            memory-bus-width = 32  # [derived: -gpgpu_dram_buswidth 2, -dram_data_command_freq_ratio 4, -gpgpu_dram_burst_length 16; bytes of the bus, chips and data rate together]

            [dram]
            channels = 2  # [derived: -gpgpu_n_mem 2, -gpgpu_n_sub_partition_per_mchannel 2, -gpgpu_cache:dl2 at file0.config:22; channels times sub-partitions, a cache each]
            clock = "500 MHz"  # [derived: -gpgpu_clock_domains 1000.0:1000.0:900.0:500.0, -dram_data_command_freq_ratio 4; the fourth; what a program reads is half the data rate]
            bytes-per-cycle = "8 B/cycle"  # [derived: -gpgpu_dram_buswidth 2, -dram_data_command_freq_ratio 4, -gpgpu_dram_burst_length 16; bytes of the bus, chips and data rate together]
            burst = "32 B"  # [derived: -gpgpu_dram_buswidth 2, -dram_data_command_freq_ratio 4, -gpgpu_dram_burst_length 16; bytes of the bus, chips and data rate together]
            back-end = "timing"  # [derived: -gpgpu_dram_scheduler 1; 0 is first come, first served; 1 takes open rows first]
            row-cycle-time = "124000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            activate-interval = "20000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            banks = 8  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            latency = "180 cycles"  # [derived: -dram_latency 100, -gpgpu_dram_timing_opt at file0.config:31; and the commands of a closed row, in core cycles]

            [dram.command-timing]
            tRCD = "40000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            tCL = "40000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            tRC = "124000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            tRTP = "8000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            tRP = "40000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            tRRD = "20000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            tCCDL = "8000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            tWR = "40000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]
            tWTR = "18000 ps"  # [derived: -gpgpu_dram_timing_opt at file0.config:31; cycles of the DRAM's clock; banks behind a slice]

            [interconnect]
            request-bytes-per-cycle = "40 B/cycle"  # [derived: -icnt_flit_size 40; a flit a cycle of the interconnect; 32 bytes of it are data]
            reply-bytes-per-cycle = "40 B/cycle"  # [derived: -icnt_flit_size 40; a flit a cycle of the interconnect; 32 bytes of it are data]
            packet-header = "8 B"  # [derived: -icnt_flit_size 40; a flit a cycle of the interconnect; 32 bytes of it are data]
            request-latency = "70 cycles"  # [derived: -gpgpu_l2_rop_latency 160; as request, hit and reply together, 7, 2 and 7 parts of 16]
            reply-latency = "70 cycles"  # [derived: -gpgpu_l2_rop_latency 160; as request, hit and reply together, 7, 2 and 7 parts of 16]

            [interconnect.network]
            clock = "1000 MHz"  # [published: -gpgpu_clock_domains 1000.0:1000.0:900.0:500.0]
            flit = "40 B"  # [derived: -icnt_flit_size 40; a flit a cycle of the interconnect; 32 bytes of it are data]

            [l1]
            sets = 4  # [derived: -gpgpu_cache:dl1 at file0.config:20; misses in sectors, 4 a line]
            mshrs = 1536  # [derived: -gpgpu_cache:dl1 at file0.config:20; misses in sectors, 4 a line]

            [l2]
            clock = "900 MHz"  # [published: -gpgpu_clock_domains 1000.0:1000.0:900.0:500.0]
            hit-latency = "20 cycles"  # [derived: -gpgpu_l2_rop_latency 160; as request, hit and reply together, 7, 2 and 7 parts of 16]
            slices = 4  # [derived: -gpgpu_n_mem 2, -gpgpu_n_sub_partition_per_mchannel 2, -gpgpu_cache:dl2 at file0.config:22; channels times sub-partitions, a cache each]
            capacity = "512 KiB"  # [derived: -gpgpu_n_mem 2, -gpgpu_n_sub_partition_per_mchannel 2, -gpgpu_cache:dl2 at file0.config:22; channels times sub-partitions, a cache each]
            ways = 16  # [derived: -gpgpu_n_mem 2, -gpgpu_n_sub_partition_per_mchannel 2, -gpgpu_cache:dl2 at file0.config:22; channels times sub-partitions, a cache each]
            mshrs = 192  # [derived: -gpgpu_n_mem 2, -gpgpu_n_sub_partition_per_mchannel 2, -gpgpu_cache:dl2 at file0.config:22; channels times sub-partitions, a cache each]
            mshr-targets = 4  # [derived: -gpgpu_n_mem 2, -gpgpu_n_sub_partition_per_mchannel 2, -gpgpu_cache:dl2 at file0.config:22; channels times sub-partitions, a cache each]

            [sm]
            registers = 65536  # [published: -gpgpu_shader_registers 65536]
            blocks = 16  # [published: -gpgpu_shader_cta 16]
            sub-cores = 4  # [published: -gpgpu_num_sched_per_core 4]
            warps = 32  # [derived: -gpgpu_shader_core_pipeline 1024:32; threads over 32]
            scheduler = "loose-round-robin"  # [published: -gpgpu_scheduler lrr]
            unified-data-cache = "96 KiB"  # [derived: -gpgpu_shmem_size 65536, -gpgpu_shmem_option 32,64, -gpgpu_unified_l1d_size 96, -gpgpu_adaptive_cache_config 1, -gpgpu_cache:dl1 at file0.config:20; L1 and shared memory together]
            shared-carveouts = ["32 KiB", "64 KiB"]  # [derived: -gpgpu_shmem_size 65536, -gpgpu_shmem_option 32,64, -gpgpu_unified_l1d_size 96, -gpgpu_adaptive_cache_config 1, -gpgpu_cache:dl1 at file0.config:20; L1 and shared memory together]
            shared-per-block = "48 KiB"  # [derived: -gpgpu_shmem_size 65536, -gpgpu_shmem_option 32,64, -gpgpu_unified_l1d_size 96, -gpgpu_adaptive_cache_config 1, -gpgpu_cache:dl1 at file0.config:20; L1 and shared memory together]
            shared-per-block-optin = "48 KiB"  # [derived: -gpgpu_shmem_size 65536, -gpgpu_shmem_option 32,64, -gpgpu_unified_l1d_size 96, -gpgpu_adaptive_cache_config 1, -gpgpu_cache:dl1 at file0.config:20; L1 and shared memory together]
            shared-reserved = "0 B"  # [derived: -gpgpu_shmem_size 65536, -gpgpu_shmem_option 32,64, -gpgpu_unified_l1d_size 96, -gpgpu_adaptive_cache_config 1, -gpgpu_cache:dl1 at file0.config:20; L1 and shared memory together]

            [sm.front-end]
            l0 = "0 B"  # [derived: -gpgpu_perfect_inst_const_cache 1; every fetch hits]
            constant-cache = "0 B"  # [derived: -gpgpu_perfect_inst_const_cache 1; every fetch hits]

            [sm.interval]
            alu = "8 cycles"  # [derived: -trace_opcode_latency_initiation_int 2,4, -gpgpu_num_int_units 2; for a sub-core's share of the units]
            branch = "2 cycles"  # [derived: -specialized_unit_1 1,4,4,4,4,BRA, -trace_opcode_latency_initiation_spec_op_1 3,2; latency and interval of the pair]

            [sm.latency]
            integer = "4 cycles"  # [derived: -ptx_opcode_latency_int 4,13,4,5,145,21; number 1 of the list]
            wide-multiply = "5 cycles"  # [derived: -ptx_opcode_latency_int 4,13,4,5,145,21; number 4 of the list]
            shuffle = "21 cycles"  # [derived: -ptx_opcode_latency_int 4,13,4,5,145,21; number 6 of the list]
            branch = "3 cycles"  # [derived: -specialized_unit_1 1,4,4,4,4,BRA, -trace_opcode_latency_initiation_spec_op_1 3,2; latency and interval of the pair]
        "##]],
    );
}

#[test]
fn the_gpu_is_the_one_that_was_described() {
    let gpu = read(&import(&files(&[SMALL, TRACE]), None).unwrap());
    assert_eq!(gpu.device.sms, 8);
    assert_eq!(gpu.device.compute_capability.architecture(), 75);
    assert_eq!(gpu.sm.warps, 32);
    assert_eq!((gpu.l2.slices, gpu.dram.channels), (4, 2));
    assert_eq!(gpu.l2.capacity.0, 64 * 128 * 16 * 4);
    assert_eq!(gpu.sm.unified_data_cache.0, 96 << 10);
    assert_eq!(
        gpu.dram.command_timing.t_rcd.0, 40_000_000,
        "20 cycles of 500 MHz"
    );
    // 4 sub-cores share 2 units with an interval of 4.
    assert_eq!(gpu.sm.interval.alu.0, 8);
    assert_eq!(gpu.sm.latency.branch.0, 3);
}

#[test]
fn what_has_no_counterpart_says_what_it_would_have_changed() {
    let imported = import(&files(&[SMALL, TRACE]), None).unwrap();
    let unused: Vec<String> = imported
        .unused
        .iter()
        .map(|(key, because)| format!("{key}: {because}"))
        .collect();
    expect![[r#"
        -gpgpu_cache:dl1 (L:T:m:L:L; 16:0,32): policies, set index and queues would be these; here L1 writes through, is filled on a miss and replaces by LRU, or by sampled LRU with `l1.replacement-candidates`
        -gpgpu_cache:dl2 (L:B:m:L:P; 32:0,32): policies, set index and queues would be these; here L2 writes back, replaces by LRU, hashes its sets, and its queue is that of `interconnect.credits`
        -gpgpu_clock_domains (interconnect): a crossbar would have a clock of its own; here its ports move so many bytes a core cycle, and only `mesh` and `switched` have that clock
        -gpgpu_dram_timing_opt (CCD): columns of different bank groups would follow so close; here bursts fill the bus
        -gpgpu_dram_timing_opt (RAS): a row would stay open so long; here tRC less tRP bounds it
        -gpgpu_dram_timing_opt (WL): data of a write would follow its command so late; here it takes the time of a read, tCL
        -gpgpu_dram_timing_opt (nbkgrp): banks would form so many groups; here tCCDL is between all columns of a bank
        -gpgpu_n_clustres: unknown; did you mean -gpgpu_n_clusters?
        -power_simulation_enabled: power; no model here knows it
        -ptx_opcode_initiation_int: nothing: -trace_opcode_latency_initiation_int is read after it
        -specialized_unit_4: instructions of this unit would have a latency and an interval of their own; no unit here has its name
        -trace_opcode_latency_initiation_spec_op_4: instructions of this unit would have a latency and an interval of their own; no unit here has its name"#]]
    .assert_eq(&unused.join("\n"));
}

#[test]
fn keys_of_uvmsmart_are_taken() {
    let text = "-gpgpu_clock_domains 1000.0:1000.0:1000.0:500.0\n-gddr_size 1GB\n-page_size 4KB\n-tlb_size 512\n-page_table_walk_latency 100\n-eviction_policy 4\n-invalidate_clean 1\n-reserve_accessed_page_percent 10\n-percentage_of_free_page_buffer 5\n-pcie_bandwidth 32.0GB/s\n-hardware_prefetch 2\n-hwprefetch_oversub 0\n-page_fault_latency 45000\n-enable_accurate_simulation 1\n-enable_dma 1\n-migrate_threshold 16\n-multiply_dma_penalty 4\n-enable_smart_runtime 1\n-sim_prof_enable 1\n";
    let imported = import(&files(&[text]), None).unwrap();
    assert!(imported.text.contains("base = \"gtx1080ti-uvmsmart\""));
    let uvm = read(&imported).uvm;
    assert_eq!(uvm.capacity.0, 1 << 30);
    assert_eq!((uvm.tlb.entries, uvm.walk.latency.0), (512, 68));
    assert_eq!(
        (uvm.evict.policy.as_str(), uvm.evict.clean.as_str()),
        ("lfu-2m", "drop")
    );
    assert_eq!((uvm.evict.reserve, uvm.evict.free_buffer), (10, 5));
    assert_eq!(uvm.link.gigabytes_per_second, 32);
    assert_eq!(uvm.prefetch.policy, "sequential-local");
    assert_eq!(uvm.prefetch.oversubscribed, "none");
    assert_eq!(
        uvm.fault.latency,
        lockstep_units::Duration::microseconds(45)
    );
    assert_eq!(
        (uvm.fault.service.as_str(), uvm.zero_copy.mode.as_str()),
        ("serial", "adaptive")
    );
    assert_eq!((uvm.zero_copy.threshold, uvm.zero_copy.penalty), (16, 4));
    let unused: Vec<&str> = imported
        .unused
        .iter()
        .map(|(key, _)| key.as_str())
        .collect();
    assert_eq!(unused, ["-enable_smart_runtime", "-sim_prof_enable"]);
}

#[test]
fn a_value_that_is_none_is_named_with_its_place() {
    check(
        &["-gpgpu_n_clusters X\n"],
        expect!["file0.config:1: `-gpgpu_n_clusters X`: write a number"],
    );
    check(
        &["-gpgpu_n_mem 2\n-gpgpu_cache:dl2 X\n"],
        expect![
            "file0.config:2: `-gpgpu_cache:dl2 X`: write a cache as `S:32:128:24,L:B:m:L:P,A:192:4,32:0,32`"
        ],
    );
    check(
        &["-eviction_policy 9\n"],
        expect!["file0.config:1: `-eviction_policy 9`: write a number from 0 to 5"],
    );
    check(
        &["[GPU]\nclock: 1GHz\n", "[GPU]\n"],
        expect![
            "file0.config: no line begins with an option such as `-gpgpu_n_clusters 80`; only files of options can be joined"
        ],
    );
}

#[test]
fn what_no_gpu_can_be_is_left_out_with_the_reason() {
    let imported = import(
        &files(&["-gpgpu_n_clusters 8\n-gpgpu_shader_cta 0\n"]),
        None,
    )
    .unwrap();
    assert_eq!(read(&imported).device.sms, 8);
    let (key, because) = &imported.unused[0];
    assert_eq!(key, "-gpgpu_shader_cta");
    assert!(because.contains("sm.blocks"), "{because}");
}

/// Options that exist, with values of every kind.
fn option() -> impl Strategy<Value = String> {
    let names = SMALL.lines().chain(TRACE.lines()).filter_map(|line| {
        let name = line.split_whitespace().next()?;
        name.starts_with('-').then(|| name.to_string())
    });
    let more = [
        "-page_size",
        "-gddr_size",
        "-pcie_bandwidth",
        "-page_fault_latency",
        "-x",
    ];
    let names: Vec<String> = names.chain(more.map(String::from)).collect();
    let values = prop_oneof![
        "[0-9]{1,25}",
        "-?[0-9]{1,4}(\\.[0-9]{1,3})?([:,][0-9]{1,9}){0,6}",
        "[NS]:[0-9]{1,12}:[0-9]{1,12}:[0-9]{1,12},L:B,A:[0-9]{1,12}:4,1",
        "[0-9]{1,20}[KMG]B",
        "(inf|NaN|1e308|\"|#|=|:|,)",
        "\\PC{0,12}",
    ];
    (prop::sample::select(names), values).prop_map(|(name, value)| format!("{name} {value}\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is written, there is a GPU file that can be read, or an error.
    #[test]
    fn any_options_are_imported_or_refused(options in prop::collection::vec(option(), 0..12)) {
        if let Ok(imported) = import(&files(&[&options.concat()]), None) {
            read(&imported);
        }
    }

    #[test]
    fn any_bytes_are_imported_or_refused(text in "\\PC{0,200}") {
        let _ = import(&files(&[&text]), None);
        let _ = import(&files(&[&format!("-a {text}\n{text}")]), None);
    }
}
