//! The tables of a report.

use crate::document::{Block, Cell, Grid};
use crate::kernel::KernelReport;
use crate::memory::RunMemory;
use lockstep_run_folder::Launch;
use lockstep_run_folder::Line;
use lockstep_text::Align::{Left, Right};
use lockstep_text::names;
use lockstep_text::numbers::{
    bandwidth, bytes, duration, group, known, percent, plural, rounded, shape,
};

/// Launches that a page lists.
const MAXIMUM_LAUNCHES: usize = 5000;
/// Reasons to wait for each kernel.
const MAXIMUM_REASONS: usize = 4;

/// A kernel's number and name, which begin every row.
fn first(number: usize, kernel: &KernelReport) -> Vec<Cell> {
    let name = Cell::from(kernel.name.as_str()).hint(&kernel.full_name);
    vec![(number + 1).to_string().into(), name]
}

/// A table with a row a kernel.
fn by_kernel<'kernel>(
    kernels: impl IntoIterator<Item = &'kernel KernelReport>,
    columns: &[(&'static str, lockstep_text::Align)],
    cells: impl Fn(&KernelReport) -> Option<Vec<Cell>>,
) -> Grid {
    let mut grid = Grid::new(&[&[("#", Right), ("kernel", Left)], columns].concat());
    for (number, kernel) in kernels.into_iter().enumerate() {
        if let Some(cells) = cells(kernel) {
            grid.rows.push([first(number, kernel), cells].concat());
        }
    }
    grid
}

pub fn time(kernels: &[KernelReport]) -> Grid {
    let columns = [
        ("time", Right),
        ("share", Right),
        ("launches", Right),
        ("mean", Right),
        ("cycles a launch", Right),
        ("grid", Right),
        ("block", Right),
    ];
    by_kernel(kernels, &columns, |kernel| {
        let cycles = kernel.counters.get("cycles").copied();
        let more = if kernel.shapes > 1 { " …" } else { "" };
        Some(vec![
            known(kernel.time_ns, duration).into(),
            Cell::from(known(kernel.time_share, percent)).bar(kernel.time_share),
            group(kernel.launches).into(),
            known(kernel.mean_ns, duration).into(),
            known(cycles, |cycles| group(cycles / kernel.launches.max(1))).into(),
            (shape(kernel.grid) + more).into(),
            (shape(kernel.block) + more).into(),
        ])
    })
}

pub fn stalls(kernels: &[KernelReport]) -> Grid {
    by_kernel(kernels, &[("cycles of warps", Left)], |kernel| {
        let reasons: Vec<String> = kernel
            .stalls
            .iter()
            .take(MAXIMUM_REASONS)
            .map(|stall| format!("{} {}", stall.name.replace('_', " "), percent(stall.share)))
            .collect();
        (!reasons.is_empty()).then(|| vec![reasons.join(", ").into()])
    })
}

pub fn hottest(lines: &[Line]) -> Grid {
    let mut grid = Grid::new(&[
        ("share", Right),
        ("issued", Right),
        ("function", Left),
        ("at", Right),
        ("instruction", Left),
        ("source", Left),
        ("warps before it", Left),
    ]);
    for line in lines {
        let reasons = line.stalls.iter().take(MAXIMUM_REASONS / 2);
        let reasons: Vec<String> = reasons
            .map(|(name, share)| format!("{} {}", name.replace('_', " "), percent(*share)))
            .collect();
        // A path is long, and its end says more.
        let source = line.source.rsplit('/').next().unwrap_or_default();
        grid.rows.push(vec![
            Cell::from(percent(line.share)).bar(Some(line.share)),
            group(line.issued).into(),
            Cell::from(line.name.as_str()).hint(&line.function),
            format!("{:#x}", line.offset).into(),
            line.instruction.as_str().into(),
            Cell::from(source).hint(&line.source),
            reasons.join(", ").into(),
        ]);
    }
    grid
}

pub fn bounds(kernels: &[KernelReport]) -> Grid {
    let columns = [
        ("busiest", Left),
        ("busy", Right),
        ("next", Left),
        ("busy", Right),
        ("inst/s", Right),
        ("inst/B DRAM", Right),
        ("inst/B L2", Right),
        ("of roof", Right),
        ("roof", Left),
    ];
    by_kernel(kernels, &columns, |kernel| {
        let mut cells: Vec<Cell> = Vec::new();
        for place in 0..2 {
            let bound = kernel.bounds.get(place);
            let share = bound.map(|bound| bound.share);
            cells.push(known(bound, |bound| bound.resource.to_string()).into());
            cells.push(Cell::from(known(share, percent)).bar(share));
        }
        let roof = kernel.roofline.as_ref();
        let intensity = |value: Option<f64>| known(value, |value| format!("{value:.3}"));
        cells.push(known(roof, |roof| rounded(roof.inst_per_second)).into());
        cells.push(intensity(roof.and_then(|roof| roof.inst_per_dram_byte)).into());
        cells.push(intensity(roof.and_then(|roof| roof.inst_per_l2_byte)).into());
        let share = roof.map(|roof| roof.of_roof);
        cells.push(Cell::from(known(share, percent)).bar(share));
        cells.push(known(roof, |roof| roof.roof_of.to_string()).into());
        (!kernel.bounds.is_empty()).then_some(cells)
    })
}

pub fn occupancy(kernels: &[KernelReport]) -> Grid {
    let columns = [
        ("registers", Right),
        ("shared", Right),
        ("blocks/SM", Right),
        ("possible", Right),
        ("achieved", Right),
        ("bounded by", Left),
        ("waves", Right),
        ("SMs active", Right),
    ];
    by_kernel(kernels, &columns, |kernel| {
        let occupancy = kernel.occupancy.as_ref()?;
        Some(vec![
            occupancy.registers.to_string().into(),
            bytes(occupancy.shared_bytes as f64).into(),
            occupancy.blocks_per_sm.to_string().into(),
            Cell::from(percent(occupancy.theoretical)).bar(Some(occupancy.theoretical)),
            Cell::from(known(occupancy.achieved, percent)).bar(occupancy.achieved),
            occupancy.bounded_by.join(", ").into(),
            format!("{:.2}", occupancy.waves).into(),
            Cell::from(known(kernel.sm_activity, percent)).bar(kernel.sm_activity),
        ])
    })
}

pub fn memory(kernels: &[KernelReport]) -> Grid {
    let columns = [
        ("L1 hits", Right),
        ("sectors/access", Right),
        ("L2 bytes", Right),
        ("L2 hits", Right),
        ("DRAM bytes", Right),
        ("DRAM rate", Right),
        ("of peak", Right),
    ];
    by_kernel(kernels, &columns, |kernel| {
        let memory = &kernel.memory;
        Some(vec![
            known(memory.l1_hit_rate, percent).into(),
            known(memory.sectors_per_access, |sectors| format!("{sectors:.1}")).into(),
            known(memory.l2_bytes, bytes).into(),
            known(memory.l2_hit_rate, percent).into(),
            known(memory.dram_bytes, bytes).into(),
            known(memory.dram_bytes_per_second, bandwidth).into(),
            Cell::from(known(memory.dram_of_peak, percent)).bar(memory.dram_of_peak),
        ])
    })
}

pub fn instructions(kernels: &[KernelReport]) -> Grid {
    let columns = [
        ("warp instructions", Right),
        ("lanes", Right),
        ("mix", Left),
    ];
    by_kernel(kernels, &columns, |kernel| {
        let executed = kernel.counters.get("inst_executed").copied();
        let mix: Vec<String> = kernel
            .instruction_mix
            .iter()
            .map(|part| format!("{} {}", part.name.replace('_', " "), percent(part.share)))
            .collect();
        Some(vec![
            known(executed, group).into(),
            known(kernel.active_lanes, percent).into(),
            known((!mix.is_empty()).then_some(mix), |mix| mix.join(", ")).into(),
        ])
    })
}

pub fn caches(memory: &RunMemory) -> Grid {
    let mut grid = Grid::new(&[
        ("cache", Left),
        ("access", Left),
        ("sectors", Right),
        ("hits", Right),
        ("on their way", Right),
    ]);
    for access in &memory.caches {
        grid.rows.push(vec![
            access.cache.into(),
            access.access.as_str().into(),
            group(access.sectors).into(),
            Cell::from(percent(access.hit_rate)).bar(Some(access.hit_rate)),
            percent(access.hit_on_miss_rate).into(),
        ]);
    }
    grid
}

pub fn links(memory: &RunMemory) -> Grid {
    let mut grid = Grid::new(&[
        ("link", Left),
        ("links", Right),
        ("bytes", Right),
        ("busiest", Right),
        ("wait of a packet", Right),
    ]);
    for link in &memory.links {
        grid.rows.push(vec![
            link.name.as_str().into(),
            group(link.links).into(),
            bytes(link.bytes as f64).into(),
            Cell::from(known(link.busiest, percent)).bar(link.busiest),
            known(link.wait_ns, |wait| format!("{wait:.1} ns")).into(),
        ]);
    }
    grid
}

/// All launches, for pages.
pub fn launches(launches: &[Launch]) -> Block {
    let mut grid = Grid::new(&[
        ("launch", Right),
        ("kernel", Left),
        ("stream", Right),
        ("grid", Right),
        ("block", Right),
        ("time", Right),
        ("cycles", Right),
        ("warp instructions", Right),
    ]);
    for launch in launches.iter().take(MAXIMUM_LAUNCHES) {
        grid.rows.push(vec![
            launch.number.to_string().into(),
            names::readable(&launch.kernel).into(),
            launch.stream.to_string().into(),
            shape(launch.grid).into(),
            shape(launch.block).into(),
            known(launch.duration_ns, duration).into(),
            known(launch.counter("cycles"), group).into(),
            known(launch.counter("inst_executed"), group).into(),
        ]);
    }
    let all = plural(launches.len() as u64, "launch", "launches");
    let summary = match launches.len() {
        few if few <= MAXIMUM_LAUNCHES => all,
        _ => format!("The first {MAXIMUM_LAUNCHES} of {all}"),
    };
    Block::Details(summary, grid)
}
