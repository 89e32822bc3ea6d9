//! Both ends of a connection over a real socket.

use lockstep_protocol::window::{self, Window};
use lockstep_protocol::*;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

fn hello() -> Hello {
    Hello {
        process: 7,
        thread: 8,
        name: "program".into(),
        node: Ok(0),
    }
}

fn welcome() -> Welcome {
    Welcome {
        window_base: layout::WINDOW_BASE,
        window_size: layout::WINDOW_SIZE,
        driver_version: 13030,
        first_device: 0,
        devices: vec![DeviceDescription::default()],
    }
}

#[test]
fn the_handshake_hands_over_memory_and_devices() {
    let listener = Listener::bind_under(&std::env::temp_dir(), |_| Ok(())).unwrap();
    let directory = listener.path().parent().unwrap().to_path_buf();
    let mode = std::fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let path = listener.path().to_path_buf();

    let server = std::thread::spawn(move || {
        let memory = window::create().unwrap();
        let map = Window::map_anywhere(&memory).unwrap();
        let stream = listener.accept().unwrap();
        let welcome = welcome();
        let (mut connection, client) =
            ServerConnection::accept(stream, |_| Ok(&welcome), memory.as_fd()).unwrap();
        assert_eq!(client, hello());
        let mut answered = 0;
        while let Some(request) = connection.receive().unwrap() {
            assert_eq!(request, Request::Profiler { start: true });
            // SAFETY: the first byte of the mapping, while the client waits.
            unsafe { *map.start() += 1 };
            connection.send(&Response::reply(Reply::Done)).unwrap();
            answered += 1;
        }
        answered
    });

    let (mut client, offered, memory) = ClientConnection::connect(&path, &hello()).unwrap();
    assert_eq!(offered, welcome());
    let map = Window::map_anywhere(&memory).unwrap();
    for _ in 0..3 {
        let response = client.call(&Request::Profiler { start: true }).unwrap();
        assert_eq!(response, Response::reply(Reply::Done));
    }
    // SAFETY: the server waits for the next request.
    assert_eq!(unsafe { *map.start() }, 3);
    drop(client);
    assert_eq!(server.join().unwrap(), 3);
    assert!(
        !directory.exists(),
        "the socket's directory is gone with it"
    );
}

#[test]
fn another_version_is_named_on_both_sides() {
    let (mut theirs, ours) = UnixStream::pair().unwrap();
    let memory = window::create().unwrap();
    let mut preamble = *b"LKST\0\0\0\0";
    preamble[4..].copy_from_slice(&99u32.to_le_bytes());
    theirs.write_all(&preamble).unwrap();
    let welcome = welcome();
    let error = ServerConnection::accept(ours, |_| Ok(&welcome), memory.as_fd()).unwrap_err();
    assert!(error.to_string().contains("version 99"), "{error}");
    // The other side still learns ours.
    let mut answer = [0; 8];
    theirs.read_exact(&mut answer).unwrap();
    assert_eq!(&answer[..4], b"LKST");
    assert_eq!(answer[4..], PROTOCOL_VERSION.to_le_bytes());
}

#[test]
fn something_else_on_the_socket_is_recognised() {
    let (mut theirs, ours) = UnixStream::pair().unwrap();
    let memory = window::create().unwrap();
    theirs.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let welcome = welcome();
    let error = ServerConnection::accept(ours, |_| Ok(&welcome), memory.as_fd()).unwrap_err();
    assert!(matches!(error, ConnectionError::Magic));
}

#[test]
fn a_client_whose_server_is_gone_gets_an_error() {
    let (theirs, ours) = UnixStream::pair().unwrap();
    drop(theirs);
    assert!(ClientConnection::attach(ours, &hello()).is_err());
    let error = ClientConnection::connect("/nowhere/socket".as_ref(), &hello()).unwrap_err();
    assert!(error.to_string().contains("/nowhere/socket"), "{error}");
}

#[test]
fn a_client_that_ends_while_it_sends_is_gone() {
    let memory = window::create().unwrap();
    let welcome = welcome();
    let hello = encoded(&hello());
    let mut handshake = b"LKST".to_vec();
    handshake.extend(PROTOCOL_VERSION.to_le_bytes());
    handshake.extend(&hello);
    for sent in 0..handshake.len() {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        theirs.write_all(&handshake[..sent]).unwrap();
        drop(theirs);
        let error = ServerConnection::accept(ours, |_| Ok(&welcome), memory.as_fd()).unwrap_err();
        assert!(error.is_gone(), "after {sent} bytes: {error}");
    }
    let request = encoded(&Request::PrimaryContextRetain { device: 0 });
    for sent in 0..request.len() {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        theirs.write_all(&handshake).unwrap();
        theirs.write_all(&request[..sent]).unwrap();
        let (mut connection, _) =
            ServerConnection::accept(ours, |_| Ok(&welcome), memory.as_fd()).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        let received = connection.receive().unwrap();
        assert!(received.is_none(), "after {sent} bytes: {received:?}");
    }
}

/// A message as one frame.
fn encoded(message: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::encode(message, &mut bytes).unwrap();
    bytes
}
