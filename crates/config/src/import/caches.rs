//! L1, shared memory, L2 and the caches of instructions and constants.

use super::cache::Cache;
use super::steps::{Steps, decimal};
use crate::ConfigError;
use lockstep_units::Bytes;

/// Bytes of a line of L1 and L2, which the model has.
const LINE: u64 = 128;

/// Sectors of it.
const SECTORS: u64 = 4;

/// Takes caches and shared memory.
pub(super) fn take(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    take_l1(steps)?;
    take_l2(steps)?;
    take_front_end(steps)
}

/// A cache that an option describes; `none` is none.
fn cache(steps: &Steps<'_>, name: &str) -> Result<Option<Cache>, ConfigError> {
    match steps.given(&[name]) {
        None => Ok(None),
        Some((_, given)) if given.value == "none" => Ok(None),
        Some((_, given)) => {
            let word = given.value.split(' ').next().unwrap_or_default();
            let cache = Cache::parse(word);
            let what = "a cache as `S:32:128:24,L:B:m:L:P,A:192:4,32:0,32`";
            cache.map(Some).ok_or_else(|| steps.wrong(&[name], what))
        }
    }
}

/// What of a cache is not taken.
fn leave_policies(steps: &mut Steps<'_>, name: &str, cache: &Cache, here: &str) {
    let said = format!("{name} ({}; {})", cache.policies, cache.rest);
    steps.leave(
        &said,
        format!("policies, set index and queues would be these; here {here}"),
    );
    if !cache.sectored || cache.line != LINE {
        let said = format!("{name} (line {})", cache.line);
        steps.leave(
            &said,
            "lines would be filled as a whole; here lines of 128 bytes are filled in sectors of 32",
        );
    }
}

/// L1 and shared memory, which share the unified data cache here.
fn take_l1(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    const NAME: &str = "gpgpu_cache:dl1";
    let shared = steps.number(&["gpgpu_shmem_size"])?;
    let unified = steps.number(&["gpgpu_unified_l1d_size"])?;
    let adaptive = steps.number(&["gpgpu_adaptive_cache_config"])?.unwrap_or(0) != 0;
    let l1 = cache(steps, NAME)?;
    if let Some(cache) = &l1 {
        // The size of the whole decides the ways.
        let settings = [
            ("l1.sets", cache.sets.to_string()),
            ("l1.mshrs", cache.mshrs.saturating_mul(SECTORS).to_string()),
        ];
        steps.take(&[NAME], "misses in sectors, 4 a line", &settings);
        leave_policies(
            steps,
            NAME,
            cache,
            "L1 writes through, is filled on a miss and replaces by LRU, or by sampled LRU with `l1.replacement-candidates`",
        );
    }
    let Some(shared) = shared else { return Ok(()) };
    let l1 = l1.and_then(|cache| cache.bytes()).unwrap_or(0);
    let all = match unified {
        Some(kibibytes) => kibibytes.saturating_mul(1 << 10).max(shared),
        None => shared.saturating_add(l1),
    };
    let sizes = carveouts(steps, shared, adaptive)?;
    let block = steps
        .number(&["gpgpu_shmem_per_block"])?
        .unwrap_or(48 << 10)
        .min(shared);
    let names = [
        "gpgpu_shmem_size",
        "gpgpu_shmem_option",
        "gpgpu_unified_l1d_size",
        "gpgpu_adaptive_cache_config",
        "gpgpu_shmem_per_block",
        NAME,
    ];
    steps.take(
        &names,
        "L1 and shared memory together",
        &[
            ("sm.unified-data-cache", Bytes(all).to_string()),
            ("sm.shared-carveouts", sizes),
            (
                "sm.shared-per-block",
                Bytes(block.min(48 << 10)).to_string(),
            ),
            ("sm.shared-per-block-optin", Bytes(block).to_string()),
            ("sm.shared-reserved", "0 B".into()),
        ],
    );
    Ok(())
}

/// Sizes that shared memory can have, as a list: one if it is fixed.
fn carveouts(steps: &Steps<'_>, shared: u64, adaptive: bool) -> Result<String, ConfigError> {
    let mut sizes = match steps.given(&["gpgpu_shmem_option"]) {
        Some((_, given)) if adaptive => {
            let kibibytes = given.value.split(',').map(decimal);
            let kibibytes: Option<Vec<f64>> = kibibytes.collect();
            let kibibytes = kibibytes.ok_or_else(|| {
                steps.wrong(
                    &["gpgpu_shmem_option"],
                    "sizes in KiB with `,` between them",
                )
            })?;
            kibibytes
                .into_iter()
                .map(|size| (size * 1024.0) as u64)
                .collect()
        }
        _ if adaptive => {
            let below = &steps.below.sm.shared_carveouts;
            below.iter().map(|size| size.0).collect()
        }
        _ => Vec::new(),
    };
    sizes.retain(|size| *size < shared);
    sizes.push(shared);
    sizes.sort_unstable();
    sizes.dedup();
    let sizes: Vec<String> = sizes
        .into_iter()
        .map(|size| format!("\"{}\"", Bytes(size)))
        .collect();
    Ok(format!("[{}]", sizes.join(", ")))
}

