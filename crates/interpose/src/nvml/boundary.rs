//! Where C calls in: no panic crosses, and results become codes of NVML.

use crate::boundary::guarded;
use crate::types::Out;
use lockstep_protocol::CuResult;

/// An `nvmlReturn_t` other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvmlError(pub u32);

impl NvmlError {
    pub const UNINITIALIZED: Self = Self(1);
    pub const INVALID_ARGUMENT: Self = Self(2);
    pub const NOT_SUPPORTED: Self = Self(3);
    pub const NOT_FOUND: Self = Self(6);
    pub const INSUFFICIENT_SIZE: Self = Self(7);
    pub const DRIVER_NOT_LOADED: Self = Self(9);
    pub const TIMEOUT: Self = Self(10);
    pub const GPU_IS_LOST: Self = Self(15);
    pub const ARGUMENT_VERSION_MISMATCH: Self = Self(25);
    pub const UNKNOWN: Self = Self(999);
}

/// Arguments are read and written by code that CUDA's calls share.
impl From<CuResult> for NvmlError {
    fn from(result: CuResult) -> Self {
        match result {
            CuResult::INVALID_VALUE => Self::INVALID_ARGUMENT,
            _ => Self::UNKNOWN,
        }
    }
}

/// Runs a function.
pub fn answer(name: &str, body: impl FnOnce() -> Result<(), NvmlError>) -> u32 {
    match guarded(name, body) {
        Some(Ok(())) => 0,
        Some(Err(error)) => error.0,
        None => NvmlError::UNKNOWN.0,
    }
}

/// What the stubs come to: before initialisation that is what is wrong, as everywhere.
#[unsafe(no_mangle)]
extern "C" fn lockstep_unsupported_nvml(name: crate::types::Text) -> u32 {
    let code = answer("unsupported", || {
        super::library::current()?;
        Err(NvmlError::NOT_SUPPORTED)
    });
    if crate::trace::is_on() {
        crate::trace::nvml(&name.get().unwrap_or_default(), &[], code);
    }
    code
}

/// Checks the version at the start of a structure: its size, and its revision in the last byte. No
/// more than these four bytes may be touched before.
pub fn check_version<T>(place: Out<T>, revision: u32) -> Result<(), NvmlError> {
    let found = Out::<u32>::at(place.pointer() as usize).current()?;
    if found == version_of::<T>(revision) {
        Ok(())
    } else {
        Err(NvmlError::ARGUMENT_VERSION_MISMATCH)
    }
}

/// The version of a structure.
pub const fn version_of<T>(revision: u32) -> u32 {
    size_of::<T>() as u32 | revision << 24
}

/// Writes a text with its zero into a buffer of `length` bytes.
pub fn set_text(buffer: Out<u8>, text: &str, length: u32) -> Result<(), NvmlError> {
    buffer.check()?;
    if length as usize <= text.len() {
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    Ok(buffer.set_text(text, length as usize)?)
}

/// Writes values into a buffer that has room for `count` of them, and how many there are into
/// `count`. A caller may ask for the number alone, with no room and no buffer.
pub fn set_list<T: Copy>(count: Out<u32>, buffer: Out<T>, values: &[T]) -> Result<(), NvmlError> {
    let room = count.current()? as usize;
    count.set(values.len() as u32)?;
    if values.len() > room {
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    for (index, value) in values.iter().enumerate() {
        buffer.check()?;
        buffer.element(index).set(*value)?;
    }
    Ok(())
}

/// Defines functions of NVML.
///
/// `fn name [library] (…)` has the initialised library at hand, and answers that it is not
/// initialised where it is not; `fn name | older [library] (…)` defines two that do the same;
/// `fn name (…)` needs no library.
macro_rules! nvml {
    () => {};
    ($(#[$meta:meta])* fn $name:ident ($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $(#[$meta])*
        #[unsafe(export_name = concat!("lockstep_", stringify!($name)))]
        #[allow(non_snake_case)]
        extern "C" fn $name($($argument: $type),*) -> u32 {
            let code = crate::nvml::boundary::answer(
                stringify!($name),
                || -> Result<(), crate::nvml::boundary::NvmlError> { $body },
            );
            crate::trace::trace!(nvml $name($($argument),*) = code);
            code
        }
        nvml! { $($rest)* }
    };
    ($(#[$meta:meta])* fn $name:ident [$library:ident] ($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        nvml! {
            $(#[$meta])*
            fn $name($($argument: $type),*) {
                let $library = crate::nvml::library::current()?;
                $body
            }
            $($rest)*
        }
    };
    ($(#[$meta:meta])* fn $name:ident | $older:ident [$library:ident] ($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        nvml! {
            $(#[$meta])*
            fn $name [$library] ($($argument: $type),*) $body
            $(#[$meta])*
            fn $older [$library] ($($argument: $type),*) $body
            $($rest)*
        }
    };
}

pub(crate) use nvml;
