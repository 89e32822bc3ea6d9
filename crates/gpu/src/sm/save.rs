//! An SM as it is saved between epochs.

use std::sync::Arc;

use lockstep_engine::{LoadError, Reader, Writer};

use super::lsu::in_flight::InFlight;
use super::{Issue, Sm};

impl Sm {
    /// Writes everything. The log is empty: epochs end with its commit.
    pub fn save(&self, writer: &mut Writer<'_>) {
        let slots = (0..self.warps.len()).filter(|slot| self.resident >> slot & 1 != 0);
        writer.write(&self.resident);
        for slot in slots {
            writer.write(&self.warps[slot]);
        }
        writer.write(&self.blocks);
        writer.write(&(self.ready, self.held, self.waiting, self.last));
        writer.write(&self.fences);
        writer.write(&self.sleepers);
        writer.write(&self.present);
        writer.write(&self.port.in_flight.saved());
        writer.write(&self.port.transactions);
        writer.write(&self.printed);
        writer.write(&(self.printed_bytes as u64, self.prints, self.progress));
        writer.write(&(self.barrier_release, self.fence_due, self.port.share));
        writer.write(&self.stats);
        let translation = self.port.translation.as_ref();
        writer.write(&translation.map(|translation| translation.saved()));
        if let Issue::Timing(timing) = &self.issue {
            writer.write(&timing.saved());
        }
    }

    /// Takes on what was saved. The launches of its blocks must be in the table.
    ///
    /// # Errors
    /// If the bytes are not what `save` wrote, or a launch is missing.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let malformed = |what| LoadError::Malformed { what };
        self.resident = reader.read()?;
        if self
            .resident
            .checked_shr(self.warps.len() as u32)
            .unwrap_or(0)
            != 0
        {
            return Err(malformed("a warp slot that the SM does not have"));
        }
        for slot in 0..self.warps.len() {
            if self.resident >> slot & 1 != 0 {
                self.warps[slot] = reader.read()?;
            }
        }
        let blocks: Vec<_> = reader.read()?;
        if blocks.len() != self.blocks.len() {
            return Err(malformed("another number of block slots"));
        }
        self.blocks = blocks;
        for (slot, block) in self.blocks.iter().enumerate() {
            self.contexts[slot] = match block {
                Some(block) => Some(
                    self.launches
                        .get(block.launch)
                        .map(Arc::new)
                        .ok_or(malformed("a block of an unknown launch"))?,
                ),
                None => None,
            };
        }
        (self.ready, self.held, self.waiting, self.last) = reader.read()?;
        self.fences = reader.read()?;
        self.sleepers = reader.read()?;
        self.present = reader.read()?;
        self.port.in_flight = InFlight::from_saved(reader.read()?);
        self.port.transactions = reader.read()?;
        self.printed = reader.read()?;
        let (printed_bytes, prints, progress): (u64, u64, u64) = reader.read()?;
        self.printed_bytes = printed_bytes as usize;
        (self.prints, self.progress) = (prints, progress);
        (self.barrier_release, self.fence_due, self.port.share) = reader.read()?;
        self.stats = reader.read()?;
        let translation: Option<super::translation::Saved> = reader.read()?;
        if let (Some(own), Some(saved)) = (&mut self.port.translation, translation) {
            own.restore(saved);
        }
        self.port.log.clear();
        self.fault = None;
        if let Issue::Timing(timing) = &mut self.issue {
            let saved = reader.read()?;
            if !timing.restore(saved, &self.parameters) {
                return Err(malformed("another number of sub-cores or warps"));
            }
        }
        self.restore_blocked();
        Ok(())
    }
}
