//! The partitions of a GPU and the links between them.
//!
//! Start reading at [`Layout::new`].

use lockstep_config::{ConfigError, GpuConfig};
use lockstep_engine::{KindId, LinkId, LinkKind, PartitionId, Topology, TopologyBuilder};
use lockstep_units::{Bandwidth, BytesPerCycle, Cycles};

use super::options::{Mode, Options};
use crate::crossbar::Egress;
use crate::error::GpuError;
use crate::probe::Topic;

/// Where the partitions are.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub distributor: PartitionId,
    pub sms: u32,
    pub first_sm: u32,
    pub slices: u32,
    pub first_slice: u32,
    /// The GMMU, if there is one.
    pub mmu: Option<PartitionId>,
    /// The network of requests, if there are networks; that of replies is the next.
    pub network: Option<PartitionId>,
}

impl Places {
    /// The SMs.
    pub fn sms(self) -> impl Iterator<Item = PartitionId> {
        (0..self.sms).map(move |number| PartitionId(self.first_sm + number))
    }

    /// The slices of L2.
    pub fn slices(self) -> impl Iterator<Item = PartitionId> {
        (0..self.slices).map(move |number| PartitionId(self.first_slice + number))
    }
}

/// The links by what they carry.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    /// Work distributor to SM.
    pub start: LinkId,
    /// SM to work distributor.
    pub report: LinkId,
    /// Work distributor to slice.
    pub control: LinkId,
    /// SM to SM, where blocks have clusters.
    pub cluster: Option<LinkId>,
    /// SM to slice, or to the network of requests.
    pub request: LinkId,
    /// Slice to SM, or to the network of replies.
    pub reply: LinkId,
    /// From the network of requests to slices, and from that of replies to SMs.
    pub delivery: Option<[LinkId; 2]>,
    /// SM to GMMU, GMMU to SM, GMMU to slice.
    pub translation: Option<[LinkId; 3]>,
    /// Slice to work distributor.
    pub drained: LinkId,
    /// Slice to SM, for credits.
    pub credit: LinkId,
}

/// The kinds of partitions.
struct Kinds {
    distributor: KindId,
    sms: KindId,
    slices: KindId,
    gmmu: Option<KindId>,
    networks: Option<KindId>,
    /// The networks, if packets pass through them.
    through: Option<KindId>,
}

/// How a GPU is laid out.
pub struct Layout {
    pub topology: Topology,
    pub places: Places,
    pub links: Links,
    /// The port of every SM.
    pub request: Egress,
    /// The port of every slice.
    pub reply: Egress,
}

impl Layout {
    /// From a GPU file.
    ///
    /// # Errors
    /// If links are too fast or too slow for the engine.
    pub fn new(config: &GpuConfig, options: &Options) -> Result<Self, GpuError> {
        let clock = config.device.clock;
        let mut builder = Topology::builder(clock);
        if options.force_short_epoch {
            builder.force_short_epoch();
        }
        let kinds = Kinds::new(config, options, &mut builder);
        let links = Links::new(config, options, &kinds, &mut builder);
        let topology = builder.build()?;
        if topology.epoch() >= clock.duration(Cycles(u64::from(u16::MAX))) {
            return Err(GpuError::Config(ConfigError::impossible(
                "interconnect.request-latency",
                config.interconnect.request_latency,
                "an epoch can have at most 65,535 SM cycles",
            )));
        }
        let first = |kind: KindId| topology.id(kind, 0);
        let places = Places {
            distributor: first(kinds.distributor),
            sms: config.device.sms,
            first_sm: first(kinds.sms).0,
            slices: config.l2.slices,
            first_slice: first(kinds.slices).0,
            mmu: kinds.gmmu.map(first),
            network: kinds.networks.map(first),
        };
        let port = |link, number, topic| Egress {
            link,
            network: kinds.through.map(|networks| topology.id(networks, number)),
            topic,
        };
        Ok(Self {
            request: port(links.request, 0, Topic::Request),
            reply: port(links.reply, 1, Topic::Reply),
            topology,
            places,
            links,
        })
    }
}

