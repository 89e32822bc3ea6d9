//! SMs that only touch pages, in front of a GMMU: a device under test.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lockstep_config::UvmConfig;
use lockstep_units::{Bytes, Hertz};

use crate::gmmu::{Gmmu, Output, Request};
use crate::micro_tlb::{Lookup, MicroTlb};
use crate::settings::Settings;
use crate::{PAGE, PageSize};

/// Settings of the seed at 1200 MHz, with changes.
pub fn settings(change: impl FnOnce(&mut UvmConfig)) -> Arc<Settings> {
    settings_at(1200, change)
}

/// The same at another clock.
pub fn settings_at(mhz: u64, change: impl FnOnce(&mut UvmConfig)) -> Arc<Settings> {
    let mut config = UvmConfig::default();
    change(&mut config);
    Arc::new(Settings::new(&config, Hertz::mega(mhz), 4, Bytes::gibi(1)).unwrap())
}

/// What happened to an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub sm: u32,
    pub page: u64,
    /// When its data was accessed.
    pub at: u64,
}

/// SMs in front of a GMMU, without latency between them.
pub struct Bench {
    pub gmmu: Gmmu,
    pub translators: Vec<MicroTlb>,
    /// Accesses of an instruction to each page.
    pub accesses_a_page: u32,
    /// Whether each page is another warp's; else all are one's.
    pub one_page_a_warp: bool,
    waiting: BTreeMap<(u32, u64), u32>,
    pub accesses: Vec<Access>,
    pub replays: Vec<(u64, u64)>,
    pub done: Vec<(u64, u64)>,
}

impl Bench {
    pub fn new(settings: &Arc<Settings>) -> Self {
        let tlb = &settings.config.tlb;
        let stalls = settings.config.fault.mode == "stall-sm";
        let micro_tlb = MicroTlb::new(tlb.entries, tlb.ways, tlb.mshrs, 0, stalls);
        Self {
            gmmu: Gmmu::new(settings.clone()),
            translators: vec![micro_tlb; settings.sms as usize],
            accesses_a_page: 1,
            one_page_a_warp: false,
            waiting: BTreeMap::new(),
            accesses: Vec::new(),
            replays: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Looks up a page at a cycle: the answer is there a cycle later.
    pub fn touch(&mut self, now: u64, sm: u32, page: u64, write: bool) {
        self.run_until(now);
        let at = now + 1;
        match self.translators[sm as usize].look_up(page, write, now) {
            Lookup::Hit { report_use } => {
                self.accesses.push(Access { sm, page, at });
                if report_use {
                    self.gmmu.take(at, Request::Used { page, write });
                }
            }
            Lookup::Merged => *self.waiting.entry((sm, page)).or_default() += 1,
            Lookup::Miss => {
                *self.waiting.entry((sm, page)).or_default() += 1;
                self.ask(at, sm, page);
            }
        }
    }

    fn ask(&mut self, at: u64, sm: u32, page: u64) {
        let write = self.translators[sm as usize].wants_write(page);
        self.gmmu.take(
            at,
            Request::Translate {
                sm,
                page,
                write,
                sectors: 4,
                accesses: self.accesses_a_page,
                warp: if self.one_page_a_warp { page as u32 } else { 0 },
            },
        );
    }

    /// Runs up to a cycle, answering what the GMMU says.
    pub fn run_until(&mut self, until: u64) {
        loop {
            let next = self.gmmu.next().filter(|next| *next <= until);
            if let Some(next) = next {
                self.gmmu.run(next);
            }
            let said: Vec<(u64, Output)> = self.gmmu.outputs().collect();
            if next.is_none() && said.is_empty() {
                return;
            }
            for (at, output) in said {
                match output {
                    Output::Translated {
                        sm,
                        page,
                        size,
                        read_only,
                    } => {
                        // A write has come to wait for it meanwhile: it asks anew.
                        if read_only && self.translators[sm as usize].wants_write(page) {
                            self.ask(at, sm, page);
                        } else {
                            self.fill(at, sm, page, Some(size), read_only);
                        }
                    }
                    Output::Remote { sm, page } => self.fill(at, sm, page, None, false),
                    Output::Nack { sm, page } => self.translators[sm as usize].nack(page, at),
                    Output::Replay { sm, page } => {
                        self.replays.push((at, page));
                        if self.translators[sm as usize].replay(page) {
                            self.ask(at, sm, page);
                        }
                    }
                    Output::ShootDown(scope) => {
                        for micro_tlb in &mut self.translators {
                            micro_tlb.shoot_down(scope);
                        }
                    }
                    Output::Unmapped { .. }
                    | Output::Dropped { .. }
                    | Output::DmaTransferred { .. } => {}
                    Output::Done { ticket } => self.done.push((at, ticket)),
                }
            }
        }
    }

    fn fill(&mut self, at: u64, sm: u32, page: u64, size: Option<PageSize>, read_only: bool) {
        self.translators[sm as usize].fill(page, size, read_only, at);
        for _ in 0..self.waiting.remove(&(sm, page)).unwrap_or(0) {
            let at = at + 1;
            self.accesses.push(Access { sm, page, at });
        }
    }

    /// Touches pages one after the other, each when the one before is there.
    pub fn touch_in_turn(
        &mut self,
        sm: u32,
        pages: impl IntoIterator<Item = u64>,
        write: bool,
    ) -> u64 {
        let mut now = 0;
        let mut left: VecDeque<u64> = pages.into_iter().collect();
        while let Some(page) = left.pop_front() {
            let before = self.accesses.len();
            self.touch(now, sm, page, write);
            if self.accesses.len() == before {
                self.run_until(u64::MAX);
            }
            now = self.accesses.last().expect("an access ends").at;
        }
        now
    }
}

/// An allocation of so many bytes at address 0, touched by one SM in order; gives the bench.
pub fn touch_all(settings: &Arc<Settings>, bytes: u64) -> Bench {
    let mut bench = Bench::new(settings);
    bench.gmmu.map_memory(0, bytes);
    bench.touch_in_turn(0, 0..bytes / PAGE, false);
    bench
}
