//! From a GPU file to partitions and links.

use std::sync::Arc;

use lockstep_config::{ConfigError, GpuConfig};
use lockstep_engine::{Engine, KindId, LinkKind, PartitionId, Topology};
use lockstep_units::{Bandwidth, Bytes, BytesPerCycle, Cycles, Duration, Hertz};
use lockstep_uvm::{MicroTlb, Settings};

use super::{Mode, Options};
use crate::crossbar::network::Network;
use crate::crossbar::shape::{NetworkParameters, Side};
use crate::crossbar::{Egress, Kind};
use crate::dram::DramParameters;
use crate::error::GpuError;
use crate::front::{
    DISPATCH_POLICIES, DispatchParameters, DispatchPolicy, Dispatcher, SmLimits, Units, ranks,
};
use crate::gpc::GpcMap;
use crate::l2::{L2Slice, SliceParameters};
use crate::launch::LaunchTable;
use crate::memory::{Contents, Home, LINE, SECTOR};
use crate::mmu::{Pager, PagerWiring};
use crate::parameters::SmParameters;
use crate::partition::{GpuBoundary, GpuPartition};
use crate::probe::Topic;
use crate::sm::{Sm, TranslationWiring, Wiring};

/// Where the partitions are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub dispatcher: PartitionId,
    pub sms: u32,
    pub first_sm: u32,
    pub slices: u32,
    pub first_slice: u32,
    /// The GMMU, if there is one.
    pub pager: Option<PartitionId>,
    /// The network of requests, if there are networks; that of replies is the next.
    pub network: Option<PartitionId>,
}

impl Places {
    /// The slices of L2.
    pub fn slices(self) -> impl Iterator<Item = PartitionId> {
        (0..self.slices).map(move |number| PartitionId(self.first_slice + number))
    }
}

/// Bytes per second of so many bytes per cycle.
fn bandwidth(rate: BytesPerCycle, clock: Hertz) -> Bandwidth {
    rate.at(clock)
}

/// Which slice each line is at.
pub(super) fn home(config: &GpuConfig) -> Home {
    let l2 = &config.l2;
    Home::new(
        l2.slices,
        l2.interleave_region.0,
        l2.interleave_slices,
        l2.interleave_granularity.0,
    )
}

/// The GPC of each pair of SMs.
fn groups_of_pairs(config: &GpuConfig) -> Vec<u32> {
    let gpcs = config.device.gpcs.max(1);
    let pairs = config.device.sms.div_ceil(2) as usize;
    let sizes: Vec<u32> = config
        .device
        .gpc_tpcs
        .iter()
        .copied()
        .take(gpcs as usize)
        .collect();
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let rounds = (0..largest).flat_map(|round| {
        let sizes = &sizes;
        (0..gpcs).filter(move |gpc| sizes.get(*gpc as usize).is_some_and(|size| *size > round))
    });
    let mut groups: Vec<u32> = rounds.chain((0..gpcs).cycle()).take(pairs).collect();
    for (group, known) in groups.iter_mut().zip(&config.device.gpc_of_tpc) {
        *group = *known;
    }
    groups
}

/// How much longer the way of each pair of SMs is than that of most, by its place in its GPC.
fn ways_of_pairs(config: &GpuConfig) -> Vec<Cycles> {
    let groups = groups_of_pairs(config);
    let place = |pair: usize| {
        groups[..pair]
            .iter()
            .filter(|g| **g == groups[pair])
            .count()
    };
    let way = |pair| {
        config
            .interconnect
            .tpc_hop_latency
            .get(place(pair))
            .copied()
    };
    (0..groups.len())
        .map(|pair| way(pair).unwrap_or(Cycles(0)))
        .collect()
}

