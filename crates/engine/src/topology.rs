//! Which partitions a machine has, which links join them, and the epoch that follows.

use std::ops::Range;

use lockstep_units::{Bandwidth, Cycles, Duration, Hertz, Time};

use crate::{PartitionId, TopologyError, Window};

/// The shortest epoch that is accepted without being forced, in cycles of the core clock: below
/// it, workers meet more often than they work.
pub const MINIMUM_EPOCH: Cycles = Cycles(16);

/// The epoch of a machine without links, in cycles of the core clock: nothing limits it, and
/// stopping conditions should still be looked at.
const UNLINKED_EPOCH: Cycles = Cycles(1024);

/// A kind of partitions, by order of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindId(u16);

/// A kind of links, by order of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(u16);

impl LinkId {
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Partitions that are alike: the SMs of a GPU, its slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKind {
    /// What one of them is called.
    pub name: String,
    /// Their numbers.
    pub ids: Range<u32>,
}

/// Links that are alike: from every partition of one kind to every one of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkKind {
    /// What travels there: "request".
    pub name: String,
    /// Kind of the senders.
    pub from: KindId,
    /// Kind of the receivers.
    pub to: KindId,
    /// From leaving the sender to being due at the receiver, fixed pipeline stages included.
    pub latency: Duration,
    /// How fast messages leave one sender; without, any number leave at once.
    pub bandwidth: Option<Bandwidth>,
}

/// What sending needs of a link, in one place.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub from: Range<u32>,
    pub to: Range<u32>,
    pub latency: Duration,
    pub bandwidth: Option<Bandwidth>,
}

/// A machine as the engine sees it: how many partitions of which kinds, joined by which links.
#[derive(Clone, Debug)]
pub struct Topology {
    clock: Hertz,
    epoch: Duration,
    kinds: Vec<PartitionKind>,
    links: Vec<LinkKind>,
    wires: Vec<Wire>,
}

/// A machine being described.
#[derive(Clone, Debug)]
pub struct TopologyBuilder {
    clock: Hertz,
    forced: bool,
    kinds: Vec<PartitionKind>,
    links: Vec<LinkKind>,
}

impl TopologyBuilder {
    /// Declares `count` partitions of one kind. Their numbers follow those declared before.
    pub fn partitions(&mut self, name: impl Into<String>, count: u32) -> KindId {
        let first = self.kinds.last().map_or(0, |kind| kind.ids.end);
        self.kinds.push(PartitionKind {
            name: name.into(),
            ids: first..first.saturating_add(count),
        });
        KindId((self.kinds.len() - 1) as u16)
    }

    /// Declares a kind of links.
    pub fn link(&mut self, link: LinkKind) -> LinkId {
        self.links.push(link);
        LinkId((self.links.len() - 1) as u16)
    }

    /// Accepts an epoch under [`MINIMUM_EPOCH`], for studies that can wait.
    pub fn force_short_epoch(&mut self) {
        self.forced = true;
    }

    /// Checks the description and computes the epoch.
    ///
    /// # Errors
    /// If a link leaves no time to look ahead, or less than [`MINIMUM_EPOCH`] unless forced; if
    /// the machine has no partitions or too many; if two kinds share a name.
    pub fn build(self) -> Result<Topology, TopologyError> {
        let Self {
            clock,
            forced,
            kinds,
            links,
        } = self;
        let partitions = kinds.last().map_or(0, |kind| kind.ids.end);
        if partitions == 0 {
            return Err(TopologyError::Empty);
        }
        const MOST: usize = u16::MAX as usize;
        if partitions == u32::MAX || kinds.len() > MOST || links.len() > MOST {
            return Err(TopologyError::TooLarge {
                partitions,
                kinds: kinds.len(),
                links: links.len(),
            });
        }
        for (index, kind) in kinds.iter().enumerate() {
            if kinds[..index].iter().any(|other| other.name == kind.name) {
                return Err(TopologyError::NameTaken {
                    name: kind.name.clone(),
                });
            }
        }
        for (index, link) in links.iter().enumerate() {
            if links[..index].iter().any(|other| other.name == link.name) {
                return Err(TopologyError::NameTaken {
                    name: link.name.clone(),
                });
            }
        }
        let minimum = clock.duration(MINIMUM_EPOCH);
        let shortest = links.iter().min_by_key(|link| link.latency);
        let epoch = match shortest {
            None => clock.duration(UNLINKED_EPOCH),
            Some(link) if link.latency == Duration::ZERO => {
                return Err(TopologyError::NoLatency {
                    link: link.name.clone(),
                });
            }
            Some(link) if link.latency < minimum && !forced => {
                return Err(TopologyError::EpochTooShort {
                    link: link.name.clone(),
                    latency: link.latency,
                    minimum,
                    cycles: MINIMUM_EPOCH,
                });
            }
            Some(link) => link.latency,
        };
        let ids = |kind: KindId| kinds[kind.0 as usize].ids.clone();
        let wires = links
            .iter()
            .map(|link| Wire {
                from: ids(link.from),
                to: ids(link.to),
                latency: link.latency,
                bandwidth: link.bandwidth,
            })
            .collect();
        Ok(Topology {
            clock,
            epoch,
            kinds,
            links,
            wires,
        })
    }
}

