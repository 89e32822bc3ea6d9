//! Kernels that run side by side have their own traffic of L2 and DRAM each.

use std::sync::Arc;

use crate::common::*;
use lockstep_gpu::{KernelRecord, Mode};
use lockstep_isa::Module;
use lockstep_isa::memory::Space;
use lockstep_stats::Table;

/// Every thread goes round some times; lanes whose number is below a limit read and write another word
/// each time.
fn module() -> Arc<Module> {
    let mut k = Assembler::new();
    let [thread, address, value, turns] = k.regs();
    let [more, reads] = [k.pred(), k.pred()];
    k.thread(thread);
    k.mul(address, thread, imm(4));
    k.add(address, address, Assembler::argument(8));
    k.mov(turns, Assembler::argument(0));
    k.less(reads, thread, Assembler::argument(4));
    let again = k.here();
    k.guarded(reads, true, |k| {
        k.load(value, Space::Global, BASE, address, WEAK);
        k.add(value, value, imm(1));
        k.store(Space::Global, BASE, address, value, WEAK);
    });
    k.add(address, address, imm(4 * 128));
    k.sub(turns, turns, imm(1));
    k.not_equal(more, turns, imm(0));
    k.branch_if(more, true, again);
    k.finish()
}

/// Rounds, threads that use memory, and where.
const KERNELS: [[u32; 3]; 3] = [[200, 128, 0], [100, 32, 512 << 10], [300, 0, 768 << 10]];

/// Their records, run side by side, and the sum of a statistic over slices.
fn together(statistic: &str) -> (Vec<KernelRecord>, u64) {
    let mut gpu = gpu(&small(4), Mode::Timing);
    let module = module();
    let ids: Vec<_> = (0u32..)
        .zip(KERNELS)
        .map(|(queue, arguments)| {
            let mut one = launch(&module, 1, 128, &arguments);
            one.queue = queue.into();
            gpu.launch(one).unwrap()
        })
        .collect();
    let records = ids
        .into_iter()
        .map(|id| gpu.run_until_complete(id).unwrap())
        .collect();
    let mut table = Table::default();
    gpu.statistics("gpu", &mut table);
    let rows = table.rows().into_iter();
    let sum = rows
        .filter(|row| row.component.starts_with("gpu/slice/") && row.name == statistic)
        .map(|row| row.value)
        .sum();
    (records, sum)
}

#[test]
fn kernels_side_by_side_have_their_own_traffic() {
    let (records, dram_read) = together("dram_read");
    assert!(records[1].start < records[0].end && records[2].start < records[0].end);
    let of = |counter: fn(&KernelRecord) -> u64| records.iter().map(counter).collect::<Vec<_>>();
    // Four sectors a warp and round, read and written.
    let sectors = of(|record| record.counters.l2_sectors_of_sms);
    assert_eq!(sectors, [2 * 200 * 16, 2 * 100 * 4, 0]);
    let read = of(|record| record.counters.dram_bytes_read);
    assert_eq!(read.iter().sum::<u64>(), dram_read, "the sum is the whole");
    assert!(read[0] > 3 * read[1] && read[1] > 0, "{read:?}");
    assert_eq!(read[2], 0, "a kernel without accesses has no traffic");
    let lookups = of(|record| record.counters.l2_sectors);
    assert!(lookups[0] > lookups[1] && lookups[2] == 0, "{lookups:?}");
    for record in &records {
        assert!(record.counters.l2_sectors_overhead > 0, "it stands apart");
    }
}

#[test]
fn a_kernel_has_the_traffic_that_it_has_alone() {
    let (records, _) = together("dram_read");
    for (arguments, beside) in KERNELS.iter().zip(&records) {
        let mut gpu = gpu(&small(4), Mode::Timing);
        let alone = run(&mut gpu, &module(), 1, 128, arguments).counters;
        let beside = &beside.counters;
        assert_eq!(alone.l2_sectors_of_sms, beside.l2_sectors_of_sms);
        assert_eq!(alone.dram_bytes_read, beside.dram_bytes_read);
    }
}