/// Slices, each with a cache of its own, and the channels behind them.
fn take_l2(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    const NAME: &str = "gpgpu_cache:dl2";
    let Some(channels) = steps.number(&["gpgpu_n_mem"])? else {
        return Ok(());
    };
    let parts = steps
        .number(&["gpgpu_n_sub_partition_per_mchannel"])?
        .unwrap_or(1);
    let slices = channels.saturating_mul(parts);
    let mut settings = vec![
        ("l2.slices", slices.to_string()),
        ("dram.channels", channels.to_string()),
    ];
    // How the slices of the GPU below are interleaved need not divide these.
    let l2 = &steps.below.l2;
    if !slices.is_multiple_of(u64::from(l2.interleave_slices).max(1)) {
        settings.push(("l2.interleave-region", "128 B".into()));
        settings.push(("l2.interleave-slices", "1".into()));
        settings.push(("l2.interleave-granularity", "128 B".into()));
    }
    if l2.partitions > 1 {
        settings.push(("l2.partitions", "1".into()));
        settings.push(("l2.far-partition-latency", "0 cycles".into()));
        settings.push(("l2.first-partition-gpcs", "[]".into()));
    }
    let cache = cache(steps, NAME)?;
    if let Some(bytes) = cache.as_ref().and_then(Cache::bytes) {
        settings.push((
            "l2.capacity",
            Bytes(bytes.saturating_mul(slices)).to_string(),
        ));
    }
    if let Some(cache) = &cache {
        settings.push(("l2.ways", cache.ways.to_string()));
        settings.push(("l2.mshrs", cache.mshrs.to_string()));
        settings.push(("l2.mshr-targets", cache.targets.to_string()));
    }
    let names = ["gpgpu_n_mem", "gpgpu_n_sub_partition_per_mchannel", NAME];
    steps.take(
        &names,
        "channels times sub-partitions, a cache each",
        &settings,
    );
    if let Some(cache) = &cache {
        leave_policies(
            steps,
            NAME,
            cache,
            "L2 writes back, replaces by LRU, hashes its sets, and its queue is that of `interconnect.credits`",
        );
    }
    Ok(())
}

/// Instructions and constants; both are free where they are said to be perfect.
fn take_front_end(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    const PERFECT: &str = "gpgpu_perfect_inst_const_cache";
    if steps.number(&[PERFECT])?.unwrap_or(0) != 0 {
        let settings = [
            ("sm.front-end.l0", "0 B".to_string()),
            ("sm.front-end.constant-cache", "0 B".into()),
        ];
        steps.take(&[PERFECT], "every fetch hits", &settings);
        for name in ["gpgpu_cache:il1", "gpgpu_const_cache:l1"] {
            if steps.given(&[name]).is_some() {
                steps.leave(
                    name,
                    "nothing: -gpgpu_perfect_inst_const_cache makes it perfect",
                );
            }
        }
        return Ok(());
    }
    if let Some(cache) = cache(steps, "gpgpu_cache:il1")? {
        let bytes = cache.bytes().unwrap_or(0);
        let front_end = &steps.below.sm.front_end;
        let mut settings = vec![
            ("sm.front-end.l1", Bytes(bytes).to_string()),
            ("sm.front-end.line", Bytes(cache.line).to_string()),
        ];
        if bytes < front_end.l0.0 {
            settings.push(("sm.front-end.l0", Bytes(bytes).to_string()));
        }
        if bytes.min(front_end.l0.0) / cache.line <= u64::from(front_end.stream_buffer_lines) {
            settings.push(("sm.front-end.stream-buffer-lines", "0".into()));
        }
        steps.take(
            &["gpgpu_cache:il1"],
            "the instruction cache of an SM",
            &settings,
        );
    }
    if let Some(cache) = cache(steps, "gpgpu_const_cache:l1")? {
        let settings = [
            (
                "sm.front-end.constant-cache",
                Bytes(cache.bytes().unwrap_or(0)).to_string(),
            ),
            (
                "sm.front-end.constant-cache-line",
                Bytes(cache.line).to_string(),
            ),
        ];
        steps.take(&["gpgpu_const_cache:l1"], "", &settings);
    }
    Ok(())
}
