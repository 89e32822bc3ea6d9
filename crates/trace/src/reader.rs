//! The trace of one kernel, read from its beginning to its end: no more than a line is kept.
//!
//! Start reading at [`KernelTrace::next_event`].

use std::path::Path;

use crate::error::TraceError;
use crate::group::group;
use crate::header::{KernelHeader, axes};
use crate::input::{Compression, Input};
use crate::line::InstructionLine;

/// What comes next in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block begins.
    Block([u32; 3]),
    /// What follows is of this warp of the block.
    Warp(u32),
    /// The warp executes an instruction: [`KernelTrace::instruction`].
    Instruction,
    /// The block is complete.
    EndBlock,
}

/// Where the reader is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Outside,
    /// `#BEGIN_TB`, and no number of the block yet.
    Begun,
    Block,
    /// In a warp: whether it said how many instructions it has, and how many of them are to come.
    Warp {
        warp: u32,
        left: Option<u64>,
    },
}

/// The trace of one kernel.
#[derive(Debug)]
pub struct KernelTrace {
    input: Input,
    header: KernelHeader,
    place: Place,
    line: InstructionLine,
}

impl KernelTrace {
    /// Opens the trace of a kernel: blocks after each other (`.traceg`), or as instructions came
    /// (`.trace`).
    ///
    /// # Errors
    /// If it cannot be read, or does not begin with a header.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let input = Input::open(path)?;
        Self::begin(input)
    }

    /// A trace in memory, with the name that it would have as a file.
    ///
    /// # Errors
    /// If it does not begin with a header.
    pub fn of_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, TraceError> {
        Self::begin(Input::of_bytes(name, bytes)?)
    }

    fn begin(mut input: Input) -> Result<Self, TraceError> {
        let header = read_header(&mut input)?;
        let raw = Compression::of(input.name()).1.ends_with(".trace");
        if raw {
            let (input, header) = group(input, header)?;
            return Ok(Self::at(input, header));
        }
        Ok(Self::at(input, header))
    }

    fn at(input: Input, header: KernelHeader) -> Self {
        Self {
            input,
            header,
            place: Place::Outside,
            line: InstructionLine::default(),
        }
    }

    /// The kernel.
    #[must_use]
    pub fn header(&self) -> &KernelHeader {
        &self.header
    }

    /// What the file is called.
    #[must_use]
    pub fn name(&self) -> &str {
        self.input.name()
    }

    /// The instruction that the last event told of.
    #[must_use]
    pub fn instruction(&self) -> &InstructionLine {
        &self.line
    }

    /// An error at the line that was read last.
    #[must_use]
    pub fn malformed(&self, problem: impl Into<String>) -> TraceError {
        self.input.malformed(problem)
    }

    /// What comes next; none at the end of the trace.
    ///
    /// # Errors
    /// If the file cannot be read, or has something in the wrong place.
    pub fn next_event(&mut self) -> Result<Option<Event>, TraceError> {
        loop {
            let Some(line) = self.input.next_line()? else {
                return match self.place {
                    Place::Outside => Ok(None),
                    _ => Err(self.malformed("the trace ends within a thread block")),
                };
            };
            let read = read_line(line, &self.header, &mut self.place, &mut self.line);
            match read {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(problem) => return Err(self.input.malformed(problem)),
            }
        }
    }
}

/// Reads up to the line that describes the format.
fn read_header(input: &mut Input) -> Result<KernelHeader, TraceError> {
    let mut header = KernelHeader::default();
    loop {
        let Some(line) = input.next_line()? else {
            return Err(input.malformed("the trace ends within its header"));
        };
        let read = match line.as_bytes()[0] {
            b'#' => break,
            b'-' => header.read(line),
            _ => Err(format!(
                "`{}`, where a header belongs: lines that begin with - and one that begins with #",
                short(line)
            )),
        };
        read.map_err(|problem| input.malformed(problem))?;
    }
    header.check().map_err(|problem| input.malformed(problem))?;
    Ok(header)
}

fn read_line(
    line: &str,
    header: &KernelHeader,
    place: &mut Place,
    instruction: &mut InstructionLine,
) -> Result<Option<Event>, String> {
    if line == "#BEGIN_TB" {
        if *place != Place::Outside {
            return Err("a thread block begins within another".into());
        }
        *place = Place::Begun;
        return Ok(None);
    }
    if line == "#END_TB" {
        match *place {
            Place::Outside => return Err("a thread block ends that has not begun".into()),
            Place::Begun => return Err("a thread block without a number".into()),
            _ => check_complete(*place)?,
        }
        *place = Place::Outside;
        return Ok(Some(Event::EndBlock));
    }
    if line.starts_with('#') {
        return Ok(None);
    }
    if *place == Place::Outside {
        return Err(format!("`{}` outside of every thread block", short(line)));
    }
    if let Some(value) = assigned(line, "thread block") {
        if *place != Place::Begun {
            return Err("a thread block with two numbers".into());
        }
        let block = axes(value).filter(|block| header.block_number(*block).is_some());
        let block =
            block.ok_or_else(|| format!("`{}`: the grid has no such block", short(line)))?;
        *place = Place::Block;
        return Ok(Some(Event::Block(block)));
    }
    if *place == Place::Begun {
        return Err(format!(
            "`{}`, where `thread block = X,Y,Z` belongs",
            short(line)
        ));
    }
    if let Some(value) = assigned(line, "warp") {
        check_complete(*place)?;
        let warp = value.parse().ok().filter(|warp| *warp < header.warps());
        let warp = warp.ok_or_else(|| format!("`{}`: the block has no such warp", short(line)))?;
        *place = Place::Warp { warp, left: None };
        return Ok(Some(Event::Warp(warp)));
    }
    let Place::Warp { left, .. } = place else {
        return Err(format!("`{}`, where `warp = N` belongs", short(line)));
    };
    if let Some(value) = assigned(line, "insts") {
        let count = value
            .parse()
            .map_err(|_| format!("`{}`: a number belongs there", short(line)))?;
        *left = Some(count);
        return Ok(None);
    }
    match left {
        Some(0) => return Err("more instructions than the warp was said to have".into()),
        Some(left) => *left -= 1,
        None => {}
    }
    instruction.read(line, header)?;
    Ok(Some(Event::Instruction))
}

