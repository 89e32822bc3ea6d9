//! Open files that go to another process over a socket, with bytes.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Sends bytes, and files with the first of them; how many bytes were sent.
///
/// # Errors
/// The socket.
pub fn send(stream: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(files.len()))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(files));
    }
    let bytes = [IoSlice::new(bytes)];
    let sent =
        rustix::io::retry_on_intr(|| sendmsg(stream, &bytes, &mut ancillary, SendFlags::NOSIGNAL));
    Ok(sent?)
}

/// Receives bytes, and at most so many files that came with them; how many bytes, 0 if the other side is gone.
///
/// # Errors
/// The socket.
pub fn receive(
    stream: &UnixStream,
    bytes: &mut [u8],
    most: usize,
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(most))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        let mut bytes = [IoSliceMut::new(bytes)];
        recvmsg(stream, &mut bytes, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut files = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            files.extend(passed);
        }
    }
    Ok((received.bytes, files))
}
