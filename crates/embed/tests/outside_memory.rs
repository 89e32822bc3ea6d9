//! A GPU whose memory is modelled outside: no result depends on threads or on where it was saved, and requests that
//! are not there are refused.

use lockstep_protocol::LaunchConfig;
use lockstep_simulation::{Description, EmbeddedGpu, EmbeddedLaunch, OutsideAccess, Passed};
use lockstep_units::Time;

const PTX: &str = "
.version 8.0
.target sm_60
.address_size 64
.visible .entry gather(.param .u64 where)
{
    .reg .b32 %i, %block, %size, %lane, %x, %old;
    .reg .b64 %p, %q, %offset;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %lane, %tid.x;
    mad.lo.u32 %i, %block, %size, %lane;
    ld.param.u64 %p, [where];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %q, %p, %offset;
    ld.global.u32 %x, [%q];
    add.u32 %x, %x, %i;
    st.global.u32 [%q], %x;
    atom.global.add.u32 %old, [%p+32768], %x;
    ret;
}
";
const THREADS: u32 = 8192;
/// What memory takes, in femtoseconds, and for each request after another.
const LATENCY: u64 = 400_000_000;
const TURN: u64 = 50_000;

fn description(threads: u32) -> Description {
    let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
    let mut description = Description::new("h200", config);
    description.execution.threads = threads;
    description
}

/// A GPU with memory outside that has a launch before it.
fn launched(threads: u32) -> EmbeddedGpu {
    let mut gpu = EmbeddedGpu::new(&description(threads)).unwrap();
    gpu.set_outside_memory(true).unwrap();
    let module = gpu.load_module(PTX.as_bytes()).unwrap();
    let kernel = gpu.find_kernel(module, "gather").unwrap();
    let address = gpu.allocate(1 << 16).unwrap();
    gpu.launch(&EmbeddedLaunch {
        kernel,
        config: LaunchConfig {
            grid: [THREADS / 128, 1, 1],
            block: [128, 1, 1],
            dynamic_shared: 0,
        },
        arguments: vec![address.to_le_bytes().to_vec()],
        queue: 0,
    })
    .unwrap();
    gpu
}

/// Answers requests one after the other.
fn answer(gpu: &mut EmbeddedGpu, passed: &Passed, free: &mut u64) {
    for request in &passed.requests {
        *free = (*free).max(request.at.0) + TURN;
        gpu.complete(request.number, Time(*free + LATENCY)).unwrap();
    }
}

/// Runs a GPU to its end. What left it, by access: requests and sectors.
fn end(gpu: &mut EmbeddedGpu, mut free: u64) -> [(usize, u32); 3] {
    let mut left = [(0, 0); 3];
    loop {
        let passed = gpu.pass(None).unwrap();
        for request in &passed.requests {
            let (requests, sectors) = &mut left[request.access as usize];
            *requests += 1;
            *sectors += request.sectors.count_ones();
        }
        answer(gpu, &passed, &mut free);
        if passed.is_over {
            return left;
        }
    }
}

#[test]
fn one_digest_for_all_threads_and_every_sector_leaves_once() {
    let digests: Vec<String> = [1, 2, 4]
        .map(|threads| {
            let mut gpu = launched(threads);
            gpu.list_ended_blocks(true);
            let left = end(&mut gpu, 0);
            let sectors = THREADS / 8;
            assert_eq!(left[OutsideAccess::Read as usize].1, sectors);
            assert_eq!(left[OutsideAccess::Write as usize].1, sectors);
            assert!(left[OutsideAccess::Atomic as usize].0 > 0);
            assert!(gpu.counters(0).unwrap().get("cycles").unwrap() > 800);
            gpu.digest()
        })
        .into();
    assert!(digests.iter().all(|one| *one == digests[0]), "{digests:?}");
}

#[test]
fn where_it_is_saved_never_shows() {
    let mut whole = launched(1);
    end(&mut whole, 0);
    let mut gpu = launched(1);
    let (mut free, mut steps) = (0, 0);
    loop {
        let passed = gpu.pass(None).unwrap();
        assert!(!passed.is_over);
        steps += 1;
        // Requests have left then, and nobody has completed the last of them.
        let saved = gpu.save();
        gpu = EmbeddedGpu::load(&description(2), &saved).unwrap();
        answer(&mut gpu, &passed, &mut free);
        if steps == 2 {
            break;
        }
    }
    end(&mut gpu, free);
    assert_eq!(gpu.digest(), whole.digest());
}

#[test]
fn requests_that_are_not_there_and_answers_that_never_come_are_told() {
    let mut gpu = launched(1);
    let error = gpu.set_outside_memory(false).unwrap_err().to_string();
    assert!(error.contains("still waits or runs"), "{error}");
    let first = loop {
        let passed = gpu.pass(None).unwrap();
        if let Some(first) = passed.requests.first() {
            break first.number;
        }
    };
    gpu.complete(first, Time(0)).unwrap();
    for number in [first, u64::MAX, 1 << 40] {
        let error = gpu.complete(number, Time(0)).unwrap_err().to_string();
        assert!(error.contains("waits for its completion"), "{error}");
    }
    let error = loop {
        match gpu.pass(None) {
            Ok(passed) => assert!(!passed.is_over),
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        error.contains("requests wait for memory outside"),
        "{error}"
    );
    // Time passes all the same.
    let later = gpu.now() + lockstep_units::Duration(1_000_000_000);
    while !gpu.pass(Some(later)).unwrap().is_over {}
    assert!(gpu.now() >= later && !gpu.is_idle());
}
