//! Where C calls in: no panic crosses, and results become the codes of each API.

use crate::{call, report, thread};
use lockstep_protocol::CuResult;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A `cudaError_t`. Nearly all codes of the driver mean the same here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeError(pub i32);

impl RuntimeError {
    pub const INVALID_VALUE: Self = Self(1);
    pub const INVALID_CONFIGURATION: Self = Self(9);
    pub const INVALID_PITCH: Self = Self(12);
    pub const INVALID_SYMBOL: Self = Self(13);
    pub const INVALID_TEXTURE: Self = Self(18);
    pub const INVALID_TEXTURE_BINDING: Self = Self(19);
    pub const INVALID_CHANNEL_DESCRIPTOR: Self = Self(20);
    pub const INVALID_COPY_DIRECTION: Self = Self(21);
    pub const INVALID_FILTER_SETTING: Self = Self(26);
    pub const INVALID_NORM_SETTING: Self = Self(27);
    pub const MISSING_CONFIGURATION: Self = Self(52);
    pub const INVALID_DEVICE_FUNCTION: Self = Self(98);
}

impl From<CuResult> for RuntimeError {
    fn from(result: CuResult) -> Self {
        Self(result.0 as i32)
    }
}

/// Runs a function of the runtime API. A failure becomes the thread's last error; that something is not ready yet is
/// an answer, no failure.
pub fn answer_runtime(name: &str, body: impl FnOnce() -> Result<(), RuntimeError>) -> i32 {
    let code = match guarded(name, body) {
        Some(Ok(())) => 0,
        Some(Err(error)) => error.0,
        None => CuResult::UNKNOWN.0 as i32,
    };
    keep_error(code);
    code
}

/// A function of its own, as there are hundreds of callers.
fn keep_error(code: i32) {
    if code != 0 && code != CuResult::NOT_READY.0 as i32 {
        thread::current().last_error.set(code);
    }
}

/// Runs a function of the driver API.
pub fn answer_driver(name: &str, body: impl FnOnce() -> Result<(), CuResult>) -> u32 {
    match guarded(name, body) {
        Some(Ok(())) => 0,
        Some(Err(error)) => error.0,
        None => CuResult::UNKNOWN.0,
    }
}

/// Runs what must not fail into C; `None` after a panic, which has been reported.
pub fn guarded<T>(name: &str, body: impl FnOnce() -> T) -> Option<T> {
    let (mut body, mut outcome) = (Some(body), None);
    catch(name, &mut || outcome = body.take().map(|body| body()));
    outcome
}

/// Catches and reports a panic. Compiled once, not for each of the hundreds of functions that C calls.
fn catch(name: &str, body: &mut dyn FnMut()) {
    if catch_unwind(AssertUnwindSafe(body)).is_err() {
        report::sentence(&format!(
            "{name}: a fault inside Lockstep itself, described above; the call answers \
             \"unknown error\" (999). Please report it"
        ));
    }
}

/// What the stubs of the runtime API come to.
#[unsafe(no_mangle)]
extern "C" fn lockstep_unsupported_runtime(name: crate::types::Text) -> i32 {
    answer_runtime("unsupported", || {
        call::unsupported(&name.get()?);
        Err(CuResult::NOT_SUPPORTED.into())
    })
}

/// What the stubs of the driver API come to.
#[unsafe(no_mangle)]
extern "C" fn lockstep_unsupported_driver(name: crate::types::Text) -> u32 {
    answer_driver("unsupported", || {
        call::unsupported(&name.get()?);
        Err(CuResult::NOT_SUPPORTED)
    })
}

/// Defines functions of the runtime API.
///
/// `fn name | name_ptsz [defaults] (…)` defines two: `defaults` says which stream a null
/// handle means in each.
macro_rules! runtime {
    ($($functions:tt)*) => {
        crate::boundary::entries! {
            [runtime answer_runtime i32 crate::boundary::RuntimeError] $($functions)*
        }
    };
}

/// Defines functions of the driver API, in the same two forms.
macro_rules! driver {
    ($($functions:tt)*) => {
        crate::boundary::entries! {
            [driver answer_driver u32 lockstep_protocol::CuResult] $($functions)*
        }
    };
}

/// Defines functions of an API: its name, its function that answers, its codes and its errors stand first.
macro_rules! entries {
    ([$($api:tt)*]) => {};
    (
        [$api:ident $answer:ident $code:ident $error:path]
        $(#[$meta:meta])* fn $name:ident ($($argument:ident: $type:ty),* $(,)?) $body:block
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        #[unsafe(export_name = concat!("lockstep_", stringify!($name)))]
        #[allow(non_snake_case)]
        pub extern "C" fn $name($($argument: $type),*) -> $code {
            let code = crate::boundary::$answer(stringify!($name), || -> Result<(), $error> { $body });
            crate::trace::trace!($api [stringify!($name)] ($($argument),*) = code);
            code
        }
        crate::boundary::entries! { [$api $answer $code $error] $($rest)* }
    };
    (
        [$api:ident $answer:ident $code:ident $error:path]
        $(#[$meta:meta])* fn $name:ident | $variant:ident [$defaults:ident] ($($argument:ident: $type:ty),* $(,)?) $body:block
        $($rest:tt)*
    ) => {
        /// The body of both functions.
        #[allow(non_snake_case)]
        mod $variant {
            #[allow(unused_imports)]
            use super::*;

            $(#[$meta])*
            pub(super) fn answer(
                name: &'static str,
                $defaults: crate::streams::Defaults,
                $($argument: $type),*
            ) -> $code {
                let code = crate::boundary::$answer(name, || -> Result<(), $error> { $body });
                crate::trace::trace!($api [name] ($($argument),*) = code);
                code
            }
        }

        $(#[$meta])*
        #[unsafe(export_name = concat!("lockstep_", stringify!($name)))]
        #[allow(non_snake_case)]
        pub extern "C" fn $name($($argument: $type),*) -> $code {
            $variant::answer(stringify!($name), crate::streams::Defaults::Legacy, $($argument),*)
        }

        $(#[$meta])*
        #[unsafe(export_name = concat!("lockstep_", stringify!($variant)))]
        #[allow(non_snake_case)]
        pub extern "C" fn $variant($($argument: $type),*) -> $code {
            $variant::answer(stringify!($variant), crate::streams::Defaults::PerThread, $($argument),*)
        }
        crate::boundary::entries! { [$api $answer $code $error] $($rest)* }
    };
}

pub(crate) use {driver, entries, runtime};
