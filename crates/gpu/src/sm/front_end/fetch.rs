//! Instruction fetch and constants: what a warp must have before it can issue.
//!
//! A sub-core has a small instruction cache with a stream buffer that runs ahead of misses; the SM
//! has a larger one, and L2 is behind it. The small ones are empty when a kernel comes to an SM that
//! has no other; the larger one keeps the code of modules, and a launch brings its kernel's code
//! there ahead of the first block, line after line (what functions outside of the kernel need comes
//! from L2 when it is met). Constants have one small cache an SM, and behind it a larger one, to which
//! a launch brings its parameters; what else it uses for the first time comes from L2.
//!
//! Start reading at [`Fetch::line`].

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::memory::CODE_LINES;
use crate::parameters::SmParameters;
use crate::sm::now::PENDING;

/// Not in the cache.
const ABSENT: u64 = u64::MAX - 1;

/// Where the bank begins in the number of a line of constants; parameters are in bank 0.
pub const BANK_SHIFT: u32 = 24;

/// Modules whose code is kept; with more, all of them are forgotten.
const MODULES: usize = 16;

/// A line of code to be asked of L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sm) struct Wanted {
    /// In this SM's numbering.
    pub line: u32,
    /// In L2's.
    pub address: u64,
}

/// Lines by number, each with the cycle from which it is there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Lines {
    available: Vec<u64>,
    order: VecDeque<u32>,
    capacity: usize,
    /// The last line that the stream buffer has asked for, and the first.
    stream: (u32, u32),
}

impl Lines {
    #[inline]
    fn get(&self, line: u32) -> u64 {
        self.available.get(line as usize).copied().unwrap_or(ABSENT)
    }

    fn put(&mut self, line: u32, at: u64) {
        let index = line as usize;
        if self.available.len() <= index {
            self.available.resize(index + 1, ABSENT);
        }
        if self.available[index] == ABSENT {
            self.order.push_back(line);
            if self.order.len() > self.capacity
                && let Some(old) = self.order.pop_front()
            {
                self.available[old as usize] = ABSENT;
            }
        }
        self.available[index] = at;
    }

    fn clear(&mut self) {
        self.available.clear();
        self.order.clear();
        self.stream = (0, 0);
    }
}

/// Code of a module in this SM's numbering of lines.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Space {
    module: u64,
    first: u32,
    lines: u32,
    /// Number of the first line in L2's numbering.
    address: u64,
}

/// Instruction fetch and constants of an SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::sm) struct Fetch {
    l0: Vec<Lines>,
    l1: Lines,
    spaces: Vec<Space>,
    /// Constants that are here: launch, number, cycle from which they are; the last used first.
    constants: Vec<(u32, u32, u64)>,
    /// Constants that have been here: launch and number.
    met: BTreeSet<(u32, u32)>,
    /// Warps that wait for code.
    pub waiting: u64,
    /// What is to be asked of L2.
    pub wanted: Vec<Wanted>,
    /// Code that came with launches.
    brought: Vec<Brought>,
    per_line: u32,
    latency: u64,
    ahead: u32,
    launch_code: u64,
    launch_line: u64,
    constant_lines: usize,
    constant_miss: u64,
    constant_first: u64,
}

/// Code that a launch brought along, in this SM's numbering.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Brought {
    first: u32,
    lines: u32,
    /// When its first line is there.
    from: u64,
}

impl Fetch {
    pub fn new(parameters: &SmParameters) -> Self {
        let cache = |capacity: usize| Lines {
            capacity,
            ..Lines::default()
        };
        Self {
            l0: vec![cache(parameters.l0_lines); parameters.sub_cores as usize],
            l1: cache(parameters.l1i_lines.max(1)),
            spaces: Vec::new(),
            constants: Vec::new(),
            met: BTreeSet::new(),
            waiting: 0,
            wanted: Vec::new(),
            brought: Vec::new(),
            per_line: parameters.instructions_per_line,
            latency: parameters.l1i_latency,
            ahead: parameters.prefetch,
            launch_code: parameters.launch_code,
            launch_line: parameters.launch_line,
            constant_lines: parameters.constant_lines,
            constant_miss: parameters.constant_miss,
            constant_first: parameters.constant_first,
        }
    }

