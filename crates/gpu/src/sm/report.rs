//! What an SM says of a kernel that cannot go on.

use lockstep_isa::instruction::{Flow, Operation};
use lockstep_isa::lanes::Identity;
use lockstep_isa::warp_register::lanes_of;
use lockstep_isa::{Mask, Module};
use lockstep_units::Cycle;

use super::problem::Problem;
use super::state::SmState;
use super::warp::Warp;
use crate::check::note_fault;
use crate::fault::{Fault, FaultKind, Place};
use crate::launch::LaunchContext;
use crate::sm::now::Now;

/// Stops the SM with a fault.
pub(super) fn fail(state: &mut SmState, slot: u8, problem: Problem, now: Now) {
    let pc = state.warps[usize::from(slot)].convergence.pc();
    fail_at(state, slot, problem, pc, now);
}

/// Stops the SM with a fault of an instruction that a warp has behind it.
pub(super) fn fail_at(state: &mut SmState, slot: u8, problem: Problem, pc: u32, now: Now) {
    let fault = fault_at(state, slot, problem, pc, now);
    state.fault = Some((now.time, Box::new(fault)));
    state.slots.ready = 0;
}

/// The fault of an instruction of a warp.
pub(super) fn fault_at(state: &SmState, slot: u8, problem: Problem, pc: u32, now: Now) -> Fault {
    let warp = &state.warps[usize::from(slot)];
    let launch = state.blocks.launch_of(warp.block);
    let launch = launch.expect("a warp that executes has a block");
    let fault = Fault {
        kind: problem.kind,
        launch: launch.id.0,
        kernel: launch.launch.kernel().name.clone(),
        place: Some(place_of(warp, launch, problem.lane, pc)),
        sm: state.number,
        cycle: Cycle(now.cycle),
    };
    if state.port.checks.memory {
        note_fault(&state.port.findings, &fault, now.time);
    }
    fault
}

/// Stops the SM with a fault that is a block's, not that of one of its threads.
pub(super) fn fail_block(state: &mut SmState, block: u8, kind: FaultKind, now: Now) {
    let launch = state.blocks.launch_of(block);
    let fault = Fault {
        kind,
        launch: launch.map_or(0, |launch| launch.id.0),
        kernel: launch.map_or_else(String::new, |launch| launch.launch.kernel().name.clone()),
        place: None,
        sm: state.number,
        cycle: Cycle(now.cycle),
    };
    state.fault = Some((now.time, Box::new(fault)));
    state.slots.ready = 0;
}

/// Where a lane of a warp is.
pub(crate) fn place_of(warp: &Warp, launch: &LaunchContext, lane: usize, pc: u32) -> Place {
    place_at(&warp.identity, launch, lane, pc)
}

/// A lane of a warp that may be gone, at an instruction.
pub(crate) fn place_at(identity: &Identity, launch: &LaunchContext, lane: usize, pc: u32) -> Place {
    let module = &launch.launch.module;
    Place {
        block: identity.block,
        thread: identity.thread(lane),
        pc,
        function: module.function_at(pc).unwrap_or_default().to_owned(),
        instruction: module.text(pc).unwrap_or_default().into_owned(),
        line: line_of(module, pc),
    }
}

