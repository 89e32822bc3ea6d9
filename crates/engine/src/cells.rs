//! Where partitions live, each reached by one thread at a time.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use crate::outbox::Egress;
use crate::sync::Padded;
use crate::{Inbox, LoadError, Partition, PartitionId, Reader, Topology, Writer};

/// A partition, with what the engine keeps for it.
pub(crate) struct Cell<P: Partition> {
    pub partition: P,
    pub inbox: Inbox<P::Message>,
    pub egress: Egress,
    /// When it next has work, messages that wait for it included, in femtoseconds.
    pub wake: u64,
    /// Whether it has a log that was committed and not yet cleared.
    pub logged: bool,
    /// How often it ran since partitions were last shared out.
    pub runs: u32,
}

impl<P: Partition> Cell<P> {
    /// Writes the partition with what the engine keeps for it.
    pub(crate) fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&self.wake);
        writer.write(&self.egress);
        self.inbox.save(writer);
        writer.section(|writer| self.partition.save(writer));
    }

    /// Takes on what was saved.
    pub(crate) fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        self.wake = reader.read()?;
        let egress: Egress = reader.read()?;
        if egress.links.len() != self.egress.links.len() {
            return Err(LoadError::Malformed {
                what: "another number of links",
            });
        }
        self.egress = egress;
        self.inbox.load(reader)?;
        reader.section(|reader| self.partition.load(reader))
    }
}

/// All partitions.
pub(crate) struct Cells<P: Partition> {
    cells: Box<[Padded<UnsafeCell<Cell<P>>>]>,
    /// What a run of each costs on this host, smoothed; for sharing out only.
    pub costs: Box<[AtomicU64]>,
    /// The worker of each. Whoever takes one over keeps it.
    pub owners: Box<[AtomicU32]>,
    /// Whether somebody who was shown the partitions may have changed when one has work.
    pub touched: AtomicBool,
    /// Whether somebody who was shown the partitions asked the other ranks something.
    pub asked: AtomicBool,
}

// SAFETY: a cell is reached through `get`, whose callers promise to be the only thread that has
// it, or through `look`, whose callers promise that no thread changes it meanwhile and look at its
// messages from one thread; hence partitions are both `Send` and `Sync`, and messages `Send`.
unsafe impl<P: Partition> Sync for Cells<P> {}
// SAFETY: it owns partitions and messages, which are `Send`.
unsafe impl<P: Partition> Send for Cells<P> {}

impl<P: Partition> Cells<P> {
    /// Every partition has work at the beginning: it says itself when it has none.
    pub(crate) fn new(topology: &Topology, partitions: Vec<P>) -> Self {
        let cell = |partition| {
            let (inbox, egress) = (Inbox::default(), Egress::new(topology));
            Padded(UnsafeCell::new(Cell {
                partition,
                inbox,
                egress,
                wake: 0,
                logged: false,
                runs: 0,
            }))
        };
        Self {
            owners: partitions.iter().map(|_| AtomicU32::new(0)).collect(),
            costs: partitions.iter().map(|_| AtomicU64::new(0)).collect(),
            cells: partitions.into_iter().map(cell).collect(),
            touched: AtomicBool::new(false),
            asked: AtomicBool::new(false),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// One cell, to be changed.
    ///
    /// # Safety
    /// No other reference to the cell exists while this one is used.
    #[inline]
    #[expect(
        clippy::mut_from_ref,
        reason = "disjoint cells go to different threads"
    )]
    pub(crate) unsafe fn get(&self, id: PartitionId) -> &mut Cell<P> {
        // SAFETY: as the caller promises.
        unsafe { &mut *self.cells[id.index()].0.get() }
    }

    /// One cell, to be looked at.
    ///
    /// # Safety
    /// Nobody changes the cell while this reference is used.
    #[inline]
    pub(crate) unsafe fn look(&self, id: PartitionId) -> &Cell<P> {
        // SAFETY: as the caller promises.
        unsafe { &*self.cells[id.index()].0.get() }
    }
}
