//! Copies and fills: who moves the bytes, and how long that takes.

use crate::device::Device;
use crate::host::Direction;
use crate::timeline::{BusTime, Effect, Moves, Takes, Work};
use crate::{CallResult, Client, Piece, Runtime, fail, failure};
use lockstep_protocol::{
    ContextHandle, Copy, CuResult, Extent, Fill, MemoryAccess, Place, PointerKind, Reply, Rows,
};
use lockstep_units::{Bytes, Duration};

impl<D: Device> Runtime<D> {
    pub(super) fn copy(&mut self, client: Client, copy: &Copy) -> CallResult<Reply> {
        let key = self.stream_key(client, copy.context, copy.stream)?;
        self.spend(self.config.host.copy);
        let Some((takes, effect)) = self.transfer(copy)? else {
            return Ok(Reply::Done);
        };
        let by_program = effect == Effect::None;
        let position = self.enqueue(copy.context, key, Work::Transfer { takes, effect });
        if by_program || copy.blocking {
            self.wait(key, position)?;
        }
        if by_program {
            self.program_writes(copy)?;
        }
        Ok(Reply::Done)
    }

    /// Notes what the program reads and writes once it is told to perform a copy.
    pub(super) fn program_writes(&mut self, copy: &Copy) -> CallResult<()> {
        if let Place::Window(rows) = copy.source {
            let extent = copy.extent;
            self.host_reads.push(Piece { rows, extent });
        }
        if let Place::Window(rows) = copy.destination {
            let span = span(&rows, &copy.extent)?;
            self.device.touched(rows.address, span);
            self.device.dma_written(rows, copy.extent, true);
            self.host_writes.push((rows.address, span));
        }
        Ok(())
    }

    /// How long a copy takes and what it changes; the program's own copies change nothing here.
    /// `None` for a copy of nothing.
    pub(super) fn transfer(&self, copy: &Copy) -> CallResult<Option<(Takes, Effect)>> {
        let bytes = size(&copy.extent)?;
        let (write, read) = (MemoryAccess::ReadWrite, MemoryAccess::Read);
        let destination = self.check_place(copy.destination, &copy.extent, write)?;
        let source = self.check_place(copy.source, &copy.extent, read)?;
        for place in [destination, source] {
            self.check_near(copy.context, place)?;
        }
        if bytes == 0 {
            return Ok(None);
        }
        let takes = self.transfer_time(destination, source, bytes);
        let effect = match (copy.destination, copy.source) {
            (Place::Window(destination), Place::Window(source)) => Effect::Copy {
                destination,
                source,
                extent: copy.extent,
            },
            _ => Effect::None,
        };
        Ok(Some((takes, effect)))
    }

    pub(super) fn fill(&mut self, client: Client, fill: &Fill) -> CallResult<Reply> {
        let key = self.stream_key(client, fill.context, fill.stream)?;
        self.spend(self.config.host.copy);
        let Some((takes, effect)) = self.filling(fill)? else {
            return Ok(Reply::Done);
        };
        let position = self.enqueue(fill.context, key, Work::Transfer { takes, effect });
        if fill.blocking {
            self.wait(key, position)?;
        }
        Ok(Reply::Done)
    }

