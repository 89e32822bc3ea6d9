//! Instruction fetch: the line of code that a warp must have before it can issue.
//!
//! A sub-core has a small instruction cache (L0) with a stream buffer that runs ahead of misses; the
//! SM has a larger one (L1), and L2 is behind it. L0 caches are empty when a kernel comes to an SM
//! that has no other; L1 keeps the code of modules, and a launch brings its kernel's code there ahead
//! of the first block, line after line (what functions outside of the kernel need comes from L2 when
//! it is met).
//!
//! Start reading at [`InstructionFetch::line`].

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::memory::CODE_LINES;
use crate::parameters::SmParameters;
use crate::sm::now::PENDING;
use crate::statistics::LineCacheStats;

/// Not in the cache.
const ABSENT: u64 = u64::MAX - 1;

/// Modules whose code is kept; with more, all of them are invalidated.
const MODULES: usize = 16;

/// A line of code to be asked of L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeMiss {
    /// The line in this SM's numbering.
    pub line: u32,
    /// The line in L2's numbering.
    pub address: u64,
}

/// One instruction cache: lines by number, each with the cycle from which it is there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct InstructionCache {
    available: Vec<u64>,
    order: VecDeque<u32>,
    capacity: usize,
    /// The last line that the stream buffer has asked for, and the first.
    stream: (u32, u32),
    stats: LineCacheStats,
}

impl InstructionCache {
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

/// Instruction fetch of an SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InstructionFetch {
    l0: Vec<InstructionCache>,
    l1: InstructionCache,
    spaces: Vec<Space>,
    /// Warps that wait for code.
    pub waiting: u64,
    /// What is to be asked of L2.
    pub misses: Vec<CodeMiss>,
    /// Code that came with launches.
    brought: Vec<Brought>,
    per_line: u32,
    latency: u64,
    ahead: u32,
    launch_code: u64,
    launch_line: u64,
}

/// Code that a launch brought along, in this SM's numbering.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Brought {
    first: u32,
    lines: u32,
    /// When its first line is there.
    from: u64,
}

impl InstructionFetch {
    /// Empty caches.
    #[must_use]
    pub fn new(parameters: &SmParameters) -> Self {
        let cache = |capacity: usize| InstructionCache {
            capacity,
            ..InstructionCache::default()
        };
        Self {
            l0: vec![cache(parameters.front_end.l0_lines); parameters.sub_cores as usize],
            l1: cache(parameters.front_end.l1i_lines.max(1)),
            spaces: Vec::new(),
            waiting: 0,
            misses: Vec::new(),
            brought: Vec::new(),
            per_line: parameters.front_end.instructions_per_line,
            latency: parameters.front_end.l1i_latency,
            ahead: parameters.front_end.prefetch,
            launch_code: parameters.front_end.launch_code,
            launch_line: parameters.front_end.launch_line,
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
            self.l0.iter_mut().for_each(InstructionCache::clear);
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

    /// What the L0 cache of each sub-core counted.
    pub fn l0_stats(&self) -> impl Iterator<Item = &LineCacheStats> {
        self.l0.iter().map(|cache| &cache.stats)
    }

    /// What the L1 cache counted.
    #[must_use]
    pub fn l1_stats(&self) -> &LineCacheStats {
        &self.l1.stats
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
            self.l0[sub_core].stats.misses.increment();
            let last = line.saturating_add(self.ahead);
            for (steps, wanted) in (line..=last).enumerate() {
                self.bring(sub_core, wanted, cycle + steps as u64);
            }
            self.l0[sub_core].stream = (last, line);
            return self.l0[sub_core].get(line);
        }
        self.l0[sub_core].stats.hits.increment();
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
            self.l1.stats.hits.increment();
            let there = brought.from + u64::from(line - brought.first) * self.launch_line;
            let at = there.max(cycle) + self.latency;
            self.l0[sub_core].put(line, at);
            return;
        }
        let known = self.l1.get(line);
        match known {
            ABSENT => self.l1.stats.misses.increment(),
            _ => self.l1.stats.hits.increment(),
        }
        let at = match known {
            ABSENT => {
                let address = space.address + u64::from(line - space.first);
                self.l1.put(line, PENDING);
                self.misses.push(CodeMiss { line, address });
                PENDING
            }
            PENDING => PENDING,
            at => at.max(cycle) + self.latency,
        };
        self.l0[sub_core].put(line, at);
    }

    /// L2 has sent a line of code. Those who wait look again.
    pub fn fill(&mut self, miss: CodeMiss, cycle: u64) {
        let line = miss.line;
        if self.l1.get(line) == PENDING {
            self.l1.put(line, cycle);
        }
        for cache in &mut self.l0 {
            if cache.get(line) == PENDING {
                cache.put(line, cycle + self.latency / 2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch() -> InstructionFetch {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        InstructionFetch::new(&SmParameters::new(&config, true).unwrap())
    }

    #[test]
    fn a_stream_of_code_waits_once() {
        let mut fetch = fetch();
        fetch.start(3, 1000, 0..0, true, false, 0);
        let line = fetch.number(3, 0);
        assert_eq!(fetch.line(0, line, 10), PENDING);
        assert_eq!(fetch.misses.len(), 9, "the line and eight after it");
        for miss in std::mem::take(&mut fetch.misses) {
            fetch.fill(miss, 300);
        }
        let there = fetch.line(0, line, 320);
        assert!((301..400).contains(&there), "{there}");
        assert!(fetch.line(0, line + 1, 400) <= 400);
        assert_eq!(fetch.misses.len(), 1, "the stream goes on");
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
        assert!(fetch.misses.is_empty(), "nothing is asked of L2");
        assert_eq!(fetch.line(0, fetch.number(3, 800), 60), PENDING);
        // The same kernel again finds it there.
        fetch.start(3, 1000, 80..160, true, false, 5000);
        assert_eq!(fetch.line(1, line, 5001), 5001 + fetch.latency);
    }
}
