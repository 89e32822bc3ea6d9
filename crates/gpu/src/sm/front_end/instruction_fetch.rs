//! Instruction fetch: the line of code that a warp must have before it can issue.
//!
//! A sub-core has a small instruction cache (L0) with a stream buffer that runs ahead of misses; the
//! SM has a larger one (L1), behind which are L1.5 and L2. L0 caches are empty when a kernel comes to an
//! SM that has no other; the others keep the code of modules, and a launch brings the beginning of its
//! kernel's code, with the functions behind it, to L1.5 ahead of the first block, line after line. What
//! lies further on comes from L2 when it is met.
//!
//! SMs of a GPC share L1.5 on hardware; here each has a copy of it, so that none finds what another has
//! fetched (decision 0043).
//!
//! Start reading at [`InstructionFetch::line`].

use std::collections::VecDeque;
use std::ops::Range;

use lockstep_isa::Launch;
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
    /// Lines that had to go.
    evicted: u64,
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
                self.evicted += 1;
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
    l15: InstructionCache,
    spaces: Vec<Space>,
    /// Warps that wait for code.
    pub waiting: u64,
    /// What is to be asked of L2.
    pub misses: Vec<CodeMiss>,
    /// Code that came with launches.
    brought: Vec<Brought>,
    /// Lines that L2 was asked for since it had none of them, a bit each.
    fetched: Vec<u64>,
    per_line: u32,
    latency: u64,
    l15_latency: u64,
    ahead: u32,
    /// What a line takes longer that is asked for the first time, if L2 has no code and otherwise.
    first_fetch: [u64; 2],
    /// Whether L2 had no code.
    cold: bool,
    launch_code: u64,
    launch_line: u64,
    launch_lines: u32,
}

/// Code that a launch brought along, in this SM's numbering.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Brought {
    first: u32,
    /// How many lines L1.5 had lost by then.
    evicted: u64,
}

impl InstructionFetch {
    /// Empty caches.
    #[must_use]
    pub fn new(parameters: &SmParameters) -> Self {
        let cache = |capacity: usize| InstructionCache {
            capacity,
            ..InstructionCache::default()
        };
        let front_end = &parameters.front_end;
        Self {
            l0: vec![cache(front_end.l0_lines); parameters.sub_cores as usize],
            l1: cache(front_end.l1i_lines.max(1)),
            l15: cache(front_end.l15_lines),
            fetched: Vec::new(),
            cold: false,
            spaces: Vec::new(),
            waiting: 0,
            misses: Vec::new(),
            brought: Vec::new(),
            per_line: front_end.instructions_per_line,
            latency: front_end.l1i_latency,
            l15_latency: front_end.l15_latency,
            ahead: front_end.prefetch,
            first_fetch: [front_end.uncached, front_end.first_fetch],
            launch_code: front_end.launch_code,
            launch_line: front_end.launch_line,
            launch_lines: front_end.launch_lines,
        }
    }