impl Kinds {
    fn new(config: &GpuConfig, options: &Options, builder: &mut TopologyBuilder) -> Self {
        let distributor = builder.partitions("dispatcher", 1);
        let sms = builder.partitions("sm", config.device.sms);
        let slices = builder.partitions("slice", config.l2.slices);
        // Both modes have the same parts; only timing asks the GMMU.
        let managed = options.managed.is_some();
        let gmmu = managed.then(|| builder.partitions("gmmu", 1));
        // In functional mode packets take no time and pass networks by.
        let networked = config.interconnect.has_networks();
        let networks = networked.then(|| builder.partitions("network", 2));
        Self {
            distributor,
            sms,
            slices,
            gmmu,
            networks,
            through: networks.filter(|_| options.mode == Mode::Timing),
        }
    }
}

impl Links {
    fn new(
        config: &GpuConfig,
        options: &Options,
        kinds: &Kinds,
        builder: &mut TopologyBuilder,
    ) -> Self {
        let clock = config.device.clock;
        let mut link = |name: &str, from, to, latency: Cycles, bandwidth: Option<Bandwidth>| {
            builder.link(LinkKind {
                name: name.into(),
                from,
                to,
                latency: clock.duration(latency),
                bandwidth,
            })
        };
        let (distributor, sms, slices) = (kinds.distributor, kinds.sms, kinds.slices);
        let through = kinds.through;
        let network = &config.interconnect;
        let ported = options.mode == Mode::Timing && kinds.networks.is_none();
        let rate = |rate: BytesPerCycle| rate.at(clock);
        let dispatch = config.dispatch.latency;
        let start = link("start", distributor, sms, dispatch, None);
        let report = link("report", sms, distributor, dispatch, None);
        let control = link("control", distributor, slices, dispatch, None);
        // Half of a latency lies before a network, half behind it.
        let before = |latency: Cycles| match through {
            Some(_) => Cycles(latency.0 / 2),
            None => latency,
        };
        let request = link(
            "request",
            sms,
            through.unwrap_or(slices),
            before(network.request_latency),
            ported.then(|| rate(network.request_bytes_per_cycle)),
        );
        // What a slice passes on takes its time there; the port out of it is not narrower.
        let slice_rate = config.l2.bytes_per_cycle.at(config.l2.clock);
        let reply = link(
            "reply",
            slices,
            through.unwrap_or(sms),
            before(network.reply_latency),
            ported.then(|| slice_rate.max(rate(network.reply_bytes_per_cycle))),
        );
        let behind = |latency: Cycles| latency - before(latency);
        let delivery = through.map(|networks| {
            let (requests, replies) = (network.request_latency, network.reply_latency);
            [
                link("requested", networks, slices, behind(requests), None),
                link("replied", networks, sms, behind(replies), None),
            ]
        });
        let hop = match config.uvm.walk.hop_latency {
            Cycles(0) => network.request_latency.min(network.reply_latency),
            given => given,
        };
        let translation = kinds.gmmu.map(|gmmu| {
            [
                link("translate", sms, gmmu, hop, None),
                link("answer", gmmu, sms, hop, None),
                // The name of its statistics.
                link("forget", gmmu, slices, hop, None),
            ]
        });
        let drained = link("drained", slices, distributor, dispatch, None);
        // Last, so that machines without clusters have the links that they had.
        let cluster = (network.cluster_latency > Cycles(0)).then(|| {
            let bytes = network.cluster_bytes_per_cycle;
            let bandwidth = (options.mode == Mode::Timing).then(|| rate(bytes));
            link("cluster", sms, sms, network.cluster_latency, bandwidth)
        });
        // Credits travel beside the packets, and wait for none of them.
        let credit = link("credit", slices, sms, network.reply_latency, None);
        Self {
            cluster,
            credit,
            start,
            report,
            control,
            request,
            reply,
            delivery,
            translation,
            drained,
        }
    }
}
