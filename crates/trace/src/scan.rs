//! The first pass over the trace of a kernel: which instructions it has, which memory it touches, and what a
//! replay cannot get right.
//!
//! What is kept grows with the code and with the pages that are touched, not with the length of the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use crate::error::TraceError;
use crate::header::KernelHeader;
use crate::line::InstructionLine;
use crate::reader::{Event, KernelTrace};

/// Memory is mapped in pages of this size.
pub const PAGE: u64 = 2 << 20;
/// Most instructions of a kernel with all that it calls.
const MOST_CODE: usize = 1 << 20;
/// Furthest program counter: gaps between instructions that were executed take room as well.
const FURTHEST: u64 = 16 << 20;
/// Most pages that a kernel may touch.
const MOST_PAGES: usize = 1 << 20;
/// How often a warp asks the same place before it is taken to wait for somebody.
const POLLS: u32 = 8;

/// Memory that an instruction names by its opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracedSpace {
    /// None.
    Nowhere,
    /// Global memory.
    Global,
    /// Shared memory.
    Shared,
    /// Local memory.
    Local,
    /// Whatever the address says.
    Generic,
}

impl TracedSpace {
    /// That of an opcode.
    #[must_use]
    pub fn of(opcode: &str) -> Self {
        match opcode.split('.').next().unwrap_or_default() {
            "LDG" | "STG" | "RED" | "REDG" | "ATOMG" | "LDGSTS" => Self::Global,
            "LDS" | "STS" | "ATOMS" | "LDSM" | "STSM" | "SYNCS" => Self::Shared,
            "LDL" | "STL" => Self::Local,
            "LD" | "ST" | "ATOM" => Self::Generic,
            _ => Self::Nowhere,
        }
    }
}

/// A loop in which warps wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// Where it asks, in bytes from the start of its function.
    pub pc: u64,
    /// Most times that one warp asked in a row.
    pub most: u32,
}

/// What the first pass found.
#[derive(Debug, Default)]
pub struct Scan {
    /// The kernel.
    pub header: KernelHeader,
    /// Its instructions, without lanes and addresses, by their number.
    pub code: Vec<InstructionLine>,
    /// Numbers of the instructions at a program counter: more than one where functions are called.
    numbers: BTreeMap<u64, Vec<u32>>,
    /// Pages of global memory that it touches.
    pub pages: BTreeSet<u64>,
    /// Local memory that it touches, in offsets.
    pub local: Range<u64>,
    /// Bytes of shared memory that it touches.
    pub shared: u64,
    /// Instructions of warps; a copy from global to shared memory counts once.
    pub instructions: u64,
    /// A loop in which warps wait, if there is one.
    pub polling: Option<Polling>,
    /// Opcodes that a replay cannot do justice to.
    pub inexact: BTreeSet<String>,
    /// Blocks that the trace has.
    pub blocks: u64,
}

/// Opcodes whose effect only values tell.
const INEXACT: &[&str] = &[
    "TEX",
    "TLD",
    "TLD4",
    "TXD",
    "SULD",
    "SUST",
    "SURED",
    "UTMALDG",
    "UTMASTG",
    "UTMAREDG",
    "UBLKCP",
    "UBLKRED",
    "SYNCS",
    "ARRIVES",
    "HGMMA",
    "IGMMA",
    "QGMMA",
    "BGMMA",
    "UCGABAR_ARV",
    "UCGABAR_WAIT",
];

/// Reads a trace from its beginning to its end.
///
/// # Errors
/// If something in it is wrong, or it is larger than any kernel.
pub fn scan(path: &Path) -> Result<Scan, TraceError> {
    scan_trace(KernelTrace::open(path)?)
}

/// The same of a trace that is open.
///
/// # Errors
/// As [`scan`].
pub fn scan_trace(mut trace: KernelTrace) -> Result<Scan, TraceError> {
    let mut scan = Scan {
        header: trace.header().clone(),
        ..Scan::default()
    };
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    let mut warp = WarpWatch::default();
    while let Some(event) = trace.next_event()? {
        let added = match event {
            Event::Block(block) => {
                scan.blocks += 1;
                let number = scan.header.block_number(block).unwrap_or(0);
                match seen.insert(number) {
                    true => Ok(()),
                    false => Err(format!("block {block:?} comes twice")),
                }
            }
            Event::Warp(_) => {
                warp = WarpWatch::default();
                Ok(())
            }
            Event::Instruction => scan.add(trace.instruction(), &mut warp),
            Event::EndBlock => Ok(()),
        };
        added.map_err(|problem| trace.malformed(problem))?;
    }
    if scan.blocks != scan.header.blocks() {
        return Err(trace.malformed(format!(
            "{} of the grid's {} blocks are in the trace; take it again, whole",
            scan.blocks,
            scan.header.blocks()
        )));
    }
    Ok(scan)
}

