//! A kernel of a trace as a module that the hardware can launch.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lockstep_isa::instruction::{Flow, SchedulingInfo};
use lockstep_isa::sass::Architecture;
use lockstep_isa::sass::execute::bind::PREDICATES;
use lockstep_isa::{Instruction, Kernel, Module, Operation};

use crate::bind::{WARP_REGISTERS, bind_line};
use crate::error::TraceError;
use crate::scan::Scan;
use crate::source::{KernelSource, PageMap};

/// Bytes of an instruction of machine code.
const INSTRUCTION: u64 = 16;
/// Most local memory of a thread.
const MOST_LOCAL: u64 = 512 << 10;

/// Shared memory that Hopper keeps for itself at the beginning of each block's.
const HOPPER_RESERVED_SHARED: u32 = 1024;

/// A kernel of a trace that can be launched.
#[derive(Debug)]
pub struct TracedProgram {
    /// Its code, with the traces of its blocks.
    pub module: Module,
    /// Shared memory that it is launched with, in bytes.
    pub dynamic_shared: u32,
}

/// Makes the kernel of a trace that was scanned.
///
/// # Errors
/// If its architecture or one of its instructions is not known, or it has too much local memory.
pub fn module_of(
    path: &Path,
    scan: Scan,
    pages: Arc<PageMap>,
) -> Result<TracedProgram, TraceError> {
    let refused = |problem: String| TraceError::Code {
        file: path.display().to_string(),
        problem,
    };
    let version = scan.header.binary_version;
    let architecture = Architecture::from_sm(version).ok_or_else(|| {
        refused(format!(
            "-binary version = {version}: machine code from 70 to 90 is known"
        ))
    })?;
    let local = scan.local.end - (scan.local.start & !15).min(scan.local.end);
    if local > MOST_LOCAL {
        return Err(refused(format!(
            "{local} bytes of local memory; a thread has 512 KiB"
        )));
    }
    let (places, length) = places(&scan);
    let code_length = length + 1;
    let nothing = Instruction::new(Operation::Nothing, SchedulingInfo::default());
    let mut code = vec![nothing; length as usize];
    let mut module = Module {
        listing: vec![String::new(); length as usize],
        architecture: version,
        functions: vec![(0, scan.header.name.clone())],
        ..Module::default()
    };
    for (line, place) in scan.code.iter().zip(&places) {
        let bound = bind_line(line, architecture, *place, code_length).map_err(refused)?;
        code[*place as usize] = bound;
        module.listing[*place as usize].clone_from(&line.opcode);
    }
    // For warps that did nothing.
    let mut end = Instruction::new(Operation::Flow(Flow::Exit), SchedulingInfo::default());
    end.scheduling.pseudo = true;
    code.push(end);
    module.code = code.into();
    module.listing.push(String::new());
    let header = &scan.header;
    let reserved = if version >= 90 {
        HOPPER_RESERVED_SHARED
    } else {
        0
    };
    let touched = scan.shared.min(1 << 24) as u32;
    let dynamic_shared = header.shared.max(touched.saturating_sub(reserved));
    module.kernels.push(Kernel {
        name: header.name.clone(),
        warp_registers: WARP_REGISTERS,
        registers: header.registers.clamp(1, 255),
        predicates: PREDICATES,
        shared_reserved: reserved,
        local_bytes: local as u32,
        ..Kernel::default()
    });
    let source = KernelSource::new(path.into(), scan, places, &module, length, pages);
    module.trace = Some(Arc::new(source));
    Ok(TracedProgram {
        module,
        dynamic_shared,
    })
}

/// The place in the code of each instruction: that of its program counter, or behind all of them if another function
/// has it.
fn places(scan: &Scan) -> (Vec<u32>, u32) {
    let furthest = scan.code.iter().map(|line| line.pc / INSTRUCTION).max();
    let mut length = furthest.map_or(0, |last| last as u32 + 1);
    let mut taken: BTreeMap<u64, ()> = BTreeMap::new();
    let mut places = Vec::with_capacity(scan.code.len());
    for line in &scan.code {
        let place = line.pc / INSTRUCTION;
        if taken.insert(place, ()).is_none() {
            places.push(place as u32);
        } else {
            places.push(length);
            length += 1;
        }
    }
    (places, length)
}
