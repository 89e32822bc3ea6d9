//! What happens when: streams, copy engines and kernels in simulated time.
//!
//! Work is put into streams with the time at which the host issued it. It starts when its
//! predecessor in the stream, and whatever else it waits for, is complete; kernels then run on
//! the hardware, transfers take an engine for a computed time, and the rest takes no time. The
//! order of events depends on simulated time alone, never on when the host asks: the device may
//! lag behind the host and catch up when somebody waits.
//!
//! Start reading at [`Timeline::advance`].

mod bus;
mod peers;
mod start;
mod work;

pub use bus::BusTime;
pub use work::{Effect, KernelWork, Moves, Takes, Work};

use crate::device::{Advance, Carry, Device, Fault, KernelResult, Part};
use crate::host::HostMachine;
use bus::Bus;
use lockstep_node::Topology;
use lockstep_protocol::ProgramStep;
use lockstep_units::{Duration, Time};
use peers::{Owner, PeerTransfers};
use std::collections::{BTreeMap, VecDeque};

/// A stream, by a number of its own.
pub type StreamKey = u64;
/// A point in a stream: how many pieces of work were put into it before.
pub type Position = u64;

/// How often a wait for a value looks at memory while kernels run.
const LOOK_INTERVAL: Duration = Duration::microseconds(1);

#[derive(Debug)]
struct Item {
    work: Work,
    /// When the host issued it.
    issued: Time,
    /// Points of other streams to wait for.
    after: Vec<(StreamKey, Position)>,
}

#[derive(Debug, Default)]
struct Stream {
    /// The GPU that its work runs on.
    gpu: u32,
    queue: VecDeque<Item>,
    /// Pieces of work ever put in.
    pushed: Position,
    /// Pieces of work complete.
    completed: Position,
    /// When the last one was complete.
    finished: Time,
    /// The head is running.
    busy: bool,
    /// Kernels behind it that were handed over before it has ended, in order; those that have ended, with when.
    early: VecDeque<(u64, Option<Time>)>,
}

impl Stream {
    /// Its head is complete.
    fn end_head(&mut self, at: Time) -> Option<Work> {
        self.busy = false;
        self.completed += 1;
        self.finished = at;
        self.queue.pop_front().map(|item| item.work)
    }
}

/// All streams of all contexts on all GPUs.
#[derive(Debug)]
pub struct Timeline {
    streams: BTreeMap<StreamKey, Stream>,
    /// Running kernels: launch to stream.
    kernels: BTreeMap<u64, StreamKey>,
    /// Running transfers: end, then the order in which they began; the stream and the engine. Engines
    /// of the second GPU are numbered behind those of the first, and so on.
    transfers: BTreeMap<(Time, u64), (StreamKey, u32)>,
    transfers_begun: u64,
    /// What copies between host and device share, by GPU.
    buses: BTreeMap<u32, Bus>,
    /// Transfers between GPUs whose bytes are on the links.
    peers: Option<PeerTransfers>,
    engines: u32,
    /// What an event takes.
    event: Duration,
    /// Events that are being recorded: when they are, then the order in which they began.
    events: BTreeMap<(Time, u64), StreamKey>,
    events_begun: u64,
    host: Option<HostMachine>,
    /// Times of recordings that were reached.
    recordings: BTreeMap<u64, Time>,
    clock: Time,
    /// Kernels that ended, not yet taken.
    results: Vec<KernelResult>,
    /// Allocations to release, not yet taken.
    released: Vec<u64>,
    /// What the model of paging is at, by ticket, and the stream that waits for it, if one does.
    tickets: BTreeMap<u64, Option<StreamKey>>,
    /// Tickets that nobody's stream waited for, and when they were complete.
    redeemed: BTreeMap<u64, Time>,
    /// Steps that the program is to perform now, and the streams that wait for them.
    steps: BTreeMap<(u64, u32), StreamKey>,
}

/// How far to advance.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// To this time.
    Until(Time),
    /// Until this point of the stream is reached.
    Position(StreamKey, Position),
    /// Until the model of paging has done what this ticket is for.
    Ticket(u64),
    /// Until the program has something to do for this launch of a graph, or this point of the
    /// stream is reached.
    Step(u64, StreamKey, Position),
}

/// What a host thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// All of these points of streams.
    Points(Vec<(StreamKey, Position)>),
    /// A time.
    Until(Time),
}

