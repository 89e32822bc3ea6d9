//! Why a program made no CUDA call that we saw.

use object::{Object, ObjectSection, ObjectSymbol};
use std::path::Path;

/// Programs beyond this many bytes are not looked into.
const MAXIMUM_FILE: u64 = 4 << 30;

/// What is known of a program's use of CUDA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traits {
    elf: bool,
    /// It carries device code.
    device_code: bool,
    /// It names the functions of a runtime linked into it.
    symbols: bool,
    /// It loads libraries at all.
    dynamic: bool,
}

/// A sentence about a program that ended without a CUDA call.
pub fn why_no_calls(path: &Path) -> String {
    let program = path.display();
    match look(path) {
        Traits { elf: true, dynamic: false, .. } => format!(
            "{program} is linked without the dynamic loader, so it cannot be given a simulated GPU; \
             link it without -static"
        ),
        Traits { elf: true, device_code: true, symbols: false, .. } => format!(
            "{program} carries CUDA device code, but made no CUDA call that could be seen: its symbols are \
             stripped, so the CUDA runtime inside it cannot be found; build it with `nvcc -cudart shared`, \
             or keep its symbols (no strip, no -s)"
        ),
        _ => format!("{program} made no CUDA call; nothing was simulated"),
    }
}

fn look(path: &Path) -> Traits {
    let Ok(file) = std::fs::File::open(path) else { return Traits::default() };
    if file.metadata().map_or(true, |metadata| metadata.len() > MAXIMUM_FILE) {
        return Traits::default();
    }
    let cache = object::ReadCache::new(file);
    let Ok(file) = object::File::parse(&cache) else { return Traits::default() };
    let section = |name: &str| file.section_by_name(name).is_some();
    Traits {
        elf: true,
        device_code: section(".nvFatBinSegment") || section(".nv_fatbin"),
        symbols: file.symbols().any(|symbol| symbol.name().is_ok_and(|name| name.starts_with("cudaMalloc")))
            || file.dynamic_symbols().any(|symbol| symbol.name().is_ok_and(|name| name.starts_with("cuda"))),
        dynamic: file.sections().any(|section| section.name().is_ok_and(|name| name == ".dynamic")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_program_simply_made_no_call() {
        let path = std::env::current_exe().unwrap();
        assert!(why_no_calls(&path).ends_with("made no CUDA call; nothing was simulated"));
        let traits = look(&path);
        assert!(traits.elf && traits.dynamic && !traits.device_code, "{traits:?}");
        assert_eq!(look(Path::new("/etc/passwd")), Traits::default());
    }
}
