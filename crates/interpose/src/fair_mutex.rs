//! A mutex that whoever came first gets first (a ticket lock).
//!
//! Much of the library's state is locked while the simulator is asked, since the answer is to be kept there. The
//! simulator lets threads go on one after the other, so they come to such a lock in an order that does not depend on
//! the host; but a common mutex goes to whoever is quickest when it is free again: either the thread that waited, or
//! the one that had it and comes back with its next call. Which of them it was changed the order of calls of a program
//! with several threads, and nobody said so.
//!
//! Who waits sleeps without a time-out, which the simulator sees as a wait for another thread.
//!
//! Start reading at [`FairMutex::lock`].

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A mutex that is given in the order in which it was asked for.
pub struct FairMutex<T> {
    tickets: Mutex<Tickets>,
    called: Condvar,
    value: UnsafeCell<T>,
}

/// Who is next.
struct Tickets {
    /// The ticket of whoever comes next.
    next: u64,
    /// The ticket whose turn it is.
    served: u64,
}

// SAFETY: the value is reached through a guard only, of which there is one at a time.
unsafe impl<T: Send> Sync for FairMutex<T> {}
// SAFETY: as that of the value that it holds.
unsafe impl<T: Send> Send for FairMutex<T> {}

/// The value, as long as it is locked.
pub struct FairGuard<'mutex, T> {
    mutex: &'mutex FairMutex<T>,
}

impl<T> FairMutex<T> {
    /// An open one.
    pub const fn new(value: T) -> Self {
        Self {
            tickets: Mutex::new(Tickets { next: 0, served: 0 }),
            called: Condvar::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for those that came before.
    pub fn lock(&self) -> FairGuard<'_, T> {
        let mut tickets = self.tickets();
        let own = tickets.next;
        tickets.next += 1;
        while tickets.served != own {
            let waited = self.called.wait(tickets);
            tickets = waited.unwrap_or_else(PoisonError::into_inner);
        }
        FairGuard { mutex: self }
    }

    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for FairGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it is this one's turn until it is dropped.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for FairGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: it is this one's turn until it is dropped.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for FairGuard<'_, T> {
    fn drop(&mut self) {
        let mut tickets = self.mutex.tickets();
        tickets.served += 1;
        if tickets.served != tickets.next {
            self.mutex.called.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn whoever_came_first_gets_it_first() {
        let mutex = FairMutex::new(Vec::new());
        let (came, coming) = mpsc::channel();
        std::thread::scope(|scope| {
            let mut first = mutex.lock();
            for number in 1..=4_u64 {
                let (mutex, came) = (&mutex, came.clone());
                scope.spawn(move || {
                    came.send(()).unwrap();
                    mutex.lock().push(number);
                });
                coming.recv().unwrap();
                while mutex.tickets().next <= number {
                    std::thread::yield_now();
                }
            }
            first.push(0);
            drop(first);
            // Whoever had it comes behind those that waited.
            mutex.lock().push(5);
        });
        assert_eq!(*mutex.lock(), [0, 1, 2, 3, 4, 5]);
    }
}
