//! Rows for registers.
//!
//! A thread's view is enough: rows hold a word a lane, writes touch only the lanes that execute,
//! so that two registers which are never alive at once in any thread may share a row even if
//! lanes are apart. Intervals are from the first to the last place where a register is alive, in
//! the order of the list; a linear scan hands out the lowest free rows.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_isa::Operation;

use super::{
    flat::Flat,
    flow::Graph,
    ir::{Body, FlagId, Mark, Place, RegisterId, Use},
};

/// Where everything went.
#[derive(Debug, Default)]
pub struct Allocation {
    /// First row of each register.
    pub rows: Vec<u16>,
    /// Predicate register of each predicate.
    pub flags: Vec<u16>,
    /// Rows in use.
    pub row_count: u32,
    /// Predicate registers in use.
    pub flag_count: u32,
}

/// One appearance of a register or predicate.
#[derive(Clone, Copy, Debug)]
struct Event {
    id: u32,
    block: u32,
    place: u32,
    write: bool,
    /// The write leaves nothing of the old value.
    kills: bool,
}

/// From the first to the last half-place where something is alive: reads happen at `2 × place`,
/// writes at `2 × place + 1`.
#[derive(Clone, Copy, Debug)]
struct Interval {
    id: u32,
    start: u32,
    end: u32,
    width: u16,
}

/// What lives across a call.
#[derive(Debug, Default)]
pub struct Alive {
    /// Registers, ascending.
    pub registers: Vec<RegisterId>,
    /// Predicates, ascending.
    pub flags: Vec<FlagId>,
}

/// For each marked call what is written before it and read after it, in the order of the list.
pub fn alive_across_marks(body: &Body<'_>, graph: &Graph<'_>) -> BTreeMap<u32, Alive> {
    let flat = Flat::new(graph.clone());
    let (registers, flags) = all_intervals(body, &flat);
    let mut found = BTreeMap::new();
    for (place, code) in flat.code.iter().enumerate() {
        if let Some(Mark::Save(call)) = code.mark {
            let half = 2 * place as u32;
            let across = |list: &[Interval]| -> Vec<u32> {
                list.iter()
                    .filter(|interval| interval.start <= half && interval.end > half)
                    .map(|interval| interval.id)
                    .collect()
            };
            let alive = Alive {
                registers: across(&registers),
                flags: across(&flags),
            };
            found.insert(call, alive);
        }
    }
    found
}

/// Intervals of all registers and of all predicates, by their numbers.
fn all_intervals(body: &Body<'_>, flat: &Flat<'_>) -> (Vec<Interval>, Vec<Interval>) {
    let predecessors = predecessors(flat);
    let mut registers = Vec::new();
    let mut flags = Vec::new();
    for (index, span) in flat.blocks.iter().enumerate() {
        for place in span.start..span.end {
            collect(body, flat, index, place, &mut registers, &mut flags);
        }
    }
    let width = |id: u32| body.registers[id as usize];
    (
        intervals(flat, &predecessors, registers, width),
        intervals(flat, &predecessors, flags, |_| 1),
    )
}

/// Allocates the rows and predicates of a function.
pub fn allocate(body: &Body<'_>, flat: &Flat<'_>) -> Allocation {
    let (rows, predicates) = all_intervals(body, flat);
    let mut allocation = Allocation {
        rows: vec![0; body.registers.len()],
        flags: vec![0; body.flags as usize],
        ..Allocation::default()
    };
    allocation.row_count = scan(rows, &mut allocation.rows);
    allocation.flag_count = scan(predicates, &mut allocation.flags);
    allocation
}

fn predecessors(flat: &Flat<'_>) -> Vec<Vec<u32>> {
    let mut predecessors = vec![Vec::new(); flat.blocks.len()];
    for (index, span) in flat.blocks.iter().enumerate() {
        for successor in &span.successors {
            predecessors[*successor].push(index as u32);
        }
    }
    predecessors
}

fn collect(
    body: &Body<'_>,
    flat: &Flat<'_>,
    block: usize,
    place: usize,
    registers: &mut Vec<Event>,
    flags: &mut Vec<Event>,
) {
    let code = &flat.code[place];
    let event = |id: u32, write: bool, kills: bool| Event {
        id,
        block: block as u32,
        place: place as u32,
        write,
        kills: kills && code.unguarded(),
    };
    for used in &code.uses {
        if let Place::Virtual { register, word } = used.place {
            let rows = body.registers[register as usize];
            let whole = word == 0
                && (used.rows >= rows
                    || used.write && fills(flat, place, register, used.rows, rows));
            registers.push(event(register, used.write, whole));
        }
    }
    for (flag, write) in &code.flags {
        flags.push(event(*flag, *write, true));
    }
}

