//! The plugin, loaded and driven as ldmsd does it.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "calls into the plugin and the fake library of this crate's tests"
)]

#[path = "../../exporter/tests/support/mod.rs"]
mod support;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use support::{Folder, GPU, METADATA, Program};

type Handle = *mut c_void;
type Call = unsafe extern "C" fn(Handle) -> c_int;

/// The structure at `ldmsd_plugin_interface`, written down again.
#[repr(C)]
struct Interface {
    kind: c_int,
    flags: u64,
    config: unsafe extern "C" fn(Handle, Handle, Handle) -> c_int,
    usage: unsafe extern "C" fn(Handle) -> *const c_char,
    constructor: Call,
    destructor: unsafe extern "C" fn(Handle),
    reserved: [usize; 8],
    sample: Call,
}

fn load(path: &Path, flags: c_int) -> Handle {
    let text = CString::new(path.to_str().unwrap()).unwrap();
    let library = unsafe { libc::dlopen(text.as_ptr(), flags) };
    assert!(!library.is_null(), "{}", path.display());
    library
}

fn function<F>(library: Handle, name: &CStr) -> F {
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!address.is_null(), "{name:?}");
    unsafe { std::mem::transmute_copy(&address) }
}

struct Ldmsd {
    fake: Handle,
    plugin: &'static Interface,
}

impl Ldmsd {
    fn start() -> Self {
        let test = std::env::current_exe().unwrap();
        let outputs = test.parent().unwrap().parent().unwrap();
        let fake = load(
            &outputs.join("examples/libfake_ldms.so"),
            libc::RTLD_NOW | libc::RTLD_GLOBAL,
        );
        let library = load(&outputs.join("deps/liblockstep_sampler.so"), libc::RTLD_NOW);
        let interface: *const Interface = function(library, c"ldmsd_plugin_interface");
        let plugin = unsafe { &*interface };
        assert_eq!((plugin.kind, plugin.flags), (1, 1));
        assert_eq!(unsafe { (plugin.constructor)(std::ptr::null_mut()) }, 0);
        Self { fake, plugin }
    }

    fn config(&self, attributes: &[(&str, &str)]) {
        let new: unsafe extern "C" fn(usize) -> Handle = function(self.fake, c"av_new");
        let add: unsafe extern "C" fn(Handle, *const c_char, *const c_char) -> c_int =
            function(self.fake, c"av_add");
        let list = unsafe { new(8) };
        for (name, value) in attributes {
            let (name, value) = (CString::new(*name).unwrap(), CString::new(*value).unwrap());
            unsafe { add(list, name.as_ptr(), value.as_ptr()) };
        }
        let null = std::ptr::null_mut();
        assert_eq!(
            unsafe { (self.plugin.config)(null, null, list) },
            0,
            "fails soft"
        );
        let free: unsafe extern "C" fn(Handle) = function(self.fake, c"av_free");
        unsafe { free(list) };
    }

    fn sample(&self) {
        assert_eq!(
            unsafe { (self.plugin.sample)(std::ptr::null_mut()) },
            0,
            "fails soft"
        );
    }

    fn value(&self, metric: &str) -> f64 {
        let ask: unsafe extern "C" fn(*const c_char, *const c_char) -> f64 =
            function(self.fake, c"fake_value");
        let instance = CString::new(format!("n17/gpu/{GPU}")).unwrap();
        let metric = CString::new(metric).unwrap();
        unsafe { ask(instance.as_ptr(), metric.as_ptr()) }
    }

    fn record(&self, row: usize, member: &str) -> f64 {
        let ask: unsafe extern "C" fn(*const c_char, usize, *const c_char) -> f64 =
            function(self.fake, c"fake_record");
        let instance = CString::new(format!("n17/gpu/{GPU}")).unwrap();
        let member = CString::new(member).unwrap();
        unsafe { ask(instance.as_ptr(), row, member.as_ptr()) }
    }

    fn said(&self, part: &str) -> usize {
        let ask: unsafe extern "C" fn(*const c_char) -> usize = function(self.fake, c"fake_log");
        let part = CString::new(part).unwrap();
        unsafe { ask(part.as_ptr()) }
    }
}

