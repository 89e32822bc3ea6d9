//! What an SM says of a kernel that cannot go on.

use lockstep_isa::instruction::{Flow, Operation};
use lockstep_isa::warp_register::lanes_of;
use lockstep_isa::{Mask, Module};
use lockstep_units::Cycle;

use super::Sm;
use super::site::Problem;
use crate::fault::{Fault, Place};
use crate::sm::now::Now;

impl Sm {
    /// Stops the SM with a fault.
    pub(super) fn fail(&mut self, slot: u8, problem: Problem, now: Now) {
        let warp = &self.warps[usize::from(slot)];
        let pc = warp.convergence.pc();
        let context = self.contexts[usize::from(warp.block)]
            .as_ref()
            .expect("a warp that executes has a block");
        let module = &context.launch.module;
        let fault = Fault {
            kind: problem.kind,
            launch: context.id.0,
            kernel: context.launch.kernel().name.clone(),
            place: Some(Place {
                block: warp.identity.block,
                thread: warp.identity.thread(problem.lane),
                pc,
                function: module.function_at(pc).unwrap_or_default().to_owned(),
                instruction: module.listing.get(pc as usize).cloned().unwrap_or_default(),
                line: line_of(module, pc),
            }),
            sm: self.number,
            cycle: Cycle(now.cycle),
        };
        self.fault = Some((now.time, Box::new(fault)));
        self.ready = 0;
    }

    /// Where warps are that cannot go on, for the report on a kernel that hangs. `None` if no
    /// warp is here.
    #[must_use]
    pub fn hang_report(&self) -> Option<(u32, Place, String)> {
        let slot = (self.resident != 0).then(|| self.resident.trailing_zeros() as usize)?;
        let warp = &self.warps[slot];
        let context = self.contexts[usize::from(warp.block)].as_ref()?;
        let module = &context.launch.module;
        let block = self.blocks[usize::from(warp.block)].as_ref()?;
        let split = warp.convergence.waiting_paths().first().copied();
        let pc = split.map_or(warp.convergence.pc(), |split| split.pc);
        let lanes: Mask = split.map_or(warp.convergence.active(), |split| split.lanes);
        let place = Place {
            block: warp.identity.block,
            thread: warp.identity.thread(lanes_of(lanes).next().unwrap_or(0)),
            pc,
            function: module.function_at(pc).unwrap_or_default().to_owned(),
            instruction: module.listing.get(pc as usize).cloned().unwrap_or_default(),
            line: line_of(module, pc),
        };
        let barriers: Vec<String> = block
            .barriers
            .iter()
            .enumerate()
            .filter(|(_, barrier)| barrier.is_used())
            .map(|(number, barrier)| match barrier.progress() {
                (threads, Some(expected)) => {
                    format!("barrier {number} has {threads} of {expected} threads")
                }
                (threads, None) => format!("barrier {number} has {threads} threads of the block"),
            })
            .collect();
        let warps = self.resident.count_ones();
        let mut what = format!("{warps} warps of SM {} do not end", self.number);
        for barrier in barriers {
            what.push_str("; ");
            what.push_str(&barrier);
        }
        for slot in (0..self.warps.len()).filter(|slot| self.resident >> slot & 1 != 0) {
            if what.len() > LONGEST_REPORT {
                what.push_str("; and more");
                break;
            }
            self.describe_warp(slot, &mut what);
        }
        Some((context.id.0, place, what))
    }

    /// Says where the threads of a warp are.
    fn describe_warp(&self, slot: usize, what: &mut String) {
        let warp = &self.warps[slot];
        let Some(context) = self.contexts[usize::from(warp.block)].as_ref() else {
            return;
        };
        let module = &context.launch.module;
        let here = (warp.convergence.active(), warp.convergence.pc());
        let others = warp.convergence.waiting_paths();
        let groups =
            std::iter::once(here).chain(others.iter().map(|split| (split.lanes, split.pc)));
        for (lanes, pc) in groups {
            let Some(first) = lanes_of(lanes).next() else {
                continue;
            };
            let [x, y, z] = warp.identity.block;
            let [tx, ty, tz] = warp.identity.thread(first);
            let instruction = module.listing.get(pc as usize).map_or("", String::as_str);
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
            what.push_str(&format!(
                "; {} threads of block ({x},{y},{z}) from thread ({tx},{ty},{tz}) on {verb} at instruction {pc} \
                 `{instruction}`{place}",
                lanes.count_ones()
            ));
        }
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
    let around = module.code.iter().zip(0u32..).filter_map(|(found, at)| {
        let target = match found.operation {
            Operation::Flow(Flow::Branch { target }) => target,
            _ => return None,
        };
        (target <= pc && pc <= at).then_some((at - target, target, at))
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
