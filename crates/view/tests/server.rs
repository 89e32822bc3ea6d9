//! Who is served, and what: over a plain socket, as a browser would ask.

use lockstep_view::Viewer;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("lockstep-view-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let head = "launch,kernel,gpu,context,stream,grid,block,start_ns,duration_ns,cycles";
        let rows = "0,<b>x</b>,0,0,0,1x1x1,32x1x1,10.0,90.0,100\n1,add,0,0,0,1x1x1,32x1x1,100.0,900.0,1000";
        std::fs::write(path.join("kernels.csv"), format!("{head}\n{rows}\n")).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A served folder, and the parts of its address.
fn serve(folder: &Folder) -> (String, String) {
    let viewer = Viewer::bind(std::slice::from_ref(&folder.0), 0).unwrap();
    let url = viewer.url();
    std::thread::spawn(move || viewer.run());
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    (host.to_string(), format!("/{path}"))
}

fn ask(host: &str, method: &str, path: &str, named: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {named}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn only_who_knows_the_token_and_means_this_machine_is_served() {
    let folder = Folder::new("token");
    let (host, path) = serve(&folder);
    assert!(host.starts_with("127.0.0.1:"));
    let page = ask(&host, "GET", &path, &host);
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
    ] {
        assert!(page.contains(header), "{header}: {page}");
    }
    for (method, path, named, code) in [
        ("GET", "/", host.as_str(), "404"),
        ("GET", "/0123456789abcdef0123456789abcdef/", &host, "404"),
        ("GET", "/api/runs", &host, "404"),
        ("GET", path.as_str(), "evil.example", "403"),
        ("GET", &format!("{path}../../etc/passwd"), &host, "404"),
        ("POST", &path, &host, "405"),
        ("GET", &format!("{path}api/nothing?run=0"), &host, "404"),
        ("GET", &format!("{path}api/series?run=9"), &host, "404"),
    ] {
        let answer = ask(&host, method, path, named);
        let expected = format!("HTTP/1.1 {code}");
        assert!(
            answer.starts_with(&expected),
            "{method} {path} of {named}: {answer}"
        );
    }
}

#[test]
fn launches_and_kernels_are_what_the_folder_has() {
    let folder = Folder::new("launches");
    let (host, path) = serve(&folder);
    let launches = ask(&host, "GET", &format!("{path}api/launches?run=0"), &host);
    assert!(launches.contains(r#""start":[10.0,100.0]"#), "{launches}");
    assert!(
        launches.contains(r#""kernels":["<b>x</b>","add"]"#),
        "{launches}"
    );
    let runs = ask(&host, "GET", &format!("{path}api/runs"), &host);
    assert!(
        runs.contains(r#""span_ns":1000.0"#) && runs.contains(r#""series":null"#),
        "{runs}"
    );
    let versions = |path: &str| ask(&host, "GET", &format!("{path}api/versions"), &host);
    let before = versions(&path);
    // A folder that changes is seen to.
    let table = folder.0.join("kernels.csv");
    let text = std::fs::read_to_string(&table).unwrap();
    std::fs::write(&table, text + "2,add,0,0,0,1x1x1,32x1x1,1000.0,1.0,1\n").unwrap();
    assert_ne!(before.lines().last(), versions(&path).lines().last());
    let launches = ask(&host, "GET", &format!("{path}api/launches?run=0"), &host);
    assert!(
        launches.contains(r#""start":[10.0,100.0,1000.0]"#),
        "{launches}"
    );
}
