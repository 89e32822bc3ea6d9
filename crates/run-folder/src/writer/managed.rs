//! Managed memory over time: `migrations.csv`, `faults.csv`, `managed.trace.json` (opens in
//! Perfetto) and `heat_map.svg`. A run without managed memory has none of them.

use std::collections::BTreeMap;
use std::fmt::Write;

/// One transfer of managed pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationRow {
    /// When it began, in nanoseconds.
    pub start: u64,
    /// When it was complete.
    pub end: u64,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Whether it went to the device.
    pub to_device: bool,
    /// Why.
    pub cause: &'static str,
}

/// One far fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRow {
    /// When the page was found missing, in nanoseconds.
    pub start: u64,
    /// When it was mapped.
    pub end: u64,
    /// Address of the page.
    pub address: u64,
    /// SM that asked first.
    pub sm: u32,
    /// Whether it wanted to write.
    pub write: bool,
}

/// What happened to managed memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedTrace {
    /// Managed memory that there ever was: addresses and bytes.
    pub allocations: Vec<(u64, u64)>,
    /// Transfers, in the order in which they were complete.
    pub migrations: Vec<MigrationRow>,
    /// Far faults, in the order in which their pages came.
    pub faults: Vec<FaultRow>,
}

/// Events of the time line; the CSV files have them all.
const MOST_EVENTS: usize = 200_000;
/// Columns and rows of the heat map.
const MAP: (usize, usize) = (200, 128);

pub(super) fn migrations(trace: &ManagedTrace) -> String {
    let mut text = String::from("start_ns,end_ns,address,bytes,direction,cause\n");
    for row in &trace.migrations {
        let direction = if row.to_device {
            "to device"
        } else {
            "to host"
        };
        let MigrationRow {
            start,
            end,
            address,
            bytes,
            cause,
            ..
        } = row;
        let _ = writeln!(
            text,
            "{start},{end},{address:#x},{bytes},{direction},{cause}"
        );
    }
    text
}

pub(super) fn faults(trace: &ManagedTrace) -> String {
    let mut text = String::from("start_ns,end_ns,address,sm,write\n");
    for row in &trace.faults {
        let _ = writeln!(
            text,
            "{},{},{:#x},{},{}",
            row.start, row.end, row.address, row.sm, row.write
        );
    }
    text
}

/// The time line: one track for each direction of the link, and one a few for faults.
pub(super) fn time_line(trace: &ManagedTrace) -> String {
    let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for (track, name) in [(1, "to device"), (2, "to host"), (3, "far faults")] {
        let _ = writeln!(
            text,
            "{{\"ph\":\"M\",\"pid\":1,\"tid\":{track},\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}}},"
        );
    }
    let micros = |nanoseconds: u64| format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
    for row in trace.migrations.iter().take(MOST_EVENTS) {
        let _ = writeln!(
            text,
            "{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"name\":\"{} {} KiB\",\"ts\":{},\"dur\":{},\"args\":{{\"address\":\"{:#x}\"}}}},",
            if row.to_device { 1 } else { 2 },
            row.cause,
            row.bytes / 1024,
            micros(row.start),
            micros(row.end - row.start),
            row.address
        );
    }
    for (number, row) in trace.faults.iter().take(MOST_EVENTS).enumerate() {
        let [begin, end] = [("b", row.start), ("e", row.end)].map(|(phase, at)| {
            format!(
                "{{\"ph\":\"{phase}\",\"cat\":\"fault\",\"id\":{number},\"pid\":1,\"tid\":3,\"name\":\"SM {}\",\"ts\":{},\"args\":{{\"address\":\"{:#x}\"}}}},",
                row.sm,
                micros(at),
                row.address
            )
        });
        let _ = writeln!(text, "{begin}\n{end}");
    }
    text.push_str("{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"managed memory\"}}\n]}\n");
    text
}

