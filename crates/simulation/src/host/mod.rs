//! The host threads of a program as the device sees them: in which order their calls count, and
//! when simulated time may pass.
//!
//! | file | idea |
//! |---|---|
//! | `tasks.rs` | whether the threads of a process are at rest |
//! | `sleep.rs` | what a sleeping thread waits for |
//! | `order.rs` | calls of one quiet period, in one order |
//! | `outside.rs` | whether the host can go on by itself |

mod order;
mod outside;
mod sleep;
mod tasks;

pub use order::{Call, HostOrder, Key, Turn};
pub use outside::{Inside, who_may_act};
