//! What ldmsd and its libraries offer a sampler plugin, without LDMS: sets are kept in memory, and
//! tests ask for their values.

#![allow(
    missing_docs,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    reason = "stands in for a C library in this crate's tests"
)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Mutex;

type Attributes = BTreeMap<CString, CString>;

#[derive(Default)]
struct Base {
    instance: String,
    metrics: Vec<String>,
    /// Members of its records, and how many of them it has room for.
    members: Vec<String>,
    room: usize,
}

/// Members of a record with their values; texts are their lengths.
type Record = BTreeMap<String, f64>;

/// What one record takes in a set.
const RECORD_BYTES: usize = 1000;

#[derive(Default)]
struct World {
    /// Values by instance and metric; texts are their lengths.
    values: BTreeMap<(String, String), f64>,
    samples: BTreeMap<String, u64>,
    records: BTreeMap<String, Vec<Record>>,
    log: Vec<String>,
    context: usize,
}

static WORLD: Mutex<World> = Mutex::new(World {
    values: BTreeMap::new(),
    samples: BTreeMap::new(),
    records: BTreeMap::new(),
    log: Vec::new(),
    context: 0,
});

fn world<T>(work: impl FnOnce(&mut World) -> T) -> T {
    work(&mut WORLD.lock().unwrap())
}

