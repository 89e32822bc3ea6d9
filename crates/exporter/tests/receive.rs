//! What is pushed, read with OpenTelemetry's own messages (PyPI's `opentelemetry-proto`) by
//! `validation/receive_otlp.py`.

#[path = "support/recorded.rs"]
mod recorded;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lockstep_exporter::{Endpoint, Options, Service};

/// A Python that has the messages, made once beside the build's outputs; nothing where that fails.
fn python() -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("opentelemetry");
    let python = place.join("bin/python");
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok();
        output.filter(|output| output.status.success()).map(drop)
    };
    let knows = |python: &Path| {
        run(
            python,
            &["-c", "import opentelemetry.proto.metrics.v1.metrics_pb2"],
        )
    };
    if knows(&python).is_none() {
        run(Path::new("python3"), &["-m", "venv", place.to_str()?])?;
        run(
            &python,
            &["-m", "pip", "install", "--quiet", "opentelemetry-proto"],
        )?;
        knows(&python)?;
    }
    Some(python)
}

#[test]
fn opentelemetrys_own_messages_accept_a_push() {
    let Some(python) = python() else {
        eprintln!(
            "skipped: no Python with opentelemetry-proto, and it cannot be installed from PyPI"
        );
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../validation/receive_otlp.py");
    let mut receiver = Command::new(python)
        .arg(script)
        .args(["--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(receiver.stdout.take().unwrap()).lines();
    // The first line says where it listens.
    let endpoint = said.next().unwrap().unwrap();
    let service = Service::start(&Options {
        prometheus: None,
        otlp: Some(Endpoint::parse(&endpoint).unwrap()),
        ..recorded::options()
    });
    let service = service.unwrap();
    std::thread::spawn(move || service.run(Some(Duration::from_secs(600)), |_| ()));
    let points: Vec<String> = said.map(Result::unwrap).collect();
    assert!(receiver.wait().unwrap().success(), "{points:?}");
    let executed = points.iter().find(|line| line.contains("inst_executed"));
    assert!(
        executed.is_some_and(|line| line.contains("'hw.id': 'GPU-333b3954")),
        "{points:?}"
    );
}
