//! The host threads of the processes of a run as the device sees them: in which order their calls count,
//! and when simulated time may pass.
//!
//! | file | idea |
//! |---|---|
//! | `family.rs` | the processes of a run, and where each stands among them |
//! | `status.rs` | what the kernel says of a process, and how it ended |
//! | `arrivals.rs` | connections that are being made |
//! | `process.rs` | one process: its calls, its connections, its end |
//! | `task.rs` | a thread, as the kernel shows it |
//! | `tasks.rs` | whether the threads of a process are at rest |
//! | `patience.rs` | how long a thread that computes is waited for |
//! | `sleep.rs` | what a sleeping thread waits for |
//! | `sockets.rs` | who is at the other end of a socket |
//! | `owners.rs` | who has a socket open |
//! | `tcp_table.rs` | the kernel's tables of connections |
//! | `listening.rs` | who is heard while simulated time passes |
//! | `naps.rs` | threads that look now and then whether they are to end |
//! | `waits.rs` | a wait in words, for people |
//! | `looks.rs` | threads that ask again and again after short times |
//! | `order.rs` | calls of one quiet period, in one order |
//! | `outside.rs` | whether the host can go on by itself |

mod arrivals;
mod family;
mod listening;
mod looks;
mod naps;
mod order;
mod outside;
mod owners;
mod patience;
mod process;
mod sleep;
mod sockets;
mod status;
mod task;
mod tasks;
mod tcp_table;
mod waits;

pub use arrivals::{Arrivals, Arriving};
pub use family::children;
pub use listening::Listening;
pub use order::{Call, HostOrder, Key, OnTheWay, Turn};
pub use outside::{Inside, who_may_act};