unsafe fn text(pointer: *const c_char) -> String {
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

unsafe fn set_value(base: *mut c_void, place: c_int, value: f64) {
    let base = unsafe { &*base.cast::<Base>() };
    let name = base.metrics[place as usize].clone();
    world(|world| world.values.insert((base.instance.clone(), name), value));
}

#[unsafe(no_mangle)]
pub extern "C" fn ldmsd_plug_ctxt_set(_: *mut c_void, context: *mut c_void) {
    world(|world| world.context = context as usize);
}

#[unsafe(no_mangle)]
pub extern "C" fn ldmsd_plug_ctxt_get(_: *mut c_void) -> *mut c_void {
    world(|world| world.context) as *mut c_void
}

#[unsafe(no_mangle)]
pub extern "C" fn ldmsd_plug_cfg_name_get(_: *mut c_void) -> *const c_char {
    c"lockstep_sampler".as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn ldmsd_plug_log_get(_: *mut c_void) -> *mut c_void {
    std::ptr::null_mut()
}

/// Takes the one text that the plugin's format has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovis_log(
    _: *mut c_void,
    _: c_int,
    format: *const c_char,
    first: *const c_char,
) -> c_int {
    assert_eq!(unsafe { text(format) }, "%s\n");
    let sentence = unsafe { text(first) };
    world(|world| world.log.push(sentence));
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn av_new(_: usize) -> *mut c_void {
    Box::into_raw(Box::<Attributes>::default()).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn av_add(
    list: *mut c_void,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    let list = unsafe { &mut *list.cast::<Attributes>() };
    let owned = |text| unsafe { CStr::from_ptr(text) }.to_owned();
    list.insert(owned(name), owned(value));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn av_value(list: *mut c_void, name: *const c_char) -> *mut c_char {
    let list = unsafe { &*list.cast::<Attributes>() };
    let value = list.get(unsafe { CStr::from_ptr(name) });
    value.map_or(std::ptr::null_mut(), |value| value.as_ptr().cast_mut())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn av_free(list: *mut c_void) {
    drop(unsafe { Box::from_raw(list.cast::<Attributes>()) });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn base_config(
    list: *mut c_void,
    _: *const c_char,
    _: *const c_char,
    _: *mut c_void,
) -> *mut c_void {
    let value = |name: &CStr| unsafe { av_value(list, name.as_ptr()) };
    // As LDMS has it, a sampler without a producer is refused.
    if value(c"producer").is_null() {
        return std::ptr::null_mut();
    }
    let base = Base {
        instance: unsafe { text(value(c"instance")) },
        metrics: vec!["component_id".into(), "job_id".into(), "app_id".into()],
        ..Base::default()
    };
    Box::into_raw(Box::new(base)).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn base_del(base: *mut c_void) {
    drop(unsafe { Box::from_raw(base.cast::<Base>()) });
}

#[unsafe(no_mangle)]
pub extern "C" fn base_schema_new(base: *mut c_void) -> *mut c_void {
    base
}

#[unsafe(no_mangle)]
pub extern "C" fn base_set_new(base: *mut c_void) -> *mut c_void {
    base
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn base_set_delete(base: *mut c_void) {
    let instance = unsafe { &*base.cast::<Base>() }.instance.clone();
    world(|world| world.values.retain(|(owner, _), _| *owner != instance));
}

#[unsafe(no_mangle)]
pub extern "C" fn base_sample_begin(_: *mut c_void) {}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn base_sample_end(base: *mut c_void) {
    let instance = unsafe { &*base.cast::<Base>() }.instance.clone();
    world(|world| *world.samples.entry(instance).or_default() += 1);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_schema_metric_add_with_unit(
    schema: *mut c_void,
    name: *const c_char,
    _: *const c_char,
    _: c_int,
) -> c_int {
    let base = unsafe { &mut *schema.cast::<Base>() };
    base.metrics.push(unsafe { text(name) });
    base.metrics.len() as c_int - 1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_schema_meta_array_add(
    schema: *mut c_void,
    name: *const c_char,
    kind: c_int,
    _: u32,
) -> c_int {
    unsafe { ldms_schema_metric_add_with_unit(schema, name, c"".as_ptr(), kind) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_metric_array_set_str(
    set: *mut c_void,
    place: c_int,
    value: *const c_char,
) {
    let length = unsafe { text(value) }.len();
    unsafe { set_value(set, place, length as f64) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_metric_set_u64(set: *mut c_void, place: c_int, value: u64) {
    unsafe { set_value(set, place, value as f64) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_metric_set_double(set: *mut c_void, place: c_int, value: f64) {
    unsafe { set_value(set, place, value) };
}

/// A kind of record: the names of its members.
#[unsafe(no_mangle)]
pub extern "C" fn ldms_record_create(_: *const c_char) -> *mut c_void {
    Box::into_raw(Box::<Vec<String>>::default()).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_record_metric_add(
    kind: *mut c_void,
    name: *const c_char,
    _: *const c_char,
    _: c_int,
    _: usize,
) -> c_int {
    let members = unsafe { &mut *kind.cast::<Vec<String>>() };
    members.push(unsafe { text(name) });
    members.len() as c_int - 1
}

#[unsafe(no_mangle)]
pub extern "C" fn ldms_record_heap_size_get(_: *mut c_void) -> usize {
    RECORD_BYTES
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_schema_record_add(schema: *mut c_void, kind: *mut c_void) -> c_int {
    let base = unsafe { &mut *schema.cast::<Base>() };
    base.members = *unsafe { Box::from_raw(kind.cast::<Vec<String>>()) };
    base.metrics.push("record".into());
    base.metrics.len() as c_int - 1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_schema_metric_list_add(
    schema: *mut c_void,
    name: *const c_char,
    unit: *const c_char,
    bytes: u32,
) -> c_int {
    unsafe { &mut *schema.cast::<Base>() }.room = bytes as usize / RECORD_BYTES;
    unsafe { ldms_schema_metric_add_with_unit(schema, name, unit, 0) }
}

#[unsafe(no_mangle)]
pub extern "C" fn ldms_metric_get(set: *mut c_void, _: c_int) -> *mut c_void {
    set
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_list_purge(set: *mut c_void, _: *mut c_void) -> c_int {
    let instance = unsafe { &*set.cast::<Base>() }.instance.clone();
    world(|world| world.records.insert(instance, Vec::new()));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_record_alloc(set: *mut c_void, _: c_int) -> *mut c_void {
    let base = unsafe { &*set.cast::<Base>() };
    let held = world(|world| world.records[&base.instance].len());
    if held >= base.room {
        return std::ptr::null_mut();
    }
    let record = (base.members.clone(), Record::new());
    Box::into_raw(Box::new(record)).cast()
}

unsafe fn set_member(record: *mut c_void, place: c_int, value: f64) {
    let (members, values) = unsafe { &mut *record.cast::<(Vec<String>, Record)>() };
    values.insert(members[place as usize].clone(), value);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_record_set_u64(record: *mut c_void, place: c_int, value: u64) {
    unsafe { set_member(record, place, value as f64) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_record_array_set_str(
    record: *mut c_void,
    place: c_int,
    value: *const c_char,
) {
    let length = unsafe { text(value) }.len();
    unsafe { set_member(record, place, length as f64) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ldms_list_append_record(
    set: *mut c_void,
    _: *mut c_void,
    record: *mut c_void,
) -> c_int {
    let instance = unsafe { &*set.cast::<Base>() }.instance.clone();
    let record = unsafe { Box::from_raw(record.cast::<(Vec<String>, Record)>()) };
    world(|world| world.records.entry(instance).or_default().push(record.1));
    0
}

/// For tests: a member of a record, or -1 if there is no such one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_record(
    instance: *const c_char,
    row: usize,
    member: *const c_char,
) -> f64 {
    let (instance, member) = unsafe { (text(instance), text(member)) };
    let find = |world: &mut World| {
        let record = world.records.get(&instance)?.get(row)?;
        record.get(&member).copied()
    };
    world(find).unwrap_or(-1.0)
}

/// For tests: the value of a metric, or -1 if there is no such set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_value(instance: *const c_char, metric: *const c_char) -> f64 {
    let key = unsafe { (text(instance), text(metric)) };
    world(|world| world.values.get(&key).copied().unwrap_or(-1.0))
}

/// For tests: how many sentences the log has that contain a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_log(part: *const c_char) -> usize {
    let part = unsafe { text(part) };
    world(|world| world.log.iter().filter(|line| line.contains(&part)).count())
}
