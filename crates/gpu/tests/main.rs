//! GPU kernels, as machines of a few SMs run them.
//!
//! One program for all of them: what they share is compiled once. Each file is a subject.

mod back_pressure;
mod bulk_copies;
mod clusters;
mod code_on_demand;
mod combined_stores;
mod common;
mod computes_correctly;
mod concurrent_traffic;
mod copies_and_matrices;
mod device_launches;
mod early_reads;
mod faults;
mod litmus;
mod liveness;
mod machine_code;
mod managed;
mod one_answer;
mod permissions;
mod ptx_programs;
mod schedules;
mod settings;
mod straight_line_code;
mod supply;
mod takes_time;
