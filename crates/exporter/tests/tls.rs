//! An endpoint with TLS, asked by a client that knows its certificate.

#![cfg(feature = "tls")]

#[path = "support/recorded.rs"]
mod recorded;
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use lockstep_exporter::{Access, Options, Service};
use support::Folder;

const TOKEN: &str = "0123456789abcdef0123";

/// A key and a certificate for 127.0.0.1; false where there is no `openssl`.
fn certify(folder: &Path) -> bool {
    let made = Command::new("openssl")
        .current_dir(folder)
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args([
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .output();
    made.is_ok_and(|output| output.status.success())
}

#[test]
fn a_client_reads_over_tls_with_the_token() {
    let folder = Folder::new();
    let curl = Command::new("curl").arg("--version").output();
    if !certify(&folder.0) || curl.is_err() {
        eprintln!("skipped: needs the commands openssl and curl");
        return;
    }
    let private = std::fs::Permissions::from_mode(0o600);
    let (key, token) = (folder.0.join("key.pem"), folder.0.join("token"));
    let certificate = folder.0.join("certificate.pem");
    std::fs::write(&token, TOKEN).unwrap();
    std::fs::set_permissions(&key, private.clone()).unwrap();
    std::fs::set_permissions(&token, private).unwrap();
    let access = Access::new(Some(&token), Some((certificate.clone(), key))).unwrap();
    let open = "0.0.0.0:0".parse().unwrap();
    access.check_address(open).unwrap();
    let service = Service::start(&Options {
        access,
        ..recorded::options()
    })
    .unwrap();
    let url = service.url().unwrap();
    assert!(url.starts_with("https://"), "{url}");
    std::thread::spawn(move || service.run(None, |error| panic!("{error}")));
    let ask = |token: &str| {
        let output = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--noproxy",
                "*",
                "--max-time",
                "60",
            ])
            .arg("--cacert")
            .arg(&certificate)
            .args(["-H", &format!("Authorization: Bearer {token}"), &url])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{error}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(ask(TOKEN).contains("lockstep_gpu_inst_executed_total{"));
    assert!(!ask("another token entirely").contains("lockstep_gpu"));
}
