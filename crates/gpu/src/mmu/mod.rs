//! The MMU of the GPU as a partition: the GMMU of `lockstep-uvm`, with the host runtime behind it.
//!
//! Contents never move: they are one file, whatever the residence of a page. Here is decided what
//! an access to a page that is on the host takes.
//!
//! Modelled: translation, faults, migration, invalidation of what is cached of pages that leave, and
//! the lines that DMA writes and reads.
//! Left out: memory that is not managed, which SMs translate themselves (`sm/translation/device.rs`).
//!
//! Start reading at [`Mmu::run`]; the SM's side is `sm/translation`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lockstep_engine::{
    Inbox, LinkId, LoadError, Outbox, PartitionId, Reader, Wake, Window, Writer,
};
use lockstep_units::{Bytes, Cycle, Hertz, Time};
use lockstep_uvm::{Gmmu, Output, Request, Settings};

use crate::memory::{Home, LINE, PAGE};
use crate::message::{DmaLines, ManagedAction, ManagedRequest, Message};
use crate::probe::{Probe, Topic};

/// Where its messages go.
#[derive(Clone, Copy, Debug)]
pub struct MmuWiring {
    /// GMMU to SM.
    pub answer: LinkId,
    /// GMMU to slice.
    pub invalidate: LinkId,
    /// Number of the first SM's partition.
    pub first_sm: u32,
    /// Number of the first slice's partition.
    pub first_slice: u32,
    /// Slices.
    pub slices: u32,
    /// Bytes around the payload of a packet.
    pub header: u64,
    /// Which slice an address belongs to.
    pub home: Home,
}

/// The GMMU and the host runtime behind it, as a partition.
#[derive(Debug)]
pub struct Mmu {
    /// The machine.
    pub gmmu: Gmmu,
    clock: Hertz,
    wiring: MmuWiring,
    /// SMs that ever asked: others have nothing to invalidate.
    asked: Vec<bool>,
    /// Requests of the program that are complete, and when.
    done: BTreeMap<u64, Time>,
    /// Requests of the program that are not.
    under_way: u64,
    /// Whether there ever was managed memory.
    used: bool,
    /// Somebody who watches.
    probe: Option<Box<Probe>>,
}

impl Mmu {
    /// One without managed memory.
    #[must_use]
    pub fn new(settings: Arc<Settings>, wiring: MmuWiring, probe: Option<Box<Probe>>) -> Self {
        Self {
            clock: settings.clock,
            asked: vec![false; settings.sms as usize],
            gmmu: Gmmu::new(settings),
            wiring,
            done: BTreeMap::new(),
            under_way: 0,
            used: false,
            probe,
        }
    }

    /// Adds managed memory.
    pub fn map(&mut self, address: u64, bytes: u64) {
        self.used = true;
        self.gmmu.map_memory(address, bytes);
    }

