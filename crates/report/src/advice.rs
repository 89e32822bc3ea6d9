//! Advice in sentences: which limit a kernel hits, and what it would gain without it.
//!
//! Every figure is worked out from the counters of the run and the description of its GPU, in one of
//! the ways that [`Advice::computed`] says. All are bounds from above: what waits for one thing now may
//! wait for another then.
//!
//! Start reading at [`advice`].

use crate::bounds::{self, LAUNCH};
use crate::kernel::KernelReport;
use crate::limits::GpuLimits;
use lockstep_text::numbers::{group, percent, plural, quotient, shape};
use serde::Serialize;

/// A resource is a limit from this part of the time.
const LIMIT: f64 = 0.6;
/// Launching is one from this part.
const LAUNCH_LIMIT: f64 = 0.3;
/// No launch is all cost: even an empty kernel runs its first instructions.
const LAUNCH_AT_MOST: f64 = 0.95;
/// A reason to wait is one from this part of the cycles of warps.
const STALL_LIMIT: f64 = 0.3;
/// SMs without work are a limit below this activity.
const ACTIVITY_LIMIT: f64 = 0.7;
/// Lanes that do not take part are, below this.
const LANES_LIMIT: f64 = 0.75;
/// Sectors of the widest access (16 bytes a lane) whose lanes are side by side.
const WIDEST_ACCESS: f64 = 16.0;
/// Atomics are a limit from this part of what SMs ask of L2.
const ATOMICS_LIMIT: f64 = 0.5;
/// Gains below this are not worth a sentence.
const WORTH_SAYING: f64 = 1.05;

/// One limit that a kernel hits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The limit.
    pub limit: String,
    /// What was found and what to do.
    pub sentence: String,
    /// How many times as fast the kernel would be without the limit, at most; none if that cannot be
    /// said.
    pub speed_up: Option<f64>,
    /// How it is computed.
    pub computed: String,
    /// Settings that take the limit away, to see what comes of it (`lockstep run --set`).
    pub settings: Vec<&'static str>,
}

/// What the rules say of a kernel, the largest gain first.
pub fn advice<'report>(kernel: &'report KernelReport, limits: &'report GpuLimits) -> Vec<Advice> {
    let Some(cycles) = kernel.counters.get("cycles").filter(|cycles| **cycles > 0) else {
        return Vec::new();
    };
    let facts = Facts {
        kernel,
        limits,
        cycles: *cycles as f64,
    };
    let rules: [fn(&Facts<'report>) -> Option<Advice>; 8] = [
        Facts::resource,
        Facts::launching,
        Facts::small_grid,
        Facts::occupancy,
        Facts::stall,
        Facts::lanes,
        Facts::scattered,
        Facts::atomics,
    ];
    let mut advice: Vec<Advice> = rules.iter().filter_map(|rule| rule(&facts)).collect();
    let gain = |one: &Advice| one.speed_up.unwrap_or(1.0);
    advice.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    advice
}

struct Facts<'report> {
    kernel: &'report KernelReport,
    limits: &'report GpuLimits,
    cycles: f64,
}

