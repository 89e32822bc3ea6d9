//! An embedded GPU as it is saved: what gave memory its addresses, then the hardware.
//!
//! Bytes from outside are sealed with a digest and belong to one configuration and mode. That keeps accidents out,
//! not enemies: who can write a seal can write any state.

use super::{EmbeddedError, EmbeddedGpu, Event};
use crate::description::Description;
use lockstep_engine::{LoadError, Reader, Writer};
use lockstep_stats::Digest;

/// What saved state begins with, and the version of its form.
const BEGINNING: &[u8] = b"lockstep embedded gpu 1\n";

/// Bytes of the seal at the end.
const SEAL: usize = 32;

impl EmbeddedGpu {
    /// Everything, for [`EmbeddedGpu::load`]; kernels may be under way.
    pub fn save(&mut self) -> Vec<u8> {
        let mut bytes = BEGINNING.to_vec();
        let mut writer = Writer::new(&mut bytes);
        writer.write(&machine(&self.description));
        writer.write(&self.history);
        writer.write(&self.kernels);
        writer.write_bytes(&self.gpu.save());
        let seal = *Digest::of_page(&bytes).as_bytes();
        bytes.extend_from_slice(&seal);
        bytes
    }

    /// A GPU that goes on where another was saved, with the same configuration and mode; threads may differ.
    ///
    /// # Errors
    /// The bytes are not as they were saved, or belong to another GPU.
    pub fn load(description: &Description, bytes: &[u8]) -> Result<Self, EmbeddedError> {
        let state = |words: &str| EmbeddedError::State(words.into());
        let decoded = |error: LoadError| EmbeddedError::State(error.to_string());
        let (held, seal) = bytes.split_at(bytes.len().saturating_sub(SEAL));
        let Some(body) = held.strip_prefix(BEGINNING) else {
            return Err(state("these bytes are none of this version"));
        };
        if Digest::of_page(held).as_bytes() != seal {
            return Err(state("the bytes are not as they were saved"));
        }
        let mut reader = Reader::new(body);
        let saved: String = reader.read().map_err(decoded)?;
        if saved != machine(description) {
            return Err(state("it is of a GPU with another configuration or mode"));
        }
        let mut loaded = Self::new(description)?;
        let history: Vec<Event> = reader.read().map_err(decoded)?;
        let kernels: Vec<(u32, u32)> = reader.read().map_err(decoded)?;
        loaded.again(history)?;
        for (module, kernel) in &kernels {
            let module = loaded.modules.get(*module as usize);
            if module.is_none_or(|module| *kernel as usize >= module.code.kernels.len()) {
                return Err(state("a kernel that no module has"));
            }
        }
        loaded.kernels = kernels;
        let hardware = reader.read_bytes().map_err(decoded)?;
        let modules: Vec<_> = loaded.modules.iter().map(|one| one.code.clone()).collect();
        loaded
            .gpu
            .load(hardware, &|number| modules.get(number as usize).cloned())?;
        Ok(loaded)
    }

    /// Gives out the same addresses again. What is valid and what memory holds comes with the hardware, so both are
    /// taken away again here.
    fn again(&mut self, history: Vec<Event>) -> Result<(), EmbeddedError> {
        for event in &history {
            match event {
                Event::Allocated(bytes) => {
                    self.place(*bytes)?;
                }
                Event::Loaded(image) => {
                    let linked = self.link(image)?;
                    self.keep(linked);
                }
            }
        }
        let addresses: Vec<u64> = self.allocations.keys().copied().collect();
        for address in addresses {
            self.gpu.contents().unmap(address);
        }
        self.history = history;
        Ok(())
    }
}

/// What two GPUs must share for one to take on the other's state.
pub(crate) fn machine(description: &Description) -> String {
    let config = serde_json::to_string(&description.config);
    let config = config.unwrap_or_else(|error| panic!("a configuration can be written: {error}"));
    format!(
        "{} {} {config}",
        env!("CARGO_PKG_VERSION"),
        description.mode.name()
    )
}
