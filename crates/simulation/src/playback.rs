//! Plays a record of CUDA calls on a GPU whose time, and perhaps memory, is that of a simulator around it.
//!
//! The run is that of [`crate::replay()`], on a thread of its own: the runtime answers every entry, and waits inside
//! the call wherever the simulator around has not come as far. Time passes inside calls alone, as in every run, so
//! with our own memory hierarchy every cycle is that of `lockstep run`.
//!
//! Start reading at [`Playback::pass`].

use crate::description::{Description, Mode};
use crate::outside_clock::{OutsideClock, Reached};
use crate::program::{RunError, system};
use crate::replay::Replayed;
use crate::results::Results;
use lockstep_counters::LaunchCounters;
use lockstep_runtime::{Device, Entry, LaunchSummary};
use lockstep_units::Time;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Room for the deepest calls of a program's own main thread.
const STACK: usize = 8 << 20;

/// A launch that has ended.
#[derive(Clone, Debug)]
pub struct PlayedLaunch {
    /// Its number, in the order of calls.
    pub number: u64,
    /// Mangled name of its kernel.
    pub kernel: String,
    /// When it began and ended.
    pub time: (Time, Time),
    /// What it counted.
    pub counters: LaunchCounters,
}

/// A run of somebody else's time.
pub struct Playback {
    clock: Arc<OutsideClock>,
    run: Option<JoinHandle<Result<Results, RunError>>>,
}

impl Playback {
    /// A fresh GPU to play a record on, at time zero. With `outside_memory`, those who let time pass answer what
    /// leaves its L1 caches.
    ///
    /// # Errors
    /// The GPU cannot be built so.
    pub fn new(description: &Description, outside_memory: bool) -> Result<Self, RunError> {
        let refused = |why: &str| Err(RunError::Request(why.into()));
        if outside_memory && description.mode == Mode::Functional {
            return refused("without time no request leaves the GPU");
        }
        if description.all_gpus() != 1 {
            return refused("the time of several GPUs cannot be given from outside");
        }
        let clock = Arc::new(OutsideClock::new(outside_memory));
        let mut description = description.clone();
        description.outside = Some(clock.clone());
        let within = clock.clone();
        let run = std::thread::Builder::new()
            .name("playback".into())
            .stack_size(STACK)
            .spawn(move || {
                let _over = Over(&within);
                play(&description, &within)
            })
            .map_err(system("a thread for the run"))?;
        let mut playback = Self {
            clock,
            run: Some(run),
        };
        match playback.clock.wait().is_over {
            false => Ok(playback),
            true => Err(playback
                .finish()
                .err()
                .unwrap_or_else(|| RunError::Request("the run ended before it began".into()))),
        }
    }

    /// Gives the run its next entry.
    ///
    /// # Errors
    /// It is at one, or over.
    pub fn enter(&mut self, entry: Entry) -> Result<(), RunError> {
        match self.clock.enter(entry) {
            true => Ok(()),
            false => Err(RunError::Request(
                "the entry before it is not done: let time pass until one is wanted".into(),
            )),
        }
    }

    /// Lets time pass until a boundary not before `until`; or to one at which requests left, or where all that was
    /// entered is done. With [`Time::NEVER`], also to one from which nothing happens before a request is complete.
    pub fn pass(&mut self, until: Time) -> Reached {
        self.clock.pass(until)
    }

    /// A request is complete at a time, or now if that has passed.
    ///
    /// # Errors
    /// There is no such request, or it is complete.
    pub fn complete(&mut self, request: u64, at: Time) -> Result<(), RunError> {
        match self.clock.complete(request, at) {
            true => Ok(()),
            false => Err(RunError::Request(format!(
                "no request {request:#x} waits for its completion"
            ))),
        }
    }

    /// How many requests wait for their completion.
    pub fn waiting(&self) -> usize {
        self.clock.waiting()
    }

    /// Ends the run where it stands. What came of it.
    ///
    /// # Errors
    /// It failed, or was ended before.
    pub fn finish(&mut self) -> Result<Results, RunError> {
        let run = self.run.take();
        let run = run.ok_or_else(|| RunError::Request("the run has been ended before".into()))?;
        self.clock.end();
        match run.join() {
            Ok(results) => results,
            // A broken invariant of the run is one of whoever asked for it.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Playback {
    fn drop(&mut self) {
        self.clock.end();
        if let Some(run) = self.run.take() {
            let _ = run.join();
        }
    }
}

/// Says that the run is over, also when it panics.
struct Over<'run>(&'run OutsideClock);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over();
    }
}

/// Does all that is entered, until the end.
fn play(description: &Description, clock: &OutsideClock) -> Result<Results, RunError> {
    let mut run = Replayed::new(description, "record")?;
    let mut launches = Launches::default();
    loop {
        let (now, host) = (run.runtime.device().now(), run.runtime.now());
        let Some(entry) = clock.next_entry(now, host) else {
            return Ok(run.results(description));
        };
        run.enter(entry)?;
        if clock.has_memory() {
            // So that requests leave when they should, and not when a later call waits for them. What fails here is
            // told by the next call.
            let _ = run.runtime.catch_up();
        }
        clock.ended(launches.ended(run.runtime.launches()));
    }
}

