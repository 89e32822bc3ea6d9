//! Managed memory in figures: a row an allocation, a row a kernel, a row an interval of time
//! (`managed_allocations.csv`, `managed_kernels.csv`, `managed_series.csv`). All of them are sums
//! over the transfers and far faults of the run.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::kernels::KernelRow;
use super::managed::{ManagedTrace, MigrationRow};

/// Intervals of the series.
const INTERVALS: u64 = 1000;

/// What happened in some part of memory or of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    faults: u64,
    write_faults: u64,
    fault_time: u64,
    transfers: u64,
    /// Bytes to the device: of faults, of prefetchers, of the program's prefetches.
    to_device: [u64; 3],
    /// Bytes to the host: evicted, for the host.
    to_host: [u64; 2],
    busy: [u64; 2],
}

const COLUMNS: &str = "far_faults,write_faults,fault_wait_ns,transfers,fault_bytes,prefetch_bytes,\
user_prefetch_bytes,evicted_bytes,host_bytes,to_device_busy_ns,to_host_busy_ns";

impl Sums {
    fn fault(&mut self, write: bool, waited: u64) {
        self.faults += 1;
        self.write_faults += u64::from(write);
        self.fault_time += waited;
    }

    fn transfer(&mut self, row: &MigrationRow) {
        self.transfers += 1;
        let length = row.end.saturating_sub(row.start);
        if row.to_device {
            let kind = match row.cause {
                "fault" => 0,
                "prefetch" => 1,
                _ => 2,
            };
            self.to_device[kind] += row.bytes;
            self.busy[0] += length;
        } else {
            self.to_host[usize::from(row.cause != "eviction")] += row.bytes;
            self.busy[1] += length;
        }
    }

    fn write(&self, text: &mut String) {
        let Self {
            faults,
            write_faults,
            fault_time,
            transfers,
            to_device: [demand, prefetch, user],
            to_host: [evicted, host],
            busy: [there, back],
        } = self;
        let _ = writeln!(
            text,
            "{faults},{write_faults},{fault_time},{transfers},{demand},{prefetch},{user},{evicted},{host},{there},{back}"
        );
    }
}

/// A row an allocation, and how many bytes of it came to the device more than once.
pub(super) fn allocations(trace: &ManagedTrace) -> String {
    let mut sums: BTreeMap<u64, (u64, Sums, BTreeMap<u64, u64>)> = BTreeMap::new();
    for (address, bytes) in &trace.allocations {
        let known = sums.entry(*address).or_default();
        known.0 = known.0.max(*bytes);
    }
    for row in &trace.faults {
        if let Some((_, known)) = sums.range_mut(..=row.address).next_back() {
            known.1.fault(row.write, row.end - row.start);
        }
    }
    for row in &trace.migrations {
        if let Some((_, known)) = sums.range_mut(..=row.address).next_back() {
            known.1.transfer(row);
            if row.to_device {
                for page in row.address >> 12..(row.address + row.bytes) >> 12 {
                    *known.2.entry(page).or_default() += 1;
                }
            }
        }
    }
    let mut text = format!("address,bytes,{COLUMNS},came_again_bytes,most_comings_of_a_page\n");
    for (address, (bytes, sums, pages)) in &sums {
        let _ = write!(text, "{address:#x},{bytes},");
        sums.write(&mut text);
        text.pop();
        let again: u64 = pages.values().map(|times| times - 1).sum();
        let most = pages.values().max().copied().unwrap_or(0);
        let _ = writeln!(text, ",{},{most}", again << 12);
    }
    text
}

/// A row a kernel: faults that it had and transfers that ended while it ran. Kernels that run at
/// the same time share them.
pub(super) fn kernels<'row>(
    trace: &ManagedTrace,
    rows: impl IntoIterator<Item = &'row KernelRow>,
) -> String {
    let mut faults: Vec<(u64, u64, bool)> = Vec::new();
    faults.extend(
        trace
            .faults
            .iter()
            .map(|row| (row.start, row.end, row.write)),
    );
    faults.sort_unstable();
    let mut text = format!("launch,kernel,start_ns,duration_ns,{COLUMNS}\n");
    for row in rows {
        let (Some(start), Some(duration)) = (row.start_ns, row.duration_ns) else {
            continue;
        };
        let (begin, end) = (start as u64, (start + duration).ceil() as u64);
        let mut sums = Sums::default();
        let first = faults.partition_point(|(detected, ..)| *detected < begin);
        for (detected, mapped, write) in &faults[first..] {
            if *detected > end {
                break;
            }
            sums.fault(*write, mapped - detected);
        }
        // Transfers of both directions are in the order of their ends.
        let first = trace.migrations.partition_point(|row| row.end < begin);
        for row in trace.migrations[first..]
            .iter()
            .take_while(|row| row.end <= end)
        {
            sums.transfer(row);
        }
        let name = row.kernel.replace('"', "'");
        let _ = write!(text, "{},\"{name}\",{start},{duration},", row.launch);
        sums.write(&mut text);
    }
    text
}

