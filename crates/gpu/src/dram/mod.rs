//! A DRAM channel behind a slice.
//!
//! A slice sees the port ([`MemoryPort`]): a request is accepted, or refused for a while because the queue of
//! the channel is full (`dram.queue`), and is done later.
//!
//! Back ends by name, see [`DRAM_BACK_ENDS`]. All of them decide at once when an access will be
//! done: banks and the data bus are reserved in the order in which accesses come. `simple` and
//! `timing` let accesses with an open row pass others that wait for theirs (the bus never idles
//! for a busy bank), as a scheduler that prefers row hits does; `in-order` does not.
//!
//! Start reading at [`port`], then at [`Dram::access`].

mod attached;
pub mod port;
mod timing;

use lockstep_config::{ConfigError, GpuConfig};
use lockstep_units::{Bytes, Duration, Time};
use serde::{Deserialize, Serialize};

pub use attached::attach;
pub use port::{Acceptance, MemoryPort, MemoryRequest};
use timing::DramTiming;

use crate::cache::mix;
use crate::memory::{LINE, SECTOR};
use crate::statistics::BankStats;

/// How a channel is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackEnd {
    /// A fixed latency, any bandwidth.
    Fixed,
    /// Banks with open rows, a data bus of limited bandwidth.
    Simple,
    /// Command timing, row hits first.
    Timing,
    /// Command timing, first come first served.
    InOrder,
}

/// A back end that a GPU file can name.
pub struct Policy {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Which it is.
    pub back_end: BackEnd,
}

/// All back ends, in the order of the documentation.
pub const DRAM_BACK_ENDS: &[Policy] = &[
    Policy {
        name: "fixed",
        summary: "a fixed latency, any bandwidth",
        back_end: BackEnd::Fixed,
    },
    Policy {
        name: "simple",
        summary: "banks with open rows, a bus of limited bandwidth",
        back_end: BackEnd::Simple,
    },
    Policy {
        name: "timing",
        summary: "command timing with refresh, row hits first",
        back_end: BackEnd::Timing,
    },
    Policy {
        name: "timing-in-order",
        summary: "command timing with refresh, first come first served",
        back_end: BackEnd::InOrder,
    },
];

/// What a channel is made with.
#[derive(Clone, Debug)]
pub struct DramParameters {
    back_end: BackEnd,
    /// From an access to its data, the row being closed.
    latency: Duration,
    row_hit_saves: Duration,
    row_cycle: Duration,
    row_interval: Duration,
    refresh: Duration,
    refresh_interval: Duration,
    /// Groups of channels that are refreshed together, or 0.
    refresh_groups: u32,
    /// Lines, counted over all slices, whose bank is refreshed at one time, or 0.
    refresh_lines: u64,
    /// Parts that are refreshed apart.
    pseudo_channels: u32,
    turnaround: Duration,
    /// How long a sector takes on the bus that is read.
    sector: Duration,
    /// How long one that is written.
    written_sector: Duration,
    banks: u32,
    /// Lines that share a row, counted over all slices.
    lines_per_row: u64,
    timing: DramTiming,
    /// Requests that wait or are under way; any number with 0.
    queue: u32,
}

