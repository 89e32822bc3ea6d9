//! System calls that programs hand memory to: where protection stops accesses, pages are moved
//! back before the call, which would otherwise answer "bad address".
//!
//! Each wrapper costs a comparison where no managed memory is watched. Functions of the C library
//! that call these inside it are wrapped themselves.

use super::touch;
use crate::spin;
use libc::{FILE, c_char, c_int, off_t, size_t, sockaddr, socklen_t, ssize_t};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The next definition of a function, after ours.
pub fn next(name: &'static std::ffi::CStr, known: &AtomicUsize) -> usize {
    match known.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: a look-up by a constant name.
            let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
            assert!(found != 0, "the C library has no such function");
            known.store(found, Ordering::Relaxed);
            found
        }
        found => found,
    }
}

/// Wraps functions: memory that is handed over is touched first. Some are called again if their answer says so.
macro_rules! wrap {
    ($($name:ident ($($argument:ident: $type:ty),*) -> $result:ty { $address:expr, $bytes:expr } $(=> { $again:expr })?)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            touch($address as usize, $bytes as usize);
            let name = const {
                match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("names have no zero inside"),
                }
            };
            type Function = unsafe extern "C" fn($($type),*) -> $result;
            let place = next(name, &NEXT);
            // SAFETY: the C library's own function of this name has this signature.
            let function = unsafe { std::mem::transmute::<usize, Function>(place) };
            // SAFETY: the caller's contract is that of the function.
            let call = || unsafe { function($($argument),*) };
            let answer = call();
            $(if ($again)(answer) {
                return call();
            })?
            answer
        }
    )*};
}

wrap! {
    read(file: c_int, buffer: *mut c_void, bytes: size_t) -> ssize_t { buffer, bytes }
    pread(file: c_int, buffer: *mut c_void, bytes: size_t, offset: off_t) -> ssize_t { buffer, bytes }
    pread64(file: c_int, buffer: *mut c_void, bytes: size_t, offset: off_t) -> ssize_t { buffer, bytes }
    write(file: c_int, buffer: *const c_void, bytes: size_t) -> ssize_t { buffer, bytes }
    pwrite(file: c_int, buffer: *const c_void, bytes: size_t, offset: off_t) -> ssize_t { buffer, bytes }
    pwrite64(file: c_int, buffer: *const c_void, bytes: size_t, offset: off_t) -> ssize_t { buffer, bytes }
    recv(socket: c_int, buffer: *mut c_void, bytes: size_t, flags: c_int) -> ssize_t { buffer, bytes } => { |answer| spin::waited(socket, answer) }
    accept(socket: c_int, from: *mut sockaddr, length: *mut socklen_t) -> c_int { from, 0 } => { |answer| spin::waited(socket, answer as ssize_t) }
    recvfrom(socket: c_int, buffer: *mut c_void, bytes: size_t, flags: c_int, from: *mut sockaddr, length: *mut socklen_t) -> ssize_t { buffer, bytes }
    send(socket: c_int, buffer: *const c_void, bytes: size_t, flags: c_int) -> ssize_t { buffer, bytes }
    sendto(socket: c_int, buffer: *const c_void, bytes: size_t, flags: c_int, to: *const sockaddr, length: socklen_t) -> ssize_t { buffer, bytes }
    fread(buffer: *mut c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t { buffer, size.saturating_mul(count) }
    fwrite(buffer: *const c_void, size: size_t, count: size_t, file: *mut FILE) -> size_t { buffer, size.saturating_mul(count) }
    fgets(buffer: *mut c_char, bytes: c_int, file: *mut FILE) -> *mut c_char { buffer, bytes.max(0) }
}
