//! One warp about to execute one instruction, and everything that it may reach.

use lockstep_engine::Outbox;

use super::cta::Block;
use super::warp::Warp;
use crate::launch::LaunchContext;
use crate::message::Message;
use crate::sm::lsu::port::Port;
use crate::sm::lsu::transactions::Transaction;
use crate::sm::now::Now;
use crate::sm::sub_core::scoreboard::NO_GROUP;

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

impl Site<'_, '_> {
    /// The number of answers that the warp waits for from now on: of requests that are about to leave for its instruction.
    pub fn open_transaction(&mut self) -> u32 {
        self.warp.pending += 1;
        self.port.transactions.open(Transaction {
            warp: self.slot,
            pc: self.warp.convergence.pc(),
            remaining: 0,
            ready: 0,
            fill: 0,
            group: NO_GROUP,
        })
    }
}
