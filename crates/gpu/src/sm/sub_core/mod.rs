//! A sub-core (SMSP): warp scheduler, scoreboards, control bits, stall reasons.

pub mod control_bit_checker;
pub mod early_reads;
pub mod scheduler;
pub mod scoreboard;
pub mod stall;
