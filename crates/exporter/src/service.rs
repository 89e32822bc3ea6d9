//! An exporter as a whole: where figures come from, and where they go.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use lockstep_schema::Metadata;
use lockstep_segment::now;

use crate::access::Access;
use crate::error::ExporterError;
use crate::live::Live;
use crate::otlp::{Endpoint, Pusher};
use crate::replay::Replay;
use crate::server::{Server, Shared};

/// Time between two looks at what is new.
const POLL: Duration = Duration::from_millis(250);
/// Time between two pushes.
const PUSH: Duration = Duration::from_secs(10);

/// Where figures come from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// What programs and samplers publish now.
    Segments {
        /// Where they publish.
        segments: PathBuf,
        /// Where the exporter keeps what the next one needs.
        folder: PathBuf,
        /// What they were given.
        metadata: Metadata,
    },
    /// A run folder, from its begin on.
    Recording {
        /// The folder.
        folder: PathBuf,
        /// How many times as fast as it was; nothing shows its end at once.
        speed: Option<f64>,
    },
}

/// What to serve, and to whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where figures come from.
    pub origin: Origin,
    /// Kernels that get a label of their own.
    pub top_kernels: usize,
    /// Where Prometheus finds them.
    pub prometheus: Option<SocketAddr>,
    /// Who may read there.
    pub access: Access,
    /// Where figures are pushed to, as OTLP.
    pub otlp: Option<Endpoint>,
}

enum Feed {
    Live(Box<Live>),
    Replay {
        replay: Box<Replay>,
        speed: Option<f64>,
        begun: Instant,
    },
}

impl Feed {
    fn open(options: &Options) -> Result<Self, ExporterError> {
        Ok(match &options.origin {
            Origin::Segments {
                segments,
                folder,
                metadata,
            } => {
                let live = Live::open(segments, folder, metadata, options.top_kernels)?;
                Self::Live(Box::new(live))
            }
            Origin::Recording { folder, speed } => Self::Replay {
                replay: Box::new(Replay::open(folder, options.top_kernels)?),
                speed: *speed,
                begun: instant(),
            },
        })
    }

    /// Brings `shared` up to date; sentences on what was lost.
    fn update(&mut self, shared: &Shared) -> Result<Vec<String>, ExporterError> {
        match self {
            Self::Live(live) => {
                live.poll(now())?;
                shared.set(live.figures().clone());
                Ok(live.take_news())
            }
            Self::Replay {
                replay,
                speed,
                begun,
            } => {
                let elapsed = begun.elapsed().as_nanos() as f64;
                let elapsed = speed.map_or(u64::MAX, |speed| (elapsed * speed) as u64);
                replay.advance(elapsed);
                shared.set(replay.figures().clone());
                Ok(Vec::new())
            }
        }
    }
}

/// An exporter that is ready to serve.
pub struct Service {
    feed: Feed,
    news: Vec<String>,
    shared: Shared,
    server: Option<Server>,
    pusher: Option<Pusher>,
}

impl Service {
    /// Opens what figures come from, and listens.
    pub fn start(options: &Options) -> Result<Self, ExporterError> {
        let server = options
            .prometheus
            .map(|address| Server::bind(address, options.access.clone()))
            .transpose()?;
        let pusher = options.otlp.clone().map(Pusher::new).transpose()?;
        let mut feed = Feed::open(options)?;
        let shared = Shared::default();
        // The first scrape already sees what is there.
        let news = feed.update(&shared)?;
        Ok(Self {
            feed,
            news,
            shared,
            server,
            pusher,
        })
    }

    /// Where Prometheus finds figures.
    pub fn url(&self) -> Option<String> {
        self.server.as_ref().map(Server::url)
    }

    /// Serves for `time`, or until the process ends; says in `report` what goes wrong, and goes on.
    pub fn run(self, time: Option<Duration>, report: impl Fn(&str)) -> Result<(), ExporterError> {
        let Self {
            mut feed,
            news,
            shared,
            server,
            pusher,
        } = self;
        let begun = instant();
        let (tell, told_by_pusher) = mpsc::channel();
        if let Some(pusher) = pusher {
            let shared = shared.clone();
            // It ends with the process, or when nobody listens to it any more.
            std::thread::spawn(move || {
                while tell.send(pusher.push(&shared.get(), now())).is_ok() {
                    std::thread::sleep(PUSH);
                }
            });
        }
        let serving = server.map(|server| {
            let shared = shared.clone();
            std::thread::spawn(move || server.run(&shared))
        });
        news.iter().for_each(|sentence| report(sentence));
        let mut told = String::new();
        let mut tell_once = |outcome: Result<(), ExporterError>| {
            if let Err(error) = outcome {
                let sentence = error.to_string();
                if sentence != told {
                    report(&sentence);
                    told = sentence;
                }
            }
        };
        while time.is_none_or(|time| begun.elapsed() < time) {
            if let Some(serving) = &serving
                && serving.is_finished()
            {
                break;
            }
            std::thread::sleep(POLL);
            match feed.update(&shared) {
                Ok(news) => news.iter().for_each(|sentence| report(sentence)),
                Err(error) => tell_once(Err(error)),
            }
            told_by_pusher.try_iter().for_each(&mut tell_once);
        }
        match serving {
            // It never ends by itself unless it cannot serve.
            Some(serving) if serving.is_finished() => serving.join().unwrap_or(Ok(())),
            // It ends with the process: what it serves is kept for the next one.
            _ => Ok(()),
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a recorded run is shown in real time"
)]
fn instant() -> Instant {
    Instant::now()
}