/// One process has one fake ldmsd, so that all of it is one test.
#[test]
fn a_gpu_is_a_set_and_nothing_that_is_wrong_fails() {
    let folder = Folder::new();
    let segments = folder.segments();
    let metadata = folder.0.join("counters.toml");
    let ldmsd = Ldmsd::start();
    let usage = unsafe { CStr::from_ptr((ldmsd.plugin.usage)(std::ptr::null_mut())) };
    assert!(usage.to_str().unwrap().contains("segments=<folder>"));

    ldmsd.sample();
    let at = |path: &Path| path.to_str().unwrap().to_owned();
    let (segments_text, metadata_text) = (at(&segments), at(&metadata));
    let mut attributes = vec![
        ("instance", "n17/gpu"),
        ("producer", "n17"),
        ("component_id", "17"),
        ("segments", segments_text.as_str()),
        ("metadata", metadata_text.as_str()),
    ];
    ldmsd.config(&attributes);
    assert_eq!(ldmsd.said("cannot read the metadata file"), 1);
    std::fs::write(&metadata, METADATA).unwrap();
    ldmsd.config(&attributes[1..]);
    assert_eq!(ldmsd.said("config needs instance=<name>"), 1);

    ldmsd.config(&attributes);
    ldmsd.sample();
    assert_eq!(
        ldmsd.value("inst_executed"),
        -1.0,
        "no program, no GPU, no set"
    );

    let mut program = Program::start(&segments, &[]);
    program.time = lockstep_segment::now();
    program.launch("k", 4);
    program.sample(400, 4);
    program.gauges(123_456, 61, 3 << 30);
    drop(program);
    ldmsd.sample();
    assert_eq!(ldmsd.value("inst_executed"), 400.0);
    assert_eq!(ldmsd.value("warps_launched"), 4.0);
    assert_eq!(ldmsd.value("launches"), 1.0);
    assert_eq!(ldmsd.value("power_usage"), 123_456.0);
    assert!(ldmsd.value("sm_clock").is_nan(), "it was not read");
    assert_eq!(ldmsd.value("records_lost"), 0.0);
    assert_eq!(ldmsd.value("gpu_uuid"), GPU.len() as f64);

    let mut second = Program::start(&segments, &[]);
    second.time = lockstep_segment::now();
    second.launch("k", 1);
    second.sample(11, 1);
    drop(second);
    ldmsd.sample();
    assert_eq!(
        ldmsd.value("inst_executed"),
        411.0,
        "sums go on over programs"
    );
    assert_eq!(
        ldmsd.record(0, "launches"),
        -1.0,
        "nobody asked for records"
    );
    unsafe { (ldmsd.plugin.destructor)(std::ptr::null_mut()) };
    assert_eq!(ldmsd.value("inst_executed"), -1.0, "its sets are gone");
    ldmsd.sample();
    records(&ldmsd, &attributes, &folder);

    // Another instance, without what LDMS asks of every sampler.
    assert_eq!(
        unsafe { (ldmsd.plugin.constructor)(std::ptr::null_mut()) },
        0
    );
    attributes.remove(1);
    ldmsd.config(&attributes);
    ldmsd.sample();
    assert_eq!(ldmsd.said("LDMS cannot make its base"), 1);
    unsafe { (ldmsd.plugin.destructor)(std::ptr::null_mut()) };
}

/// An instance with records: a row for each kernel of a context.
fn records(ldmsd: &Ldmsd, attributes: &[(&str, &str)], folder: &Folder) {
    // A folder of its own: this process has published in the other one, and what was read there is not read again.
    let base = folder.0.join("records");
    lockstep_segment::SegmentDirectory::open(&base, "").unwrap();
    let segments = base.join("programs");
    let begin = || unsafe { (ldmsd.plugin.constructor)(std::ptr::null_mut()) };
    assert_eq!(begin(), 0);
    let mut attributes = attributes.to_vec();
    attributes.retain(|(name, _)| *name != "segments");
    attributes.push(("segments", segments.to_str().unwrap()));
    attributes.push(("records", "many"));
    ldmsd.config(&attributes);
    assert_eq!(ldmsd.said("records=many: a number from 1 to"), 1);
    attributes.pop();
    attributes.push(("records", "2"));
    ldmsd.config(&attributes);
    let mut program = Program::start(&segments, &[]);
    program.time = lockstep_segment::now();
    program.launch("kernel", 2);
    program.sample(50, 2);
    drop(program);
    ldmsd.sample();
    let row = |member: &str| ldmsd.record(0, member);
    assert_eq!(row("process"), f64::from(std::process::id()));
    assert_eq!(row("context"), 1.0);
    assert_eq!(row("kernel"), 6.0, "the length of its name");
    assert_eq!(row("launches"), 1.0);
    assert_eq!(row("inst_executed"), 50.0);
    assert_eq!(row("warps_launched"), 2.0);
    assert_eq!(ldmsd.record(1, "kernel"), -1.0, "there is no other");
    assert_eq!(ldmsd.value("inst_executed"), 50.0, "sums stand beside it");
    unsafe { (ldmsd.plugin.destructor)(std::ptr::null_mut()) };
}
