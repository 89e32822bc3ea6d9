//! What an OpenTelemetry collector receives.

#[path = "support/recorded.rs"]
mod recorded;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;

use lockstep_exporter::{Endpoint, Figures, Options, Pusher, SeriesKey, Service};

/// A field of a protobuf message: its number, and its bytes or its number.
#[derive(Clone, Debug)]
enum Field {
    Bytes(Vec<u8>),
    Number(u64),
}

fn variable(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// The fields of a message by number, read from the wire format and nothing of the exporter's.
fn fields(mut bytes: &[u8]) -> BTreeMap<u64, Vec<Field>> {
    let mut fields: BTreeMap<u64, Vec<Field>> = BTreeMap::new();
    while !bytes.is_empty() {
        let key = variable(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(variable(&mut bytes)),
            1 => {
                let (word, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(word.try_into().unwrap()))
            }
            2 => {
                let length = variable(&mut bytes) as usize;
                let (text, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(text.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.entry(key >> 3).or_default().push(field);
    }
    fields
}

fn messages(bytes: &[u8], number: u64) -> Vec<Vec<u8>> {
    let all = fields(bytes).remove(&number).unwrap_or_default();
    all.into_iter()
        .map(|field| match field {
            Field::Bytes(bytes) => bytes,
            Field::Number(_) => panic!("field {number} is a message"),
        })
        .collect()
}

fn text(bytes: &[u8], number: u64) -> String {
    let texts = messages(bytes, number);
    String::from_utf8(texts.first().cloned().unwrap_or_default()).unwrap()
}

fn number(bytes: &[u8], number: u64) -> Option<u64> {
    match fields(bytes).get(&number)?.first()? {
        Field::Number(value) => Some(*value),
        Field::Bytes(_) => panic!("field {number} is a number"),
    }
}

/// One point: attributes, and its value.
type Received = (BTreeMap<String, String>, f64);

/// Points by the name and unit of their metric, as a collector decodes a request.
fn decode(request: &[u8]) -> BTreeMap<(String, String), Vec<Received>> {
    let mut found = BTreeMap::new();
    for resource in messages(request, 1) {
        for scope in messages(&resource, 2) {
            for metric in messages(&scope, 2) {
                let gauges = messages(&metric, 5);
                let sums = messages(&metric, 7);
                for sum in &sums {
                    assert_eq!(number(sum, 2), Some(2), "cumulative");
                    assert_eq!(number(sum, 3), Some(1), "monotonic");
                }
                let points = gauges
                    .iter()
                    .chain(&sums)
                    .flat_map(|data| messages(data, 1));
                let points = points.map(|point| {
                    let attributes = messages(&point, 7).into_iter().map(|one| {
                        let value = messages(&one, 2).remove(0);
                        (text(&one, 1), text(&value, 1))
                    });
                    let double = number(&point, 4).map(f64::from_bits);
                    let integer = number(&point, 6).map(|value| value as f64);
                    assert!(number(&point, 3) > number(&point, 2), "time after start");
                    (attributes.collect(), double.or(integer).unwrap())
                });
                found.insert((text(&metric, 1), text(&metric, 3)), points.collect());
            }
        }
    }
    found
}

/// Takes one request and answers it; the head and the body.
fn receive(listener: &TcpListener, answer: &str) -> (String, Vec<u8>) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        bytes.extend(&buffer[..count]);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(end) = end else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let lower = head.to_lowercase();
        let length = lower.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
        if bytes.len() >= end + 4 + length {
            write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").unwrap();
            return (head, bytes[end + 4..].to_vec());
        }
    }
}

fn figures() -> Figures {
    let mut figures = Figures {
        node: "n17".to_owned(),
        began: 1_000,
        ..Figures::default()
    };
    let key = SeriesKey {
        gpu: "GPU-a".to_owned(),
        job: Some("4711".to_owned()),
        rank: Some("2".to_owned()),
        kernel: None,
    };
    figures.grow(key, 3, [("inst_executed", 1 << 60)].into_iter(), 2_000);
    let gauges = [("power", 70_500), ("memory_used", 5 << 20)];
    figures.read_gauges("GPU-a", gauges.into_iter(), 2_000);
    figures
}

#[test]
fn a_collector_receives_what_was_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let sending = std::thread::spawn(move || {
        let pusher = Pusher::new(Endpoint::parse(&endpoint).unwrap()).unwrap();
        pusher.push(&figures(), 3_000)
    });
    let (head, body) = receive(&listener, "200 OK");
    sending.join().unwrap().unwrap();
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1"), "{head}");
    assert!(head.contains("application/x-protobuf"), "{head}");
    let found = decode(&body);
    let of = |name: &str, unit: &str| &found[&(name.to_owned(), unit.to_owned())];
    let (attributes, value) = &of("lockstep.gpu.inst_executed", "1")[0];
    assert_eq!(*value, (1_u64 << 60) as f64);
    let expected = [
        ("hw.id", "GPU-a"),
        ("hw.type", "gpu"),
        ("lockstep.job", "4711"),
        ("lockstep.rank", "2"),
        ("lockstep.source", "real"),
    ];
    let expected = expected.map(|(key, text)| (key.to_owned(), text.to_owned()));
    assert_eq!(*attributes, expected.into_iter().collect());
    assert_eq!(of("hw.power", "W")[0].1, 70.5);
    assert_eq!(of("hw.gpu.memory.usage", "By")[0].1, f64::from(5 << 20));
    assert_eq!(of("hw.gpu.memory.usage", "By")[0].0["hw.id"], "GPU-a");
}

#[test]
fn a_collector_that_refuses_is_an_error_with_its_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/elsewhere", listener.local_addr().unwrap());
    let sending = std::thread::spawn(move || {
        let pusher = Pusher::new(Endpoint::parse(&endpoint).unwrap()).unwrap();
        pusher.push(&figures(), 3_000)
    });
    receive(&listener, "503 Service Unavailable");
    let error = sending.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("it answered 503"), "{error}");
}

#[test]
fn a_service_pushes_a_recorded_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let service = Service::start(&Options {
        prometheus: None,
        otlp: Some(Endpoint::parse(&endpoint).unwrap()),
        ..recorded::options()
    })
    .unwrap();
    assert_eq!(service.url(), None);
    std::thread::spawn(move || service.run(None, |error| panic!("{error}")));
    let (_, body) = receive(&listener, "200 OK");
    let found = decode(&body);
    let launches = &found[&("lockstep.gpu.launches".to_owned(), "{launch}".to_owned())];
    let rows = std::fs::read_to_string(recorded::folder().join("kernels.csv"));
    assert_eq!(launches[0].1, (rows.unwrap().lines().count() - 1) as f64);
}
