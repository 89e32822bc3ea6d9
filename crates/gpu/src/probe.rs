//! What one part of the GPU does in a window of cycles, bounded by a number of lines.
//!
//! A [`Watch`] names a part, the cycles and the most lines; a [`Recorder`] is what parts write to.
//! A part that is not watched has no [`Probe`] and looks at nothing but that. Lines are stamped with
//! the time at which something begins, and kept are the first ones by (time, part, sequence):
//! however many threads simulate, the same lines come out.
//!
//! Start reading at [`Watch::parse`].

use std::collections::BinaryHeap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use lockstep_config::{GpuConfig, nearest};
use lockstep_units::{Cycle, Hertz, Time};
use thiserror::Error;

/// Most lines that a watch can ask for; they are kept until the end.
pub const MOST_LINES: usize = 1_000_000;

/// Lines of a watch that names no limit.
pub const DEFAULT_LINES: usize = 1_000;

/// A part that can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// The dispatcher.
    Dispatcher,
    /// A streaming multiprocessor.
    Sm,
    /// An L2 slice.
    Slice,
    /// The DRAM channel behind a slice.
    Dram,
    /// The port by which an SM sends to slices.
    Request,
    /// The port by which a slice sends to SMs.
    Reply,
    /// The networks of `mesh` and `switched`: 0 for requests, 1 for replies.
    Network,
    /// The GMMU.
    Gmmu,
    /// The copy engines.
    Copy,
    /// The host.
    Host,
}

/// A part by name.
pub struct TopicName {
    /// What a watch calls it.
    pub name: &'static str,
    /// What its lines tell.
    pub summary: &'static str,
    /// Which it is.
    pub topic: Topic,
}

/// All parts, in the order of the documentation.
pub const TOPICS: &[TopicName] = &[
    TopicName {
        name: "dispatcher",
        summary: "kernels that start and end, blocks that are sent and come back",
        topic: Topic::Dispatcher,
    },
    TopicName {
        name: "sm",
        summary: "blocks that start, instructions of warps, answers that arrive",
        topic: Topic::Sm,
    },
    TopicName {
        name: "slice",
        summary: "requests to an L2 slice, what was there, when it answers",
        topic: Topic::Slice,
    },
    TopicName {
        name: "dram",
        summary: "accesses to the channel behind a slice: bank, row, when the data are there",
        topic: Topic::Dram,
    },
    TopicName {
        name: "request",
        summary: "packets that leave an SM for slices, and how long they waited for its port",
        topic: Topic::Request,
    },
    TopicName {
        name: "reply",
        summary: "packets that leave a slice for SMs, and how long they waited for its port",
        topic: Topic::Reply,
    },
    TopicName {
        name: "network",
        summary: "packets in the networks of `mesh` and `switched` (0 requests, 1 replies)",
        topic: Topic::Network,
    },
    TopicName {
        name: "gmmu",
        summary: "translations, faults and answers for managed memory",
        topic: Topic::Gmmu,
    },
    TopicName {
        name: "copy",
        summary: "transfers that take a copy engine",
        topic: Topic::Copy,
    },
    TopicName {
        name: "host",
        summary: "commands and data on their way through the host (see [host.machine])",
        topic: Topic::Host,
    },
];

/// Other words for some of them.
const ALSO: &[(&str, &str)] = &[
    ("l2", "slice"),
    ("channel", "dram"),
    ("crossbar", "request"),
    ("mesh", "network"),
    ("copy engine", "copy"),
];

/// What somebody wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Which kind of part.
    pub topic: Topic,
    /// Which of them; all without.
    pub number: Option<u32>,
    /// First SM cycle.
    pub from: Cycle,
    /// First SM cycle that is not of interest any more.
    pub to: Cycle,
    /// Most lines.
    pub limit: usize,
}