    /// Whether there ever was managed memory.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.used
    }

    /// Whether nothing that the program asked for is under way, and nobody else waits for pages.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.under_way == 0 && !self.gmmu.owes_pages()
    }

    /// Notes a request that was posted.
    pub fn posted(&mut self) {
        self.under_way += 1;
    }

    /// Whether requests of the program are complete that nobody asked about.
    #[must_use]
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// When a request was complete; tells it once.
    pub fn take_done(&mut self, ticket: u64) -> Option<Time> {
        self.done.remove(&ticket)
    }

    /// Takes over what outlives a fault: where pages are, and what was counted.
    pub fn inherit(&mut self, other: &mut Self, now: Time) {
        std::mem::swap(&mut self.gmmu, &mut other.gmmu);
        for ticket in self.gmmu.abort() {
            self.done.insert(ticket, now);
        }
        self.done.append(&mut other.done);
        self.used = other.used;
    }

    /// Simulates a window.
    pub fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<Message>,
        outbox: &mut Outbox<'_, Message>,
    ) -> Wake {
        while let Some(delivery) = inbox.take_in_window() {
            // Edges and latencies are rounded to femtoseconds; what was sent a cycle apart arrives
            // a cycle apart.
            let due = Time(delivery.due.0.saturating_sub(2));
            let now = self.clock.cycle_at_or_after(due).0;
            // What happens in the same cycle is after what arrives in it.
            self.gmmu.run(now.saturating_sub(1));
            if let Some(probe) = &self.probe {
                probe.note(Topic::Gmmu, delivery.due, || {
                    let sender = outbox.topology().name(delivery.sender);
                    format!("{} from {sender}", delivery.message.words())
                });
            }
            self.take(delivery.message, delivery.sender, now);
        }
        let end = window.cycles(self.clock).end.0;
        self.gmmu.run(end.saturating_sub(1));
        self.send(window, outbox);
        match self.gmmu.next() {
            Some(cycle) => Wake::At(self.clock.edge(Cycle(cycle))),
            None => Wake::OnMessage,
        }
    }

    fn take(&mut self, message: Message, sender: PartitionId, now: u64) {
        let sm = sender.0.wrapping_sub(self.wiring.first_sm);
        match message {
            Message::Translate {
                page,
                write,
                sectors,
                accesses,
                warp,
            } => {
                if let Some(asked) = self.asked.get_mut(sm as usize) {
                    *asked = true;
                }
                let request = Request::Translate {
                    sm,
                    page,
                    write,
                    sectors: u32::from(sectors),
                    accesses: u32::from(accesses),
                    warp: u32::from(warp),
                };
                self.gmmu.take(now, request);
            }
            Message::Again {
                page,
                write,
                entries,
            } => {
                let request = Request::DuplicateFault {
                    sm,
                    page,
                    write,
                    entries: u32::from(entries),
                };
                self.gmmu.take(now, request);
            }
            Message::Used { page, write } => self.gmmu.take(now, Request::Used { page, write }),
            Message::Managed(request) => {
                let ManagedRequest { ticket, action } = *request;
                match action {
                    ManagedAction::Prefetch {
                        address,
                        bytes,
                        to_device,
                    } => self.gmmu.prefetch(now, ticket, address, bytes, to_device),
                    ManagedAction::HostAccess {
                        address,
                        bytes,
                        write,
                    } => self.gmmu.host_access(now, ticket, address, bytes, write),
                    ManagedAction::Flush => self.gmmu.flush(now, ticket),
                    ManagedAction::Order(order) => {
                        self.under_way = self.under_way.saturating_sub(1);
                        self.gmmu.order(now, order);
                    }
                }
            }
            other => panic!("the GMMU was sent {other:?}"),
        }
    }

    fn send(&mut self, window: Window, outbox: &mut Outbox<'_, Message>) {
        if !self.gmmu.has_outputs() {
            return;
        }
        let MmuWiring {
            answer,
            invalidate,
            first_sm,
            first_slice,
            slices,
            header,
            ..
        } = self.wiring;
        let said: Vec<(u64, Output)> = self.gmmu.outputs().collect();
        for (cycle, output) in said {
            let at = self.clock.edge(Cycle(cycle)).max(window.start);
            if let Some(probe) = &self.probe {
                probe.note(Topic::Gmmu, at, || format!("says {output:?}"));
            }
            let (sm, message) = match output {
                Output::Translated {
                    sm,
                    page,
                    size,
                    read_only,
                } => {
                    let translated = Message::Translated {
                        page,
                        size,
                        read_only,
                    };
                    (sm, translated)
                }
                Output::Remote { sm, page } => (sm, Message::Remote { page }),
                Output::Nack { sm, page } => (sm, Message::Nack { page }),
                Output::Replay { sm, page } => (sm, Message::Replay { page }),
                Output::ShootDown(scope) => {
                    self.broadcast(at, &Message::ShootDown(scope), outbox);
                    continue;
                }
                Output::Unmapped { first, count } => {
                    self.broadcast(at, &Message::Invalidate { first, count }, outbox);
                    continue;
                }
                Output::Dropped { first, count } => {
                    let message = Message::Invalidate { first, count };
                    for slice in 0..slices {
                        let to = PartitionId(first_slice + slice);
                        outbox.send(invalidate, to, at, Bytes(header), message.clone());
                    }
                    continue;
                }
                Output::DmaTransferred {
                    first,
                    count,
                    to_device,
                } => {
                    self.send_dma(at, first..first + u64::from(count), to_device, outbox);
                    continue;
                }
                Output::Done { ticket } => {
                    self.under_way = self.under_way.saturating_sub(1);
                    self.done.insert(ticket, at);
                    continue;
                }
            };
            let to = PartitionId(first_sm + sm);
            outbox.send(answer, to, at, Bytes(header), message);
        }
    }

    /// Tells slices which of their lines DMA writes or reads.
    fn send_dma(
        &self,
        at: Time,
        pages: Range<u64>,
        to_device: bool,
        outbox: &mut Outbox<'_, Message>,
    ) {
        let MmuWiring {
            invalidate,
            first_slice,
            header,
            home,
            ..
        } = self.wiring;
        let mut parts: BTreeMap<u32, Vec<(u64, u32)>> = BTreeMap::new();
        for page in pages {
            for line in 0..PAGE / LINE {
                let lines = parts
                    .entry(home.slice(page * PAGE + line * LINE))
                    .or_default();
                match lines.last_mut() {
                    Some((last, mask)) if *last == page => *mask |= 1 << line,
                    _ => lines.push((page, 1 << line)),
                }
            }
        }
        for (slice, lines) in parts {
            let message = Message::Dma(Box::new(DmaLines { to_device, lines }));
            let to = PartitionId(first_slice + slice);
            outbox.send(invalidate, to, at, Bytes(header), message);
        }
    }

    /// Tells every SM that ever asked.
    fn broadcast(&self, at: Time, message: &Message, outbox: &mut Outbox<'_, Message>) {
        let MmuWiring {
            answer,
            first_sm,
            header,
            ..
        } = self.wiring;
        for (sm, _) in self.asked.iter().enumerate().filter(|(_, asked)| **asked) {
            let to = PartitionId(first_sm + sm as u32);
            outbox.send(answer, to, at, Bytes(header), message.clone());
        }
    }

    /// Writes everything.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&(&self.asked, &self.done, self.under_way, self.used));
        writer.write(&self.gmmu.saved());
    }

    /// Takes on what was saved.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let (asked, done, under_way, used): (Vec<bool>, _, _, _) = reader.read()?;
        if asked.len() != self.asked.len() {
            return Err(LoadError::Malformed {
                what: "another number of SMs",
            });
        }
        (self.asked, self.done, self.under_way, self.used) = (asked, done, under_way, used);
        self.gmmu.load(|| reader.read())
    }
}
