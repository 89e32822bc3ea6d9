//! What records and playbacks of the C ABI answer to bad calls. What they do with good ones is tested where they are
//! made, in the crate `simulation`, and by the element library for SST.

use lockstep_embed::*;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};

fn options(functional: u32) -> LockstepOptions {
    LockstepOptions {
        gpu: null(),
        settings: null(),
        settings_count: 0,
        threads: 1,
        functional,
    }
}

fn text(message: &[c_char]) -> String {
    // SAFETY: every message ends with a zero.
    let message = unsafe { CStr::from_ptr(message.as_ptr()) };
    message.to_str().unwrap().to_owned()
}

unsafe extern "C" fn ignore(_: *mut c_void, _: *const LockstepMemoryRequest) {}

/// A playback that goes when it is dropped.
struct Playback(*mut LockstepPlayback);

impl Playback {
    fn new(functional: u32, listener: LockstepMemoryListener) -> Result<Self, String> {
        let (mut playback, mut message) = (null_mut(), [0; 200]);
        // SAFETY: all pointers are to values of this function.
        let status = unsafe {
            lockstep_playback_create(
                &options(functional),
                listener,
                None,
                null_mut(),
                &mut playback,
                message.as_mut_ptr(),
                message.len(),
            )
        };
        match status {
            LockstepStatus::Ok => Ok(Self(playback)),
            _ => Err(text(&message)),
        }
    }

    fn said(&self, status: LockstepStatus, words: &str) {
        assert_eq!(status, LockstepStatus::InvalidArgument);
        // SAFETY: the playback is there, and the text until the next call.
        let message = unsafe { CStr::from_ptr(lockstep_playback_message(self.0)) };
        let message = message.to_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
}

impl Drop for Playback {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { lockstep_playback_destroy(self.0) };
    }
}

#[test]
fn a_playback_refuses_what_cannot_be() {
    let error = Playback::new(1, Some(ignore)).err().unwrap();
    assert!(error.contains("without time"), "{error}");
    let playback = Playback::new(0, None).unwrap();
    let mut progress = LockstepProgress::default();
    let (mut value, mut digest) = (0, [0; 65]);
    // SAFETY: all pointers are to values of this function, or null where that is tried.
    unsafe {
        let junk = [255_u8; 9];
        playback.said(
            lockstep_playback_enter(playback.0, junk.as_ptr(), junk.len()),
            "not a record of calls",
        );
        // Nothing to do: time does not pass.
        let status = lockstep_playback_advance(playback.0, u64::MAX, &mut progress);
        assert_eq!(status, LockstepStatus::Ok);
        assert_eq!((progress.now, progress.wants_entry), (0, 1));
        playback.said(
            lockstep_playback_complete(playback.0, 3, 0),
            "waits for its completion",
        );
        playback.said(
            lockstep_playback_counter(playback.0, 0, c"cycles".as_ptr(), &mut value),
            "no launch 0 has ended",
        );
        playback.said(
            lockstep_playback_digest(playback.0, digest.as_mut_ptr(), digest.len()),
            "has not been finished",
        );
        let status = lockstep_playback_finish(playback.0);
        assert_eq!(status, LockstepStatus::Ok);
        let status = lockstep_playback_digest(playback.0, digest.as_mut_ptr(), digest.len());
        assert_eq!((status, text(&digest).len()), (LockstepStatus::Ok, 64));
        playback.said(
            lockstep_playback_digest(playback.0, digest.as_mut_ptr(), 64),
            "takes 65 bytes",
        );
        playback.said(lockstep_playback_finish(playback.0), "ended before");
        let nobody = lockstep_playback_advance(null_mut(), 0, &mut progress);
        assert_eq!(nobody, LockstepStatus::InvalidArgument);
        lockstep_playback_destroy(null_mut());
    }
}

#[test]
fn what_is_no_record_is_refused_with_its_path() {
    let folder = env!("CARGO_MANIFEST_DIR");
    for (path, words) in [
        (format!("{folder}/Cargo.toml"), "does not begin as one"),
        (format!("{folder}/none"), "No such file"),
    ] {
        let (mut record, mut message) = (null_mut(), [0; 300]);
        let given = CString::new(path.clone()).unwrap();
        // SAFETY: all pointers are to values of this function.
        let status = unsafe {
            let place = message.as_mut_ptr();
            lockstep_record_open(given.as_ptr(), &mut record, place, message.len())
        };
        assert_eq!(status, LockstepStatus::InvalidArgument);
        let message = text(&message);
        assert!(
            message.contains(&path) && message.contains(words),
            "{message}"
        );
        assert!(record.is_null());
    }
}
