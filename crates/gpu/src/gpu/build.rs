//! From a GPU file to partitions and links.

use std::sync::Arc;

use lockstep_config::{ConfigError, GpuConfig};
use lockstep_engine::{Engine, KindId, LinkKind, PartitionId, Topology};
use lockstep_units::{Bandwidth, Bytes, BytesPerCycle, Cycles, Duration, Hertz};
use lockstep_uvm::{Settings, Translator};

use super::{Mode, Options};
use crate::dispatch::{
    DISPATCH_POLICIES, DispatchParameters, DispatchPolicy, Dispatcher, SmLimits,
};
use crate::error::GpuError;
use crate::launch::LaunchTable;
use crate::memory::{Contents, Home, LINE, SECTOR};
use crate::parameters::SmParameters;
use crate::partition::{GpuBoundary, GpuPartition};
use crate::slice::{DramParameters, L2Slice, SliceParameters};
use crate::sm::{Sm, TranslationWiring, Wiring};
use crate::uvm::{Pager, PagerWiring};

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
}

/// Bytes per second of so many bytes per cycle.
fn bandwidth(rate: BytesPerCycle, clock: Hertz) -> Bandwidth {
    rate.at(clock)
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
        ConfigError::UnknownPolicy {
            kind: "dispatch policy",
            name: config.dispatch.policy.clone(),
            known: DISPATCH_POLICIES
                .iter()
                .map(|policy| policy.name)
                .collect::<Vec<_>>()
                .join(", "),
        }
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
    let rate = |rate: BytesPerCycle| timed.then(|| bandwidth(rate, clock));
    let start = link("start", dispatcher, sms, config.dispatch.latency, None);
    let report = link("report", sms, dispatcher, config.dispatch.latency, None);
    let control = link("control", dispatcher, slices, config.dispatch.latency, None);
    let request = link(
        "request",
        sms,
        slices,
        network.request_latency,
        rate(network.request_bytes_per_cycle),
    );
    let reply = link(
        "reply",
        slices,
        sms,
        network.reply_latency,
        timed.then(|| bandwidth(config.l2.bytes_per_cycle, config.l2.clock)),
    );
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
    };
    let home = Home::new(
        config.l2.slices,
        config.l2.region.0,
        config.l2.region_slices,
        config.l2.piece.0,
    );
    let header = network.header.0;
    let wiring = Wiring {
        request,
        report,
        slices: places.first_slice,
        dispatcher: places.dispatcher,
        header,
        atomic: network.atomic.0,
        atomic_lane: network.atomic_lane.0,
    };
    let uvm = &config.uvm;
    let translation = match (managed, hops, places.pager) {
        (Some(managed), Some([link, ..]), Some(gmmu)) => Some(TranslationWiring {
            link,
            gmmu,
            managed,
            translator: Translator::new(
                uvm.tlb.entries,
                uvm.tlb.ways,
                uvm.tlb.misses,
                uvm.touch_interval.0,
                uvm.fault.mode == "stall-sm",
            ),
            flush_on_launch: uvm.tlb.flush_on_launch,
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
    let slice_parameters = Arc::new(SliceParameters {
        timed,
        reply,
        drained,
        header,
        hit: cycles(l2.hit_latency),
        atomic: cycles(l2.atomic_latency),
        far: cycles(l2.far_latency),
        write_sector: l2.write_sector,
        write_part: l2.write_part,
        atomic_sector: l2.atomic_sector,
        atomic_lane: l2.atomic_lane,
        sets: (lines / u64::from(l2.ways)) as u32,
        ways: l2.ways,
        burst: (config.dram.burst.0 / SECTOR) as u32,
        halves: l2.partitions,
        slices: l2.slices,
        home,
        first_sm: places.first_sm,
        sms: config.device.sms,
        dram: DramParameters::new(config)?,
        request: if timed {
            config.l2.clock.duration(Cycles(1))
        } else {
            Duration::ZERO
        },
        merge: cycles(l2.merge),
        groups: config.device.gpcs,
        spread: cycles(network.spread),
        sector: if timed {
            bandwidth(config.l2.bytes_per_cycle, config.l2.clock).time_for(Bytes(SECTOR))
        } else {
            Duration::ZERO
        },
    });
    let dispatch_parameters = Arc::new(DispatchParameters {
        clock,
        sms: config.device.sms,
        first_sm: places.first_sm,
        start,
        limits: SmLimits::new(config),
        interval: config.dispatch.interval,
        launch: cycles(config.launch.start),
        finish: cycles(config.launch.finish),
        finish_sm: if timed {
            config.launch.finish_sm
        } else {
            Duration::ZERO
        },
        drain: timed.then_some(control),
        drain_tail: cycles(config.launch.finish).max(clock.duration(Cycles(300)))
            - clock.duration(Cycles(300)),
        concurrent: config.dispatch.concurrent_kernels,
        policy,
        empty: options.cold_caches.then_some(control),
        first_slice: places.first_slice,
        slices: config.l2.slices,
    });
    let mut partitions = vec![GpuPartition::Dispatcher(Box::new(Dispatcher::new(
        dispatch_parameters,
        contents.clone(),
        launches.clone(),
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
        ))));
    }
    for number in 0..config.l2.slices {
        let slice = L2Slice::new(number, slice_parameters.clone(), contents.clone());
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
        };
        partitions.push(GpuPartition::Pager(Box::new(Pager::new(settings, wiring))));
    }
    let watchdog = options.watchdog.map(|cycles| clock.duration(cycles));
    let boundary = GpuBoundary::new(contents.clone(), places.dispatcher, watchdog);
    let engine = Engine::with_boundary(topology, partitions, boundary, options.engine.clone())?;
    Ok((engine, places))
}
