//! What the engine itself costs: idle epochs, meeting, messages.
//!
//! `cargo bench -p lockstep-engine`. Figures stand in `docs/decisions/0003-epoch.md`.

use divan::Bencher;
use divan::counter::ItemsCount;
use lockstep_engine::*;
use lockstep_units::{Bytes, Cycles, Duration, Hertz, Time};

fn main() {
    divan::main();
}

/// Sends `fanout` messages a window to the partitions after it, if any; else does nothing.
struct Sender {
    link: LinkId,
    fanout: u32,
    count: u32,
    received: u64,
    /// Whether it has work in every window.
    busy: bool,
}

impl Partition for Sender {
    type Message = [u64; 6];

    fn run(
        &mut self,
        window: Window,
        inbox: &mut Inbox<[u64; 6]>,
        outbox: &mut Outbox<'_, [u64; 6]>,
    ) -> Wake {
        while let Some(delivery) = inbox.take_in_window() {
            self.received += delivery.message[0];
        }
        for offset in 1..=self.fanout {
            let to = PartitionId((outbox.sender().0 + offset * 7) % self.count);
            let at = window.start + Duration(u64::from(offset) * 1_000);
            outbox.send(self.link, to, at, Bytes(32), [1; 6]);
        }
        if self.busy {
            Wake::At(window.end)
        } else {
            Wake::OnMessage
        }
    }

    fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.received);
    }

    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        self.received = reader.read()?;
        Ok(())
    }
}

/// A machine whose epoch has so many cycles.
fn machine(count: u32, fanout: u32, busy: bool, cycles: u64, options: Options) -> Engine<Sender> {
    let clock = Hertz::mega(1_410);
    let mut builder = Topology::builder(clock);
    let kind = builder.partitions("sender", count);
    let latency = clock.duration(Cycles(cycles));
    let link = LinkKind {
        name: "all".into(),
        from: kind,
        to: kind,
        latency,
        bandwidth: None,
    };
    let link = builder.link(link);
    let partitions = (0..count).map(|_| Sender {
        link,
        fanout,
        count,
        received: 0,
        busy,
    });
    let mut engine = Engine::new(builder.build().unwrap(), partitions.collect(), options).unwrap();
    // Boards and inboxes grow to their size, threads start.
    let warm = engine.topology().epoch() * 100;
    engine.pass(warm);
    engine
}

fn together(threads: usize, schedule: Schedule) -> Options {
    Options {
        threads,
        schedule,
        together_from: 1,
        together_from_nanoseconds: 0,
        ..Options::default()
    }
}

/// Runs so many epochs a sample.
fn epochs(bencher: Bencher<'_, '_>, mut engine: Engine<Sender>, count: u64, items: u64) {
    let length = engine.topology().epoch() * count;
    bencher
        .counter(ItemsCount::new(count * items))
        .bench_local(|| engine.pass(length));
}

/// 250 partitions with nothing to do for 1,000 epochs of 1,000 cycles, each of them run: items
/// are epochs.
#[divan::bench]
fn idle_epochs_without_jumping(bencher: Bencher<'_, '_>) {
    let options = Options {
        jumping: false,
        ..Options::default()
    };
    let mut engine = machine(250, 0, false, 1_000, options);
    // One message far away: else the machine is quiescent, and nothing runs at all.
    engine
        .post(PartitionId(0), Time(u64::MAX / 2), [0; 6])
        .unwrap();
    epochs(bencher, engine, 1_000, 1);
}

/// 250 partitions of which one has work, in epochs of 1,000 cycles: items are epochs.
#[divan::bench]
fn nearly_idle_epochs(bencher: Bencher<'_, '_>) {
    let mut engine = machine(250, 0, false, 1_000, Options::default());
    engine.partition_mut(PartitionId(17)).busy = true;
    epochs(bencher, engine, 1_000, 1);
}

/// A jump over any number of idle epochs, from outside.
#[divan::bench]
fn jump(bencher: Bencher<'_, '_>) {
    let mut engine = machine(250, 0, false, 1_000, Options::default());
    engine
        .post(PartitionId(0), Time(u64::MAX / 2), [0; 6])
        .unwrap();
    let length = Duration::microseconds(1);
    bencher.bench_local(|| engine.pass(length));
}

/// The epoch barrier alone, with one follower: items are meetings.
#[divan::bench]
fn gate_of_two(bencher: Bencher<'_, '_>) {
    use internals::{EpochBarrier, SpinBudget};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    let epoch_barrier = Arc::new(EpochBarrier::new(1));
    let over = Arc::new(AtomicBool::new(false));
    let follower = {
        let (epoch_barrier, over) = (epoch_barrier.clone(), over.clone());
        std::thread::spawn(move || {
            let mut spin_budget = SpinBudget::new(2_000);
            let mut turn = 0;
            while !over.load(Ordering::Relaxed) {
                turn = epoch_barrier.pass(0, turn, &mut spin_budget);
                epoch_barrier.arrive();
            }
        })
    };
    let mut spin_budget = SpinBudget::new(2_000);
    bencher.counter(ItemsCount::new(200u32)).bench_local(|| {
        for _ in 0..200 {
            epoch_barrier.open(1);
            epoch_barrier.wait_for_all(&mut spin_budget, || ());
        }
    });
    over.store(true, Ordering::Relaxed);
    epoch_barrier.open(1);
    follower.join().unwrap();
}

/// Two partitions that do nothing, one for each worker: items are epochs, and their cost beyond
/// that of one worker is the cost of meeting.
#[divan::bench(args = [1, 2])]
fn meeting(bencher: Bencher<'_, '_>, threads: usize) {
    epochs(
        bencher,
        machine(2, 0, true, 32, together(threads, Schedule::Static)),
        200,
        1,
    );
}

/// 250 partitions that send 32 messages of 48 bytes an epoch, to 32 others each: items are
/// messages.
#[divan::bench(args = [1, 2])]
fn messages(bencher: Bencher<'_, '_>, threads: usize) {
    epochs(
        bencher,
        machine(250, 32, true, 32, together(threads, Schedule::Static)),
        100,
        250 * 32,
    );
}

/// The same with whoever is free running the next partition.
#[divan::bench(args = [2])]
fn messages_dynamic(bencher: Bencher<'_, '_>, threads: usize) {
    epochs(
        bencher,
        machine(250, 32, true, 32, together(threads, Schedule::Dynamic)),
        100,
        250 * 32,
    );
}