impl DramParameters {
    /// From a GPU file.
    ///
    /// # Errors
    /// If it names a back end that does not exist.
    pub fn new(config: &GpuConfig) -> Result<Self, ConfigError> {
        let dram = &config.dram;
        let back_end = DRAM_BACK_ENDS
            .iter()
            .find(|policy| policy.name == dram.back_end)
            .ok_or_else(|| {
                let known = DRAM_BACK_ENDS.iter().map(|policy| policy.name);
                ConfigError::unknown_policy("DRAM back end", &dram.back_end, known)
            })?
            .back_end;
        let clock = config.device.clock;
        // A slice has its share of a channel.
        let slices = u64::from(config.l2.slices);
        let channels = u64::from(dram.channels);
        let peak = dram.bytes_per_cycle.at(dram.clock).time_for(Bytes(SECTOR));
        let share = Duration(peak.0 * slices / channels);
        let sector = |efficiency: u32| match back_end {
            BackEnd::Simple => Duration(share.0 * 100 / u64::from(efficiency.max(1))),
            _ => share,
        };
        Ok(Self {
            back_end,
            latency: clock.duration(dram.latency),
            row_hit_saves: dram.row_hit_savings,
            row_cycle: dram.row_cycle_time,
            row_interval: dram.activate_interval,
            refresh: dram.refresh_time,
            refresh_interval: dram.refresh_interval,
            refresh_groups: dram.refresh_groups,
            refresh_lines: dram.refresh_span.0 / LINE,
            pseudo_channels: dram.pseudo_channels.max(1),
            turnaround: dram.turnaround,
            sector: sector(dram.efficiency),
            written_sector: sector(match dram.write_efficiency {
                0 => dram.efficiency,
                given => given,
            }),
            banks: dram.banks,
            lines_per_row: (dram.row_buffer.0 / LINE).max(1) * slices,
            timing: DramTiming::new(&dram.command_timing),
            queue: dram.queue,
        })
    }
}

impl DramParameters {
    /// The first instant from `at` on in which the channel is not refreshed; channels take turns.
    fn after_refresh(&self, at: Time, phase: Duration) -> Time {
        if self.refresh_interval == Duration::ZERO {
            return at;
        }
        let inside = (at + phase).0 % self.refresh_interval.0;
        if inside < self.refresh.0 {
            at + Duration(self.refresh.0 - inside)
        } else {
            at
        }
    }

    /// How far ahead of its channel the bank of a line is with its refreshes.
    fn bank_phase(&self, line: u64) -> Duration {
        let bank = line.checked_div(self.refresh_lines);
        bank.map_or(Duration::ZERO, |bank| self.turn(bank))
    }

    /// Somewhere between two refreshes.
    fn turn(&self, number: u64) -> Duration {
        let interval = u128::from(self.refresh_interval.0);
        Duration(((u128::from(mix(number + 1)) * interval) >> 64) as u64)
    }

    /// When the bursts that hold some sectors of a line can begin, all of them. Which half of a
    /// line is in which pseudo-channel is hashed: a stride that takes one half only is served by
    /// both (`dram_strided_sectors`, 128 B apart).
    fn after_refreshes(&self, at: Time, phase: Duration, line: u64, sectors: u8) -> Time {
        let together = self.pseudo_channels < 2 || self.refresh_groups > 0;
        if together || self.refresh_interval == Duration::ZERO {
            return self.after_refresh(at, phase + self.bank_phase(line));
        }
        let odd = (mix(line) & 1) as u8;
        let half_turn = Duration(self.refresh_interval.0 / 2);
        let mut begin = at;
        for half in 0..2 {
            if sectors >> (2 * half) & 0b11 != 0 {
                let own = phase + half_turn * u64::from(half ^ odd);
                begin = begin.max(self.after_refresh(at, own));
            }
        }
        begin
    }
}

/// One bank.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Bank {
    /// The open row, plus one.
    row: u64,
    /// When another row can be opened.
    activate: Time,
    /// When the open row can be read.
    column: Time,
    stats: BankStats,
}

/// A DRAM channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Dram {
    banks: Vec<Bank>,
    /// How far ahead of the first channel it is with its refreshes.
    phase: Duration,
    /// When the bus is free.
    bus: Time,
    writing: bool,
    /// The last four activations; `simple` keeps in the last when another is possible.
    activations: [Time; 4],
    /// Accesses that found their row open.
    row_hits: u64,
    /// Accesses that did not.
    row_misses: u64,
}

/// The bank and the row that a line is in, rows counted from 1.
fn place(parameters: &DramParameters, line: u64) -> (usize, u64) {
    let row = line / parameters.lines_per_row + 1;
    let bank = (u128::from(mix(row)) * u128::from(parameters.banks)) >> 64;
    (bank as usize, row)
}

