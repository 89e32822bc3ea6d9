//! The checking mode on compiled machine code: silent as it is, and loud when control bits are made
//! worse.

use std::sync::Arc;

use crate::common::*;
use lockstep_frontend::sass::Image;
use lockstep_gpu::{Checks, FaultKind, Gpu, GpuError, Launch, Mode, Options};
use lockstep_isa::Module;

const CUBIN: &[u8] = include_bytes!("sass/mix.sm_90.cubin");
const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

fn module() -> Module {
    let image = Image::read(CUBIN).expect("a cubin");
    image.link(&[]).expect("it has no variables")
}

/// Runs the kernel in the checking mode; what it found, if anything.
fn found(module: Module, mode: Mode) -> Option<String> {
    let options = Options {
        mode,
        checks: Checks {
            control_bits: true,
            ..Checks::default()
        },
        ..Options::default()
    };
    let mut gpu = Gpu::new(&small(2), memory(), options).unwrap();
    let module = Arc::new(module);
    let mut launch = Launch::new(&module, "mix", [2, 1, 1], [64, 1, 1]).unwrap();
    launch.arguments.extend(BASE.to_le_bytes());
    launch.arguments.extend((BASE + 4096).to_le_bytes());
    launch.arguments.extend(100u32.to_le_bytes());
    let id = gpu.launch(launch).unwrap();
    match gpu.run_until_complete(id) {
        Ok(_) => None,
        Err(GpuError::Fault(fault)) => match fault.kind {
            FaultKind::EarlyRead(what) => Some(what),
            other => panic!("{other}"),
        },
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn compiled_code_reads_nothing_early() {
    for mode in MODES {
        assert_eq!(found(module(), mode), None, "{mode:?}");
    }
}

#[test]
fn lowered_stall_counts_are_found() {
    for mode in MODES {
        let mut module = module();
        module.code.edit(|code| {
            for instruction in code {
                if let Some(control) = &mut instruction.scheduling.control {
                    control.stall = 1;
                }
            }
        });
        let what = found(module, mode).expect("early reads");
        assert!(what.contains("cycles after it"), "{what}");
    }
}

/// One instruction at a time: what the next one needs at once is always found.
#[test]
fn a_single_lowered_stall_count_is_found() {
    let length = module().code.len();
    let (mut lowered, mut noticed) = (0, 0);
    for index in 0..length {
        let mut module = module();
        let mut changed = module.code[index].clone();
        let Some(control) = &mut changed.scheduling.control else {
            continue;
        };
        // Shorter stalls cover no latency of arithmetic.
        if control.stall < 4 {
            continue;
        }
        control.stall = 1;
        module.code.replace(index, changed);
        lowered += 1;
        noticed += usize::from(found(module, Mode::Functional).is_some());
    }
    // The others pad branches, fences and counters, or code that does not run.
    assert!(noticed * 3 >= lowered, "{noticed} of {lowered}");
    assert!(noticed >= 10, "{noticed} of {lowered}");
}

#[test]
fn a_forgotten_wait_is_found() {
    let length = module().code.len();
    let mut noticed = Vec::new();
    for index in 0..length {
        let mut module = module();
        let mut changed = module.code[index].clone();
        let Some(control) = &mut changed.scheduling.control else {
            continue;
        };
        if std::mem::take(&mut control.wait_mask) == 0 {
            continue;
        }
        module.code.replace(index, changed);
        noticed.extend(found(module, Mode::Functional));
    }
    assert!(noticed.len() >= 2, "{noticed:?}");
    assert!(
        noticed.iter().all(|what| what.contains("counter SB")),
        "{noticed:?}"
    );
}
