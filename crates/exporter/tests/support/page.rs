//! Asks for a page of figures, and reads it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Values of a page by name and labels, as text: `name{labels}`.
pub fn values(page: &str) -> BTreeMap<String, f64> {
    assert!(page.ends_with("# EOF\n"), "{page}");
    page.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// Sum of all series of a name.
pub fn sum(page: &str, name: &str) -> f64 {
    let all = values(page).into_iter();
    all.filter(|(key, _)| key.split('{').next() == Some(name))
        .map(|(_, value)| value)
        .sum()
}

/// The answer to one request, head and body.
pub fn get(url: &str, head: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{head}\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}
