//! What the C ABI answers to good and bad calls, and that a kernel counts what it counts under `lockstep kernel`.

use lockstep_embed::*;
use lockstep_simulation::{Argument, Description, KernelDescription, run_kernel};
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

const PTX: &str = "
.version 8.0
.target sm_60
.address_size 64
.visible .global .align 4 .u32 base = 5;
.visible .entry fill(.param .u64 where, .param .u32 value)
{
    .reg .b32 %i, %v, %block, %size, %lane, %base;
    .reg .b64 %p, %offset, %g;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %lane, %tid.x;
    mad.lo.u32 %i, %block, %size, %lane;
    ld.param.u64 %p, [where];
    ld.param.u32 %v, [value];
    mov.u64 %g, base;
    ld.global.u32 %base, [%g];
    add.u32 %v, %v, %base;
    mul.wide.u32 %offset, %i, 4;
    add.u64 %p, %p, %offset;
    st.global.u32 [%p], %v;
    ret;
}
";

fn options() -> LockstepOptions {
    LockstepOptions {
        gpu: null(),
        settings: null(),
        settings_count: 0,
        threads: 1,
        functional: 0,
    }
}

/// A GPU that goes when it is dropped.
struct Gpu(*mut LockstepGpu);

impl Gpu {
    fn new() -> Self {
        let mut gpu = null_mut();
        // SAFETY: all pointers are to values of this function.
        let status = unsafe { lockstep_create(&options(), &mut gpu, null_mut(), 0) };
        assert_eq!(status, LockstepStatus::Ok);
        Self(gpu)
    }

