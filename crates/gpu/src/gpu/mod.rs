//! One simulated GPU, from outside.
//!
//! ```text
//!  Gpu::new(config, contents, options)      contents.map(allocation)
//!  gpu.launch(launch) ─▶ LaunchId            gpu.advance(limit) ─▶ Advance
//!  gpu.run_until_complete(id) ─▶ KernelRecord
//! ```
//!
//! Between calls the GPU stands still at the boundary of an epoch: contents hold everything that
//! was written, and may be read and written from outside.

mod book;
mod build;
mod dma_writes;
mod launching;
mod layout;
mod managed;
mod mode;
mod observation;
mod options;
mod outside;
mod peer_loads;
mod ranks;
mod save;
mod statistics;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Weak};

use lockstep_config::GpuConfig;
use lockstep_engine::{
    Engine, EngineCounters, Options as EngineOptions, Outcome, PartitionId, Profile, Topology,
    Writer,
};
use lockstep_isa::{Module, Verifier};
use lockstep_stats::{Digest, DigestTree, Hasher, Table};
use lockstep_units::{Cycle, Time};

use crate::error::GpuError;
use crate::fault::{Fault, FaultKind};
use crate::front::WorkDistributor;
use crate::l2::Traffic;
use crate::launch::{KernelRecord, LaunchId, LaunchTable};
use crate::memory::Contents;
use crate::mmu::Mmu;
use crate::parameters::SmParameters;
use crate::partition::{GpuBoundary, GpuPartition};
use crate::sm::front_end::issue_table::IssueTable;
use crate::sm::{Printed, Sm, assertions};
use build::build;
use layout::Places;
pub use observation::{Observed, SampledPart, Sampler};
pub use options::{Advance, Mode, Options};
pub use outside::EndedBlock;

/// One simulated GPU.
pub struct Gpu {
    config: GpuConfig,
    options: Options,
    contents: Arc<Contents>,
    launches: LaunchTable,
    engine: Engine<GpuPartition, GpuBoundary>,
    places: Places,
    next_launch: u32,
    /// Ended launches, for the digest.
    records: BTreeMap<LaunchId, KernelRecord>,
    failed: Option<Box<Fault>>,
    /// What the instructions of modules cost, as long as they are used.
    issue_tables: Vec<Arc<IssueTable>>,
    /// What is known of the code of modules, as long as they are used.
    verifiers: Vec<(Weak<Module>, Verifier)>,
    parameters: SmParameters,
    /// Traffic by tag of launches, as it was when the last kernel with that tag ended.
    counted: Vec<Traffic>,
    /// Module and first instruction of the kernels that were launched: their code is here.
    brought: BTreeSet<(u64, u32)>,
    /// Changes of residence that were told.
    managed_changes: u64,
}

impl Gpu {
    /// An idle GPU at time zero.
    ///
    /// # Errors
    /// If the configuration cannot be built.
    pub fn new(
        config: &GpuConfig,
        contents: Arc<Contents>,
        options: Options,
    ) -> Result<Self, GpuError> {
        let launches = LaunchTable::default();
        let (engine, places) = build(config, &contents, &launches, &options)?;
        let timed = options.mode == Mode::Timing;
        Ok(Self {
            config: config.clone(),
            options,
            contents,
            launches,
            engine,
            places,
            next_launch: 0,
            records: BTreeMap::new(),
            failed: None,
            issue_tables: Vec::new(),
            verifiers: Vec::new(),
            parameters: SmParameters::new(config, timed)?,
            counted: Vec::new(),
            brought: BTreeSet::new(),
            managed_changes: 0,
        })
    }

    /// Its memory.
    #[must_use]
    pub fn contents(&self) -> &Arc<Contents> {
        &self.contents
    }

    /// What it was made from.
    #[must_use]
    pub fn config(&self) -> &GpuConfig {
        &self.config
    }

