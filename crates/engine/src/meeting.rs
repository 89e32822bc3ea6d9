//! What the ranks of an engine tell each other: at the start of a run, at the end of each epoch, and when
//! somebody outside wants to see all partitions.
//!
//! A partition that another rank runs is a ghost here. It is never run; its messages and its log come at the end
//! of the epoch, and its state when it is [gathered](crate::Engine::gather). Partitions that no rank owns are run by every rank, with
//! the same messages, so that they are the same everywhere and nobody has to be told what they say.
//!
//! Start reading at [`Engine::meet`].

use lockstep_units::Time;

use crate::order::Order;
use crate::ranks::{Lost, Purpose, Ranks};
use crate::shared::{Plan, Shared, is_set};
use crate::step::ones;
use crate::{Boundary, Engine, LoadError, Partition, PartitionId, Writer};

/// How the partitions of an engine are divided among ranks.
pub(crate) struct Split {
    pub ranks: Ranks,
    /// The rank of each partition; none if every rank runs it.
    owners: Vec<Option<usize>>,
    /// Bits of the partitions that this rank runs.
    pub local: Vec<u64>,
    /// When a partition of another rank next has work, in femtoseconds.
    pub others: u64,
    outgoing: Vec<Vec<u8>>,
}

impl Split {
    fn new(ranks: Ranks, owners: Vec<Option<usize>>) -> Self {
        let mut local = vec![0; owners.len().div_ceil(64)];
        for (index, owner) in owners.iter().enumerate() {
            if owner.is_none_or(|owner| owner == ranks.rank()) {
                local[index / 64] |= 1 << (index % 64);
            }
        }
        Self {
            outgoing: vec![Vec::new(); ranks.count()],
            ranks,
            owners,
            local,
            others: 0,
        }
    }

    /// Whether this rank runs a partition.
    pub fn is_local(&self, id: PartitionId) -> bool {
        is_set(&self.local, id)
    }

    /// Whether this rank alone runs a partition.
    fn is_own(&self, id: PartitionId) -> bool {
        self.owners[id.index()] == Some(self.ranks.rank())
    }

    /// A partition that another rank speaks for.
    fn ghost_of(&self, rank: usize, id: PartitionId) -> Result<PartitionId, LoadError> {
        match self.owners.get(id.index()) {
            Some(Some(owner)) if *owner == rank => Ok(id),
            _ => Err(LoadError::Malformed {
                what: "a rank speaks for a partition that is not its own",
            }),
        }
    }
}

impl<P: Partition, B: Boundary<P>> Engine<P, B> {
    /// Divides the partitions among ranks: `owners` has the rank of each, or none if every rank is to run it.
    /// All ranks call this with the same owners, and from then on do the same in the same order.
    ///
    /// # Panics
    /// If `owners` is not of all partitions, or names a rank that is not there.
    pub fn split(&mut self, ranks: Ranks, owners: Vec<Option<usize>>) {
        assert_eq!(
            owners.len(),
            self.shared.cells.len(),
            "owners of all partitions"
        );
        assert!(
            owners.iter().flatten().all(|owner| *owner < ranks.count()),
            "every owner is a rank"
        );
        self.split = Some(Box::new(Split::new(ranks, owners)));
        self.refresh_wakes();
    }

    /// The ranks that simulate this machine together, if there are several.
    pub fn ranks(&self) -> Option<&Ranks> {
        self.split.as_ref().map(|split| &split.ranks)
    }

    /// Whether this rank runs a partition.
    pub fn is_local(&self, id: PartitionId) -> bool {
        self.split.as_ref().is_none_or(|split| split.is_local(id))
    }

    /// Whether this rank is to answer for a partition: it runs it alone, or is the first of all that do.
    pub fn answers_for(&self, id: PartitionId) -> bool {
        self.split
            .as_ref()
            .is_none_or(|split| match split.owners[id.index()] {
                Some(owner) => owner == split.ranks.rank(),
                None => split.ranks.rank() == 0,
            })
    }

