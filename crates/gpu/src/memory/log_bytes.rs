//! A log as bytes, for ranks that commit what another rank's SMs and slices wrote.
//!
//! An entry is its sector and mask, the bytes that were written, and when: once if all were written in one cycle,
//! as nearly always, else byte by byte.

use lockstep_engine::{LoadError, Reader, Writer};

use super::geometry::SECTOR;
use super::log::{Entry, Log};

impl Log {
    /// Writes all entries, in the order of their first write.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&(self.len() as u64));
        for entry in self.entries() {
            let written = || (0..SECTOR as usize).filter(|byte| entry.mask >> byte & 1 != 0);
            let bytes: Vec<u8> = written().map(|byte| entry.bytes[byte]).collect();
            let mut cycles: Vec<u16> = written().map(|byte| entry.cycles[byte]).collect();
            if cycles.windows(2).all(|pair| pair[0] == pair[1]) {
                cycles.truncate(1);
            }
            writer.write(&(entry.sector, entry.mask));
            writer.write_bytes(&bytes);
            writer.write(&cycles);
        }
    }

    /// Takes on what was written; nothing else may be here.
    ///
    /// # Errors
    /// The bytes are no log.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let malformed = LoadError::Malformed {
            what: "a log that no SM or slice has",
        };
        for _ in 0..reader.read::<u64>()? {
            let (sector, mask): (u64, u32) = reader.read()?;
            let bytes = reader.read_bytes()?;
            let cycles: Vec<u16> = reader.read()?;
            let count = mask.count_ones() as usize;
            if bytes.len() != count || !(cycles.len() == count || cycles.len() == count.min(1)) {
                return Err(malformed);
            }
            let mut entry = Entry {
                sector,
                mask,
                bytes: [0; SECTOR as usize],
                cycles: [0; SECTOR as usize],
            };
            let written = (0..SECTOR as usize).filter(|byte| mask >> byte & 1 != 0);
            for (place, byte) in written.enumerate() {
                entry.bytes[byte] = bytes[place];
                entry.cycles[byte] = cycles[place.min(cycles.len() - 1)];
            }
            if !self.add(entry) {
                return Err(malformed);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_comes_back_as_it_was() {
        let mut log = Log::default();
        log.write(7, &[1; SECTOR as usize], u32::MAX, 3);
        log.write(9, &[2; SECTOR as usize], 0b1010, 4);
        log.write(9, &[5; SECTOR as usize], 0b0010, 6);
        log.write(1 << 40, &[8; SECTOR as usize], 0, 9);
        let mut bytes = Vec::new();
        log.save(&mut Writer::new(&mut bytes));
        let mut loaded = Log::default();
        loaded.load(&mut Reader::new(&bytes)).unwrap();
        assert_eq!((loaded.len(), loaded.parts()), (log.len(), log.parts()));
        let entry = loaded.find(9).unwrap();
        assert_eq!((entry.mask, entry.bytes[1], entry.bytes[3]), (0b1010, 5, 2));
        assert_eq!((entry.cycles[1], entry.cycles[3]), (6, 4));
        assert_eq!(loaded.find(7), log.find(7));
        // A sector that comes twice, or bytes that are missing, are no log.
        assert!(loaded.load(&mut Reader::new(&bytes)).is_err());
        for cut in 0..bytes.len() {
            assert!(
                Log::default()
                    .load(&mut Reader::new(&bytes[..cut]))
                    .is_err()
            );
        }
    }
}