    /// How long a fill takes and what it changes; `None` for a fill of nothing.
    pub(super) fn filling(&self, fill: &Fill) -> CallResult<Option<(Takes, Effect)>> {
        let unit = u64::from(fill.pattern_bytes);
        if !matches!(unit, 1 | 2 | 4) || !fill.extent.width.is_multiple_of(unit) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("a pattern of {unit} bytes over {}", fill.extent.width),
            );
        }
        if !fill.destination.address.is_multiple_of(unit) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("{:#x} is not aligned to {unit}", fill.destination.address),
            );
        }
        let bytes = size(&fill.extent)?;
        let place = Place::Window(fill.destination);
        let filled = self.check_place(place, &fill.extent, MemoryAccess::ReadWrite)?;
        self.check_near(fill.context, filled)?;
        if bytes == 0 {
            return Ok(None);
        }
        let takes = self.gpu_of(fill.context).copy.fill_time(bytes);
        let pattern = fill.pattern.to_le_bytes()[..unit as usize].to_vec();
        let effect = Effect::Fill {
            destination: fill.destination,
            extent: fill.extent,
            pattern,
        };
        let moves = Moves { way: "fill", bytes };
        Ok(Some((Takes::Fixed(takes, moves), effect)))
    }

    /// Whether one allocation holds all of a piece of the window, or why none does.
    ///
    /// # Errors
    /// A sentence about what is there.
    pub fn holds(&self, piece: &Piece) -> CallResult<()> {
        self.check_place(Place::Window(piece.rows), &piece.extent, MemoryAccess::Read)
            .map(|_| ())
    }

    /// The kind of memory that a place is in and its device, if it may be used so; `None` for ordinary
    /// memory of the program.
    fn check_place(
        &self,
        place: Place,
        extent: &Extent,
        access: MemoryAccess,
    ) -> CallResult<Option<(PointerKind, u32)>> {
        let Place::Window(rows) = place else {
            return Ok(None);
        };
        if extent.bytes() == Some(0) {
            return Ok(None);
        }
        let span = span(&rows, extent)?;
        let allocation = self.memory.covering(rows.address, span)?;
        if allocation.mapped {
            self.check_access(rows.address, span, access)?;
        }
        Ok(Some((allocation.info.kind, allocation.info.device)))
    }

    /// Refuses memory of another node.
    fn check_near(
        &self,
        context: ContextHandle,
        place: Option<(PointerKind, u32)>,
    ) -> CallResult<()> {
        let own = self.context(context)?.device;
        match place {
            Some((_, gpu)) if !self.device.neighbours(own).contains(&gpu) => fail(
                CuResult::INVALID_VALUE,
                format!(
                    "{} cannot reach memory of {}, which is on another node",
                    self.gpu_name(own),
                    self.gpu_name(gpu)
                ),
            ),
            _ => Ok(()),
        }
    }

    fn transfer_time(
        &self,
        destination: Option<(PointerKind, u32)>,
        source: Option<(PointerKind, u32)>,
        bytes: u64,
    ) -> Takes {
        let on_gpu = |place| match place {
            Some((PointerKind::Device, gpu)) => Some(gpu),
            _ => None,
        };
        let gpu = match on_gpu(destination).or(on_gpu(source)) {
            Some(gpu) => self.gpu(gpu),
            None => &self.config,
        };
        let copy = &gpu.copy;
        if let (Some((PointerKind::Device, to)), Some((PointerKind::Device, from))) =
            (destination, source)
            && from != to
            && self.timeline.has_links()
        {
            return Takes::Links {
                from,
                to,
                bytes,
                latency: copy.latency,
            };
        }
        let kind = |place: Option<(PointerKind, u32)>| place.map(|(kind, _)| kind);
        let (destination, source) = (kind(destination), kind(source));
        let on_device = |place| place == Some(PointerKind::Device);
        if self.config.host.machine.is_modelled() && on_device(destination) != on_device(source) {
            let direction = match on_device(destination) {
                true => Direction::ToDevice,
                false => Direction::ToHost,
            };
            return Takes::Host(bytes, direction);
        }
        let pinned = copy.pinned.time_for(Bytes(bytes));
        let pageable = destination.is_none() || source.is_none();
        let (destination, source) = (on_device(destination), on_device(source));
        let host = match pageable {
            true => copy.pageable_time(source, bytes),
            false => Duration::ZERO,
        };
        let way = match (source, destination) {
            (true, true) => "device to device",
            (false, true) => "host to device",
            (true, false) => "device to host",
            (false, false) => "host to host",
        };
        let moves = Moves { way, bytes };
        let direction = match (destination, source) {
            (true, true) => {
                let within = copy.within_time(bytes, gpu.l2.capacity);
                return Takes::Fixed(within, moves);
            }
            (true, false) => Direction::ToDevice,
            (false, true) => Direction::ToHost,
            (false, false) => return Takes::Fixed(copy.latency + pinned.max(host), moves),
        };
        let time = BusTime {
            latency: copy.latency_between(source, pageable),
            busy: pinned,
            host,
        };
        Takes::Bus(direction, time, bytes)
    }
}

fn size(extent: &Extent) -> CallResult<u64> {
    extent.bytes().ok_or_else(|| {
        failure(
            CuResult::INVALID_VALUE,
            "a copy of more bytes than there can be",
        )
    })
}

/// From the first byte of the first row to the last byte of the last.
fn span(rows: &Rows, extent: &Extent) -> CallResult<u64> {
    let overlapping = (extent.height > 1 && rows.row_pitch < extent.width)
        || (extent.depth > 1
            && rows.slice_pitch < rows.row_pitch.saturating_mul(extent.height - 1) + extent.width);
    if overlapping {
        return fail(
            CuResult::INVALID_VALUE,
            format!(
                "rows of {} bytes overlap at a pitch of {} bytes",
                extent.width, rows.row_pitch
            ),
        );
    }
    let last = || {
        let row = rows.row_pitch.checked_mul(extent.height.checked_sub(1)?)?;
        let slice = rows.slice_pitch.checked_mul(extent.depth.checked_sub(1)?)?;
        row.checked_add(slice)?.checked_add(extent.width)
    };
    last().ok_or_else(|| {
        failure(
            CuResult::INVALID_VALUE,
            "a copy of more bytes than there can be",
        )
    })
}
