//! Other users of the machine: what they can read, and what their group can. Only root can become one;
//! the test of another user says so and passes.

mod support;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use lockstep_exporter::{Access, Live, Options, Origin, Service};
use lockstep_schema::Metadata;
use lockstep_segment::SegmentDirectory;
use support::{Folder, METADATA, Program};

/// Nobody, and a group that is nobody's.
const OTHER: &str = "65534";
const GROUP: &str = "64000";

/// Runs a line of a shell as another user, who is in `group`, too.
fn as_other(group: Option<&str>, line: &str) -> Output {
    let groups = match group {
        Some(group) => format!("--groups={group}"),
        None => "--clear-groups".to_owned(),
    };
    let ids = [
        format!("--reuid={OTHER}"),
        format!("--regid={OTHER}"),
        groups,
    ];
    let mut command = Command::new("setpriv");
    command.args(ids).args(["bash", "-c", line]);
    command.output().unwrap()
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    let works = root && as_other(None, "true").status.success();
    if !works {
        eprintln!("skipped: only root can try what another user may do, with setpriv and bash");
    }
    works
}

/// What the page answers to another user: its first line.
fn ask(address: SocketAddr, head: &str) -> String {
    let line = format!(
        "exec 3<>/dev/tcp/{}/{}; printf 'GET /metrics HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n{head}\\r\\n' >&3; head -1 <&3",
        address.ip(),
        address.port()
    );
    String::from_utf8_lossy(&as_other(None, &line).stdout).into_owned()
}

/// Serves segments in a thread that ends with the process.
fn serve(folder: &Path, access: Access) -> SocketAddr {
    let service = Service::start(&Options {
        origin: Origin::Segments {
            segments: folder.join("programs"),
            folder: folder.to_owned(),
            metadata: Metadata::parse("test", METADATA).unwrap(),
        },
        top_kernels: 0,
        prometheus: Some("127.0.0.1:0".parse().unwrap()),
        access,
        otlp: None,
    })
    .unwrap();
    let url = service.url().unwrap();
    std::thread::spawn(move || service.run(Some(Duration::from_secs(600)), |_| ()));
    let address = url.strip_prefix("http://").unwrap();
    address.strip_suffix("/metrics").unwrap().parse().unwrap()
}

#[test]
fn another_user_reads_neither_segments_nor_figures() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let mut program = Program::start(&folder.segments(), &[]);
    program.launch("secret_kernel", 1);
    let tries = [
        format!("ls {}", folder.segments().display()),
        format!("cat {}/*", folder.segments().display()),
        format!("ls {}", folder.0.display()),
        format!("echo x > {}/programs/planted.segment", folder.0.display()),
    ];
    for line in &tries {
        assert!(!as_other(Some(GROUP), line).status.success(), "{line}");
    }
    let secret = folder.0.join("token");
    std::fs::write(&secret, "0123456789abcdef0123").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&secret, private).unwrap();
    let closed = serve(&folder.0, Access::new(Some(&secret), None).unwrap());
    assert!(
        ask(closed, "").starts_with("HTTP/1.1 401"),
        "{}",
        ask(closed, "")
    );
    let token = "Authorization: Bearer 0123456789abcdef0123\\r\\n";
    assert!(
        ask(closed, token).starts_with("HTTP/1.1 200"),
        "{}",
        ask(closed, token)
    );
}

#[test]
fn a_group_that_is_allowed_reads_both_and_changes_nothing() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    SegmentDirectory::open(&folder.0, GROUP).unwrap();
    let directory = SegmentDirectory::open(&folder.segments(), GROUP).unwrap();
    let publisher = lockstep_segment::Publisher::create(&directory, 5, 8 << 20).unwrap();
    let path = publisher.path().display().to_string();
    assert!(as_other(Some(GROUP), &format!("head -c 7 {path}")).stdout == b"LOCKSEG");
    assert!(
        !as_other(None, &format!("head -c 7 {path}"))
            .status
            .success()
    );
    for line in [format!("echo x >> {path}"), format!("rm {path}")] {
        assert!(!as_other(Some(GROUP), &line).status.success(), "{line}");
    }
    // Members are named by the node's file of groups: nobody's own group is one that is known.
    let own = Folder::new();
    let open = serve(&own.0, Access::new(None, None).unwrap().with_group(OTHER));
    assert!(
        ask(open, "").starts_with("HTTP/1.1 200"),
        "{}",
        ask(open, "")
    );
    let not_theirs = Folder::new();
    let closed = serve(
        &not_theirs.0,
        Access::new(None, None).unwrap().with_group("0"),
    );
    assert!(!ask(closed, "").starts_with("HTTP/1.1 200"));
}

#[test]
fn segments_of_another_user_are_read_and_left_to_their_reader() {
    if !is_root() {
        return;
    }
    let theirs = Folder::new();
    let mut program = Program::start(&theirs.segments(), &[]);
    program.time = lockstep_segment::now();
    program.launch("k", 4);
    program.sample(400, 4);
    drop(program);
    // From here on all of it is another user's.
    let give = format!("chown -R {OTHER} {}", theirs.segments().display());
    let given = Command::new("bash").args(["-c", &give]).status();
    assert!(given.unwrap().success());
    let ours = Folder::new();
    let metadata = Metadata::parse("test", METADATA).unwrap();
    for _ in 0..2 {
        let mut live = Live::open(&theirs.segments(), &ours.0, &metadata, 0).unwrap();
        live.poll(lockstep_segment::now()).unwrap();
        let counted: u64 = live
            .figures()
            .series
            .values()
            .map(|counts| counts.launches)
            .sum();
        assert_eq!(counted, 1, "once, also for the next reader");
        assert_eq!(std::fs::read_dir(theirs.segments()).unwrap().count(), 1);
    }
    // A link or a pipe that they put there is not followed, and waited for by nobody.
    let fifo = theirs.segments().join("1-1-0.segment");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    std::os::unix::fs::symlink("/etc/passwd", theirs.segments().join("1-1-1.segment")).unwrap();
    let mut live = Live::open(&theirs.segments(), &ours.0, &metadata, 0).unwrap();
    live.poll(lockstep_segment::now()).unwrap();
    let news = live.take_news();
    assert_eq!(live.figures().losses.sentences, 2, "{news:?}");
}
