//! The plugin itself: configured, sampled and ended by ldmsd. Nothing here fails: what is wrong is
//! told once in the log, and there are no sets.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use lockstep_exporter::Live;
use lockstep_schema::Metadata;
use lockstep_segment::SegmentDirectory;
use lockstep_segment::now;

use crate::abi::{Functions, Opaque, Sampler, level, load_base, text, value};
use crate::records::{RecordList, Records};
use crate::schema::{Column, Value, columns};

/// What ldmsd calls.
pub(crate) const INTERFACE: Sampler = Sampler::new(config, usage, constructor, destructor, sample);

const USAGE: &std::ffi::CStr = c"config name=lockstep_sampler producer=<name> instance=<name> [component_id=<int>] [schema=<name>]\n       [job_set=<name>] [uid=<user-id>] [gid=<group-id>] [perm=<mode>]\n       [segments=<folder>] [metadata=<file>] [records=<int>]\n    instance   Sets are called <instance>/<UUID of the GPU>\n    segments   Where sampled programs publish; the folder of ldmsd's user by default\n    metadata   The file that they were given (TOML); the default counters without it\n    records    At most so many rows in the list `kernels` of each set, one for each process, context and kernel;\n               no list by default, and the schema is lockstep_records with it\n";

/// Attributes that are handed on to what samplers share.
const HANDED_ON: &[&str] = &[
    "producer",
    "component_id",
    "schema",
    "job_set",
    "job_id",
    "app_id",
    "job_start",
    "job_end",
    "uid",
    "gid",
    "perm",
];
/// Bytes of a UUID with its end.
const UUID_BYTES: u32 = 64;

/// One plugin that ldmsd configured.
struct Plugin {
    functions: Functions,
    log: Opaque,
    told: String,
    running: Option<Running>,
}

/// What it samples.
struct Running {
    live: Live,
    columns: Vec<Column>,
    name: CString,
    instance: String,
    attributes: Vec<(CString, CString)>,
    sets: BTreeMap<String, Set>,
    records: Option<Records>,
}

/// The metric set of a GPU.
struct Set {
    base: Opaque,
    set: Opaque,
    places: Vec<c_int>,
    kernels: Option<RecordList>,
}

impl Plugin {
    /// Writes a sentence to the log, unless it was the last one.
    fn tell(&mut self, sentence: &str) {
        if self.told == sentence {
            return;
        }
        self.told = sentence.to_owned();
        let plain = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
        // SAFETY: a format with one text, and the text.
        unsafe {
            (self.functions.ovis_log)(self.log, level::ERROR, c"%s\n".as_ptr(), plain.as_ptr())
        };
    }

    fn attribute(&self, attributes: Opaque, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        // SAFETY: ldmsd's list, and a text that ends in 0; what is found ends in 0, too.
        unsafe { text((self.functions.av_value)(attributes, name.as_ptr())) }
    }

    /// Takes the attributes of `config`.
    fn configure(&mut self, handle: Opaque, attributes: Opaque) -> Result<(), String> {
        let instance = self
            .attribute(attributes, "instance")
            .ok_or("config needs instance=<name>: sets are called <instance>/<UUID>")?;
        let metadata = match self.attribute(attributes, "metadata") {
            Some(path) => Metadata::read(path.as_ref()).map_err(|error| error.to_string())?,
            None => Metadata::default(),
        };
        let base = SegmentDirectory::of_user();
        let segments = self.attribute(attributes, "segments").map(PathBuf::from);
        let segments = segments.unwrap_or_else(|| base.join("programs"));
        // What the next one needs is kept beside the segments, or, if those are another user's, in
        // a folder of our own.
        let place = match SegmentDirectory::is_of_another_user(&segments) {
            true => base,
            false => segments.parent().unwrap_or(&segments).to_owned(),
        };
        // SAFETY: the handle that ldmsd gave; a text that ends in 0, or nothing.
        let name = unsafe { text((self.functions.ldmsd_plug_cfg_name_get)(handle)) };
        let name = name.unwrap_or_default();
        let folder = place.join(folder_of(&name));
        let records = self.attribute(attributes, "records");
        let records = records.map(|text| Records::parse(&text, metadata.resolved_counters()));
        let records = records.transpose()?;
        let mut live =
            Live::open(&segments, &folder, &metadata, 0).map_err(|error| error.to_string())?;
        live.keep_details(records.as_ref().map_or(0, |records| records.most));
        let handed_on = HANDED_ON.iter().filter_map(|name| {
            let text = self.attribute(attributes, name)?;
            Some((CString::new(*name).ok()?, CString::new(text).ok()?))
        });
        let attributes = handed_on.collect();
        let name = CString::new(name).unwrap_or_default();
        self.running = Some(Running {
            live,
            columns: columns(&metadata.resolved_counters()),
            name,
            instance,
            attributes,
            sets: BTreeMap::new(),
            records,
        });
        Ok(())
    }

