//! What a server does when a turn comes: answers calls, lets processes leave, and keeps the record of both.

use super::{ENDS_A_RUN, Ended, Process, State, lock};
use crate::connections::has_hung_up;
use crate::host::{Call, Key, Listening, OnTheWay, Turn};
use crate::host_writes;
use crate::interrupts::signal_name;
use crate::ranks::Told;
use lockstep_protocol::{CuResult, Reply, Request, Response};
use lockstep_runtime::device::Listener;
use lockstep_runtime::timeline::Wait;
use lockstep_runtime::{Client, Device, Piece, RecordError};
use lockstep_units::Time;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Processor time that this process has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl<D: Device> State<D> {
    /// Leaves what depended on the host with the runtime.
    pub fn keep_dependences(&mut self) {
        for sentence in self.order.dependences().to_vec() {
            self.runtime.depends(sentence);
        }
    }

    /// Whose turn it is.
    #[allow(
        clippy::disallowed_methods,
        reason = "when a thread is given up is kept as a dependence on the host"
    )]
    pub(super) fn turn(&mut self) -> Turn {
        if (self.program == 0 && !self.over) || self.one_hangs_up() {
            return Turn::Nobody;
        }
        let (doorbells, arrivals) = (&self.doorbells, &self.arrivals);
        let coming = OnTheWay {
            rung: |process| doorbells.rung(process),
            nobody_arrives: || arrivals.nobody(),
        };
        let (runtime, clients) = (&self.runtime, &self.clients);
        let held_up =
            |key: &Key, request: &Request| runtime.is_held_up(clients.get(key).copied(), request);
        let turn = self.order.turn(&coming, &held_up, Instant::now());
        if matches!(turn, Turn::Calls(_) | Turn::Waits(_)) {
            let inside = self.order.inside();
            self.runtime.device_mut().host_is_inside(inside);
        }
        turn
    }

    /// Whether a process has hung up and nobody has noticed yet. A process that was waited for has hung up before
    /// whoever waited goes on, so this puts its end before their calls.
    fn one_hangs_up(&self) -> bool {
        self.processes.len() > 1
            && self
                .clients
                .keys()
                // A call that came before its process ended is answered first.
                .filter(|key| !self.order.is_inside(**key))
                .any(|key| self.hangs_up(key))
    }

    /// Whether the process at the other end of a connection has ended, or this thread of it.
    fn hangs_up(&self, key: &Key) -> bool {
        self.peers.get(key).is_some_and(|peer| has_hung_up(peer))
    }

    /// Calls that wait, of processes that have ended: no time passes for nobody, and while somebody hangs up none
    /// would pass at all.
    fn give_up(&mut self, calls: &[Call]) {
        for (key, _) in calls {
            self.order.take(*key);
            let ended = "the process that called has ended";
            let response = Response::failure(CuResult::DEINITIALIZED, ended);
            self.answers.insert(*key, response);
        }
    }

    /// Answers calls in their order.
    pub(super) fn answer_all(&mut self, calls: &[Call]) {
        for (key, request) in calls {
            self.order.take(*key);
            let response = self.handle(*key, request);
            self.answers.insert(*key, response);
        }
        // Whoever came meanwhile was woken by the host's clock: all were at rest.
        let doorbells = &self.doorbells;
        self.order
            .others_answered(calls, |process| doorbells.rung(process));
        // Nobody has gone on since all were found at rest, so the first may.
        if let Some((first, _)) = calls.first() {
            self.release(*first);
        }
    }

    /// Lets a thread go on with its answer.
    pub(super) fn release(&mut self, key: Key) {
        self.order.release(key);
        self.waiting.wake(key);
    }

    /// Of calls that wait, answers those whose wait is over first. If somebody is heard before one is, nobody is
    /// answered: whoever comes has its turn first.
    pub(super) fn answer_first(&mut self, calls: &[Call]) {
        self.reached = None;
        let gone = calls.iter().filter(|(key, _)| self.hangs_up(key));
        let gone: Vec<Call> = gone.cloned().collect();
        if !gone.is_empty() {
            return self.give_up(&gone);
        }
        let listening = self.listening();
        if calls.len() == 1 && listening.is_none() {
            return self.answer_all(calls);
        }
        let mut waits = Vec::new();
        for (key, request) in calls {
            let client = self.client(*key);
            let Some(wait) = self.runtime.wait_of(Some(client), request) else {
                return self.answer_all(&[(*key, request.clone())]);
            };
            waits.push(wait);
        }
        self.tell_waits(calls);
        self.reached = self.advance_to_first(&waits, listening);
        let over = |wait: &Wait| self.runtime.is_over(wait);
        let mut first: Vec<Call> = calls
            .iter()
            .zip(&waits)
            .filter(|(_, wait)| over(wait))
            .map(|(call, _)| call.clone())
            .collect();
        if first.is_empty() {
            if self.reached.is_some() {
                return;
            }
            // Something went wrong, which each of them is told.
            first = calls.to_vec();
        }
        self.answer_all(&first);
    }

    /// Lets time pass for those who wait; how far it came if somebody was heard meanwhile.
    #[allow(
        clippy::disallowed_methods,
        reason = "figures about the host are outside the digest"
    )]
    fn advance_to_first(&mut self, waits: &[Wait], listening: Option<Listening>) -> Option<Time> {
        let (began, worked) = (Instant::now(), processor_time());
        let listener =
            listening.map(|listening| -> Listener { Arc::new(move || listening.hears()) });
        let reached = self.runtime.advance_to_first(waits, listener);
        self.figures.simulating += began.elapsed();
        let worked = processor_time().saturating_sub(worked);
        *self.figures.processor.get_or_insert_default() += worked;
        reached
    }

    /// Who is to be heard while time passes: somebody may come only where there are several processes. A run that
    /// is saved now and then has one.
    fn listening(&self) -> Option<Listening> {
        let rung = self.order.entered();
        (rung.len() > 1 && self.checkpoints.is_none()).then(|| Listening {
            doorbells: self.doorbells.clone(),
            arrivals: self.arrivals.clone(),
            rung,
            peers: self.peers.values().cloned().collect(),
        })
    }

    /// Calls that came while time passed for others are made at the time that it had come to.
    pub(super) fn come_to_time(&mut self, calls: &[Call]) {
        // What the program's library asks by itself is asked at no time.
        if !calls.iter().all(|(_, request)| request.is_of_library()) {
            self.note_reached();
        }
    }

    /// Whoever was heard while time passed acts at the time that it had come to; whether somebody was.
    fn note_reached(&mut self) -> bool {
        let Some(at) = self.reached.take() else {
            return false;
        };
        self.runtime.host_reaches(at);
        if let Err(error) = self.entries.reached(at) {
            self.record_ends(&error);
        }
        true
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "figures about the host are outside the digest"
    )]
    fn handle(&mut self, key: Key, request: &Request) -> Response {
        if self.checkpoints.is_some() && matches!(request, Request::HostVisible) {
            // The library asks now and then, by the host's time: no call that comes again.
            return Response::reply(Reply::Pages(self.runtime.host_visible()));
        }
        let client = self.client(key);
        if self.entries.ranks().is_some() && self.processes.len() > 1 {
            return self.refuse_processes();
        }
        let (began, worked) = (Instant::now(), processor_time());
        self.note(client, request);
        tracing::trace!(connection = client.connection, ?request);
        if let Some(checkpoints) = &self.checkpoints
            && let Err(reason) = lock(checkpoints).call(client, request)
        {
            return Response::failure(CuResult::UNKNOWN, reason);
        }
        let response = self.runtime.handle(client, request);
        if let Some(checkpoints) = &self.checkpoints
            && let Err(reason) = lock(checkpoints).answered(&response, &self.readable())
        {
            return Response::failure(CuResult::UNKNOWN, reason);
        }
        if let Err(failure) = &response.result {
            tracing::debug!(connection = client.connection, code = %failure.code, message = failure.message, "call failed");
        }
        self.answered(client, request, &response);
        self.figures.simulating += began.elapsed();
        let worked = processor_time().saturating_sub(worked);
        *self.figures.processor.get_or_insert_default() += worked;
        self.figures
            .first_answer
            .get_or_insert_with(|| self.started.elapsed());
        response
    }

    /// What the program copies out of memory once it has its answer.
    fn readable(&self) -> Vec<Piece> {
        let pieces = self.runtime.host_reads().iter().copied();
        pieces
            .filter(|piece| self.runtime.holds(piece).is_ok())
            .collect()
    }

    /// Several processes at once have an order that only the ranks of one process can find.
    fn refuse_processes(&mut self) -> Response {
        let sentence = "--ranks: the program has several processes that use the GPU at once, which one rank alone \
                        can serve; run it with --ranks 1";
        if !self.problems.iter().any(|known| known == sentence) {
            self.problems.push(sentence.into());
        }
        Response::failure(CuResult::NOT_SUPPORTED, sentence)
    }

    /// Answers somebody who only looks.
    pub(super) fn look(&self, device: u32) -> Response {
        let mut looked = match self.runtime.device_state(device) {
            Ok(looked) => looked,
            Err(failure) => return Response::failure(failure.code, failure.message),
        };
        looked.processes.retain_mut(|row| {
            let mut known = self.processes.iter();
            let found = known.find(|(_, process)| process.number == row.process);
            found.is_some_and(|(id, _)| {
                row.process = *id;
                true
            })
        });
        Response::reply(Reply::DeviceState(looked))
    }

    /// Who makes a call, numbered at the first.
    fn client(&mut self, key: Key) -> Client {
        if let Some(client) = self.clients.get(&key) {
            return *client;
        }
        let process = self.processes.entry(key.0).or_insert_with(|| {
            self.figures.processes += 1;
            Process {
                number: self.figures.processes - 1,
                connections: 0,
            }
        });
        process.connections += 1;
        self.connections += 1;
        let client = Client {
            connection: self.connections - 1,
            process: process.number,
        };
        self.clients.insert(key, client);
        client
    }

    fn note(&mut self, client: Client, request: &Request) {
        let (quiet, now) = (self.order.period(), self.runtime.now());
        let written = self
            .note_writes(client)
            .and_then(|()| self.entries.call(client, quiet, now, request));
        if let Err(error) = written {
            self.record_ends(&error);
        }
    }

    /// Notes what the host wrote since the last call of a connection.
    fn note_writes(&mut self, client: Client) -> Result<(), RecordError> {
        let mut written = Ok(());
        if let Some(writes) = &mut self.writes {
            writes.before(client.connection, &self.runtime, |address, bytes| {
                if written.is_ok() {
                    written = self.entries.wrote(address, bytes);
                }
            });
        }
        written
    }

    /// Has the other ranks let time pass for those who wait, as this one does then.
    fn tell_waits(&mut self, calls: &[Call]) {
        if self.entries.ranks().is_none() {
            return;
        }
        let mut waiting = Vec::new();
        for (key, request) in calls {
            let client = self.client(*key);
            if let Err(error) = self.note_writes(client) {
                self.record_ends(&error);
            }
            waiting.push((client, Request::clone(request)));
        }
        if let Some(ranks) = self.entries.ranks() {
            Told::waits(waiting.into_iter()).tell(ranks);
        }
    }

    /// Notes what a call was answered, for those who replay it.
    fn answered(&mut self, client: Client, request: &Request, response: &Response) {
        let Some(writes) = &mut self.writes else {
            return;
        };
        // While the library asks by itself the program goes on writing, which the next call finds.
        let read = match request.is_of_library() {
            true => Vec::new(),
            false => writes.after(client.connection, &self.runtime),
        };
        let digest = host_writes::digest(&self.runtime, &read);
        if let Err(error) = self.entries.answered(response, &read, digest) {
            self.record_ends(&error);
        }
    }

    /// The record could not be written: the run goes on, and ends with an error.
    pub(super) fn record_ends(&mut self, error: &RecordError) {
        if let RecordError::Io(error) = error {
            self.record_is_full |= lockstep_run_folder::is_full(error);
        }
        self.problems.push(format!(
            "calls.record: {error}; the record ends here and cannot be replayed: make room and run again"
        ));
        self.entries.abandon_record();
    }

    /// A connection of a process has ended; whether it was the last.
    pub(super) fn was_last(&mut self, process: u32) -> bool {
        let Some(process) = self.processes.get_mut(&process) else {
            return false;
        };
        process.connections -= 1;
        process.connections == 0
    }

    /// A process has ended: what it has at the simulator goes.
    pub(super) fn left(&mut self, key: Key) {
        let signal = self.order.left(key);
        let Some(Ended { client, name }) = self.ended.remove(&key) else {
            return;
        };
        if self.note_reached() {
            self.order.depends(format!(
                "process {} ({name}): when it ended was up to the host: simulated time passed for others meanwhile",
                key.0
            ));
        }
        // The end of a run ends what is left of it.
        let by_us = |signal: &i32| self.over && ENDS_A_RUN.contains(signal);
        let killed = signal.filter(|signal| !by_us(signal)).map(|signal| {
            format!(
                "process {} ({name}) was ended by signal {signal} ({}) while it had a GPU",
                key.0,
                signal_name(signal)
            )
        });
        if let Some(words) = killed.as_ref().filter(|_| key.0 != self.program) {
            self.problems
                .push(format!("{words}: what it had there is given up"));
        }
        // What the host wrote last still counts.
        let written = self
            .note_writes(client)
            .and_then(|()| self.entries.gone(client.process, killed.is_some()));
        if let Err(error) = written {
            self.record_ends(&error);
        }
        if let Some(checkpoints) = &self.checkpoints {
            lock(checkpoints).gone(client.process);
        }
        self.processes.remove(&key.0);
        match killed {
            Some(words) => self.runtime.killed(client.process, &words),
            None => self.runtime.detach(client.process),
        }
    }
}
