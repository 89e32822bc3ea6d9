//! How messages cross from the workers that ran their senders to the workers that run their
//! receivers.
//!
//! Every worker has two send buffers. In one step it writes the messages of the partitions
//! it runs into one of them, chained by receiver; in the next step every worker reads that buffer, each
//! the chains of the partitions it runs, while the other buffers are written. The epoch barrier between
//! steps is the only synchronisation: no message costs an atomic operation, and no memory is
//! allocated once the buffers have grown.
//!
//! Which buffer a message lay in depends on the schedule; the receiver's [`Inbox`](crate::Inbox)
//! puts messages in order, so it does not show.

use lockstep_units::Time;

use crate::PartitionId;
use crate::order::Order;
use crate::prefetch::prefetch_value;
use crate::sync::{Padded, UnsafeCell};

/// End of a chain.
const NONE: u32 = u32::MAX;

struct Slot<M> {
    order: Order,
    /// Taken by the one worker that runs the receiver.
    message: UnsafeCell<Option<M>>,
}

#[derive(Clone, Copy)]
struct Chain {
    first: u32,
    last: u32,
}

/// What one worker sends in one step.
pub(crate) struct SendBuffer<M> {
    slots: Vec<Slot<M>>,
    /// For each slot the next of its chain: apart, so that a reader can run ahead of the slots,
    /// which lie in another processor's cache.
    next: Vec<u32>,
    /// The chain of each receiver.
    chains: Box<[Chain]>,
    /// One bit for each receiver with a chain.
    mail: Box<[u64]>,
    /// When the first of all messages is due.
    earliest: Time,
    /// The step that wrote this buffer. A worker that sat out a step leaves an older one, which
    /// was read long ago.
    step: u64,
}

