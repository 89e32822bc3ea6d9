//! The 64-bit state of an `mbarrier`. PTX ISA, "Parallel Synchronization and Communication
//! Instructions: mbarrier".
//!
//! The layout is Hopper's, as an H200 returns it from arrivals and writes it to memory when a barrier is
//! invalidated (`validation/hardware/h200/mbarrier.csv`). Compiled code makes the first state itself.
//!
//! | bits | what |
//! |---|---|
//! | 63 | parity of the phase |
//! | 43-62 | arrivals that are pending, negated |
//! | 21-41 | bytes of transactions that are pending, negated |
//! | 1-20 | arrivals that each phase expects, negated |
//!
//! Ampere's, for `ATOMS.ARRIVE.64`: the pending arrivals, negated, in bits 32-62 below the parity, and
//! the expected ones, negated, in bits 0-29.
//!
//! Start reading at [`change`].

/// Where the arrivals that a phase expects begin.
const EXPECTED: u32 = 1;
/// Where the pending transactions begin.
const TRANSACTIONS: u32 = 21;
/// Where the pending arrivals begin.
const PENDING: u32 = 43;
/// The parity of the phase.
const PARITY: u64 = 1 << 63;
/// Arrivals are counted in so many bits.
const COUNT: u64 = (1 << 20) - 1;
/// Transactions have one bit more, for the sign.
const BYTES: u64 = (1 << 21) - 1;

/// What an operation adds to a barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Change {
    /// Threads that arrive.
    pub arrivals: u64,
    /// Bytes that are expected (positive) or have come (negative).
    pub transactions: i64,
    /// Those that arrive take part in no later phase.
    pub drops: bool,
}

impl Change {
    /// Both, as one operation of a warp.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self {
            arrivals: self.arrivals + other.arrivals,
            transactions: self.transactions + other.transactions,
            drops: self.drops || other.drops,
        }
    }
}

/// The state of a barrier that expects so many arrivals in each phase.
#[must_use]
pub const fn initial(count: u32) -> u64 {
    let negated = (count as u64).wrapping_neg() & COUNT;
    negated << EXPECTED | negated << PENDING
}

/// The state after a change, and whether it ended the phase. `None` if more arrive than are pending or a
/// count leaves its range, which stops a kernel.
#[must_use]
pub const fn change(state: u64, change: Change) -> Option<(u64, bool)> {
    let mut expected = state >> EXPECTED & COUNT;
    let mut pending = state >> PENDING & COUNT;
    if change.arrivals > pending.wrapping_neg() & COUNT {
        return None;
    }
    pending = (pending + change.arrivals) & COUNT;
    // Kept negated, with its sign in the highest bit.
    let kept = ((state >> TRANSACTIONS & BYTES) << 43) as i64 >> 43;
    let bytes = kept - change.transactions;
    if bytes > COUNT as i64 || bytes < -(COUNT as i64) - 1 {
        return None;
    }
    if change.drops {
        expected = expected.wrapping_add(change.arrivals) & COUNT;
    }
    let changes = change.arrivals != 0 || change.transactions != 0;
    let ends = changes && pending == 0 && bytes == 0;
    let mut parity = state & PARITY;
    if ends {
        parity ^= PARITY;
        pending = expected;
    }
    let new =
        parity | pending << PENDING | (bytes as u64 & BYTES) << TRANSACTIONS | expected << EXPECTED;
    Some((new, ends))
}

/// Whether the phase has ended whose parity is bit 31 of `token`, the upper word of what an arrival returned.
#[must_use]
pub const fn has_ended(state: u64, token: u32) -> bool {
    (state >> 63) as u32 != token >> 31
}

/// Arrivals that were pending when an arrival returned this.
#[must_use]
pub const fn pending_count(token: u64) -> u32 {
    ((1 << 20) - (token >> PENDING & COUNT)) as u32
}

