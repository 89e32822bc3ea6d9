//! Cubins and fat binaries: what is read from real ones, and that broken ones do no harm.

use lockstep_frontend::sass::{
    Cubin, Error, Image,
    disassemble::{DisassembleError, Summary, disassemble},
    fatbinary::{self, Kind},
    select,
};
use proptest::prelude::*;

const SM_70: &[u8] = include_bytes!("sass/sample.sm_70.cubin");
const SM_80: &[u8] = include_bytes!("sass/sample.sm_80.cubin");
const SM_90: &[u8] = include_bytes!("sass/sample.sm_90.cubin");
const ZSTD: &[u8] = include_bytes!("sass/sample.zstd.fatbin");
const LZ4: &[u8] = include_bytes!("sass/sample.lz4.fatbin");
const IMAGES: [&[u8]; 5] = [SM_70, SM_80, SM_90, ZSTD, LZ4];

fn listing(bytes: &[u8]) -> (String, Summary) {
    let mut out = Vec::new();
    let summary = disassemble(bytes, &mut out).expect("a good image");
    (String::from_utf8(out).expect("text"), summary)
}

#[test]
fn both_header_dialects_name_their_architecture() {
    for (bytes, architecture) in [(SM_70, 70), (SM_80, 80), (SM_90, 90)] {
        assert_eq!(
            Cubin::read(bytes).expect("a cubin").architecture,
            architecture
        );
    }
}

#[test]
fn a_cubin_says_what_it_was_compiled_for() {
    let virtual_architecture =
        |bytes: &[u8]| Cubin::read(bytes).expect("a cubin").virtual_architecture;
    for (bytes, architecture) in [(SM_70, 70), (SM_80, 80), (SM_90, 90)] {
        assert_eq!(virtual_architecture(bytes), architecture);
    }
    // As `nvcc -gencode arch=compute_75,code=sm_90` writes it.
    let owner = b"NVIDIA Corp\0\x02\0";
    let place = SM_90
        .windows(owner.len())
        .rposition(|window| window == owner);
    let mut other = SM_90.to_vec();
    other[place.expect("a note") + owner.len()] = 75;
    assert_eq!(virtual_architecture(&other), 75);
    // A note without an end says nothing.
    other[place.expect("a note") - 12] = 0xff;
    assert_eq!(virtual_architecture(&other), 90);
}

#[test]
fn a_kernel_has_its_registers_parameters_and_shared_memory() {
    for (bytes, base) in [(SM_70, 0x160), (SM_80, 0x160), (SM_90, 0x210)] {
        let image = Image::read(bytes).expect("a cubin");
        let addresses: Vec<u64> = (1..=image.globals().len() as u64)
            .map(|n| n << 32)
            .collect();
        let module = image.link(&addresses).expect("all symbols are known");
        let kernel = module
            .kernels
            .iter()
            .find(|kernel| kernel.name == "everything")
            .expect("the kernel");
        assert!(kernel.registers >= 8, "{} registers", kernel.registers);
        assert_eq!(kernel.shared_bytes, 128);
        assert_eq!(kernel.parameter_base, base);
        assert_eq!(kernel.max_threads, 96);
        let parameters: Vec<_> = kernel
            .parameters
            .iter()
            .map(|p| (p.offset, p.size))
            .collect();
        assert_eq!(parameters, [(0, 24), (24, 1), (32, 8)]);
        assert!(module.kernels.iter().any(|kernel| kernel.name == "nothing"));
    }
}

#[test]
fn variables_come_with_their_first_values() {
    for bytes in [SM_70, SM_80, SM_90] {
        let image = Image::read(bytes).expect("a cubin");
        let names: Vec<_> = image
            .globals()
            .iter()
            .map(|g| (g.name.as_str(), g.size))
            .collect();
        assert!(names.contains(&("scratch", 256)) && names.contains(&("counters", 16)));
        assert!(names.contains(&("table", 20)), "{names:?}");
        let addresses: Vec<u64> = (1..=image.globals().len() as u64)
            .map(|n| n << 32)
            .collect();
        let module = image.link(&addresses).expect("all symbols are known");
        let counters = image.globals().iter().position(|g| g.name == "counters");
        let address = addresses[counters.expect("the variable")];
        let initial = module.initial.iter().find(|(at, _)| *at == address);
        assert_eq!(
            initial.map(|(_, bytes)| bytes.as_slice()),
            Some([1u32, 2, 3, 4].map(u32::to_le_bytes).concat().as_slice())
        );
    }
}