    fn message(&self) -> String {
        // SAFETY: the GPU is there, and the text until the next call.
        unsafe { CStr::from_ptr(lockstep_message(self.0)) }
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn load(&self, image: &[u8]) -> (LockstepStatus, u32) {
        let mut module = 0;
        // SAFETY: all pointers are to values of this function.
        let status =
            unsafe { lockstep_load_module(self.0, image.as_ptr(), image.len(), &mut module) };
        (status, module)
    }

    fn find(&self, module: u32, name: &str) -> (LockstepStatus, u32) {
        let (name, mut kernel) = (CString::new(name).unwrap(), 0);
        // SAFETY: all pointers are to values of this function.
        let status = unsafe { lockstep_find_kernel(self.0, module, name.as_ptr(), &mut kernel) };
        (status, kernel)
    }

    fn allocate(&self, bytes: u64) -> u64 {
        let mut address = 0;
        // SAFETY: all pointers are to values of this function.
        let status = unsafe { lockstep_allocate(self.0, bytes, &mut address) };
        assert_eq!(status, LockstepStatus::Ok);
        address
    }

    fn launch(&self, kernel: u32, address: u64, value: u32) -> (LockstepStatus, u32) {
        let arguments = [(&raw const address).cast(), (&raw const value).cast()];
        let launch = LockstepLaunch {
            kernel,
            grid: [4, 1, 1],
            block: [128, 1, 1],
            dynamic_shared: 0,
            queue: 0,
            arguments: arguments.as_ptr(),
            arguments_count: 2,
        };
        let mut number = 0;
        // SAFETY: all pointers are to values of this function.
        let status = unsafe { lockstep_launch(self.0, &launch, &mut number) };
        (status, number)
    }

    fn finish(&self) -> LockstepStatus {
        // SAFETY: the GPU is there, and nobody is to be told.
        unsafe { lockstep_finish(self.0) }
    }

    fn counter(&self, launch: u32, name: &str) -> (LockstepStatus, u64) {
        let (name, mut value) = (CString::new(name).unwrap(), 0);
        // SAFETY: all pointers are to values of this function.
        let status = unsafe { lockstep_counter(self.0, launch, name.as_ptr(), &mut value) };
        (status, value)
    }

    fn read(&self, address: u64, bytes: usize) -> (LockstepStatus, Vec<u8>) {
        let mut held = vec![0; bytes];
        // SAFETY: all pointers are to values of this function.
        let status = unsafe { lockstep_read(self.0, address, held.as_mut_ptr().cast(), bytes) };
        (status, held)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { lockstep_destroy(self.0) };
    }
}

#[test]
fn a_kernel_counts_what_it_counts_under_lockstep_kernel() {
    let gpu = Gpu::new();
    let (_, module) = gpu.load(PTX.as_bytes());
    let (_, kernel) = gpu.find(module, "fill");
    let address = gpu.allocate(2048);
    let (status, launch) = gpu.launch(kernel, address, 7);
    assert_eq!(
        (status, gpu.finish()),
        (LockstepStatus::Ok, LockstepStatus::Ok)
    );
    let (_, bytes) = gpu.read(address, 2048);
    assert!(bytes.chunks(4).all(|word| word == [12, 0, 0, 0]));

    let folder = std::env::temp_dir().join(format!("lockstep-embed-abi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("fill.ptx");
    std::fs::write(&file, PTX).unwrap();
    let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
    let mut description = Description::new("h200", config);
    description.out = Some(folder.join("out"));
    let alone = KernelDescription {
        file,
        entry: None,
        grid: [4, 1, 1],
        block: [128, 1, 1],
        dynamic_shared: 0,
        arguments: vec![
            "u32[512]".parse::<Argument>().unwrap(),
            "u32:7".parse().unwrap(),
        ],
        print: Vec::new(),
        repeat: 1,
    };
    let (results, _) = run_kernel(&description, &alone).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let expected = results.kernels[0].counters.unwrap();
    for (metric, value) in expected.all() {
        let (status, found) = gpu.counter(launch, metric.name);
        assert_eq!(status, LockstepStatus::Ok, "{}", metric.name);
        let difference = found.abs_diff(value.unwrap());
        // The two launches begin at different points of a clock cycle.
        let allowed = match metric.name {
            "cycles" => 1,
            name if name.ends_with("_cycles") || name.starts_with("stalled_") => {
                value.unwrap() / 100
            }
            _ => 0,
        };
        assert!(difference <= allowed, "{}: {found}, {value:?}", metric.name);
    }
}

#[test]
fn what_cannot_be_is_a_status_and_a_sentence() {
    let gpu = Gpu::new();
    let said = |status: LockstepStatus, expected: LockstepStatus, words: &str| {
        assert_eq!(status, expected);
        let message = gpu.message();
        assert!(message.contains(words), "{message}");
    };
    use LockstepStatus::{Fault, InvalidArgument, Module, Ok};
    said(gpu.load(b"nothing").0, Module, "the module: ");
    said(
        gpu.find(3, "fill").0,
        InvalidArgument,
        "there is no module 3",
    );
    let (_, module) = gpu.load(PTX.as_bytes());
    said(
        gpu.find(module, "drain").0,
        InvalidArgument,
        "its kernels: fill",
    );
    let (_, kernel) = gpu.find(module, "fill");
    let address = gpu.allocate(100);
    said(
        gpu.read(address, 101).0,
        InvalidArgument,
        "are not inside one allocation",
    );
    said(
        gpu.read(u64::MAX, 1).0,
        InvalidArgument,
        "are not inside one allocation",
    );
    said(
        gpu.launch(kernel + 1, address, 0).0,
        InvalidArgument,
        "there is no kernel 1",
    );
    said(
        gpu.counter(0, "cycles").0,
        InvalidArgument,
        "no launch 0 has ended",
    );
    // SAFETY: null is what is tried.
    unsafe {
        said(
            lockstep_allocate(gpu.0, 0, null_mut()),
            InvalidArgument,
            "0 bytes asked for",
        );
        said(
            lockstep_allocate(gpu.0, 8, null_mut()),
            InvalidArgument,
            "no place for the answer",
        );
        said(
            lockstep_launch(gpu.0, null(), null_mut()),
            InvalidArgument,
            "there is no launch",
        );
        said(
            lockstep_read(gpu.0, address, null_mut(), 4),
            InvalidArgument,
            "no place",
        );
        assert_eq!(lockstep_finish(null_mut()), InvalidArgument);
        assert_eq!(
            lockstep_create(null(), null_mut(), null_mut(), 0),
            InvalidArgument
        );
        lockstep_destroy(null_mut());
    }
    // The kernel writes past its 100 bytes, and past everything that is near.
    assert_eq!(gpu.launch(kernel, 16, 0).0, Ok);
    said(gpu.finish(), Fault, "fill");
}

#[test]
fn saved_state_of_others_is_refused() {
    let gpu = Gpu::new();
    let (mut saved, mut bytes) = (null(), 0);
    // SAFETY: all pointers are to values of this function.
    let held = unsafe {
        assert_eq!(
            lockstep_save(gpu.0, &mut saved, &mut bytes),
            LockstepStatus::Ok
        );
        std::slice::from_raw_parts(saved, bytes).to_vec()
    };
    let tried = |bytes: &[u8], functional: u32| {
        let (mut again, mut message) = (null_mut(), [0; 200]);
        let options = LockstepOptions {
            functional,
            ..options()
        };
        // SAFETY: all pointers are to values of this function.
        let status = unsafe {
            let place = message.as_mut_ptr();
            lockstep_load(
                &options,
                bytes.as_ptr(),
                bytes.len(),
                &mut again,
                place,
                message.len(),
            )
        };
        let message = CStr::from_bytes_until_nul(message.map(|c| c as u8).as_slice())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        drop(Gpu(again));
        (status, message)
    };
    assert_eq!(tried(&held, 0).0, LockstepStatus::Ok);
    let refused = [
        (tried(&held, 1), "another configuration or mode"),
        (tried(&held[..held.len() - 40], 0), "not as they were saved"),
        (tried(b"", 0), "none of this version"),
        (
            tried(&[&held[..100], &[1], &held[101..]].concat(), 0),
            "not as they were saved",
        ),
    ];
    for ((status, message), words) in refused {
        assert_eq!(status, LockstepStatus::State);
        assert!(message.contains(words), "{message}");
    }
}
