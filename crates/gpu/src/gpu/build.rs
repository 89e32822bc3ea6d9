//! From a GPU file to the partitions of an idle GPU and the engine that runs them.
//!
//! Start reading at [`build`]; how the parts are wired is in `layout.rs`, what each of them is made
//! with stands beside it.

use std::sync::Arc;

use lockstep_config::GpuConfig;
use lockstep_engine::Engine;
use lockstep_units::Bytes;
use lockstep_uvm::{MicroTlb, NeighbourLink, Settings};

use super::layout::{Layout, Places};
use super::options::{Mode, Options};
use super::ranks::owners;
use crate::crossbar::Kind;
use crate::crossbar::credits::CreditGate;
use crate::crossbar::network::Network;
use crate::crossbar::shape::{NetworkParameters, Side};
use crate::error::GpuError;
use crate::front::{DistributorParameters, DistributorWiring, WorkDistributor};
use crate::gpc::GpcMap;
use crate::l2::{L2Slice, SliceParameters, SliceWiring};
use crate::launch::LaunchTable;
use crate::liveness::Liveness;
use crate::memory::{Contents, Home};
use crate::mmu::{Mmu, MmuWiring};
use crate::parameters::SmParameters;
use crate::partition::{GpuBoundary, GpuPartition};
use crate::probe::{Probe, Topic};
use crate::sm::{Sm, TranslationWiring, Wiring};

/// What all parts are made from.
struct Plan<'a> {
    config: &'a GpuConfig,
    contents: &'a Arc<Contents>,
    launches: &'a LaunchTable,
    options: &'a Options,
    layout: Layout,
    kind: Kind,
    gpcs: GpcMap,
    home: Home,
}

/// Makes the parts of an idle GPU and the engine that runs them.
pub fn build(
    config: &GpuConfig,
    contents: &Arc<Contents>,
    launches: &LaunchTable,
    options: &Options,
) -> Result<(Engine<GpuPartition, GpuBoundary>, Places), GpuError> {
    config.check()?;
    let plan = Plan {
        config,
        contents,
        launches,
        options,
        layout: Layout::new(config, options)?,
        kind: Kind::of(config)?,
        gpcs: GpcMap::of(config),
        home: Home::of(config),
    };
    let mut partitions = vec![plan.work_distributor()?];
    plan.add_sms(&mut partitions)?;
    plan.add_slices(&mut partitions)?;
    plan.add_mmu(&mut partitions)?;
    plan.add_networks(&mut partitions)?;
    let clock = config.device.clock;
    let watchdog = options.watchdog.map(|cycles| clock.duration(cycles));
    let Layout {
        topology, places, ..
    } = plan.layout;
    let sms = places.first_sm..places.first_sm + places.sms;
    let liveness = options
        .patience
        .map(|cycles| Liveness::new(clock.duration(cycles), sms));
    let boundary = GpuBoundary::new(contents.clone(), places.distributor, watchdog, liveness);
    let mut engine = Engine::with_boundary(topology, partitions, boundary, options.engine.clone())?;
    if let Some(ranks) = &options.ranks {
        let owners = owners(ranks, &places, engine.topology().partitions());
        engine.split(ranks.clone(), owners);
    }
    Ok((engine, places))
}

