//! Ranks as processes of one machine, each pair of them joined by a socket.
//!
//! A message is its length in eight bytes, then itself. In an exchange a rank sends and receives to and from all
//! others at once, as far as sockets take and have bytes, so that no two ranks wait for each other.
//!
//! Start reading at `Sockets::exchange`.

use lockstep_gpu::{Lost, Transport};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// Bytes of a length.
const LENGTH: usize = 8;
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;
/// Looks at all sockets before a rank that waits goes to sleep, if every rank has a processor.
const LOOKS: u32 = 200;

/// The socket to one other rank.
struct Link {
    stream: UnixStream,
    /// What was read and is not taken yet.
    read: Vec<u8>,
    /// What is to be sent, with its length, and how much of it was.
    unsent: Vec<u8>,
    sent: usize,
}

impl Link {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            read: Vec::new(),
            unsent: Vec::new(),
            sent: 0,
        })
    }

    /// Begins to send a message; those before it are sent.
    fn begin(&mut self, bytes: &[u8]) {
        self.unsent.clear();
        self.sent = 0;
        let length = bytes.len() as u64;
        self.unsent.extend_from_slice(&length.to_le_bytes());
        self.unsent.extend_from_slice(bytes);
    }

    fn is_sent(&self) -> bool {
        self.sent == self.unsent.len()
    }

    /// The length of the first message that was read, if it is here as a whole.
    fn length(&self) -> Option<usize> {
        let length = self.read.first_chunk::<LENGTH>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        (self.read.len() - LENGTH >= length).then_some(length)
    }

    /// Takes the first message into `bytes`.
    fn take(&mut self, bytes: &mut Vec<u8>) {
        bytes.clear();
        if let Some(length) = self.length() {
            let end = LENGTH + length;
            bytes.extend_from_slice(&self.read[LENGTH..end]);
            self.read.drain(..end);
        }
    }

    /// Sends as much as the socket takes; whether it took something.
    fn push(&mut self) -> io::Result<bool> {
        let before = self.sent;
        while !self.is_sent() {
            match send(&self.stream, &self.unsent[self.sent..], SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.sent > before)
    }

    /// Reads what is there, until a message is; whether there was something.
    fn pull(&mut self, piece: &mut [u8]) -> io::Result<bool> {
        let before = self.read.len();
        while self.length().is_none() {
            match (&self.stream).read(piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.read.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(self.read.len() > before)
    }
}

/// What a rank does with the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Sends what there is, and has a message of each.
    Exchange,
    /// Sends what there is.
    Send,
    /// Has a message of rank 0.
    Receive,
}

/// One rank with its sockets to all others.
pub struct Sockets {
    rank: usize,
    /// By rank; none to itself.
    links: Vec<Option<Link>>,
    /// What each rank is called in sentences.
    names: Vec<String>,
    looks: u32,
    piece: Box<[u8]>,
}

impl Sockets {
    /// A rank with its sockets to all others, by rank; `names` is what sentences call them. `processors` is how
    /// many this rank uses.
    ///
    /// # Errors
    /// The system.
    pub fn new(
        rank: usize,
        streams: Vec<Option<UnixStream>>,
        names: Vec<String>,
        processors: usize,
    ) -> io::Result<Self> {
        let available = std::thread::available_parallelism().map_or(1, |count| count.get());
        let fits = streams.len() * processors.max(1) <= available;
        let links = streams
            .into_iter()
            .map(|stream| stream.map(Link::new).transpose());
        Ok(Self {
            rank,
            links: links.collect::<io::Result<_>>()?,
            names,
            looks: if fits { LOOKS } else { 1 },
            piece: vec![0; PIECE].into(),
        })
    }

    /// Sends and receives until a goal is met.
    fn work(&mut self, goal: Goal) -> Result<(), Lost> {
        let mut looks = 0;
        loop {
            let (mut moved, mut met) = (false, true);
            for (rank, link) in self.links.iter_mut().enumerate() {
                let Some(link) = link else {
                    continue;
                };
                let gone = |error| lost(&self.names[rank], &error);
                moved |= link.push().map_err(gone)?;
                if wants(goal, rank) {
                    moved |= link.pull(&mut self.piece).map_err(gone)?;
                    met &= link.length().is_some();
                }
                met &= link.is_sent();
            }
            if met {
                return Ok(());
            }
            looks = if moved { 0 } else { looks + 1 };
            if looks >= self.looks {
                self.sleep(goal)?;
                looks = 0;
            }
        }
    }

    /// Waits until a socket takes or has what is wanted.
    fn sleep(&self, goal: Goal) -> Result<(), Lost> {
        let mut files = Vec::new();
        for (rank, link) in self.links.iter().enumerate() {
            let Some(link) = link else {
                continue;
            };
            let mut flags = PollFlags::empty();
            if wants(goal, rank) && link.length().is_none() {
                flags |= PollFlags::IN;
            }
            if !link.is_sent() {
                flags |= PollFlags::OUT;
            }
            if !flags.is_empty() {
                files.push(PollFd::from_borrowed_fd(link.stream.as_fd(), flags));
            }
        }
        match poll(&mut files, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Lost(format!("waiting for other ranks: {error}"))),
        }
    }
}

