//! One warp about to execute one instruction, and everything that it may reach.

use lockstep_engine::Outbox;

use super::cta::Block;
use super::warp::Warp;
use crate::launch::LaunchContext;
use crate::message::Message;
use crate::sm::lsu::port::Port;
use crate::sm::now::Now;

/// A warp, its block and the memory side of the SM.
pub struct Site<'a, 'o> {
    /// Slot of the warp.
    pub slot: u8,
    /// The warp.
    pub warp: &'a mut Warp,
    /// Its block.
    pub block: &'a mut Block,
    /// Its launch.
    pub context: &'a LaunchContext,
    /// The memory side of the SM.
    pub port: &'a mut Port,
    /// The present; copied here it would wait for words that were written a moment ago.
    pub now: &'a Now,
    /// Where messages leave.
    pub outbox: &'a mut Outbox<'o, Message>,
    /// Whether anybody asks for bank conflicts.
    pub timed: bool,
}
