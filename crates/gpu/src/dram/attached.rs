//! The channels of `mod.rs` behind the port: what they are made with, their state, and their queue.
//!
//! Start reading at [`Channel::accept`](MemoryPort::accept).

use std::sync::Arc;

use lockstep_engine::{LoadError, Reader, Writer};
use lockstep_units::Time;

use super::port::{Acceptance, MemoryPort, MemoryRequest, RequestQueue};
use super::{Dram, DramParameters, place};
use crate::statistics::BankStats;

/// A channel whose times are reserved as requests come.
#[derive(Debug)]
struct Channel {
    parameters: Arc<DramParameters>,
    state: Dram,
    queue: RequestQueue,
}

/// The memory behind a slice: channel `number` of so many.
#[must_use]
pub fn attach(parameters: &Arc<DramParameters>, number: u32, count: u32) -> Box<dyn MemoryPort> {
    Box::new(Channel {
        parameters: Arc::clone(parameters),
        state: Dram::new(parameters, number, count),
        queue: RequestQueue::new(parameters.queue),
    })
}

impl MemoryPort for Channel {
    fn accept(&mut self, at: Time, request: MemoryRequest) -> Acceptance {
        if let Some(until) = self.queue.full_until(at) {
            return Acceptance::Refused { until };
        }
        let MemoryRequest {
            line,
            sectors,
            write,
        } = request;
        let done = self
            .state
            .access(&self.parameters, at, line, sectors, write);
        self.queue.push(done);
        Acceptance::Accepted { done }
    }

    fn busy_until(&self) -> Time {
        self.state.busy_until()
    }

    fn rows(&self) -> [u64; 2] {
        [self.state.row_hits, self.state.row_misses]
    }

    fn place(&self, line: u64) -> (usize, u64) {
        place(&self.parameters, line)
    }

    fn banks(&self) -> Vec<&BankStats> {
        self.state.banks().collect()
    }

    fn count_on(&mut self, banks: &[&BankStats]) {
        self.state.count_on(banks);
    }

    fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&(&self.state, self.queue.saved()));
    }

    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let (state, queue): (Dram, Vec<Time>) = reader.read()?;
        if !state.fits(&self.parameters) {
            let what = "another number of DRAM banks";
            return Err(LoadError::Malformed { what });
        }
        self.state = state;
        self.queue.restore(queue);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each of many reads at one time is done.
    fn reads(queue: u32) -> (Vec<Time>, u32) {
        let setting = format!("dram.queue={queue}");
        let config = lockstep_config::load(Some("h200"), &[setting]).unwrap();
        let parameters = Arc::new(DramParameters::new(&config).unwrap());
        let mut port = attach(&parameters, 3, 96);
        let (mut done, mut refused) = (Vec::new(), 0);
        for number in 0..200 {
            let request = MemoryRequest {
                line: number * 96,
                sectors: 0b11,
                write: false,
            };
            let mut at = Time::ZERO;
            loop {
                match port.accept(at, request) {
                    Acceptance::Accepted { done: one } => break done.push(one),
                    Acceptance::Refused { until } => {
                        assert!(until > at, "a slice asks again later");
                        (at, refused) = (until, refused + 1);
                    }
                }
            }
            if number == 100 {
                let mut bytes = Vec::new();
                port.save(&mut Writer::new(&mut bytes));
                port = attach(&parameters, 3, 96);
                port.load(&mut Reader::new(&bytes)).unwrap();
            }
        }
        (done, refused)
    }

    #[test]
    fn a_full_queue_refuses_and_a_long_one_changes_nothing() {
        let ((any, none), (long, few), (short, many)) = (reads(0), reads(200), reads(4));
        assert_eq!((&any, none), (&long, few));
        assert!(many > 100, "{many} refused");
        assert!(short.last() > any.last());
    }
}