#[test]
fn containers_unpack_and_the_best_image_is_chosen() {
    for bytes in [ZSTD, LZ4] {
        let entries = fatbinary::list(bytes).expect("a container");
        let kinds: Vec<_> = entries
            .iter()
            .map(|entry| (entry.kind, entry.architecture))
            .collect();
        assert_eq!(kinds, [(Kind::Cubin, 80), (Kind::Ptx, 80)]);
        let cubin = select::cubin(&entries, 86).expect("sm_80 code runs on sm_86");
        assert_eq!(
            listing(&cubin.unpack().expect("it unpacks")).0,
            listing(SM_80).0
        );
        assert!(
            select::cubin(&entries, 90).is_none(),
            "sm_80 code does not run on sm_90"
        );
        assert_eq!(
            select::ptx(&entries, 90).map(|(entry, newer)| (entry.architecture, newer)),
            Some((80, false))
        );
    }
}

#[test]
fn a_listing_shows_every_instruction_and_what_will_be_patched() {
    for bytes in [SM_70, SM_80, SM_90] {
        let (text, summary) = listing(bytes);
        assert_eq!(
            (summary.images, summary.unknown, summary.skipped),
            (1, 0, 0)
        );
        assert!(summary.instructions > 60);
        assert_eq!(text.matches(" ;").count() as u64, summary.instructions);
        assert!(text.contains("everything:") && text.contains("EXIT ;"));
    }
    // Let the relocations of bank 4 apply to code instead.
    let cubin = Cubin::read(SM_80).expect("a cubin");
    let index = |name| cubin.section(name).expect("the section");
    let mut bytes = SM_80.to_vec();
    let table = u64::from_le_bytes(bytes[0x28..0x30].try_into().expect("eight bytes")) as usize;
    bytes[table + 64 * index(".rel.nv.constant4") + 44] = index(".text.everything") as u8;
    let (text, _) = listing(&bytes);
    assert!(
        text.contains(" ;  // R_CUDA_64 scratch  // R_CUDA_64 operations\n"),
        "{text}"
    );
    let (text, _) = listing(ZSTD);
    assert!(text.contains("// PTX for sm_80, not listed"));
}

#[test]
fn other_files_are_named_as_such() {
    let error = disassemble(b"#!/bin/sh\n", &mut Vec::new()).expect_err("a script");
    assert!(matches!(error, DisassembleError::Unknown(_)));
    assert!(
        error.to_string().ends_with(
            "expected is a cubin, a fat binary, or a program or library that nvcc built"
        )
    );
    let mut newer = SM_90.to_vec();
    // The architecture is in bits 8 to 15 of e_flags.
    newer[0x31] = 100;
    assert!(matches!(
        Image::read(&newer),
        Err(Error::UnknownArchitecture { architecture: 100 })
    ));
}

#[test]
fn sections_that_claim_the_same_bytes_are_refused() {
    let mut bytes = SM_80.to_vec();
    let start = usize::from(u16::from_le_bytes([bytes[0x3c], bytes[0x3d]]));
    let table = u64::from_le_bytes(bytes[0x28..0x30].try_into().expect("eight bytes")) as usize;
    // Every section from the fourth on becomes the whole file.
    for index in 3..start {
        let header = table + 64 * index;
        let size = bytes.len() as u64;
        bytes[header + 4..header + 8].copy_from_slice(&1u32.to_le_bytes());
        bytes[header + 24..header + 32].copy_from_slice(&0u64.to_le_bytes());
        bytes[header + 32..header + 40].copy_from_slice(&size.to_le_bytes());
    }
    let error = Cubin::read(&bytes).expect_err("overlapping sections");
    assert!(
        error.to_string().contains("far more bytes than the file"),
        "{error}"
    );
}

/// Everything that reads bytes, to the end.
fn read_all(bytes: &[u8]) {
    let _ = disassemble(bytes, &mut std::io::sink());
    let _ = fatbinary::read(bytes);
    if let Ok(image) = Image::read(bytes) {
        let addresses: Vec<u64> = (1..=image.globals().len() as u64)
            .map(|n| n << 20)
            .collect();
        let _ = image.link(&addresses);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..600), magic in 0..4usize) {
        let mut with_magic = [&b""[..], b"\x7fELF\x02\x01\x01", b"\x50\xed\x55\xba\x01\0\x10\0", b"\xb1\x43\x62\x46"][magic].to_vec();
        with_magic.extend(bytes);
        read_all(&with_magic);
    }

    #[test]
    fn broken_images_do_no_harm(
        image in 0..IMAGES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let mut bytes = IMAGES[image].to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        read_all(&bytes);
    }

    /// Headers decide most: change those more often.
    #[test]
    fn broken_headers_do_no_harm(
        image in 0..3usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = IMAGES[image].to_vec();
        let table = u64::from_le_bytes(bytes[0x28..0x30].try_into().expect("eight bytes")) as usize;
        let headers: Vec<usize> = (0..64).chain(table..bytes.len()).collect();
        for (at, value) in changes {
            let at = headers[at.index(headers.len())];
            bytes[at] = value;
        }
        read_all(&bytes);
    }
}

