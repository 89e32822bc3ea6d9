//! Who waits for whom, step by step.

use super::*;

const LATENCIES: DeviceLatencies = DeviceLatencies {
    launch: Duration::nanoseconds(5),
    next: Duration::nanoseconds(2),
    tail: Duration::nanoseconds(3),
    finish: Duration::nanoseconds(20),
    parent: Duration::nanoseconds(40),
    interval: Duration::nanoseconds(1),
};

/// Grids under way, each launched as what it prints: launches by number, begun as they become ready.
struct Bench {
    launches: DeviceLaunches,
    now: Time,
    next: u32,
    /// The kernel number that each launch was made with.
    names: BTreeMap<u32, usize>,
}

impl Bench {
    fn new() -> Self {
        let mut launches = DeviceLaunches::default();
        launches.set_pool(0x1000..0x10_0000);
        Self {
            launches,
            now: Time::ZERO,
            next: 100,
            names: BTreeMap::new(),
        }
    }

    fn launch(&mut self, by: u32, kernel: usize, stream: Stream) {
        let config = LaunchConfig::new([1; 3], [32, 1, 1]);
        let shape = Some((kernel, config));
        let buffer = self.launches.buffer(by, 12, shape).unwrap();
        let what = DeviceLaunch {
            kernel,
            config,
            arguments: Vec::new(),
        };
        self.launches
            .launch(by, buffer, stream, what, self.now, &LATENCIES);
    }

    /// Begins what is ready; answers the kernels and when they may begin, in nanoseconds.
    fn begin(&mut self) -> Vec<(usize, u64)> {
        let ready = self.launches.take_ready();
        let begun = ready.into_iter().map(|ready| {
            self.launches.begun(ready.grid, self.next);
            self.names.insert(self.next, ready.launch.kernel);
            self.next += 1;
            (ready.launch.kernel, ready.at.nanoseconds())
        });
        begun.collect()
    }

    fn number(&self, kernel: usize) -> u32 {
        let mut names = self.names.iter();
        *names.find(|(_, known)| **known == kernel).unwrap().0
    }

    /// The blocks of a kernel end; answers the kernels that are complete and when, the host's launch as 0.
    fn end(&mut self, launch: u32) -> Vec<(usize, u64)> {
        self.now += Duration::nanoseconds(100);
        assert!(self.launches.ended(launch, self.now, &LATENCIES));
        let complete = self.launches.take_complete().into_iter();
        let names = &self.names;
        complete
            .map(|(launch, at)| (names.get(&launch).copied().unwrap_or(0), at.nanoseconds()))
            .collect()
    }
}

/// The launch by the host.
const HOST: u32 = 1;

fn null_stream(bench: &mut Bench, block: u64) -> Stream {
    bench.launches.stream(HOST, (block, 0), 0).unwrap()
}

#[test]
fn a_kernel_without_launches_is_none_of_this() {
    let mut bench = Bench::new();
    assert!(!bench.launches.ended(HOST, Time::ZERO, &LATENCIES));
    assert!(bench.launches.is_idle());
}

#[test]
fn launches_of_a_block_follow_each_other_and_those_of_two_do_not() {
    let mut bench = Bench::new();
    let (first, second) = (null_stream(&mut bench, 0), null_stream(&mut bench, 1));
    bench.launch(HOST, 1, first);
    bench.launch(HOST, 2, first);
    bench.launch(HOST, 3, second);
    assert_eq!(bench.begin(), [(1, 5), (3, 6)]);
    assert_eq!(bench.end(HOST), []);
    assert_eq!(bench.end(bench.number(1)), [(1, 200)]);
    assert_eq!(bench.begin(), [(2, 222)]);
    assert_eq!(bench.end(bench.number(3)), [(3, 300)]);
    assert_eq!(bench.end(bench.number(2)), [(2, 400), (0, 460)]);
    assert!(bench.launches.is_idle());
}

#[test]
fn a_tail_launch_waits_for_all_else_and_brings_its_own_before_the_next() {
    let mut bench = Bench::new();
    bench.launch(HOST, 1, Stream::Tail);
    bench.launch(HOST, 2, Stream::Tail);
    bench.launch(HOST, 3, Stream::FireAndForget);
    assert_eq!(bench.begin(), [(3, 5)]);
    assert_eq!(bench.end(HOST), []);
    assert_eq!(bench.begin(), []);
    assert_eq!(bench.end(bench.number(3)), [(3, 200)]);
    assert_eq!(bench.begin(), [(1, 223)]);
    bench.launch(bench.number(1), 4, Stream::Tail);
    assert_eq!(bench.end(bench.number(1)), []);
    assert_eq!(bench.begin(), [(4, 303)]);
    assert_eq!(bench.end(bench.number(4)), [(4, 400), (1, 460)]);
    assert_eq!(bench.begin(), [(2, 483)]);
    assert_eq!(bench.end(bench.number(2)), [(2, 500), (0, 560)]);
}