/// How far ahead of time zero a channel is with its refreshes. Channels that are refreshed by themselves
/// take turns. Groups follow clocks of their own; neighbouring regions of memory are in one group, and
/// lie a quarter of all slices apart.
fn phase(parameters: &DramParameters, number: u32, count: u32) -> Duration {
    let interval = parameters.refresh_interval.0;
    let groups = parameters.refresh_groups;
    if groups == 0 {
        return Duration(interval * u64::from(number) / u64::from(count));
    }
    let quarter = (count / 4).max(1);
    let group = u64::from(number % quarter) * u64::from(groups) / u64::from(quarter);
    parameters.turn(group)
}

impl Dram {
    /// An idle channel, by its number among so many.
    fn new(parameters: &DramParameters, number: u32, count: u32) -> Self {
        Self {
            banks: vec![Bank::default(); parameters.banks as usize],
            phase: phase(parameters, number, count.max(1)),
            ..Self::default()
        }
    }

    /// What each bank counted.
    fn banks(&self) -> impl Iterator<Item = &BankStats> {
        self.banks.iter().map(|bank| &bank.stats)
    }

    /// Goes on counting where the banks of another channel stopped.
    fn count_on(&mut self, before: &[&BankStats]) {
        for (bank, before) in self.banks.iter_mut().zip(before) {
            bank.stats = (*before).clone();
        }
    }

    /// When everything that has come is on the bus.
    fn busy_until(&self) -> Time {
        self.bus
    }

    /// Whether it has the banks of these parameters.
    fn fits(&self, parameters: &DramParameters) -> bool {
        self.banks.len() == parameters.banks as usize
    }

    /// Reads or writes sectors of a line, given as a mask; says when their data are there.
    fn access(
        &mut self,
        parameters: &DramParameters,
        at: Time,
        line: u64,
        sectors: u8,
        write: bool,
    ) -> Time {
        if parameters.back_end == BackEnd::Fixed {
            return at + parameters.latency;
        }
        let (bank, row) = place(parameters, line);
        let known = &mut self.banks[bank];
        let hit = known.row == row;
        if hit {
            self.row_hits += 1;
            known.stats.row_hits.increment();
        } else {
            self.row_misses += 1;
            known.stats.row_misses.increment();
        }
        match write {
            true => known.stats.writes.increment(),
            false => known.stats.reads.increment(),
        }
        let sector = match write {
            true => parameters.written_sector,
            false => parameters.sector,
        };
        let transfer = sector * u64::from(sectors.count_ones());
        let turn = self.writing != write;
        self.writing = write;
        match parameters.back_end {
            BackEnd::Simple | BackEnd::Fixed => {
                let begin = parameters.after_refreshes(at, self.phase, line, sectors);
                // What is written waits until much of it can be, so that rows need not be opened for it
                // alone (`copy_bandwidth`).
                let row = (!write).then_some(row);
                self.simple(parameters, at, begin, bank, row, hit, transfer, turn)
            }
            BackEnd::Timing | BackEnd::InOrder => {
                self.timing(parameters, at, bank, row, hit, transfer, turn, write)
            }
        }
    }

    fn simple(
        &mut self,
        parameters: &DramParameters,
        arrived: Time,
        at: Time,
        bank: usize,
        row: Option<u64>,
        hit: bool,
        transfer: Duration,
        turn: bool,
    ) -> Time {
        let bank = &mut self.banks[bank];
        let mut begin = at;
        let mut latency = parameters.latency;
        let Some(row) = row else {
            return self.on_bus(parameters, arrived, at, begin, latency, transfer, turn);
        };
        if hit {
            begin = begin.max(bank.column);
            latency = Duration(latency.0.saturating_sub(parameters.row_hit_saves.0));
        } else {
            begin = begin.max(bank.activate).max(self.activations[3]);
            self.activations[3] = begin.max(at) + parameters.row_interval;
            bank.activate = begin + parameters.row_cycle;
            bank.column = begin;
            bank.row = row;
            bank.stats.activates.increment();
        }
        self.on_bus(parameters, arrived, at, begin, latency, transfer, turn)
    }

