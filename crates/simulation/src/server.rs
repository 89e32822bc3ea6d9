//! Serves the connections of CUDA programs: one request at a time, in the order of [`HostOrder`].
//!
//! Every connection has a thread that reads its requests. A request waits until the threads of all
//! processes are at rest; whoever finds them so (`turns.rs`) answers all that are there, in their order, and that
//! order is what the record of calls keeps. A process that ends waits for its turn as a request does.
//! Connections and processes are numbered when their first request is handled, so connections that only
//! watch change no number.
//!
//! Start reading at [`Server::start`].

mod entries;
mod state;
mod turns;
mod welcomes;

use crate::checkpoint::SharedCheckpoints;
use crate::connections::{Door, Streams};
use crate::host::{Arrivals, Arriving, HostOrder, Key};
use crate::host_writes::HostWrites;
use entries::Entries;
use lockstep_gpu::Ranks;
use lockstep_protocol::doorbell::Doorbells;
use lockstep_protocol::{ConnectionError, Listener, Request, Response, ServerConnection, refuse};
use lockstep_runtime::{Client, Device, Runtime};
use lockstep_units::Time;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use turns::Waiting;
use welcomes::Welcomes;
pub use welcomes::welcome;

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

/// Signals that end what is left of a run.
const ENDS_A_RUN: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGKILL, libc::SIGTERM];

/// What all connections share.
pub struct State<D> {
    /// The meaning of calls.
    pub runtime: Runtime<D>,
    entries: Entries,
    writes: Option<HostWrites>,
    /// Where calls are logged or compared, if they are.
    checkpoints: Option<SharedCheckpoints>,
    order: HostOrder,
    doorbells: Arc<Doorbells>,
    arrivals: Arrivals,
    /// How far time had come for those who wait when somebody was heard, until they go on waiting.
    reached: Option<Time>,
    /// The program; 0 until it was started, and who comes before is not answered.
    program: u32,
    /// Processes that have ended, by their last connections, until their turn comes.
    ended: BTreeMap<Key, Ended>,
    over: bool,
    /// Those that wait for their turn.
    waiting: Waiting,
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

/// A process that has ended.
struct Ended {
    client: Client,
    /// What it is called in sentences.
    name: String,
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
    /// Serves whoever connects to `listener`, handing out `window`. Calls are answered once the program is known
    /// ([`Server::program`]).
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
        patience: Option<Duration>,
        checkpoints: Option<SharedCheckpoints>,
        ranks: Option<Ranks>,
    ) -> std::io::Result<Self> {
        let welcomes = Welcomes::of(&runtime);
        let entries = Entries::new(record, recording, ranks).map_err(std::io::Error::other)?;
        let arrivals = Arrivals::at(listener.clone());
        let state = Arc::new(Mutex::new(State {
            runtime,
            writes: entries.want_data().then(HostWrites::default),
            entries,
            checkpoints,
            order: HostOrder::new(patience),
            doorbells: Arc::new(Doorbells::map(&window)?),
            arrivals: arrivals.clone(),
            reached: None,
            program: 0,
            ended: BTreeMap::new(),
            over: false,
            waiting: Waiting::default(),
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
                        (&listener, &arrivals),
                        &woken,
                        &Arc::new(window),
                        &Arc::new(welcomes),
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
        for key in state.order.leaving() {
            state.left(key);
        }
        if let Err(error) = state.entries.finish_record() {
            state.record_ends(&error);
        }
        let problems = std::mem::take(&mut state.problems);
        (state, problems)
    }

    /// The program was started: calls are answered from now on, its own and those of its children.
    pub fn program(&self, process: u32) {
        let mut state = lock(&self.state);
        state.order.watch_family(process);
        state.program = process;
        state.waiting.look();
    }

    fn close(&mut self) {
        {
            let mut state = lock(&self.state);
            state.over = true;
            state.order.end();
            state.waiting.wake_all();
        }
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

/// What a thread that has ended left is as good as what others leave.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept<D: Device + Send + 'static>(
    door: &mut Door,
    (listener, arrivals): (&Listener, &Arrivals),
    woken: &OwnedFd,
    window: &Arc<OwnedFd>,
    welcomes: &Arc<Welcomes>,
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
        let arriving = arrivals.begins();
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
        let (welcomes, window) = (welcomes.clone(), window.clone());
        let (shared, left, served) = (state.clone(), streams.clone(), stream.clone());
        let spawned = std::thread::Builder::new()
            .name("connection".into())
            .spawn(move || {
                if let Err(error) = serve((served, arriving), &welcomes, &window, &shared)
                    && !is_stranger(&error)
                {
                    let problem = match error {
                        // Every thread of such a program hears it.
                        ConnectionError::NotWelcome(reason) => reason,
                        error => format!("a connection ended: {error}"),
                    };
                    let problems = &mut lock(&shared).problems;
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
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
    (stream, arriving): (Arc<UnixStream>, Arriving),
    welcomes: &Welcomes,
    window: &OwnedFd,
    state: &Mutex<State<D>>,
) -> Result<(), ConnectionError> {
    stream.set_read_timeout(Some(HANDSHAKE))?;
    let accepted = ServerConnection::accept(
        stream.clone(),
        |hello| welcomes.for_client(hello),
        window.as_fd(),
    );
    drop(arriving);
    let (mut connection, mut hello) = match accepted {
        // How a program ended is not said here.
        Err(error) if error.is_gone() => return Ok(()),
        accepted => accepted?,
    };
    hello.name = welcomes.name_of(&hello);
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
        let response = turns::answer(state, key, &hello, request);
        let sent = connection.send(&response);
        {
            let mut state = lock(state);
            state.order.returned(key);
            state.waiting.look();
        }
        if let Err(error) = sent {
            // A program that was ended does not wait for its answer.
            tracing::debug!("an answer was not wanted: {error}");
            break Ok(());
        }
    };
    turns::leave(state, key, &hello);
    outcome
}
