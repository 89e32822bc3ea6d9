//! What the parts of unified memory count.

use lockstep_stats::statistics;

statistics! {
    /// What the TLB of one SM counts.
    pub struct TlbStats {
        /// Lookups of managed pages.
        accesses: Counter [lookups],
        /// Lookups that found a translation.
        hits: Counter [lookups],
        /// Lookups of a page that was asked for already.
        merged: Counter [lookups],
        /// Entries that made room for others.
        evictions: Counter [entries],
        /// Changes of the page table that reached the TLB.
        shootdowns: Counter [operations],
        /// Entries that they removed.
        shot_down: Counter [entries],
        /// Misses of pages that were on the host.
        far_faults: Counter [faults],
        /// Requests that were made again after a fault.
        replays: Counter [requests],
        /// From a miss to its translation, if the page was on the device.
        walk_wait: Histogram [cycles],
        /// From a miss to its translation, if the page was on the host.
        fault_wait: Histogram [cycles],
        /// Cycles in which no memory instruction could issue because of the TLB.
        blocked: Counter [cycles],
    }
}

statistics! {
    /// What GMMU, host runtime and link count.
    pub struct GmmuStats {
        /// Requests for translations.
        requests: Counter [requests],
        /// Requests that found a translation in the TLB that SMs share.
        shared_hits: Counter [requests],
        /// Page walks.
        walks: Counter [walks],
        /// Cycles that requests waited for a walker.
        walk_queue: Counter [cycles],
        /// Upper entries of the page table that were looked for in the walk cache.
        walk_cache_lookups: Counter [lookups],
        /// Those that were there.
        walk_cache_hits: Counter [lookups],
        /// Distinct pages that faulted.
        far_faults: Counter [faults],
        /// Far faults of accesses that wanted to write.
        write_faults: Counter [faults],
        /// Faults of pages that had faulted and were not there yet.
        fault_merged: Counter [faults],
        /// Faults of pages that were being prefetched.
        fault_pending: Counter [faults],
        /// Pages that nobody had touched and that were filled with zeros on the device.
        zero_filled: Counter [pages],
        /// Far faults of pages that had been on the device before.
        refaults: Counter [faults],
        /// Faults that found the fault buffer full.
        dropped: Counter [faults],
        /// Faults that waited for the next replay because their SM had enough in the buffer.
        held_back: Counter [faults],
        /// Batches of faults that were served.
        batches: Counter [batches],
        /// Entries of the fault buffer that were in them.
        batch_faults: Counter [faults],
        /// Entries that named a page a second time.
        batch_duplicates: Counter [faults],
        /// Entries that were thrown away after a batch, to come again.
        batch_flushed: Counter [faults],
        /// Distinct pages that faulted in a batch.
        batch_size: Histogram [faults],
        /// 2 MiB that the host worked on, each once a batch.
        batch_regions: Counter [regions],
        /// Runs of pages without gap that it moved in them.
        batch_runs: Counter [runs],
        /// What serving faults would have taken, where it takes no time.
        additive: Counter [cycles],
        /// Bytes of pages that faulted.
        demand: Counter [bytes],
        /// Bytes that prefetchers brought.
        prefetch: Counter [bytes],
        /// Bytes that the program prefetched.
        user_prefetch: Counter [bytes],
        /// Bytes of evicted pages that had been written.
        written_back: Counter [bytes],
        /// Bytes of evicted pages that had not, and moved all the same.
        clean_back: Counter [bytes],
        /// Bytes that moved because the host touched or fetched them.
        host_back: Counter [bytes],
        /// Bytes that were used where they are, over the link.
        zero_copy: Counter [bytes],
        /// Transfers to the device.
        transfers: Counter [transfers],
        /// Their sizes.
        transfer_size: Histogram [bytes],
        /// Pages that came without having faulted.
        prefetched: Counter [pages],
        /// Those that were used afterwards.
        prefetch_used: Counter [pages],
        /// Those that somebody waited for when they came.
        prefetch_late: Counter [pages],
        /// Those that were evicted without having been used.
        prefetch_unused: Counter [pages],
        /// Units that were evicted.
        evictions: Counter [units],
        /// Pages in them.
        evicted: Counter [pages],
        /// Those that had been written.
        evicted_dirty: Counter [pages],
        /// Those that had not been used.
        evicted_unused: Counter [pages],
        /// Evictions that were called off because the pages were used.
        eviction_cancelled: Counter [units],
        /// Pages that came to the device again after having left it.
        thrashed: Counter [pages],
        /// How long they were away.
        away: Histogram [cycles],
        /// Pages that the device had to wait for because they moved too often.
        thrash_waits: Counter [pages],
        /// Pages that stay on the host for a while because they moved too often.
        thrash_pinned: Counter [pages],
        /// Cycle of the first eviction; 0 if there was none.
        first_eviction: Maximum [cycles],
        /// Cycles for which the transfer at the head waited for frames.
        frame_wait: Counter [cycles],
        /// Messages that removed entries from TLBs.
        shootdowns: Counter [operations],
        /// Reads over the link.
        remote_reads: Counter [accesses],
        /// Writes over the link.
        remote_writes: Counter [accesses],
        /// Blocks that moved after enough uses over the link.
        counter_migrations: Counter [blocks],
        /// From detecting a fault to its page being mapped.
        fault_latency: Histogram [cycles],
        /// From detecting a fault to the start of its service.
        service_wait: Histogram [cycles],
        /// From being planned to the start of a transfer.
        channel_wait: Histogram [cycles],
        /// Transfers to the device, from their start.
        transfer_time: Histogram [cycles],
        /// Cycles in which the link was busy towards the device.
        to_device_busy: Counter [cycles],
        /// Cycles in which the link was busy towards the host.
        to_host_busy: Counter [cycles],
        /// Most transfers that waited for the link.
        queue: Maximum [transfers],
        /// Faults of the host that moved something.
        host_faults: Counter [faults],
        /// Prefetches of the program that are complete.
        user_prefetches: Counter [requests],
    }
}

statistics! {
    /// What the GMMU of one of several GPUs of a node counts of the others.
    pub struct NeighbourStats {
        /// Transfers from other GPUs that are complete.
        transfers: Counter [transfers],
        /// Bytes that came from other GPUs because a page of them faulted or was brought along.
        migrated: Counter [bytes],
        /// Bytes that came from other GPUs because the program prefetched them.
        user_prefetch: Counter [bytes],
        /// Those of both that are copies of pages that are mostly read.
        copied: Counter [bytes],
        /// Bytes of pages that were unmapped here because another GPU claimed them.
        given: Counter [bytes],
        /// Those that were copies.
        given_copies: Counter [bytes],
        /// Copies that became the only ones because they were written here.
        upgraded: Counter [pages],
        /// Pages that came from another GPU after having been here before.
        returned: Counter [pages],
        /// From claiming pages of the node to the last of them being mapped.
        claim_wait: Histogram [cycles],
        /// From a page being asked back to its being unmapped.
        recall_wait: Histogram [cycles],
        /// Bytes that were used on other GPUs, over the link.
        zero_copy: Counter [bytes],
        /// Reads over the link to another GPU.
        remote_reads: Counter [accesses],
        /// Writes over the link to another GPU.
        remote_writes: Counter [accesses],
    }
}
