//! What a program says of itself: ranges of NVTX, and from the profiler's start to its stop.
//!
//! A launch is within a range if the call that makes it is: those that its thread has pushed and not popped, and
//! those that its process has started and not ended. Nothing of it takes time or changes what is simulated.

use crate::device::Device;
use crate::{CallResult, Client, Runtime, fail};
use lockstep_protocol::{CuResult, RangeName, RangeStep, Reply};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most ranges that may be open at once: more come of a program that never closes one.
const MOST_OPEN: usize = 1 << 16;

/// Names of ranges that are kept for a message.
const MOST_NAMED: usize = 16;

/// What a launch is within.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// Whether the profiler was on in its process.
    pub profiled: bool,
    /// Open ranges, those of the process first, each from the outermost.
    pub ranges: Vec<Arc<RangeName>>,
}

/// What programs have opened.
#[derive(Debug, Default)]
pub struct Annotations {
    /// Who makes the call that is being answered.
    caller: Option<Client>,
    /// Processes whose profiler is on.
    profiled: BTreeSet<u32>,
    /// Ranges of threads, by domain.
    pushed: BTreeMap<Client, Vec<Arc<RangeName>>>,
    /// Ranges of processes, by their numbers there.
    started: BTreeMap<(u32, u64), Arc<RangeName>>,
    /// Names that there were, a few of them.
    names: BTreeSet<String>,
    /// What did not fit together, in sentences.
    unbalanced: Vec<String>,
}

impl Annotations {
    /// A call begins.
    pub fn called_by(&mut self, client: Client) {
        self.caller = Some(client);
    }

    /// What a launch is within that the present call makes.
    pub fn around_the_call(&self) -> Within {
        let Some(client) = self.caller else {
            return Within::default();
        };
        let of_process = (client.process, 0)..=(client.process, u64::MAX);
        let started = self.started.range(of_process).map(|(_, name)| name);
        let pushed = self.pushed.get(&client).into_iter().flatten();
        Within {
            profiled: self.profiled.contains(&client.process),
            ranges: started.chain(pushed).cloned().collect(),
        }
    }

    /// The profiler is started or stopped.
    pub fn profiler(&mut self, client: Client, start: bool) {
        let process = client.process;
        let fits = match start {
            true => self.profiled.insert(process),
            false => self.profiled.remove(&process),
        };
        if !fits {
            self.complain(match start {
                true => format!("process {process} started its profiler twice, without a stop"),
                false => {
                    format!("process {process} stopped its profiler, which it had not started")
                }
            });
        }
    }

    /// A range begins or ends: how many of its thread and domain are around it.
    fn step(&mut self, client: Client, step: &RangeStep) -> Result<u64, String> {
        let open = self.started.len() + self.pushed.values().map(Vec::len).sum::<usize>();
        let opens = matches!(step, RangeStep::Push(_) | RangeStep::Start { .. });
        if opens && open >= MOST_OPEN {
            return Err(format!(
                "{MOST_OPEN} NVTX ranges are open; one more does not count"
            ));
        }
        match step {
            RangeStep::Push(name) => {
                let name = self.named(name);
                let ranges = self.pushed.entry(client).or_default();
                let around = ranges.iter().filter(|one| one.domain == name.domain);
                let around = around.count() as u64;
                ranges.push(name);
                Ok(around)
            }
            RangeStep::Pop { domain } => {
                let ranges = self.pushed.entry(client).or_default();
                let last = ranges.iter().rposition(|one| one.domain == *domain);
                let Some(last) = last else {
                    return Err(format!(
                        "process {} popped an NVTX range{} where its thread had pushed none",
                        client.process,
                        of_domain(domain)
                    ));
                };
                ranges.remove(last);
                Ok(ranges.iter().filter(|one| one.domain == *domain).count() as u64)
            }
            RangeStep::Start { id, name } => {
                let name = self.named(name);
                self.started.insert((client.process, *id), name);
                Ok(0)
            }
            RangeStep::End { id } => match self.started.remove(&(client.process, *id)) {
                Some(_) => Ok(0),
                None => Err(format!(
                    "process {} ended an NVTX range that is not open (number {id})",
                    client.process
                )),
            },
        }
    }

    fn named(&mut self, name: &RangeName) -> Arc<RangeName> {
        if self.names.len() < MOST_NAMED && !self.names.contains(&name.name) {
            self.names.insert(name.name.clone());
        }
        Arc::new(name.clone())
    }

    fn complain(&mut self, sentence: String) {
        if self.unbalanced.len() < MOST_NAMED && !self.unbalanced.contains(&sentence) {
            self.unbalanced.push(sentence);
        }
    }

