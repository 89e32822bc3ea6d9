//! Answers of the device: logged while it works, repeated before the checkpoint.

use super::{Checkpoints, Kind, Played};
use lockstep_gpu::Launch;
use lockstep_units::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

impl Checkpoints {
    /// Whether the device repeats answers.
    pub fn is_playing(&self) -> bool {
        self.playing.is_some() && self.differs.is_none()
    }

    /// Where the device stands, while it repeats answers.
    pub fn now(&self) -> Option<Time> {
        let playing = self.playing.as_ref()?;
        Some(playing.now)
    }

    /// The next entry, which has to be of a kind.
    fn next(&mut self, kind: Kind) -> Option<Vec<u8>> {
        let (found, bytes) = self.next_entry()?;
        assert_eq!(
            found, kind,
            "the log of the checkpoint has another answer next: a fault of the simulator"
        );
        Some(bytes)
    }

    /// The next entry; nothing at the end.
    pub(super) fn next_entry(&mut self) -> Option<(Kind, Vec<u8>)> {
        let reader = &mut self.playing.as_mut()?.reader;
        let entry = reader.entry();
        // Its bytes were compared with their digest before.
        entry.unwrap_or_else(|error| panic!("the log of the checkpoint cannot be read: {error}"))
    }

    /// What the device answered before the checkpoint, if the run is not past it.
    pub fn played<T: DeserializeOwned>(&mut self, kind: Kind) -> Option<T> {
        if !self.is_playing() {
            return None;
        }
        self.aliases |= kind == Kind::Alias;
        let bytes = self.next(kind);
        let bytes = bytes.unwrap_or_else(|| panic!("a checkpoint is made inside an advance"));
        Some(decoded(&bytes))
    }

    /// How an advance ended before the checkpoint, or the checkpoint itself.
    pub fn played_advance<T: DeserializeOwned>(&mut self) -> Played<T> {
        if !self.is_playing() {
            return Played::Live;
        }
        if let Some(bytes) = self.next(Kind::Advanced) {
            let (advance, now): (T, Time) = decoded(&bytes);
            self.stands_at(now);
            return Played::Answer(advance);
        }
        match self.playing.take() {
            Some(playing) => {
                self.written = playing.state.written.iter().copied().collect();
                Played::Reached(playing.state, playing.launches)
            }
            None => Played::Live,
        }
    }

    /// The device stands here, while it repeats answers.
    pub fn stands_at(&mut self, now: Time) {
        if let Some(playing) = &mut self.playing {
            playing.now = now;
        }
    }

    /// Keeps a launch that is not carried out, if the state will need it.
    pub fn keep_launch(&mut self, number: u64, launch: Launch) {
        if let Some(playing) = &mut self.playing
            && playing.needed.contains(&number)
        {
            playing.launches.insert(number, launch);
        }
    }

    /// Logs an answer of the device.
    pub fn keep<T: Serialize + ?Sized>(&mut self, kind: Kind, answer: &T) {
        if self.over.is_some() || self.playing.is_some() {
            return;
        }
        let Some(files) = &mut self.files else {
            return;
        };
        let encoded = postcard::to_stdvec(answer).map_err(io::Error::other);
        let added = encoded.and_then(|bytes| files.log.add(kind, &bytes));
        if let Err(error) = added {
            self.end(format!("no checkpoints are written any more: {error}"));
        }
    }

    /// What was read before the checkpoint, if the run is not past it.
    pub fn played_read(&mut self, address: u64, bytes: &mut [u8]) -> bool {
        let Some(read) = self.played::<Option<Vec<u8>>>(Kind::Read) else {
            return false;
        };
        let place = (address, bytes.len());
        if let Some(read) = read {
            self.reads.insert(place, read);
        }
        let read = self
            .reads
            .get(&place)
            .filter(|read| read.len() == bytes.len());
        let read = read.unwrap_or_else(|| panic!("what was read before is known"));
        bytes.copy_from_slice(read);
        true
    }

    /// Logs what was read, unless it is what was read there last.
    pub fn keep_read(&mut self, address: u64, bytes: &[u8]) {
        let place = (address, bytes.len());
        if self.reads.get(&place).is_some_and(|read| read == bytes) {
            return self.keep(Kind::Read, &None::<Vec<u8>>);
        }
        self.reads.insert(place, bytes.to_vec());
        self.keep(Kind::Read, &Some(bytes));
    }
}

/// An entry of the log, whose bytes were compared with their digest before.
pub(super) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes)
        .unwrap_or_else(|error| panic!("the log of the checkpoint does not decode: {error}"))
}
