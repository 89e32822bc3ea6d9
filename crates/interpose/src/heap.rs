//! A heap of our own inside the program's process.
//!
//! The program's allocator must not notice us: what we take from it would change the addresses that
//! it hands out, and what we give back would be found in memory that the program never set. So
//! everything this library allocates comes from mappings far away from the program's.

use dlmalloc::{Allocator, Dlmalloc};
use lockstep_protocol::layout;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg_attr(not(test), global_allocator)]
static HEAP: Heap = Heap {
    blocks: UnsafeCell::new(Dlmalloc::new_with_allocator(Mappings)),
    lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
};

/// Where the next mapping is asked for. The kernel takes another place if that one is taken.
static NEXT: AtomicUsize = AtomicUsize::new(layout::CLIENT_HEAP as usize);

struct Heap {
    blocks: UnsafeCell<Dlmalloc<Mappings>>,
    /// The system's own mutex: a fork must hold it, which a guard of Rust's cannot.
    lock: UnsafeCell<libc::pthread_mutex_t>,
}

// SAFETY: `blocks` is only reached by who holds `lock`.
unsafe impl Sync for Heap {}

impl Heap {
    fn with<T>(&self, act: impl FnOnce(&mut Dlmalloc<Mappings>) -> T) -> T {
        // SAFETY: the mutex is initialised and never moves; between lock and unlock nobody else is
        // in `blocks`, and `act` does not come back here.
        unsafe {
            libc::pthread_mutex_lock(self.lock.get());
            let outcome = act(&mut *self.blocks.get());
            libc::pthread_mutex_unlock(self.lock.get());
            outcome
        }
    }
}

// SAFETY: dlmalloc answers blocks that are as large and aligned as was asked, or null.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        self.with(|blocks| unsafe { blocks.malloc(layout.size(), layout.align()) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        self.with(|blocks| unsafe { blocks.free(block, layout.size(), layout.align()) });
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        self.with(|blocks| unsafe { blocks.calloc(layout.size(), layout.align()) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        self.with(|blocks| unsafe { blocks.realloc(block, layout.size(), layout.align(), bytes) })
    }
}

/// Lets a child of `fork` allocate, whatever other threads did at that moment. Call it once.
pub fn survive_fork() {
    extern "C" fn take() {
        // SAFETY: the mutex is initialised and never moves.
        unsafe { libc::pthread_mutex_lock(HEAP.lock.get()) };
    }
    extern "C" fn give() {
        // SAFETY: the thread that forks took it above.
        unsafe { libc::pthread_mutex_unlock(HEAP.lock.get()) };
    }
    // SAFETY: the handlers do nothing but lock and unlock. Without room for them, a child of a
    // thread that races with others might wait for ever, as with any program's own locks.
    unsafe { libc::pthread_atfork(Some(take), Some(give), Some(give)) };
}

/// Memory for the heap, from the kernel.
struct Mappings;

// SAFETY: answers fresh mappings of the kernel, and frees what it answered.
unsafe impl Allocator for Mappings {
    fn alloc(&self, bytes: usize) -> (*mut u8, usize, u32) {
        let hint = NEXT.fetch_add(bytes, Ordering::Relaxed);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new private mapping replaces nothing.
        let at = unsafe { libc::mmap(hint as *mut _, bytes, access, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return (std::ptr::null_mut(), 0, 0);
        }
        (at.cast(), bytes, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        // It could only move to where the kernel likes.
        std::ptr::null_mut()
    }

    fn free_part(&self, block: *mut u8, before: usize, after: usize) -> bool {
        // SAFETY: the end of a mapping of ours that nobody uses any more.
        unsafe { libc::munmap(block.add(after).cast(), before - after) == 0 }
    }

    fn free(&self, block: *mut u8, bytes: usize) -> bool {
        // SAFETY: a mapping of ours that nobody uses any more.
        unsafe { libc::munmap(block.cast(), bytes) == 0 }
    }

    fn can_release_part(&self, _: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}

#[cfg(test)]
mod tests {
    use super::HEAP;
    use lockstep_protocol::layout::{CLIENT_HEAP, WINDOW_BASE};
    use std::alloc::{GlobalAlloc, Layout};

    #[test]
    fn blocks_lie_where_nobody_else_is_and_keep_their_contents() {
        let layout = |bytes| Layout::from_size_align(bytes, 64).unwrap();
        let mut blocks: Vec<(*mut u8, usize)> = Vec::new();
        for round in 0..500usize {
            let bytes = 1 + round * round % 300_000;
            // SAFETY: sizes are not zero, and every block is as large as it is said to be.
            unsafe {
                let block = HEAP.alloc(layout(bytes));
                assert!((CLIENT_HEAP..WINDOW_BASE).contains(&(block as u64)));
                assert_eq!(block as usize % 64, 0);
                block.write_bytes(round as u8, bytes);
                blocks.push((block, bytes));
                if round % 3 == 2 {
                    let (block, bytes) = blocks.swap_remove(round % blocks.len());
                    HEAP.dealloc(block, layout(bytes));
                }
                if round % 5 == 4 {
                    let at = round % blocks.len();
                    let (block, bytes) = blocks[at];
                    let value = block.read();
                    let larger = HEAP.realloc(block, layout(bytes), 2 * bytes);
                    assert_eq!(larger.add(bytes - 1).read(), value);
                    larger.write_bytes(value, 2 * bytes);
                    blocks[at] = (larger, 2 * bytes);
                }
            }
        }
        for (block, bytes) in blocks {
            // SAFETY: as above.
            unsafe {
                let value = block.read();
                let contents = std::slice::from_raw_parts(block, bytes);
                assert!(contents.iter().all(|byte| *byte == value));
                HEAP.dealloc(block, layout(bytes));
            }
        }
    }
}