impl Topology {
    /// Starts a description; `clock` is the core clock, in which the epoch is judged.
    pub fn builder(clock: Hertz) -> TopologyBuilder {
        TopologyBuilder {
            clock,
            forced: false,
            kinds: Vec::new(),
            links: Vec::new(),
        }
    }

    /// The core clock.
    pub fn clock(&self) -> Hertz {
        self.clock
    }

    /// The length of an epoch: the smallest latency of all links.
    pub fn epoch(&self) -> Duration {
        self.epoch
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> usize {
        self.kinds.last().map_or(0, |kind| kind.ids.end as usize)
    }

    /// All kinds of partitions, by number.
    pub fn kinds(&self) -> &[PartitionKind] {
        &self.kinds
    }

    /// All kinds of links, by number.
    pub fn links(&self) -> &[LinkKind] {
        &self.links
    }

    /// A kind of partitions.
    pub fn kind(&self, kind: KindId) -> &PartitionKind {
        &self.kinds[kind.0 as usize]
    }

    /// The kind of links with a name.
    pub fn link_named(&self, name: &str) -> Option<LinkId> {
        self.links
            .iter()
            .position(|link| link.name == name)
            .map(|index| LinkId(index as u16))
    }

    /// The `index`-th partition of a kind.
    ///
    /// # Panics
    /// If the kind has fewer.
    #[inline]
    pub fn id(&self, kind: KindId, index: u32) -> PartitionId {
        let ids = &self.kinds[kind.0 as usize].ids;
        assert!(
            index < ids.end - ids.start,
            "a kind has no partition after its last"
        );
        PartitionId(ids.start + index)
    }

    /// What a partition is called: its kind and its place there, as in "sm 17".
    pub fn name(&self, id: PartitionId) -> String {
        match self.kinds.iter().find(|kind| kind.ids.contains(&id.0)) {
            Some(kind) => format!("{} {}", kind.name, id.0 - kind.ids.start),
            None => format!("partition {id}"),
        }
    }

    /// The number of the epoch that an instant is in.
    pub(crate) fn epoch_of(&self, time: Time) -> u64 {
        time.0 / self.epoch.0
    }

    /// The window of an epoch.
    pub(crate) fn window(&self, epoch: u64) -> Window {
        let edge = |epoch: u64| Time(epoch.saturating_mul(self.epoch.0));
        Window {
            start: edge(epoch),
            end: edge(epoch + 1),
        }
    }

    #[inline]
    pub(crate) fn wire(&self, link: LinkId) -> &Wire {
        &self.wires[link.index()]
    }

    /// The sentence for a message that no link carries.
    #[cold]
    pub(crate) fn no_such_link(&self, link: LinkId, from: PartitionId, to: PartitionId) -> String {
        let kind = &self.links[link.index()];
        format!(
            "link `{}` leads from {} to {}, not from {} to {}",
            kind.name,
            self.kind(kind.from).name,
            self.kind(kind.to).name,
            self.name(from),
            self.name(to)
        )
    }
}