/// Why a watch was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WatchError {
    /// It has no part, or too many parts.
    #[error("`{0}`: write COMPONENT,FROM,TO[,LIMIT], for example `sm 3,1000,2000,500`")]
    Shape(String),
    /// Nothing is called that.
    #[error(
        "no component is called `{name}`{}; known: {known}",
        nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// What is spelt most like it.
        nearest: Option<String>,
        /// All there are.
        known: String,
    },
    /// Something that should be a number.
    #[error("`{text}` is no {what}")]
    Number {
        /// What was written.
        text: String,
        /// What it should be.
        what: &'static str,
    },
    /// The window has no cycle.
    #[error("from cycle {from} to cycle {to} there is none")]
    Empty {
        /// First.
        from: u64,
        /// End.
        to: u64,
    },
    /// More lines than are kept.
    #[error("{limit} lines are too many; {MOST_LINES} are the most")]
    Limit {
        /// What was asked for.
        limit: u64,
    },
    /// The GPU has no such part.
    #[error("`{name} {number}`: {there}")]
    Absent {
        /// Kind of part.
        name: &'static str,
        /// Its number.
        number: u32,
        /// What there is.
        there: String,
    },
}

impl Watch {
    /// From `COMPONENT,FROM,TO[,LIMIT]`; `sm 3`, `sm3` and `sm:3` are one, `sm` alone is all of them.
    ///
    /// # Errors
    /// What cannot be understood, and what could be.
    pub fn parse(text: &str) -> Result<Self, WatchError> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let (part, from, to, limit) = match parts[..] {
            [part, from, to] => (part, from, to, None),
            [part, from, to, limit] => (part, from, to, Some(limit)),
            _ => return Err(WatchError::Shape(text.into())),
        };
        let part = part.to_ascii_lowercase();
        let whole = ALSO.iter().any(|(also, _)| *also == part);
        let digits = match whole {
            true => part.len(),
            false => part.trim_end_matches(|c: char| c.is_ascii_digit()).len(),
        };
        let (name, number) = part.split_at(digits);
        let name = name.trim_matches([' ', ':', '-', '_', '/']).to_string();
        let also = ALSO.iter().find(|(also, _)| *also == name);
        let name = also.map_or(name, |(_, name)| (*name).into());
        let known = TOPICS.iter().find(|known| known.name == name);
        let Some(known) = known else {
            let names = TOPICS.iter().map(|known| known.name);
            return Err(WatchError::Unknown {
                nearest: nearest(&name, names.clone()),
                name,
                known: names.collect::<Vec<_>>().join(", "),
            });
        };
        let read = |text: &str, what| -> Result<u64, WatchError> {
            let refused = || WatchError::Number {
                text: text.into(),
                what,
            };
            text.replace('_', "").parse().map_err(|_| refused())
        };
        let number = match number {
            "" => None,
            text => Some(read(text, "number of a component")?),
        };
        let (from, to) = (read(from, "cycle")?, read(to, "cycle")?);
        if from >= to {
            return Err(WatchError::Empty { from, to });
        }
        let limit = match limit {
            Some(text) => read(text, "number of lines")?,
            None => DEFAULT_LINES as u64,
        };
        if limit > MOST_LINES as u64 {
            return Err(WatchError::Limit { limit });
        }
        Ok(Self {
            topic: known.topic,
            number: number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
            from: Cycle(from),
            to: Cycle(to),
            limit: limit as usize,
        })
    }

    /// Refuses a part that this GPU does not have.
    ///
    /// # Errors
    /// What it has instead.
    pub fn check(&self, config: &GpuConfig) -> Result<(), WatchError> {
        let known = TOPICS.iter().find(|known| known.topic == self.topic);
        let name = known.map_or("", |known| known.name);
        let count = match self.topic {
            Topic::Sm | Topic::Request => config.device.sms,
            Topic::Slice | Topic::Dram | Topic::Reply => config.l2.slices,
            Topic::Network if config.interconnect.has_networks() => 2,
            Topic::Network => 0,
            Topic::Dispatcher | Topic::Gmmu | Topic::Host => 1,
            Topic::Copy => config.copy.engines,
        };
        let number = self.number.unwrap_or(0);
        if number < count {
            return Ok(());
        }
        let there = match count {
            0 => "`interconnect.kind` is neither `mesh` nor `switched`".into(),
            1 => "there is one, number 0".into(),
            count => format!("this GPU has {count}, from 0 to {}", count - 1),
        };
        Err(WatchError::Absent {
            name,
            number,
            there,
        })
    }
}

/// One line, in the order of (time, part, sequence).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    at: Time,
    part: (Topic, u32),
    sequence: u64,
    text: String,
}