/// What a warp did just before.
#[derive(Debug, Default)]
struct WarpWatch {
    /// The first half of a copy: where it stands.
    copying: Option<u64>,
    /// The strong access that it made last: where, at which address, how often in a row.
    poll: (u64, u64, u32),
}

impl Scan {
    fn add(&mut self, line: &InstructionLine, warp: &mut WarpWatch) -> Result<(), String> {
        if warp.copying.take() == Some(line.pc) && is_copy(&line.opcode) {
            // The second half of a copy: its place in global memory.
            return self.touch(line, TracedSpace::Global);
        }
        self.instructions += 1;
        if self.number(line).is_none() {
            self.learn(line)?;
        }
        let space = TracedSpace::of(&line.opcode);
        if is_copy(&line.opcode) {
            warp.copying = Some(line.pc);
            return self.touch(line, TracedSpace::Shared);
        }
        self.watch(line, warp);
        self.touch(line, space)
    }

    /// The number of a line's instruction, if it is known.
    #[must_use]
    pub fn number(&self, line: &InstructionLine) -> Option<u32> {
        let numbers = self.numbers.get(&line.pc)?;
        let same = |number: &&u32| {
            let known = &self.code[**number as usize];
            known.opcode == line.opcode
                && known.destinations == line.destinations
                && known.sources == line.sources
                && known.immediate == line.immediate
        };
        numbers.iter().find(same).copied()
    }

    fn learn(&mut self, line: &InstructionLine) -> Result<(), String> {
        if self.code.len() >= MOST_CODE || line.pc >= FURTHEST {
            return Err(format!(
                "an instruction at {:#x}: no kernel is so long",
                line.pc
            ));
        }
        let name = line.opcode.split('.').next().unwrap_or_default();
        if INEXACT.contains(&name) {
            self.inexact.insert(name.into());
        }
        let number = self.code.len() as u32;
        self.code.push(InstructionLine {
            lanes: 0,
            memory: None,
            ..line.clone()
        });
        self.numbers.entry(line.pc).or_default().push(number);
        Ok(())
    }

    /// Notes the memory that a line touches.
    fn touch(&mut self, line: &InstructionLine, space: TracedSpace) -> Result<(), String> {
        let Some((width, addresses)) = &line.memory else {
            return Ok(());
        };
        // Eight matrices' rows, or four words, at the most.
        let bytes = u64::from(*width).max(16);
        for lane in lockstep_isa::warp_register::lanes_of(line.lanes) {
            let (space, address) = self.header.resolve(space, addresses[lane]);
            let end = address.saturating_add(bytes);
            match space {
                TracedSpace::Global => {
                    self.pages.insert(address / PAGE);
                    self.pages.insert((end - 1) / PAGE);
                }
                TracedSpace::Local => {
                    self.local = match self.local.is_empty() {
                        true => address..end,
                        false => self.local.start.min(address)..self.local.end.max(end),
                    };
                }
                TracedSpace::Shared => self.shared = self.shared.max(end),
                TracedSpace::Generic | TracedSpace::Nowhere => {}
            }
        }
        match self.pages.len() > MOST_PAGES {
            true => Err(format!("more than {MOST_PAGES} pages of 2 MiB are touched")),
            false => Ok(()),
        }
    }

    /// Looks whether a warp asks one place again and again.
    fn watch(&mut self, line: &InstructionLine, warp: &mut WarpWatch) {
        let strong = line.opcode.contains(".STRONG") || line.opcode.starts_with("ATOM");
        let Some((_, addresses)) = line.memory.as_ref().filter(|_| strong && line.lanes != 0)
        else {
            return;
        };
        let address = addresses[line.lanes.trailing_zeros() as usize];
        let (pc, last, times) = warp.poll;
        let times = if (pc, last) == (line.pc, address) {
            times + 1
        } else {
            1
        };
        warp.poll = (line.pc, address, times);
        let most = self.polling.map_or(POLLS - 1, |polling| polling.most);
        if times > most {
            self.polling = Some(Polling {
                pc: line.pc,
                most: times,
            });
        }
    }
}

/// Whether a line is one of a copy from global to shared memory.
#[must_use]
pub fn is_copy(opcode: &str) -> bool {
    opcode.starts_with("LDGSTS")
}

