//! Graphs of the program: built here, node by node or by capturing streams, and handed to
//! the simulator when they are launched.
//!
//! `model` has graphs and nodes, `exec` what becomes of a graph that is instantiated, and
//! `capture` the streams whose work becomes nodes instead of running.

pub mod capture;
pub mod exec;
pub mod model;
pub mod objects;
