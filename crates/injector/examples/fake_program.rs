//! A CUDA program without CUDA: does to the fake device what its arguments say.
//!
//! Like the CUDA driver it loads the library that `CUDA_INJECTION64_PATH` names and calls its
//! `InitializeInjection`. Arguments are steps:
//!
//! ```text
//! context DEVICE
//! launch|ex|graph|capture CONTEXT STREAM NAME GRID BLOCK INSTRUCTIONS NANOSECONDS COUNT
//! threads N CONTEXT NAME GRID BLOCK INSTRUCTIONS NANOSECONDS COUNT   each thread in its own stream
//! capture_beside CONTEXT STREAM OTHER NAME     captures for a while, and launches in the other context
//! sync | sleep MILLISECONDS | destroy CONTEXT | fork | abort | exit CODE
//! ```

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "calls into the fake library of this crate's tests"
)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::time::Duration;

type Create = extern "C" fn(u32) -> usize;
type Destroy = extern "C" fn(usize);
type Launch = unsafe extern "C" fn(usize, u64, *const c_char, u32, u32, u32, u64, u64, u32) -> i32;
type Synchronize = extern "C" fn();
type Capture = unsafe extern "C" fn(usize, u64, u32);

fn library(variable: &str) -> Option<*mut c_void> {
    let path = CString::new(std::env::var(variable).ok()?).ok()?;
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    (!handle.is_null()).then_some(handle)
}

fn function<F>(library: *mut c_void, name: &CStr) -> F {
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!address.is_null(), "the library has no {name:?}");
    unsafe { std::mem::transmute_copy(&address) }
}

#[derive(Clone, Copy)]
struct Device {
    create: Create,
    destroy: Destroy,
    launch: Launch,
    synchronize: Synchronize,
    capture: Capture,
}

fn main() {
    let fake = library("FAKE_GPU").expect("FAKE_GPU names the fake library");
    let device = Device {
        create: function(fake, c"fake_context_create"),
        destroy: function(fake, c"fake_context_destroy"),
        launch: function(fake, c"fake_launch"),
        synchronize: function(fake, c"fake_synchronize"),
        capture: function(fake, c"fake_capture"),
    };
    if let Some(injection) = library("CUDA_INJECTION64_PATH") {
        let initialize: extern "C" fn() -> i32 = function(injection, c"InitializeInjection");
        assert_eq!(initialize(), 1, "an injection always succeeds");
    }
    let mut contexts: Vec<usize> = Vec::new();
    for step in std::env::args().skip(1) {
        let words: Vec<&str> = step.split_whitespace().collect();
        let number = |i: usize| {
            words[i]
                .parse::<u64>()
                .unwrap_or_else(|_| panic!("a number in `{step}`"))
        };
        match words[0] {
            "context" => contexts.push((device.create)(number(1) as u32)),
            "destroy" => (device.destroy)(contexts[number(1) as usize]),
            "launch" | "ex" | "graph" | "capture" => {
                let how = ["launch", "ex", "graph", "capture"]
                    .iter()
                    .position(|word| *word == words[0])
                    .unwrap_or(0);
                let name = CString::new(words[3]).unwrap();
                unsafe {
                    (device.launch)(
                        contexts[number(1) as usize],
                        number(2),
                        name.as_ptr(),
                        how as u32,
                        number(4) as u32,
                        number(5) as u32,
                        number(6),
                        number(7),
                        number(8) as u32,
                    );
                }
            }
            "threads" => {
                let context = contexts[number(2) as usize];
                let name = CString::new(words[3]).unwrap();
                let (grid, block, instructions, time, count) = (
                    number(4) as u32,
                    number(5) as u32,
                    number(6),
                    number(7),
                    number(8) as u32,
                );
                std::thread::scope(|scope| {
                    for thread in 0..number(1) {
                        let name = &name;
                        scope.spawn(move || unsafe {
                            for _ in 0..count {
                                (device.launch)(
                                    context,
                                    100 + thread,
                                    name.as_ptr(),
                                    0,
                                    grid,
                                    block,
                                    instructions,
                                    time,
                                    1,
                                );
                            }
                        });
                    }
                });
            }
            "capture_beside" => {
                let (context, stream) = (contexts[number(1) as usize], number(2));
                let other = contexts[number(3) as usize];
                let name = CString::new(words[4]).unwrap();
                unsafe { (device.capture)(context, stream, 1) };
                std::thread::scope(|scope| {
                    let launch = || unsafe {
                        (device.launch)(other, 200, name.as_ptr(), 0, 10, 32, 5, 1000, 1);
                        // A graph, too: its counts are read at once.
                        (device.launch)(context, 201, name.as_ptr(), 2, 10, 32, 5, 1000, 2);
                    };
                    scope.spawn(launch);
                    std::thread::sleep(Duration::from_millis(50));
                    unsafe { (device.capture)(context, stream, 0) };
                });
            }
            "destroy_beside" => {
                let (gone, other) = (contexts[number(1) as usize], contexts[number(2) as usize]);
                let name = CString::new(words[3]).unwrap();
                std::thread::scope(|scope| {
                    scope.spawn(|| unsafe {
                        (device.launch)(other, 202, name.as_ptr(), 2, 10, 32, 5, 20_000_000, 3);
                    });
                    std::thread::sleep(Duration::from_millis(30));
                    (device.destroy)(gone);
                });
            }
            "capture_lasts" => {
                let (context, stream) = (contexts[number(1) as usize], number(2));
                let other = contexts[number(3) as usize];
                let name = CString::new(words[4]).unwrap();
                unsafe { (device.capture)(context, stream, 1) };
                let launch = |context, stream, how| unsafe {
                    (device.launch)(context, stream, name.as_ptr(), how, 10, 32, 5, 1000, 2);
                };
                // The thread that captures launches elsewhere, and another one ends only after it has.
                launch(context, 203, 0);
                std::thread::scope(|scope| {
                    scope.spawn(|| launch(other, 204, 0));
                });
                launch(other, 205, 2);
                unsafe { (device.capture)(context, stream, 0) };
            }
            "sync" => (device.synchronize)(),
            "sleep" => std::thread::sleep(Duration::from_millis(number(1))),
            "fork" => unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::exit(0);
                }
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
                assert_eq!(status, 0, "the child ends well");
            },
            "abort" => std::process::abort(),
            "exit" => std::process::exit(number(1) as i32),
            other => panic!("no step is called `{other}`"),
        }
    }
    println!("program done");
}