    /// When a partition of this rank next has work, messages of the last step included.
    fn own_work(&self) -> u64 {
        let next = self.next_wake.iter().min().copied().unwrap_or(u64::MAX);
        next.min(self.in_flight.unwrap_or(Time::NEVER).0)
    }

    /// Agrees with the other ranks on how far to run: as far as the one that wants least.
    pub(crate) fn agree_on_run(&mut self, limit: Time) -> Result<Time, Lost> {
        let (own, place) = (self.own_work(), (self.epoch, self.posted));
        let Some(split) = &mut self.split else {
            return Ok(limit);
        };
        let mut bytes = Vec::new();
        Writer::new(&mut bytes).write(&(place, own, limit.0));
        let (mut least, mut others) = (limit.0, u64::MAX);
        split
            .ranks
            .exchange_all(Purpose::Run, &bytes, |_, reader| {
                let (found, wake, limit): ((u64, u64), u64, u64) = reader.read()?;
                if found != place {
                    return Err(LoadError::Malformed {
                        what: "it stands at another epoch, or was sent other messages from outside",
                    });
                }
                (least, others) = (least.min(limit), others.min(wake));
                Ok(())
            })?;
        split.others = others;
        Ok(Time(least))
    }

    /// Agrees anew on when partitions next have work, after somebody changed some at a boundary.
    pub(crate) fn agree_on_wakes(&mut self) -> Result<(), Lost> {
        let own = self.own_work();
        let Some(split) = &mut self.split else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        Writer::new(&mut bytes).write(&own);
        let mut others = u64::MAX;
        split
            .ranks
            .exchange_all(Purpose::Wakes, &bytes, |_, reader| {
                others = others.min(reader.read()?);
                Ok(())
            })?;
        split.others = others;
        Ok(())
    }

    /// The end of an epoch, before its commit: gives other ranks the messages for their partitions and the logs
    /// of this one's, and takes theirs. The first fault of all ranks.
    pub(crate) fn meet(
        &mut self,
        plan: &mut Plan,
        fault: Option<(Time, PartitionId)>,
    ) -> Result<Option<(Time, PartitionId)>, Lost> {
        let own = self.own_work();
        let Some(split) = self.split.as_deref_mut() else {
            return Ok(fault);
        };
        for (mail, local) in self.mail.iter_mut().zip(&split.local) {
            *mail &= local;
        }
        let mut outgoing = std::mem::take(&mut split.outgoing);
        self.shared
            .write_logs(split, plan, (own, fault), &mut outgoing);
        self.shared.write_messages(split, plan, &mut outgoing);
        let (shared, mail, in_flight) = (&self.shared, &mut self.mail, &mut self.in_flight);
        let (mut first, mut others) = (fault, u64::MAX);
        let split_now = &*split;
        let exchanged = split_now
            .ranks
            .exchange(Purpose::Epoch, &outgoing, |rank, reader| {
                let (start, wake, fault): (Time, u64, Option<(Time, PartitionId)>) =
                    reader.read()?;
                if start != plan.window.start {
                    return Err(LoadError::Malformed {
                        what: "it stands at another epoch",
                    });
                }
                others = others.min(wake);
                first = [first, fault].into_iter().flatten().min();
                for _ in 0..reader.read::<u32>()? {
                    let id = split_now.ghost_of(rank, reader.read()?)?;
                    // SAFETY: the workers wait, and this is the only reference to the cell.
                    let ghost = unsafe { &mut shared.cells.get(id).partition };
                    reader.section(|reader| ghost.load_log(reader))?;
                    plan.logged.push((id, ghost.log_parts()));
                }
                while !reader.is_at_end() {
                    let (receiver, order): (PartitionId, Order) = reader.read()?;
                    let message = reader.read()?;
                    let known = receiver.index() < split_now.owners.len();
                    if !known || !split_now.is_local(receiver) || order.due < plan.window.end {
                        return Err(LoadError::Malformed {
                            what: "a message for nobody here, or for a time that has passed",
                        });
                    }
                    mail[receiver.index() / 64] |= 1 << (receiver.index() % 64);
                    *in_flight = Some(in_flight.unwrap_or(Time::NEVER).min(order.due));
                    // SAFETY: the workers wait; the leader takes part in every step, so its buffer is of this one.
                    unsafe {
                        shared
                            .exchange
                            .append(0, plan.step, receiver, order, message)
                    };
                }
                Ok(())
            });
        split.others = others;
        split.outgoing = outgoing;
        exchanged.map(|()| first)
    }

