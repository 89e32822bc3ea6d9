//! Shows on a terminal how far a long run has come.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lockstep_simulation::Progress;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Runs shorter than this show nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_millis(200);

/// Shows progress until it is finished; nothing unless standard error is a terminal.
pub struct Watcher(Option<(Sender<()>, JoinHandle<()>)>);

impl Watcher {
    /// Starts to watch.
    pub fn start(progress: &Arc<Progress>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let (sender, receiver) = channel();
        let progress = progress.clone();
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || {
                if receiver.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
                    bar.set_style(style);
                }
                while receiver.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    let (began, ended) = progress.kernels();
                    let microseconds = progress.simulated_ns() as f64 / 1e3;
                    bar.set_message(format!(
                        "{microseconds:.1} us simulated, {ended} of {began} kernels done, last: {}",
                        lockstep_report::names::readable(&progress.kernel())
                    ));
                    bar.tick();
                }
                bar.finish_and_clear();
            });
        // A run goes on without the line that shows how far it is.
        Self(thread.ok().map(|thread| (sender, thread)))
    }

    /// Takes the line away.
    pub fn finish(self) {
        if let Some((sender, thread)) = self.0 {
            drop(sender);
            // It only drew.
            let _ = thread.join();
        }
    }
}