/// Where warps are that cannot go on, for the report on a kernel that hangs. `None` if no warp is
/// here.
pub(super) fn hang_report(state: &SmState) -> Option<(u32, Place, String)> {
    let resident = state.slots.resident;
    let slot = (resident != 0).then(|| resident.trailing_zeros() as usize)?;
    let warp = &state.warps[slot];
    let launch = state.blocks.launch_of(warp.block)?;
    let block = state.blocks.blocks[usize::from(warp.block)].as_ref()?;
    let path = warp.convergence.waiting_paths().first().copied();
    let pc = path.map_or(warp.convergence.pc(), |path| path.pc);
    let lanes: Mask = path.map_or(warp.convergence.active(), |path| path.lanes);
    let place = place_of(warp, launch, lanes_of(lanes).next().unwrap_or(0), pc);
    let warps = resident.count_ones();
    let mut what = format!("{warps} warps of SM {} do not end", state.number);
    let used = block.barriers.iter().enumerate();
    for (number, barrier) in used.filter(|(_, barrier)| barrier.is_used()) {
        what.push_str(&match barrier.progress() {
            (threads, Some(expected)) => {
                format!("; barrier {number} has {threads} of {expected} threads")
            }
            (threads, None) => format!("; barrier {number} has {threads} threads of the block"),
        });
    }
    for slot in (0..state.warps.len()).filter(|slot| resident >> slot & 1 != 0) {
        if what.len() > LONGEST_REPORT {
            what.push_str("; and more");
            break;
        }
        describe_warp(state, slot, &mut what);
    }
    Some((launch.id.0, place, what))
}

/// Says where the threads of a warp are.
fn describe_warp(state: &SmState, slot: usize, what: &mut String) {
    let warp = &state.warps[slot];
    let Some(launch) = state.blocks.launch_of(warp.block) else {
        return;
    };
    let module = &launch.launch.module;
    let here = (warp.convergence.active(), warp.convergence.pc());
    let others = warp.convergence.waiting_paths();
    let paths = std::iter::once(here).chain(others.iter().map(|path| (path.lanes, path.pc)));
    for (lanes, pc) in paths {
        let Some(first) = lanes_of(lanes).next() else {
            continue;
        };
        let [x, y, z] = warp.identity.block;
        let [tx, ty, tz] = warp.identity.thread(first);
        let instruction = module.text(pc).unwrap_or_default();
        let word = instruction.to_ascii_lowercase();
        let verb = if word.contains("bar.") || word.contains("barrier") {
            "wait"
        } else {
            "spin"
        };
        let line = line_of(module, pc);
        let mut place = if line.is_empty() {
            String::new()
        } else {
            format!(" ({line})")
        };
        if verb == "spin" {
            let lines = loop_lines(module, pc);
            if !lines.is_empty() {
                place.push_str(&format!(" in a loop with {}", lines.join(", ")));
            }
        }
        if verb == "spin"
            && let Some(watch) = &state.port.recurrence
            && let Some(what) = watch.loaded(slot)
        {
            place.push_str(&format!(", reading {what}"));
        }
        what.push_str(&format!(
            "; {} threads of block ({x},{y},{z}) from thread ({tx},{ty},{tz}) on {verb} at instruction {pc} \
             `{instruction}`{place}",
            lanes.count_ones()
        ));
    }
}

/// A report ends after about so many characters.
const LONGEST_REPORT: usize = 2000;

/// `file:line` of an instruction, if the compiler kept it.
fn line_of(module: &Module, pc: u32) -> String {
    module
        .code
        .get(pc as usize)
        .and_then(|instruction| module.lines.get(instruction.scheduling.line as usize))
        .filter(|line| line.line != 0)
        .map(|line| match line.inlined_at.as_str() {
            "" => format!("{}:{}", line.file, line.line),
            call => format!("{}:{}, inlined at {call}", line.file, line.line),
        })
        .unwrap_or_default()
}

/// The lines of the smallest loop around an instruction, beside its own.
fn loop_lines(module: &Module, pc: u32) -> Vec<String> {
    let around = module.section(module.section_of(pc)).filter_map(|at| {
        let target = match module.code[at as usize].operation {
            Operation::Flow(Flow::Branch { target }) => target,
            _ => return None,
        };
        (target <= pc && pc <= at).then(|| (at - target, target, at))
    });
    let Some((_, first, last)) = around.min() else {
        return Vec::new();
    };
    let own = line_of(module, pc);
    let mut lines = Vec::new();
    for at in first..=last {
        let line = line_of(module, at);
        if !line.is_empty() && line != own && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}
