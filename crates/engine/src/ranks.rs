//! Several processes that simulate one machine together, each a rank.
//!
//! Every rank holds the whole machine and runs a part of its partitions. What those say to partitions
//! elsewhere, and what they log, goes to the other ranks at the end of each epoch, so that the boundary does
//! the same everywhere (`meeting.rs`). How bytes travel is a [`Transport`]'s.
//!
//! All ranks do the same in the same order. A rank that does not, or that is gone, is lost: from then on
//! nothing is exchanged, and [`Ranks::lost`] says why.
//!
//! Start reading at [`Transport`], then [`Ranks::share`].

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use thiserror::Error;

use crate::sync::lock;
use crate::{LoadError, Reader, Writer};

/// Why a rank cannot be spoken to any more.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Lost(pub String);

/// How the ranks of a simulation reach each other.
pub trait Transport: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn ranks(&self) -> usize;

    /// Sends `outgoing[rank]` to every other rank, and puts what each of them has sent here into
    /// `incoming[rank]`. All ranks call this, and each waits for all others.
    ///
    /// # Errors
    /// A rank is gone.
    fn exchange(&mut self, outgoing: &[Vec<u8>], incoming: &mut [Vec<u8>]) -> Result<(), Lost>;

    /// Rank 0: sends bytes to every other rank, and waits for none.
    ///
    /// # Errors
    /// A rank is gone.
    fn broadcast(&mut self, bytes: &[u8]) -> Result<(), Lost>;

    /// Any other rank: waits for what rank 0 broadcasts next.
    ///
    /// # Errors
    /// Rank 0 is gone.
    fn receive(&mut self) -> Result<Vec<u8>, Lost>;
}

/// What ranks do together; each exchange begins with it, so that ranks that went apart are found at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    /// A run begins.
    Run,
    /// An epoch ends.
    Epoch,
    /// Wake times have changed at a boundary.
    Wakes,
    /// Somebody shares bytes with all.
    Share,
}

/// What was exchanged so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// Exchanges.
    pub count: u64,
    /// Bytes that this rank has sent in them.
    pub bytes: u64,
}

struct Joined {
    /// None after this rank has left.
    transport: Option<Box<dyn Transport>>,
    incoming: Vec<Vec<u8>>,
    lost: Option<Lost>,
    exchanged: Exchanged,
}

/// The ranks of a simulation, as one of them sees them.
#[derive(Clone)]
pub struct Ranks {
    rank: usize,
    count: usize,
    joined: Arc<Mutex<Joined>>,
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank, self.count)
    }
}