    /// Forgets the logs of ghosts, after the commit.
    pub(crate) fn clear_ghost_logs(&mut self, plan: &Plan) {
        let Some(split) = &self.split else {
            return;
        };
        for (id, _) in &plan.logged {
            if !split.is_local(*id) {
                // SAFETY: the workers wait, and this is the only reference to the cell.
                unsafe { self.shared.cells.get(*id).partition.clear_log() };
            }
        }
    }

    /// Brings all partitions of other ranks to the state that they have there. All ranks call this between
    /// runs.
    ///
    /// # Errors
    /// A rank is gone.
    pub fn gather(&mut self) -> Result<(), Lost> {
        let Some(split) = &self.split else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        for id in ones(split.local.iter().copied()).filter(|id| split.is_own(*id)) {
            writer.write(&id);
            // SAFETY: no worker runs between calls of `run`, and the engine is borrowed mutably.
            unsafe { self.shared.cells.look(id).save(&mut writer) };
        }
        split
            .ranks
            .exchange_all(Purpose::Share, &bytes, |rank, reader| {
                while !reader.is_at_end() {
                    let id = split.ghost_of(rank, reader.read()?)?;
                    // SAFETY: no worker runs between calls of `run`, and the engine is borrowed mutably.
                    unsafe { self.shared.cells.get(id).load(reader)? };
                }
                Ok(())
            })
    }
}

impl<P: Partition, B: Boundary<P>> Shared<P, B> {
    /// Writes what every other rank is told: when this one next has work, its first fault, the logs of its
    /// partitions.
    fn write_logs(
        &self,
        split: &Split,
        plan: &Plan,
        (own, fault): (u64, Option<(Time, PartitionId)>),
        outgoing: &mut [Vec<u8>],
    ) {
        let mut common = Vec::new();
        split.ranks.begin(Purpose::Epoch, &mut common);
        let mut writer = Writer::new(&mut common);
        writer.write(&(plan.window.start, own, fault));
        let logged = plan.logged.iter().filter(|(id, _)| split.is_own(*id));
        writer.write(&(logged.clone().count() as u32));
        for (id, _) in logged {
            writer.write(id);
            // SAFETY: the workers wait.
            let partition = unsafe { &self.cells.look(*id).partition };
            writer.section(|writer| partition.save_log(writer));
        }
        for (rank, out) in outgoing.iter_mut().enumerate() {
            out.clear();
            if rank != split.ranks.rank() {
                out.extend_from_slice(&common);
            }
        }
    }

    /// Writes the messages of this rank's partitions to those of each other rank. What every rank runs is sent
    /// for by each of them itself.
    fn write_messages(&self, split: &Split, plan: &Plan, outgoing: &mut [Vec<u8>]) {
        let own = split.ranks.rank();
        // SAFETY: the workers wait, so nobody writes the buffers.
        unsafe {
            self.exchange.read(plan.step, |buffer| {
                for receiver in ones(buffer.mail().iter().copied()) {
                    let owner = split.owners[receiver.index()];
                    if owner == Some(own) {
                        continue;
                    }
                    buffer.look(receiver, |order, message| {
                        if !split.is_own(order.sender) {
                            return;
                        }
                        for (rank, out) in outgoing.iter_mut().enumerate() {
                            if rank != own && owner.is_none_or(|owner| owner == rank) {
                                let mut writer = Writer::new(out);
                                writer.write(&(receiver, order));
                                writer.write(message);
                            }
                        }
                    });
                }
            });
        }
    }
}
