//! How the GPUs of a node move through time together.

use super::Node;
use super::managed::Paging;
use crate::machine::Machine;
use lockstep_runtime::Device;
use lockstep_runtime::device::Advance;
use lockstep_units::Time;

impl Node {
    /// Advances all GPUs to the first boundary not before `limit`, or at which a kernel has ended.
    ///
    /// A GPU on which a kernel has ended stands there; others may have come as far as the next
    /// meeting, and begin what they are given then.
    pub(super) fn advance_all(&mut self, limit: Time) -> Advance {
        if !self.ended.is_empty() {
            return Advance::Reached(std::mem::take(&mut self.ended));
        }
        loop {
            let busy = self.machines.iter().filter(|machine| machine.is_busy());
            let until = match busy.count() {
                0 if limit == Time::NEVER => return Advance::Reached(Vec::new()),
                0 => {
                    self.reached = self.reached.max(limit);
                    return Advance::Reached(Vec::new());
                }
                // Nobody else can tell how far it has come, unless others have pages that it wants.
                1 if !self.pages_move() => limit,
                _ => limit.min(self.next_meeting()),
            };
            let mut results = Vec::new();
            let mut interruption = None;
            for advanced in self.step(until) {
                match advanced {
                    Advance::Reached(ended) => results.extend(ended),
                    other => {
                        interruption.get_or_insert(other);
                    }
                }
            }
            self.meet();
            if let Some(interruption) = interruption {
                self.ended = results;
                return interruption;
            }
            if !results.is_empty() || self.has_paged() || self.reached >= limit {
                return Advance::Reached(results);
            }
        }
    }

    /// Whether the timeline has to hear of managed pages: some begin to go from one GPU to another, or what
    /// the program asked for is complete.
    fn has_paged(&self) -> bool {
        let carries = self.paging.as_ref().is_some_and(Paging::has_carries);
        carries || self.machines.iter().any(Machine::has_managed_done)
    }

    /// Whether pages may move between GPUs.
    fn pages_move(&self) -> bool {
        self.paging.as_ref().is_some_and(Paging::is_used)
    }

    /// The next time at which all GPUs stand still.
    fn next_meeting(&self) -> Time {
        let length = self.meeting.0;
        Time((self.reached.0 / length + 1) * length)
    }

    /// Lets every GPU that has kernels and is not there yet advance to a time; answers in the order of
    /// their numbers.
    fn step(&mut self, until: Time) -> Vec<Advance> {
        let (each, shares) = (self.each, &self.shares);
        // Ranks do everything in one order.
        let threads = if self.ranks.is_some() {
            1
        } else {
            self.threads
        };
        let busy: Vec<bool> = self.machines.iter().map(Machine::is_busy).collect();
        // GPUs of a node that share memory advance in turn.
        let mut groups: Vec<(Option<u32>, Vec<&mut Machine>)> = Vec::new();
        for ((gpu, machine), busy) in self.machines.numbered_mut().zip(&busy) {
            if !busy || machine.now() >= until {
                continue;
            }
            let sharing = Some(gpu / each).filter(|node| shares.contains(node));
            match groups.last_mut() {
                Some((last, group)) if sharing.is_some() && *last == sharing => group.push(machine),
                _ => groups.push((sharing, vec![machine])),
            }
        }
        let mut groups: Vec<Vec<&mut Machine>> =
            groups.into_iter().map(|(_, group)| group).collect();
        // GPUs without kernels need none.
        let part = (self.threads / groups.len().max(1)).max(1);
        for machine in groups.iter_mut().flatten() {
            machine.set_threads(part);
        }
        let advanced = match threads.min(groups.len()) {
            0 | 1 => in_turn(groups.iter_mut().flatten(), until),
            threads => at_once(&mut groups, threads, until),
        };
        let chosen = self.machines.iter().zip(&busy);
        let times = chosen
            .filter(|(_, busy)| **busy)
            .map(|(machine, _)| machine.now());
        // One that is ahead since the last meeting has not come further than all.
        let reached = times.min().unwrap_or(until).min(until);
        let since = self.reached;
        self.reached = self.reached.max(reached);
        self.exchange_link_loads(since);
        advanced
    }
}

/// Lets GPUs advance one after the other.
fn in_turn<'machine, 'node: 'machine>(
    machines: impl Iterator<Item = &'machine mut &'node mut Machine>,
    until: Time,
) -> Vec<Advance> {
    machines.map(|machine| machine.advance(until)).collect()
}

/// Lets groups of GPUs that share nothing with other groups advance at the same time.
fn at_once(groups: &mut [Vec<&mut Machine>], threads: usize, until: Time) -> Vec<Advance> {
    let each = groups.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = groups
            .chunks_mut(each)
            .map(|own| scope.spawn(move || in_turn(own.iter_mut().flatten(), until)))
            .collect();
        let advanced = workers.into_iter().map(|worker| match worker.join() {
            Ok(advanced) => advanced,
            // A broken invariant of a GPU is one of the run.
            Err(panic) => std::panic::resume_unwind(panic),
        });
        advanced.flatten().collect()
    })
}