/// The first lines of one part for one watch.
#[derive(Debug, Default)]
struct Kept {
    /// The latest on top, to make room for an earlier one.
    lines: BinaryHeap<Line>,
    seen: u64,
}

type Shared = Arc<Mutex<Kept>>;

/// One watch, and what was kept for it by each part.
#[derive(Debug)]
struct Watched {
    watch: Watch,
    parts: Mutex<Vec<((Topic, u32), Shared)>>,
}

/// What all parts write to. It is outside the simulated state: saving, loading and changing modes
/// leave it alone.
#[derive(Clone, Debug)]
pub struct Recorder {
    clock: Hertz,
    watched: Arc<[Watched]>,
}

impl Recorder {
    /// A recorder for these watches; none if there are none.
    ///
    /// # Errors
    /// A part that the GPU does not have.
    pub fn new(watches: &[Watch], config: &GpuConfig) -> Result<Option<Self>, WatchError> {
        for watch in watches {
            watch.check(config)?;
        }
        let watched: Vec<Watched> = watches
            .iter()
            .map(|watch| Watched {
                watch: watch.clone(),
                parts: Mutex::default(),
            })
            .collect();
        Ok((!watched.is_empty()).then(|| Self {
            clock: config.device.clock,
            watched: watched.into(),
        }))
    }

    /// What parts of these topics with this number write to; none if nobody watches them.
    #[must_use]
    pub fn probe(&self, topics: &[Topic], number: u32) -> Option<Box<Probe>> {
        let mut channels = Vec::new();
        for watched in &*self.watched {
            let watch = &watched.watch;
            if !topics.contains(&watch.topic) || watch.number.is_some_and(|own| own != number) {
                continue;
            }
            let part = (watch.topic, number);
            let mut parts = watched.parts.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = match parts.iter().find(|(known, _)| *known == part) {
                Some((_, kept)) => kept.clone(),
                None => {
                    let kept = Shared::default();
                    parts.push((part, kept.clone()));
                    kept
                }
            };
            channels.push(Channel {
                topic: watch.topic,
                window: self.clock.edge(watch.from)..self.clock.edge(watch.to),
                limit: watch.limit,
                kept,
            });
        }
        (!channels.is_empty()).then(|| {
            Box::new(Probe {
                number,
                clock: self.clock,
                channels,
            })
        })
    }

    /// What was seen, watch by watch.
    #[must_use]
    pub fn text(&self) -> String {
        self.watched
            .iter()
            .map(|watched| self.one(watched))
            .collect()
    }

    fn one(&self, watched: &Watched) -> String {
        let watch = &watched.watch;
        let (mut all, mut seen): (Vec<Line>, u64) = (Vec::new(), 0);
        let parts = watched.parts.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, kept) in &*parts {
            let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            seen += kept.seen;
            all.extend(kept.lines.iter().cloned());
        }
        all.sort();
        all.truncate(watch.limit);
        let name = TOPICS.iter().find(|known| known.topic == watch.topic);
        let name = name.map_or("", |known| known.name);
        let which = watch
            .number
            .map_or(String::new(), |number| format!(" {number}"));
        let mut text = format!(
            "# {name}{which}, cycles {} to {}: {} of {seen} lines\n",
            watch.from.0,
            watch.to.0,
            all.len()
        );
        for line in all {
            let cycle = self.clock.cycle_at_or_after(line.at).0;
            let part = line.part.1;
            text.push_str(&format!("{cycle:>10} {name} {part}: {}\n", line.text));
        }
        text
    }
}

#[derive(Debug)]
struct Channel {
    topic: Topic,
    window: std::ops::Range<Time>,
    limit: usize,
    kept: Shared,
}

/// What one part writes to.
#[derive(Debug)]
pub struct Probe {
    number: u32,
    clock: Hertz,
    channels: Vec<Channel>,
}

