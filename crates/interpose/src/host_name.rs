//! The name of the host, as a process sees it: in a run of several nodes, `node0`, `node1` and so on.
//!
//! Programs find out by it who shares a node with them: NCCL, MPI programs that choose a GPU, `hostname`. In other
//! runs, and in processes of which nobody knows on which node they are, it is the machine's.

use crate::managed::wrappers::next;
use crate::process;
use lockstep_protocol::placement::NODES_VARIABLE;
use std::ffi::{c_char, c_int};
use std::sync::atomic::AtomicUsize;

/// The name of the node that this process is on, if there are several.
fn node_name() -> Option<String> {
    std::env::var_os(NODES_VARIABLE)?;
    let node = process::node().ok()?;
    Some(format!("node{node}"))
}

/// Writes a name and the zero behind it; false if there is no room.
///
/// # Safety
/// `place` is the start of so many writable bytes.
unsafe fn write(name: &str, place: *mut c_char, room: usize) -> bool {
    if name.len() >= room {
        return false;
    }
    // SAFETY: the name and its end fit, by the caller's promise.
    unsafe {
        std::ptr::copy_nonoverlapping(name.as_ptr(), place.cast(), name.len());
        place.add(name.len()).write(0);
    }
    true
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gethostname(place: *mut c_char, room: usize) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_char, usize) -> c_int;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    if let Some(name) = node_name() {
        // SAFETY: the caller's contract is that of the function.
        if !place.is_null() && unsafe { write(&name, place, room) } {
            return 0;
        }
        // SAFETY: the place of this thread's error number is always there.
        unsafe { *libc::__errno_location() = libc::ENAMETOOLONG };
        return -1;
    }
    // SAFETY: the C library's own function of this name has this signature.
    let function = unsafe { std::mem::transmute::<usize, Function>(next(c"gethostname", &NEXT)) };
    // SAFETY: the caller's contract is that of the function.
    unsafe { function(place, room) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uname(place: *mut libc::utsname) -> c_int {
    type Function = unsafe extern "C" fn(*mut libc::utsname) -> c_int;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the C library's own function of this name has this signature.
    let function = unsafe { std::mem::transmute::<usize, Function>(next(c"uname", &NEXT)) };
    // SAFETY: the caller's contract is that of the function.
    let answer = unsafe { function(place) };
    if answer == 0
        && let Some(name) = node_name()
    {
        // SAFETY: the structure was just filled; the field has its own length.
        unsafe {
            let field = &raw mut (*place).nodename;
            let room = (*field).len();
            write(&name, field.cast(), room);
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_has_no_room_is_not_written() {
        let mut place = [7 as c_char; 8];
        // SAFETY: as many bytes as are said.
        unsafe {
            assert!(!write("node12", place.as_mut_ptr(), 6));
            assert_eq!(place[0], 7);
            assert!(write("node12", place.as_mut_ptr(), 7));
        }
        assert_eq!(place[5..8], [b'2' as c_char, 0, 7]);
    }
}
