//! Capturing streams: their work becomes nodes of a graph instead of running.
//!
//! A capture begins in one stream; others join it by waiting for an event that was recorded in
//! it. Each stream in a capture knows the nodes that its next one follows.

use super::model::{NodeWork, graphs};
use crate::fair_mutex::FairMutex;
use crate::process::lock;
use crate::streams::{self, Target};
use crate::thread;
use crate::types::Address;
use lockstep_protocol::{CuResult, StreamName};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `cudaStreamCaptureStatus`.
pub const NONE: i32 = 0;
/// State of a stream that captures.
pub const ACTIVE: i32 = 1;
/// It did until something went wrong.
pub const INVALIDATED: i32 = 2;

/// `cudaStreamCaptureMode`.
const GLOBAL: i32 = 0;
const THREAD_LOCAL: i32 = 1;
const RELAXED: i32 = 2;

/// A stream that can capture: a created one, or the default one of a thread.
type Key = (u64, u64);

struct Capture {
    graph: u64,
    origin: Key,
    mode: i32,
    thread: u64,
    valid: bool,
    /// Nodes that were there before it began.
    before: usize,
}

struct Captures {
    next: u64,
    captures: BTreeMap<u64, Capture>,
    /// Streams in a capture, and the nodes that their next one follows.
    streams: BTreeMap<Key, (u64, Vec<u64>)>,
    /// Events recorded in a capture, and the nodes that they stand for.
    events: BTreeMap<Address, (u64, Vec<u64>)>,
}

static CAPTURES: FairMutex<Captures> = FairMutex::new(Captures {
    next: 1,
    captures: BTreeMap::new(),
    streams: BTreeMap::new(),
    events: BTreeMap::new(),
});

/// Captures under way, so that a program without any pays nothing.
static ACTIVE_CAPTURES: AtomicUsize = AtomicUsize::new(0);

/// What is known of a stream's capture.
pub struct Information {
    /// `cudaStreamCaptureStatus`.
    pub status: i32,
    /// A number of the capture's own.
    pub identity: u64,
    /// The graph.
    pub graph: u64,
    /// Nodes that the next one follows.
    pub after: Vec<u64>,
}

fn key(target: Target) -> Option<Key> {
    match target.stream {
        StreamName::Created(stream) => Some((0, stream.0)),
        StreamName::PerThread => Some((1, thread_number())),
        StreamName::Legacy => None,
    }
}

fn thread_number() -> u64 {
    // SAFETY: `gettid` has no preconditions.
    unsafe { libc::gettid() as u64 }
}

