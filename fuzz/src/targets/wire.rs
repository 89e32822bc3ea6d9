//! Both ends of the protocol, over a pair of sockets.

use crate::corpus::Corpus;
use crate::random::Random;
use crate::{mutate, samples, tiny};
use lockstep_protocol::{ClientConnection, Hello, Request, ServerConnection};
use lockstep_simulation::{Mode, Session};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// Bytes before the first frame.
const PREAMBLE: usize = 8;

pub fn make_server(corpus: &Corpus, random: &mut Random) -> Vec<u8> {
    let mut input = samples::sent(corpus);
    if random.below(3) > 0 {
        mutate::frames(random, &mut input, PREAMBLE);
        return input;
    }
    let start = if random.once_in(20) { 0 } else { PREAMBLE };
    let range = start..input.len();
    mutate::bytes(random, &mut input, range, corpus_piece(corpus));
    input
}

/// What a client sends is answered until it makes no sense.
pub fn run_server(bytes: &[u8]) {
    let description = tiny::description(tiny::config(90), Mode::Functional);
    let (Ok(mut session), Ok((server, client))) = (Session::new(&description), UnixStream::pair())
    else {
        return;
    };
    let welcome = session.welcome();
    let Ok(window) = session.memory().try_clone_to_owned() else {
        return;
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = (&client).write_all(bytes);
            let _ = client.shutdown(Shutdown::Write);
        });
        scope.spawn(|| {
            let _ = (&client).read_to_end(&mut Vec::new());
        });
        use std::os::fd::AsFd;
        if let Ok((mut connection, _)) = ServerConnection::accept(server, &welcome, window.as_fd())
        {
            while let Ok(Some(request)) = connection.receive() {
                let response = session.ask(&request);
                if connection.send(&response).is_err() || description.progress.is_stopped() {
                    break;
                }
            }
        }
    });
}

pub fn make_client(corpus: &Corpus, random: &mut Random) -> Vec<u8> {
    let mut input = samples::answered();
    if random.once_in(2) {
        mutate::frames(random, &mut input, PREAMBLE);
        return input;
    }
    let start = if random.once_in(20) { 0 } else { PREAMBLE };
    let range = start..input.len();
    mutate::bytes(random, &mut input, range, corpus_piece(corpus));
    input
}

/// What a server answers is taken until it makes no sense.
pub fn run_client(bytes: &[u8]) {
    let Ok((server, client)) = UnixStream::pair() else {
        return;
    };
    let Ok(file) = super::record::in_memory(&[0; 64]) else {
        return;
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (first, rest) = bytes.split_at(PREAMBLE.min(bytes.len()));
            let files = [std::os::fd::AsFd::as_fd(&file)];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            ancillary.push(SendAncillaryMessage::ScmRights(&files));
            let pieces = [IoSlice::new(first)];
            let _ = sendmsg(&server, &pieces, &mut ancillary, SendFlags::NOSIGNAL);
            let _ = (&server).write_all(rest);
            let _ = server.shutdown(Shutdown::Write);
            let _ = (&server).read_to_end(&mut Vec::new());
        });
        let hello = Hello {
            process: 1,
            thread: 1,
            name: "fuzz".into(),
        };
        if let Ok((mut connection, _, _)) = ClientConnection::attach(client, &hello) {
            let request = Request::Profiler { start: true };
            while connection.call(&request).is_ok() {}
        }
    });
}

fn corpus_piece(corpus: &Corpus) -> &[u8] {
    let inputs = corpus.of(crate::corpus::Kind::Ptx);
    inputs.first().copied().unwrap_or_default()
}
