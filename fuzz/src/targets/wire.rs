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
        if let Ok((mut connection, _)) =
            ServerConnection::accept(server, |_| Ok(&welcome), window.as_fd())
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
            node: Ok(0),
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

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_protocol::{
        ContextHandle, FunctionHandle, ImageKind, ImageRole, Launch, LaunchConfig, MemoryAccess,
        ModuleImage, Reply, StreamName,
    };

    fn reply(session: &mut Session, request: Request) -> Option<Reply> {
        session.ask(&request).result.ok()
    }

    /// A session with a context and a kernel.
    fn session() -> Option<(Session, ContextHandle, FunctionHandle)> {
        let description = tiny::description(tiny::config(90), Mode::Functional);
        let mut session = Session::new(&description).ok()?;
        let retain = Request::PrimaryContextRetain { device: 0 };
        let Reply::Context(context) = reply(&mut session, retain)? else {
            return None;
        };
        let image = ModuleImage {
            kind: ImageKind::Ptx,
            role: ImageRole::Main,
            bytes: samples::KERNEL.as_bytes().to_vec(),
        };
        let images = vec![image];
        let load = Request::ModuleLoad { context, images };
        let Reply::Module(module) = reply(&mut session, load)? else {
            return None;
        };
        let name = "kernel".to_owned();
        let find = Request::ModuleFunction { module, name };
        let Reply::Function(function) = reply(&mut session, find)? else {
            return None;
        };
        Some((session, context, function.handle))
    }

    /// These sums and products went beyond 64 bits.
    #[test]
    fn occupancy_of_what_no_sm_can_hold_is_zero_or_refused() {
        let (mut session, context, function) = session().expect("a kernel");
        let blocks = Request::OccupancyBlocks {
            function,
            block_threads: 64,
            dynamic_shared: u64::MAX,
            flags: 0,
        };
        assert_eq!(reply(&mut session, blocks), Some(Reply::Value(0)));
        let launch = Launch {
            context,
            stream: StreamName::Legacy,
            function,
            config: LaunchConfig::new([1, 1, 1], [64, 1, 1]),
            parameters: Vec::new(),
            cooperative: false,
            cluster: Some([u32::MAX; 3]),
            priority: None,
            carveout: None,
            programmatic_stream_serialization: false,
        };
        let launch = Box::new(launch);
        let clusters = Request::OccupancyClusters { launch };
        assert_eq!(reply(&mut session, clusters), None);
    }

    #[test]
    fn memory_that_ends_behind_all_addresses_is_not_unmapped() {
        let (mut session, context, _) = session().expect("a kernel");
        let bytes = 2 << 20;
        let reserve = Request::AddressReserve {
            context,
            bytes,
            alignment: 0,
        };
        let Some(Reply::Address(address)) = reply(&mut session, reserve) else {
            panic!("addresses are left");
        };
        let create = Request::PhysicalCreate {
            context,
            device: 0,
            bytes,
            shared: false,
        };
        let Some(Reply::Physical(physical)) = reply(&mut session, create) else {
            panic!("memory is left");
        };
        let map = Request::PhysicalMap {
            context,
            address,
            bytes,
            physical,
        };
        let mapped = reply(&mut session, map);
        assert!(matches!(mapped, Some(Reply::Address(_))), "{mapped:?}");
        let bytes = u64::MAX;
        // Whether it is answered or refused, it is not the end of the simulator.
        session.ask(&Request::PhysicalUnmap { address, bytes });
        session.ask(&Request::AccessSet {
            device: 0,
            address,
            bytes,
            access: MemoryAccess::ReadWrite,
        });
    }
}
