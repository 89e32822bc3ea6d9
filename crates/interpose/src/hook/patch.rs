//! Overwrites the beginning of functions with jumps.

use super::symbols::Found;
use crate::report;
use std::io;

/// `mov rax, imm64; jmp rax`. No argument of a C function travels in `rax`, except the
/// count of vector registers of a variadic one, which CUDA's are not.
pub const JUMP_BYTES: usize = 12;

/// The bytes of a jump.
pub fn jump(target: usize) -> [u8; JUMP_BYTES] {
    let mut bytes = [0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0];
    bytes[2..10].copy_from_slice(&(target as u64).to_le_bytes());
    bytes
}

/// Redirects functions of an object that is loaded at `base`.
pub fn redirect(functions: &[Found], base: usize) -> Result<(), io::Error> {
    let (mut first, mut last) = (usize::MAX, 0);
    for function in functions {
        let address = base.wrapping_add(function.address as usize);
        first = first.min(address);
        last = last.max(address + JUMP_BYTES);
    }
    if functions.is_empty() {
        return Ok(());
    }
    writable(first, last, || {
        for function in functions {
            if function.room < JUMP_BYTES as u64 {
                report::sentence(&format!(
                    "{} is too short to be redirected; if the program calls it, NVIDIA's own \
                     code will run and find no GPU",
                    function.name
                ));
                continue;
            }
            let address = base.wrapping_add(function.address as usize);
            // SAFETY: the symbol table says that a function with this much room is here, the
            // pages are writable, and no thread runs it: the object is not initialised yet.
            unsafe { write(address, function.target) };
        }
    })
}

/// Writes one jump.
///
/// # Safety
///
/// `JUMP_BYTES` bytes of code at `address` must be writable, and no thread may be in them.
pub unsafe fn write(address: usize, target: usize) {
    let bytes = jump(target);
    // SAFETY: by the caller's promise.
    unsafe { (address as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), JUMP_BYTES) };
}

/// Makes code writable while `body` runs. It stays executable meanwhile, because other
/// threads may run other functions on the same pages.
pub fn writable(first: usize, last: usize, body: impl FnOnce()) -> Result<(), io::Error> {
    // SAFETY: `sysconf` has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = first / page * page;
    let length = last.next_multiple_of(page) - start;
    let protect = |protection| {
        // SAFETY: the range is code that the loader mapped; adding and taking back the right
        // to write changes nothing for those who run it.
        let outcome = unsafe { libc::mprotect(start as *mut libc::c_void, length, protection) };
        if outcome == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    };
    protect(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)?;
    body();
    protect(libc::PROT_READ | libc::PROT_EXEC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    extern "C" fn first() -> u32 {
        std::hint::black_box(std::process::id())
            .wrapping_mul(0)
            .wrapping_add(1)
    }

    extern "C" fn second() -> u32 {
        2
    }

    #[test]
    fn a_redirected_function_is_another() {
        let address = first as *const () as usize;
        writable(address, address + JUMP_BYTES, || {
            // SAFETY: the function is longer than a jump, and nobody else calls it.
            unsafe { write(address, second as *const () as usize) };
        })
        .unwrap();
        let call: extern "C" fn() -> u32 = std::hint::black_box(first);
        assert_eq!(call(), 2);
    }
}
