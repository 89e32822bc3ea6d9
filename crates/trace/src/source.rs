//! The second pass over the trace of a kernel: blocks as they start on the hardware.
//!
//! Blocks start nearly in the order of their numbers, and traces have them in that order; those that are read
//! before somebody asks for them wait in memory.
//!
//! Start reading at [`KernelSource::block`](TraceSource::block).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use lockstep_isa::memory::{LOCAL_WINDOW, SHARED_WINDOW};
use lockstep_isa::trace::{TraceSource, WarpTrace};
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_isa::{Mask, Module};

use crate::address::Addresses;
use crate::error::TraceError;
use crate::line::InstructionLine;
use crate::reader::{Event, KernelTrace};
use crate::scan::{PAGE, Scan, TracedSpace, is_copy};

/// Blocks that wait in memory, at the most: more than all SMs of a GPU can start before one of lower number.
const MOST_WAITING: usize = 1 << 16;

/// Where pages of a trace lie in the simulated memory.
pub type PageMap = BTreeMap<u64, u64>;

/// Blocks of one kernel, from its file.
pub struct KernelSource {
    path: PathBuf,
    scan: Scan,
    /// The place in the code of each instruction, by its number.
    places: Vec<u32>,
    /// Whether lanes may diverge or reconverge after it, by its number.
    flows: Vec<bool>,
    /// The instruction that ends a warp which did nothing.
    end: u32,
    pages: Arc<PageMap>,
    state: Mutex<Option<Open>>,
}

/// A file that is being read.
struct Open {
    trace: KernelTrace,
    waiting: BTreeMap<u64, Vec<WarpTrace>>,
}

impl std::fmt::Debug for KernelSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the trace {}", self.path.display())
    }
}

impl KernelSource {
    /// Blocks of a trace that was scanned. `places` has the place in the code of each instruction, `end` that of one
    /// for warps that did nothing.
    #[must_use]
    pub fn new(
        path: PathBuf,
        scan: Scan,
        places: Vec<u32>,
        module: &Module,
        end: u32,
        pages: Arc<PageMap>,
    ) -> Self {
        let is_flow = |place: &u32| {
            let operation = &module.code[*place as usize].operation;
            matches!(operation, lockstep_isa::Operation::Flow(_))
        };
        Self {
            path,
            flows: places.iter().map(is_flow).collect(),
            scan,
            places,
            end,
            pages,
            state: Mutex::new(None),
        }
    }

    /// Reads on until a block is there.
    fn find(&self, open: &mut Open, block: u64) -> Result<Vec<WarpTrace>, TraceError> {
        if let Some(waiting) = open.waiting.remove(&block) {
            return Ok(waiting);
        }
        loop {
            let (number, warps) = self.read_block(&mut open.trace)?;
            if number == block {
                return Ok(warps);
            }
            if open.waiting.len() >= MOST_WAITING {
                return Err(open.trace.malformed(format!(
                    "block {block} comes so late that {MOST_WAITING} others wait for it; sort the trace by block"
                )));
            }
            open.waiting.insert(number, warps);
        }
    }

    /// The next block of the file.
    fn read_block(&self, trace: &mut KernelTrace) -> Result<(u64, Vec<WarpTrace>), TraceError> {
        let warps = self.scan.header.warps() as usize;
        let mut block = 0;
        let mut traces = vec![WarpBuilder::default(); warps];
        let mut current = 0;
        loop {
            match trace.next_event()? {
                None => return Err(trace.malformed("the trace has no such block")),
                Some(Event::Block(axes)) => {
                    block = self.scan.header.block_number(axes).unwrap_or(0);
                }
                Some(Event::Warp(warp)) => current = warp as usize,
                Some(Event::Instruction) => {
                    let added = self.add(&mut traces[current], trace.instruction());
                    added.map_err(|problem| trace.malformed(problem))?;
                }
                Some(Event::EndBlock) => break,
            }
        }
        let finished = traces
            .into_iter()
            .map(|warp| warp.finish(&self.flows, self.end));
        Ok((block, finished.collect()))
    }

    fn add(&self, warp: &mut WarpBuilder, line: &InstructionLine) -> Result<(), String> {
        let number = self.scan.number(line);
        let number = number.ok_or("the file has changed since it was scanned")?;
        let copies = is_copy(&line.opcode);
        let second = copies && warp.copying == Some(number);
        warp.copying = (copies && !second).then_some(number);
        let space = match (copies, second) {
            (true, false) => TracedSpace::Shared,
            _ => TracedSpace::of(&line.opcode),
        };
        if !second {
            warp.numbers.push(number);
            warp.trace
                .push(self.places[number as usize], line.lanes, line.lanes);
        }
        if let Some((_, addresses)) = &line.memory {
            let placed = self.place(addresses, line.lanes, space)?;
            warp.trace.push_places(&placed);
        }
        Ok(())
    }

    /// Addresses of a trace as the simulated memory has them.
    fn place(
        &self,
        addresses: &Addresses,
        lanes: Mask,
        space: TracedSpace,
    ) -> Result<Addresses, String> {
        let mut placed = [0; LANES];
        let generic = space == TracedSpace::Generic;
        for lane in lanes_of(lanes) {
            let (space, address) = self.scan.header.resolve(space, addresses[lane]);
            placed[lane] = match space {
                TracedSpace::Global => {
                    let page = self.pages.get(&(address / PAGE));
                    let page = page.ok_or("the file has changed since it was scanned")?;
                    page * PAGE + address % PAGE
                }
                TracedSpace::Shared if generic => SHARED_WINDOW + address,
                TracedSpace::Local => {
                    let offset = address.saturating_sub(self.scan.local.start & !15);
                    if generic {
                        LOCAL_WINDOW + offset
                    } else {
                        offset
                    }
                }
                _ => address,
            };
        }
        Ok(placed)
    }
}

impl TraceSource for KernelSource {
    fn block(&self, block: u64) -> Result<Vec<WarpTrace>, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || {
            Ok(Open {
                trace: KernelTrace::open(&self.path)?,
                waiting: BTreeMap::new(),
            })
        };
        let found = (|| {
            if state.is_none() {
                *state = Some(open()?);
            }
            match &mut *state {
                Some(open) => self.find(open, block),
                None => Ok(Vec::new()),
            }
        })();
        found.map_err(|error: TraceError| error.to_string())
    }
}

/// What a warp did, as far as it was read.
#[derive(Clone, Debug, Default)]
struct WarpBuilder {
    trace: WarpTrace,
    numbers: Vec<u32>,
    /// The copy whose first half came last.
    copying: Option<u32>,
}

impl WarpBuilder {
    /// Says which lanes were at each instruction: a trace has only those that executed it. Between two places where
    /// lanes may part they are the same, and most instructions there are executed by all of them.
    fn finish(mut self, flows: &[bool], end: u32) -> WarpTrace {
        let instructions = &mut self.trace.instructions;
        let mut first = 0;
        for at in 0..instructions.len() {
            let last = at + 1 == instructions.len();
            if flows[self.numbers[at] as usize] || last {
                let together = instructions[first..=at]
                    .iter()
                    .fold(0, |all, one| all | one.lanes);
                instructions[first..=at]
                    .iter_mut()
                    .for_each(|one| one.active = together);
                first = at + 1;
            }
        }
        if instructions.is_empty() {
            self.trace.push(end, 0, 0);
        }
        self.trace.shrink();
        self.trace
    }
}