impl Probe {
    /// Notes what a part does, if that is of interest; only then is it put into words.
    pub fn note<T: fmt::Display>(&self, topic: Topic, at: Time, words: impl Fn() -> T) {
        for channel in &self.channels {
            if channel.topic != topic || !channel.window.contains(&at) {
                continue;
            }
            let mut kept = channel.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let sequence = kept.seen;
            kept.seen += 1;
            // What comes later than everything that is kept is not put into words.
            let full = kept.lines.len() >= channel.limit;
            if full && kept.lines.peek().is_none_or(|last| last.at <= at) {
                continue;
            }
            if full {
                kept.lines.pop();
            }
            kept.lines.push(Line {
                at,
                part: (topic, self.number),
                sequence,
                text: words().to_string(),
            });
        }
    }

    /// The SM cycle of a time, for words.
    #[must_use]
    pub fn cycle(&self, at: Time) -> u64 {
        self.clock.cycle_at_or_after(at).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn refused(text: &str) -> String {
        Watch::parse(text).unwrap_err().to_string()
    }

    fn config() -> GpuConfig {
        lockstep_config::load::<&str>(Some("h200"), &["device.clock=1 GHz"]).unwrap()
    }

    #[test]
    fn watches_are_read_and_mistakes_named() {
        let watch = Watch::parse("sm 3,1000,2_000,50").unwrap();
        assert_eq!(watch, Watch::parse("SM3, 1000, 2000, 50").unwrap());
        assert_eq!((watch.topic, watch.number), (Topic::Sm, Some(3)));
        assert_eq!(Watch::parse("dram,0,5").unwrap().limit, DEFAULT_LINES);
        assert_eq!(
            Watch::parse("copy engine 1,0,5"),
            Watch::parse("copy:1,0,5")
        );
        assert_eq!(Watch::parse("L2 3,0,5"), Watch::parse("slice3,0,5"));
        assert_eq!(Watch::parse("l2,0,5"), Watch::parse("slice,0,5"));
        for (_, name) in ALSO {
            assert!(TOPICS.iter().any(|known| known.name == *name), "{name}");
        }
        expect!["no component is called `slce`; did you mean `slice`?; known: dispatcher, sm, slice, dram, request, reply, network, gmmu, copy, host"]
            .assert_eq(&refused("slce 3,0,10"));
        expect!["`sm 3`: write COMPONENT,FROM,TO[,LIMIT], for example `sm 3,1000,2000,500`"]
            .assert_eq(&refused("sm 3"));
        expect!["`ten` is no cycle"].assert_eq(&refused("sm 3,0,ten"));
        expect!["`-1` is no cycle"].assert_eq(&refused("sm 3,-1,10"));
        expect!["from cycle 10 to cycle 10 there is none"].assert_eq(&refused("sm 3,10,10"));
        expect!["99999999 lines are too many; 1000000 are the most"]
            .assert_eq(&refused("sm,0,1,99999999"));
        expect!["`sm 500`: this GPU has 132, from 0 to 131"].assert_eq(
            &Watch::parse("sm 500,0,1")
                .unwrap()
                .check(&config())
                .unwrap_err()
                .to_string(),
        );
        expect!["`network 0`: `interconnect.kind` is neither `mesh` nor `switched`"].assert_eq(
            &Watch::parse("network,0,1")
                .unwrap()
                .check(&config())
                .unwrap_err()
                .to_string(),
        );
        assert!(Watch::parse("sm 99999999999999999999,0,1").is_err());
    }

    /// The first lines by time are kept, whatever the order in which they were noted.
    #[test]
    fn the_first_lines_stay() {
        let watches = [Watch::parse("slice,2,9,3").unwrap()];
        let recorder = Recorder::new(&watches, &config()).unwrap().unwrap();
        assert!(recorder.probe(&[Topic::Sm], 0).is_none());
        let at = |cycle: u64| Time(cycle * 1_000_000);
        for number in [1, 0] {
            let probe = recorder
                .probe(&[Topic::Slice, Topic::Dram], number)
                .unwrap();
            for cycle in [9, 7, 5, 5, 1, 2] {
                probe.note(Topic::Slice, at(cycle), || format!("at {cycle}"));
            }
            probe.note(Topic::Dram, at(3), || -> String { panic!("nobody asked") });
        }
        expect![[r#"
            # slice, cycles 2 to 9: 3 of 8 lines
                     2 slice 0: at 2
                     2 slice 1: at 2
                     5 slice 0: at 5
        "#]]
        .assert_eq(&recorder.text());
    }
}
