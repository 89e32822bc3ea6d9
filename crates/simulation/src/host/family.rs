//! The processes of a run: the program, its children and theirs, whether or not they call CUDA.
//!
//! One that does not may wake one that does, or be about to make its first call, so all are looked at
//! before simulated time passes. They are found through the lists of children that the kernel keeps; these are read
//! again when the last number that it gave to anybody has changed.
//!
//! Start reading at [`Family::refresh`].

use super::status::Status;
use lockstep_segment::RANK_VARIABLES;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The number of a process on its node, for launchers that say no other.
const LOCAL_RANK: &str = "LOCAL_RANK";

/// Most processes that are looked at.
const MOST: usize = 512;

/// Where a process stands among those of a run: its rank, if a launcher gave it one, then its place in the tree of
/// processes. Neither depends on who was faster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    rank: Option<u64>,
    /// From the program down: when each ancestor began, and its number for those of one tick.
    path: Vec<(u64, u32)>,
}

impl Place {
    /// The place of a process that makes its first call: launchers set ranks when they start it.
    #[must_use]
    pub fn with_rank(mut self, process: u32) -> Self {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        self.rank = rank_in(&environment);
        self
    }
}

/// The rank that an environment names: variables end with a zero byte.
fn rank_in(environment: &[u8]) -> Option<u64> {
    let value = |name: &str| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|variable| {
            let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            std::str::from_utf8(value).ok()?.parse().ok()
        })
    };
    let mut names = RANK_VARIABLES.iter().copied().chain([LOCAL_RANK]);
    names.find_map(value)
}

/// The processes of a run.
#[derive(Debug, Default)]
pub struct Family {
    /// The file whose last word is the last number that the kernel gave.
    counter: Option<File>,
    last: Vec<u8>,
    members: BTreeMap<u32, Member>,
}

#[derive(Debug)]
struct Member {
    started: u64,
    place: Place,
}

impl Family {
    /// The family of a program that was just started.
    pub fn of(program: u32) -> Self {
        let mut family = Self {
            // Without it lists are read every time.
            counter: File::open("/proc/loadavg").ok(),
            ..Self::default()
        };
        family.add(program, Vec::new());
        family
    }

    /// Finds processes that have come; true if there are some.
    pub fn refresh(&mut self) -> bool {
        if self.members.is_empty() || !self.somebody_came() {
            return false;
        }
        let before = self.members.len();
        self.members.retain(|process, member| {
            Status::of(*process).is_some_and(|now| now.started == member.started)
        });
        let gone = before - self.members.len();
        let mut open: Vec<u32> = self.members.keys().copied().collect();
        while let Some(parent) = open.pop() {
            let path = self.members[&parent].place.path.clone();
            for child in children(parent) {
                if self.members.len() < MOST && self.add(child, path.clone()) {
                    open.push(child);
                }
            }
        }
        self.members.len() > before - gone
    }

    /// Processes that have not ended.
    pub fn living(&self) -> Vec<u32> {
        let alive = |process: &u32| Status::of(*process).is_some_and(|status| !status.ended);
        self.members.keys().copied().filter(alive).collect()
    }

    /// Where a process stands; one that is not of the family comes after those that are.
    pub fn place(&self, process: u32) -> Place {
        let known = self
            .members
            .get(&process)
            .map(|member| member.place.clone());
        known.unwrap_or_else(|| Place {
            rank: None,
            path: vec![(u64::MAX, process)],
        })
    }

    /// Whether the kernel gave a number to anybody since this was asked last.
    fn somebody_came(&mut self) -> bool {
        let mut bytes = [0; 64];
        let Some(read) = self
            .counter
            .as_ref()
            .and_then(|file| file.read_at(&mut bytes, 0).ok())
        else {
            return true;
        };
        let word = bytes[..read]
            .rsplit(|byte| *byte == b' ')
            .next()
            .unwrap_or_default();
        if word == self.last {
            return false;
        }
        self.last = word.to_vec();
        true
    }

    fn add(&mut self, process: u32, mut path: Vec<(u64, u32)>) -> bool {
        if self.members.contains_key(&process) {
            return false;
        }
        let Some(status) = Status::of(process).filter(|status| !status.ended) else {
            return false;
        };
        path.push((status.started, process));
        let place = Place { rank: None, path };
        let started = status.started;
        self.members.insert(process, Member { started, place });
        true
    }
}

/// The children of all threads of a process.
pub fn children(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let mut found = Vec::new();
    for thread in threads.into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(
            text.split_whitespace()
                .filter_map(|word| word.parse::<u32>().ok()),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn ranks_come_first_and_then_the_tree() {
        let place = |rank, path: &[(u64, u32)]| Place {
            rank,
            path: path.to_vec(),
        };
        let ordered = [
            place(None, &[(5, 100)]),
            place(None, &[(5, 100), (7, 101)]),
            place(None, &[(5, 100), (7, 101), (9, 102)]),
            // Numbers of processes begin again; times do not.
            place(None, &[(5, 100), (8, 3)]),
            place(Some(0), &[(9, 9)]),
            place(Some(1), &[(1, 1)]),
        ];
        assert!(ordered.is_sorted(), "{ordered:?}");
    }

    #[test]
    fn a_rank_is_what_the_launcher_says() {
        assert_eq!(rank_in(b"A=1\0LOCAL_RANK=2\0"), Some(2));
        assert_eq!(rank_in(b"LOCAL_RANK=2\0RANK=7\0"), Some(7));
        assert_eq!(rank_in(b"XRANK=2\0RANK=many\0"), None);
        assert_eq!(rank_in(b""), None);
    }

    #[test]
    fn children_of_children_are_found_in_the_order_of_their_making() {
        let script = "sleep 100 & one=$!; echo $one; sleep 100 & echo $!; read line; kill $one $!";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut family = Family::of(shell.id());
        let mut lines =
            std::io::BufRead::lines(std::io::BufReader::new(shell.stdout.take().unwrap()));
        let mut number = || lines.next().unwrap().unwrap().parse::<u32>().unwrap();
        let (first, second) = (number(), number());
        // Another test may take numbers meanwhile; nobody is found twice.
        while !family.refresh() {}
        assert!(!family.refresh() || family.living().len() == 3);
        let places = [shell.id(), first, second].map(|process| family.place(process));
        assert!(places.is_sorted(), "{places:?}");
        assert!(places[2] < family.place(u32::MAX), "strangers come last");
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
