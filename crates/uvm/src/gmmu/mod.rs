//! The GMMU and the host runtime behind it, as one machine of events.
//!
//! | file | what |
//! |---|---|
//! | `walks.rs` | from a request to a page-table entry |
//! | `faults.rs` | pages that are not there |
//! | `service.rs` | what the host runtime plans, and when |
//! | `movement.rs` | transfers both ways, mapping and unmapping |
//! | `eviction.rs` | frames and evictions |
//! | `program.rs` | what programs ask for: prefetches, advice, the host's own accesses |
//! | `neighbours.rs` | on a node with several GPUs: what is known of the others |
//! | `claims.rs`, `recalls.rs` | there: pages that are claimed, and pages that others claim |
//!
//! Start reading at [`Gmmu::run`].

mod claims;
mod eviction;
mod faults;
mod movement;
mod neighbours;
mod program;
mod recalls;
mod service;
mod walks;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::geometry::PageSize;
use crate::log::{FaultRecord, MigrationRecord};
use crate::prefetch::Memory;
use crate::settings::Settings;
use crate::space::Space;
use crate::statistics::GmmuStats;
use crate::tlb::{Scope, Tlb};
use crate::walk::{PageWalk, WalkCache};
use lockstep_units::Random;

pub use neighbours::NeighbourLink;
use neighbours::Neighbours;
pub use program::Advice;

/// Requests of SMs to the GMMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Translate a page.
    Translate {
        /// The SM that asks.
        sm: u32,
        /// Page number.
        page: u64,
        /// Whether it is to be written.
        write: bool,
        /// Sectors that are wanted of it.
        sectors: u32,
        /// Accesses of one instruction that wait for it.
        accesses: u32,
        /// The warp whose instruction that is.
        warp: u32,
    },
    /// More accesses of an SM wait for a page that is on the host.
    DuplicateFault {
        /// The SM.
        sm: u32,
        /// Page number.
        page: u64,
        /// Whether one of them writes.
        write: bool,
        /// Entries of the fault buffer that they make.
        entries: u32,
    },
    /// A page is in use.
    Used {
        /// Page number.
        page: u64,
        /// Whether it was written.
        write: bool,
    },
}

/// Messages of the GMMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// To an SM: the page is mapped.
    Translated {
        /// The SM that asked.
        sm: u32,
        /// Page number.
        page: u64,
        /// What the entry covers.
        size: PageSize,
        /// Whether the page is not to be written without asking: others have copies.
        read_only: bool,
    },
    /// To an SM: the access was made over the link.
    Remote {
        /// The SM that asked.
        sm: u32,
        /// Page number.
        page: u64,
    },
    /// To an SM: the page is on the host; ask again when reported.
    Nack {
        /// The SM that asked.
        sm: u32,
        /// Page number.
        page: u64,
    },
    /// To an SM: ask again.
    Replay {
        /// The SM that asked.
        sm: u32,
        /// Page number.
        page: u64,
    },
    /// To every SM: forget translations.
    ShootDown(Scope),
    /// To every SM: forget what is cached of these pages.
    Unmapped {
        /// First page.
        first: u64,
        /// Number of pages.
        count: u32,
    },
    /// To device memory: forget what is cached of these pages; nothing of them is wanted.
    Dropped {
        /// First page.
        first: u64,
        /// Number of pages.
        count: u32,
    },
    /// To device memory: the link writes these pages, or reads them and they are gone.
    DmaTransferred {
        /// First page.
        first: u64,
        /// Pages, at most those of a block.
        count: u32,
        /// Written, or read.
        to_device: bool,
    },
    /// To the program: a prefetch or an access of the host is complete.
    Done {
        /// The ticket of the request.
        ticket: u64,
    },
}

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pending {
    sm: u32,
    page: u64,
    write: bool,
    sectors: u32,
    accesses: u32,
    warp: u32,
    since: u64,
}

/// A page that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FarFault {
    detected: u64,
    /// Who is to ask again, each SM once.
    sharers: Vec<Sharer>,
    /// Nobody has asked for it: it is brought along.
    prefetch: bool,
    write: bool,
}

/// An SM that waits for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sharer {
    sm: u32,
    /// The warp that asked.
    warp: u32,
    /// The cycle at which it did.
    asked: u64,
}

