//! The chip, its clocks and its network.

use super::steps::{Steps, decimal};
use crate::ConfigError;

/// Compute capabilities that can be simulated.
const ARCHITECTURES: std::ops::RangeInclusive<u64> = 60..=90;

/// No link is shorter: the epoch follows from it.
const SHORTEST_LINK: u64 = 16;

/// The number after `sm_` that the options ask for.
pub(super) fn architecture(steps: &Steps<'_>) -> Result<Option<u64>, ConfigError> {
    let major = steps.number(&["gpgpu_compute_capability_major"])?;
    let minor = steps.number(&["gpgpu_compute_capability_minor"])?;
    match major {
        Some(major) => Ok(Some(major.min(99) * 10 + minor.unwrap_or(0).min(9))),
        None => steps.number(&["gpgpu_ptx_force_max_capability"]),
    }
}

/// Takes what describes the chip as a whole.
pub(super) fn take(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    take_capability(steps)?;
    take_sms(steps)?;
    take_clocks(steps)?;
    take_warps(steps)?;
    take_scheduler(steps);
    take_crossbar(steps)?;
    take_l2_latency(steps)
}

fn take_capability(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    const NAMES: [&str; 3] = [
        "gpgpu_compute_capability_major",
        "gpgpu_compute_capability_minor",
        "gpgpu_ptx_force_max_capability",
    ];
    let Some(found) = architecture(steps)? else {
        return Ok(());
    };
    if ARCHITECTURES.contains(&found) {
        let value = format!("{}.{}", found / 10, found % 10);
        steps.take(&NAMES, "", &[("device.compute-capability", value)]);
        return Ok(());
    }
    for name in NAMES {
        if steps.given(&[name]).is_some() {
            steps.leave(name, "programs would see this compute capability; 6.0 to 9.0 can be simulated, and that of the GPU below is kept");
        }
    }
    Ok(())
}

fn take_sms(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    let clusters = steps.number(&["gpgpu_n_clusters"])?;
    let cores = steps.number(&["gpgpu_n_cores_per_cluster"])?.unwrap_or(1);
    let Some(clusters) = clusters else {
        return Ok(());
    };
    let Some(sms) = clusters.checked_mul(cores) else {
        return Err(steps.wrong(&["gpgpu_n_clusters"], "fewer clusters"));
    };
    let mut settings = vec![("device.sms", sms.to_string())];
    let device = &steps.below.device;
    if sms != u64::from(device.sms) {
        // Which units of the GPU below are disabled says nothing about another number of them.
        if device.floorsweeping != "none" {
            settings.push(("device.floorsweeping", "none".into()));
        }
        if !device.gpc_tpcs.is_empty() {
            settings.push(("device.gpc-tpcs", "[]".into()));
        }
        if !device.gpc_of_tpc.is_empty() {
            settings.push(("device.gpc-of-tpc", "[]".into()));
        }
    }
    let names = ["gpgpu_n_clusters", "gpgpu_n_cores_per_cluster"];
    steps.take(&names, "clusters times cores", &settings);
    Ok(())
}

/// Core, interconnect, L2 and DRAM, in MHz; that of DRAM is taken with DRAM.
fn take_clocks(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    const NAME: &str = "gpgpu_clock_domains";
    let Some(clocks) = steps.list(NAME, ':')? else {
        return Ok(());
    };
    let [core, interconnect, l2, ..] = clocks[..] else {
        return Err(steps.wrong(&[NAME], "core:interconnect:L2:DRAM clocks in MHz"));
    };
    steps.take(
        &[NAME],
        "",
        &[
            ("device.clock", format!("{core} MHz")),
            ("l2.clock", format!("{l2} MHz")),
            ("interconnect.network.clock", format!("{interconnect} MHz")),
        ],
    );
    if interconnect != l2 {
        steps.leave(
            "gpgpu_clock_domains (interconnect)",
            "a crossbar would have a clock of its own; here its ports move so many bytes a core cycle, and only `mesh` and `switched` have that clock",
        );
    }
    Ok(())
}

/// Threads of an SM and of a warp.
fn take_warps(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    const NAME: &str = "gpgpu_shader_core_pipeline";
    let Some(numbers) = steps.list(NAME, ':')? else {
        return Ok(());
    };
    let [threads, warp, ..] = numbers[..] else {
        return Err(steps.wrong(&[NAME], "threads of an SM:threads of a warp"));
    };
    if warp != 32.0 {
        steps.leave(
            NAME,
            "warps would have another size; here they have 32 threads",
        );
        return Ok(());
    }
    let warps = (threads as u64 / 32).to_string();
    steps.take(&[NAME], "threads over 32", &[("sm.warps", warps)]);
    Ok(())
}

fn take_scheduler(steps: &mut Steps<'_>) {
    const NAME: &str = "gpgpu_scheduler";
    let Some((_, given)) = steps.given(&[NAME]) else {
        return;
    };
    let mut words = given.value.split(':');
    let scheduler = match words.next() {
        Some("gto") => "greedy-then-oldest",
        Some("lrr") => "loose-round-robin",
        Some("two_level_active") => "two-level",
        _ => {
            steps.leave(NAME, "warps would be picked in that order; here are greedy-then-oldest, loose-round-robin, greedy-then-youngest and two-level");
            return;
        }
    };
    let mut settings = vec![("sm.scheduler", scheduler.to_string())];
    if let (true, Some(group)) = (scheduler == "two-level", words.next().and_then(decimal)) {
        settings.push(("sm.scheduler-group", (group as u64).to_string()));
    }
    steps.take(&[NAME], "", &settings);
}

/// A port of the local crossbar moves one flit in a cycle of the interconnect.
fn take_crossbar(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    const NAME: &str = "icnt_flit_size";
    let Some(flit) = steps.number(&[NAME])? else {
        return Ok(());
    };
    let clocks = steps.list("gpgpu_clock_domains", ':')?.unwrap_or_default();
    let ratio = match clocks[..] {
        [core, interconnect, ..] if core > 0.0 => interconnect / core,
        _ => 1.0,
    };
    let bytes = ((flit as f64 * ratio).round() as u64).max(1);
    let header = flit.saturating_sub(32);
    steps.take(
        &[NAME],
        "a flit a cycle of the interconnect; 32 bytes of it are data",
        &[
            (
                "interconnect.request-bytes-per-cycle",
                format!("{bytes} B/cycle"),
            ),
            (
                "interconnect.reply-bytes-per-cycle",
                format!("{bytes} B/cycle"),
            ),
            ("interconnect.packet-header", format!("{header} B")),
            ("interconnect.network.flit", format!("{flit} B")),
        ],
    );
    Ok(())
}

/// The least time to L2 and back is one number there; here it is a request, a hit and a reply.
fn take_l2_latency(steps: &mut Steps<'_>) -> Result<(), ConfigError> {
    const NAMES: [&str; 2] = ["gpgpu_l2_rop_latency", "rop_latency"];
    let Some(all) = steps.number(&NAMES)? else {
        return Ok(());
    };
    let hop = (all.min(1 << 20) * 7 / 16).max(SHORTEST_LINK);
    let hit = all.saturating_sub(2 * hop).max(1);
    steps.take(
        &NAMES,
        "as request, hit and reply together, 7, 2 and 7 parts of 16",
        &[
            ("interconnect.request-latency", format!("{hop} cycles")),
            ("interconnect.reply-latency", format!("{hop} cycles")),
            ("l2.hit-latency", format!("{hit} cycles")),
        ],
    );
    Ok(())
}
