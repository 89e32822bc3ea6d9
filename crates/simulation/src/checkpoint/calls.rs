//! The calls of the program, as a checkpoint knows them: logged before it, compared when they come again.

use super::answers::decoded;
use super::{Checkpoints, Kind};
use crate::calls::brief;
use crate::interrupts::Halt;
use lockstep_gpu::memory::PAGE;
use lockstep_protocol::{Request, Response};
use lockstep_runtime::{Client, Piece};
use lockstep_stats::Digest;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// Bytes of memory in one entry.
const PIECE: u64 = 1 << 20;
/// Exit code of a run that could not be resumed.
const NOT_RESUMED: i32 = 2;

/// A call, as it is compared.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Called {
    thread: u64,
    process: u32,
    digest: Digest,
    text: String,
}

/// The digest of a request or an answer.
fn digest_of(value: &impl Serialize) -> Digest {
    let bytes = postcard::to_stdvec(value);
    Digest::of_page(&bytes.unwrap_or_else(|error| panic!("messages can be encoded: {error}")))
}

impl Checkpoints {
    /// A call comes: the same as before, if the run is not past the checkpoint.
    ///
    /// # Errors
    /// Another call came before; the run ends.
    pub fn call(&mut self, client: Client, request: &Request) -> Result<(), String> {
        if let Some(differs) = &self.differs {
            return Err(differs.clone());
        }
        self.calls += 1;
        let called = Called {
            thread: client.connection,
            process: client.process,
            digest: digest_of(request),
            text: brief(request),
        };
        if self.playing.is_none() {
            if client.process > 0 && self.files.is_some() {
                self.end(
                    "no checkpoints are written any more: a second process uses the GPU, and only programs of one \
                     can be resumed"
                        .into(),
                );
            }
            self.keep(Kind::Call, &called);
            return Ok(());
        }
        let before = match self.next_entry() {
            Some((Kind::Call, bytes)) => decoded::<Called>(&bytes),
            other => {
                let other = other.map(|(kind, _)| kind);
                return Err(self.halt(format!("then, {other:?} came; now, {}", called.text)));
            }
        };
        if before == called {
            return Ok(());
        }
        let who = |called: &Called| format!("thread {}: {}", called.thread, called.text);
        let same = match before.text == called.text && before.thread == called.thread {
            true => " (they differ behind what is shown)",
            false => "",
        };
        Err(self.halt(format!(
            "before the checkpoint, {}; now, {}{same}",
            who(&before),
            who(&called)
        )))
    }

    /// A call is answered. Logs what its program can read then, or puts it there again.
    ///
    /// # Errors
    /// The answer is another; the run ends.
    pub fn answered(&mut self, response: &Response, read: &[Piece]) -> Result<(), String> {
        let digest = digest_of(response);
        if self.playing.is_none() {
            self.keep_seen(read);
            self.keep(Kind::Answered, &digest);
            return Ok(());
        }
        while let Some((kind, bytes)) = self.next_entry() {
            match kind {
                Kind::Seen => {
                    let (address, bytes): (u64, ByteBuf) = decoded(&bytes);
                    self.window.write(address, &bytes);
                }
                Kind::Answered if decoded::<Digest>(&bytes) == digest => return Ok(()),
                _ => break,
            }
        }
        Err(self.halt("it was answered something else before the checkpoint".into()))
    }

    /// A process has ended.
    pub fn gone(&mut self, process: u32) {
        if self.playing.is_none() {
            return self.keep(Kind::Gone, &process);
        }
        if self.differs.is_some() {
            return;
        }
        let same = match self.next_entry() {
            Some((Kind::Gone, bytes)) => decoded::<u32>(&bytes) == process,
            _ => false,
        };
        if !same {
            self.halt("the program ended here, and did not before the checkpoint".into());
        }
    }

    /// The run is not the one before the checkpoint.
    fn halt(&mut self, what: String) -> String {
        let reason = format!(
            "the run cannot be resumed: call {} of the program differs: {what}. A program whose calls depend on time, \
             chance, input or files that changed has to be run again",
            self.calls
        );
        self.differs = Some(reason.clone());
        self.interrupts.halt(Halt {
            reason: reason.clone(),
            code: NOT_RESUMED,
        });
        reason
    }

    /// Logs what a program copies out of the window, and what it can look at without a call.
    fn keep_seen(&mut self, read: &[Piece]) {
        if self.over.is_some() || self.files.is_none() {
            self.written.clear();
            return;
        }
        for Piece { rows, extent } in read {
            for slice in 0..extent.depth {
                for row in 0..extent.height {
                    let first = rows.address + slice * rows.slice_pitch + row * rows.row_pitch;
                    self.keep_range(first, extent.width);
                }
            }
        }
        let mut written = std::mem::take(&mut self.written).into_iter().peekable();
        while let Some(first) = written.next() {
            let mut end = first + PAGE;
            while written.next_if_eq(&end).is_some() {
                end += PAGE;
            }
            self.keep_range(first, end - first);
        }
    }

    fn keep_range(&mut self, address: u64, bytes: u64) {
        for at in (0..bytes).step_by(PIECE as usize) {
            let mut piece = vec![0; (bytes - at).min(PIECE) as usize];
            self.window.read(address + at, &mut piece);
            self.keep(Kind::Seen, &(address + at, ByteBuf::from(piece)));
        }
    }
}