/// Whether a warp has had all its instructions.
fn check_complete(place: Place) -> Result<(), String> {
    match place {
        Place::Warp {
            warp,
            left: Some(left),
        } if left > 0 => Err(format!("{left} instructions of warp {warp} are missing")),
        _ => Ok(()),
    }
}

/// The value of `key = value`.
fn assigned<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(key)?.trim_start();
    rest.strip_prefix('=').map(str::trim)
}

/// A piece of a line for a message.
pub(crate) fn short(line: &str) -> &str {
    let end = line.char_indices().nth(60).map_or(line.len(), |(at, _)| at);
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    const HEADER: &str = "-kernel name = k\n-grid dim = (2,1,1)\n-block dim = (64,1,1)\n-accelsim tracer version = 4\n\n#traces format = PC mask\n";

    fn listing(name: &str, text: &str) -> String {
        let mut out = String::new();
        let result = (|| {
            let mut trace = KernelTrace::of_bytes(name, text.into())?;
            while let Some(event) = trace.next_event()? {
                match event {
                    Event::Instruction => {
                        let line = trace.instruction();
                        out += &format!(
                            "  {:x} {} {:?}\n",
                            line.pc,
                            line.opcode,
                            line.memory.is_some()
                        );
                    }
                    other => out += &format!("{other:?}\n"),
                }
            }
            Ok::<(), TraceError>(())
        })();
        if let Err(error) = result {
            out += &format!("{error}\n");
        }
        out
    }

    fn check(body: &str, expected: &Expect) {
        expected.assert_eq(&listing("k.traceg", &format!("{HEADER}{body}")));
    }

    #[test]
    fn blocks_warps_and_instructions_come_in_their_order() {
        check(
            "#BEGIN_TB\nthread block = 1,0,0\nwarp = 1\ninsts = 2\n0000 ffffffff 1 R1 MOV 0 0\n0010 1 0 EXIT 0 0\n#END_TB\n",
            &expect![[r#"
                Block([1, 0, 0])
                Warp(1)
                  0 MOV false
                  10 EXIT false
                EndBlock
            "#]],
        );
    }

    #[test]
    fn a_raw_trace_is_grouped() {
        let header = HEADER.replace("= 4", "= 5");
        let body =
            "1 0 0 0 0000 1 0 NOP 0 0 0\n0 0 0 1 0000 1 0 NOP 0 0 0\n1 0 0 0 0010 1 0 EXIT 0 0 0\n";
        let expected = expect![[r#"
            Block([0, 0, 0])
            Warp(1)
              0 NOP false
            EndBlock
            Block([1, 0, 0])
            Warp(0)
              0 NOP false
              10 EXIT false
            EndBlock
        "#]];
        expected.assert_eq(&listing("k.trace", &format!("{header}{body}")));
        let torn = listing(
            "k.trace",
            &format!("{header}{body}2 0 0 0 0000 1 0 NOP 0 0 0\n"),
        );
        assert_eq!(
            torn,
            "k.trace:10: `2 0 0 0 0000 1 0 NOP 0 0 0`: the kernel has no such warp\n"
        );
    }

    #[test]
    fn what_is_in_the_wrong_place_is_named() {
        for (body, expected) in [
            (
                "0000 1 0 NOP 0 0",
                "`0000 1 0 NOP 0 0` outside of every thread block",
            ),
            ("#END_TB", "a thread block ends that has not begun"),
            (
                "#BEGIN_TB\n#BEGIN_TB",
                "a thread block begins within another",
            ),
            (
                "#BEGIN_TB\nwarp = 0",
                "`warp = 0`, where `thread block = X,Y,Z` belongs",
            ),
            (
                "#BEGIN_TB\nthread block = 2,0,0",
                "`thread block = 2,0,0`: the grid has no such block",
            ),
            (
                "#BEGIN_TB\nthread block = 0,0,0\nwarp = 2",
                "`warp = 2`: the block has no such warp",
            ),
            (
                "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = 2\n#END_TB",
                "2 instructions of warp 0 are missing",
            ),
            (
                "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = 0\n0 1 0 NOP 0 0",
                "more instructions than the warp was said to have",
            ),
            (
                "#BEGIN_TB\nthread block = 0,0,0\n",
                "the trace ends within a thread block",
            ),
        ] {
            let found = listing("k.traceg", &format!("{HEADER}{body}"));
            assert!(
                found.ends_with(&format!(": {expected}\n")),
                "{found} instead of {expected}"
            );
        }
        assert_eq!(
            listing("k.traceg", "hello"),
            "k.traceg:1: `hello`, where a header belongs: lines that begin with - and one that begins with #\n"
        );
        assert_eq!(
            listing("k.traceg", "-kernel name = k\n"),
            "k.traceg:2: the trace ends within its header\n"
        );
    }
}
