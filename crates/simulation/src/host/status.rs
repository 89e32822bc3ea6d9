//! What the kernel says of a whole process: its state, when it began, and how it ended.

use std::os::fd::{AsRawFd, OwnedFd};

/// Fields after the name, counted from the state.
const STARTED: usize = 19;
const EXIT_CODE: usize = 49;

/// The line that the kernel writes of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Whether it has ended and waits for its parent to notice.
    pub ended: bool,
    /// When it began, in ticks of the kernel.
    pub started: u64,
    /// How it ended, as `wait` says it; 0 before.
    exit: i32,
}

impl Status {
    /// Of a process; none if it is gone.
    pub fn of(process: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    /// The name is in parentheses and may hold any character.
    fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            ended: matches!(*fields.first()?, "Z" | "X"),
            started: fields.get(STARTED)?.parse().ok()?,
            exit: fields.get(EXIT_CODE)?.parse().ok()?,
        })
    }
}

/// A process that is known before it ends, so that how it ended can be asked although its parent was told.
#[derive(Debug)]
pub struct Watched {
    process: u32,
    handle: Option<OwnedFd>,
}

impl Watched {
    /// A process that is there.
    pub fn new(process: u32) -> Self {
        let number = i32::try_from(process)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let open =
            |number| rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty());
        Self {
            process,
            handle: number.and_then(|number| open(number).ok()),
        }
    }

    /// The signal that ended it, if one did and the kernel says so.
    pub fn killed_by(&self) -> Option<i32> {
        let status = Status::of(self.process).filter(|status| status.ended);
        let exit = match status {
            Some(status) => status.exit,
            None => exit_of(self.handle.as_ref()?)?,
        };
        let signal = exit & 0x7f;
        (signal != 0).then_some(signal)
    }
}

/// `struct pidfd_info` of Linux 6.15, which is the first that tells how a process ended.
#[repr(C)]
#[derive(Default)]
struct ProcessInfo {
    mask: u64,
    control_group: u64,
    identities: [u32; 11],
    exit: i32,
}

/// `PIDFD_INFO_EXIT`.
const EXIT_IS_KNOWN: u64 = 1 << 3;
/// `PIDFD_GET_INFO`: a request that reads and writes (3), its size, its group (0xff), its number.
const GET_INFO: u64 = (3 << 30) | ((size_of::<ProcessInfo>() as u64) << 16) | (0xff << 8) | 11;

/// How a process ended that is no longer there; older kernels do not say.
fn exit_of(handle: &OwnedFd) -> Option<i32> {
    let mut info = ProcessInfo {
        mask: EXIT_IS_KNOWN,
        ..ProcessInfo::default()
    };
    // SAFETY: the request carries the size of the structure, which the kernel fills at most.
    let answer = unsafe { libc::ioctl(handle.as_raw_fd(), GET_INFO, &raw mut info) };
    (answer == 0 && info.mask & EXIT_IS_KNOWN != 0).then_some(info.exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read_whatever_the_name_is() {
        let rest = (4..=52).map(|field| {
            if field == 52 {
                "9".into()
            } else {
                field.to_string()
            }
        });
        let rest = rest.collect::<Vec<String>>().join(" ");
        let status = Status::parse(&format!("7 (a) b (c) Z {rest}")).unwrap();
        let expected = Status {
            ended: true,
            started: 22,
            exit: 9,
        };
        assert_eq!(status, expected);
        assert_eq!(Status::parse("7 (a"), None);
        assert_eq!(Status::parse("7 (a) S 1"), None);
        assert!(!Status::of(std::process::id()).unwrap().ended);
    }

    #[test]
    fn how_a_process_ended_is_known_before_its_parent_is_told() {
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let watched = Watched::new(child.id());
        assert_eq!(watched.killed_by(), None);
        child.kill().unwrap();
        while Status::of(child.id()).is_some_and(|status| !status.ended) {
            std::thread::yield_now();
        }
        assert_eq!(watched.killed_by(), Some(libc::SIGKILL));
        child.wait().unwrap();
        // Afterwards newer kernels know it still, and older ones say nothing.
        assert!(matches!(watched.killed_by(), None | Some(libc::SIGKILL)));
    }
}