/// Pages over time: how much of each part of memory came (blue) and left (red) in each moment.
pub(super) fn heat_map(trace: &ManagedTrace) -> String {
    let (columns, rows) = MAP;
    // Parts of 64 KiB that were ever moved, without the gaps between allocations.
    let mut parts: BTreeMap<u64, usize> = BTreeMap::new();
    for row in &trace.migrations {
        for part in row.address >> 16..=(row.address + row.bytes.max(1) - 1) >> 16 {
            parts.insert(part, 0);
        }
    }
    let count = parts.len().max(1);
    for (number, (_, place)) in parts.iter_mut().enumerate() {
        *place = number * rows / count;
    }
    let begin = trace
        .migrations
        .iter()
        .map(|row| row.start)
        .min()
        .unwrap_or(0);
    let end = trace
        .migrations
        .iter()
        .map(|row| row.end)
        .max()
        .unwrap_or(0);
    let length = (end - begin).max(1);
    let mut cells = vec![[0u64; 2]; columns * rows];
    for row in &trace.migrations {
        let column = ((row.end - begin) as u128 * columns as u128 / (length as u128 + 1)) as usize;
        for part in row.address >> 16..=(row.address + row.bytes.max(1) - 1) >> 16 {
            let place = parts.get(&part).copied().unwrap_or(0);
            let cell = &mut cells[place * columns + column.min(columns - 1)];
            cell[usize::from(!row.to_device)] += row.bytes.min(1 << 16);
        }
    }
    let most = cells.iter().flatten().copied().max().unwrap_or(0).max(1);
    let (width, height, left, top) = (columns * 5, rows * 4, 70, 30);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" font-size=\"12\">\n<text x=\"{left}\" y=\"18\">Managed pages over time: blue came to the device, red left it</text>\n<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"#f4f4f4\"/>\n",
        width + left + 20,
        height + top + 40
    );
    for (index, [came, went]) in cells.iter().enumerate() {
        if came + went == 0 {
            continue;
        }
        let (x, y) = (left + index % columns * 5, top + index / columns * 4);
        let colour = if went > came { "#c0392b" } else { "#2468b4" };
        let share = (came + went) as f64 / most as f64;
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"5\" height=\"4\" fill=\"{colour}\" fill-opacity=\"{:.2}\"/>",
            0.25 + 0.75 * share.min(1.0)
        );
    }
    let _ = writeln!(
        text,
        "<text x=\"{left}\" y=\"{}\">{:.3} ms</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.3} ms</text><text x=\"4\" y=\"{}\">{} MiB</text>\n</svg>",
        top + height + 18,
        begin as f64 / 1e6,
        left + width,
        top + height + 18,
        end as f64 / 1e6,
        top + height / 2,
        count / 16
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> ManagedTrace {
        ManagedTrace {
            allocations: vec![(0x2c00_0000_0000, 65536)],
            migrations: vec![
                MigrationRow {
                    start: 1500,
                    end: 2750,
                    address: 0x2c00_0000_0000,
                    bytes: 65536,
                    to_device: true,
                    cause: "fault",
                },
                MigrationRow {
                    start: 3000,
                    end: 4000,
                    address: 0x2c00_0000_0000,
                    bytes: 4096,
                    to_device: false,
                    cause: "eviction",
                },
            ],
            faults: vec![FaultRow {
                start: 1000,
                end: 2750,
                address: 0x2c00_0000_0000,
                sm: 3,
                write: true,
            }],
        }
    }

    #[test]
    fn tables_have_a_row_a_transfer_and_a_fault() {
        assert_eq!(
            migrations(&trace()).lines().nth(2),
            Some("3000,4000,0x2c0000000000,4096,to host,eviction")
        );
        assert_eq!(
            faults(&trace()).lines().nth(1),
            Some("1000,2750,0x2c0000000000,3,true")
        );
    }

    #[test]
    fn the_time_line_is_json_that_perfetto_reads() {
        let value: serde_json::Value = serde_json::from_str(&time_line(&trace())).unwrap();
        let events = value["traceEvents"].as_array().unwrap();
        let first = events.iter().find(|event| event["ph"] == "X").unwrap();
        assert_eq!(first["name"], "fault 64 KiB");
        assert_eq!(
            (first["ts"].as_f64(), first["dur"].as_f64()),
            (Some(1.5), Some(1.25))
        );
    }

    #[test]
    fn the_heat_map_shows_both_ways() {
        let picture = heat_map(&trace());
        assert!(picture.contains("#2468b4") && picture.contains("#c0392b"));
        assert!(heat_map(&ManagedTrace::default()).ends_with("</svg>\n"));
    }
}