/// The half of L2 that each GPC is at.
fn halves_of_groups(config: &GpuConfig) -> Vec<u32> {
    let (gpcs, halves) = (config.device.gpcs.max(1), config.l2.partitions);
    let first = &config.l2.first_partition_gpcs;
    let half = |gpc: u32| match first.is_empty() || halves != 2 {
        true => gpc * halves / gpcs,
        false => u32::from(!first.contains(&gpc)),
    };
    (0..gpcs).map(half).collect()
}

/// Makes the parts of an idle GPU and the engine that runs them.
pub(super) fn build(
    config: &GpuConfig,
    contents: &Arc<Contents>,
    launches: &LaunchTable,
    options: &Options,
) -> Result<(Engine<GpuPartition, GpuBoundary>, Places), GpuError> {
    config.check()?;
    let timed = options.mode == Mode::Timing;
    let parameters = Arc::new(SmParameters {
        cold: options.cold_caches,
        checked: options.check,
        ..SmParameters::new(config, timed)?
    });
    let policy = DispatchPolicy::named(&config.dispatch.policy).ok_or_else(|| {
        let known = DISPATCH_POLICIES.iter().map(|policy| policy.name);
        ConfigError::unknown_policy("dispatch policy", &config.dispatch.policy, known)
    })?;
    let clock = config.device.clock;
    let mut builder = Topology::builder(clock);
    if options.force_short_epoch {
        builder.force_short_epoch();
    }
    let dispatcher = builder.partitions("dispatcher", 1);
    let sms = builder.partitions("sm", config.device.sms);
    let slices = builder.partitions("slice", config.l2.slices);
    // Both modes have the same parts; only timing asks the GMMU.
    let managed = options.managed.clone().filter(|_| timed);
    let gmmu = options
        .managed
        .is_some()
        .then(|| builder.partitions("gmmu", 1));
    // In functional mode packets take no time and pass networks by.
    let kind = Kind::of(config)?;
    let networked = config.interconnect.has_networks();
    let networks = networked.then(|| builder.partitions("network", 2));
    let through = networks.filter(|_| timed);
    let mut link = |name: &str, from: KindId, to: KindId, latency: Cycles, rate| {
        builder.link(LinkKind {
            name: name.into(),
            from,
            to,
            latency: clock.duration(latency),
            bandwidth: rate,
        })
    };
    let network = &config.interconnect;
    let ported = timed && !networked;
    let rate = |rate: BytesPerCycle| ported.then(|| bandwidth(rate, clock));
    let start = link("start", dispatcher, sms, config.dispatch.latency, None);
    let report = link("report", sms, dispatcher, config.dispatch.latency, None);
    let control = link("control", dispatcher, slices, config.dispatch.latency, None);
    let (request_latency, reply_latency) = (network.request_latency, network.reply_latency);
    // Half of a latency lies before a network, half behind it.
    let before = |latency: Cycles| match through {
        Some(_) => Cycles(latency.0 / 2),
        None => latency,
    };
    let request = link(
        "request",
        sms,
        through.unwrap_or(slices),
        before(request_latency),
        rate(network.request_bytes_per_cycle),
    );
    // What a slice passes on takes its time there; the way from it is not narrower.
    let slice_rate = bandwidth(config.l2.bytes_per_cycle, config.l2.clock);
    let port_rate = bandwidth(network.reply_bytes_per_cycle, clock);
    let reply = link(
        "reply",
        slices,
        through.unwrap_or(sms),
        before(reply_latency),
        ported.then(|| slice_rate.max(port_rate)),
    );
    let delivery = through.map(|networks| {
        let behind = |latency: Cycles| latency - before(latency);
        [
            link("requested", networks, slices, behind(request_latency), None),
            link("replied", networks, sms, behind(reply_latency), None),
        ]
    });
    let hop = match config.uvm.walk.hop_latency {
        Cycles(0) => network.request_latency.min(network.reply_latency),
        given => given,
    };
    let hops = gmmu.map(|gmmu| {
        [
            link("translate", sms, gmmu, hop, None),
            link("answer", gmmu, sms, hop, None),
            link("forget", gmmu, slices, hop, None),
        ]
    });
    let drained = link("drained", slices, dispatcher, config.dispatch.latency, None);
    let topology = builder.build()?;
    if topology.epoch() >= clock.duration(Cycles(u64::from(u16::MAX))) {
        return Err(GpuError::Config(ConfigError::impossible(
            "interconnect.request-latency",
            network.request_latency,
            "an epoch can have at most 65,535 SM cycles",
        )));
    }
    let places = Places {
        dispatcher: topology.id(dispatcher, 0),
        sms: config.device.sms,
        first_sm: topology.id(sms, 0).0,
        slices: config.l2.slices,
        first_slice: topology.id(slices, 0).0,
        pager: gmmu.map(|gmmu| topology.id(gmmu, 0)),
        network: networks.map(|networks| topology.id(networks, 0)),
    };
    let passed = |number| through.map(|networks| topology.id(networks, number));
    let request_port = Egress {
        link: request,
        network: passed(0),
        topic: Topic::Request,
    };
    let reply_port = Egress {
        link: reply,
        network: passed(1),
        topic: Topic::Reply,
    };
    let probe = |topics: &[Topic], number| {
        let recorder = options.recorder.as_ref();
        recorder.and_then(|recorder| recorder.probe(topics, number))
    };
    let home = home(config);
    let header = network.packet_header.0;
    let wiring = Wiring {
        request: request_port,
        report,
        slices: places.first_slice,
        dispatcher: places.dispatcher,
        header,
        atomic: network.atomic_bytes_per_sector.0,
        atomic_lane: network.atomic_bytes_per_lane.0,
    };
    let uvm = &config.uvm;
    let translation = match (managed, hops, places.pager) {
        (Some(managed), Some([link, ..]), Some(gmmu)) => Some(TranslationWiring {
            link,
            gmmu,
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
        }),
        _ => None,
    };
    let cycles = |cycles: Cycles| {
        if timed {
            clock.duration(cycles)
        } else {
            Duration::ZERO
        }
    };
    let l2 = &config.l2;
    let lines = l2.capacity.0 / LINE / u64::from(l2.slices);
    let gpcs = GpcMap::new(config.device.gpcs, &groups_of_pairs(config));
    let slice_parameters = Arc::new(SliceParameters {
        timed,
        reply: reply_port,
        drained,
        header,
        hit_latency: cycles(l2.hit_latency),
        atomic_latency: cycles(l2.atomic_latency),
        far_latency: cycles(l2.far_partition_latency),
        write_sector: l2.sector_write_time,
        partial_write: l2.partial_write_time,
        atomic_sector: l2.atomic_sector_time,
        atomic_neighbour: l2.atomic_sector_pair_time,
        atomic_lane: l2.atomic_lane_time,
        atomic_other_line: l2.atomic_line_switch_time,
        atomic_float_lane: l2.atomic_float_lane_time,
        sets: (lines / u64::from(l2.ways)) as u32,
        ways: l2.ways,
        burst: (config.dram.burst.0 / SECTOR) as u32,
        partitions: l2.partitions,
        slices: l2.slices,
        home,
        first_sm: places.first_sm,
        dram: DramParameters::new(config)?,
        request_time: if timed {
            config.l2.clock.duration(Cycles(1))
        } else {
            Duration::ZERO
        },
        coalescing_window: cycles(l2.coalescing_window),
        coalescing_targets: l2.coalescing_targets as u8,
        set_neighbours: l2.set_neighbours,
        write_back_queue: l2.write_back_queue,
        partial_lines: l2.partial_sector_lines,
        gpcs: gpcs.clone(),
        partition_of_gpc: halves_of_groups(config),
        tpc_hop_latency: match kind {
            Kind::Crossbar => ways_of_pairs(config).into_iter().map(cycles).collect(),
            Kind::Simple | Kind::Mesh | Kind::Switched => Vec::new(),
        },
        // Networks have ways of their own.
        hop_latency_spread: cycles(match kind {
            Kind::Crossbar => network.distance_spread,
            Kind::Simple | Kind::Mesh | Kind::Switched => Cycles(0),
        }),
        sector_time: if timed {
            slice_rate.time_for(Bytes(SECTOR)).max(l2.sector_read_time)
        } else {
            Duration::ZERO
        },
    });
    let first = &config.dispatch.first_sms;
    let sm_ranks = ranks(first, config.device.sms);
    let dispatch_parameters = Arc::new(DispatchParameters {
        clock,
        sms: config.device.sms,
        first_sm: places.first_sm,
        start,
        limits: SmLimits::new(config),
        interval: config.dispatch.block_interval,
        launch: cycles(config.launch.start_latency),
        finish: cycles(config.launch.finish_latency),
        overlap: if timed && !options.cold_caches {
            clock.duration(config.launch.start_overlap)
        } else {
            Duration::ZERO
        },
        finish_sm: if timed {
            config.launch.finish_per_sm
        } else {
            Duration::ZERO
        },
        drain: timed.then_some(control),
        drain_tail: cycles(config.launch.finish_latency).max(clock.duration(Cycles(300)))
            - clock.duration(Cycles(300)),
        concurrent: config.dispatch.concurrent_kernels,
        policy,
        units: Units::new(first, &config.dispatch.first_sms_turns, &sm_ranks, &gpcs),
        ranks: sm_ranks,
        empty: options.cold_caches.then_some(control),
        first_slice: places.first_slice,
        slices: config.l2.slices,
    });
    let mut partitions = vec![GpuPartition::Dispatcher(Box::new(Dispatcher::new(
        dispatch_parameters,
        contents.clone(),
        launches.clone(),
        probe(&[Topic::Dispatcher], 0),
    )))];
    for number in 0..config.device.sms {
        partitions.push(GpuPartition::Sm(Box::new(Sm::new(
            number,
            parameters.clone(),
            contents.clone(),
            launches.clone(),
            home,
            wiring,
            translation.clone(),
            probe(&[Topic::Sm, Topic::Request], number),
        ))));
    }
    for number in 0..config.l2.slices {
        let probes = [&[Topic::Slice, Topic::Reply][..], &[Topic::Dram]];
        let probes = probes.map(|topics| probe(topics, number));
        let slice = L2Slice::new(number, slice_parameters.clone(), contents.clone(), probes);
        partitions.push(GpuPartition::Slice(Box::new(slice)));
    }
    let memory = Bytes(config.device.memory.0 - config.device.reserved_memory.0);
    let settings = Arc::new(Settings::new(uvm, clock, config.device.sms, memory)?);
    if let Some([_, answer, forget]) = hops {
        let wiring = PagerWiring {
            answer,
            forget,
            first_sm: places.first_sm,
            first_slice: places.first_slice,
            slices: config.l2.slices,
            header,
            home,
        };
        let pager = Pager::new(settings, wiring, probe(&[Topic::Gmmu], 0));
        partitions.push(GpuPartition::Pager(Box::new(pager)));
    }
    if networked {
        let sides = [
            Side {
                first: places.first_sm,
                count: places.sms,
            },
            Side {
                first: places.first_slice,
                count: places.slices,
            },
        ];
        // Without time nothing passes them, whatever they are wired to.
        let links = delivery.unwrap_or([request, reply]);
        for (number, link) in (0..).zip(links) {
            let [sms, slices] = sides;
            let parameters = NetworkParameters::new(config, kind, sms, slices, number == 1, link)?;
            let network = Network::new(Arc::new(parameters), probe(&[Topic::Network], number));
            partitions.push(GpuPartition::Network(Box::new(network)));
        }
    }
    let watchdog = options.watchdog.map(|cycles| clock.duration(cycles));
    let boundary = GpuBoundary::new(contents.clone(), places.dispatcher, watchdog);
    let engine = Engine::with_boundary(topology, partitions, boundary, options.engine.clone())?;
    Ok((engine, places))
}