    /// The first block of a launch has come in a cycle; `instructions` of its module, of which the
    /// kernel has those of `kernel`; `alone` if no other launch is here, `cold` if it must find
    /// nothing.
    pub fn start(
        &mut self,
        module: u64,
        instructions: usize,
        kernel: Range<u32>,
        alone: bool,
        cold: bool,
        cycle: u64,
    ) {
        if alone {
            self.l0.iter_mut().for_each(Lines::clear);
            self.constants.clear();
            self.met.clear();
            if cold || self.spaces.len() >= MODULES {
                self.l1.clear();
                self.spaces.clear();
                self.brought.clear();
            }
        }
        let known = self.spaces.iter().find(|space| space.module == module);
        let first = match known {
            Some(space) => space.first,
            None => {
                let last = self.spaces.last();
                let first = last.map_or(0, |space| space.first + space.lines);
                self.spaces.push(Space {
                    module,
                    first,
                    lines: (instructions as u32).div_ceil(self.per_line) + 1,
                    address: CODE_LINES + (module << 24),
                });
                first
            }
        };
        let begin = first + kernel.start / self.per_line;
        if self.brought.iter().any(|brought| brought.first == begin) {
            return;
        }
        // More than the cache holds is not kept.
        let lines = kernel.end.div_ceil(self.per_line) - kernel.start / self.per_line;
        self.brought.push(Brought {
            first: begin,
            lines: lines.min(self.l1.capacity as u32),
            from: cycle + self.launch_code,
        });
    }

    /// The line of an instruction in this SM's numbering; 0 is no line.
    #[inline]
    pub fn number(&self, module: u64, pc: u32) -> u32 {
        let first = match self.spaces.as_slice() {
            [only] => only.first,
            all => all
                .iter()
                .find(|space| space.module == module)
                .map_or(0, |space| space.first),
        };
        first + pc / self.per_line + 1
    }

    /// When a line is there for a warp of a sub-core, [`PENDING`] if that is not known yet.
    #[inline]
    pub fn line(&mut self, sub_core: usize, number: u32, cycle: u64) -> u64 {
        if self.l0[sub_core].capacity == 0 {
            return 0;
        }
        let line = number - 1;
        let at = self.l0[sub_core].get(line);
        if at == ABSENT {
            let last = line.saturating_add(self.ahead);
            for (steps, wanted) in (line..=last).enumerate() {
                self.bring(sub_core, wanted, cycle + steps as u64);
            }
            self.l0[sub_core].stream = (last, line);
            return self.l0[sub_core].get(line);
        }
        let (last, first) = self.l0[sub_core].stream;
        if (first..=last).contains(&line) && line + self.ahead > last {
            for wanted in last + 1..=line + self.ahead {
                self.bring(sub_core, wanted, cycle);
            }
            self.l0[sub_core].stream.0 = line + self.ahead;
        }
        at
    }

    fn bring(&mut self, sub_core: usize, line: u32, cycle: u64) {
        if self.l0[sub_core].get(line) != ABSENT {
            return;
        }
        let Some(space) = self
            .spaces
            .iter()
            .find(|space| (space.first..space.first + space.lines).contains(&line))
        else {
            return;
        };
        let brought = self
            .brought
            .iter()
            .find(|brought| line.wrapping_sub(brought.first) < brought.lines);
        if let Some(brought) = brought {
            let there = brought.from + u64::from(line - brought.first) * self.launch_line;
            let at = there.max(cycle) + self.latency;
            self.l0[sub_core].put(line, at);
            return;
        }
        let at = match self.l1.get(line) {
            ABSENT => {
                let address = space.address + u64::from(line - space.first);
                self.l1.put(line, PENDING);
                self.wanted.push(Wanted { line, address });
                PENDING
            }
            PENDING => PENDING,
            at => at.max(cycle) + self.latency,
        };
        self.l0[sub_core].put(line, at);
    }

