//! The few driver functions that name a GPU.

use std::fmt::Write;

use crate::dynamic::function_table;
use crate::dynamic::{Library, overridden};

function_table! {
    /// Functions of `libcuda`.
    Functions {
        initialize = c"cuInit": fn(u32) -> i32;
        count = c"cuDeviceGetCount": fn(*mut i32) -> i32;
        device = c"cuDeviceGet": fn(*mut i32, i32) -> i32;
        uuid = c"cuDeviceGetUuid_v2": fn(*mut [u8; 16], i32) -> i32;
    }
}

/// The CUDA driver of this process.
#[derive(Clone, Copy)]
pub struct Driver(Functions);

impl Driver {
    /// Finds the driver that the program has loaded, or loads it.
    pub fn open() -> Result<Self, String> {
        let library = match overridden("LOCKSTEP_LIBCUDA") {
            Some(path) => Library::open(&[&path]),
            None => Library::open(&["libcuda.so.1"]),
        }
        .map_err(|error| format!("the CUDA driver cannot be opened ({error})"))?;
        Functions::find(library)
            .map(Self)
            .map_err(|name| format!("this CUDA driver has no {name}"))
    }

    /// Starts the driver in a process that runs no CUDA program of its own; says how many GPUs
    /// there are.
    pub fn start(&self) -> Result<u32, String> {
        // SAFETY: the one legal argument.
        let result = unsafe { (self.0.initialize)(0) };
        if result != 0 {
            return Err(format!("the CUDA driver does not start (error {result})"));
        }
        let mut count = 0;
        // SAFETY: a valid place for the count.
        let result = unsafe { (self.0.count)(&mut count) };
        if result != 0 {
            return Err(format!(
                "the CUDA driver does not count its GPUs (error {result})"
            ));
        }
        Ok(count.max(0) as u32)
    }

    /// The UUID of GPU `index`, in the spelling of `nvidia-smi`.
    pub fn uuid(&self, index: u32) -> Option<String> {
        let mut device = 0;
        // SAFETY: a valid place for the handle.
        if unsafe { (self.0.device)(&mut device, i32::try_from(index).ok()?) } != 0 {
            return None;
        }
        let mut bytes = [0; 16];
        // SAFETY: sixteen bytes, as the function writes.
        if unsafe { (self.0.uuid)(&mut bytes, device) } != 0 {
            return None;
        }
        Some(spelled(&bytes))
    }
}

fn spelled(bytes: &[u8; 16]) -> String {
    let mut text = "GPU".to_owned();
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("writing to a string succeeds");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_uuid_is_spelled_as_the_system_spells_it() {
        let bytes = [
            0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 1, 2, 3, 4, 5, 6, 7, 8,
        ];
        assert_eq!(
            super::spelled(&bytes),
            "GPU-12345678-9abc-def0-0102-030405060708"
        );
    }
}
