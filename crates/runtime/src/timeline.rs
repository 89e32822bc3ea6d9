//! What happens when: streams, copy engines and kernels in simulated time.
//!
//! Work is put into streams with the time at which the host issued it. It starts when its
//! predecessor in the stream, and whatever else it waits for, is complete; kernels then run on
//! the hardware, transfers take an engine for a computed time, and the rest takes no time. The
//! order of events depends on simulated time alone, never on when the host asks: the device may
//! lag behind the host and catch up when somebody waits.
//!
//! Start reading at [`Timeline::advance`].

use crate::device::{Advance, Device, Fault, KernelLaunch, KernelResult, Part};
use crate::host::{Direction, HostMachine};
use lockstep_protocol::{Extent, ProgramStep, Rows, ValueAction, ValueWork};
use lockstep_units::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};

/// A stream, by a number of its own.
pub type StreamKey = u64;
/// A point in a stream: how many pieces of work were put into it before.
pub type Position = u64;

/// Something that a stream does.
#[derive(Debug)]
pub enum Work {
    /// Run a kernel; prepared when its turn comes, because it may depend on memory.
    Kernel(Box<KernelWork>),
    /// Occupy a copy engine, then change memory.
    Transfer {
        /// From taking the engine to giving it back.
        takes: Takes,
        /// What changes when it is complete.
        effect: Effect,
    },
    /// Note the time.
    Record {
        /// Number of the recording.
        recording: u64,
    },
    /// Wait until a point of another stream is reached.
    Wait {
        /// The other stream.
        stream: StreamKey,
        /// The point.
        position: Position,
    },
    /// Change memory without taking time.
    Instant(Effect),
    /// Wait for a value in memory, or write one.
    Value(ValueWork),
    /// Wait until the program has performed a step.
    Program(ProgramStep),
    /// Move managed pages ahead of their use; the model of paging says when that is complete.
    Prefetch {
        /// Its number there.
        ticket: u64,
        /// First byte.
        address: u64,
        /// How much.
        bytes: u64,
        /// To the device, or back to the host.
        to_device: bool,
    },
    /// Remove streams whose work is complete: those of a graph, at its end.
    Join(Vec<StreamKey>),
}

/// How long a transfer takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Takes {
    /// So long.
    Fixed(Duration),
    /// As long as the host as a machine takes for so many bytes.
    Host(u64, Direction),
}

/// How often a wait for a value looks at memory while kernels run.
const LOOK_INTERVAL: Duration = Duration::microseconds(1);

/// A kernel, and the variables that its constant banks are refreshed from.
#[derive(Debug)]
pub struct KernelWork {
    /// The launch; its time and constants are filled in when it starts.
    pub launch: KernelLaunch,
    /// Constant variables: bank, offset, address, bytes.
    pub constants: Vec<(u8, u32, u64, u64)>,
}

/// A change of memory by the simulator.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// None: the program moves the bytes itself.
    None,
    /// Rows to copy.
    Copy {
        /// Where to.
        destination: Rows,
        /// Where from.
        source: Rows,
        /// How much.
        extent: Extent,
    },
    /// Rows to fill with a pattern.
    Fill {
        /// Where to.
        destination: Rows,
        /// How much.
        extent: Extent,
        /// The pattern, of 1, 2 or 4 bytes.
        pattern: Vec<u8>,
    },
    /// An allocation to release.
    Free {
        /// Its address.
        address: u64,
    },
}

impl Effect {
    /// In words, for people who watch.
    fn words(&self) -> String {
        match self {
            Self::None => "bytes of the program".into(),
            Self::Copy {
                destination,
                source,
                extent,
            } => {
                let bytes = extent.bytes().unwrap_or(u64::MAX);
                let (to, from) = (destination.address, source.address);
                format!("{bytes} bytes from {from:#x} to {to:#x}")
            }
            Self::Fill {
                destination,
                extent,
                ..
            } => {
                let bytes = extent.bytes().unwrap_or(u64::MAX);
                format!("{bytes} bytes filled at {:#x}", destination.address)
            }
            Self::Free { address } => format!("{address:#x} is freed"),
        }
    }
}

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
    queue: VecDeque<Item>,
    /// Pieces of work ever put in.
    pushed: Position,
    /// Pieces of work complete.
    completed: Position,
    /// When the last one was complete.
    finished: Time,
    /// The head is running.
    busy: bool,
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

