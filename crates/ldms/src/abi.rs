//! The C interface between ldmsd and a sampler plugin, as LDMS 4.5 documents it.
//!
//! Functions of ldmsd and of its libraries are found by name when a plugin is made, so that the
//! library loads everywhere, and what a version lacks is a sentence.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// A handle or a structure whose inside is not ours.
pub type Opaque = *mut c_void;

/// `struct ldmsd_plugin`.
#[repr(C)]
pub struct Plugin {
    kind: c_int,
    flags: u64,
    config: unsafe extern "C" fn(Opaque, Opaque, Opaque) -> c_int,
    usage: unsafe extern "C" fn(Opaque) -> *const c_char,
    constructor: unsafe extern "C" fn(Opaque) -> c_int,
    destructor: unsafe extern "C" fn(Opaque),
    reserved: [usize; 8],
}

/// `struct ldmsd_sampler`.
#[repr(C)]
pub struct Sampler {
    base: Plugin,
    sample: unsafe extern "C" fn(Opaque) -> c_int,
}

/// `LDMSD_PLUGIN_SAMPLER`.
const SAMPLER: c_int = 1;
/// `LDMSD_PLUGIN_MULTI_INSTANCE`.
const MULTI_INSTANCE: u64 = 1;

impl Sampler {
    /// A sampler of which several can be configured.
    pub(crate) const fn new(
        config: unsafe extern "C" fn(Opaque, Opaque, Opaque) -> c_int,
        usage: unsafe extern "C" fn(Opaque) -> *const c_char,
        constructor: unsafe extern "C" fn(Opaque) -> c_int,
        destructor: unsafe extern "C" fn(Opaque),
        sample: unsafe extern "C" fn(Opaque) -> c_int,
    ) -> Self {
        Self {
            base: Plugin {
                kind: SAMPLER,
                flags: MULTI_INSTANCE,
                config,
                usage,
                constructor,
                destructor,
                reserved: [0; 8],
            },
            sample,
        }
    }
}

/// Types of metrics: `enum ldms_value_type`.
pub mod value {
    use std::ffi::c_int;

    /// `LDMS_V_U64`.
    pub const U64: c_int = 8;
    /// `LDMS_V_D64`.
    pub const D64: c_int = 11;
    /// `LDMS_V_CHAR_ARRAY`.
    pub const CHAR_ARRAY: c_int = 12;
}

/// Levels of the log.
pub mod level {
    use std::ffi::c_int;

    /// `OVIS_LERROR`.
    pub const ERROR: c_int = 8;
}