/// An event at a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Event {
    /// The shared TLB had the translation.
    Found(Pending),
    /// A walk has ended.
    Walked(Pending),
    /// The faults of this cycle are to be planned.
    Plan,
    /// The host runtime has served a fault.
    Served(u64),
    /// The host runtime looks at the fault buffer.
    FetchFaults,
    /// The host runtime has served a batch.
    BatchServed,
    /// A transfer to the device is complete.
    Arrived,
    /// A transfer to the host is complete.
    Left,
    /// An access over the link is complete.
    RemoteDone { sm: u32, page: u64 },
    /// The next part of a request of the program is ready to move.
    Program(u64),
    /// Pages that others claim were kept for long enough.
    Give,
}

/// A batch that is being served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Batch {
    /// Whether the host has done its part.
    is_served: bool,
    /// Transfers that are not complete.
    left: u32,
}

/// Everything that changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    now: u64,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    space: Space,
    memory: Memory,
    /// Page frames in use.
    used: u64,
    oversubscribed: bool,
    faults: BTreeMap<u64, FarFault>,
    /// Pages that faulted in this cycle.
    new_faults: Vec<u64>,
    /// Faults that wait for an MSHR.
    waiting_for_mshr: VecDeque<Pending>,
    buffer: VecDeque<Pending>,
    /// Faults that each SM put into the buffer since the last replay.
    entries_by_sm: Vec<u32>,
    /// When the next entry of the fault buffer may be written.
    buffer_free_at: u64,
    fetch_scheduled: bool,
    batch: Option<Batch>,
    service_free_at: u64,
    jobs: BTreeMap<u64, Vec<crate::channel::Migration>>,
    next_job: u64,
    to_device: Channel,
    to_host: Channel,
    /// Since when the transfer at the head waits for frames.
    starved: Option<u64>,
    remote_free_at: u64,
    walks: u32,
    /// The last cycle in which a walk began or will, and how many did.
    walk_starts: (u64, u32),
    walk_queue: VecDeque<Pending>,
    shared: Option<Tlb>,
    cache: WalkCache,
    replay_free_at: Vec<u64>,
    programs: BTreeMap<u64, program::ProgramRequest>,
    /// Pages that stay on the host until a cycle.
    held_on_host: BTreeMap<u64, u64>,
    /// When the last batch ended.
    batch_ended: Option<u64>,
    /// Cycles that the host takes to begin with the batch that waits.
    wake: u64,
    /// Pages that the device has to wait for until a cycle.
    napping: BTreeMap<u64, u64>,
    /// How often residence changed.
    changes: u64,
    stats: GmmuStats,
    fault_log: Vec<FaultRecord>,
    migration_log: Vec<MigrationRecord>,
    /// On a node with several GPUs, what concerns the others.
    neighbours: Option<Box<Neighbours>>,
}

/// Records of each log that are kept; later ones are only counted.
const MOST_RECORDS: usize = 1 << 22;

/// The GMMU and the host runtime behind it.
#[derive(Debug)]
pub struct Gmmu {
    settings: Arc<Settings>,
    walk: PageWalk,
    state: Box<State>,
    outputs: Vec<(u64, Output)>,
}

impl Gmmu {
    /// One without managed memory.
    #[must_use]
    pub fn new(settings: Arc<Settings>) -> Self {
        let config = &settings.config;
        let tlb = &config.tlb;
        let state = State {
            now: 0,
            events: BTreeMap::new(),
            sequence: 0,
            space: Space::new(config.first_touch == "zero-fill"),
            memory: Memory {
                random: Random::new(config.seed),
                cursor: 0,
            },
            used: 0,
            oversubscribed: false,
            faults: BTreeMap::new(),
            new_faults: Vec::new(),
            waiting_for_mshr: VecDeque::new(),
            buffer: VecDeque::new(),
            entries_by_sm: vec![0; settings.sms as usize],
            buffer_free_at: 0,
            fetch_scheduled: false,
            batch: None,
            service_free_at: 0,
            jobs: BTreeMap::new(),
            next_job: 0,
            to_device: Channel::default(),
            to_host: Channel::default(),
            starved: None,
            remote_free_at: 0,
            walks: 0,
            walk_starts: (0, 0),
            walk_queue: VecDeque::new(),
            shared: (tlb.l2_entries > 0).then(|| Tlb::new(tlb.l2_entries, tlb.l2_ways)),
            cache: WalkCache::new(config.walk.cache_entries),
            replay_free_at: vec![0; settings.sms as usize],
            programs: BTreeMap::new(),
            held_on_host: BTreeMap::new(),
            batch_ended: None,
            wake: 0,
            napping: BTreeMap::new(),
            changes: 0,
            stats: GmmuStats::default(),
            fault_log: Vec::new(),
            migration_log: Vec::new(),
            neighbours: None,
        };
        Self {
            walk: PageWalk::new(&config.walk),
            state: Box::new(state),
            settings,
            outputs: Vec::new(),
        }
    }