/// Whether the instructions that follow write the rest of a register, word by word.
fn fills(flat: &Flat<'_>, place: usize, register: RegisterId, mut word: u16, rows: u16) -> bool {
    let mut next = place + 1;
    while word < rows {
        let writes = flat
            .code
            .get(next)
            .filter(|code| code.unguarded())
            .and_then(|code| {
                let of_it =
                    |used: &&Use| used.write && used.place == Place::Virtual { register, word };
                code.uses.iter().find(of_it)
            });
        match writes {
            Some(used) => word += used.rows,
            None => return false,
        }
        next += 1;
    }
    true
}

/// Finds where each register is alive: from every read back to the writes that it may see.
fn intervals(
    flat: &Flat<'_>,
    predecessors: &[Vec<u32>],
    mut events: Vec<Event>,
    width: impl Fn(u32) -> u16,
) -> Vec<Interval> {
    // Within a place reads come before writes.
    events.sort_by_key(|event| (event.id, event.place, event.write));
    let mut found = Vec::new();
    let mut visited = vec![u32::MAX; flat.blocks.len()];
    for group in events.chunk_by(|a, b| a.id == b.id) {
        let id = group[0].id;
        let mut interval = Interval {
            id,
            start: u32::MAX,
            end: 0,
            width: width(id),
        };
        let mut work = Vec::new();
        for in_block in group.chunk_by(|a, b| a.block == b.block) {
            let mut killed = false;
            for event in in_block {
                let half = 2 * event.place + u32::from(event.write);
                // What memory accesses and calls read must outlive what they write.
                let slow = !matches!(
                    flat.code[event.place as usize].instruction.operation,
                    Operation::Compute(_)
                );
                interval.start = interval.start.min(half);
                interval.end = interval.end.max(half + u32::from(slow && !event.write));
                if event.write {
                    killed |= event.kills;
                } else if !killed {
                    work.push(event.block);
                }
            }
        }
        // Alive at the start of these blocks, and so at the end of what comes before them.
        let entered: Vec<u32> = std::mem::take(&mut work);
        let mut stack = Vec::new();
        for block in entered {
            if std::mem::replace(&mut visited[block as usize], id) != id {
                stack.push(block);
            }
        }
        while let Some(block) = stack.pop() {
            interval.start = interval
                .start
                .min(2 * flat.blocks[block as usize].start as u32);
            for before in &predecessors[block as usize] {
                let end = flat.blocks[*before as usize].end as u32;
                interval.end = interval.end.max((2 * end).saturating_sub(1));
                let in_block = group.partition_point(|event| event.block < *before);
                let kills = group[in_block..]
                    .iter()
                    .take_while(|event| event.block == *before)
                    .any(|event| event.kills && event.write);
                if !kills && std::mem::replace(&mut visited[*before as usize], id) != id {
                    stack.push(*before);
                }
            }
        }
        found.push(interval);
    }
    found
}

/// Hands out the lowest free rows, in the order in which intervals begin; gives how many it took.
fn scan(mut intervals: Vec<Interval>, places: &mut [u16]) -> u32 {
    intervals.sort_by_key(|interval| (interval.start, interval.id));
    let mut free: BTreeSet<u32> = BTreeSet::new();
    let mut active: BTreeSet<(u32, u32, u16)> = BTreeSet::new();
    let mut top = 0;
    for interval in intervals {
        while let Some((end, row, width)) = active.first().copied()
            && end < interval.start
        {
            active.pop_first();
            free.extend(row..row + u32::from(width));
        }
        let width = u32::from(interval.width);
        let row = take(&mut free, &mut top, width);
        places[interval.id as usize] = row.min(u32::from(u16::MAX)) as u16;
        active.insert((interval.end, row, interval.width));
    }
    top
}

/// The first run of `width` free rows, growing at the top if there is none.
fn take(free: &mut BTreeSet<u32>, top: &mut u32, width: u32) -> u32 {
    let mut start = None;
    let mut length = 0;
    for row in free.iter().copied() {
        match start {
            Some(first) if row == first + length => length += 1,
            _ => {
                start = Some(row);
                length = 1;
            }
        }
        if length == width {
            break;
        }
    }
    let first = match start {
        Some(first) if length == width => first,
        // A run that ends at the top may grow beyond it.
        Some(first) if first + length == *top => first,
        _ => *top,
    };
    for row in first..first + width {
        free.remove(&row);
    }
    *top = (*top).max(first + width);
    first
}
