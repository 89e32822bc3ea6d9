//! Prometheus itself, as Debian packages it: `PROMETHEUS` names one, or it is installed, or its package
//! is downloaded and unpacked once beside the build's outputs.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::page::get;

/// A Prometheus that scrapes one target; it ends with the test.
pub struct Prometheus {
    child: Child,
    port: u16,
}

impl Prometheus {
    /// Starts to scrape `url` twice a second; nothing, with a sentence, where there is no Prometheus.
    pub fn start(folder: &Path, url: &str) -> Option<Self> {
        let Some(program) = find() else {
            eprintln!(
                "skipped: no Prometheus (Debian: apt install prometheus), and its package cannot be downloaded"
            );
            return None;
        };
        let target = url.strip_prefix("http://")?.strip_suffix("/metrics")?;
        let settings = folder.join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 500ms}}\nscrape_configs:\n- job_name: lockstep\n  scrape_timeout: 500ms\n  static_configs: [{{targets: ['{target}']}}]\n"
        );
        std::fs::write(&settings, text).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let data = folder.join("prometheus-data");
        let child = Command::new(program)
            .arg(format!("--config.file={}", settings.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self { child, port })
    }

    /// What it answers to a query once that is as it should be.
    pub fn wait_for(&self, query: &str, is_there: impl Fn(&str) -> bool) -> String {
        let url = format!("http://127.0.0.1:{}/api/v1/query?query={query}", self.port);
        let begun = instant();
        loop {
            let answer = match std::net::TcpStream::connect(("127.0.0.1", self.port)) {
                Ok(_) => get(&url, "").1,
                Err(_) => String::new(),
            };
            if is_there(&answer) {
                return answer;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "{query}: {answer}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find() -> Option<PathBuf> {
    let works = |program: &PathBuf| {
        let version = Command::new(program).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let named = std::env::var_os("PROMETHEUS").map_or_else(|| "prometheus".into(), PathBuf::from);
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prometheus/usr/bin/prometheus");
    if let Some(found) = [named, unpacked.clone()].into_iter().find(works) {
        return Some(found);
    }
    unpack(unpacked.ancestors().nth(3)?)?;
    works(&unpacked).then_some(unpacked)
}

/// Downloads the package and unpacks it; others that do the same at once are not in the way.
fn unpack(place: &Path) -> Option<()> {
    let fresh = place.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(&fresh).ok()?;
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&fresh)
            .stdin(Stdio::null());
        let output = command.output().ok();
        output.filter(|output| output.status.success()).map(drop)
    };
    let unpacked = run("apt-get", &["download", "prometheus"]).and_then(|()| {
        let package = std::fs::read_dir(&fresh).ok()?.next()?.ok()?.path();
        run("dpkg", &["-x", package.to_str()?, "."])
    });
    if unpacked.is_some() {
        // Whoever came first has put the same there.
        let _ = std::fs::rename(&fresh, place);
    }
    let _ = std::fs::remove_dir_all(&fresh);
    unpacked
}

#[allow(clippy::disallowed_methods, reason = "the time that a test may take")]
fn instant() -> Instant {
    Instant::now()
}