    /// When a line of constants is there.
    #[inline]
    pub fn constant(&mut self, launch: u32, key: u32, cycle: u64) -> u64 {
        let known = self
            .constants
            .iter()
            .position(|(of, known, _)| *known == key && *of == launch);
        if let Some(place) = known {
            let entry = self.constants[place];
            if place > 0 {
                self.constants.copy_within(..place, 1);
                self.constants[0] = entry;
            }
            return entry.2;
        }
        // Who waits for code gets its constants meanwhile.
        let there = if cycle == PENDING {
            0
        } else if key < 1 << BANK_SHIFT || !self.met.insert((launch, key)) {
            cycle + self.constant_miss
        } else {
            cycle + self.constant_first
        };
        self.constants.insert(0, (launch, key, there));
        self.constants.truncate(self.constant_lines);
        there
    }

    /// L2 has sent a line of code. Those who wait look again.
    pub fn arrived(&mut self, wanted: Wanted, cycle: u64) {
        let line = wanted.line;
        if self.l1.get(line) == PENDING {
            self.l1.put(line, cycle);
        }
        for lines in &mut self.l0 {
            if lines.get(line) == PENDING {
                lines.put(line, cycle + self.latency / 2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch() -> Fetch {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        Fetch::new(&SmParameters::new(&config, true).unwrap())
    }

    #[test]
    fn a_stream_of_code_waits_once() {
        let mut fetch = fetch();
        fetch.start(3, 1000, 0..0, true, false, 0);
        let line = fetch.number(3, 0);
        assert_eq!(fetch.line(0, line, 10), PENDING);
        assert_eq!(fetch.wanted.len(), 9, "the line and eight after it");
        for wanted in std::mem::take(&mut fetch.wanted) {
            fetch.arrived(wanted, 300);
        }
        let there = fetch.line(0, line, 320);
        assert!((301..400).contains(&there), "{there}");
        assert!(fetch.line(0, line + 1, 400) <= 400);
        assert_eq!(fetch.wanted.len(), 1, "the stream goes on");
        // Another sub-core finds the line in the SM's cache.
        assert_eq!(fetch.line(1, line, 500), 500 + fetch.latency);
    }

    #[test]
    fn a_launch_brings_its_code_along() {
        let mut fetch = fetch();
        fetch.start(3, 1000, 80..160, true, true, 50);
        let line = fetch.number(3, 80);
        let there = fetch.line(0, line, 60);
        assert_eq!(there, 50 + fetch.launch_code + fetch.latency);
        assert!(fetch.wanted.is_empty(), "nothing is asked of L2");
        assert_eq!(fetch.line(0, fetch.number(3, 800), 60), PENDING);
        // The same kernel again finds it there.
        fetch.start(3, 1000, 80..160, true, false, 5000);
        assert_eq!(fetch.line(1, line, 5001), 5001 + fetch.latency);
    }

    #[test]
    fn constants_are_kept() {
        let mut fetch = fetch();
        fetch.start(3, 1000, 0..1000, true, false, 0);
        let there = fetch.constant(3, 5, 100);
        assert_eq!(there, 100 + fetch.constant_miss, "a parameter");
        assert_eq!(fetch.constant(3, 5, 200), there);
        assert!(fetch.constant(4, 5, 300) > 300, "another launch");
        let table = 3 << BANK_SHIFT;
        let there = fetch.constant(3, table, 400);
        assert_eq!(there, 400 + fetch.constant_first);
        for key in 100..200 {
            fetch.constant(3, key, 500);
        }
        let again = fetch.constant(3, table, 1000);
        assert_eq!(again, 1000 + fetch.constant_miss, "the larger cache has it");
    }
}