    /// Reads what is new, and fills the sets.
    fn sample(&mut self) -> Result<(), String> {
        let (functions, log) = (self.functions, self.log);
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        running
            .live
            .poll(now())
            .map_err(|error| error.to_string())?;
        let news = running.live.take_news();
        let figures = running.live.figures().clone();
        for (uuid, gpu) in &figures.gpus {
            if !running.sets.contains_key(uuid) {
                let set = running.make_set(&functions, log, uuid)?;
                running.sets.insert(uuid.clone(), set);
            }
            let Some(set) = running.sets.get(uuid) else {
                continue;
            };
            // SAFETY: a set that LDMS made, and the places that it gave.
            unsafe {
                (functions.base_sample_begin)(set.base);
                for (column, place) in running.columns.iter().zip(&set.places) {
                    match column.value(uuid, gpu, &figures) {
                        Value::Count(count) => {
                            (functions.ldms_metric_set_u64)(set.set, *place, count);
                        }
                        Value::Level(level) => {
                            (functions.ldms_metric_set_double)(set.set, *place, level);
                        }
                    }
                }
                if let (Some(records), Some(kernels)) = (&running.records, &set.kernels) {
                    records.fill(set.set, kernels, uuid, &figures);
                }
                (functions.base_sample_end)(set.base);
            }
        }
        news.iter().for_each(|sentence| self.tell(sentence));
        Ok(())
    }

    /// Ends the sets.
    fn end(&mut self) {
        let sets = self.running.take().map(|running| running.sets);
        for set in sets.unwrap_or_default().into_values() {
            // SAFETY: what LDMS made, once.
            unsafe {
                (self.functions.base_set_delete)(set.base);
                (self.functions.base_del)(set.base);
            }
        }
    }
}

impl Running {
    /// Makes the set of a GPU.
    fn make_set(&self, functions: &Functions, log: Opaque, uuid: &str) -> Result<Set, String> {
        let failed = |what: &str| format!("{uuid}: LDMS cannot make its {what}");
        let c_text = |text: &str| CString::new(text).map_err(|_| failed("name"));
        let instance = c_text(&format!("{}/{uuid}", self.instance))?;
        let uuid_text = c_text(
            &uuid
                .chars()
                .take(UUID_BYTES as usize - 1)
                .collect::<String>(),
        )?;
        // SAFETY: LDMS's own lists, schemas and sets, texts that end in 0 and outlive the calls; what
        // is null is not used.
        unsafe {
            let list = (functions.av_new)(self.attributes.len() + 1);
            if list.is_null() {
                return Err(failed("attributes"));
            }
            for (name, text) in &self.attributes {
                (functions.av_add)(list, name.as_ptr(), text.as_ptr());
            }
            (functions.av_add)(list, c"instance".as_ptr(), instance.as_ptr());
            // Sets with and without a list are of two schemas.
            let schema = match self.records {
                Some(_) => c"lockstep_records",
                None => c"lockstep_sampler",
            };
            let base = (functions.base_config)(list, self.name.as_ptr(), schema.as_ptr(), log);
            (functions.av_free)(list);
            if base.is_null() {
                return Err(failed("base"));
            }
            let made = self.fill_schema(functions, base, &uuid_text);
            made.inspect_err(|_| (functions.base_del)(base))
                .map_err(failed)
        }
    }

