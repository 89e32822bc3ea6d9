//! Starts the heads of streams, and changes memory when they are complete.

use crate::device::{Device, Fault, KernelResult, Part, Transfer};
use lockstep_isa::Launch;
use lockstep_protocol::{ValueAction, layout};
use lockstep_units::{Duration, Time};

use super::peers::{Owner, PeerTransfers};
use super::work::{holds, row_addresses};
use super::{Effect, KernelWork, StreamKey, Takes, Timeline, Work};

impl Timeline {
    /// Starts the head of a stream if its time has come; true if anything changed.
    pub(super) fn start_head(
        &mut self,
        key: StreamKey,
        device: &mut dyn Device,
    ) -> Result<bool, Fault> {
        if self.start_early(key, device)? {
            return Ok(true);
        }
        let Some(start) = self.head_start(key, device) else {
            return Ok(false);
        };
        let stream = self.streams.get_mut(&key).expect("it has a head");
        let head = stream.queue.front_mut().expect("it has a head");
        match &mut head.work {
            Work::Kernel(work) => {
                stream.busy = true;
                let launch = prepared(work, self.clock, device);
                self.kernels.insert(work.id, key);
                device.launch(stream.gpu, work.id, launch)?;
            }
            Work::Transfer { .. } => {
                stream.busy = true;
                self.start_transfer(key, device);
            }
            Work::Prefetch {
                ticket,
                address,
                bytes,
                to,
            } => {
                stream.busy = true;
                stream.finished = start;
                self.tickets.insert(*ticket, Some(key));
                device.managed_prefetch(*ticket, *address, *bytes, *to, self.clock);
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
            | Work::Join(_) => {
                let work = stream.end_head(start);
                self.finish_at_once(work, start, device);
            }
        }
        Ok(true)
    }

    /// Hands over the kernel behind those that run if it need not wait for their end: the hardware begins it when
    /// their blocks let it (programmatic dependent launch).
    fn start_early(&mut self, key: StreamKey, device: &mut dyn Device) -> Result<bool, Fault> {
        let Some(stream) = self.streams.get(&key).filter(|stream| stream.busy) else {
            return Ok(false);
        };
        let runs = matches!(
            stream.queue.front().map(|head| &head.work),
            Some(Work::Kernel(_))
        );
        let next = stream.queue.get(1 + stream.early.len()).filter(|_| runs);
        let ready = |(other, position): &(StreamKey, u64)| self.reached(*other, *position);
        let next = next.filter(|item| item.issued <= self.clock && item.after.iter().all(ready));
        let Some(Work::Kernel(work)) = next.map(|item| &item.work) else {
            return Ok(false);
        };
        if !work.launch.programmatic {
            return Ok(false);
        }
        let (gpu, id) = (stream.gpu, work.id);
        let launch = prepared(work, self.clock, device);
        self.kernels.insert(id, key);
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.early.push_back((id, None));
        }
        device.launch(gpu, id, launch)?;
        Ok(true)
    }

