//! Grids that kernels launched, device launches: who waits for whom.
//!
//! A grid is complete when its blocks have ended, the grids that it launched are complete, and then, one
//! after the other, its tail launches are. What a thread launches into a stream waits until the launch before it in that
//! stream is complete, and for what the stream was told to wait for.
//!
//! Modelled: the NULL stream of each block, that of each thread, fire-and-forget and tail launches, streams and
//! events that device code creates, the pool of launches that may be under way. There is no other limit to the depth of
//! launches: an H200 has none either. Nothing here knows of time but what it is told.
//!
//! Start reading at [`DeviceLaunches::launch`], then [`DeviceLaunches::ended`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use lockstep_isa::device_runtime::DeviceRuntimeError as Error;
use lockstep_units::{Duration, LaunchConfig, Time};
use serde::{Deserialize, Serialize};

use super::heap::Heap;

/// A grid by the number that it has here, which it gets before it becomes a launch.
pub type GridNumber = u64;

/// The first handle of a stream or an event.
const FIRST_HANDLE: u64 = 1 << 40;

/// Events that there are at a time, and recordings of them: what an H200 allows.
const EVENTS: u64 = 4096;

/// Every parameter buffer has so many bytes at the least.
const SMALLEST_BUFFER: u64 = 4096;

/// Where a launch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stream {
    /// The NULL stream of a block of a grid.
    Block(GridNumber, u64),
    /// The stream of a thread: its block, and its number there.
    Thread(GridNumber, u64, u32),
    /// One that device code created.
    Created(u64),
    /// No order among these.
    FireAndForget,
    /// Behind everything else of the grid that launches.
    Tail,
}

/// What is launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLaunch {
    /// Which kernel of the launching grid's module.
    pub kernel: usize,
    /// Grid, block and dynamic shared memory.
    pub config: LaunchConfig,
    /// The arguments as they lie from the parameter base.
    pub arguments: Vec<u8>,
}

/// A launch that nothing holds back any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyLaunch {
    /// Its number here.
    pub grid: GridNumber,
    /// The launch whose kernel launched it.
    pub parent: u32,
    /// What it is.
    pub launch: DeviceLaunch,
    /// When it may begin.
    pub at: Time,
}

/// How long things take on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceLatencies {
    /// From the answer to a launch to its first block.
    pub launch: Duration,
    /// From what a launch waits for being known to be complete to its first block.
    pub next: Duration,
    /// From the end of a grid's other work to the first block of its tail launch.
    pub tail: Duration,
    /// From the end of a grid that a kernel launched to its being known to be complete.
    pub finish: Duration,
    /// From all else to the end of a grid that launched some.
    pub parent: Duration,
    /// Between two launches that nothing holds back.
    pub interval: Duration,
}

/// A grid that launched something or was launched by a kernel, until it is complete.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Grid {
    /// The grid that launched it, if not the host.
    parent: Option<GridNumber>,
    /// Its number as a launch, once it is one.
    launch: Option<u32>,
    /// What it will be.
    what: Option<Box<DeviceLaunch>>,
    /// Its own blocks have ended.
    ended: bool,
    /// When what it has waited for was known to be complete: grids before it, or its own blocks and grids that it launched.
    since: Time,
    /// It has no place in the pool any more.
    left_pool: bool,
    /// Grids that it launched and that are not complete, tail launches that wait not counted.
    open: u64,
    /// Tail launches that wait.
    tails: VecDeque<GridNumber>,
    /// Grids that it waits for.
    waits: u64,
    /// Grids that wait for it.
    dependents: Vec<GridNumber>,
    /// Recordings of events by its threads.
    recorded: u64,
    /// Its threads launched something.
    launched: bool,
    /// Its threads asked for something: there may be streams, events and buffers of it.
    asked: bool,
}

/// What a stream has to wait for, beside the launch that comes next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Order {
    /// The grid to which a created stream belongs.
    owner: GridNumber,
    after: BTreeSet<GridNumber>,
}

