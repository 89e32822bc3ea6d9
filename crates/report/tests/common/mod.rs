//! Run folders for tests, written by the crate that writes those of real runs.
#![allow(dead_code, reason = "not every test needs every helper")]

use lockstep_counters::{Counters, LaunchCounters};
use lockstep_run_folder::Run;
use lockstep_run_folder::{Ending, Existing, KernelRow, RunFolder, RunState, Summary};
use lockstep_stats::{Table, statistics};
use std::path::PathBuf;

statistics! {
    /// What a link counts.
    struct LinkStats {
        /// Packets.
        packets: Counter [packets],
        /// Bytes.
        bytes: Counter [bytes],
        /// Busy.
        busy: Counter [picoseconds],
        /// Waiting.
        wait: Counter [picoseconds],
    }
}

/// A folder that is gone with its owner.
pub struct Folder(pub PathBuf);

impl Folder {
    /// The name of a folder that is not there yet.
    pub fn new(name: &str) -> Self {
        let name = format!("lockstep-report-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    /// The run folder of a simulation.
    pub fn simulated(name: &str, rows: &[KernelRow]) -> Self {
        let folder = Self::new(name);
        let run = RunFolder::create(Some(&folder.0), Existing::MustBeEmpty, "x").unwrap();
        run.write_kernels(rows).unwrap();
        let mut table = Table::default();
        for link in 0..3 {
            let mut counted = LinkStats::default();
            counted.packets.add(10);
            counted.bytes.add(1000);
            counted.busy.add(link * 1_000_000);
            table.add(&format!("gpu 0/link/reply/slice {link}"), &counted);
        }
        run.write_statistics(&table).unwrap();
        run.write_summary(&summary()).unwrap();
        folder
    }

    /// Puts a file in place of what is there.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::create_dir_all(&self.0).unwrap();
        std::fs::write(self.0.join(name), text).unwrap();
    }

    /// A file of it.
    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// As a reader sees it, or why not, without the path.
    pub fn read(&self) -> Result<Run, String> {
        let path = self.0.display().to_string();
        Run::read(&self.0).map_err(|error| error.to_string().replace(&path, "DIR"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn summary() -> Summary {
    let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
    Summary {
        lockstep: "0.1.0".into(),
        state: RunState::Finished,
        command: vec!["./program".into(), "a b".into()],
        gpu: "h200".into(),
        mode: "timing".into(),
        ending: Ending {
            complete: true,
            ..Ending::default()
        },
        digest: Some("d".repeat(64)),
        configuration: serde_json::to_value(&config).unwrap(),
        ..Summary::default()
    }
}

/// A launch that writes so many bytes to DRAM in so many cycles.
pub fn launch(number: u64, kernel: &str, cycles: u64, dram_bytes: u64) -> KernelRow {
    let mut values = Counters {
        cycles,
        active_cycles: cycles * 130,
        warp_cycles: cycles * 130 * 32,
        inst_executed: 100_000,
        inst_issued: 100_000,
        thread_inst_executed: 3_200_000,
        l1_sectors: 40_000,
        l2_sectors: 40_000,
        l2_sectors_of_sms: 40_000,
        l2_sector_hits: 10_000,
        dram_bytes_written: dram_bytes,
        ..Counters::default()
    };
    values.mix = [20_000, 0, 50_000, 10_000, 10_000, 10_000];
    // Selected, wait, long scoreboard.
    values.stalls[0] = 100_000;
    values.stalls[2] = 100_000;
    values.stalls[3] = 800_000;
    KernelRow {
        launch: number,
        kernel: kernel.into(),
        context: 1,
        stream: 7,
        grid: [2000, 2, 1],
        block: [256, 1, 1],
        start_ns: Some(1000.0 + 20_000.0 * number as f64),
        duration_ns: Some(cycles as f64 / 1.98),
        counters: Some(LaunchCounters {
            values,
            timed: true,
        }),
        achieved_occupancy: Some(0.5),
        registers: Some(64),
        shared_bytes: Some(0),
        mode: "timing".into(),
        ..KernelRow::default()
    }
}