impl Facts<'_> {
    fn bound(&self, resource: &str) -> f64 {
        let mut bounds = self.kernel.bounds.iter();
        let found = bounds.find(|bound| bound.resource == resource);
        found.map_or(0.0, |bound| bound.cycles)
    }

    /// The largest bound of resources other than one.
    fn floor_without(&self, resource: &str) -> f64 {
        let others = self.kernel.bounds.iter();
        let others = others.filter(|bound| bound.resource != resource);
        others.map(|bound| bound.cycles).fold(0.0, f64::max)
    }

    fn floor(&self) -> f64 {
        self.floor_without("")
    }

    /// How many times as fast, if it is worth saying.
    fn gain(&self, new_cycles: f64) -> Option<f64> {
        quotient(self.cycles, new_cycles).filter(|gain| *gain >= WORTH_SAYING)
    }

    /// A resource that is busy most of the time.
    fn resource(&self) -> Option<Advice> {
        let bounds = self.kernel.bounds.iter();
        let top = bounds
            .filter(|bound| bound.resource != LAUNCH)
            .find(|bound| bound.share >= LIMIT)?;
        let next = self.floor_without(top.resource);
        Some(Advice {
            limit: top.resource.to_string(),
            sentence: format!(
                "{}: in use {} of the time; {}.",
                top.resource,
                percent(top.share.min(1.0)),
                bounds::remedy(top.resource)
            ),
            speed_up: self.gain(self.cycles - top.cycles + next.min(top.cycles)),
            computed: format!(
                "the {} cycles of {} are replaced by the {} of the next resource; the rest of the {} cycles stays",
                group(top.cycles as u64),
                top.resource,
                group(next as u64),
                group(self.cycles as u64)
            ),
            settings: bounds::settings(top.resource).to_vec(),
        })
    }

    /// Launches that take about as long as their kernels.
    fn launching(&self) -> Option<Advice> {
        let bound = self.launch_cycles();
        let share = quotient(bound, self.cycles)?;
        if share < LAUNCH_LIMIT {
            return None;
        }
        let each = bound / self.kernel.launches.max(1) as f64;
        Some(Advice {
            limit: LAUNCH.to_string(),
            sentence: format!(
                "Beginning and ending {} takes {} of its time ({} cycles each): {}.",
                plural(self.kernel.launches, "launch", "launches"),
                percent(share.min(1.0)),
                group(each as u64),
                bounds::remedy(LAUNCH)
            ),
            speed_up: self.gain((self.cycles - bound).max(self.floor_without(LAUNCH))),
            computed: "all cycles of launch.start-latency and launch.finish-latency are taken away"
                .to_string(),
            settings: bounds::settings(LAUNCH).to_vec(),
        })
    }

    /// What launching took at most. Counters do not say whether a launch began while another ran, which hides a part of
    /// it; one that is too short for the whole did.
    fn launch_cycles(&self) -> f64 {
        let alone = self.limits.launch_alone_cycles * self.kernel.launches as f64;
        match alone <= self.cycles * LAUNCH_AT_MOST {
            true => alone,
            false => self.bound(LAUNCH),
        }
    }

    /// SMs without work, because there are too few blocks.
    fn small_grid(&self) -> Option<Advice> {
        let activity = self
            .kernel
            .sm_activity
            .filter(|activity| *activity < ACTIVITY_LIMIT)?;
        let occupancy = self.kernel.occupancy.as_ref()?;
        if occupancy.waves >= 1.0 {
            return None;
        }
        let launching = self.bound(LAUNCH);
        let busy = self.cycles * activity;
        Some(Advice {
            limit: "size of the grid".to_string(),
            sentence: format!(
                "SMs have a warp in {} of their cycles, and the grid of {} (in blocks) is {} of what all {} SMs hold at once: launch more blocks, or let several kernels run side by side.",
                percent(activity),
                shape(self.kernel.grid),
                percent(occupancy.waves),
                self.limits.sms
            ),
            speed_up: self.gain((busy + launching).max(self.floor())),
            computed: "the cycles in which SMs were active are spread evenly over all SMs; the cost of launching stays".to_string(),
            settings: Vec::new(),
        })
    }

    /// Few warps, where warps wait for memory.
    fn occupancy(&self) -> Option<Advice> {
        let occupancy = self.kernel.occupancy.as_ref()?;
        let more = quotient(occupancy.without_limit, occupancy.theoretical)?;
        let waits = self.waiting("long_scoreboard")
            + self.waiting("short_scoreboard")
            + self.waiting("wait");
        // A grid that does not fill the SMs as they are would not fill larger ones.
        if more < 1.2 || waits < STALL_LIMIT || occupancy.waves < more {
            return None;
        }
        let what = occupancy.bounded_by.join(" and ");
        Some(Advice {
            limit: format!("occupancy, by {what}"),
            sentence: format!(
                "{} registers a thread and {} bytes of shared memory a block let an SM hold {} blocks ({} of its warps), and warps wait for values in {} of their cycles: with less of {what} an SM would hold {} of its warps.",
                occupancy.registers,
                group(occupancy.shared_bytes),
                occupancy.blocks_per_sm,
                percent(occupancy.theoretical),
                percent(waits),
                percent(occupancy.without_limit)
            ),
            speed_up: self.gain((self.cycles / more).max(self.floor())),
            computed: format!(
                "{more:.1} times as many warps hide the same latency; no resource becomes faster"
            ),
            settings: Vec::new(),
        })
    }

    /// What warps wait for, where no resource is the limit.
    fn stall(&self) -> Option<Advice> {
        let idle = ["selected", "not_selected"];
        let mut stalls = self.kernel.stalls.iter();
        let top = stalls.find(|stall| !idle.contains(&stall.name))?;
        if top.share < STALL_LIMIT {
            return None;
        }
        let what = top.name.replace('_', " ");
        Some(Advice {
            limit: format!("stall: {what}"),
            sentence: format!(
                "Warps spend {} of their cycles in `{what}`: {}.",
                percent(top.share),
                meaning(top.name)
            ),
            speed_up: self.gain((self.cycles * (1.0 - top.share)).max(self.floor())),
            computed: "the part of warp cycles spent there is taken from the kernel's cycles, down to the largest bound of a resource".to_string(),
            settings: Vec::new(),
        })
    }

    /// Warps that execute for few of their lanes.
    fn lanes(&self) -> Option<Advice> {
        let active = self
            .kernel
            .active_lanes
            .filter(|active| *active < LANES_LIMIT)?;
        let issue = self.bound("issue slots");
        Some(Advice {
            limit: "divergence".to_string(),
            sentence: format!(
                "On average {:.0} of 32 lanes take part in an instruction: let the lanes of a warp take the same path, and make blocks a multiple of 32 threads.",
                active * 32.0
            ),
            speed_up: self.gain(
                (self.cycles - issue * (1.0 - active)).max(self.floor_without("issue slots")),
            ),
            computed: "full warps need so many fewer issue slots; all else stays".to_string(),
            settings: Vec::new(),
        })
    }

    /// Accesses that are certainly not coalesced.
    fn scattered(&self) -> Option<Advice> {
        let sectors = self.kernel.memory.sectors_per_access?;
        (sectors > WIDEST_ACCESS).then(|| Advice {
            limit: "scattered accesses".to_string(),
            sentence: format!(
                "An access of a warp touches {sectors:.1} sectors of 32 bytes, and the widest with its lanes side by side takes 16: let neighbouring lanes access neighbouring addresses."
            ),
            speed_up: None,
            computed: "l1_sectors over accesses to global and local memory; what it would give depends on how much is used of each sector".to_string(),
            settings: Vec::new(),
        })
    }

    /// Atomics on global memory that make up most of what is asked of L2.
    fn atomics(&self) -> Option<Advice> {
        let count = |name: &str| Some(*self.kernel.counters.get(name)? as f64);
        let share = quotient(count("strong_accesses")?, count("l2_sectors_of_sms")?)?;
        (share >= ATOMICS_LIMIT).then(|| Advice {
            limit: "atomics".to_string(),
            sentence: format!(
                "{} of what SMs ask of L2 are atomics and other strong accesses, which each go to their slice: combine values in a warp or in shared memory first.",
                percent(share.min(1.0))
            ),
            speed_up: None,
            computed: "strong_accesses over l2_sectors_of_sms; what it would give depends on how many meet at one address".to_string(),
            settings: Vec::new(),
        })
    }

    fn waiting(&self, reason: &str) -> f64 {
        let mut stalls = self.kernel.stalls.iter();
        let found = stalls.find(|stall| stall.name == reason);
        found.map_or(0.0, |stall| stall.share)
    }
}

