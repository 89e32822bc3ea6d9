//! The account of a memory pool: what is taken from it, what it holds, and the most that it may.

/// A pool grows by multiples of this.
const RESERVATION: u64 = 32 << 20;

/// Bytes of one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The most that it may hold; 0 is no limit.
    most: u64,
    /// Taken and not given back, now and at most.
    pub used: u64,
    pub most_used: u64,
    /// Held, now and at most.
    pub reserved: u64,
    pub most_reserved: u64,
}

impl Account {
    /// An empty pool that may hold so much, in whole reservations; 0 is no limit.
    pub fn new(most: u64) -> Self {
        Self {
            most: whole(most),
            ..Self::default()
        }
    }

    /// Whether so much can be taken.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.most == 0 || self.used.saturating_add(bytes) <= self.most
    }

    /// Takes bytes; the pool grows where it has to.
    pub fn take(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
        self.most_used = self.most_used.max(self.used);
        self.reserved = self.reserved.max(whole(self.used));
        self.most_reserved = self.most_reserved.max(self.reserved);
    }

    /// Gives bytes back; the pool holds them until it is released.
    pub fn give(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Gives up what is not used, but for so much.
    pub fn release(&mut self, keep: u64) {
        let kept = self.reserved.min(keep - keep % RESERVATION);
        self.reserved = kept.max(whole(self.used));
    }
}

fn whole(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(RESERVATION).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGA: u64 = 1 << 20;

    /// How often so much fits, as an H200 counted it.
    fn fits(most: u64, bytes: u64) -> u32 {
        let mut account = Account::new(most);
        let mut count = 0;
        while count < 100 && account.has_room(bytes) {
            account.take(bytes);
            count += 1;
        }
        count
    }

    #[test]
    fn a_pool_holds_its_maximum_in_whole_reservations() {
        for (most, expected) in [
            (1, [32, 8, 1, 1, 0]),
            (32 * MEGA, [32, 8, 1, 1, 0]),
            (33 * MEGA, [64, 16, 3, 2, 1]),
            (100 * MEGA, [100, 32, 6, 4, 3]),
        ] {
            let found = [1, 4, 20, 32, 40].map(|bytes| fits(most, bytes * MEGA));
            assert_eq!(found, expected, "{most}");
        }
        assert_eq!(fits(0, 1 << 40), 100, "no limit");
    }

    #[test]
    fn what_is_given_back_is_held_until_released() {
        let mut account = Account::new(64 * MEGA);
        account.take(40 * MEGA);
        assert!(!account.has_room(40 * MEGA));
        account.give(40 * MEGA);
        assert_eq!((account.used, account.reserved), (0, 64 * MEGA));
        account.release(64 * MEGA);
        assert_eq!(account.reserved, 64 * MEGA);
        account.release(33 * MEGA);
        assert_eq!(account.reserved, 32 * MEGA);
        account.take(4096);
        account.release(0);
        assert_eq!(account.reserved, 32 * MEGA, "what is used stays");
        account.give(4096);
        account.release(0);
        assert_eq!(
            (account.reserved, account.most_reserved, account.most_used),
            (0, 64 * MEGA, 40 * MEGA)
        );
    }
}
