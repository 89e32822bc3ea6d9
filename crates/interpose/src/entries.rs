//! The table of all entry points: made by the build script, finished by the linker.

use std::ffi::c_char;

/// One function that an entry point can lead to.
#[repr(C)]
pub struct Entry {
    /// Ours if we have it, else the stub.
    address: usize,
    /// Address of the stub that answers 801 (not supported).
    stub: usize,
    name: *const c_char,
}

// SAFETY: the pointers are constants of this library.
unsafe impl Sync for Entry {}

impl Entry {
    /// Address that calls go to.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Whether a chapter implements it.
    pub fn implemented(&self) -> bool {
        self.address != self.stub
    }

    /// The function's name.
    #[cfg(test)]
    pub fn name(&self) -> &'static str {
        // SAFETY: the build script writes names as constant zero-terminated ASCII.
        unsafe { std::ffi::CStr::from_ptr(self.name) }
            .to_str()
            .unwrap_or("?")
    }
}

/// The address of the table, as the shims read it.
#[repr(transparent)]
pub struct EntriesPointer(*const [Entry; ENTRY_COUNT]);

// SAFETY: it points to a constant.
unsafe impl Sync for EntriesPointer {}

unsafe extern "C" {
    safe static lockstep_entries: [Entry; ENTRY_COUNT];
}

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// Major versions of the runtime; their order is that of the columns of [`RUNTIME`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeMajor {
    /// 11 and before.
    Eleven,
    /// 12.
    Twelve,
    /// 13.
    Thirteen,
}

/// The function that a runtime name stands for in a major version.
pub fn runtime(name: &str, major: RuntimeMajor) -> Option<&'static Entry> {
    let row = RUNTIME.binary_search_by(|row| row.0.cmp(name)).ok()?;
    let columns = &RUNTIME[row].1;
    // A name that the version lacks is served as any other version has it.
    let number = columns[major as usize].or_else(|| columns.iter().flatten().copied().next())?;
    Some(&lockstep_entries[usize::from(number)])
}

/// The function that an exported driver name stands for.
#[cfg(test)]
pub fn driver(name: &str) -> Option<&'static Entry> {
    let row = DRIVER.binary_search_by(|row| row.0.cmp(name)).ok()?;
    Some(&lockstep_entries[usize::from(DRIVER[row].1)])
}

/// What `cuGetProcAddress` finds.
#[derive(Clone, Copy)]
pub enum Lookup {
    /// A function of ours, or a stub.
    Found(&'static Entry),
    /// The name exists only in later versions.
    VersionTooOld,
    /// There is no such name.
    NotFound,
}

/// Finds the newest revision of a driver function that is not newer than `version`.
pub fn look_up(name: &str, version: u32, per_thread: bool) -> Lookup {
    let start = LOOKUPS.partition_point(|row| row.0 < name);
    let rows = || LOOKUPS[start..].iter().take_while(|row| row.0 == name);
    let newest = |variant: bool| {
        rows()
            .filter(|row| row.2 == variant && row.1 <= version)
            .last()
    };
    let found = if per_thread { newest(true) } else { None };
    match found.or_else(|| newest(false)) {
        Some(row) => Lookup::Found(&lockstep_entries[usize::from(row.3)]),
        None if rows().next().is_some() => Lookup::VersionTooOld,
        None => Lookup::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_chosen_by_the_version_in_which_they_appeared() {
        let name = |symbol, version, per_thread| match look_up(symbol, version, per_thread) {
            Lookup::Found(entry) => entry.name(),
            Lookup::VersionTooOld => "too old",
            Lookup::NotFound => "not found",
        };
        assert_eq!(name("cuMemAlloc", 2000, false), "cuMemAlloc");
        assert_eq!(name("cuMemAlloc", 13030, false), "cuMemAlloc_v2");
        assert_eq!(name("cuCtxCreate", 11040, false), "cuCtxCreate_v3");
        assert_eq!(name("cuMemcpyHtoD", 12000, true), "cuMemcpyHtoD_v2_ptds");
        assert_eq!(name("cuMemcpyHtoD", 3020, true), "cuMemcpyHtoD_v2");
        assert_eq!(name("cuInit", 13000, true), "cuInit");
        assert_eq!(name("cuLaunchKernelEx", 11000, false), "too old");
        assert_eq!(name("cuNoSuchThing", 13000, false), "not found");
    }

    #[test]
    fn a_runtime_name_means_what_it_means_in_its_major_version() {
        let name = |symbol, major| runtime(symbol, major).unwrap().name();
        assert_eq!(name("cudaMemAdvise", RuntimeMajor::Twelve), "cudaMemAdvise");
        assert_eq!(
            name("cudaMemAdvise", RuntimeMajor::Thirteen),
            "cudaMemAdvise_v2"
        );
        assert_eq!(
            name("cudaThreadExit", RuntimeMajor::Thirteen),
            "cudaThreadExit"
        );
        assert!(runtime("cudaNoSuchThing", RuntimeMajor::Thirteen).is_none());
    }

    #[test]
    fn stubs_stand_in_for_what_nobody_wrote() {
        assert!(
            runtime("cudaMalloc", RuntimeMajor::Thirteen)
                .unwrap()
                .implemented()
        );
        assert!(!driver("cuGLInit").unwrap().implemented());
    }
}
