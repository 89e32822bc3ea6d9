//! Serves the connections of CUDA programs: one request at a time, in the order of [`HostOrder`].
//!
//! Every connection has a thread that reads its requests. A request waits until the threads of its
//! process are at rest; whoever finds them so answers all that are there, in their order, and that
//! order is what the record of calls keeps. Connections and processes are numbered when their first
//! request is handled, so connections that only watch change no number. What a process leaves behind is
//! freed before the next call of another is answered.
//!
//! Start reading at [`Server::start`].

use crate::connections::{Door, Streams, has_hung_up};
use crate::host::{Call, HostOrder, Key, Turn};
use crate::host_writes::{self, HostWrites};
use lockstep_protocol::doorbell::Doorbells;
use lockstep_protocol::{
    ConnectionError, Hello, Listener, Reply, Request, Response, ServerConnection, Welcome, layout,
    refuse,
};
use lockstep_runtime::timeline::Wait;
use lockstep_runtime::{Client, DRIVER_VERSION, Device, RecordError, RecordWriter, Runtime};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How much of the calls is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recording {
    /// Nothing.
    None,
    /// What was called.
    #[default]
    Calls,
    /// And every byte that the host wrote, so that it can be replayed without the program.
    Full,
}

/// How long a call whose turn has not come waits before it looks again whether threads are at rest,
/// at first and at most.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(2)];

/// What all connections share.
pub struct State<D> {
    /// The meaning of calls.
    pub runtime: Runtime<D>,
    record: Option<RecordWriter<File>>,
    writes: Option<HostWrites>,
    order: HostOrder,
    doorbells: Doorbells,
    /// Wakes those whose call was answered by another.
    turned: Arc<Condvar>,
    /// Answers that nobody has taken yet.
    answers: BTreeMap<Key, Response>,
    clients: BTreeMap<Key, Client>,
    /// The sockets of those who may have made a call.
    peers: BTreeMap<Key, Arc<UnixStream>>,
    connections: u64,
    processes: BTreeMap<u32, Process>,
    started: Instant,
    /// Figures about the host.
    pub figures: Figures,
    problems: Vec<String>,
    /// Whether the record ended because the disk is full.
    pub record_is_full: bool,
}

#[derive(Debug)]
struct Process {
    number: u32,
    connections: u32,
}

/// Figures about the host, outside the digest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// From the start to the first answer.
    pub first_answer: Option<Duration>,
    /// Time inside calls.
    pub simulating: Duration,
    /// Processor time of the whole process inside calls.
    pub processor: Option<Duration>,
    /// Processes that made a call.
    pub processes: u32,
    /// Connections that were made, those that only watch included.
    pub attached: u64,
}

/// A server, until it is finished.
pub struct Server<D> {
    state: Arc<Mutex<State<D>>>,
    streams: Arc<Mutex<Streams>>,
    acceptor: Option<JoinHandle<()>>,
    wake: OwnedFd,
}