/// A row an interval: what ended in it, and how much managed memory was on the device at its end.
pub(super) fn series(trace: &ManagedTrace) -> String {
    let starts = trace.faults.iter().map(|row| row.start);
    let starts = starts.chain(trace.migrations.iter().map(|row| row.start));
    let begin = starts.min().unwrap_or(0);
    let ends = trace.faults.iter().map(|row| row.end);
    let ends = ends.chain(trace.migrations.iter().map(|row| row.end));
    let end = ends.max().unwrap_or(0);
    let step = ((end - begin) / INTERVALS + 1).max(1000);
    let count = (end - begin) / step + 1;
    let mut sums = vec![(Sums::default(), 0i64); count as usize];
    let place = |at: u64| ((at - begin) / step) as usize;
    for row in &trace.faults {
        sums[place(row.end)].0.fault(row.write, row.end - row.start);
    }
    for row in &trace.migrations {
        let (sums, change) = &mut sums[place(row.end)];
        sums.transfer(row);
        let bytes = row.bytes as i64;
        *change += if row.to_device { bytes } else { -bytes };
    }
    let mut text = format!("start_ns,end_ns,{COLUMNS},resident_bytes\n");
    let mut resident = 0;
    for (number, (sums, change)) in sums.iter().enumerate() {
        let start = begin + number as u64 * step;
        resident += change;
        let _ = write!(text, "{start},{},", start + step);
        sums.write(&mut text);
        text.pop();
        let _ = writeln!(text, ",{}", resident.max(0));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::managed::FaultRow;
    use super::*;

    fn trace() -> ManagedTrace {
        let migration = |start, end, address, bytes, to_device, cause| MigrationRow {
            start,
            end,
            address,
            bytes,
            to_device,
            cause,
        };
        ManagedTrace {
            allocations: vec![(0x10000, 0x8000), (0x20000, 0x1000)],
            migrations: vec![
                migration(1000, 2000, 0x10000, 0x1000, true, "fault"),
                migration(2000, 3000, 0x11000, 0x7000, true, "prefetch"),
                migration(3500, 4000, 0x10000, 0x1000, false, "eviction"),
                migration(5000, 6000, 0x10000, 0x1000, true, "fault"),
            ],
            faults: vec![
                FaultRow {
                    start: 500,
                    end: 2000,
                    address: 0x10000,
                    sm: 0,
                    write: true,
                },
                FaultRow {
                    start: 4500,
                    end: 6000,
                    address: 0x10000,
                    sm: 1,
                    write: false,
                },
            ],
        }
    }

    #[test]
    fn an_allocation_sums_what_happened_in_it() {
        let text = allocations(&trace());
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            rows[0],
            "0x10000,32768,2,1,3000,4,8192,28672,0,4096,0,3000,500,4096,2"
        );
        assert!(rows[1].starts_with("0x20000,4096,0,0,0,0"), "{}", rows[1]);
    }

    #[test]
    fn a_kernel_has_the_faults_that_it_ran_into() {
        let row = KernelRow {
            kernel: "k".into(),
            start_ns: Some(4000.5),
            duration_ns: Some(3000.0),
            ..KernelRow::default()
        };
        let text = kernels(&trace(), [&row]);
        assert_eq!(
            text.lines().nth(1),
            Some("0,\"k\",4000.5,3000,1,0,1500,2,4096,0,0,4096,0,1000,500")
        );
    }

    #[test]
    fn the_series_adds_up_to_the_run() {
        let text = series(&trace());
        let rows: Vec<Vec<u64>> = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(|word| word.parse().unwrap()).collect())
            .collect();
        assert_eq!(rows.iter().map(|row| row[2]).sum::<u64>(), 2);
        assert_eq!(rows.last().unwrap().last(), Some(&32768));
        assert!(series(&ManagedTrace::default()).starts_with("start_ns"));
    }
}