/// Sockets between all pairs of ranks, by rank and other rank; none from a rank to itself.
pub fn pairs(count: usize) -> io::Result<Vec<Vec<Option<UnixStream>>>> {
    let mut streams: Vec<Vec<Option<UnixStream>>> = Vec::new();
    for _ in 0..count {
        let mut own = Vec::new();
        for lower in &mut streams {
            let (first, second) = UnixStream::pair()?;
            lower.push(Some(first));
            own.push(Some(second));
        }
        own.push(None);
        streams.push(own);
    }
    Ok(streams)
}

/// Whether a message of a rank is wanted.
fn wants(goal: Goal, rank: usize) -> bool {
    match goal {
        Goal::Exchange => true,
        Goal::Send => false,
        Goal::Receive => rank == 0,
    }
}

fn lost(name: &str, error: &io::Error) -> Lost {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    Lost(match error.kind() {
        BrokenPipe | ConnectionReset | UnexpectedEof => format!(
            "{name} has ended before the run was over, so the rest of its part cannot be simulated"
        ),
        _ => format!("{name} cannot be reached: {error}"),
    })
}

impl Transport for Sockets {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.links.len()
    }

    fn exchange(&mut self, outgoing: &[Vec<u8>], incoming: &mut [Vec<u8>]) -> Result<(), Lost> {
        for (link, bytes) in self.links.iter_mut().zip(outgoing) {
            if let Some(link) = link {
                link.begin(bytes);
            }
        }
        self.work(Goal::Exchange)?;
        for (link, bytes) in self.links.iter_mut().zip(incoming) {
            if let Some(link) = link {
                link.take(bytes);
            }
        }
        Ok(())
    }

    fn broadcast(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        for link in self.links.iter_mut().flatten() {
            link.begin(bytes);
        }
        self.work(Goal::Send)
    }

    fn receive(&mut self) -> Result<Vec<u8>, Lost> {
        self.work(Goal::Receive)?;
        let mut bytes = Vec::new();
        if let Some(Some(link)) = self.links.first_mut() {
            link.take(&mut bytes);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks of one process.
    fn ranks(count: usize) -> Vec<Sockets> {
        let names: Vec<String> = (0..count).map(|rank| format!("rank {rank}")).collect();
        let all = pairs(count).unwrap().into_iter().enumerate();
        all.map(|(rank, streams)| Sockets::new(rank, streams, names.clone(), 1).unwrap())
            .collect()
    }

    #[test]
    fn every_rank_has_what_each_other_sent_it() {
        // Far more than a socket holds, for some of them.
        let payload = |from: usize, to: usize, turn: usize| {
            vec![(from * 16 + to + turn) as u8; [0, 3, 3 << 20][(from + to + turn) % 3]]
        };
        std::thread::scope(|scope| {
            for mut sockets in ranks(4) {
                scope.spawn(move || {
                    let own = sockets.rank();
                    let mut incoming = vec![Vec::new(); 4];
                    for turn in 0..6 {
                        let outgoing: Vec<_> = (0..4).map(|to| payload(own, to, turn)).collect();
                        sockets.exchange(&outgoing, &mut incoming).unwrap();
                        for from in (0..4).filter(|from| *from != own) {
                            assert!(
                                incoming[from] == payload(from, own, turn),
                                "{from} to {own}"
                            );
                        }
                        if own == 0 {
                            sockets.broadcast(&payload(0, 9, turn)).unwrap();
                        } else {
                            assert!(sockets.receive().unwrap() == payload(0, 9, turn));
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_rank_that_is_gone_is_named() {
        let mut all = ranks(3);
        drop(all.remove(1));
        let mut incoming = vec![Vec::new(); 3];
        let outgoing = vec![vec![1; 1000]; 3];
        let lost = all[0].exchange(&outgoing, &mut incoming).unwrap_err();
        assert!(lost.0.starts_with("rank 1 has ended"), "{lost}");
    }
}
