//! Both ends of a connection, from the handshake on.
//!
//! The client speaks first: eight bytes (magic, version), then a [`Hello`]. The server
//! answers with the same eight bytes, which carry the shared memory as an ancillary file
//! descriptor, then with a [`Welcome`] or a refusal. The eight bytes never change, so that
//! each side can name the other's version.
//!
//! Whoever is not let in hears why before the connection is closed: a refusal is the same eight
//! bytes, without memory, and a sentence in the place of the welcome.

use crate::frame::{self, FrameError};
use crate::passed_files;
use crate::peer::{self, Peer};
use crate::window::WindowError;
use crate::{DeviceDescription, Request, Response};
use rustix::net::SendFlags;
use serde::{Deserialize, Serialize};
use std::io::{BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Version of everything in this crate. Raise it with every change of a message.
pub const PROTOCOL_VERSION: u32 = 6;

const MAGIC: [u8; 4] = *b"LKST";

/// Longest [`Hello`], in bytes: somebody who has not said who it is gets no more memory.
const MAXIMUM_HELLO: usize = 64 << 10;

/// First message of a client: its process, thread and name.
///
/// A process lives, with all that it has at the simulator, as long as any of its connections
/// is open; its first one stays open until the process ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Process id.
    pub process: u32,
    /// Thread id; 0 for connections that make no calls: the one that watches for the end of the
    /// simulator and sends nothing, and the one that only looks ([`Request::DeviceState`]).
    pub thread: u32,
    /// Name of the program.
    pub name: String,
    /// The node that the process is on, or why that is not known ([`crate::placement`]).
    pub node: Result<u32, String>,
}

/// What the simulator offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Where the window lies; a client built with other constants refuses it.
    pub window_base: u64,
    /// Its size in bytes.
    pub window_size: u64,
    /// What `cuDriverGetVersion` answers: 13030 is 13.3.
    pub driver_version: i32,
    /// The ordinal of the first GPU of the client's node among those of the run.
    pub first_device: u32,
    /// The GPUs of the client's node, by ordinal from there on.
    pub devices: Vec<DeviceDescription>,
}

/// Why a connection could not be made or ended early.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// There is no simulator at the socket.
    #[error("cannot reach the simulator at {path}: {error}")]
    Unreachable {
        /// The socket.
        path: String,
        /// What the operating system says.
        error: std::io::Error,
    },
    /// The other side is something else.
    #[error("the other side of the socket does not speak Lockstep's protocol")]
    Magic,
    /// The other side is of another version.
    #[error(
        "the CUDA program's side speaks protocol version {client} and the simulator \
         {server}: both must come from the same build of Lockstep"
    )]
    Version {
        /// Version of the program's side.
        client: u32,
        /// Version of the simulator.
        server: u32,
    },
    /// The simulator declines.
    #[error("the simulator declined: {0}")]
    Refused(String),
    /// This simulator has nothing for the program.
    #[error("{0}")]
    NotWelcome(String),
    /// The program belongs to somebody else.
    #[error(
        "process {} of user {} may not use the simulator of user {own}: only the same user and root \
         may attach",
        peer.process, peer.user
    )]
    OtherUser {
        /// Who wanted to attach.
        peer: Peer,
        /// The user of the simulator.
        own: u32,
    },
    /// The handshake came without shared memory.
    #[error("the simulator's handshake carried no shared memory")]
    NoMemory,
    /// The shared memory cannot be used.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// A frame could not be read or written.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The operating system says no.
    #[error("connection: {0}")]
    Io(#[from] std::io::Error),
}

impl ConnectionError {
    /// Whether the other side closed the connection, also in the middle of the handshake or of a
    /// message: a process that ends takes all its threads with it, whatever they were sending.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match self {
            Self::Frame(FrameError::Closed | FrameError::Truncated { .. }) => true,
            Self::Io(error) | Self::Frame(FrameError::Io(error)) => {
                matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
            }
            _ => false,
        }
    }
}

/// The end of a CUDA program's host thread.
#[derive(Debug)]
pub struct ClientConnection {
    stream: BufReader<UnixStream>,
    buffer: Vec<u8>,
}

impl ClientConnection {
    /// Connects and shakes hands. The file is the window's; map it once a process.
    pub fn connect(
        path: &Path,
        hello: &Hello,
    ) -> Result<(Self, Welcome, OwnedFd), ConnectionError> {
        let stream = UnixStream::connect(path).map_err(|error| ConnectionError::Unreachable {
            path: path.display().to_string(),
            error,
        })?;
        Self::attach(stream, hello)
    }

    /// Shakes hands over a stream that is already connected.
    pub fn attach(
        mut stream: UnixStream,
        hello: &Hello,
    ) -> Result<(Self, Welcome, OwnedFd), ConnectionError> {
        let mut buffer = Vec::new();
        let said = introduce(&stream, hello, &mut buffer);
        let answered = receive_preamble(&mut stream);
        if answered.is_err() {
            said?;
        }
        // One who is refused at once cannot say everything, but hears why.
        let (theirs, file) = answered?;
        let server = version_of(theirs)?;
        if server != PROTOCOL_VERSION {
            return Err(ConnectionError::Version {
                client: PROTOCOL_VERSION,
                server,
            });
        }
        let answer: Result<Welcome, String> = frame::read(&mut stream, &mut buffer)?;
        let welcome = answer.map_err(ConnectionError::Refused)?;
        let file = file.ok_or(ConnectionError::NoMemory)?;
        let stream = BufReader::with_capacity(BUFFER, stream);
        Ok((Self { stream, buffer }, welcome, file))
    }

