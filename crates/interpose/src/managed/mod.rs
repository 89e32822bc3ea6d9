//! The host's own accesses to managed memory.
//!
//! Where paging is modelled, the simulator says which pages have left for the GPU. The program's
//! view of them is closed; its next access stops, the simulator moves the pages back in simulated
//! time, and the view is opened again. Contents are the same either way: there is one copy, and
//! only time depends on where a page is.
//!
//! | means | what stops an access |
//! |---|---|
//! | `kernel` | userfaultfd, also for system calls that are handed such memory (`kernel.rs`) |
//! | `protection` | pages without access, SIGSEGV, and wrappers of system calls (`protection.rs`) |
//! | `none` | nothing: pages move back when the host waits for the GPU |
//!
//! The same means stop a host that polls memory while kernels run (`polling.rs`).
//!
//! Start reading at [`close`].

mod kernel;
pub mod polling;
mod protection;
mod running;
pub mod wrappers;

use crate::fair_mutex::FairMutex;
use crate::process::{self, lock};
use crate::report;
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::pages::{PAGE, PageRanges};
use lockstep_protocol::{ClientConnection, HostAccessMeans, Reply, Request};
use std::sync::OnceLock;

/// Chooses the means, for tests: `kernel`, `protection` or `none`.
const VARIABLE: &str = "LOCKSTEP_HOST_FAULTS";

/// Pages that the program may not touch now.
static CLOSED: FairMutex<PageRanges> = FairMutex::new(PageRanges::new());
/// What stops accesses, once something must.
static MEANS: OnceLock<Means> = OnceLock::new();

/// What stops accesses.
enum Means {
    Kernel(kernel::Faults),
    Protection,
    Nothing,
}

/// Closes the program's view of pages that have left for the GPU.
pub fn close(ranges: &[(u64, u64)]) {
    if ranges.is_empty() {
        return;
    }
    let means = MEANS.get_or_init(start);
    for (address, bytes) in ranges {
        if region_of(*address) != Some(Region::Managed) {
            continue;
        }
        lock(&CLOSED).insert(*address, *bytes);
        let closed = match means {
            Means::Kernel(faults) => faults.close(*address, *bytes),
            Means::Protection => protection::close(*address, *bytes),
            Means::Nothing => Ok(()),
        };
        if let Err(error) = closed {
            // Going on would give times as if the page had never left.
            report::fatal(&format!(
                "managed memory at {address:#x} cannot be watched any more: {error}; raise \
                 vm.max_map_count, or run with {VARIABLE}=none"
            ));
        }
    }
}

/// Whether copies of ours must go past the mapping, lest they count as accesses of the program.
pub fn is_watched(address: usize) -> bool {
    MEANS.get().is_some() && region_of(address as u64) == Some(Region::Managed)
}

/// Chooses the best means that this machine permits, or the one that was asked for, and tells the
/// simulator.
fn start() -> Means {
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let means = choose(&wanted).unwrap_or_else(|error| report::fatal(&error));
    let named = match means {
        Means::Kernel(_) => HostAccessMeans::Kernel,
        Means::Protection => HostAccessMeans::Protection,
        Means::Nothing => HostAccessMeans::None,
    };
    // A connection of its own: the thread's is in use, an answer to it brought us here.
    let told = connect().and_then(|mut connection| {
        process::ring();
        connection
            .call(&Request::HostAccessMeans { means: named })
            .map_err(|error| error.to_string())
    });
    if let Err(error) = told {
        report::simulator_gone(&error);
    }
    means
}

/// The means that are wanted; an error if the user named one that is not to be had.
fn choose(wanted: &str) -> Result<Means, String> {
    if !["", "kernel", "protection", "none"].contains(&wanted) {
        return Err(format!(
            "{VARIABLE}={wanted}: no means is called that; write kernel, protection or none"
        ));
    }
    let refused = |error: String| {
        format!(
            "{VARIABLE}={wanted}: {error}; leave the variable out to take what this machine permits"
        )
    };
    if matches!(wanted, "" | "kernel") {
        let started =
            connect().and_then(|one| kernel::start(one).map_err(|error| error.to_string()));
        match started {
            Ok(faults) => return Ok(Means::Kernel(faults)),
            Err(error) if wanted == "kernel" => return Err(refused(error)),
            Err(_) => {}
        }
    }
    if matches!(wanted, "" | "protection") {
        let started =
            connect().and_then(|one| protection::start(one).map_err(|error| error.to_string()));
        match started {
            Ok(()) => return Ok(Means::Protection),
            Err(error) if wanted == "protection" => return Err(refused(error)),
            Err(_) => {}
        }
    }
    // The simulator warns of that, and `lockstep doctor` says why.
    Ok(Means::Nothing)
}

/// A connection that only serves accesses.
fn connect() -> Result<ClientConnection, String> {
    let path = process::socket_path().ok_or("no simulator is named")?;
    let (connection, _, _) = ClientConnection::connect(&path, &process::hello(false))
        .map_err(|error| error.to_string())?;
    Ok(connection)
}

/// An access of the program that was stopped.
#[derive(Clone, Copy)]
struct Access {
    address: u64,
    write: bool,
    /// Who it was, as the kernel numbers threads; 0 if it did not say.
    thread: u32,
}

/// Asks the simulator to move the page of an access back; answers the pages that are open now.
fn serve_access(connection: &mut ClientConnection, access: Access) -> Vec<(u64, u64)> {
    let Access { address, write, .. } = access;
    let page = (address - address % PAGE, PAGE);
    if !lock(&CLOSED).contains(address) {
        polling::look(connection, access);
        // While time passed the page may have left.
        if !lock(&CLOSED).contains(address) {
            return vec![page];
        }
    }
    process::ring();
    let response = match connection.call(&Request::HostAccess { address, write }) {
        Ok(response) => response,
        Err(error) => report::simulator_gone(&error.to_string()),
    };
    close(&response.left_host);
    let mut here = match response.result {
        Ok(Reply::Pages(ranges)) => ranges,
        // The memory is gone; the access is then the program's mistake, and it may go on.
        _ => Vec::new(),
    };
    here.push(page);
    let mut closed = lock(&CLOSED);
    let mut open = Vec::new();
    for (address, bytes) in here {
        open.extend(closed.within(address, bytes));
        closed.remove(address, bytes);
    }
    open
}

/// Moves the pages of a range back before a system call is handed it.
fn touch(address: usize, bytes: usize) {
    if bytes == 0 || !is_watched(address) || !matches!(MEANS.get(), Some(Means::Protection)) {
        return;
    }
    let last = address.saturating_add(bytes - 1);
    let mut at = address;
    while at <= last {
        // SAFETY: the program hands this memory to a system call, so it may be read; a closed
        // page stops this read as it would stop any other.
        unsafe { (at as *const u8).read_volatile() };
        at = (at / PAGE as usize + 1) * PAGE as usize;
    }
}

/// Starts a thread that takes no signal.
fn spawn(body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    // SAFETY: a signal set is plain data, and these calls only fill and exchange it: the new
    // thread inherits a mask with every signal blocked.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let spawned = std::thread::Builder::new()
            .name("lockstep-faults".into())
            .spawn(body);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        spawned.map(|_| ())
    }
}

/// Whether an outcome of the system is that nothing was wrong.
fn check(outcome: libc::c_int) -> std::io::Result<()> {
    if outcome == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error())
}
