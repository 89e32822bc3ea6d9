//! Progress of a long run: a moving line on a terminal, a line now and then elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lockstep_simulation::Progress;
use lockstep_text::note;
use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Runs shorter than this show nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_millis(200);
/// Without a terminal a line is printed at this interval.
const INTERVAL: Duration = Duration::from_secs(30);
/// Over how long speed is measured.
const WINDOW: Duration = Duration::from_secs(5);

/// Shows progress until it is finished.
pub struct Watcher(Option<(Sender<()>, JoinHandle<()>)>);

impl Watcher {
    /// Starts to watch.
    pub fn start(progress: &Arc<Progress>) -> Self {
        let (sender, receiver) = channel();
        let progress = progress.clone();
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || {
                if !std::io::stderr().is_terminal() {
                    return print_now_and_then(&progress, &receiver);
                }
                if receiver.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
                    bar.set_style(style);
                }
                let mut speed = Speed::default();
                while receiver.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    speed.add(progress.instructions(), bar.elapsed());
                    bar.set_message(line(&progress, speed.per_second()));
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

/// Prints a line at each interval until the sender is gone.
fn print_now_and_then(progress: &Progress, receiver: &Receiver<()>) {
    let (mut speed, mut elapsed) = (Speed::default(), Duration::ZERO);
    speed.add(progress.instructions(), elapsed);
    while receiver.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        elapsed += INTERVAL;
        speed.add(progress.instructions(), elapsed);
        let line = line(progress, speed.per_second());
        note!("lockstep: {} s: {line}\n", elapsed.as_secs());
    }
}

/// How far a run is, in one line.
fn line(progress: &Progress, instructions: Option<f64>) -> String {
    let (began, ended) = progress.kernels();
    let microseconds = progress.simulated_ns() as f64 / 1e3;
    let mut words = vec![
        format!("{microseconds:.1} us simulated"),
        format!("{ended} of {began} launches so far done"),
    ];
    let (blocks, done) = progress.blocks();
    if blocks > 0 && began > ended {
        words.push(format!("{done} of {blocks} blocks"));
    }
    if let Some(speed) = instructions {
        words.push(format!(
            "{} warp instructions/s",
            lockstep_text::numbers::rounded(speed)
        ));
    }
    let kernel = progress.kernel();
    if !kernel.is_empty() {
        words.push(lockstep_text::names::readable(&kernel));
    }
    words.join(", ")
}

/// Instructions a second over the last few seconds.
#[derive(Default)]
struct Speed(VecDeque<(Duration, u64)>);

impl Speed {
    fn add(&mut self, instructions: u64, at: Duration) {
        self.0.push_back((at, instructions));
        while self.0.len() > 2 && self.0[1].0 + WINDOW < at {
            self.0.pop_front();
        }
    }

    fn per_second(&self) -> Option<f64> {
        let ((from, less), (to, more)) = (self.0.front()?, self.0.back()?);
        let seconds = to.checked_sub(*from)?.as_secs_f64();
        let counted = more.checked_sub(*less)?;
        (seconds > 0.0 && counted > 0).then(|| counted as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_that_of_the_last_seconds() {
        let mut speed = Speed::default();
        assert_eq!(speed.per_second(), None);
        for second in 0..20 {
            let done = if second < 10 { 0 } else { (second - 10) * 500 };
            speed.add(done, Duration::from_secs(second));
        }
        assert_eq!(speed.per_second(), Some(500.0));
    }

    #[test]
    fn a_run_that_has_not_begun_says_only_that() {
        let line = line(&Progress::default(), None);
        assert_eq!(line, "0.0 us simulated, 0 of 0 launches so far done");
    }
}