/// What a reason to wait means for a programmer.
const MEANINGS: &[(&str, &str)] = &[
    (
        "wait",
        "results of arithmetic are used at once; independent instructions between them help (unroll, work on several elements a thread)",
    ),
    (
        "long_scoreboard",
        "values come from global or local memory; load earlier, keep more loads in flight, or keep data nearer",
    ),
    (
        "short_scoreboard",
        "values come from shared memory, shuffles or the special function unit; use fewer of them, or more work between",
    ),
    (
        "math_pipe_throttle",
        "an arithmetic unit is busy; use another one or fewer operations",
    ),
    (
        "lg_throttle",
        "too many accesses to global memory are queued; use wider or fewer accesses",
    ),
    (
        "mio_throttle",
        "too many accesses to shared memory are queued; use wider or fewer accesses",
    ),
    (
        "barrier",
        "warps wait for others of their block; smaller blocks, or work divided more evenly",
    ),
    (
        "membar",
        "warps wait until others can see their stores; fewer fences, or of a smaller scope",
    ),
    (
        "branch_resolving",
        "short loops and many branches; unroll, or use predicates",
    ),
    (
        "no_instruction",
        "code does not come fast enough; shorter code, or less unrolling",
    ),
    (
        "imc_miss",
        "constants are not in the cache yet; a kernel this short reads its parameters only once",
    ),
    ("sleeping", "the program itself asks warps to sleep"),
];

fn meaning(reason: &str) -> &'static str {
    let found = MEANINGS.iter().find(|(name, _)| *name == reason);
    found.map_or("see the reference of counters", |(_, meaning)| meaning)
}
