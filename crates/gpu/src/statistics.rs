//! What the parts of a GPU count over a whole run.

use lockstep_counters::Counters;
use lockstep_engine::LinkUse;
use lockstep_stats::{Description, Statistics, statistics};
use lockstep_uvm::{GmmuStats, TlbStats};

use crate::crossbar::network::NetworkStats;
use crate::l2::PeerStats;
use crate::sm::statistics::SubCoreStats;

statistics! {
    /// What one L2 slice counts.
    pub struct SliceStats {
        /// Sectors read.
        read_sectors: Counter [sectors],
        /// Sectors read that were here.
        read_hits: Counter [sectors],
        /// Sectors read by an SM that were answered along with those of another SM of its GPC.
        coalesced_sectors: Counter [sectors],
        /// Sectors written.
        written_sectors: Counter [sectors],
        /// Sectors that the other L2 partition had to ask for.
        fabric_sectors: Counter [sectors],
        /// Those that were where it asked.
        fabric_hits: Counter [sectors],
        /// Bytes that crossed the fabric from the other L2 partition to this slice.
        fabric_bytes_in: Counter [bytes],
        /// Bytes that crossed the fabric from this slice to the other L2 partition.
        fabric_bytes_out: Counter [bytes],
        /// Times that the queue before the fabric was full, so that the slice took up nothing.
        fabric_stalls: Counter [requests],
        /// SMs that used it in a launch and flush it when the launch ends, summed over launches.
        end_of_kernel_flushes: Counter [flushes],
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
        /// Times that DRAM refused a request, because its queue was full.
        dram_refusals: Counter [requests],
        /// Misses that took an MSHR.
        mshr_allocations: Counter [requests],
        /// Requests that were merged with an outstanding miss of their line.
        mshr_merges: Counter [requests],
        /// Requests that waited for an MSHR, or for room in that of their line.
        mshr_stalls: Counter [requests],
        /// Strong accesses performed.
        strong_accesses: Counter [accesses],
        /// Lanes of atomics and reductions performed.
        atomic_lanes: Counter [lanes],
    }
}

statistics! {
    /// What one kind of access finds in a cache.
    pub struct AccessStats {
        /// Sectors that were there.
        hits: Counter [sectors],
        /// Sectors that were on their way already; their access waits in an MSHR.
        hits_on_miss: Counter [sectors],
        /// Sectors that were missing of a line that was there.
        sector_misses: Counter [sectors],
        /// Sectors of lines that were not there.
        line_misses: Counter [sectors],
    }
}

impl AccessStats {
    /// Some sectors of a line, of which some were missing; `known` if the line was there.
    #[inline]
    pub fn look_up(&mut self, sectors: u8, missing: u8, known: bool) {
        self.hits.add(u64::from((sectors & !missing).count_ones()));
        let missing = u64::from(missing.count_ones());
        match known {
            true => self.sector_misses.add(missing),
            false => self.line_misses.add(missing),
        }
    }
}

statistics! {
    /// What a cache of whole lines counts.
    pub struct LineCacheStats {
        /// Lookups that found their line, or found it on its way.
        hits: Counter [lookups],
        /// Lookups that did not.
        misses: Counter [lookups],
    }
}

statistics! {
    /// What the MSHRs of an SM count.
    pub struct MshrStats {
        /// MSHRs that were allocated: requests to L2.
        allocations: Counter [requests],
        /// Targets that were added to an MSHR that was open already.
        merges: Counter [targets],
        /// The most MSHRs that were open at once.
        peak: Maximum [requests],
        /// The most sectors that were on their way at once.
        peak_sectors: Maximum [sectors],
        /// Answers that came while no further miss could begin.
        full: Counter [answers],
    }
}

statistics! {
    /// What an SM counts of the room that slices have for its requests.
    pub struct CreditStats {
        /// Requests that were held back because their slice had no room for them.
        held: Counter [requests],
        /// The most requests that were held back at once.
        peak: Maximum [requests],
    }
}

statistics! {
    /// What one bank of DRAM counts.
    pub struct BankStats {
        /// Accesses that read.
        reads: Counter [accesses],
        /// Accesses that write.
        writes: Counter [accesses],
        /// Accesses that found their row open.
        row_hits: Counter [accesses],
        /// Accesses that did not.
        row_misses: Counter [accesses],
        /// Rows that were opened.
        activates: Counter [commands],
    }
}

statistics! {
    /// What one sender counts on one kind of link.
    pub struct LinkStats {
        /// Packets that left.
        packets: Counter [packets],
        /// Their bytes.
        bytes: Counter [bytes],
        /// How long the link was busy with them.
        busy: Counter [picoseconds],
        /// How long packets waited for others before they began to leave, summed over packets.
        wait: Counter [picoseconds],
    }
}

impl From<LinkUse> for LinkStats {
    fn from(used: LinkUse) -> Self {
        let mut stats = Self::default();
        stats.packets.add(used.messages);
        stats.bytes.add(used.bytes);
        stats.busy.add(used.busy.0 / 1000);
        stats.wait.add((used.waited / 1000) as u64);
        stats
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

/// Components that are alike, and what each of them counts.
pub struct ComponentKind {
    /// Their path below the GPU: `gpu N/sm/N`.
    pub path: &'static str,
    /// What one of them is, in a sentence.
    pub help: &'static str,
    /// What it counts.
    pub statistics: Vec<&'static Description>,
}

/// All kinds of components of a GPU, in the order of `stats.csv`.
pub fn components() -> Vec<ComponentKind> {
    fn kind<S: Statistics + Default>(path: &'static str) -> ComponentKind {
        let mut statistics = Vec::new();
        S::default().visit(&mut |description, _| statistics.push(description));
        ComponentKind {
            path,
            help: S::HELP,
            statistics,
        }
    }
    vec![
        kind::<DispatchStats>("gpu N/dispatcher"),
        kind::<Counters>("gpu N/sm/N"),
        kind::<SubCoreStats>("gpu N/sm/N/sub_core/N"),
        kind::<LineCacheStats>("gpu N/sm/N/sub_core/N/l0i"),
        kind::<LineCacheStats>("gpu N/sm/N/l1i"),
        kind::<LineCacheStats>("gpu N/sm/N/constant_cache"),
        kind::<AccessStats>("gpu N/sm/N/l1/KIND"),
        kind::<MshrStats>("gpu N/sm/N/mshr"),
        kind::<SliceStats>("gpu N/slice/N"),
        kind::<AccessStats>("gpu N/slice/N/l2/KIND"),
        kind::<PeerStats>("gpu N/slice/N/peers"),
        kind::<BankStats>("gpu N/slice/N/bank/N"),
        kind::<NetworkStats>("gpu N/network/NAME"),
        kind::<LinkStats>("gpu N/link/NAME/SENDER"),
        kind::<GmmuStats>("gpu N/gmmu"),
        kind::<TlbStats>("gpu N/tlb/N"),
    ]
}
