//! Sectors of strong loads that are one request.
//!
//! An SM sends the sectors of a strong load one by one, because each is performed by itself. Those
//! of a line are one request to the slice all the same, as those of a weak load are: it takes one
//! turn, and its sectors are passed on one after the other, though sectors of other SMs may arrive
//! between them.
//!
//! Start reading at [`StrongLoads::follow`].

use lockstep_units::Time;
use serde::{Deserialize, Serialize};

use crate::memory::{LINE, SECTOR};
use crate::message::StrongRequest;

const SECTORS: u64 = LINE / SECTOR;

/// Senders that can be SMs; whoever is none has a number beyond all of them.
const MOST_SMS: usize = 1 << 16;

/// The last request of each SM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrongLoads {
    of_sms: Vec<Option<Last>>,
}

/// A request of which a sector has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Last {
    transaction: u32,
    line: u64,
    /// Sectors that have not come yet, a bit each.
    left: u8,
    /// When the slice begins with it.
    begin: Time,
}

impl StrongLoads {
    /// A sector comes. If others of its request have come before, says when the slice begins with
    /// the request and how many they are.
    pub fn follow(&mut self, sm: u32, request: &StrongRequest) -> Option<(Time, u32)> {
        let last = self.of_sms.get_mut(sm as usize)?.as_mut()?;
        let bit = 1 << (request.sector % SECTORS);
        let same = last.transaction == request.transaction && last.line == request.sector / SECTORS;
        if !same || last.left & bit == 0 {
            return None;
        }
        let before = request.of_line & !last.left;
        last.left &= !bit;
        Some((last.begin, before.count_ones()))
    }

    /// The slice begins with a request whose first sector has come.
    pub fn begin(&mut self, sm: u32, request: &StrongRequest, begin: Time) {
        let sm = sm as usize;
        if sm >= MOST_SMS {
            return;
        }
        if self.of_sms.len() <= sm {
            self.of_sms.resize(sm + 1, None);
        }
        self.of_sms[sm] = Some(Last {
            transaction: request.transaction,
            line: request.sector / SECTORS,
            left: request.of_line & !(1 << (request.sector % SECTORS)),
            begin,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sector(transaction: u32, sector: u64, of_line: u8) -> StrongRequest {
        StrongRequest {
            transaction,
            sector,
            of_line,
            ..StrongRequest::default()
        }
    }

    #[test]
    fn sectors_of_a_line_are_one_request_though_others_come_between_them() {
        let mut loads = StrongLoads::default();
        assert_eq!(loads.follow(3, &sector(7, 40, 0b1101)), None);
        loads.begin(3, &sector(7, 40, 0b1101), Time(100));
        loads.begin(4, &sector(7, 40, 0b1111), Time(200));
        assert_eq!(
            loads.follow(3, &sector(7, 42, 0b1101)),
            Some((Time(100), 1))
        );
        assert_eq!(
            loads.follow(3, &sector(7, 43, 0b1101)),
            Some((Time(100), 2))
        );
        assert_eq!(loads.follow(3, &sector(7, 43, 0b1101)), None, "it has come");
    }

    #[test]
    fn another_instruction_and_another_line_are_other_requests() {
        let mut loads = StrongLoads::default();
        loads.begin(0, &sector(7, 40, 0b1111), Time(100));
        assert_eq!(loads.follow(0, &sector(8, 41, 0b1111)), None);
        assert_eq!(loads.follow(0, &sector(7, 45, 0b1111)), None);
        // Who is no SM sends no loads; should one do so, each is a request of its own.
        loads.begin(u32::MAX, &sector(7, 40, 0b1111), Time(100));
        assert_eq!(loads.follow(u32::MAX, &sector(7, 41, 0b1111)), None);
    }
}