#[test]
fn a_stream_waits_for_the_descendants_of_what_is_before() {
    let mut bench = Bench::new();
    let stream = null_stream(&mut bench, 0);
    bench.launch(HOST, 1, stream);
    bench.launch(HOST, 2, stream);
    bench.begin();
    bench.launch(bench.number(1), 3, Stream::FireAndForget);
    bench.begin();
    assert_eq!(bench.end(bench.number(1)), []);
    assert_eq!(bench.begin(), []);
    assert_eq!(bench.end(bench.number(3)), [(3, 200), (1, 260)]);
    assert_eq!(bench.begin(), [(2, 282)]);
}

#[test]
fn threads_have_streams_of_their_own() {
    let mut bench = Bench::new();
    let mut of = |thread| bench.launches.stream(HOST, (0, thread), 2).unwrap();
    let [first, second] = [of(0), of(1)];
    bench.launch(HOST, 1, first);
    bench.launch(HOST, 2, first);
    bench.launch(HOST, 3, second);
    assert_eq!(bench.begin(), [(1, 5), (3, 6)]);
}

#[test]
fn an_event_orders_two_streams() {
    let mut bench = Bench::new();
    let handles = [(); 2].map(|()| bench.launches.create_stream(HOST));
    let [a, b] = handles.map(|handle| bench.launches.stream(HOST, (0, 0), handle).unwrap());
    let event = bench.launches.create_event(HOST).unwrap();
    bench.launch(HOST, 1, a);
    assert_eq!(bench.launches.record(HOST, event, a), Ok(true));
    assert!(bench.launches.wait(HOST, b, event));
    bench.launch(HOST, 2, b);
    bench.launch(HOST, 3, a);
    assert_eq!(bench.begin(), [(1, 5)]);
    assert!(bench.launches.has_stream(handles[0]) && bench.launches.has_event(event));
    assert!(!bench.launches.has_stream(event) && !bench.launches.has_event(handles[0]));
    assert_eq!(bench.end(bench.number(1)), [(1, 100)]);
    assert_eq!(bench.begin(), [(2, 122), (3, 122)]);
    for (launch, last) in [
        (HOST, false),
        (bench.number(2), false),
        (bench.number(3), true),
    ] {
        assert_eq!(bench.end(launch).contains(&(0, 460)), last);
    }
    assert!(!bench.launches.has_stream(handles[0]) && !bench.launches.has_event(event));
}

#[test]
fn the_pool_has_an_end_and_tail_launches_leave_it() {
    let mut bench = Bench::new();
    // Buffers take no place, and go with the grid that asked for them.
    let buffers: Vec<u64> = (0..20)
        .map(|_| bench.launches.buffer(HOST, 12, None).unwrap())
        .collect();
    assert!(bench.launches.known_buffer(buffers[19]).is_some());
    assert_eq!(bench.end(HOST), [(0, 100)]);
    assert!(bench.launches.known_buffer(buffers[19]).is_none());
    let mut by = HOST;
    for depth in 1..=1000 {
        bench.launch(by, depth, Stream::FireAndForget);
        assert_eq!(bench.begin().len(), 1);
        by = bench.number(depth);
    }
    assert_eq!(bench.launches.check_pool(1001), Ok(()));
    let full = bench.launches.check_pool(1000);
    assert_eq!(full, Err(Error::PendingCountExceeded));
    let mut bench = Bench::new();
    let mut by = HOST;
    for depth in 1..=3000 {
        bench.launch(by, depth, Stream::Tail);
        assert_eq!(bench.end(by), []);
        assert_eq!(bench.begin().len(), 1);
        by = bench.number(depth);
    }
    assert_eq!(bench.end(by).len(), 3001);
    assert!(bench.launches.is_idle());
}

#[test]
fn events_and_their_recordings_have_an_end() {
    let mut bench = Bench::new();
    let stream = null_stream(&mut bench, 0);
    let events: Vec<_> = (0..=EVENTS)
        .map(|_| bench.launches.create_event(HOST))
        .collect();
    assert_eq!(events[EVENTS as usize], Err(Error::OutOfMemory));
    for _ in 0..EVENTS {
        let event = events[0].unwrap();
        assert_eq!(bench.launches.record(HOST, event, stream), Ok(true));
    }
    let record = bench.launches.record(HOST, 1, stream);
    assert_eq!(record, Err(Error::OutOfMemory));
    assert_eq!(bench.end(HOST), [(0, 100)]);
    assert!(bench.launches.create_event(HOST).is_ok());
}

#[test]
fn a_saved_state_goes_on_as_it_was() {
    let mut bench = Bench::new();
    let stream = null_stream(&mut bench, 0);
    bench.launch(HOST, 1, stream);
    bench.launch(HOST, 2, stream);
    bench.begin();
    let mut bytes = Vec::new();
    lockstep_engine::Writer::new(&mut bytes).write(&bench.launches);
    bench.launches = lockstep_engine::Reader::new(&bytes).read().unwrap();
    assert_eq!(bench.end(bench.number(1)), [(1, 100)]);
    assert_eq!(bench.begin(), [(2, 122)]);
}