/// Why an advance ended before its goal.
#[derive(Clone, Debug, PartialEq)]
pub enum Interruption {
    /// A kernel did something that it must not.
    Fault(Fault),
    /// Somebody asked the run to stop.
    Stopped,
    /// Nothing is left to happen and the goal is not met.
    Stuck,
    /// A call has come meanwhile.
    Called,
}

impl Timeline {
    /// An empty timeline with so many copy engines a GPU, what an event takes, and a host that is a
    /// machine or not.
    pub fn new(engines: u32, event: Duration, host: Option<HostMachine>) -> Self {
        Self {
            streams: BTreeMap::new(),
            kernels: BTreeMap::new(),
            transfers: BTreeMap::new(),
            transfers_begun: 0,
            buses: BTreeMap::new(),
            peers: None,
            engines,
            event,
            events: BTreeMap::new(),
            events_begun: 0,
            host,
            recordings: BTreeMap::new(),
            clock: Time::ZERO,
            results: Vec::new(),
            released: Vec::new(),
            tickets: BTreeMap::new(),
            redeemed: BTreeMap::new(),
            steps: BTreeMap::new(),
        }
    }

    /// Lets transfers between GPUs take the links of a node.
    pub fn set_links(&mut self, topology: Topology) {
        self.peers = Some(PeerTransfers::new(topology));
    }

    /// The links that transfers between GPUs take, if they do.
    pub fn links(&self) -> Option<&Topology> {
        self.peers.as_ref().map(PeerTransfers::topology)
    }

    /// Whether transfers between GPUs take links.
    pub fn has_links(&self) -> bool {
        self.peers.is_some()
    }

    /// What a command takes from the host to the device, or back.
    pub fn command(&self) -> Duration {
        self.host
            .as_ref()
            .map_or(Duration::ZERO, HostMachine::command)
    }

    /// Adds a stream of a GPU.
    pub fn create(&mut self, stream: StreamKey, gpu: u32) {
        self.streams.entry(stream).or_default().gpu = gpu;
    }

    /// Removes a stream; its points count as reached. Call it when the stream is empty.
    pub fn remove(&mut self, stream: StreamKey) {
        self.streams.remove(&stream);
    }

    /// Puts work at the end of a stream, to start not before `issued` and not before the points
    /// `after`; answers the point that it completes.
    pub fn push(
        &mut self,
        stream: StreamKey,
        work: Work,
        issued: Time,
        after: Vec<(StreamKey, Position)>,
    ) -> Position {
        let stream = self.streams.entry(stream).or_default();
        stream.queue.push_back(Item {
            work,
            issued,
            after,
        });
        stream.pushed += 1;
        stream.pushed
    }

    /// The point that everything put into the stream so far completes.
    pub fn end(&self, stream: StreamKey) -> Position {
        self.streams.get(&stream).map_or(0, |stream| stream.pushed)
    }

    /// Whether a point of a stream is reached.
    pub fn reached(&self, stream: StreamKey, position: Position) -> bool {
        self.streams
            .get(&stream)
            .is_none_or(|stream| stream.completed >= position)
    }

    /// Whether some stream has work that is not complete.
    pub fn has_work(&self) -> bool {
        self.streams
            .values()
            .any(|stream| stream.completed < stream.pushed)
    }

    /// When the last work of a stream was complete.
    pub fn finished(&self, stream: StreamKey) -> Time {
        self.streams
            .get(&stream)
            .map_or(Time::ZERO, |stream| stream.finished)
    }

    /// The time of a recording, once it is reached.
    pub fn recorded(&self, recording: u64) -> Option<Time> {
        self.recordings.get(&recording).copied()
    }

    /// Forgets a recording.
    pub fn forget(&mut self, recording: u64) {
        self.recordings.remove(&recording);
    }

    /// Kernels that ended since the last call, in the order of their ends.
    pub fn take_results(&mut self) -> Vec<KernelResult> {
        std::mem::take(&mut self.results)
    }