    /// What it was made with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Managed memory and where its pages are.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.state.space
    }

    /// Its statistics.
    #[must_use]
    pub fn stats(&self) -> &GmmuStats {
        &self.state.stats
    }

    /// Far faults that were served, in the order in which their pages came.
    #[must_use]
    pub fn fault_log(&self) -> &[FaultRecord] {
        &self.state.fault_log
    }

    /// Transfers, in the order in which they were complete.
    #[must_use]
    pub fn migration_log(&self) -> &[MigrationRecord] {
        &self.state.migration_log
    }

    /// How often residence changed so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.state.changes
    }

    /// Frames that the device has for managed pages.
    #[must_use]
    pub fn frames(&self) -> u64 {
        let percent = u64::from(self.settings.config.oversubscription);
        if percent <= 100 {
            return self.settings.frames;
        }
        // Two of the largest transfers must find room.
        let wanted = (self.state.space.pages() * 100).div_ceil(percent);
        wanted
            .max(2 * self.state.space.largest_tree())
            .min(self.settings.frames)
    }

    /// When it next has work of its own.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.state.events.keys().next().map(|(at, _)| *at)
    }

    /// Takes a request at a cycle, not before those that were taken already.
    pub fn take(&mut self, now: u64, request: Request) {
        match request {
            Request::Translate {
                sm,
                page,
                write,
                sectors,
                accesses,
                warp,
            } => self.translate(Pending {
                sm,
                page,
                write,
                sectors,
                accesses,
                warp,
                since: now,
            }),
            Request::DuplicateFault {
                sm,
                page,
                write,
                entries,
            } => self.duplicate_fault(
                Pending {
                    sm,
                    page,
                    write,
                    sectors: 0,
                    accesses: entries,
                    warp: 0,
                    since: now,
                },
                now,
            ),
            Request::Used { page, write } => self.touch(page, now, write),
        }
    }

    /// Does everything up to and including a cycle.
    pub fn run(&mut self, until: u64) {
        while let Some(entry) = self.state.events.first_entry()
            && entry.key().0 <= until
        {
            let ((now, _), event) = entry.remove_entry();
            self.state.now = now;
            match event {
                Event::Found(pending) => self.check(pending, now),
                Event::Walked(pending) => self.walked(pending, now),
                Event::Plan => self.plan_new_faults(now),
                Event::Served(job) => self.served(job, now),
                Event::FetchFaults => self.fetch_faults(now),
                Event::BatchServed => self.batch_served(now),
                Event::Arrived => self.arrived(now),
                Event::Left => self.left(now),
                Event::RemoteDone { sm, page } => self.emit(now, Output::Remote { sm, page }),
                Event::Program(ticket) => self.continue_program(ticket, now),
                // What can be given is given below.
                Event::Give => {}
            }
            if !self.state.waiting_for_mshr.is_empty() {
                self.admit_waiting_faults(now);
            }
            self.give_recalled(now);
            self.start_transfers(now);
        }
    }

    /// Takes what was said since the last call, in the order of cycles.
    pub fn outputs(&mut self) -> impl Iterator<Item = (u64, Output)> + '_ {
        // Replays to different SMs are spread out, so cycles may be out of order.
        self.outputs.sort_by_key(|(at, _)| *at);
        self.outputs.drain(..)
    }

    /// Whether something was said that was not taken.
    #[must_use]
    pub fn has_outputs(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Everything that changes, to be saved.
    #[must_use]
    pub fn saved(&self) -> impl Serialize + '_ {
        (&*self.state, &self.outputs)
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// What the reader says.
    pub fn load<E>(&mut self, read: impl FnOnce() -> Result<SavedState, E>) -> Result<(), E> {
        SavedState(self.state, self.outputs) = read()?;
        Ok(())
    }

    fn at(&mut self, cycle: u64, event: Event) {
        let state = &mut *self.state;
        state.sequence += 1;
        state.events.insert((cycle, state.sequence), event);
    }

    fn emit(&mut self, cycle: u64, output: Output) {
        self.outputs.push((cycle, output));
    }
}

/// The state of a [`Gmmu`], as it is read back.
#[derive(Debug, Deserialize)]
pub struct SavedState(Box<State>, Vec<(u64, Output)>);
