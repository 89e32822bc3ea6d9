//! The front end of an SM: instruction fetch, instruction and constant caches, decoded code.
//!
//! Start reading at [`fetch::Fetch::line`].

pub mod fetch;
pub mod hazards;
pub mod issue_table;
