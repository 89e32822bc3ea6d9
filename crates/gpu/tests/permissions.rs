//! Memory that may only be read: loads of it succeed, and whatever would write it stops the kernel.

use std::sync::Arc;

use crate::common::*;
use lockstep_gpu::memory::Contents;
use lockstep_gpu::{Gpu, GpuError, Mode, Options};
use lockstep_isa::Module;
use lockstep_isa::memory::{AtomicOperation, AtomicType, Space};

const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];
const MEGA: u64 = 1 << 20;
/// The second megabyte, after that which the test bench maps.
const SECOND: u64 = BASE + MEGA;

/// A GPU whose second megabyte holds sevens and may only be read.
fn guarded(mode: Mode) -> Gpu {
    let gpu = gpu(&small(1), mode);
    gpu.contents().map(SECOND..SECOND + MEGA).unwrap();
    gpu.contents().write(SECOND, &[7; 256]);
    gpu.contents().set_read_only(SECOND, true);
    gpu
}

/// What a kernel of one block ends with: nothing, or why it stopped.
fn outcome(gpu: &mut Gpu, module: &Arc<Module>) -> Result<(), String> {
    let id = gpu.launch(launch(module, 1, 64, &[])).unwrap();
    match gpu.run_until_complete(id) {
        Ok(_) => Ok(()),
        Err(GpuError::Fault(fault)) => Err(fault.kind.to_string()),
        Err(other) => panic!("{other}"),
    }
}

fn check(build: impl Fn(&mut Assembler), expected: Result<(), &str>) {
    for mode in MODES {
        let mut k = Assembler::new();
        build(&mut k);
        let found = outcome(&mut guarded(mode), &k.finish());
        assert_eq!(found, expected.map_err(str::to_string), "{mode:?}");
    }
}

#[test]
fn what_may_only_be_read_is_read() {
    check(
        |k| {
            let [lane, value] = k.regs();
            k.lane(lane);
            k.shl(lane, lane, imm(2));
            k.load(value, Space::Global, SECOND, lane, WEAK);
            k.load(value, Space::Global, SECOND, lane, RELAXED);
            // Its neighbour is still written.
            k.store(Space::Global, BASE + MEGA - 256, lane, value, WEAK);
        },
        Ok(()),
    );
}

#[test]
fn stores_and_atomics_on_it_stop_the_kernel() {
    let range = "0x200000100000 to 0x200000200000 is mapped for reading only";
    for strength in [WEAK, RELAXED] {
        check(
            |k| {
                let lane = k.reg();
                k.lane(lane);
                k.shl(lane, lane, imm(2));
                k.store(Space::Global, SECOND, lane, lane, strength);
            },
            Err(&format!(
                "illegal global store of 4 bytes at 0x200000100000: {range}"
            )),
        );
    }
    for returns in [true, false] {
        let what = if returns { "atomic" } else { "reduction" };
        check(
            |k| {
                let value = k.reg();
                k.atomic(
                    returns.then_some(value),
                    Space::Global,
                    AtomicOperation::Add,
                    AtomicType::U32,
                    SECOND,
                    imm(64),
                    &[imm(1)],
                    RELAXED,
                );
            },
            Err(&format!(
                "illegal global {what} of 4 bytes at 0x200000100040: {range}"
            )),
        );
    }
}

#[test]
fn one_lane_that_strays_into_it_stops_the_kernel() {
    check(
        |k| {
            // Lanes 0 to 15 end the first megabyte, the others begin the second.
            let lane = k.reg();
            k.lane(lane);
            k.shl(lane, lane, imm(2));
            k.store(Space::Global, SECOND - 64, lane, lane, WEAK);
        },
        Err(
            "illegal global store of 4 bytes at 0x200000100000: 0x200000100000 to 0x200000200000 is \
             mapped for reading only",
        ),
    );
}

#[test]
fn permission_can_be_given_back_and_survives_a_save() {
    for mode in MODES {
        let mut k = Assembler::new();
        k.store(Space::Global, SECOND, imm(0), imm(9), WEAK);
        let module = k.finish();
        let saved = guarded(mode).save();
        let fresh = Arc::new(Contents::anonymous(BASE, SIZE).unwrap());
        let options = Options {
            mode,
            ..Options::default()
        };
        let mut gpu = Gpu::new(&small(1), fresh, options).unwrap();
        gpu.load(&saved, &|_| None).unwrap();
        assert!(outcome(&mut gpu, &module).is_err());
        assert_eq!(word(&gpu, SECOND), 0x0707_0707, "nothing was written");
        let mut gpu = guarded(mode);
        gpu.contents().set_read_only(SECOND, false);
        assert_eq!(outcome(&mut gpu, &module), Ok(()));
        assert_eq!(word(&gpu, SECOND), 9);
    }
}
