//! Sixteen programs are killed one by one, and so are, in between, whoever samples, stores and serves
//! what they do. Nobody is disturbed, nothing stays behind, and what is missing is counted.

mod support;

use std::process::{Child, Stdio};
use std::time::Duration;

use lockstep_segment::SegmentDirectory;
use support::daemon::{Daemon, page, program_of_user};
use support::{Bench, command};

const PROGRAMS: usize = 16;
/// Launches of each program, of so many warps, 50 ms each: samplers are killed in between.
const LAUNCHES: u64 = 40;
const WARPS: u64 = 4;

/// A child that is killed when it is dropped.
struct Ended(Child);

impl Ended {
    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Who is killed in between.
struct Others<'bench> {
    bench: &'bench Bench,
    sampler: Option<Ended>,
    reader: Option<Ended>,
    exporter: Option<Daemon>,
}

impl<'bench> Others<'bench> {
    fn start(bench: &'bench Bench) -> Self {
        let mut others = Self {
            bench,
            sampler: None,
            reader: None,
            exporter: None,
        };
        (0..3).for_each(|number| others.replace(number));
        others
    }

    /// Kills one of them without warning, and starts the next.
    fn replace(&mut self, number: usize) {
        let quiet = |arguments: &[&str]| {
            let mut command = command(self.bench, arguments);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            Ended(command.spawn().unwrap())
        };
        match number % 3 {
            0 => {
                drop(self.sampler.take());
                self.sampler = Some(quiet(&["sampled", "--ignore-dcgm"]));
            }
            1 => {
                drop(self.reader.take());
                let out = self.bench.folder.join("stored");
                let out = out.to_str().unwrap();
                self.reader = Some(quiet(&["sample", "--all", "--quiet", "--out", out]));
            }
            _ => {
                drop(self.exporter.take());
                let options = ["--serve-only", "--prometheus", "127.0.0.1:0"];
                self.exporter = Some(Daemon::start(self.bench, &options));
            }
        }
    }

    fn wait_for(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        self.exporter.as_ref().unwrap().wait_for(what, is_there)
    }
}

/// Launches of a job, by the page.
fn launches(page: &str, job: usize) -> u64 {
    let label = format!("hpc_job=\"job-{job}\"");
    let all = page::values(page).into_iter();
    let ours = all
        .filter(|(key, _)| key.starts_with("lockstep_gpu_launches_total{") && key.contains(&label));
    ours.map(|(_, value)| value as u64).sum()
}

#[test]
fn whoever_is_killed_nothing_stays_and_every_loss_is_counted() {
    let mut bench = Bench::new();
    let shared = bench.folder.join("device");
    bench.set("FAKE_GPU_SHARED", shared.to_str().unwrap());
    let mut others = Others::start(&bench);
    let start = |job: usize| {
        let launch = format!(
            "launch 0 7 kernel_{job} 1 {} 10 50000000 {LAUNCHES}",
            32 * WARPS
        );
        // The last launch tells that the others have been executed.
        let last = format!("{} 1", launch.rsplit_once(' ').unwrap().0);
        let lines = ["context 0", &launch, "sync", &last, "sleep 600000"];
        let mut program = program_of_user(&bench, &lines);
        program.env("SLURM_JOB_ID", format!("job-{job}"));
        Ended(program.spawn().unwrap())
    };
    let mut programs: Vec<Ended> = (0..PROGRAMS).map(start).collect();
    for job in 0..PROGRAMS {
        others.replace(job);
        others.wait_for("all launches of a program", |page| {
            launches(page, job) == LAUNCHES + 1
        });
        assert!(
            programs.iter_mut().all(Ended::is_running),
            "a program was disturbed"
        );
        drop(programs.remove(0));
    }

    // Only the sampler publishes, and its segment alone is there; it is killed as well.
    let segments = SegmentDirectory::observe(&bench.folder.join("base/programs"));
    let left =
        |count: usize| move |page: &str| page::sum(page, "lockstep_processes") == count as f64;
    others.wait_for("only the sampler", left(1));
    drop(others.sampler.take());
    let page = others.wait_for("nobody", left(0));
    // The one that stores removes them, too: whoever comes first.
    let mut waited = 0;
    while !segments.segments().unwrap().is_empty() {
        assert!(waited < 1200, "{:?}", segments.segments());
        std::thread::sleep(Duration::from_millis(100));
        waited += 1;
    }
    for job in 0..PROGRAMS {
        assert_eq!(launches(&page, job), LAUNCHES + 1, "none twice: job {job}");
    }
    assert_eq!(page::sum(&page, "lockstep_records_lost_total"), 0.0);
    let executed = PROGRAMS as u64 * LAUNCHES * WARPS;
    let all = executed + PROGRAMS as u64 * WARPS;
    let counted = page::sum(&page, "lockstep_gpu_warps_launched_total") as u64;
    assert!(counted <= all, "{counted} of {all}");
    let gaps = page::sum(&page, "lockstep_sample_gaps_total");
    assert!(
        counted >= executed || gaps > 0.0,
        "{counted} of {executed} without a gap: {page}"
    );

    // Every launch is stored; one that was being stored when its reader was killed is there twice.
    let table = std::fs::read_to_string(bench.folder.join("stored/kernels.csv")).unwrap();
    for job in 0..PROGRAMS {
        let name = format!(",kernel_{job},");
        let rows = table.lines().filter(|line| line.contains(&name)).count() as u64;
        assert!(rows >= LAUNCHES, "job {job}: {rows}");
    }
    bench.no_complaints();
}