    /// Waiting for a bank leaves the bus to others: the bus counts work, not gaps.
    fn on_bus(
        &mut self,
        parameters: &DramParameters,
        arrived: Time,
        at: Time,
        begin: Time,
        latency: Duration,
        transfer: Duration,
        turn: bool,
    ) -> Time {
        let slot = if parameters.pseudo_channels < 2 {
            parameters.after_refresh(self.bus.max(at), self.phase)
        } else {
            self.bus.max(arrived)
        };
        self.bus = slot + transfer;
        if turn {
            self.bus += parameters.turnaround;
        }
        begin.max(slot) + latency + transfer
    }

    fn timing(
        &mut self,
        parameters: &DramParameters,
        at: Time,
        bank: usize,
        row: u64,
        hit: bool,
        transfer: Duration,
        turn: bool,
        write: bool,
    ) -> Time {
        let t = &parameters.timing;
        let in_order = parameters.back_end == BackEnd::InOrder;
        let arrived = t.after_refresh(at);
        let bank = &mut self.banks[bank];
        let column = if hit {
            arrived.max(bank.column)
        } else {
            // Precharge what is open, then activate, no more than four in a window.
            let mut activate = arrived.max(bank.activate);
            if bank.row != 0 {
                activate = activate.max(bank.column + t.precharge_after);
            }
            activate = activate
                .max(self.activations[3] + t.between_activations)
                .max(self.activations[0] + t.four_activations);
            activate = t.after_refresh(activate);
            self.activations.rotate_left(1);
            self.activations[3] = activate;
            bank.activate = activate + t.row_cycle;
            bank.row = row;
            bank.stats.activates.increment();
            activate + t.row_to_column
        };
        let turnaround = if turn { t.turnaround } else { Duration::ZERO };
        let data = if in_order {
            let begin = column.max(self.bus + turnaround);
            self.bus = begin + transfer;
            begin
        } else {
            let slot = self.bus.max(arrived) + Duration(turnaround.0 / 4);
            self.bus = slot + transfer;
            column.max(slot)
        };
        bank.column = data
            + if write {
                t.write_recovery
            } else {
                t.column_to_column
            };
        // What lies between slice and channel, the command timing apart.
        let fixed = parameters
            .latency
            .0
            .saturating_sub(t.row_to_column.0 + t.column_latency.0);
        data + t.column_latency + transfer + Duration(fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(back_end: &str) -> DramParameters {
        let setting = format!("dram.back-end={back_end}");
        let config = lockstep_config::load(Some("h200"), &[setting]).unwrap();
        DramParameters::new(&config).unwrap()
    }

    /// When the last of many accesses is done, in nanoseconds, and the share of row hits.
    fn stream(back_end: &str, stride: u64) -> (u64, u64) {
        let parameters = parameters(back_end);
        let mut dram = Dram::new(&parameters, 3, 96);
        let mut last = Time::ZERO;
        for access in 0..2000 {
            last = last.max(dram.access(&parameters, Time::ZERO, access * stride, 0b11, false));
        }
        (last.nanoseconds(), dram.row_hits / 20)
    }

    #[test]
    fn a_stream_is_bound_by_the_bus_and_rows_by_their_banks() {
        let (fixed, _) = stream("fixed", 96);
        let (simple, hits) = stream("simple", 96);
        let (scattered, misses) = stream("simple", 96 * 8 * 64);
        assert!(fixed < 200, "{fixed}");
        // 2000 x 64 bytes at 93 % of 51 GB/s.
        assert!((2600..3100).contains(&simple), "{simple}");
        assert!(hits > 80 && misses < 5, "{hits} {misses}");
        assert!(scattered >= simple, "{scattered}");
    }

    #[test]
    fn serving_row_hits_first_is_never_slower() {
        for stride in [96, 96 * 8, 96 * 64, 96 * 999] {
            let (first, _) = stream("timing", stride);
            let (in_order, _) = stream("timing-in-order", stride);
            assert!(first <= in_order, "{stride}: {first} {in_order}");
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        let config = lockstep_config::load(Some("h200"), &["dram.back-end=none"]).unwrap();
        let error = DramParameters::new(&config).unwrap_err().to_string();
        assert!(error.contains("known: fixed, simple, timing"), "{error}");
    }
}