impl Ranks {
    /// Ranks that reach each other so.
    pub fn new(transport: Box<dyn Transport>) -> Self {
        let (rank, count) = (transport.rank(), transport.ranks());
        Self {
            rank,
            count,
            joined: Arc::new(Mutex::new(Joined {
                transport: Some(transport),
                incoming: vec![Vec::new(); count],
                lost: None,
                exchanged: Exchanged::default(),
            })),
        }
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The rank of one of `parts` equal parts, in contiguous groups.
    pub fn owner(&self, part: u32, parts: u32) -> usize {
        (u64::from(part) * self.count as u64 / u64::from(parts.max(1))) as usize
    }

    /// Why the others cannot be reached any more, if they cannot.
    pub fn lost(&self) -> Option<Lost> {
        self.joined().lost.clone()
    }

    /// Nothing is to be exchanged any more.
    pub fn lose(&self, because: &str) {
        let lost = Lost(because.to_owned());
        self.joined().lost.get_or_insert(lost);
    }

    /// Leaves the others, who find this rank gone if they still need it.
    pub fn leave(&self) {
        self.lose("this rank has left the others");
        self.joined().transport = None;
    }

    /// What was exchanged so far.
    pub fn exchanged(&self) -> Exchanged {
        self.joined().exchanged
    }

    /// Gives bytes to all ranks; what each gave, by rank, this one included. All ranks call this at the same
    /// point of the simulation.
    ///
    /// # Errors
    /// A rank is gone, or is elsewhere.
    pub fn share(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Lost> {
        let mut given: Vec<Vec<u8>> = vec![Vec::new(); self.count];
        self.exchange_all(Purpose::Share, bytes, |rank, reader| {
            given[rank] = reader.rest().to_vec();
            Ok(())
        })?;
        given[self.rank] = bytes.to_vec();
        Ok(given)
    }

    /// Whether something holds on any rank; on this one alone if others are lost. All ranks call this at the
    /// same point of the simulation.
    pub fn any(&self, own: bool) -> bool {
        match self.share(&[u8::from(own)]) {
            Ok(all) => all.iter().any(|one| one == &[1]),
            Err(_) => own,
        }
    }

    /// Rank 0: tells the others something that they wait for with [`Ranks::receive`].
    ///
    /// # Errors
    /// A rank is gone.
    pub fn broadcast(&self, bytes: &[u8]) -> Result<(), Lost> {
        let mut joined = self.joined();
        let sent = joined.intact()?.0.broadcast(bytes);
        joined.note(sent)
    }

    /// Another rank: waits for what rank 0 says next.
    ///
    /// # Errors
    /// Rank 0 is gone.
    pub fn receive(&self) -> Result<Vec<u8>, Lost> {
        let mut joined = self.joined();
        let received = joined.intact()?.0.receive();
        joined.note(received)
    }

    /// Exchanges the same bytes with all ranks, and lets `read` have those of each other one, in order.
    pub(crate) fn exchange_all(
        &self,
        purpose: Purpose,
        bytes: &[u8],
        read: impl FnMut(usize, &mut Reader<'_>) -> Result<(), LoadError>,
    ) -> Result<(), Lost> {
        let mut outgoing = vec![Vec::new(); self.count];
        for (rank, out) in outgoing.iter_mut().enumerate() {
            if rank != self.rank {
                self.begin(purpose, out);
                out.extend_from_slice(bytes);
            }
        }
        self.exchange(purpose, &outgoing, read)
    }

    /// Begins what is sent for a purpose.
    pub(crate) fn begin(&self, purpose: Purpose, outgoing: &mut Vec<u8>) {
        outgoing.clear();
        Writer::new(outgoing).write(&(purpose as u8));
    }

    /// Exchanges bytes that begin as [`Ranks::begin`] says, and lets `read` have those of each other rank.
    pub(crate) fn exchange(
        &self,
        purpose: Purpose,
        outgoing: &[Vec<u8>],
        mut read: impl FnMut(usize, &mut Reader<'_>) -> Result<(), LoadError>,
    ) -> Result<(), Lost> {
        let joined = &mut *self.joined();
        let (transport, incoming) = joined.intact()?;
        let mut result = transport.exchange(outgoing, incoming);
        joined.exchanged.count += 1;
        joined.exchanged.bytes += outgoing.iter().map(|out| out.len() as u64).sum::<u64>();
        for (rank, bytes) in joined.incoming.iter().enumerate() {
            if rank == self.rank || result.is_err() {
                continue;
            }
            let mut reader = Reader::new(bytes);
            let own = self.rank;
            result = match reader.read::<u8>() {
                Ok(found) if found == purpose as u8 => read(rank, &mut reader).map_err(|error| {
                    Lost(format!(
                        "what rank {rank} says to rank {own} makes no sense: {error}"
                    ))
                }),
                found => Err(Lost(format!(
                    "ranks {own} and {rank} are at different points of the simulation ({purpose:?} against \
                     {found:?}); this is a fault of the simulator, please report it"
                ))),
            };
        }
        joined.note(result)
    }

    fn joined(&self) -> MutexGuard<'_, Joined> {
        lock(&self.joined)
    }
}

impl Joined {
    /// What reaches the others, if it still does.
    fn intact(&mut self) -> Result<(&mut dyn Transport, &mut [Vec<u8>]), Lost> {
        match (&self.lost, &mut self.transport) {
            (None, Some(transport)) => Ok((&mut **transport, &mut self.incoming)),
            (lost, _) => Err(lost
                .clone()
                .unwrap_or_else(|| Lost("no rank is left".into()))),
        }
    }

    fn note<T>(&mut self, result: Result<T, Lost>) -> Result<T, Lost> {
        if let Err(lost) = &result {
            self.lost.get_or_insert_with(|| lost.clone());
        }
        result
    }
}