/// Which launches have been told.
#[derive(Default)]
struct Launches {
    seen: usize,
    running: BTreeSet<usize>,
}

impl Launches {
    /// Those that have ended since.
    fn ended(&mut self, all: &[LaunchSummary]) -> Vec<PlayedLaunch> {
        self.running.extend(self.seen..all.len());
        self.seen = all.len();
        let mut ended = Vec::new();
        self.running.retain(|place| match &all[*place].result {
            Some(result) => {
                ended.push(PlayedLaunch {
                    number: all[*place].id,
                    kernel: all[*place].kernel.clone(),
                    time: (result.start, result.end),
                    counters: result.counters,
                });
                false
            }
            None => true,
        });
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::tests::{copy, recorded};
    use crate::{full_record, replay_from};
    use lockstep_protocol::{Launch, LaunchConfig, Place, Reply, Request, Rows, StreamName};
    use lockstep_units::Duration;

    const PTX: &str = "
.version 8.0
.target sm_60
.address_size 64
.visible .entry twice(.param .u64 values, .param .u64 sum)
{
    .reg .b32 %i, %block, %size, %lane, %x, %old;
    .reg .b64 %p, %q, %offset;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %lane, %tid.x;
    mad.lo.u32 %i, %block, %size, %lane;
    ld.param.u64 %p, [values];
    ld.param.u64 %q, [sum];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %p, %p, %offset;
    ld.global.u32 %x, [%p];
    add.u32 %x, %x, %x;
    st.global.u32 [%p], %x;
    atom.global.add.u32 %old, [%q], %x;
    ret;
}
";
    const COUNT: u32 = 4096;
    const BYTES: u64 = 4 * COUNT as u64 + 4;
    /// What memory takes, in femtoseconds.
    const LATENCY: Duration = Duration::nanoseconds(300);

    fn description(threads: u32) -> Description {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        let mut description = Description::new("h200", config);
        description.execution.threads = threads;
        description.assembling = crate::Assembling::Never;
        description
    }

    /// A program that launches a kernel twice, one behind the other, and reads what they made.
    fn record() -> Vec<u8> {
        recorded(&description(1), |ask| {
            let Reply::Context(context) = ask(Request::PrimaryContextRetain { device: 0 }, None)
            else {
                panic!()
            };
            let images = vec![crate::images::image_of(PTX.into())];
            let Reply::Module(module) = ask(Request::ModuleLoad { context, images }, None) else {
                panic!()
            };
            let name = "twice".into();
            let Reply::Function(function) = ask(Request::ModuleFunction { module, name }, None)
            else {
                panic!()
            };
            let bytes = BYTES;
            let Reply::Address(address) = ask(Request::Allocate { context, bytes }, None) else {
                panic!()
            };
            let place = Place::Window(Rows::linear(address, BYTES));
            let ones = [1; BYTES as usize];
            ask(
                copy(context, (place, Place::Host), BYTES),
                Some((address, &ones)),
            );
            let sum = address + BYTES - 4;
            for _ in 0..2 {
                let launch = Launch {
                    context,
                    stream: StreamName::Legacy,
                    function: function.handle,
                    config: LaunchConfig {
                        grid: [COUNT / 128, 1, 1],
                        block: [128, 1, 1],
                        dynamic_shared: 0,
                    },
                    parameters: [address.to_le_bytes(), sum.to_le_bytes()].concat(),
                    cooperative: false,
                    cluster: None,
                    priority: None,
                    carveout: None,
                    programmatic_stream_serialization: false,
                };
                ask(Request::Launch(Box::new(launch)), None);
            }
            ask(copy(context, (Place::Host, place), BYTES), None);
            // Costs time of the host alone: how far the GPU has come shows in the digest.
            ask(Request::Free { context, address }, None);
        })
    }

    /// Plays a record in steps of time; cycles of its launches, and its end. Requests take [`LATENCY`].
    fn played(record: &[u8], threads: u32, outside: bool, step: Duration) -> (Vec<u64>, Results) {
        let mut playback = Playback::new(&description(threads), outside).unwrap();
        let mut cycles = Vec::new();
        let mut until = Time::ZERO;
        for entry in full_record(record).unwrap() {
            // As bytes, since it comes over somebody's link.
            let bytes = entry.unwrap().to_bytes().unwrap();
            playback.enter(Entry::from_bytes(&bytes).unwrap()).unwrap();
            loop {
                let reached = playback.pass(until);
                assert!(!reached.is_over);
                for request in &reached.requests {
                    assert!(request.at <= reached.now);
                    let at = request.at + LATENCY;
                    playback.complete(request.number, at).unwrap();
                }
                let ended = reached.launches.iter();
                cycles.extend(ended.map(|one| one.counters.get("cycles").unwrap()));
                if reached.wants_entry {
                    break;
                }
                until = until.max(reached.now) + step;
            }
        }
        let results = playback.finish().unwrap();
        assert_eq!(results.summary.ending.problems, Vec::<String>::new());
        (cycles, results)
    }

    #[test]
    fn however_time_is_given_every_cycle_is_that_of_a_run() {
        let record = record();
        let run = replay_from(&description(1), "record", &record[..]).unwrap();
        let counters = run.kernels.iter().map(|row| row.counters.unwrap());
        let expected: Vec<u64> = counters.map(|one| one.get("cycles").unwrap()).collect();
        assert_eq!(expected.len(), 2);
        let steps = [
            (1, Duration(1)),
            (2, Duration::nanoseconds(77)),
            (1, Duration::microseconds(900)),
        ];
        for (threads, step) in steps {
            let (cycles, results) = played(&record, threads, false, step);
            assert_eq!(cycles, expected, "{step:?}");
            assert_eq!(results.summary.digest, run.summary.digest, "{step:?}");
        }
    }

    #[test]
    fn memory_outside_gives_one_digest_for_all_threads_and_steps() {
        let record = record();
        let (cycles, first) = played(&record, 1, true, Duration(1));
        // A load and an atomic that waits for it.
        let least = 2 * 300 * 198 / 100;
        assert!(cycles.iter().all(|one| *one > least), "{cycles:?}");
        for (threads, step) in [(2, Duration(1)), (1, Duration::microseconds(3))] {
            let (again, results) = played(&record, threads, true, step);
            assert_eq!(again, cycles, "{threads} {step:?}");
            assert_eq!(results.summary.digest, first.summary.digest);
        }
    }

    #[test]
    fn time_without_end_stops_where_requests_wait() {
        let record = record();
        let mut entries = full_record(&record[..]).unwrap().map(Result::unwrap);
        let mut playback = Playback::new(&description(1), true).unwrap();
        let mut told = Vec::new();
        let mut reached = playback.pass(Time::NEVER);
        while !reached.awaits_memory {
            if reached.wants_entry {
                playback.enter(entries.next().unwrap()).unwrap();
            }
            reached = playback.pass(Time::NEVER);
            told.extend(reached.requests.iter().map(|request| request.number));
        }
        assert!(!told.is_empty() && playback.waiting() == told.len());
        let stood = reached.now;
        let reached = playback.pass(Time::NEVER);
        assert!(reached.awaits_memory && reached.now == stood);
        // Time with an end passes at once.
        let later = stood + Duration::microseconds(100_000);
        let reached = playback.pass(later);
        assert!(!reached.awaits_memory && reached.now >= later);
        for request in told {
            playback.complete(request, Time::ZERO).unwrap();
        }
        // The atomics behind the loads.
        let reached = playback.pass(Time::NEVER);
        assert!(!reached.awaits_memory && !reached.requests.is_empty());
    }

    #[test]
    fn what_cannot_be_is_refused_and_nothing_hangs() {
        let mut functional = description(1);
        functional.mode = Mode::Functional;
        let error = Playback::new(&functional, true).err().unwrap().to_string();
        assert!(error.contains("without time"), "{error}");

        let record = record();
        let mut entries = full_record(&record[..]).unwrap().map(Result::unwrap);
        let mut playback = Playback::new(&description(1), true).unwrap();
        assert!(playback.pass(Time(1 << 40)).wants_entry);
        let error = playback.complete(7, Time(0)).unwrap_err().to_string();
        assert!(error.contains("waits for its completion"), "{error}");
        // As far as requests that nobody answers.
        while playback.waiting() == 0 {
            playback.enter(entries.next().unwrap()).unwrap();
            let mut reached = playback.pass(Time::ZERO);
            while !reached.wants_entry && playback.waiting() == 0 {
                reached = playback.pass(reached.now + Duration::microseconds(1));
            }
        }
        let error = playback.enter(entries.next().unwrap()).unwrap_err();
        assert!(error.to_string().contains("is not done"), "{error}");
        // Time passes all the same, and the run can be given up in the middle of a call.
        let mut reached = playback.pass(Time::ZERO);
        let later = reached.now + Duration::microseconds(5);
        while reached.now < later {
            if reached.wants_entry {
                playback.enter(entries.next().unwrap()).unwrap();
            }
            reached = playback.pass(later);
        }
        let results = playback.finish().unwrap();
        assert!(results.kernels.iter().any(|row| row.counters.is_none()));
        assert!(playback.finish().is_err());

        let mut playback = Playback::new(&description(1), false).unwrap();
        let address = u64::MAX;
        let bytes = vec![1];
        playback.enter(Entry::Wrote { address, bytes }).unwrap();
        assert!(playback.pass(Time(0)).is_over);
        let error = playback.finish().unwrap_err().to_string();
        assert!(error.contains("entry 0 writes 1 bytes"), "{error}");
    }
}
