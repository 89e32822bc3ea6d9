//! Saving and loading a whole engine, at the boundary of an epoch.

use crate::{Boundary, Engine, LoadError, Partition, PartitionId, Reader, Writer};

/// Increased when the layout changes.
const FORMAT: u32 = 2;

impl<P: Partition, B: Boundary<P>> Engine<P, B> {
    /// Writes time, messages on their way and all partitions. The boundary saves itself.
    ///
    /// The bytes depend on what was simulated alone, not on threads or schedules.
    pub fn save(&mut self, writer: &mut Writer<'_>) {
        writer.write(&FORMAT);
        writer.write(&self.topology().text());
        writer.write(&(self.epoch, self.posted));
        for index in 0..self.shared.cells.len() {
            let id = PartitionId(index as u32);
            // SAFETY: no worker runs between calls of `run`, and the engine is borrowed mutably, so
            // that no other thread looks at the messages.
            let cell = unsafe { self.shared.cells.look(id) };
            cell.save(writer);
        }
    }

    /// Takes on what was saved, by an engine with the same topology.
    ///
    /// # Errors
    /// If the bytes were saved for another machine, or do not decode. The engine is then partly
    /// loaded and of no use.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let found = reader.read()?;
        if found != FORMAT {
            return Err(LoadError::Format {
                found,
                expected: FORMAT,
            });
        }
        let saved: String = reader.read()?;
        let now = self.topology().text();
        if saved != now {
            return Err(LoadError::OtherMachine { saved, now });
        }
        (self.epoch, self.posted) = reader.read()?;
        for index in 0..self.shared.cells.len() {
            let id = PartitionId(index as u32);
            let shared = &self.shared;
            // SAFETY: no worker runs between calls of `run`, and the engine is borrowed mutably.
            let cell = unsafe { shared.cells.get(id) };
            cell.load(reader).map_err(|because| LoadError::Partition {
                partition: shared.topology.name(id),
                because: Box::new(because),
            })?;
        }
        self.refresh_wakes();
        Ok(())
    }
}