impl Plan<'_> {
    fn timed(&self) -> bool {
        self.options.mode == Mode::Timing
    }

    fn probe(&self, topics: &[Topic], number: u32) -> Option<Box<Probe>> {
        let recorder = self.options.recorder.as_ref();
        recorder.and_then(|recorder| recorder.probe(topics, number))
    }

    fn work_distributor(&self) -> Result<GpuPartition, GpuError> {
        let (places, links) = (&self.layout.places, &self.layout.links);
        let wiring = DistributorWiring {
            first_sm: places.first_sm,
            start: links.start,
            first_slice: places.first_slice,
            control: links.control,
        };
        let cold = self.options.cold_caches;
        let parameters =
            DistributorParameters::new(self.config, self.timed(), cold, wiring, &self.gpcs)?;
        Ok(GpuPartition::WorkDistributor(Box::new(
            WorkDistributor::new(
                Arc::new(parameters),
                self.contents.clone(),
                self.launches.clone(),
                self.probe(&[Topic::Dispatcher], 0),
            ),
        )))
    }

    fn add_sms(&self, partitions: &mut Vec<GpuPartition>) -> Result<(), GpuError> {
        let (places, links) = (&self.layout.places, &self.layout.links);
        let parameters = Arc::new(SmParameters {
            cold: self.options.cold_caches,
            checks: self.options.checks,
            ..SmParameters::new(self.config, self.timed())?
        });
        let network = &self.config.interconnect;
        let wiring = Wiring {
            request: self.layout.request,
            report: links.report,
            cluster: links.cluster,
            sms: places.first_sm,
            slices: places.first_slice,
            dispatcher: places.distributor,
            header: network.packet_header.0,
            atomic: network.atomic_bytes_per_sector.0,
            atomic_lane: network.atomic_bytes_per_lane.0,
        };
        let translation = self.translation();
        let slices = self.config.l2.slices;
        let credits = network.credits_of(self.timed());
        let gate = CreditGate::new(slices, credits, network.held_requests);
        for number in 0..self.config.device.sms {
            let mut sm = Sm::new(
                number,
                parameters.clone(),
                self.contents.clone(),
                self.launches.clone(),
                self.home,
                wiring,
                gate.clone(),
                translation.clone(),
                self.probe(&[Topic::Sm, Topic::Request], number),
                self.options.tracer.clone(),
                self.options.findings.clone(),
            );
            let profile = self.options.profile.as_ref();
            sm.count_lines(profile.and_then(|profile| profile.of_sm(number)));
            partitions.push(GpuPartition::Sm(Box::new(sm)));
        }
        Ok(())
    }

    /// How SMs reach the GMMU, if there is managed memory; only timing asks it.
    fn translation(&self) -> Option<TranslationWiring> {
        let managed = self.options.managed.clone().filter(|_| self.timed())?;
        let [link, ..] = self.layout.links.translation?;
        let uvm = &self.config.uvm;
        Some(TranslationWiring {
            link,
            gmmu: self.layout.places.mmu?,
            managed,
            translator: MicroTlb::new(
                uvm.tlb.entries,
                uvm.tlb.ways,
                uvm.tlb.mshrs,
                uvm.touch_interval.0,
                uvm.fault.mode == "stall-sm",
            ),
            flush_on_launch: uvm.tlb.flush_on_launch,
            every_warp: uvm.fault.every_warp,
        })
    }

    fn add_slices(&self, partitions: &mut Vec<GpuPartition>) -> Result<(), GpuError> {
        let wiring = SliceWiring {
            reply: self.layout.reply,
            drained: self.layout.links.drained,
            credit: self.layout.links.credit,
            first_sm: self.layout.places.first_sm,
        };
        let parameters = Arc::new(SliceParameters {
            peers: self.options.peers.clone(),
            keeps_tags: self.options.both_modes,
            ..SliceParameters::new(self.config, self.timed(), self.kind, wiring, &self.gpcs)?
        });
        for number in 0..self.config.l2.slices {
            let probes = [&[Topic::Slice, Topic::Reply][..], &[Topic::Dram]];
            let probes = probes.map(|topics| self.probe(topics, number));
            let mut slice = L2Slice::new(number, parameters.clone(), self.contents.clone(), probes);
            slice.set_outside(self.options.outside_memory && self.timed());
            partitions.push(GpuPartition::Slice(Box::new(slice)));
        }
        Ok(())
    }

    fn add_mmu(&self, partitions: &mut Vec<GpuPartition>) -> Result<(), GpuError> {
        let (config, places) = (self.config, &self.layout.places);
        let (clock, sms) = (config.device.clock, config.device.sms);
        let memory = Bytes(config.device.memory.0 - config.device.reserved_memory.0);
        let settings = Arc::new(Settings::new(&config.uvm, clock, sms, memory)?);
        if let Some([_, answer, invalidate]) = self.layout.links.translation {
            let wiring = MmuWiring {
                answer,
                invalidate,
                first_sm: places.first_sm,
                first_slice: places.first_slice,
                slices: config.l2.slices,
                header: config.interconnect.packet_header.0,
                home: self.home,
            };
            let mut mmu = Mmu::new(settings, wiring, self.probe(&[Topic::Gmmu], 0));
            if let Some(peers) = &self.options.peers {
                mmu.gmmu.join_node(NeighbourLink {
                    bytes_per_second: peers.bandwidth.get(),
                    packet_header: peers.packet_header.0,
                    latency: peers.latency,
                });
            }
            partitions.push(GpuPartition::Mmu(Box::new(mmu)));
        }
        Ok(())
    }

    fn add_networks(&self, partitions: &mut Vec<GpuPartition>) -> Result<(), GpuError> {
        let (places, links) = (&self.layout.places, &self.layout.links);
        if places.network.is_none() {
            return Ok(());
        }
        let sms = Side {
            first: places.first_sm,
            count: places.sms,
        };
        let slices = Side {
            first: places.first_slice,
            count: places.slices,
        };
        // Without time nothing passes them, whatever they are wired to.
        let links = links.delivery.unwrap_or([links.request, links.reply]);
        for (number, link) in (0..).zip(links) {
            let replies = number == 1;
            let parameters =
                NetworkParameters::new(self.config, self.kind, sms, slices, replies, link)?;
            let probe = self.probe(&[Topic::Network], number);
            let network = Network::new(Arc::new(parameters), probe);
            partitions.push(GpuPartition::Network(Box::new(network)));
        }
        Ok(())
    }
}
