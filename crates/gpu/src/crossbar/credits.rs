//! Credits: the room that slices have for the requests of an SM, and what the SM holds back.
//!
//! Every slice has a queue with room for so many requests of each SM (`interconnect.credits`). An SM
//! that has none left for a slice holds requests for it back; those for other slices pass. A slice gives
//! credits back as it takes requests up, several at a time ([`CreditReturn`]), so a slice that stalls
//! stalls those who ask it: once an SM holds back `interconnect.held-requests`, no further memory
//! instruction issues.
//!
//! Start reading at [`CreditGate::admit`], then [`CreditReturn::take_up`].

use lockstep_engine::PartitionId;
use lockstep_units::{Bytes, Time};
use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::statistics::CreditStats;

/// A request that waits for a credit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRequest {
    /// The slice that it is for.
    pub to: PartitionId,
    /// When it would have left.
    pub at: Time,
    /// Bytes with what is around them.
    pub size: Bytes,
    /// What it asks.
    pub message: Message,
    /// The generation of a weak store, which fences wait for until it has left.
    pub store: Option<u64>,
}

/// The credits of one SM, and what waits for them.
#[derive(Clone, Debug, Default)]
pub struct CreditGate {
    /// Credits left, by slice; empty if there is any number.
    credits: Vec<u16>,
    /// What waits, in the order in which it came.
    held: Vec<HeldRequest>,
    /// So many may wait before memory instructions do.
    limit: usize,
    /// What it counts.
    pub stats: CreditStats,
}

/// [`CreditGate`] as it is saved.
pub type Saved = (Vec<u16>, Vec<HeldRequest>, CreditStats);

impl CreditGate {
    /// With so many credits for each of some slices, or any number with 0.
    #[must_use]
    pub fn new(slices: u32, credits: u32, limit: u32) -> Self {
        let slices = if credits == 0 { 0 } else { slices as usize };
        Self {
            credits: vec![credits.min(u32::from(u16::MAX)) as u16; slices],
            held: Vec::new(),
            limit: limit.max(1) as usize,
            stats: CreditStats::default(),
        }
    }

    /// Whether a request may leave for a slice; it has its credit then.
    #[inline]
    pub fn admit(&mut self, slice: u32) -> bool {
        match self.credits.get_mut(slice as usize) {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Holds a request back.
    pub fn hold(&mut self, request: HeldRequest) {
        self.held.push(request);
        self.stats.held.increment();
        self.stats.peak.see(self.held.len() as u64);
    }

    /// Whether no further memory instruction may issue.
    #[must_use]
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.held.len() >= self.limit
    }

    /// A slice has room for so many more requests. Says which of those that were held back leave for it,
    /// in their order; they have their credits.
    pub fn give_back(&mut self, slice: u32, to: PartitionId, count: u16) -> Vec<HeldRequest> {
        let Some(left) = self.credits.get_mut(slice as usize) else {
            return Vec::new();
        };
        *left += count;
        if self.held.is_empty() {
            return Vec::new();
        }
        let leave = |request: &mut HeldRequest| {
            let leaves = request.to == to && *left > 0;
            *left -= u16::from(leaves);
            leaves
        };
        self.held.extract_if(.., leave).collect()
    }

    /// What is saved.
    #[must_use]
    pub fn saved(&self) -> Saved {
        (self.credits.clone(), self.held.clone(), self.stats.clone())
    }

    /// Takes on what was saved; says whether it is of a machine like this.
    #[must_use]
    pub fn restore(&mut self, (credits, held, stats): Saved) -> bool {
        let fits = credits.len() == self.credits.len();
        (self.credits, self.held, self.stats) = (credits, held, stats);
        fits
    }
}

/// The credits that a slice owes to SMs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditReturn {
    /// Credits that each SM has not got back, and when the last of these requests is taken up.
    owed: Vec<(u16, Time)>,
}

impl CreditReturn {
    /// A request of an SM is taken up at a time. Says how many credits go back, and when: a link carries
    /// `batch` at a time.
    #[inline]
    pub fn take_up(&mut self, sm: u32, at: Time, batch: u16) -> Option<(u16, Time)> {
        let sm = sm as usize;
        if self.owed.len() <= sm {
            self.owed.resize(sm + 1, (0, Time::ZERO));
        }
        let owed = &mut self.owed[sm];
        owed.0 += 1;
        owed.1 = owed.1.max(at);
        (owed.0 >= batch).then(|| std::mem::take(owed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(to: u32, line: u64) -> HeldRequest {
        let message = Message::Read {
            line,
            sectors: 1,
            miss: 0,
            tag: 0,
        };
        HeldRequest {
            to: PartitionId(to),
            at: Time(5),
            size: Bytes(8),
            message,
            store: None,
        }
    }

    #[test]
    fn requests_wait_for_their_slice_alone_and_leave_in_their_order() {
        let mut gate = CreditGate::new(3, 2, 2);
        assert!(gate.admit(1) && gate.admit(1) && !gate.admit(1));
        assert!(gate.admit(2), "another slice has room");
        gate.hold(request(11, 7));
        assert!(!gate.is_full());
        gate.hold(request(10, 8));
        gate.hold(request(11, 9));
        assert!(gate.is_full());
        assert_eq!(gate.give_back(1, PartitionId(11), 1), [request(11, 7)]);
        let mut loaded = CreditGate::new(3, 2, 2);
        assert!(loaded.restore(gate.saved()) && loaded.is_full());
        assert!(!CreditGate::new(4, 2, 2).restore(gate.saved()));
        assert_eq!(loaded.give_back(1, PartitionId(11), 2), [request(11, 9)]);
        assert!(!loaded.is_full() && loaded.admit(1) && !loaded.admit(1));
    }

    #[test]
    fn any_number_of_requests_passes_without_credits() {
        let mut gate = CreditGate::new(3, 0, 2);
        assert!((0..1000).all(|_| gate.admit(1)));
        assert!(gate.give_back(1, PartitionId(11), 1).is_empty());
    }

    #[test]
    fn credits_go_back_several_at_a_time_when_the_last_is_taken_up() {
        let mut credits = CreditReturn::default();
        assert_eq!(credits.take_up(3, Time(50), 2), None);
        assert_eq!(credits.take_up(4, Time(10), 2), None, "another SM");
        assert_eq!(credits.take_up(3, Time(20), 2), Some((2, Time(50))));
        assert_eq!(credits.take_up(3, Time(60), 2), None);
    }
}
