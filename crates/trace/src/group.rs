//! Raw traces (`.trace`): lines of all warps as a GPU sent them. They are grouped by block and warp.
//!
//! This takes the whole text in memory, so it has a limit; grouped traces have none.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::error::TraceError;
use crate::header::KernelHeader;
use crate::input::{Compression, Input};
use crate::line::{InstructionLine, number};
use crate::reader::short;

/// Most bytes of a raw trace, uncompressed.
const LARGEST: usize = 512 << 20;

/// Reads the instructions of a raw trace; gives them as a grouped one, of the last version without a
/// prefix.
pub(crate) fn group(
    mut input: Input,
    mut header: KernelHeader,
) -> Result<(Input, KernelHeader), TraceError> {
    let mut warps: BTreeMap<(u64, u32), String> = BTreeMap::new();
    let mut blocks: BTreeMap<u64, [u32; 3]> = BTreeMap::new();
    let mut line = InstructionLine::default();
    let mut bytes = 0;
    while let Some(text) = input.next_line()? {
        if text.starts_with('#') {
            continue;
        }
        bytes += text.len();
        let read = read(text, &header, &mut line);
        let place = match read {
            Ok(place) if bytes <= LARGEST => place,
            Ok(_) => {
                return Err(input.malformed(format!(
                    "a raw trace of more than {LARGEST} bytes; group it first with the tracer's post-processing"
                )));
            }
            Err(problem) => return Err(input.malformed(problem)),
        };
        let (number, block, warp) = place;
        blocks.insert(number, block);
        let warp = warps.entry((number, warp)).or_default();
        line.write(warp);
        warp.push('\n');
    }
    let mut grouped = String::with_capacity(bytes);
    for (number, [x, y, z]) in blocks {
        let _ = write!(grouped, "#BEGIN_TB\nthread block = {x},{y},{z}\n");
        for ((_, warp), lines) in warps.range((number, 0)..=(number, u32::MAX)) {
            let _ = write!(grouped, "warp = {warp}\n{lines}");
        }
        grouped.push_str("#END_TB\n");
    }
    header.version = 5;
    header.line_info = false;
    let name = Compression::of(input.name()).1.to_string();
    Ok((Input::of_bytes(&name, grouped.into_bytes())?, header))
}

/// Block number, block and warp of a line, whose instruction goes into `line`.
fn read(
    text: &str,
    header: &KernelHeader,
    line: &mut InstructionLine,
) -> Result<(u64, [u32; 3], u32), String> {
    let words = &mut text.split_ascii_whitespace();
    let mut block = [0; 3];
    for axis in &mut block {
        *axis = number(words, "a block")?;
    }
    let warp: u32 = number(words, "a warp")?;
    let place = header.block_number(block).filter(|_| warp < header.warps());
    let place = place.ok_or_else(|| format!("`{}`: the kernel has no such warp", short(text)))?;
    line.read_words(words, header)?;
    Ok((place, block, warp))
}
