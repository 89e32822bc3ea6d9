//! What the parts of a GPU count over a whole run.

use lockstep_stats::statistics;

use crate::counters::Counters;

statistics! {
    /// What one SM counts.
    pub struct SmStats {
        /// Blocks that were started.
        blocks: Counter [blocks],
        /// Warps that were started.
        warps: Counter [warps],
        /// Cycles in which a block was resident, summed over launches.
        active: Counter [cycles],
        /// Warp instructions of blocks that have ended.
        instructions: Counter [instructions],
        /// Instructions times the lanes at them, of blocks that have ended.
        thread_instructions: Counter [instructions],
        /// Sectors of global and local memory that were asked for, of blocks that have ended.
        global_sectors: Counter [sectors],
        /// Strong accesses sent to slices, of blocks that have ended.
        strong_accesses: Counter [accesses],
    }
}

impl SmStats {
    /// Adds what a block counted.
    pub fn count(&mut self, counters: &Counters) {
        self.instructions.add(counters.inst_executed);
        self.thread_instructions.add(counters.thread_inst_executed);
        self.global_sectors.add(counters.global_sectors);
        self.strong_accesses.add(counters.strong_accesses);
    }
}

statistics! {
    /// What one L2 slice counts.
    pub struct SliceStats {
        /// Sectors read.
        read_sectors: Counter [sectors],
        /// Sectors read that were here.
        read_hits: Counter [sectors],
        /// Sectors read by an SM that were answered along with those of another.
        merged_sectors: Counter [sectors],
        /// Sectors written.
        written_sectors: Counter [sectors],
        /// Sectors that the other half of the cache had to ask for.
        fabric_sectors: Counter [sectors],
        /// Those that were where it asked.
        fabric_hits: Counter [sectors],
        /// SMs that asked it for something in a launch, summed over launches.
        contacts: Counter [pairs],
        /// Sectors looked up for atomics and strong accesses.
        strong_sectors: Counter [sectors],
        /// Those that were here.
        strong_hits: Counter [sectors],
        /// Bytes read from DRAM.
        dram_read: Counter [bytes],
        /// Bytes written to DRAM.
        dram_written: Counter [bytes],
        /// Accesses to DRAM that found their row open.
        row_hits: Counter [accesses],
        /// Accesses to DRAM that did not.
        row_misses: Counter [accesses],
        /// Strong accesses performed.
        strong_accesses: Counter [accesses],
        /// Lanes of atomics and reductions performed.
        atomic_lanes: Counter [lanes],
    }
}

statistics! {
    /// What the dispatcher counts.
    pub struct DispatchStats {
        /// Launches that were started.
        launches: Counter [launches],
        /// Blocks that were sent to SMs.
        blocks: Counter [blocks],
        /// Bytes of the device heap that were allocated.
        heap_allocated: Counter [bytes],
        /// Allocations from the device heap that found no room.
        heap_failures: Counter [allocations],
    }
}
