//! Cubins and fat binaries: read, listed, linked. Start from `crates/frontend/tests/sass/`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep_frontend::sass::{Image, disassemble, fatbinary};

fuzz_target!(|bytes: &[u8]| {
    let _ = disassemble(bytes, &mut std::io::sink());
    let _ = fatbinary::read(bytes);
    if let Ok(image) = Image::read(bytes) {
        let count = image.globals().len() as u64;
        let addresses: Vec<u64> = (1..=count).map(|number| number << 20).collect();
        let _ = image.link(&addresses);
    }
});