    /// Sends a request and waits for its answer.
    pub fn call(&mut self, request: &Request) -> Result<Response, ConnectionError> {
        frame::write(&mut Quiet(self.stream.get_ref()), request, &mut self.buffer)?;
        Ok(frame::read(&mut self.stream, &mut self.buffer)?)
    }
}

impl AsFd for ClientConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.get_ref().as_fd()
    }
}

/// The simulator's end.
#[derive(Debug)]
pub struct ServerConnection {
    stream: BufReader<Shared>,
    buffer: Vec<u8>,
}

/// A socket that another thread may shut down, without a second descriptor for it.
#[derive(Debug)]
struct Shared(Arc<UnixStream>);

impl Read for Shared {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        (&*self.0).read(bytes)
    }
}

impl ServerConnection {
    /// Shakes hands with a client that connected, handing over the window's file; `welcome` says what a client is
    /// offered, or why it is not. A client that is not let in hears why.
    pub fn accept<'welcome>(
        stream: impl Into<Arc<UnixStream>>,
        welcome: impl FnOnce(&Hello) -> Result<&'welcome Welcome, String>,
        window: BorrowedFd<'_>,
    ) -> Result<(Self, Hello), ConnectionError> {
        let stream = stream.into();
        let mut buffer = Vec::new();
        let met = meet(&stream, &mut buffer).and_then(|hello| {
            let welcome = welcome(&hello).map_err(ConnectionError::NotWelcome)?;
            Ok((hello, welcome))
        });
        let (hello, welcome) = match met {
            Ok(met) => met,
            Err(error) => {
                refuse(&stream, &error.to_string());
                return Err(error);
            }
        };
        send_preamble(&stream, Some(window))?;
        let answer: Result<&Welcome, String> = Ok(welcome);
        frame::write(&mut Quiet(&stream), &answer, &mut buffer)?;
        let stream = BufReader::with_capacity(BUFFER, Shared(stream));
        Ok((Self { stream, buffer }, hello))
    }

    /// The next request; `None` when the client is gone.
    pub fn receive(&mut self) -> Result<Option<Request>, ConnectionError> {
        match frame::read(&mut self.stream, &mut self.buffer) {
            Ok(request) => Ok(Some(request)),
            Err(error) => match ConnectionError::from(error) {
                error if error.is_gone() => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Answers the request that came last.
    pub fn send(&mut self, response: &Response) -> Result<(), ConnectionError> {
        Ok(frame::write(
            &mut Quiet(&self.stream.get_ref().0),
            response,
            &mut self.buffer,
        )?)
    }

    /// The socket, to shut it down from another thread.
    pub fn stream(&self) -> &UnixStream {
        &self.stream.get_ref().0
    }
}

/// Reads take a frame's length and a small frame with one system call. Nothing is read ahead of
/// what was sent, because each side waits for the other.
const BUFFER: usize = 4096;

/// What a client says first.
fn introduce(
    stream: &UnixStream,
    hello: &Hello,
    buffer: &mut Vec<u8>,
) -> Result<(), ConnectionError> {
    Quiet(stream).write_all(&preamble())?;
    Ok(frame::write(&mut Quiet(stream), hello, buffer)?)
}

/// Who connected, if it may.
fn meet(mut stream: &UnixStream, buffer: &mut Vec<u8>) -> Result<Hello, ConnectionError> {
    let (peer, own) = (peer::of(stream)?, peer::own_user());
    if !peer.may_attach(own) {
        return Err(ConnectionError::OtherUser { peer, own });
    }
    let mut theirs = [0; 8];
    stream.read_exact(&mut theirs)?;
    let client = version_of(theirs)?;
    if client != PROTOCOL_VERSION {
        return Err(ConnectionError::Version {
            client,
            server: PROTOCOL_VERSION,
        });
    }
    Ok(frame::read_within(&mut stream, buffer, MAXIMUM_HELLO)?)
}

/// Tells a client that is not let in why. Whoever does not listen loses only the sentence.
pub fn refuse(stream: &UnixStream, reason: &str) {
    let answer: Result<Welcome, String> = Err(reason.into());
    let told = send_preamble(stream, None)
        .and_then(|()| Ok(frame::write(&mut Quiet(stream), &answer, &mut Vec::new())?));
    // It may be gone already.
    let _ = told;
}

fn preamble() -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..].copy_from_slice(&PROTOCOL_VERSION.to_le_bytes());
    bytes
}

fn version_of(preamble: [u8; 8]) -> Result<u32, ConnectionError> {
    let (magic, version) = preamble.split_at(4);
    if magic != MAGIC {
        return Err(ConnectionError::Magic);
    }
    Ok(u32::from_le_bytes([
        version[0], version[1], version[2], version[3],
    ]))
}

fn send_preamble(
    stream: &UnixStream,
    window: Option<BorrowedFd<'_>>,
) -> Result<(), ConnectionError> {
    let bytes = preamble();
    let sent = passed_files::send(stream, &bytes, window.as_slice())?;
    // The file went with the first byte; the rest, if any, follows plainly.
    Quiet(stream).write_all(&bytes[sent..])?;
    Ok(())
}

/// Writes that never raise SIGPIPE: a CUDA program may have left it deadly, and its end
/// should come with a sentence.
struct Quiet<'a>(&'a UnixStream);

impl Write for Quiet<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn receive_preamble(
    stream: &mut UnixStream,
) -> Result<([u8; 8], Option<OwnedFd>), ConnectionError> {
    let mut bytes = [0; 8];
    let (received, files) = passed_files::receive(stream, &mut bytes, 1)?;
    if received == 0 {
        return Err(FrameError::Closed.into());
    }
    stream.read_exact(&mut bytes[received..])?;
    Ok((bytes, files.into_iter().next()))
}