    /// The boundary at which it stands.
    #[must_use]
    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// The parts and their links.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        self.engine.topology()
    }

    /// What the host did; not part of the simulation.
    #[must_use]
    pub fn engine_counters(&self) -> EngineCounters {
        self.engine.counters()
    }

    /// Where the time of the host went; not part of the simulation.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.engine.profile()
    }

    /// Changes how the host runs the simulation, which never changes the simulation.
    pub fn set_engine_options(&mut self, options: EngineOptions) {
        self.options.engine = options.clone();
        self.engine.set_options(options);
    }

    /// Gives device code addresses for `malloc`; they must be valid in the contents.
    pub fn set_heap(&mut self, range: Range<u64>) {
        self.distributor_mut().set_heap(range);
    }

    /// Gives addresses for the arguments of launches by kernels; they must be valid in the contents.
    pub fn set_launch_pool(&mut self, range: Range<u64>) {
        self.distributor_mut().set_launch_pool(range);
    }

    /// Advances to the first boundary not before `limit`, or at which a kernel has ended.
    pub fn advance(&mut self, limit: Time) -> Advance {
        loop {
            let advance = self.advance_once(limit);
            if !matches!(advance, Advance::Reached(_)) || !self.has_device_launches() {
                return advance;
            }
            if let Err(error) = self.begin_device_launches() {
                let fault = self.hang(format!("a launch by a kernel failed: {error}"));
                return self.fault(Some(fault));
            }
            let ended = matches!(&advance, Advance::Reached(records) if !records.is_empty());
            if ended || self.now() >= limit {
                return advance;
            }
        }
    }

    /// The same, or to where a kernel has launched a grid.
    fn advance_once(&mut self, limit: Time) -> Advance {
        if let Some(fault) = &self.failed {
            return Advance::Faulted(fault.clone());
        }
        let distributor = self.places.distributor;
        let mmu = self.places.mmu;
        let (outside, places) = (self.options.outside_memory, self.places);
        let outcome = self.engine.run(limit, |partitions| {
            let mut slices = places.slices().map(|id| partitions.get(id));
            if outside
                && slices.any(|one| matches!(one, GpuPartition::Slice(one) if one.asks_outside()))
            {
                return true;
            }
            let ended = matches!(partitions.get(distributor),
                GpuPartition::WorkDistributor(distributor)
                    if !distributor.records().is_empty() || distributor.has_device_launches());
            ended
                || mmu.is_some_and(|mmu| {
                    matches!(partitions.get(mmu),
                        GpuPartition::Mmu(mmu) if mmu.has_done())
                })
        });
        match outcome {
            Outcome::Fault { partition, .. } => {
                let fault = self.fault_in(partition);
                self.fault(fault)
            }
            Outcome::Lost => {
                let fault = self.lost_fault();
                self.fail(fault.clone());
                Advance::Faulted(fault)
            }
            Outcome::Stopped if self.engine.boundary().is_stuck() => {
                let what = "no warp can make progress, and nothing else writes what they wait for";
                let hang = self.hang(what.into());
                // Warps may wait for those that an assertion stopped.
                match self.assertions().is_some() {
                    true => self.fault(Some(hang)),
                    false => Advance::Stuck(hang),
                }
            }
            Outcome::Stopped => {
                let fault = self.hang("it runs for longer than the watchdog allows".into());
                self.fault(Some(fault))
            }
            Outcome::Quiescent
                if !self.distributor().is_idle()
                    && !self.has_device_launches()
                    && self.waits_for_outside() == 0
                    && !self.waits_for_neighbours() =>
            {
                let fault = self.hang("all warps wait for something that cannot happen".into());
                self.fault(Some(fault))
            }
            Outcome::Condition | Outcome::Quiescent | Outcome::Limit => {
                // Looking first keeps a work distributor asleep that has nothing to tell.
                let mut records = match self.distributor().records() {
                    [] => Vec::new(),
                    _ => self.distributor_mut().take_records(),
                };
                self.book(&mut records);
                for record in &records {
                    self.launches.remove(record.launch.0);
                    self.records.insert(record.launch, record.clone());
                }
                Advance::Reached(records)
            }
        }
    }

    fn fault(&mut self, fault: Option<Box<Fault>>) -> Advance {
        // A rank that is gone takes what went wrong there with it.
        let mut fault = fault.unwrap_or_else(|| self.lost_fault());
        // A kernel goes on for a while after an assertion; what happens then follows from it.
        if let Some(first) = self.assertions().filter(|first| first.cycle <= fault.cycle) {
            *fault = first;
        }
        self.fail(fault.clone());
        Advance::Faulted(fault)
    }

    /// Assertions that failed, as a fault.
    fn assertions(&self) -> Option<Fault> {
        let own = self.own_sms().map(|(_, sm)| sm.assertions());
        if self.engine.ranks().is_none() {
            return assertions::fault_of(own);
        }
        let failed = own.filter(|one| one.first().is_some()).cloned();
        let all = self.share(failed.collect::<Vec<_>>());
        assertions::fault_of(all.iter().flatten())
    }

    /// Makes something the fault of a kernel, for everything that follows.
    pub fn fail(&mut self, fault: Box<Fault>) {
        self.failed = Some(fault);
    }

    /// Somebody outside has written memory, or may have done so.
    pub fn outside_acts(&self) {
        self.engine.boundary().outside_acts();
    }

    fn hang(&self, what: String) -> Box<Fault> {
        let own = self.own_sms().find(|(_, sm)| sm.has_warps());
        let own = own.and_then(|(number, sm)| Some((number, sm.hang_report()?)));
        let (sm, first) = self.share(own).into_iter().flatten().next().unzip();
        let sm = sm.unwrap_or(0);
        let launch = first
            .as_ref()
            .map(|(launch, ..)| *launch)
            .or(self.distributor().oldest_launch())
            .unwrap_or(0);
        let context = self.launches.get(launch);
        let (place, details) = match first {
            Some((_, place, details)) => (Some(place), format!("; {details}")),
            None => (None, String::new()),
        };
        Box::new(Fault {
            kind: FaultKind::Hang(what + &details),
            launch,
            kernel: context.map_or_else(String::new, |c| c.launch.kernel().name.clone()),
            place,
            sm,
            cycle: self.cycle(),
        })
    }

    /// The SM cycle of the boundary at which it stands.
    #[must_use]
    pub fn cycle(&self) -> Cycle {
        self.config.device.clock.cycle_at_or_after(self.now())
    }

    /// Runs until a launch is complete and gives its record.
    ///
    /// # Errors
    /// If a kernel fails.
    pub fn run_until_complete(&mut self, id: LaunchId) -> Result<KernelRecord, GpuError> {
        loop {
            if let Some(record) = self.records.get(&id) {
                return Ok(record.clone());
            }
            match self.advance(Time::NEVER) {
                Advance::Reached(_) => {}
                Advance::Faulted(fault) => return Err(fault.into()),
                Advance::Stuck(fault) => {
                    self.fail(fault.clone());
                    return Err(fault.into());
                }
            }
            if !self.records.contains_key(&id) && self.launches.get(id.0).is_none() {
                return Err(GpuError::Launch {
                    kernel: format!("launch {}", id.0),
                    because: "there is no such launch".into(),
                });
            }
        }
    }

    /// Lets time pass until a boundary not before `time`; kernels go on meanwhile.
    ///
    /// # Errors
    /// If a kernel fails.
    pub fn advance_to(&mut self, time: Time) -> Result<Vec<KernelRecord>, GpuError> {
        let mut all = Vec::new();
        while self.now() < time {
            match self.advance(time) {
                Advance::Reached(records) => all.extend(records),
                Advance::Stuck(_) => {}
                Advance::Faulted(fault) => return Err(fault.into()),
            }
        }
        Ok(all)
    }

    /// The record of a launch that is complete.
    #[must_use]
    pub fn record(&self, id: LaunchId) -> Option<&KernelRecord> {
        self.records.get(&id)
    }

    /// All launches that are complete, by number.
    pub fn records(&self) -> impl Iterator<Item = &KernelRecord> {
        self.records.values()
    }

    /// Whether no kernel waits or runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.distributor().is_idle()
            && self.engine.waiting(self.places.distributor) == 0
            && self.mmu().is_none_or(Mmu::is_idle)
    }

    /// Gives up all kernels, after a fault or because nobody wants them. Time, memory and
    /// statistics stay.
    ///
    /// # Errors
    /// Never for a GPU that could be made.
    pub fn abort(&mut self) -> Result<(), GpuError> {
        let now = self.now();
        let launches = LaunchTable::default();
        let (mut engine, places) = build(&self.config, &self.contents, &launches, &self.options)?;
        self.launches = launches;
        for index in 0..self.topology().partitions() {
            let id = PartitionId(index as u32);
            let old = self.engine.partition(id);
            match (engine.partition_mut(id), old) {
                (GpuPartition::Sm(new), GpuPartition::Sm(old)) => new.count_on(old),
                (GpuPartition::Slice(new), GpuPartition::Slice(old)) => {
                    new.count_on(old);
                }
                (GpuPartition::WorkDistributor(new), GpuPartition::WorkDistributor(old)) => {
                    new.inherit(old)
                }
                (GpuPartition::Network(new), GpuPartition::Network(old)) => {
                    new.set_stats(old.stats().clone());
                }
                // The GMMU follows below: it is taken over, not copied.
                _ => {}
            }
        }
        if let Some(id) = self.places.mmu
            && let (GpuPartition::Mmu(new), GpuPartition::Mmu(old)) =
                (engine.partition_mut(id), self.engine.partition_mut(id))
        {
            new.inherit(old, now);
        }
        engine.run(now, |_| false);
        engine.count_links_on(&self.engine);
        self.engine = engine;
        self.places = places;
        self.failed = None;
        self.skip_traffic();
        Ok(())
    }

    /// Takes what kernels printed since the last call, in the order of (cycle, SM, sequence).
    pub fn take_output(&mut self) -> Vec<Printed> {
        let mut all = Vec::new();
        for number in 0..self.places.sms {
            let id = PartitionId(self.places.first_sm + number);
            // Looking first keeps idle SMs asleep.
            if self.sm(number).has_printed()
                && let GpuPartition::Sm(sm) = self.engine.partition_mut(id)
            {
                all.append(&mut sm.take_printed());
            }
        }
        let mut all: Vec<Printed> = self.share(all).into_iter().flatten().collect();
        all.sort();
        all
    }

    fn distributor(&self) -> &WorkDistributor {
        match self.engine.partition(self.places.distributor) {
            GpuPartition::WorkDistributor(distributor) => distributor,
            other => panic!("the work distributor is {other:?}"),
        }
    }

    fn distributor_mut(&mut self) -> &mut WorkDistributor {
        match self.engine.partition_mut(self.places.distributor) {
            GpuPartition::WorkDistributor(distributor) => distributor,
            other => panic!("the work distributor is {other:?}"),
        }
    }

    fn sm(&self, number: u32) -> &Sm {
        match self
            .engine
            .partition(PartitionId(self.places.first_sm + number))
        {
            GpuPartition::Sm(sm) => sm,
            other => panic!("SM {number} is {other:?}"),
        }
    }

    /// The digest: statistics by component, kernel records, pages ever written, time.
    #[must_use]
    pub fn digest(&self, prefix: &str) -> DigestTree {
        let mut table = Table::default();
        self.statistics(prefix, &mut table);
        self.digest_of(prefix, &table)
    }

    /// The same of statistics that were gathered already, under the same prefix.
    #[must_use]
    pub fn digest_of(&self, prefix: &str, statistics: &Table) -> DigestTree {
        let mut tree = statistics.digests();
        for record in self.records.values() {
            let mut bytes = Vec::new();
            Writer::new(&mut bytes).write(record);
            let digest = Digest::of_bytes("kernel", &bytes);
            tree.insert(format!("{prefix}/kernel/{}", record.launch.0), digest);
        }
        tree.insert(format!("{prefix}/memory"), self.memory_digest());
        let mut hasher = Hasher::new("time");
        hasher.number(self.now().0);
        tree.insert(format!("{prefix}/time"), hasher.finish());
        tree
    }

    /// The digest of the pages that were ever written. A page of zeros is as one that never was:
    /// fresh memory reads zero, and whether the host has touched its own cannot always be known.
    #[must_use]
    pub fn memory_digest(&self) -> Digest {
        let mut hasher = Hasher::new("memory");
        self.contents.each_page(|address, page| {
            hasher.number(address);
            hasher.digest(Digest::of_page(page));
        });
        hasher.finish()
    }
}
