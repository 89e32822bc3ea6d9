//! The traffic line of the protocol: L2 and DRAM, over programs of 20,000 net cycles and more.
//!
//! A program's error is Σ |sim − hw| over its kernel names, divided by Σ max(hw, 5 % of the
//! footprint). What L2 is asked is what the kernel asks of it: GPCs, and the fabric between its
//! partitions. The host and others ask, too, an amount that differs between machines and grows with
//! time (`l2_sectors` has it all).

use crate::compare::{KernelComparison, ProgramComparison, Report};
use crate::figures::{SMALL_KERNEL_CYCLES, Summary, distance};
use crate::sets::Set;

/// What is compared: its name, the counters that make it up, and the bytes of one unit of them.
pub struct Kind {
    /// As it is printed.
    pub name: &'static str,
    /// Counters whose distances are summed.
    pub counters: &'static [&'static str],
    bytes: f64,
}

/// In the order in which they are printed.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "L2",
        counters: &["l2_sectors_of_kernel"],
        bytes: 32.0,
    },
    Kind {
        name: "DRAM",
        counters: &["dram_bytes_read", "dram_bytes_written"],
        bytes: 1.0,
    },
];

/// What the error may be at most.
pub const BOUND: f64 = 0.12;

/// Which kernels of a program count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All kernels of programs that take 20,000 net cycles and more.
    Programs,
    /// Only kernels that do so themselves.
    Kernels,
}

impl Scope {
    /// Both.
    pub const ALL: [Scope; 2] = [Scope::Programs, Scope::Kernels];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Programs => "programs of 20,000 net cycles and more",
            Self::Kernels => "their kernels of 20,000 net cycles and more",
        }
    }

    fn takes(self, program: &ProgramComparison, kernel: &KernelComparison) -> bool {
        match self {
            Self::Programs => {
                let net = |kernel: &KernelComparison| kernel.net_cycles * kernel.launches as f64;
                program.kernels.iter().map(net).sum::<f64>() >= SMALL_KERNEL_CYCLES
            }
            Self::Kernels => !kernel.is_small(),
        }
    }
}

/// A program's error; nothing when no kernel of it counts or a side does not know the counters.
pub fn program_error(program: &ProgramComparison, kind: &Kind, scope: Scope) -> Option<f64> {
    let (mut off, mut whole) = (0.0, 0.0);
    for kernel in &program.kernels {
        if !scope.takes(program, kernel) {
            continue;
        }
        let mut measured = 0.0;
        for counter in kind.counters {
            let pair = kernel.counters.get(counter)?;
            off += distance(pair.simulated, &pair.hardware);
            measured += pair.hardware.median();
        }
        whole += measured.max(0.05 * kernel.footprint / kind.bytes);
    }
    (whole > 0.0).then(|| off / whole)
}

/// The distribution over programs of these sets at this size.
pub fn summary(
    report: &Report,
    sets: &[Set],
    size: &str,
    kind: &Kind,
    scope: Scope,
) -> Option<Summary> {
    let (mut errors, mut times) = (vec![], vec![]);
    for program in report
        .timed(sets)
        .filter(|program| program.case.size == size)
    {
        if let Some(error) = program_error(program, kind, scope) {
            errors.push(error);
            times.push(program.hardware_cycles(|kernel| scope.takes(program, kernel)));
        }
    }
    Summary::of(&errors, &times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{ExactCounts, Pair};
    use crate::figures::Repeated;
    use crate::hardware::Case;
    use crate::stalls::Stalls;

    /// Net cycles, footprint, and simulated and measured values by counter.
    type Figures = (f64, f64, &'static [(&'static str, f64, &'static [f64])]);

    fn program(kernels: &[Figures]) -> ProgramComparison {
        ProgramComparison {
            case: Case {
                program: "some".into(),
                size: "default".into(),
            },
            set: Set::Development,
            failure: None,
            exact: ExactCounts::default(),
            seconds: 0.0,
            kernels: kernels
                .iter()
                .map(|(net_cycles, footprint, counters)| KernelComparison {
                    name: "kernel".into(),
                    launches: 1,
                    counters: counters
                        .iter()
                        .map(|(name, simulated, measured)| {
                            let hardware = Repeated::new(measured.to_vec()).expect("values");
                            let pair = Pair {
                                simulated: *simulated,
                                hardware,
                                error: 0.0,
                            };
                            (*name, pair)
                        })
                        .collect(),
                    net_cycles: *net_cycles,
                    footprint: *footprint,
                    stall: None,
                    stalls: Stalls::default(),
                })
                .collect(),
        }
    }

    fn close(got: Option<f64>, wanted: f64) {
        let got = got.expect("an error");
        assert!((got - wanted).abs() < 1e-9, "{got} is not {wanted}");
    }

    #[test]
    fn kernels_do_not_cancel_and_small_ones_count_with_their_program() {
        // 20 too many of 100, 30 too few of 300, in a program of 25,000 net cycles.
        let some = program(&[
            (21_000.0, 0.0, &[("l2_sectors_of_kernel", 120.0, &[100.0])]),
            (4_000.0, 0.0, &[("l2_sectors_of_kernel", 270.0, &[300.0])]),
        ]);
        close(
            program_error(&some, &KINDS[0], Scope::Programs),
            50.0 / 400.0,
        );
        close(program_error(&some, &KINDS[0], Scope::Kernels), 0.2);
        // Below 20,000 net cycles a program does not count at all.
        let small = program(&[(19_000.0, 0.0, &[("l2_sectors_of_kernel", 1.0, &[9.0])])]);
        assert_eq!(program_error(&small, &KINDS[0], Scope::Programs), None);
        assert_eq!(program_error(&small, &KINDS[0], Scope::Kernels), None);
    }

    #[test]
    fn reads_and_writes_do_not_cancel_and_little_is_measured_against_the_footprint() {
        // 10 too many read, 10 too few written, of 200.
        let some = program(&[(
            30_000.0,
            0.0,
            &[
                ("dram_bytes_read", 110.0, &[100.0]),
                ("dram_bytes_written", 90.0, &[100.0]),
            ],
        )]);
        close(program_error(&some, &KINDS[1], Scope::Programs), 0.1);
        // 32 sectors of a footprint of 64 KiB: 5 % of it are 102.4 sectors.
        let little = program(&[(
            30_000.0,
            65_536.0,
            &[("l2_sectors_of_kernel", 64.0, &[32.0, 30.0, 33.0])],
        )]);
        close(
            program_error(&little, &KINDS[0], Scope::Programs),
            32.0 / 102.4,
        );
        // Inside the hardware's own spread there is no error; without the counter no figure.
        let within = program(&[(
            30_000.0,
            0.0,
            &[("l2_sectors_of_kernel", 64.0, &[32.0, 70.0])],
        )]);
        close(program_error(&within, &KINDS[0], Scope::Programs), 0.0);
        assert_eq!(program_error(&within, &KINDS[1], Scope::Programs), None);
    }
}