/// Ampere's barrier after an arrival.
#[must_use]
pub const fn arrive_ampere(state: u64) -> u64 {
    const MOST: u32 = u32::MAX >> 1;
    let (expected, high) = (state as u32, (state >> 32) as u32);
    let mut high = high.wrapping_add(1);
    if high & MOST == 0 {
        // The carry has changed the parity.
        high |= (expected | 1 << 30) & MOST;
    }
    (high as u64) << 32 | expected as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an H200 did, one operation after the other: the phase, the arrivals and the upper bits of the
    /// transactions that each arrival returned, what each test said, the state that was left in memory.
    #[test]
    fn states_are_those_of_an_h200() {
        let text = include_str!("../../../../validation/hardware/h200/mbarrier.csv");
        let mut state = 0;
        let mut checked = 0;
        for line in text.lines().filter(|line| line.starts_with("state,")) {
            let fields: Vec<&str> = line.split(',').collect();
            let number: u32 = fields[3].parse().unwrap();
            let [token, memory] = [4, 5].map(|at| u64::from_str_radix(fields[at], 16).unwrap());
            let one = Change {
                arrivals: 1,
                ..Change::default()
            };
            let many = Change {
                arrivals: number.into(),
                ..Change::default()
            };
            let expects = Change {
                transactions: number.into(),
                ..Change::default()
            };
            let drops = |change: Change| Change {
                drops: true,
                ..change
            };
            let made = match fields[2] {
                "init" => {
                    state = initial(number);
                    continue;
                }
                "inval" => {
                    assert_eq!(state, memory, "{line}");
                    checked += 1;
                    continue;
                }
                "test_parity" => {
                    let ended = has_ended(state, number << 31);
                    assert_eq!(u32::from(ended).to_string(), fields[6], "{line}");
                    checked += 1;
                    continue;
                }
                "store64" | "store_hi" | "store_lo" => {
                    // Stores change a barrier only while it is none.
                    state = memory;
                    continue;
                }
                "arrive" => one,
                "arrive_n" | "arrive_nc" | "remote_arrive_n" => many,
                "drop" => drops(one),
                "drop_n" | "drop_nc" => drops(many),
                "arrive_tx" | "remote_arrive_tx" => one.with(expects),
                "drop_tx" => drops(one.with(expects)),
                "expect_tx" => expects,
                "complete_tx" => Change {
                    transactions: -i64::from(number),
                    ..Change::default()
                },
                // Nothing was copied: announced and complete at once.
                "cp_arrive" => Change::default(),
                "cp_arrive_noinc" => one,
                other => panic!("{other}"),
            };
            if token != 0 {
                assert_eq!(state >> 32, token >> 32, "{line}");
                checked += 1;
            }
            state = change(state, made).unwrap_or_else(|| panic!("{line}")).0;
        }
        assert!(checked > 60, "{checked}");
    }

    #[test]
    fn what_stops_a_kernel_on_an_h200_is_refused() {
        let arrive = |state: u64, arrivals: u64| {
            change(
                state,
                Change {
                    arrivals,
                    ..Change::default()
                },
            )
        };
        let expect = |state: u64, transactions: i64| {
            change(
                state,
                Change {
                    transactions,
                    ..Change::default()
                },
            )
        };
        assert_eq!(arrive(initial(1), 2), None);
        assert_eq!(arrive(initial(0), 1), None);
        assert_eq!(arrive(initial(1 << 20), 1), None);
        let (most, _) = expect(initial(1), 1_048_575).unwrap();
        let (most, _) = expect(most, 1).unwrap();
        assert_eq!(expect(most, 1), None);
        let (least, _) = expect(initial(1), -1_048_575).unwrap();
        assert_eq!(expect(least, -1), None);
    }

    #[test]
    fn amperes_barrier_is_reloaded_when_it_is_full() {
        let start = u64::from(0x4000_0000u32 - 2) | u64::from(0x8000_0000u32 - 2) << 32;
        let one = arrive_ampere(start);
        assert_eq!(one >> 32, 0x7fff_ffff);
        assert_eq!(arrive_ampere(one), start ^ PARITY);
    }
}