    /// A process has ended: what it left open is noted.
    pub fn ended(&mut self, process: u32) {
        let threads = self.pushed.keys().filter(|one| one.process == process);
        let threads: Vec<Client> = threads.copied().collect();
        let pushed = threads.iter().filter_map(|one| self.pushed.remove(one));
        let mut left: Vec<Arc<RangeName>> = pushed.flatten().collect();
        self.started.retain(|(owner, _), name| {
            let gone = *owner == process;
            left.extend(gone.then(|| name.clone()));
            !gone
        });
        for range in left {
            self.complain(format!(
                "process {process} never closed the NVTX range `{}`{}: all launches behind its beginning are within",
                range.name,
                of_domain(&range.domain)
            ));
        }
        if self.profiled.remove(&process) {
            self.complain(format!(
                "process {process} never stopped its profiler: all launches behind its start are within"
            ));
        }
    }

    /// What did not fit together, in sentences.
    pub fn unbalanced(&self) -> &[String] {
        &self.unbalanced
    }

    /// Some of the names that ranges had.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

fn of_domain(domain: &str) -> String {
    match domain {
        "" => String::new(),
        domain => format!(" of domain `{domain}`"),
    }
}

impl<D: Device> Runtime<D> {
    pub(super) fn range(&mut self, client: Client, step: &RangeStep) -> CallResult<Reply> {
        match self.annotations.step(client, step) {
            Ok(level) => Ok(Reply::Value(level)),
            Err(sentence) => {
                self.annotations.complain(sentence.clone());
                fail(CuResult::INVALID_VALUE, sentence)
            }
        }
    }

    pub(super) fn profiler(&mut self, client: Client, start: bool) -> CallResult<Reply> {
        self.annotations.profiler(client, start);
        Ok(Reply::Done)
    }

    /// What programs said of themselves.
    pub fn annotations(&self) -> &Annotations {
        &self.annotations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Client = Client {
        connection: 0,
        process: 0,
    };
    const SECOND: Client = Client {
        connection: 1,
        process: 0,
    };

    fn name(name: &str, domain: &str) -> RangeName {
        RangeName {
            name: name.into(),
            domain: domain.into(),
        }
    }

    fn around(annotations: &mut Annotations, client: Client) -> Vec<String> {
        annotations.called_by(client);
        let within = annotations.around_the_call();
        within.ranges.iter().map(|one| one.name.clone()).collect()
    }

    #[test]
    fn a_launch_is_within_what_its_thread_pushed_and_its_process_started() {
        let mut annotations = Annotations::default();
        let push = |one: &str| RangeStep::Push(name(one, ""));
        assert_eq!(annotations.step(FIRST, &push("outer")), Ok(0));
        assert_eq!(annotations.step(FIRST, &push("inner")), Ok(1));
        let start = RangeStep::Start {
            id: 7,
            name: name("all", ""),
        };
        assert_eq!(annotations.step(SECOND, &start), Ok(0));
        assert_eq!(around(&mut annotations, FIRST), ["all", "outer", "inner"]);
        assert_eq!(around(&mut annotations, SECOND), ["all"]);
        let pop = RangeStep::Pop { domain: "".into() };
        assert_eq!(annotations.step(FIRST, &pop), Ok(1));
        assert_eq!(annotations.step(FIRST, &RangeStep::End { id: 7 }), Ok(0));
        assert_eq!(around(&mut annotations, FIRST), ["outer"]);
    }

    #[test]
    fn domains_have_stacks_of_their_own() {
        let mut annotations = Annotations::default();
        let push = |one: &str, domain: &str| RangeStep::Push(name(one, domain));
        assert_eq!(annotations.step(FIRST, &push("a", "")), Ok(0));
        assert_eq!(annotations.step(FIRST, &push("b", "library")), Ok(0));
        let pop = RangeStep::Pop { domain: "".into() };
        assert_eq!(annotations.step(FIRST, &pop), Ok(0));
        assert_eq!(around(&mut annotations, FIRST), ["b"]);
    }

    #[test]
    fn what_does_not_fit_together_is_said_once() {
        let mut annotations = Annotations::default();
        let pop = RangeStep::Pop { domain: "".into() };
        assert!(annotations.step(FIRST, &pop).is_err());
        assert!(annotations.step(FIRST, &RangeStep::End { id: 3 }).is_err());
        annotations.profiler(FIRST, false);
        annotations.profiler(FIRST, false);
        annotations.profiler(FIRST, true);
        let push = RangeStep::Push(name("solve", "library"));
        assert_eq!(annotations.step(FIRST, &push), Ok(0));
        annotations.ended(0);
        let all = annotations.unbalanced().join("\n");
        assert!(all.contains("which it had not started"), "{all}");
        assert!(all.contains("`solve` of domain `library`"), "{all}");
        assert!(all.contains("never stopped its profiler"), "{all}");
        assert_eq!(annotations.unbalanced().len(), 3, "{all}");
        assert!(around(&mut annotations, FIRST).is_empty());
    }
}