    /// The first block of a launch has come in a cycle; `alone` if no other launch is here, `cold` if it must find
    /// nothing.
    pub fn start_launch(&mut self, launch: &Launch, alone: bool, cold: bool, cycle: u64) {
        let instructions = launch.module.code.len();
        // Functions that only this kernel calls lie between it and the next one.
        let entry = launch.code().start;
        let others = launch.module.kernels.iter().map(|kernel| kernel.entry);
        let next = others.filter(|other| *other > entry).min();
        let kernel = entry..next.unwrap_or(instructions as u32);
        self.start(launch.module_id, instructions, kernel, alone, cold, cycle);
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
                self.l15.clear();
                self.spaces.clear();
                self.brought.clear();
                self.fetched.clear();
            }
            self.cold = cold;
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
        let behind = if self.l15.capacity > 0 {
            &mut self.l15
        } else {
            &mut self.l1
        };
        let known = self.brought.iter().position(|code| code.first == begin);
        match known {
            Some(place) if self.brought[place].evicted == behind.evicted => return,
            Some(place) => {
                self.brought.swap_remove(place);
            }
            None => {}
        }
        // More than the cache holds is not kept.
        let lines = kernel.end.div_ceil(self.per_line) - kernel.start / self.per_line;
        let lines = lines.min(self.launch_lines).min(behind.capacity as u32);
        let from = cycle + self.launch_code;
        let mut brought = 0;
        for line in begin..begin + lines {
            if behind.get(line) == ABSENT {
                behind.put(line, from + brought * self.launch_line);
                brought += 1;
            }
        }
        self.brought.push(Brought {
            first: begin,
            evicted: behind.evicted,
        });
        for line in begin..begin + lines {
            self.note_fetched(line);
        }
    }

    /// Counts anew.
    pub fn reset_stats(&mut self) {
        for cache in self.l0.iter_mut().chain([&mut self.l1, &mut self.l15]) {
            cache.stats = LineCacheStats::default();
        }
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

    /// Sends for a line on behalf of a sub-core.
    fn bring(&mut self, sub_core: usize, line: u32, cycle: u64) {
        if self.l0[sub_core].get(line) != ABSENT {
            return;
        }
        let Some(space) = self
            .spaces
            .iter()
            .find(|space| (space.first..space.first + space.lines).contains(&line))
            .copied()
        else {
            return;
        };
        let at = match self.l1.get(line) {
            ABSENT => {
                self.l1.stats.misses.increment();
                let at = self.leaves_l15(line, cycle, &space);
                self.l1.put(line, at);
                at
            }
            at => {
                self.l1.stats.hits.increment();
                at
            }
        };
        let at = match at {
            PENDING => PENDING,
            at => at.max(cycle) + self.latency,
        };
        self.l0[sub_core].put(line, at);
    }

    /// When a line that L1 lacks comes to it from L1.5, [`PENDING`] if L2 is asked for it.
    fn leaves_l15(&mut self, line: u32, cycle: u64, space: &Space) -> u64 {
        match self.l15.get(line) {
            ABSENT => {
                let address = space.address + u64::from(line - space.first);
                if self.l15.capacity > 0 {
                    self.l15.put(line, PENDING);
                }
                self.misses.push(CodeMiss { line, address });
                PENDING
            }
            PENDING => PENDING,
            there => there.max(cycle) + self.l15_latency,
        }
    }

    /// L2 has sent a line of code. Those who wait look again.
    pub fn fill(&mut self, miss: CodeMiss, cycle: u64) {
        let line = miss.line;
        let cycle = cycle + self.first_latency_of(line);
        if self.l15.get(line) == PENDING {
            self.l15.put(line, cycle);
        }
        if self.l1.get(line) == PENDING {
            self.l1.put(line, cycle);
        }
        for cache in &mut self.l0 {
            if cache.get(line) == PENDING {
                cache.put(line, cycle + self.latency / 2);
            }
        }
    }

    /// What a line takes longer because L2 may not have had it.
    fn first_latency_of(&mut self, line: u32) -> u64 {
        if self.note_fetched(line) {
            self.first_fetch[usize::from(!self.cold)]
        } else {
            0
        }
    }

    /// Notes that a line has come from L2, and says whether for the first time.
    fn note_fetched(&mut self, line: u32) -> bool {
        let (word, bit) = (line as usize / 64, 1 << (line % 64));
        if self.fetched.len() <= word {
            self.fetched.resize(word + 1, 0);
        }
        let known = self.fetched[word] & bit != 0;
        self.fetched[word] |= bit;
        !known
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
        assert_eq!(fetch.misses.len(), 7, "the line and six after it");
        for miss in std::mem::take(&mut fetch.misses) {
            fetch.fill(miss, 300);
        }
        let first = 300 + fetch.first_fetch[1];
        assert_eq!(fetch.line(0, line, 320), first + fetch.latency / 2);
        assert!(fetch.line(0, line + 1, 900) <= 900);
        assert_eq!(fetch.misses.len(), 1, "the stream goes on");
        // Another sub-core finds the line in the SM's cache.
        assert_eq!(fetch.line(1, line, 950), 950 + fetch.latency);
    }

    #[test]
    fn a_launch_brings_its_code_along() {
        let mut fetch = fetch();
        fetch.start(3, 1000, 80..160, true, true, 50);
        let line = fetch.number(3, 80);
        let there = fetch.line(0, line, 60);
        let l15 = fetch.l15_latency + fetch.latency;
        assert_eq!(there, 50 + fetch.launch_code + l15);
        assert!(fetch.misses.is_empty(), "nothing is asked of L2");
        assert_eq!(fetch.line(0, fetch.number(3, 800), 60), PENDING);
        // The same kernel again finds it there.
        fetch.start(3, 1000, 80..160, true, false, 5000);
        assert_eq!(fetch.line(1, line, 5001), 5001 + fetch.latency);
    }

    #[test]
    fn a_launch_brings_so_much_and_again_what_had_to_go() {
        let mut fetch = fetch();
        let all = 8 * 4096;
        fetch.start(3, all as usize, 0..all, true, false, 0);
        let last = fetch.number(3, 8 * (fetch.launch_lines - 1));
        fetch.line(0, last - fetch.ahead, 10_000);
        assert!(fetch.misses.is_empty(), "up to the limit");
        assert_eq!(fetch.line(0, last + 1, 11_000), PENDING);
        // As much code as L1.5 holds makes it forget the beginning, and another launch brings it.
        let mut at = 20_000;
        for number in last + 1..last + 1 + fetch.l15.capacity as u32 {
            fetch.line(0, number, at);
            for miss in std::mem::take(&mut fetch.misses) {
                fetch.fill(miss, at + 300);
            }
            at += 1000;
        }
        assert_eq!(fetch.l15.get(0), ABSENT);
        fetch.start(3, all as usize, 0..all, true, false, at);
        assert_eq!(fetch.l15.get(0), at + fetch.launch_code);
    }
}
