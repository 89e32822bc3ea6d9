//! What a trace says of its kernel before the first instruction.

use std::fmt;

/// Format versions that are read; the last is written.
pub const VERSIONS: std::ops::RangeInclusive<u32> = 1..=5;

/// Most blocks of a grid, as CUDA has them: 2^31 - 1 along x, 65535 along y and z.
const LARGEST_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// Most threads of a block.
const MOST_THREADS: u64 = 1024;

/// A kernel and how it was launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelHeader {
    /// Mangled name.
    pub name: String,
    /// Its number in the program, from 1.
    pub id: u64,
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Compute capability of the machine code, e.g. 90.
    pub binary_version: u32,
    /// The stream.
    pub stream: u64,
    /// Where generic addresses of shared memory begin; 0 if that is not known.
    pub shared_base: u64,
    /// Where generic addresses of local memory begin; 0 if that is not known.
    pub local_base: u64,
    /// What took the trace.
    pub tool: String,
    /// Version of the format.
    pub version: u32,
    /// Whether lines begin with the line of the source.
    pub line_info: bool,
}

impl Default for KernelHeader {
    fn default() -> Self {
        Self {
            name: String::new(),
            id: 0,
            grid: [0; 3],
            block: [0; 3],
            shared: 0,
            registers: 0,
            binary_version: 0,
            stream: 0,
            shared_base: 0,
            local_base: 0,
            tool: String::new(),
            version: *VERSIONS.start(),
            line_info: false,
        }
    }
}

impl KernelHeader {
    /// Takes one line in: `-key = value`. Keys that nobody knows are passed over, as tools add some.
    ///
    /// # Errors
    /// A sentence, if the value is not what its key needs.
    pub fn read(&mut self, line: &str) -> Result<(), String> {
        let (key, value) = line
            .trim_start_matches('-')
            .split_once('=')
            .ok_or_else(|| format!("`{line}`: a line of a header is -KEY = VALUE"))?;
        let (key, value) = (key.trim(), value.trim());
        let wrong = |expected: &str| format!("-{key} = {value}: {expected} was expected");
        let number = || value.parse::<u32>().map_err(|_| wrong("a number"));
        let address = || hexadecimal(value).ok_or_else(|| wrong("an address such as 0x7f00"));
        let axes = || axes(value).ok_or_else(|| wrong("three numbers such as (16,1,1)"));
        match key {
            "kernel name" => self.name = value.into(),
            "kernel id" => self.id = value.parse().map_err(|_| wrong("a number"))?,
            "grid dim" => self.grid = axes()?,
            "block dim" => self.block = axes()?,
            "shmem" => self.shared = number()?,
            "nregs" => self.registers = number()?,
            "binary version" => self.binary_version = number()?,
            "cuda stream id" => self.stream = value.parse().map_err(|_| wrong("a number"))?,
            "shmem base_addr" => self.shared_base = address()?,
            "local mem base_addr" => self.local_base = address()?,
            "nvbit version" => self.tool = value.into(),
            "accelsim tracer version" => {
                let major = value.split('.').next().unwrap_or_default();
                self.version = major.parse().map_err(|_| wrong("a number"))?;
                if !VERSIONS.contains(&self.version) {
                    let (first, last) = (VERSIONS.start(), VERSIONS.end());
                    return Err(wrong(&format!("a version from {first} to {last}")));
                }
            }
            "enable lineinfo" => self.line_info = number()? != 0,
            _ => {}
        }
        Ok(())
    }

    /// Whether a GPU could have launched it.
    ///
    /// # Errors
    /// A sentence, if not.
    pub fn check(&self) -> Result<(), String> {
        let grid = self.grid.iter().zip(LARGEST_GRID);
        if grid
            .into_iter()
            .any(|(found, most)| *found == 0 || *found > most)
        {
            return Err(format!(
                "-grid dim = {:?}: no such grid can be launched",
                self.grid
            ));
        }
        let threads: u64 = self
            .block
            .iter()
            .fold(1, |all, axis| all.saturating_mul(u64::from(*axis)));
        if threads == 0 || threads > MOST_THREADS {
            return Err(format!(
                "-block dim = {:?}: a block has 1 to {MOST_THREADS} threads",
                self.block
            ));
        }
        Ok(())
    }

    /// Blocks of the grid.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|axis| u64::from(*axis)).product()
    }

    /// Threads of a block.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Warps of a block.
    #[must_use]
    pub fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    /// The number of a block, along x first; none if the grid has no such block.
    #[must_use]
    pub fn block_number(&self, block: [u32; 3]) -> Option<u64> {
        let [x, y, _] = self.grid.map(u64::from);
        let inside = block
            .iter()
            .zip(self.grid)
            .all(|(place, axis)| *place < axis);
        let [bx, by, bz] = block.map(u64::from);
        inside.then(|| bx + x * (by + y * bz))
    }
}

impl fmt::Display for KernelHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let triple = |axes: [u32; 3]| format!("({},{},{})", axes[0], axes[1], axes[2]);
        writeln!(f, "-kernel name = {}", self.name)?;
        writeln!(f, "-kernel id = {}", self.id)?;
        writeln!(f, "-grid dim = {}", triple(self.grid))?;
        writeln!(f, "-block dim = {}", triple(self.block))?;
        writeln!(f, "-shmem = {}", self.shared)?;
        writeln!(f, "-nregs = {}", self.registers)?;
        writeln!(f, "-binary version = {}", self.binary_version)?;
        writeln!(f, "-cuda stream id = {}", self.stream)?;
        writeln!(f, "-shmem base_addr = {:#018x}", self.shared_base)?;
        writeln!(f, "-local mem base_addr = {:#018x}", self.local_base)?;
        writeln!(f, "-nvbit version = {}", self.tool)?;
        writeln!(f, "-accelsim tracer version = {}", self.version)?;
        writeln!(f, "-enable lineinfo = {}", u8::from(self.line_info))
    }
}

/// A number in hexadecimal, with or without `0x`.
pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// Three numbers between commas, in brackets or not.
pub(crate) fn axes(text: &str) -> Option<[u32; 3]> {
    let inner = text.trim_start_matches('(').trim_end_matches(')');
    let mut numbers = inner.split(',').map(|part| part.trim().parse().ok());
    let axes = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(axes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<KernelHeader, String> {
        let mut header = KernelHeader::default();
        text.lines().try_for_each(|line| header.read(line))?;
        header.check()?;
        Ok(header)
    }

    #[test]
    fn what_is_written_is_read() {
        let header = KernelHeader {
            name: "_Z3addPfS_".into(),
            id: 7,
            grid: [4, 2, 1],
            block: [128, 1, 1],
            shared: 1024,
            registers: 32,
            binary_version: 90,
            stream: 3,
            shared_base: 0x7f00_0000,
            local_base: 0x7e00_0000,
            tool: "1.7".into(),
            version: 5,
            line_info: true,
        };
        assert_eq!(read(&header.to_string()), Ok(header.clone()));
        assert_eq!(
            (header.blocks(), header.threads(), header.warps()),
            (8, 128, 4)
        );
        assert_eq!(header.block_number([1, 1, 0]), Some(5));
        assert_eq!(header.block_number([1, 2, 0]), None);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (text, expected) in [
            ("-grid dim = (1,1)", "three numbers such as (16,1,1)"),
            ("-accelsim tracer version = 6", "a version from 1 to 5"),
            (
                "-grid dim = (1,1,1)\n-block dim = (1024,2,1)",
                "1 to 1024 threads",
            ),
            ("-block dim = (32,1,1)", "no such grid"),
            ("-nregs = many", "a number was expected"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