/// All streams of all contexts on one device.
#[derive(Debug)]
pub struct Timeline {
    streams: BTreeMap<StreamKey, Stream>,
    /// Running kernels: launch to stream.
    kernels: BTreeMap<u64, StreamKey>,
    /// Running transfers: end, then the order in which they began; the stream and the engine.
    transfers: BTreeMap<(Time, u64), (StreamKey, u32)>,
    transfers_begun: u64,
    engines: usize,
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

/// Why an advance ended before its goal.
#[derive(Clone, Debug, PartialEq)]
pub enum Interruption {
    /// A kernel did something that it must not.
    Fault(Fault),
    /// Somebody asked the run to stop.
    Stopped,
    /// Nothing is left to happen and the goal is not met.
    Stuck,
}

impl Timeline {
    /// An empty timeline with so many copy engines, what an event takes, and a host that is a
    /// machine or not.
    pub fn new(engines: u32, event: Duration, host: Option<HostMachine>) -> Self {
        Self {
            streams: BTreeMap::new(),
            kernels: BTreeMap::new(),
            transfers: BTreeMap::new(),
            transfers_begun: 0,
            engines: engines as usize,
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

    /// What a command takes from the host to the device, or back.
    pub fn command(&self) -> Duration {
        self.host
            .as_ref()
            .map_or(Duration::ZERO, HostMachine::command)
    }

    /// Adds a stream.
    pub fn create(&mut self, stream: StreamKey) {
        self.streams.entry(stream).or_default();
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
            }
        }
        self.kernels.retain(|_, stream| !streams.contains(stream));
        self.transfers
            .retain(|_, (stream, _)| !streams.contains(stream));
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

    /// All streams.
    pub fn streams(&self) -> Vec<StreamKey> {
        self.streams.keys().copied().collect()
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
        loop {
            self.settle(device).map_err(Interruption::Fault)?;
            let met = match goal {
                Goal::Until(time) => self.clock >= time,
                Goal::Position(stream, position) => self.reached(stream, position),
                Goal::Ticket(ticket) => !self.tickets.contains_key(&ticket),
                Goal::Step(launch, stream, position) => {
                    self.due_step(launch).is_some() || self.reached(stream, position)
                }
            };
            if met {
                return Ok(());
            }
            let mut next = self.next_event();
            if let Goal::Until(time) = goal {
                next = next.min(time);
            }
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
        transfer.min(recorded).min(issued).min(look)
    }

    /// Ends what has ended and starts what can start, until nothing more happens at this time.
    fn settle(&mut self, device: &mut dyn Device) -> Result<(), Fault> {
        loop {
            let mut changed = self.end_transfers(device);
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

    /// Starts the head of a stream if its time has come; true if anything changed.
    fn start_head(&mut self, key: StreamKey, device: &mut dyn Device) -> Result<bool, Fault> {
        let Some(stream) = self.streams.get(&key) else {
            return Ok(false);
        };
        let Some(head) = stream.queue.front() else {
            return Ok(false);
        };
        let ready = !stream.busy
            && head.issued <= self.clock
            && head
                .after
                .iter()
                .all(|(other, position)| self.reached(*other, *position))
            && match &head.work {
                Work::Wait { stream, position } => self.reached(*stream, *position),
                Work::Transfer { .. } => self.transfers.len() < self.engines,
                Work::Value(value) => holds(value, device),
                _ => true,
            };
        if !ready {
            return Ok(false);
        }
        let others = head
            .after
            .iter()
            .map(|(other, _)| self.finished(*other))
            .max()
            .unwrap_or(Time::ZERO);
        let waited = match &head.work {
            Work::Wait { stream, .. } => self.finished(*stream),
            // It was seen now, whenever it came about.
            Work::Value(_) => self.clock,
            _ => Time::ZERO,
        };
        let (clock, begun) = (self.clock, self.transfers_begun);
        let stream = self.streams.get_mut(&key).expect("looked up above");
        let head = stream.queue.front_mut().expect("looked up above");
        // The exact time, which may lie a little before the boundary that the clock stands at.
        let start = head.issued.max(stream.finished).max(others).max(waited);
        match &mut head.work {
            Work::Kernel(work) => {
                stream.busy = true;
                let mut launch = work.launch.clone();
                launch.at = clock;
                for (bank, offset, address, bytes) in &work.constants {
                    let mut contents = vec![0; *bytes as usize];
                    device.read(*address, &mut contents);
                    launch.constants.push((*bank, *offset, contents));
                }
                self.kernels.insert(launch.id, key);
                device.launch(launch)?;
            }
            Work::Transfer { takes, effect } => {
                stream.busy = true;
                let end = match (*takes, &mut self.host) {
                    (Takes::Fixed(takes), _) => clock + takes,
                    (Takes::Host(bytes, direction), Some(host)) => {
                        let end = host.transfer(clock, bytes, direction);
                        device.note(Part::Host, clock, &|| {
                            let way = direction.words();
                            format!("{bytes} bytes leave {way}, the last arrives at {end}")
                        });
                        end
                    }
                    (Takes::Host(..), None) => clock,
                };
                let used = |engine: &u32| self.transfers.values().any(|(_, used)| used == engine);
                let engine = (0..).find(|engine| !used(engine)).unwrap_or(0);
                device.note(Part::Copy(engine), clock, &|| {
                    format!("transfer {begun} begins until {end}: {}", effect.words())
                });
                self.transfers.insert((end, begun), (key, engine));
                self.transfers_begun += 1;
            }
            Work::Prefetch {
                ticket,
                address,
                bytes,
                to_device,
            } => {
                stream.busy = true;
                stream.finished = start;
                self.tickets.insert(*ticket, Some(key));
                device.managed_prefetch(*ticket, *address, *bytes, *to_device, clock);
            }
            Work::Program(step) => {
                stream.busy = true;
                self.steps.insert((step.launch, step.node), key);
            }
            Work::Record { .. } if self.event > Duration::ZERO => {
                stream.busy = true;
                self.events
                    .insert((start + self.event, self.events_begun), key);
                self.events_begun += 1;
            }
            Work::Record { .. }
            | Work::Wait { .. }
            | Work::Instant(_)
            | Work::Value(_)
            | Work::Join(_) => match stream.end_head(start) {
                Some(Work::Record { recording }) => {
                    self.recordings.insert(recording, start);
                }
                Some(Work::Instant(effect)) => self.apply(effect, device),
                Some(Work::Value(value)) if value.action == ValueAction::Write => {
                    let bytes = value.value.to_le_bytes();
                    device.write(value.address, &bytes[..usize::from(value.bytes)]);
                }
                Some(Work::Join(streams)) => {
                    for stream in streams {
                        self.remove(stream);
                    }
                }
                _ => {}
            },
        }
        Ok(true)
    }

    fn kernel_ended(&mut self, result: KernelResult) {
        if let Some(key) = self.kernels.remove(&result.id)
            && let Some(stream) = self.streams.get_mut(&key)
        {
            stream.end_head(result.end);
        }
        self.results.push(result);
    }

    fn apply(&mut self, effect: Effect, device: &mut dyn Device) {
        match effect {
            Effect::None => {}
            Effect::Copy {
                destination,
                source,
                extent,
            } => {
                for (to, from) in
                    row_addresses(destination, extent).zip(row_addresses(source, extent))
                {
                    device.copy(to, from, extent.width);
                }
                device.dma_written(destination, extent);
            }
            Effect::Fill {
                destination,
                extent,
                pattern,
            } => {
                let block = pattern.repeat((64 << 10) / pattern.len().max(1));
                for mut address in row_addresses(destination, extent) {
                    let mut bytes = extent.width;
                    while bytes > 0 {
                        let length = bytes.min(block.len() as u64);
                        device.write(address, &block[..length as usize]);
                        address += length;
                        bytes -= length;
                    }
                }
                device.dma_written(destination, extent);
            }
            Effect::Free { address } => self.released.push(address),
        }
    }
}

impl Work {
    /// Whether it looks at memory to see if it may go on.
    fn looks(&self) -> bool {
        matches!(self, Self::Value(value) if value.action != ValueAction::Write)
    }
}

/// Whether memory holds what a wait wants; a write may always go on.
fn holds(wanted: &ValueWork, device: &dyn Device) -> bool {
    if wanted.action == ValueAction::Write {
        return true;
    }
    let mut bytes = [0; 8];
    device.read(wanted.address, &mut bytes[..usize::from(wanted.bytes)]);
    let (found, value) = (u64::from_le_bytes(bytes), wanted.value);
    let mask = if wanted.bytes == 4 {
        u64::from(u32::MAX)
    } else {
        u64::MAX
    };
    match wanted.action {
        ValueAction::Write => true,
        ValueAction::WaitEqual => found == value & mask,
        ValueAction::WaitAnd => found & value & mask != 0,
        ValueAction::WaitNor => !(found | value) & mask != 0,
        ValueAction::WaitGreaterOrEqual if wanted.bytes == 4 => {
            (found as u32).wrapping_sub(value as u32) as i32 >= 0
        }
        ValueAction::WaitGreaterOrEqual => found.wrapping_sub(value) as i64 >= 0,
    }
}

/// The first byte of every row. The caller has checked that all lie in one allocation.
fn row_addresses(rows: Rows, extent: Extent) -> impl Iterator<Item = u64> {
    (0..extent.depth).flat_map(move |slice| {
        (0..extent.height)
            .map(move |row| rows.address + slice * rows.slice_pitch + row * rows.row_pitch)
    })
}