impl KernelHeader {
    /// The memory that an address is in, and the address there: an offset in shared and local memory.
    #[must_use]
    pub fn resolve(&self, space: TracedSpace, address: u64) -> (TracedSpace, u64) {
        let window = match self.shared_base.abs_diff(self.local_base) {
            0 => 1 << 24,
            apart => apart.min(1 << 32),
        };
        let within = |base: u64| {
            (base != 0 && address >= base && address - base < window).then(|| address - base)
        };
        let (shared, local) = (within(self.shared_base), within(self.local_base));
        match space {
            TracedSpace::Generic => match (shared, local) {
                (Some(offset), _) => (TracedSpace::Shared, offset),
                (None, Some(offset)) => (TracedSpace::Local, offset),
                (None, None) => (TracedSpace::Global, address),
            },
            TracedSpace::Shared => (space, shared.unwrap_or(address) & 0xff_ffff),
            TracedSpace::Local => (space, local.unwrap_or(address) & 0xff_ffff),
            _ => (space, address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "-kernel name = k\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-shmem base_addr = 0x7f0001000000\n-local mem base_addr = 0x7f0002000000\n-accelsim tracer version = 5\n#format\n#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\n";

    fn scanned(lines: &str) -> Result<Scan, String> {
        let text = format!("{HEADER}{lines}#END_TB\n");
        let trace = KernelTrace::of_bytes("k.traceg", text.into()).unwrap();
        scan_trace(trace).map_err(|error| error.to_string())
    }

    #[test]
    fn code_and_memory_are_found() {
        let scan = scanned(
            "0000 1 1 R2 LDG.E 1 R4 4 2 0x7e0000000000 0\n0010 1 0 LDGSTS.E.128 2 R2 R4 16 2 0x20 0\n0010 1 0 LDGSTS.E.128 2 R2 R4 16 2 0x7e0000200000 0\n\
             0020 1 0 ST.E 2 R2 R4 4 2 0x7f0001000100 0\n0020 1 0 STL 1 R1 4 2 0xfffff0 0\n0000 1 1 R2 LDG.E 1 R4 4 2 0x7e0000000000 0\n0030 1 0 EXIT 0 0 0\n",
        )
        .unwrap();
        assert_eq!((scan.instructions, scan.code.len()), (6, 5));
        let pages: Vec<u64> = scan.pages.iter().copied().collect();
        assert_eq!(pages, [0x7e00_0000_0000 / PAGE, 0x7e00_0020_0000 / PAGE]);
        assert_eq!((scan.shared, scan.local), (0x110, 0xff_fff0..0x100_0000));
    }

    #[test]
    fn a_warp_that_waits_for_others_is_noticed() {
        let poll = "0000 1 1 R2 LDG.E.STRONG.GPU 1 R4 4 2 0x7e0000000000 0\n0010 1 0 BRA 0 0 0\n";
        assert_eq!(scanned(&poll.repeat(7)).unwrap().polling, None);
        let polling = Polling { pc: 0, most: 20 };
        assert_eq!(scanned(&poll.repeat(20)).unwrap().polling, Some(polling));
    }

    #[test]
    fn blocks_that_are_missing_or_come_twice_are_named() {
        let again = scanned("#END_TB\n#BEGIN_TB\nthread block = 0,0,0\n").unwrap_err();
        assert_eq!(again, "k.traceg:13: block [0, 0, 0] comes twice");
        let header = HEADER.replace("(1,1,1)", "(2,1,1)");
        let trace = KernelTrace::of_bytes("k.traceg", format!("{header}#END_TB\n").into()).unwrap();
        let missing = scan_trace(trace).unwrap_err().to_string();
        assert!(missing.contains("1 of the grid's 2 blocks"), "{missing}");
    }
    proptest::proptest! {
        #[test]
        fn no_changed_bytes_make_it_panic(
            changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), "[ -~\n]"), 1..6),
        ) {
            let lines = "0000 ffffffff 1 R2 LDG.E 1 R4 4 1 0x7e0000000000 4 0\n0010 5 0 STS 2 R2 R4 4 2 0x20 8 0\n0020 1 0 LDGSTS.E.128 2 R2 R4 16 0 0x20 0\n0030 ffffffff 0 BAR.SYNC 0 0 0\n0040 ffffffff 0 EXIT 0 0 0\n";
            let mut text = format!("-binary version = 90\n{HEADER}{lines}#END_TB\n").into_bytes();
            for (place, byte) in changes {
                let place = place.index(text.len());
                text[place] = byte.as_bytes()[0];
            }
            for name in ["k.traceg", "k.trace"] {
                let trace = KernelTrace::of_bytes(name, text.clone());
                if let Ok(scan) = trace.and_then(scan_trace) {
                    let _ = crate::module_of(Path::new(name), scan, Default::default());
                }
            }
        }
    }
}