    /// Allocations that streams released since the last call.
    pub fn take_released(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.released)
    }

    /// How far time has come.
    pub fn now(&self) -> Time {
        self.clock
    }

    /// Forgets all work of the given streams, after a fault: their points count as reached.
    pub fn abandon(&mut self, streams: &[StreamKey]) {
        for key in streams {
            if let Some(stream) = self.streams.get_mut(key) {
                stream.queue.clear();
                stream.completed = stream.pushed;
                stream.busy = false;
                stream.early.clear();
            }
        }
        self.kernels.retain(|_, stream| !streams.contains(stream));
        self.transfers
            .retain(|_, (stream, _)| !streams.contains(stream));
        if let Some(peers) = &mut self.peers {
            peers.abandon(streams);
        }
        self.steps.retain(|_, stream| !streams.contains(stream));
        self.tickets
            .retain(|_, stream| stream.is_none_or(|stream| !streams.contains(&stream)));
    }

    /// Watches for a ticket that no stream waits for.
    pub fn track(&mut self, ticket: u64) {
        self.tickets.insert(ticket, None);
    }

    /// When what such a ticket is for was complete, once it is.
    pub fn take_ticket(&mut self, ticket: u64) -> Option<Time> {
        self.redeemed.remove(&ticket)
    }

    /// All streams of a GPU.
    pub fn streams_of(&self, gpu: u32) -> Vec<StreamKey> {
        let own = self.streams.iter().filter(|(_, stream)| stream.gpu == gpu);
        own.map(|(key, _)| *key).collect()
    }

    /// The first step of a launch that the program is to perform now.
    pub fn due_step(&self, launch: u64) -> Option<ProgramStep> {
        let (&(launch, node), _) = self.steps.range((launch, 0)..=(launch, u32::MAX)).next()?;
        Some(ProgramStep { launch, node })
    }

    /// The program has performed a step that was due; false if none such was.
    pub fn performed(&mut self, step: ProgramStep, at: Time) -> bool {
        let Some(key) = self.steps.remove(&(step.launch, step.node)) else {
            return false;
        };
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.end_head(stream.finished.max(at));
        }
        true
    }

    /// Lets simulated time pass until the goal is met.
    ///
    /// # Errors
    /// Why it ended early; time stands where that was.
    pub fn advance(&mut self, device: &mut dyn Device, goal: Goal) -> Result<(), Interruption> {
        let limit = match goal {
            Goal::Until(time) => time,
            _ => Time::NEVER,
        };
        self.advance_while(device, limit, |timeline| match goal {
            Goal::Until(time) => timeline.clock >= time,
            Goal::Position(stream, position) => timeline.reached(stream, position),
            Goal::Ticket(ticket) => !timeline.tickets.contains_key(&ticket),
            Goal::Step(launch, stream, position) => {
                timeline.due_step(launch).is_some() || timeline.reached(stream, position)
            }
        })
    }

    /// Lets simulated time pass until one of several waits is over; time stands where that was.
    ///
    /// # Errors
    /// Why it ended early.
    pub fn advance_to_first(
        &mut self,
        device: &mut dyn Device,
        waits: &[Wait],
    ) -> Result<(), Interruption> {
        let times = waits.iter().filter_map(|wait| match wait {
            Wait::Until(time) => Some(*time),
            Wait::Points(_) => None,
        });
        let limit = times.min().unwrap_or(Time::NEVER);
        self.advance_while(device, limit, |timeline| {
            waits.iter().any(|wait| timeline.is_over(wait))
        })
    }

    /// Whether a wait is over.
    pub fn is_over(&self, wait: &Wait) -> bool {
        match wait {
            Wait::Until(time) => self.clock >= *time,
            Wait::Points(points) => points
                .iter()
                .all(|(stream, position)| self.reached(*stream, *position)),
        }
    }

    /// Lets simulated time pass until something is `met`, and stops at `limit` to look.
    fn advance_while(
        &mut self,
        device: &mut dyn Device,
        limit: Time,
        met: impl Fn(&Self) -> bool,
    ) -> Result<(), Interruption> {
        loop {
            self.settle(device).map_err(Interruption::Fault)?;
            if met(self) {
                return Ok(());
            }
            let next = self.next_event().min(limit);
            let idle = self.kernels.is_empty() && self.tickets.is_empty();
            if next == Time::NEVER && idle {
                return Err(Interruption::Stuck);
            }
            match device.advance(next) {
                Advance::Reached(results) => {
                    self.clock = self.clock.max(device.now());
                    if idle {
                        self.clock = self.clock.max(next);
                    }
                    for result in results {
                        self.kernel_ended(result);
                    }
                }
                Advance::Faulted(fault) => return Err(Interruption::Fault(fault)),
                Advance::Stopped => return Err(Interruption::Stopped),
                Advance::Called => {
                    self.clock = self.clock.max(device.now());
                    return Err(Interruption::Called);
                }
            }
        }
    }

    /// When something will happen by itself: the end of a transfer or a recording, or a head whose
    /// time comes.
    fn next_event(&self) -> Time {
        let transfer = self
            .transfers
            .keys()
            .next()
            .map_or(Time::NEVER, |(end, _)| *end);
        let recorded = self
            .events
            .keys()
            .next()
            .map_or(Time::NEVER, |(end, _)| *end);
        let issued = self
            .streams
            .values()
            .filter(|stream| !stream.busy)
            .filter_map(|stream| stream.queue.front())
            .filter(|item| item.issued > self.clock)
            .map(|item| item.issued)
            .min()
            .unwrap_or(Time::NEVER);
        let looks = !self.kernels.is_empty()
            && self
                .streams
                .values()
                .any(|stream| matches!(stream.queue.front(), Some(item) if item.work.looks()));
        let look = if looks {
            self.clock + LOOK_INTERVAL
        } else {
            Time::NEVER
        };
        let sent = self.peers.as_ref().and_then(PeerTransfers::next_end);
        let sent = sent.unwrap_or(Time::NEVER);
        transfer.min(recorded).min(issued).min(look).min(sent)
    }

    /// Ends what has ended and starts what can start, until nothing more happens at this time.
    fn settle(&mut self, device: &mut dyn Device) -> Result<(), Fault> {
        loop {
            let mut changed = self.end_sending(device);
            changed |= self.carry_pages(device);
            changed |= self.end_transfers(device);
            changed |= self.end_recordings();
            changed |= self.redeem_tickets(device);
            let keys: Vec<StreamKey> = self.streams.keys().copied().collect();
            for key in keys {
                while self.start_head(key, device)? {
                    changed = true;
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }

    fn end_transfers(&mut self, device: &mut dyn Device) -> bool {
        let mut changed = false;
        while let Some(((end, order), (key, engine))) = self
            .transfers
            .first_key_value()
            .map(|(at, key)| (*at, *key))
        {
            if end > self.clock {
                break;
            }
            self.transfers.remove(&(end, order));
            device.note(Part::Copy(engine), end, &|| {
                format!("transfer {order} ends")
            });
            changed = true;
            let Some(stream) = self.streams.get_mut(&key) else {
                continue;
            };
            if let Some(Work::Transfer { effect, .. }) = stream.end_head(end) {
                self.apply(effect, device);
            }
        }
        changed
    }

    /// Transfers whose last byte has left the links end when it has arrived.
    fn end_sending(&mut self, device: &mut dyn Device) -> bool {
        let Some(peers) = &mut self.peers else {
            return false;
        };
        let sent = peers.sent(self.clock);
        let changed = !sent.is_empty();
        for (end, order, owner) in sent {
            match owner {
                Owner::Stream(stream, engine) => {
                    self.transfers.insert((end, order), (stream, engine));
                }
                Owner::Pages(number) => device.managed_carried(number, end),
            }
        }
        changed
    }

    /// Puts managed pages that begin to go from one GPU to another on the links.
    fn carry_pages(&mut self, device: &mut dyn Device) -> bool {
        let carries = device.managed_to_carry();
        for carry in &carries {
            let Carry {
                number,
                from,
                to,
                bytes,
            } = *carry;
            let Some(peers) = &mut self.peers else {
                device.managed_carried(number, self.clock);
                continue;
            };
            let takes = Takes::Links {
                from,
                to,
                bytes,
                latency: Duration::ZERO,
            };
            let order = self.transfers_begun;
            self.transfers_begun += 1;
            peers.begin(order, self.clock, takes, Owner::Pages(number));
        }
        !carries.is_empty()
    }

    /// Ends recordings whose time has come.
    fn end_recordings(&mut self) -> bool {
        let mut changed = false;
        while let Some((&(end, order), &key)) = self.events.first_key_value() {
            if end > self.clock {
                break;
            }
            self.events.remove(&(end, order));
            changed = true;
            let Some(stream) = self.streams.get_mut(&key) else {
                continue;
            };
            if let Some(Work::Record { recording }) = stream.end_head(end) {
                self.recordings.insert(recording, end);
            }
        }
        changed
    }

    /// Ends what the model of paging has done.
    fn redeem_tickets(&mut self, device: &mut dyn Device) -> bool {
        let tickets: Vec<u64> = self.tickets.keys().copied().collect();
        let mut changed = false;
        for ticket in tickets {
            let Some(done) = device.managed_done(ticket) else {
                continue;
            };
            changed = true;
            match self.tickets.remove(&ticket).flatten() {
                Some(key) => {
                    if let Some(stream) = self.streams.get_mut(&key) {
                        stream.end_head(stream.finished.max(done));
                    }
                }
                None => {
                    self.redeemed.insert(ticket, done);
                }
            }
        }
        changed
    }
}