    /// Adds the columns to a schema, and makes a set of it.
    ///
    /// # Safety
    ///
    /// `base` was made by LDMS.
    unsafe fn fill_schema(
        &self,
        functions: &Functions,
        base: Opaque,
        uuid: &CString,
    ) -> Result<Set, &'static str> {
        // SAFETY: the caller's promise, and texts that end in 0.
        unsafe {
            let schema = (functions.base_schema_new)(base);
            if schema.is_null() {
                return Err("schema");
            }
            let uuid_place = (functions.ldms_schema_meta_array_add)(
                schema,
                c"gpu_uuid".as_ptr(),
                value::CHAR_ARRAY,
                UUID_BYTES,
            );
            let places = self.columns.iter().map(|column| {
                let kind = if column.counts() {
                    value::U64
                } else {
                    value::D64
                };
                let name = CString::new(column.name).unwrap_or_default();
                let unit = CString::new(column.unit).unwrap_or_default();
                (functions.ldms_schema_metric_add_with_unit)(
                    schema,
                    name.as_ptr(),
                    unit.as_ptr(),
                    kind,
                )
            });
            let places: Vec<c_int> = places.collect();
            if uuid_place < 0 || places.iter().any(|place| *place < 0) {
                return Err("schema");
            }
            let mut kernels = None;
            if let Some(records) = &self.records {
                kernels = Some(records.add_to(schema).ok_or("records")?);
            }
            let set = (functions.base_set_new)(base);
            if set.is_null() {
                return Err("set");
            }
            (functions.ldms_metric_array_set_str)(set, uuid_place, uuid.as_ptr());
            Ok(Set {
                base,
                set,
                places,
                kernels,
            })
        }
    }
}

/// What an instance keeps for its next start is in a folder of its own.
fn folder_of(instance: &str) -> String {
    match instance {
        "" | "lockstep_sampler" => "ldms".to_owned(),
        other => format!("ldms-{}", other.replace('/', "-")),
    }
}

/// The plugin of a handle; null if it could not be made.
fn pointer(handle: Opaque) -> *mut Plugin {
    Functions::find().map_or(std::ptr::null_mut(), |functions| {
        // SAFETY: the handle that ldmsd gave.
        unsafe { (functions.ldmsd_plug_ctxt_get)(handle).cast() }
    })
}

/// Runs `work` on the plugin of a handle; a panic ends with it.
fn with(handle: Opaque, work: impl FnOnce(&mut Plugin) -> Result<(), String>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the plugin that the constructor made; ldmsd makes one call of it at a time.
        let plugin = unsafe { pointer(handle).as_mut() };
        if let Some(plugin) = plugin
            && let Err(sentence) = work(plugin)
        {
            plugin.tell(&sentence);
        }
    }));
    // A plugin that fails would end ldmsd; one that panicked samples nothing more.
    if outcome.is_err() {
        eprintln!("lockstep_sampler: a fault of the plugin; it is skipped this time");
    }
    0
}

unsafe extern "C" fn constructor(handle: Opaque) -> c_int {
    load_base();
    match Functions::find() {
        Ok(functions) => {
            // SAFETY: the handle that ldmsd gave.
            let log = unsafe { (functions.ldmsd_plug_log_get)(handle) };
            let plugin = Box::new(Plugin {
                functions,
                log,
                told: String::new(),
                running: None,
            });
            // SAFETY: the handle that ldmsd gave; the destructor takes the box back.
            unsafe { (functions.ldmsd_plug_ctxt_set)(handle, Box::into_raw(plugin).cast()) };
        }
        Err(sentence) => eprintln!("lockstep_sampler: {sentence}"),
    }
    0
}

unsafe extern "C" fn destructor(handle: Opaque) {
    with(handle, |plugin| {
        plugin.end();
        Ok(())
    });
    let plugin = pointer(handle);
    if !plugin.is_null() {
        // SAFETY: the box of the constructor, which nobody uses any more.
        let plugin = unsafe { Box::from_raw(plugin) };
        // SAFETY: the handle that ldmsd gave.
        unsafe { (plugin.functions.ldmsd_plug_ctxt_set)(handle, std::ptr::null_mut()) };
    }
}

unsafe extern "C" fn config(handle: Opaque, _keywords: Opaque, attributes: Opaque) -> c_int {
    with(handle, |plugin| plugin.configure(handle, attributes))
}

unsafe extern "C" fn usage(_handle: Opaque) -> *const c_char {
    USAGE.as_ptr()
}

unsafe extern "C" fn sample(handle: Opaque) -> c_int {
    with(handle, Plugin::sample)
}