    /// When the head of a stream starts, if its time has come: the exact time, which may lie a
    /// little before the boundary that the clock stands at.
    fn head_start(&self, key: StreamKey, device: &dyn Device) -> Option<Time> {
        let stream = self.streams.get(&key)?;
        let head = stream.queue.front()?;
        let ready = !stream.busy
            && head.issued <= self.clock
            && head
                .after
                .iter()
                .all(|(other, position)| self.reached(*other, *position))
            && match &head.work {
                Work::Wait { stream, position } => self.reached(*stream, *position),
                Work::Transfer { .. } => self.free_engine(stream.gpu).is_some(),
                Work::Value(value) => holds(value, device),
                _ => true,
            };
        if !ready {
            return None;
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
        Some(head.issued.max(stream.finished).max(others).max(waited))
    }

    /// The first copy engine of a GPU that nothing uses.
    fn free_engine(&self, gpu: u32) -> Option<u32> {
        let used = |engine: &u32| {
            let sends = |peers: &PeerTransfers| peers.uses(*engine);
            self.transfers.values().any(|(_, used)| used == engine)
                || self.peers.as_ref().is_some_and(sends)
        };
        let first = gpu * self.engines;
        (first..first + self.engines).find(|engine| !used(engine))
    }

    /// Gives the transfer at the head of a stream the first free copy engine.
    fn start_transfer(&mut self, key: StreamKey, device: &mut dyn Device) {
        let (clock, begun) = (self.clock, self.transfers_begun);
        let stream = self.streams.get(&key);
        let gpu = stream.map_or(0, |stream| stream.gpu);
        let engine = stream.and_then(|stream| self.free_engine(stream.gpu));
        let head = stream.and_then(|stream| stream.queue.front());
        let (Some(engine), Some(Work::Transfer { takes, effect })) =
            (engine, head.map(|head| &head.work))
        else {
            return;
        };
        let end = match (*takes, &mut self.host) {
            (Takes::Fixed(takes, _), _) => clock + takes,
            (Takes::Bus(direction, time, _), _) => self
                .buses
                .entry(gpu)
                .or_default()
                .send(clock, direction, time),
            (Takes::Host(bytes, direction), Some(host)) => {
                let end = host.transfer(clock, bytes, direction);
                device.note(Part::Host, clock, &|| {
                    let way = direction.words();
                    format!("{bytes} bytes leave {way}, the last arrives at {end}")
                });
                end
            }
            (Takes::Host(..), None) => clock,
            (Takes::Links { latency, .. }, _) => clock + latency,
        };
        self.transfers_begun += 1;
        if let (Takes::Links { .. }, Some(peers)) = (*takes, &mut self.peers) {
            device.note(Part::Copy(engine), clock, &|| {
                format!("transfer {begun} begins on links: {}", effect.words())
            });
            peers.begin(begun, clock, *takes, Owner::Stream(key, engine));
            return;
        }
        device.note(Part::Copy(engine), clock, &|| {
            format!("transfer {begun} begins until {end}: {}", effect.words())
        });
        device.transfer(&Transfer {
            number: begun,
            engine,
            stream: key,
            moves: takes.moves(),
            start: clock,
            end,
        });
        self.transfers.insert((end, begun), (key, engine));
    }

    /// What takes no time has happened.
    fn finish_at_once(&mut self, work: Option<Work>, start: Time, device: &mut dyn Device) {
        match work {
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
        }
    }

    pub(super) fn kernel_ended(&mut self, result: KernelResult) {
        if result.by_kernel.is_some() {
            // The launch that it goes back to is not complete before it.
            return self.results.push(result);
        }
        let end = result.complete.unwrap_or(result.end);
        if let Some(key) = self.kernels.remove(&result.id)
            && let Some(stream) = self.streams.get_mut(&key)
        {
            if let Some(early) = stream.early.iter_mut().find(|(id, _)| *id == result.id) {
                // It counts as complete when those before it are.
                early.1 = Some(end);
            } else {
                stream.end_head(end);
            }
            while !stream.busy
                && let Some((_, ended)) = stream.early.pop_front()
            {
                stream.busy = true;
                if let Some(end) = ended {
                    stream.end_head(end.max(stream.finished));
                }
            }
        }
        self.results.push(result);
    }

    pub(super) fn apply(&mut self, effect: Effect, device: &mut dyn Device) {
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
                let from_host =
                    !layout::region_of(source.address).is_some_and(layout::Region::is_device);
                device.dma_written(destination, extent, from_host);
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
                device.dma_written(destination, extent, false);
            }
            Effect::Free { address } => self.released.push(address),
        }
    }
}

/// The launch of a kernel, with its constant banks as memory has them now.
fn prepared(work: &KernelWork, clock: Time, device: &dyn Device) -> Launch {
    let mut launch = work.launch.clone();
    launch.at = clock;
    for (bank, offset, address, bytes) in &work.constants {
        let mut contents = vec![0; *bytes as usize];
        device.read(*address, &mut contents);
        launch.constants.push((*bank, *offset, contents));
    }
    launch
}
