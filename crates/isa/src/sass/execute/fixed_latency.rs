//! How close the compiler puts an instruction to one that needs its result.
//!
//! Instructions of fixed latency raise no counter; the compiler knows their latency and lets stall
//! counts cover it. The figures here are the smallest distances in a sample of the kernels that
//! cuBLAS, cuFFT, cuRAND and cuSPARSE carry for sm_75 to sm_90 (`least_distance` in the crate `gpu`
//! measures them; several million dependences). Two of them, both in one kernel for sm_80, are a cycle
//! closer than the table says. None for sm_70 could be read, so its rows are those of sm_75. An
//! instruction without a row has no fixed latency that is known: a counter, or another instruction of
//! its pipe that raises one, tells when it is done.

use crate::instruction::FixedLatency;

struct Row {
    names: &'static str,
    /// First and last architecture.
    architectures: (u32, u32),
    fixed_latency: FixedLatency,
}

const fn row(names: &'static str, architectures: (u32, u32), fixed_latency: [u8; 3]) -> Row {
    let [registers, predicates, guard] = fixed_latency;
    Row {
        names,
        architectures,
        fixed_latency: FixedLatency {
            registers,
            predicates,
            guard,
            late_read: 0,
        },
    }
}

const ALL: (u32, u32) = (0, u32::MAX);
const VOLTA: (u32, u32) = (0, 79);
const AMPERE: (u32, u32) = (80, u32::MAX);

/// Cycles until a register, a predicate as operand, a predicate as guard can be read. The first row that
/// fits counts.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("ISETP FSETP PLOP3", VOLTA, [0, 4, 12]),
    row("ISETP FSETP PLOP3", AMPERE, [0, 4, 13]),
    row("LOP3 IADD3 LEA IMAD", VOLTA, [4, 4, 12]),
    row("LOP3 IADD3 LEA", AMPERE, [4, 4, 13]),
    // The lower word of a wide product comes two cycles before the upper one.
    row("IMAD", (90, u32::MAX), [3, 4, 13]),
    row("IMAD", (80, 89), [4, 4, 13]),
    row("FADD FFMA FMUL FSEL SEL MOV SHF PRMT IABS P2R SGXT IMNMX VIADD VIMNMX VIMNMX3 VIADDMNMX", ALL, [4, 0, 0]),
    row("FMNMX", AMPERE, [4, 0, 0]),
    row("I2FP F2FP IDP HMNMX2 VHMNMX", AMPERE, [4, 0, 0]),
    row("HADD2 HFMA2 HMUL2", VOLTA, [6, 0, 0]),
    row("HADD2 HFMA2 HMUL2", AMPERE, [4, 0, 0]),
    row("HSETP2", AMPERE, [0, 5, 13]),
    row("DADD DFMA DMUL", (75, 79), [12, 0, 0]),
    row("DADD DFMA DMUL", (80, 89), [10, 0, 0]),
    row("DADD DFMA DMUL", (90, u32::MAX), [6, 0, 0]),
    row("DSETP", (80, 89), [0, 12, 14]),
    row("DSETP", (90, u32::MAX), [0, 6, 14]),
    row("VOTE", (75, u32::MAX), [4, 0, 0]),
    row("R2UR", (90, u32::MAX), [13, 8, 13]),
    row("UMOV ULDC", ALL, [2, 0, 0]),
    row("VOTEU", ALL, [2, 1, 5]),
    row("UIADD3 UIMAD ULEA ULOP3 USEL USHF UISETP UPLOP3", ALL, [4, 4, 11]),
];

/// The least distances of an instruction; `wide` is its modifier.
#[must_use]
pub fn fixed_latency(name: &str, wide: bool, architecture: u32) -> FixedLatency {
    let row = ROWS
        .iter()
        .filter(|row| (row.architectures.0..=row.architectures.1).contains(&architecture))
        .find(|row| row.names.split(' ').any(|known| known == name));
    let mut fixed_latency = row.map_or(FixedLatency::default(), |row| row.fixed_latency);
    // A wide multiply-add adds the upper word two cycles after the lower one.
    if architecture >= 90 && name == "IMAD" && wide {
        fixed_latency.late_read = 2;
    }
    fixed_latency
}
