//! Managed memory of a machine that is one of several: what it and the directory of its node say to
//! each other.

use super::Machine;
use lockstep_gpu::{News, Order, Placed};
use lockstep_units::Time;

impl Machine {
    /// What the directory is to be told, in the order in which it happened.
    pub fn managed_news(&mut self) -> Vec<News> {
        self.gpu.managed_news()
    }

    /// The directory says something, from a time on.
    pub fn managed_order(&mut self, order: Order, at: Time) {
        let asked = self.gpu.managed_order(order, at);
        self.check_managed(asked);
    }

    /// Whether requests of the program are complete that nobody asked about.
    pub fn has_managed_done(&self) -> bool {
        self.gpu.has_managed_done()
    }

    /// Another GPU has pages, or has them no longer.
    pub fn managed_placed(&mut self, placed: &Placed) {
        self.gpu.managed_placed(placed);
    }
}