impl<D: Device + Send + 'static> Server<D> {
    /// Serves whoever connects to `listener`, handing out `window`.
    ///
    /// # Errors
    /// The system has no threads or descriptors left.
    #[allow(
        clippy::disallowed_methods,
        reason = "figures about the host are outside the digest"
    )]
    pub fn start(
        listener: Arc<Listener>,
        window: OwnedFd,
        runtime: Runtime<D>,
        record: Option<File>,
        recording: Recording,
    ) -> std::io::Result<Self> {
        let welcome = Welcome {
            window_base: layout::WINDOW_BASE,
            window_size: layout::WINDOW_SIZE,
            driver_version: DRIVER_VERSION,
            devices: runtime.descriptions(),
        };
        let record = record
            .filter(|_| recording != Recording::None)
            .map(|file| RecordWriter::new(file, recording == Recording::Full))
            .transpose()
            .map_err(std::io::Error::other)?;
        let state = Arc::new(Mutex::new(State {
            runtime,
            record,
            writes: (recording == Recording::Full).then(HostWrites::default),
            order: HostOrder::default(),
            doorbells: Doorbells::map(&window)?,
            turned: Arc::default(),
            answers: BTreeMap::new(),
            clients: BTreeMap::new(),
            peers: BTreeMap::new(),
            connections: 0,
            processes: BTreeMap::new(),
            started: Instant::now(),
            figures: Figures::default(),
            problems: Vec::new(),
            record_is_full: false,
        }));
        let streams = Arc::new(Mutex::new(Streams::default()));
        let (wake, woken) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map(|(a, b)| (b, a))?;
        let mut door = Door::new()?;
        let acceptor = {
            let (state, streams) = (state.clone(), streams.clone());
            std::thread::Builder::new()
                .name("accept".into())
                .spawn(move || {
                    accept(
                        &mut door,
                        &listener,
                        &woken,
                        &Arc::new(window),
                        &Arc::new(welcome),
                        &state,
                        &streams,
                    )
                })?
        };
        Ok(Self {
            state,
            streams,
            acceptor: Some(acceptor),
            wake,
        })
    }

    /// Ends all connections and answers what they leave behind, with sentences about what went
    /// wrong.
    pub fn finish(mut self) -> (State<D>, Vec<String>) {
        self.close();
        let Self { state, .. } = self;
        let mut state = match Arc::try_unwrap(state) {
            Ok(state) => state.into_inner().unwrap_or_else(PoisonError::into_inner),
            Err(_) => unreachable!("every thread that shared the state was joined"),
        };
        if let Some(record) = state.record.take()
            && let Err(error) = record.finish()
        {
            state.record_ends(&error);
        }
        let problems = std::mem::take(&mut state.problems);
        (state, problems)
    }

    fn close(&mut self) {
        // The reading end lives as long as the thread; a thread that has ended needs no waking. A
        // panic of a thread has ended the process, and a socket that is gone needs no closing.
        let _ = rustix::io::write(&self.wake, &[0]);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        let threads = lock(&self.streams).close();
        for thread in threads {
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept<D: Device + Send + 'static>(
    door: &mut Door,
    listener: &Listener,
    woken: &OwnedFd,
    window: &Arc<OwnedFd>,
    welcome: &Arc<Welcome>,
    state: &Arc<Mutex<State<D>>>,
    streams: &Arc<Mutex<Streams>>,
) {
    use rustix::event::{PollFd, PollFlags, poll};
    loop {
        let mut files = [
            PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(listener.socket().as_fd(), PollFlags::IN),
        ];
        match poll(&mut files, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => {
                lock(state).problems.push(format!(
                    "programs could not attach any more: waiting for them: {error}"
                ));
                return;
            }
        }
        if !files[0].revents().is_empty() {
            return;
        }
        let stream = match door.accept(listener) {
            Ok(Some(stream)) => Arc::new(stream),
            Ok(None) => continue,
            Err(problem) => {
                let problems = &mut lock(state).problems;
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
                continue;
            }
        };
        let number = lock(streams).opened(&stream);
        let (welcome, window) = (welcome.clone(), window.clone());
        let (shared, left, served) = (state.clone(), streams.clone(), stream.clone());
        let spawned = std::thread::Builder::new()
            .name("connection".into())
            .spawn(move || {
                if let Err(error) = serve(served, &welcome, &window, &shared)
                    && !is_stranger(&error)
                {
                    lock(&shared)
                        .problems
                        .push(format!("a connection ended: {error}"));
                }
                lock(&left).ended(number);
            });
        match spawned {
            Ok(thread) => lock(streams).serves(thread),
            Err(error) => {
                let problem = format!("a program could not attach: no thread for it: {error}");
                refuse(&stream, &problem);
                lock(streams).ended(number);
                lock(state).problems.push(problem);
            }
        }
    }
}

/// Whether somebody came by whose failure is none of the run's.
fn is_stranger(error: &ConnectionError) -> bool {
    let stranger = matches!(
        error,
        ConnectionError::OtherUser { .. } | ConnectionError::Magic
    );
    if stranger {
        tracing::warn!("somebody was not let in: {error}");
    }
    stranger
}

fn serve<D: Device>(
    stream: Arc<UnixStream>,
    welcome: &Welcome,
    window: &OwnedFd,
    state: &Mutex<State<D>>,
) -> Result<(), ConnectionError> {
    stream.set_read_timeout(Some(HANDSHAKE))?;
    let accepted = ServerConnection::accept(stream.clone(), welcome, window.as_fd());
    let (mut connection, hello) = match accepted {
        // How a program ended is not said here.
        Err(error) if error.is_gone() => return Ok(()),
        accepted => accepted?,
    };
    connection.stream().set_read_timeout(None)?;
    let key = {
        let mut state = lock(state);
        state.figures.attached += 1;
        let key = (hello.process, hello.thread, state.figures.attached);
        state.peers.insert(key, stream);
        key
    };
    let outcome = loop {
        let request = match connection.receive() {
            Ok(Some(request)) => request,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        if let Request::DeviceState { device, rung } = request {
            let response = lock(state).look(device);
            let sent = connection.send(&response);
            if rung {
                lock(state).order.looked(hello.process);
            }
            match sent {
                Ok(()) => continue,
                Err(_) => break Ok(()),
            }
        }
        let response = answer(state, key, &hello, request);
        let sent = connection.send(&response);
        {
            let mut state = lock(state);
            state.order.returned(key);
            state.turned.notify_all();
        }
        if let Err(error) = sent {
            // A program that was ended does not wait for its answer.
            tracing::debug!("an answer was not wanted: {error}");
            break Ok(());
        }
    };
    let mut state = lock(state);
    state.order.leave(key);
    state.peers.remove(&key);
    if let Some(client) = state.clients.remove(&key) {
        state.left(client, &hello);
    }
    state.turned.notify_all();
    outcome
}

/// Answers a call when its turn comes, and those of others whose turn comes with it.
fn answer<D: Device>(
    state: &Mutex<State<D>>,
    key: Key,
    hello: &Hello,
    request: Request,
) -> Response {
    let mut state = lock(state);
    state.order.enter(key, hello, Arc::new(request));
    let turned = state.turned.clone();
    let [mut pause, longest] = LOOK_AGAIN;
    loop {
        if state.order.is_released(key)
            && let Some(response) = state.answers.remove(&key)
        {
            return response;
        }
        let turn = match state.another_leaves(key.0) {
            true => Turn::Nobody,
            false => state.turn(),
        };
        match turn {
            Turn::Release(first) => {
                state.order.release(first);
                turned.notify_all();
            }
            Turn::Nobody => {
                let waited = turned.wait_timeout(state, pause);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                pause = longest.min(pause * 2);
            }
            Turn::Calls(calls) => state.answer_all(&calls),
            Turn::Waits(waits) => state.answer_first(&waits),
        }
    }
}

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

    /// Whether another process than this one has hung up and its memory is not freed yet. A process that was
    /// waited for has hung up before whoever waited goes on, so this puts its end before their calls.
    fn another_leaves(&self, process: u32) -> bool {
        if self.processes.keys().all(|known| *known == process) {
            return false;
        }
        self.clients
            .keys()
            // A call that came before its process ended is answered first.
            .filter(|key| key.0 != process && !self.order.is_inside(**key))
            .any(|key| self.peers.get(key).is_some_and(|peer| has_hung_up(peer)))
    }

    /// Whose turn it is.
    #[allow(
        clippy::disallowed_methods,
        reason = "when a thread is given up is kept as a dependence on the host"
    )]
    fn turn(&mut self) -> Turn {
        let doorbells = &self.doorbells;
        let rung = |process| doorbells.rung(process);
        let turn = self.order.turn(rung, Instant::now());
        if matches!(turn, Turn::Calls(_) | Turn::Waits(_)) {
            let inside = self.order.inside();
            self.runtime.device_mut().host_is_inside(inside);
        }
        turn
    }

    /// Answers calls in their order.
    fn answer_all(&mut self, calls: &[Call]) {
        for (key, request) in calls {
            self.order.take(*key);
            let response = self.handle(*key, request);
            self.answers.insert(*key, response);
        }
        // Nobody has gone on since all were found at rest, so the first may.
        if let Some((first, _)) = calls.first() {
            self.order.release(*first);
            self.turned.notify_all();
        }
    }

    /// Of calls that wait, answers those whose wait is over first.
    fn answer_first(&mut self, calls: &[Call]) {
        if calls.len() == 1 {
            return self.answer_all(calls);
        }
        let mut waits = Vec::new();
        for (key, request) in calls {
            let client = self.client(*key);
            let Some(wait) = self.runtime.wait_of(client, request) else {
                return self.answer_all(&[(*key, request.clone())]);
            };
            waits.push(wait);
        }
        self.runtime.advance_to_first(&waits);
        let over = |wait: &Wait| self.runtime.is_over(wait);
        let mut first: Vec<Call> = calls
            .iter()
            .zip(&waits)
            .filter(|(_, wait)| over(wait))
            .map(|(call, _)| call.clone())
            .collect();
        if first.is_empty() {
            // Something went wrong, which each of them is told.
            first = calls.to_vec();
        }
        self.answer_all(&first);
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "figures about the host are outside the digest"
    )]
    fn handle(&mut self, key: Key, request: &Request) -> Response {
        let client = self.client(key);
        let (began, worked) = (Instant::now(), processor_time());
        self.note(client, request);
        tracing::trace!(connection = client.connection, ?request);
        let response = self.runtime.handle(client, request);
        if let Err(failure) = &response.result {
            tracing::debug!(connection = client.connection, code = %failure.code, message = failure.message, "call failed");
        }
        self.answered(client, &response);
        self.figures.simulating += began.elapsed();
        let worked = processor_time().saturating_sub(worked);
        *self.figures.processor.get_or_insert_default() += worked;
        self.figures
            .first_answer
            .get_or_insert_with(|| self.started.elapsed());
        response
    }

    /// Answers somebody who only looks.
    fn look(&self, device: u32) -> Response {
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
        let Some(record) = &mut self.record else {
            return;
        };
        let mut written = Ok(());
        if let Some(writes) = &mut self.writes {
            writes.before(client.connection, &self.runtime, |address, bytes| {
                if written.is_ok() {
                    written = record.wrote(address, bytes);
                }
            });
        }
        let written = written
            .and_then(|()| record.call(client, self.order.period(), self.runtime.now(), request));
        if let Err(error) = written {
            self.record_ends(&error);
        }
    }

    /// Notes what a call was answered, for those who replay it.
    fn answered(&mut self, client: Client, response: &Response) {
        let Some(writes) = &mut self.writes else {
            return;
        };
        let read = writes.after(client.connection, &self.runtime);
        if let Some(record) = &mut self.record {
            let digest = host_writes::digest(&self.runtime, &read);
            if let Err(error) = record.answered(response, &read, digest) {
                self.record_ends(&error);
            }
        }
    }

    /// The record could not be written: the run goes on, and ends with an error.
    fn record_ends(&mut self, error: &RecordError) {
        if let RecordError::Io(error) = error {
            self.record_is_full |= lockstep_telemetry::run_folder::is_full(error);
        }
        self.problems.push(format!(
            "calls.record: {error}; the record ends here and cannot be replayed: make room and run again"
        ));
        self.record = None;
    }

    fn left(&mut self, client: Client, hello: &Hello) {
        let Some(process) = self.processes.get_mut(&hello.process) else {
            return;
        };
        process.connections -= 1;
        if process.connections > 0 {
            return;
        }
        // What the host wrote last still counts.
        let mut written = Ok(());
        if let Some(record) = &mut self.record {
            if let Some(writes) = &mut self.writes {
                writes.before(client.connection, &self.runtime, |address, bytes| {
                    if written.is_ok() {
                        written = record.wrote(address, bytes);
                    }
                });
            }
            if let Err(error) = written.and_then(|()| record.gone(client.process)) {
                self.record_ends(&error);
            }
        }
        self.processes.remove(&hello.process);
        self.runtime.detach(client.process);
    }
}