/// Bytes of a section in the file, by its name.
fn place(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    let number = |at: usize| {
        let word = bytes[at..at + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(word) as usize
    };
    let cubin = Cubin::read(bytes).expect("a cubin");
    let header = number(0x28) + 64 * cubin.section(name).expect("the section");
    let start = number(header + 24);
    start..start + number(header + 32)
}

/// An address for each variable.
fn addresses_of(image: &Image) -> Vec<u64> {
    (1..=image.globals().len() as u64)
        .map(|n| n << 32)
        .collect()
}

fn linked(bytes: &[u8]) -> Result<lockstep_isa::Module, Error> {
    let image = Image::read(bytes)?;
    image.link(&addresses_of(&image))
}

/// One word that no table knows does not refuse the module: it faults where it is executed.
#[test]
fn an_unknown_encoding_faults_where_it_stands() {
    let mut bytes = SM_90.to_vec();
    let code = place(&bytes, ".text.everything");
    let word = code.start + 0x30;
    bytes[word..word + 16].fill(0xff);
    let module = linked(&bytes).expect("it links");
    let illegal: Vec<&str> = module
        .code
        .iter()
        .filter_map(|one| match &one.operation {
            lockstep_isa::Operation::Illegal(sentence) => Some(&**sentence),
            _ => None,
        })
        .collect();
    assert_eq!(
        illegal,
        [
            "everything+0x30: unknown encoding 0xffffffffffffffffffffffffffffffff for sm_90; \
          `cuobjdump -sass` of the program, or `nvdisasm --binary SM90` of these 16 bytes, says what \
          it is; run with `--frontend ptx` if the program carries PTX"
        ]
    );
    let unknown = |bytes: &[u8]| {
        let image = Image::read(bytes).expect("a cubin");
        let addresses = addresses_of(&image);
        image.unknown_encoding(&addresses).expect("it links")
    };
    assert_eq!(unknown(&bytes).as_deref(), Some(illegal[0]));
    assert_eq!(unknown(SM_90), None);
}

/// Figures that no GPU has: the largest that their fields can hold.
#[test]
fn headers_that_claim_too_much_are_refused() {
    let attribute = |id: u8, word: usize| {
        let bytes = SM_90.to_vec();
        let info = place(&bytes, ".nv.info");
        let at = info.clone().step_by(4).find(|at| bytes[*at + 1] == id);
        (bytes, at.expect("the attribute") + 4 + 4 * word)
    };
    // Registers of every kernel.
    let (mut bytes, at) = attribute(0x2f, 1);
    bytes[at..at + 4].copy_from_slice(&256u32.to_le_bytes());
    let error = linked(&bytes).expect_err("256 registers").to_string();
    assert!(
        error.contains("has 256 registers, and 255 are the most"),
        "{error}"
    );
    // A constant variable that lies gigabytes behind its bank made every launch take as much.
    let mut bytes = SM_90.to_vec();
    let cubin = Cubin::read(&bytes).expect("a cubin");
    let table = cubin.symbols.iter().position(|one| one.name == "table");
    let symbols = place(&bytes, ".symtab");
    let value = symbols.start + 24 * table.expect("the variable") + 8;
    bytes[value..value + 4].copy_from_slice(&0xf000_0000u32.to_le_bytes());
    let error = linked(&bytes).expect_err("far outside").to_string();
    assert!(
        error.contains("`table` has 20 bytes from 0xf0000000"),
        "{error}"
    );
}

/// `vprintf` under another name is a function that nobody defines: the module links, and only a call ends.
#[test]
fn a_function_that_is_defined_nowhere_stops_who_calls_it() {
    let mut bytes = SM_90.to_vec();
    let places: Vec<usize> = (0..bytes.len() - 7)
        .filter(|at| &bytes[*at..*at + 7] == b"vprintf")
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] = b'x';
    }
    let image = Image::read(&bytes).expect("a cubin");
    let module = image.link(&addresses_of(&image)).expect("it links");
    let (index, _) = module
        .functions
        .iter()
        .find(|(_, name)| name == "xprintf")
        .expect("it has a place");
    let operation = &module.code[*index as usize].operation;
    let lockstep_isa::Operation::Unsupported(sentence) = operation else {
        panic!("{operation:?} does not stop a kernel");
    };
    assert!(sentence.contains("xprintf"), "{sentence}");
}