/// Memory for arguments, and what they are for if that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterBuffer {
    /// The grid whose thread asked for it.
    owner: GridNumber,
    /// Kernel and shape of the launch.
    pub shape: Option<(usize, LaunchConfig)>,
}

/// All grids that kernels launched, or that launched some.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeviceLaunches {
    grids: BTreeMap<GridNumber, Grid>,
    by_launch: BTreeMap<u32, GridNumber>,
    streams: BTreeMap<Stream, Order>,
    events: BTreeMap<u64, Order>,
    buffers: BTreeMap<u64, ParameterBuffer>,
    pool: Heap,
    /// Launches that take a place in the pool.
    pending: u64,
    /// Recordings of events by grids that are not complete.
    recorded: u64,
    ready: Vec<ReadyLaunch>,
    /// Launches that are complete since they were last asked for, with when that is.
    complete: Vec<(u32, Time)>,
    next_grid: GridNumber,
    next_handle: u64,
    /// When the next launch may begin that nothing holds back.
    next_launch: Time,
}

impl DeviceLaunches {
    /// Gives addresses for arguments of launches.
    pub fn set_pool(&mut self, range: Range<u64>) {
        self.pool = Heap::new(range);
    }

    /// The same addresses, and nothing under way.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self {
            pool: self.pool.emptied(),
            next_grid: self.next_grid,
            next_handle: self.next_handle,
            ..Self::default()
        }
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.grids.is_empty()
    }

    /// Launches that nothing holds back.
    #[must_use]
    pub fn ready(&self) -> &[ReadyLaunch] {
        &self.ready
    }

    /// Takes the launches that nothing holds back, in the order in which they became so.
    pub fn take_ready(&mut self) -> Vec<ReadyLaunch> {
        std::mem::take(&mut self.ready)
    }

    /// Takes the launches that became complete, with when that is.
    pub fn take_complete(&mut self) -> Vec<(u32, Time)> {
        std::mem::take(&mut self.complete)
    }

    /// A grid has become a launch.
    pub fn begun(&mut self, grid: GridNumber, launch: u32) {
        if let Some(known) = self.grids.get_mut(&grid) {
            known.launch = Some(launch);
            self.by_launch.insert(launch, grid);
        }
    }

    /// The number of a launch whose kernel asks for something.
    fn grid_of(&mut self, launch: u32) -> GridNumber {
        if let Some(known) = self.by_launch.get(&launch) {
            if let Some(grid) = self.grids.get_mut(known) {
                grid.asked = true;
            }
            return *known;
        }
        let number = self.new_grid(Grid {
            launch: Some(launch),
            asked: true,
            ..Grid::default()
        });
        self.by_launch.insert(launch, number);
        number
    }

    fn new_grid(&mut self, grid: Grid) -> GridNumber {
        self.next_grid += 1;
        self.grids.insert(self.next_grid, grid);
        self.next_grid
    }

    /// Memory for the arguments of a launch.
    pub fn buffer(
        &mut self,
        launch: u32,
        bytes: u64,
        shape: Option<(usize, LaunchConfig)>,
    ) -> Result<u64, Error> {
        let owner = self.grid_of(launch);
        let address = self.pool.allocate(bytes.max(SMALLEST_BUFFER));
        let address = address.ok_or(Error::OutOfMemory)?;
        self.buffers
            .insert(address, ParameterBuffer { owner, shape });
        Ok(address)
    }

    /// Takes a buffer back.
    pub fn give_back(&mut self, buffer: u64) {
        if self.buffers.remove(&buffer).is_some() {
            self.pool.free(buffer);
        }
    }

    /// Whether there is a place for one more launch, if so many may be under way.
    pub fn check_pool(&self, most: u64) -> Result<(), Error> {
        match self.pending < most {
            true => Ok(()),
            false => Err(Error::PendingCountExceeded),
        }
    }

    /// A buffer that was given and not used.
    #[must_use]
    pub fn known_buffer(&self, address: u64) -> Option<&ParameterBuffer> {
        self.buffers.get(&address)
    }

    /// A stream by what device code calls it, if it exists.
    #[must_use]
    pub fn stream(&mut self, launch: u32, place: (u64, u32), handle: u64) -> Option<Stream> {
        let (block, thread) = place;
        match handle {
            0 | 1 => Some(Stream::Block(self.grid_of(launch), block)),
            2 => Some(Stream::Thread(self.grid_of(launch), block, thread)),
            3 => Some(Stream::Tail),
            4 => Some(Stream::FireAndForget),
            _ => {
                let stream = Stream::Created(handle);
                self.streams.contains_key(&stream).then_some(stream)
            }
        }
    }

    /// Launches what a buffer is for. The buffer is free again: its arguments are in `what`.
    pub fn launch(
        &mut self,
        launch: u32,
        buffer: u64,
        stream: Stream,
        what: DeviceLaunch,
        now: Time,
        latencies: &DeviceLatencies,
    ) {
        self.give_back(buffer);
        self.pending += 1;
        let parent = self.grid_of(launch);
        let number = self.new_grid(Grid {
            parent: Some(parent),
            what: Some(Box::new(what)),
            ..Grid::default()
        });
        if let Some(launcher) = self.grids.get_mut(&parent) {
            launcher.launched = true;
            if stream == Stream::Tail {
                return launcher.tails.push_back(number);
            }
            launcher.open += 1;
        }
        let mut waits = 0;
        if stream != Stream::FireAndForget {
            let order = self.streams.entry(stream).or_insert_with(|| Order {
                owner: parent,
                ..Order::default()
            });
            let after = std::mem::take(&mut order.after);
            order.after.insert(number);
            for before in after {
                if let Some(before) = self.grids.get_mut(&before) {
                    before.dependents.push(number);
                    waits += 1;
                }
            }
        }
        if let Some(grid) = self.grids.get_mut(&number) {
            grid.waits = waits;
        }
        if waits == 0 {
            let at = (now + latencies.launch).max(self.next_launch);
            self.next_launch = at + latencies.interval;
            self.make_ready(number, at);
        }
    }

    fn make_ready(&mut self, number: GridNumber, at: Time) {
        let Some(grid) = self.grids.get_mut(&number) else {
            return;
        };
        let (what, parent) = (grid.what.take(), grid.parent);
        let parent = parent.and_then(|parent| self.grids.get(&parent)?.launch);
        if let (Some(launch), Some(parent)) = (what, parent) {
            self.ready.push(ReadyLaunch {
                grid: number,
                parent,
                launch: *launch,
                at,
            });
        }
    }

    /// The blocks of a launch have ended. Says whether grids are open that it has to wait for, or was launched
    /// by: then [`Self::take_complete`] has it when it is complete, perhaps at once.
    pub fn ended(&mut self, launch: u32, now: Time, latencies: &DeviceLatencies) -> bool {
        let Some(number) = self.by_launch.get(&launch).copied() else {
            return false;
        };
        if let Some(grid) = self.grids.get_mut(&number) {
            grid.ended = true;
            grid.since = grid.since.max(now);
        }
        self.settle(number, latencies);
        true
    }

    /// Completes a grid if nothing is left of it, and then those that waited for that.
    fn settle(&mut self, number: GridNumber, latencies: &DeviceLatencies) {
        let mut next = Some(number);
        while let Some(number) = next.take() {
            let Some(grid) = self.grids.get_mut(&number) else {
                return;
            };
            if !grid.ended || grid.open > 0 {
                return;
            }
            if grid.parent.is_some() && !grid.left_pool {
                // A grid that waits for nothing but its tail launches takes no place.
                grid.left_pool = true;
                self.pending -= 1;
            }
            let at = grid.since + latencies.tail;
            if let Some(tail) = grid.tails.pop_front() {
                grid.open += 1;
                return self.make_ready(tail, at);
            }
            next = self.complete(number, latencies);
        }
    }

    /// A grid is complete. Answers the one that launched it, which may be so now.
    fn complete(&mut self, number: GridNumber, latencies: &DeviceLatencies) -> Option<GridNumber> {
        let grid = self.grids.remove(&number)?;
        let mut at = grid.since;
        if grid.launched {
            at += latencies.parent;
        }
        if let Some(launch) = grid.launch {
            self.by_launch.remove(&launch);
            self.complete.push((launch, at));
        }
        self.recorded -= grid.recorded;
        if grid.asked {
            self.forget(number);
        }
        let known = at + latencies.finish;
        for dependent in grid.dependents {
            let Some(waiting) = self.grids.get_mut(&dependent) else {
                continue;
            };
            waiting.waits -= 1;
            waiting.since = waiting.since.max(known);
            let at = waiting.since + latencies.next;
            if waiting.waits == 0 {
                self.make_ready(dependent, at);
            }
        }
        let parent = grid.parent?;
        if let Some(launcher) = self.grids.get_mut(&parent) {
            launcher.open -= 1;
            launcher.since = launcher.since.max(known);
        }
        Some(parent)
    }

    /// What a grid created goes with it.
    fn forget(&mut self, number: GridNumber) {
        self.streams.retain(|_, order| order.owner != number);
        self.events.retain(|_, order| order.owner != number);
        let pool = &mut self.pool;
        self.buffers.retain(|address, buffer| {
            let keep = buffer.owner != number;
            if !keep {
                pool.free(*address);
            }
            keep
        });
    }

    fn new_handle(&mut self) -> u64 {
        let handle = FIRST_HANDLE + 16 * self.next_handle;
        self.next_handle += 1;
        handle
    }

    /// Creates a stream for a grid.
    pub fn create_stream(&mut self, launch: u32) -> u64 {
        let (owner, handle) = (self.grid_of(launch), self.new_handle());
        let order = Order {
            owner,
            ..Order::default()
        };
        self.streams.insert(Stream::Created(handle), order);
        handle
    }

    /// Whether a stream can be destroyed. As on an H200, it stays as it is until its grid is complete.
    #[must_use]
    pub fn has_stream(&self, handle: u64) -> bool {
        self.streams.contains_key(&Stream::Created(handle))
    }

    /// Creates an event for a grid.
    pub fn create_event(&mut self, launch: u32) -> Result<u64, Error> {
        if self.events.len() as u64 >= EVENTS {
            return Err(Error::OutOfMemory);
        }
        let (owner, handle) = (self.grid_of(launch), self.new_handle());
        let order = Order {
            owner,
            ..Order::default()
        };
        self.events.insert(handle, order);
        Ok(handle)
    }

    /// Whether an event can be destroyed. It stays as a stream does.
    #[must_use]
    pub fn has_event(&self, handle: u64) -> bool {
        self.events.contains_key(&handle)
    }

    /// An event stands for all that is in a stream now. False if there is no such event.
    pub fn record(&mut self, launch: u32, event: u64, stream: Stream) -> Result<bool, Error> {
        if self.recorded >= EVENTS {
            return Err(Error::OutOfMemory);
        }
        let owner = self.grid_of(launch);
        let after = self.streams.get(&stream).map(|order| order.after.clone());
        match self.events.get_mut(&event) {
            Some(order) => order.after = after.unwrap_or_default(),
            None => return Ok(false),
        }
        self.recorded += 1;
        if let Some(grid) = self.grids.get_mut(&owner) {
            grid.recorded += 1;
        }
        Ok(true)
    }

    /// What comes next in a stream waits for an event. False if there is no such event.
    pub fn wait(&mut self, launch: u32, stream: Stream, event: u64) -> bool {
        let owner = self.grid_of(launch);
        let Some(event) = self.events.get(&event) else {
            return false;
        };
        let (grids, after) = (&self.grids, &event.after);
        let order = self.streams.entry(stream).or_insert_with(|| Order {
            owner,
            ..Order::default()
        });
        let open = after.iter().filter(|number| grids.contains_key(number));
        order.after.extend(open);
        true
    }
}

#[cfg(test)]
mod tests;