/// Begins a capture in a stream, into a graph that is new or given, after nodes of it.
pub fn begin(
    target: Target,
    mode: i32,
    into: Option<u64>,
    after: Vec<u64>,
) -> Result<(), CuResult> {
    if !(GLOBAL..=RELAXED).contains(&mode) {
        return Err(CuResult::INVALID_VALUE);
    }
    let key = key(target).ok_or(CuResult::STREAM_CAPTURE_UNSUPPORTED)?;
    let mut captures = lock(&CAPTURES);
    if captures.streams.contains_key(&key) {
        return Err(CuResult::ILLEGAL_STATE);
    }
    let mut graphs = graphs();
    let graph = match into {
        Some(graph) => graph,
        None => graphs.create(),
    };
    let before = graphs.graph(graph)?.nodes.len();
    for node in &after {
        if !graphs.graph(graph)?.nodes.contains_key(node) {
            return Err(CuResult::INVALID_VALUE);
        }
    }
    let number = captures.next;
    captures.next += 1;
    captures.captures.insert(
        number,
        Capture {
            graph,
            origin: key,
            mode,
            thread: thread_number(),
            valid: true,
            before,
        },
    );
    captures.streams.insert(key, (number, after));
    ACTIVE_CAPTURES.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Ends a capture in the stream that it began in, and answers its graph.
pub fn end(target: Target) -> Result<u64, CuResult> {
    let key = key(target).ok_or(CuResult::ILLEGAL_STATE)?;
    let mut captures = lock(&CAPTURES);
    let number = captures
        .streams
        .get(&key)
        .map(|(number, _)| *number)
        .ok_or(CuResult::ILLEGAL_STATE)?;
    let Some(capture) = captures.captures.get(&number) else {
        return Err(CuResult::ILLEGAL_STATE);
    };
    if capture.origin != key {
        captures.invalidate(number);
        return Err(CuResult::STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != RELAXED && capture.thread != thread_number() {
        return Err(CuResult::STREAM_CAPTURE_WRONG_THREAD);
    }
    let (graph, valid, before) = (capture.graph, capture.valid, capture.before);
    let joined = captures.streams[&key].1.clone();
    // The last nodes of streams that joined and must have been waited for.
    let others: Vec<u64> = captures
        .streams
        .iter()
        .filter(|(other, (capture, _))| **other != key && *capture == number)
        .flat_map(|(_, (_, nodes))| nodes.iter().copied())
        .collect();
    captures.captures.remove(&number);
    captures.streams.retain(|_, (other, _)| *other != number);
    captures.events.retain(|_, (other, _)| *other != number);
    ACTIVE_CAPTURES.fetch_sub(1, Ordering::Relaxed);
    drop(captures);
    let mut graphs = graphs();
    let nodes = &graphs.graph(graph)?.nodes;
    let mut reached: std::collections::BTreeSet<u64> = joined.iter().copied().collect();
    let mut pending = joined;
    while let Some(node) = pending.pop() {
        let after = nodes.get(&node).map(|node| node.after.as_slice());
        for earlier in after.unwrap_or_default() {
            if reached.insert(*earlier) {
                pending.push(*earlier);
            }
        }
    }
    let unjoined = others.iter().any(|node| !reached.contains(node));
    let failure = if !valid {
        CuResult::STREAM_CAPTURE_INVALIDATED
    } else if unjoined {
        CuResult::STREAM_CAPTURE_UNJOINED
    } else {
        return Ok(graph);
    };
    if before == 0 {
        graphs.remove(graph);
    }
    Err(failure)
}

/// What is known of a stream's capture.
pub fn information(target: Target) -> Result<Information, CuResult> {
    let none = Information {
        status: NONE,
        identity: 0,
        graph: 0,
        after: Vec::new(),
    };
    if ACTIVE_CAPTURES.load(Ordering::Relaxed) == 0 {
        return Ok(none);
    }
    let mut captures = lock(&CAPTURES);
    let Some(key) = key(target) else {
        // The legacy stream cannot be looked at while a blocking stream captures.
        return match captures.blocked_by(target) {
            Some(_) => Err(CuResult::STREAM_CAPTURE_IMPLICIT),
            None => Ok(none),
        };
    };
    let Some((number, after)) = captures.streams.get(&key) else {
        return Ok(none);
    };
    let capture = &captures.captures[number];
    Ok(Information {
        status: if capture.valid { ACTIVE } else { INVALIDATED },
        identity: *number,
        graph: capture.graph,
        after: after.clone(),
    })
}

/// Replaces the nodes that a stream's next one follows, or adds to them.
pub fn update(target: Target, nodes: Vec<u64>, replace: bool) -> Result<(), CuResult> {
    let key = key(target).ok_or(CuResult::ILLEGAL_STATE)?;
    let mut captures = lock(&CAPTURES);
    let (_, after) = captures
        .streams
        .get_mut(&key)
        .ok_or(CuResult::ILLEGAL_STATE)?;
    if replace {
        after.clear();
    }
    for node in nodes {
        if !after.contains(&node) {
            after.push(node);
        }
    }
    Ok(())
}

/// Makes work a node if its stream captures; true if it does, so that it does not run.
pub fn takes(
    target: Target,
    work: impl FnOnce() -> Result<NodeWork, CuResult>,
) -> Result<bool, CuResult> {
    if ACTIVE_CAPTURES.load(Ordering::Relaxed) == 0 {
        return Ok(false);
    }
    let mut captures = lock(&CAPTURES);
    let Some(number) = captures.of(target)? else {
        return Ok(false);
    };
    let key = key(target).ok_or(CuResult::ILLEGAL_STATE)?;
    let graph = captures.captures[&number].graph;
    let after = captures.streams[&key].1.clone();
    let node = match work() {
        Ok(work) => graphs().add(graph, work, after)?,
        Err(error) => {
            captures.invalidate(number);
            return Err(error);
        }
    };
    captures.streams.insert(key, (number, vec![node]));
    Ok(true)
}

/// Records an event in a stream that captures; true if it does.
pub fn takes_record(target: Target, event: Address) -> Result<bool, CuResult> {
    if ACTIVE_CAPTURES.load(Ordering::Relaxed) == 0 {
        return Ok(false);
    }
    let mut captures = lock(&CAPTURES);
    let Some(number) = captures.of(target)? else {
        captures.events.remove(&event);
        return Ok(false);
    };
    let key = key(target).ok_or(CuResult::ILLEGAL_STATE)?;
    let after = captures.streams[&key].1.clone();
    captures.events.insert(event, (number, after));
    Ok(true)
}

/// Lets a stream wait for an event of a capture, which it joins; true if there is one.
pub fn takes_wait(target: Target, event: Address) -> Result<bool, CuResult> {
    if ACTIVE_CAPTURES.load(Ordering::Relaxed) == 0 {
        return Ok(false);
    }
    let mut captures = lock(&CAPTURES);
    let own = captures.of(target)?;
    let Some((number, nodes)) = captures.events.get(&event).cloned() else {
        return match own {
            // An event from outside would order the graph after something of this moment.
            Some(number) => {
                captures.invalidate(number);
                Err(CuResult::STREAM_CAPTURE_ISOLATION)
            }
            None => Ok(false),
        };
    };
    let key = key(target).ok_or(CuResult::STREAM_CAPTURE_IMPLICIT)?;
    if own.is_some_and(|own| own != number) {
        captures.invalidate(number);
        return Err(CuResult::STREAM_CAPTURE_MERGE);
    }
    let entry = captures.streams.entry(key).or_insert((number, Vec::new()));
    for node in nodes {
        if !entry.1.contains(&node) {
            entry.1.push(node);
        }
    }
    Ok(true)
}

/// Refuses to wait for a stream, or to ask about it, while it captures.
pub fn refuses_wait(target: Target) -> Result<(), CuResult> {
    if ACTIVE_CAPTURES.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let mut captures = lock(&CAPTURES);
    match captures.of(target)? {
        Some(number) => {
            captures.invalidate(number);
            Err(CuResult::STREAM_CAPTURE_UNSUPPORTED)
        }
        None => Ok(()),
    }
}

/// Refuses to wait for an event of a capture.
pub fn refuses_event(event: Address) -> Result<(), CuResult> {
    if ACTIVE_CAPTURES.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let mut captures = lock(&CAPTURES);
    match captures.events.get(&event).map(|(number, _)| *number) {
        Some(number) => {
            captures.invalidate(number);
            Err(CuResult::CAPTURED_EVENT)
        }
        None => Ok(()),
    }
}

/// Refuses calls that a capture forbids: those that wait for everything, and those that may.
pub fn refuses_unsafe() -> Result<(), CuResult> {
    if ACTIVE_CAPTURES.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let own_mode = thread::current().capture_mode.get();
    if own_mode == RELAXED {
        return Ok(());
    }
    let this = thread_number();
    let mut captures = lock(&CAPTURES);
    let offended: Vec<u64> = captures
        .captures
        .iter()
        .filter(|(_, capture)| match capture.mode {
            RELAXED => false,
            THREAD_LOCAL => capture.thread == this,
            _ => capture.thread == this || own_mode == GLOBAL,
        })
        .map(|(number, _)| *number)
        .collect();
    if offended.is_empty() {
        return Ok(());
    }
    for number in offended {
        captures.invalidate(number);
    }
    Err(CuResult::STREAM_CAPTURE_UNSUPPORTED)
}

impl Captures {
    /// The capture that a stream is in. The legacy stream would wait for those that capture.
    fn of(&mut self, target: Target) -> Result<Option<u64>, CuResult> {
        let Some(key) = key(target) else {
            return match self.blocked_by(target) {
                Some(number) => {
                    self.invalidate(number);
                    Err(CuResult::STREAM_CAPTURE_IMPLICIT)
                }
                None => Ok(None),
            };
        };
        let Some((number, _)) = self.streams.get(&key) else {
            return Ok(None);
        };
        if self.captures[number].valid {
            Ok(Some(*number))
        } else {
            Err(CuResult::STREAM_CAPTURE_INVALIDATED)
        }
    }

    /// A capture of a stream that the legacy stream of the same context would wait for.
    fn blocked_by(&mut self, target: Target) -> Option<u64> {
        self.streams
            .iter()
            .find_map(|((kind, stream), (number, _))| {
                let blocking = *kind == 1 || streams::is_blocking(*stream, target.context);
                blocking.then_some(*number)
            })
    }

    fn invalidate(&mut self, number: u64) {
        if let Some(capture) = self.captures.get_mut(&number) {
            capture.valid = false;
        }
    }
}
