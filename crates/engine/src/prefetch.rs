//! Asking the processor for memory before it is needed.
//!
//! What other threads wrote lies in the caches of their processors, and fetching one line of it takes
//! as long as some hundred instructions. Asking changes nothing that a program can see.

/// Bytes that a processor fetches at once.
const LINE: usize = 64;

/// Asks for all lines of a value.
#[inline]
pub(crate) fn prefetch_value<T>(value: &T) {
    prefetch(std::ptr::from_ref(value).cast(), size_of::<T>());
}

/// Asks for all lines of a slice.
#[inline]
pub(crate) fn prefetch_all<T>(values: &[T]) {
    prefetch(values.as_ptr().cast(), size_of_val(values));
}

#[inline]
fn prefetch(start: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..bytes).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, and it reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, bytes, LINE);
}