macro_rules! functions {
    ($(#[$about:meta])* $table:ident: $($(#[$help:meta])* $name:ident: $kind:ty;)+) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub struct $table {
            $($(#[$help])* pub $name: $kind,)+
        }

        impl $table {
            /// Finds them; a sentence names the first that is not there.
            pub fn find() -> Result<Self, String> {
                Ok(Self {
                    $($name: {
                        let address = address(stringify!($name))?;
                        // SAFETY: the function of this name has this type in LDMS 4.5.
                        unsafe { std::mem::transmute::<*mut c_void, $kind>(address) }
                    },)+
                })
            }
        }
    };
}

functions! {
    /// Functions of ldmsd and its libraries.
    Functions:
    /// Keeps a pointer for a plugin.
    ldmsd_plug_ctxt_set: unsafe extern "C" fn(Opaque, Opaque);
    /// The pointer that was kept.
    ldmsd_plug_ctxt_get: unsafe extern "C" fn(Opaque) -> Opaque;
    /// The name under which a plugin was configured.
    ldmsd_plug_cfg_name_get: unsafe extern "C" fn(Opaque) -> *const c_char;
    /// The log of a plugin.
    ldmsd_plug_log_get: unsafe extern "C" fn(Opaque) -> Opaque;
    /// Writes to a log.
    ovis_log: unsafe extern "C" fn(Opaque, c_int, *const c_char, ...) -> c_int;
    /// The value of an attribute.
    av_value: unsafe extern "C" fn(Opaque, *const c_char) -> *mut c_char;
    /// A new list of attributes.
    av_new: unsafe extern "C" fn(usize) -> Opaque;
    /// Adds an attribute.
    av_add: unsafe extern "C" fn(Opaque, *const c_char, *const c_char) -> c_int;
    /// Ends a list of attributes.
    av_free: unsafe extern "C" fn(Opaque);
    /// What samplers share: producer, component, job.
    base_config: unsafe extern "C" fn(Opaque, *const c_char, *const c_char, Opaque) -> Opaque;
    /// Ends it.
    base_del: unsafe extern "C" fn(Opaque);
    /// A schema that begins with what samplers share.
    base_schema_new: unsafe extern "C" fn(Opaque) -> Opaque;
    /// A set of that schema.
    base_set_new: unsafe extern "C" fn(Opaque) -> Opaque;
    /// Ends the set.
    base_set_delete: unsafe extern "C" fn(Opaque);
    /// Begins a sample.
    base_sample_begin: unsafe extern "C" fn(Opaque);
    /// Ends a sample.
    base_sample_end: unsafe extern "C" fn(Opaque);
    /// Adds a metric; its index, or less than 0.
    ldms_schema_metric_add_with_unit: unsafe extern "C" fn(Opaque, *const c_char, *const c_char, c_int) -> c_int;
    /// Adds a text that never changes.
    ldms_schema_meta_array_add: unsafe extern "C" fn(Opaque, *const c_char, c_int, u32) -> c_int;
    /// Sets a text.
    ldms_metric_array_set_str: unsafe extern "C" fn(Opaque, c_int, *const c_char);
    /// Sets a whole number.
    ldms_metric_set_u64: unsafe extern "C" fn(Opaque, c_int, u64);
    /// Sets a number.
    ldms_metric_set_double: unsafe extern "C" fn(Opaque, c_int, f64);
}

functions! {
    /// Functions for lists of records, which only those need who ask for records.
    RecordFunctions:
    /// A kind of record.
    ldms_record_create: unsafe extern "C" fn(*const c_char) -> Opaque;
    /// Adds a member; its index, or less than 0.
    ldms_record_metric_add: unsafe extern "C" fn(Opaque, *const c_char, *const c_char, c_int, usize) -> c_int;
    /// Bytes that one record takes in a set.
    ldms_record_heap_size_get: unsafe extern "C" fn(Opaque) -> usize;
    /// Makes a kind of record known to a schema; its index, or less than 0.
    ldms_schema_record_add: unsafe extern "C" fn(Opaque, Opaque) -> c_int;
    /// Adds a list with so many bytes; its index, or less than 0.
    ldms_schema_metric_list_add: unsafe extern "C" fn(Opaque, *const c_char, *const c_char, u32) -> c_int;
    /// A metric of a set.
    ldms_metric_get: unsafe extern "C" fn(Opaque, c_int) -> Opaque;
    /// Empties a list.
    ldms_list_purge: unsafe extern "C" fn(Opaque, Opaque) -> c_int;
    /// A new record of a kind; null when the set is full.
    ldms_record_alloc: unsafe extern "C" fn(Opaque, c_int) -> Opaque;
    /// Sets a whole number of a record.
    ldms_record_set_u64: unsafe extern "C" fn(Opaque, c_int, u64);
    /// Sets a text of a record.
    ldms_record_array_set_str: unsafe extern "C" fn(Opaque, c_int, *const c_char);
    /// Puts a record at the end of a list.
    ldms_list_append_record: unsafe extern "C" fn(Opaque, Opaque, Opaque) -> c_int;
}

/// The library of what samplers share, which ldmsd itself does not load.
const BASE: &str = "libsampler_base.so";

/// Makes what samplers share known, from where LDMS has its plugins or from where libraries are.
pub fn load_base() {
    let folders = std::env::var("LDMSD_PLUGIN_LIBPATH").unwrap_or_default();
    let folders = folders.split(':').filter(|folder| !folder.is_empty());
    let places = folders.map(|folder| format!("{folder}/{BASE}"));
    for place in places.chain([BASE.to_owned()]) {
        let Ok(place) = CString::new(place) else {
            continue;
        };
        // SAFETY: a text that ends in 0; the library is one of LDMS's own and stays loaded.
        let library = unsafe { libc::dlopen(place.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if !library.is_null() {
            return;
        }
    }
}

fn address(name: &str) -> Result<Opaque, String> {
    let text = CString::new(name).map_err(|_| name.to_owned())?;
    // SAFETY: a text that ends in 0, looked for in what the process has loaded.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, text.as_ptr()) };
    if address.is_null() {
        return Err(format!(
            "this ldmsd has no function `{name}`; lockstep_sampler is made for LDMS 4.5"
        ));
    }
    Ok(address)
}

/// The text at `pointer`, if there is one.
///
/// # Safety
///
/// It is null or a text that ends in 0.
pub unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    Some(text.to_string_lossy().into_owned())
}