impl<M> SendBuffer<M> {
    pub(crate) fn new(partitions: usize) -> Self {
        Self {
            slots: Vec::new(),
            next: Vec::new(),
            chains: vec![
                Chain {
                    first: NONE,
                    last: NONE
                };
                partitions
            ]
            .into(),
            mail: vec![0; partitions.div_ceil(64)].into(),
            earliest: Time::NEVER,
            step: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, to: PartitionId, order: Order, message: M) {
        let slot = self.slots.len() as u32;
        self.slots.push(Slot {
            order,
            message: UnsafeCell::new(Some(message)),
        });
        self.next.push(NONE);
        let chain = &mut self.chains[to.index()];
        if chain.first == NONE {
            chain.first = slot;
            self.mail[to.index() / 64] |= 1 << (to.index() % 64);
        } else {
            self.next[chain.last as usize] = slot;
        }
        chain.last = slot;
        self.earliest = self.earliest.min(order.due);
    }

    /// Makes the buffer ready for the next step, after its messages were taken.
    fn clear(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        self.slots.clear();
        self.next.clear();
        for (word, bits) in self.mail.iter_mut().enumerate() {
            let mut left = std::mem::take(bits);
            while left != 0 {
                self.chains[word * 64 + left.trailing_zeros() as usize] = Chain {
                    first: NONE,
                    last: NONE,
                };
                left &= left - 1;
            }
        }
        self.earliest = Time::NEVER;
    }

    pub(crate) fn earliest(&self) -> Time {
        self.earliest
    }

    pub(crate) fn mail(&self) -> &[u64] {
        &self.mail
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Takes everything, in the order of sending by one sender.
    pub(crate) fn drain(&mut self) -> Vec<(Order, PartitionId, M)> {
        let mut all = Vec::new();
        for receiver in (0..self.chains.len() as u32).map(PartitionId) {
            // SAFETY: `&mut self` keeps every other thread away.
            unsafe {
                self.take(receiver, |order, message| {
                    all.push((order, receiver, message))
                })
            };
        }
        self.clear();
        all.sort_unstable_by_key(|(order, _, _)| order.sequence);
        all
    }

    /// Shows every message for `receiver`.
    ///
    /// # Safety
    /// The buffer is not written meanwhile, and no thread takes from it.
    pub(crate) unsafe fn look(&self, receiver: PartitionId, mut show: impl FnMut(Order, &M)) {
        let mut next = self.chains[receiver.index()].first;
        while next != NONE {
            let slot = &self.slots[next as usize];
            // SAFETY: as the caller promises.
            let message = slot.message.with(|cell| unsafe { (*cell).as_ref() });
            if let Some(message) = message {
                show(slot.order, message);
            }
            next = self.next[next as usize];
        }
    }

    /// Has the processor fetch every message for `receiver`.
    #[inline]
    fn prefetch(&self, receiver: PartitionId) {
        if self.mail[receiver.index() / 64] >> (receiver.index() % 64) & 1 == 0 {
            return;
        }
        let mut next = self.chains[receiver.index()].first;
        while next != NONE {
            prefetch_value(&self.slots[next as usize]);
            next = self.next[next as usize];
        }
    }

    /// Takes every message for `receiver`.
    ///
    /// # Safety
    /// The buffer is not written meanwhile, and no other thread takes for the same receiver.
    #[inline]
    unsafe fn take(&self, receiver: PartitionId, mut put: impl FnMut(Order, M)) {
        // One line of bits for all receivers is read once, chains lie apart.
        if self.mail[receiver.index() / 64] >> (receiver.index() % 64) & 1 == 0 {
            return;
        }
        let mut next = self.chains[receiver.index()].first;
        while next != NONE {
            let slot = &self.slots[next as usize];
            // SAFETY: the slot is on the chain of this receiver alone, and the caller promises to
            // be the only one that takes for it.
            let message = slot.message.with_mut(|cell| unsafe { (*cell).take() });
            if let Some(message) = message {
                put(slot.order, message);
            }
            next = self.next[next as usize];
        }
    }
}

/// The two buffers of one worker, apart: one is written while all others read the other.
type SendBuffers<M> = [Padded<UnsafeCell<SendBuffer<M>>>; 2];

/// The send buffers of all workers.
pub(crate) struct Exchange<M> {
    workers: Box<[SendBuffers<M>]>,
}

// SAFETY: threads reach the buffers only through `write`, `read` and `take`, whose callers promise
// that a buffer is either written by one thread or read by any number, with the epoch barrier in between;
// messages move between threads, hence `M: Send`.
unsafe impl<M: Send> Sync for Exchange<M> {}
// SAFETY: it owns its messages, which are `Send`.
unsafe impl<M: Send> Send for Exchange<M> {}

impl<M> Exchange<M> {
    pub(crate) fn new(workers: usize, partitions: usize) -> Self {
        let buffer = || Padded(UnsafeCell::new(SendBuffer::new(partitions)));
        Self {
            workers: (0..workers).map(|_| [buffer(), buffer()]).collect(),
        }
    }

    /// Clears a worker's buffer for this step and lets `f` write into it.
    ///
    /// # Safety
    /// No other thread reaches this buffer until the next epoch barrier.
    pub(crate) unsafe fn write<R>(
        &self,
        worker: usize,
        step: u64,
        f: impl FnOnce(&mut SendBuffer<M>) -> R,
    ) -> R {
        self.workers[worker][buffer_of(step)].0.with_mut(|buffer| {
            // SAFETY: the caller promises that this thread alone has the buffer.
            let buffer = unsafe { &mut *buffer };
            buffer.clear();
            buffer.step = step;
            f(buffer)
        })
    }

    /// Adds a message to what a worker wrote in `step`.
    ///
    /// # Safety
    /// No other thread reaches this buffer until the next epoch barrier, and the worker took part in the step.
    pub(crate) unsafe fn append(
        &self,
        worker: usize,
        step: u64,
        to: PartitionId,
        order: Order,
        message: M,
    ) {
        self.workers[worker][buffer_of(step)].0.with_mut(|buffer| {
            // SAFETY: the caller promises that this thread alone has the buffer.
            let buffer = unsafe { &mut *buffer };
            debug_assert_eq!(buffer.step, step, "a worker that took part");
            buffer.push(to, order, message);
        });
    }

    /// Lets `f` look at every buffer that was written in `step`.
    ///
    /// # Safety
    /// No thread writes these buffers until the next epoch barrier.
    pub(crate) unsafe fn read(&self, step: u64, mut f: impl FnMut(&SendBuffer<M>)) {
        for buffers in &self.workers {
            buffers[buffer_of(step)].0.with(|buffer| {
                // SAFETY: the caller promises that nobody writes the buffer.
                let buffer = unsafe { &*buffer };
                if buffer.step == step {
                    f(buffer);
                }
            });
        }
    }

    /// Takes every message that was sent to `receiver` in `step`, in no particular order.
    ///
    /// # Safety
    /// No thread writes these buffers until the next epoch barrier, and no other thread takes for the same
    /// receiver.
    #[inline]
    pub(crate) unsafe fn take(
        &self,
        step: u64,
        receiver: PartitionId,
        mut put: impl FnMut(Order, M),
    ) {
        // SAFETY: as the caller promises, for both calls.
        unsafe { self.read(step, |buffer| buffer.take(receiver, &mut put)) }
    }

    /// Has the processor fetch every message that was sent to `receiver` in `step`.
    ///
    /// # Safety
    /// No thread writes these buffers until the next epoch barrier.
    #[inline]
    pub(crate) unsafe fn prefetch(&self, step: u64, receiver: PartitionId) {
        // SAFETY: as the caller promises.
        unsafe { self.read(step, |buffer| buffer.prefetch(receiver)) }
    }
}

/// Which of its two buffers a worker writes in a step; the step after it reads that buffer and writes the other.
const fn buffer_of(step: u64) -> usize {
    (step % 2) as usize
}
