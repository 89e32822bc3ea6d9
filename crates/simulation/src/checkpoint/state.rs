//! The file that stands for a checkpoint: whose it is, how far the log and the pages count, and the machine.
//!
//! It begins with eight bytes and ends with a digest of everything before; between are a head, which is read
//! alone to know how to go on, and the compressed state.

use super::CheckpointError;
use super::log::Position;
use super::pages::{Extent, SavedPage};
use crate::machine::checkpoint::SavedMachine;
use lockstep_run_folder::checkpoint::STATE;
use lockstep_stats::Digest;
use lockstep_units::Time;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// How every state begins; the version follows.
const MAGIC: &[u8; 7] = b"LKSTCKP";
/// The version that is written, and the only one that is read.
const VERSION: u8 = b'1';
/// Bytes before the head: magic, version, length of the head.
const FRONT: usize = 12;
/// Bytes of the digest at the end.
const SEAL: usize = 32;
/// How many times larger than its compressed form a state may be, past [`FREE_EXPANSION`]: caches with nothing in
/// them shrink much.
const MAXIMUM_EXPANSION: u64 = 4000;
/// Bytes that need no file behind them.
const FREE_EXPANSION: u64 = 64 << 20;

/// What a run must share with a checkpoint to go on from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The version of Lockstep.
    pub lockstep: String,
    /// The digest of its executable: another build may lay out state in another way.
    pub build: Digest,
    /// The digest of configuration and mode.
    pub machine: Digest,
}

/// What is read first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// What it belongs to.
    pub identity: Identity,
    /// The command line of the run, without the name of the command.
    pub arguments: Vec<String>,
    /// The directory that it was started in.
    pub directory: String,
    /// How far the log counts.
    pub log: Position,
    /// Where the pages are.
    pub pages: Extent,
    /// Simulated time.
    pub at: Time,
    /// Time of the host that the run took to come here.
    pub spent: Duration,
}

/// The machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    /// What is around the hardware.
    pub machine: SavedMachine,
    /// The hardware.
    #[serde(with = "serde_bytes")]
    pub hardware: Vec<u8>,
    /// Memory.
    pub pages: Vec<SavedPage>,
    /// Pages that were written during the call and that its program can look at once it has its answer.
    pub written: Vec<u64>,
}

/// The bytes of a state.
pub fn write(head: &Head, state: &State) -> std::io::Result<Vec<u8>> {
    let head = postcard::to_stdvec(head).map_err(std::io::Error::other)?;
    let state = postcard::to_stdvec(state).map_err(std::io::Error::other)?;
    let mut bytes = MAGIC.to_vec();
    bytes.push(VERSION);
    bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(&zstd::encode_all(&state[..], 1)?);
    bytes.extend_from_slice(&[0; SEAL]);
    seal(&mut bytes);
    Ok(bytes)
}

/// Reads the state in a run folder.
///
/// # Errors
/// It is not there, or not as it was written.
pub fn read(folder: &Path) -> Result<(Head, State), CheckpointError> {
    let path = folder.join(STATE);
    let bytes = std::fs::read(&path).map_err(CheckpointError::system(&path))?;
    parse(&path, &bytes)
}

/// Puts a digest at the end of bytes in place of the one that was there.
pub fn seal(bytes: &mut Vec<u8>) {
    bytes.truncate(bytes.len().saturating_sub(SEAL));
    let seal = Digest::of_page(bytes);
    bytes.extend_from_slice(seal.as_bytes());
}

/// Reads the bytes of a state, which were found at a path.
///
/// # Errors
/// They are not as they were written.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<(Head, State), CheckpointError> {
    let refused = |place: &str, reason: String| CheckpointError::refused(path, place, reason);
    if bytes.len() < FRONT + SEAL || !bytes.starts_with(MAGIC) {
        let reason = "it is no checkpoint of Lockstep, or hardly any of it is left";
        return Err(refused("byte 0", reason.into()));
    }
    if bytes[7] != VERSION {
        return Err(refused(
            "byte 7",
            format!(
                "it is a checkpoint of version {}, and this Lockstep reads version {}: run the program again",
                char::from(bytes[7]).escape_default(),
                char::from(VERSION)
            ),
        ));
    }
    let (held, seal) = bytes.split_at(bytes.len() - SEAL);
    if Digest::of_page(held).as_bytes() != seal {
        return Err(refused(
            &format!("bytes 0 to {}", held.len()),
            "their checksum is not the one at the end: the file was cut or changed".into(),
        ));
    }
    let length = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
    let rest = &held[FRONT..];
    let Some((head, body)) = rest.split_at_checked(length) else {
        return Err(refused(
            "byte 8",
            format!("a head of {length} bytes does not fit"),
        ));
    };
    let place = format!("byte {FRONT}");
    let head: Head =
        postcard::from_bytes(head).map_err(|error| refused(&place, error.to_string()))?;
    let place = format!("byte {}", FRONT + length);
    let wrong = |error: &dyn std::fmt::Display| refused(&place, error.to_string());
    let most = FREE_EXPANSION + MAXIMUM_EXPANSION * body.len() as u64;
    let decoder = zstd::Decoder::new(body).map_err(|error| wrong(&error))?;
    let mut state = Vec::new();
    let read = decoder.take(most).read_to_end(&mut state);
    read.map_err(|error| wrong(&error))?;
    if state.len() as u64 == most {
        return Err(wrong(&format!("it expands to more than {most} bytes")));
    }
    let state = postcard::from_bytes(&state).map_err(|error| wrong(&error))?;
    Ok((head, state))
}

/// Refuses a checkpoint that belongs to something else.
///
/// # Errors
/// It does.
pub fn check(folder: &Path, found: &Identity, ours: &Identity) -> Result<(), CheckpointError> {
    let path = folder.join(STATE);
    let refused = |reason: String| Err(CheckpointError::refused(&path, "its head", reason));
    if found.lockstep != ours.lockstep || found.build != ours.build {
        return refused(format!(
            "it was written by another build of Lockstep ({}, this is {}); resume with that one, or run the program \
             again",
            found.lockstep, ours.lockstep
        ));
    }
    if found.machine != ours.machine {
        return refused(format!(
            "it is of a GPU with another configuration: its hash is {}, and the same command line means {} now; \
             restore the file of the GPU, or run the program again",
            brief(found.machine),
            brief(ours.machine)
        ));
    }
    Ok(())
}

fn brief(digest: Digest) -> String {
    digest.to_string()[..12].to_string()
}
