//! Assemblers of ours: scripts that copy, count and fail.

use super::call::{directive, suffix};
use super::*;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that is gone after its test.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lockstep-assembler-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// A tool of ours.
    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}")).expect("a script");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("rights");
        path
    }

    fn cache(&self) -> Option<Cache> {
        Cache::at(&self.0.join("cache"), 1 << 20)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn directives_are_found_at_the_start_of_lines() {
    let text = "// .version 1.0\n.version 9.3\n.target sm_100a\n";
    let (place, version) = directive(text, ".version ").expect("it is there");
    assert_eq!((&text[place], version.as_str()), ("9.3", "9.3"));
    assert_eq!(
        directive(text, ".target sm_").map(|found| found.1),
        Some("100".into())
    );
    assert_eq!(directive("add.s32", ".target sm_"), None);
    assert_eq!(suffix(text, 100), "a");
    assert_eq!(suffix(text, 90), "");
    assert_eq!(suffix(".target sm_90", 90), "");
}

#[test]
fn without_an_assembler_the_sentence_helps() {
    let none = Assembler::new(Vec::new(), LIMIT, None);
    let said = none.assemble(&[""], 70).expect_err("there is none");
    assert!(said.contains("LOCKSTEP_PTXAS"), "{said}");
}

/// An assembler that reads an older PTX is asked again in its own version.
#[test]
fn an_older_assembler_is_met_half_way() {
    let scratch = Scratch::new();
    let program = scratch.script(
        "ptxas",
        "if grep -q 'version 9' \"$4\"; then\n  echo \"Unsupported .version 9.3; current version is '8.8'\" >&2\n  exit 1\nfi\ncp \"$4\" \"$3\"\n",
    );
    let assembler = Assembler::new(vec![program], LIMIT, None);
    let done = assembler
        .assemble(&[".version 9.3\n.target sm_75\n"], 70)
        .expect("it works");
    assert_eq!(done.cubin, b".version 8.8\n.target sm_70\n");
    assert_eq!(done.notes.len(), 2);
}

/// A folder with two tools of ours: the assembler marks units, the linker joins them.
#[test]
fn several_units_are_linked() {
    let scratch = Scratch::new();
    let program = scratch.script("ptxas", "echo \"$5\" | cat - \"$4\" > \"$3\"\n");
    let assembler = Assembler::new(vec![program], LIMIT, None);
    let units = ["first\n", "second\n"];
    let said = assembler.assemble(&units, 90).expect_err("no linker");
    assert!(said.contains("nvlink"), "{said}");
    scratch.script("nvlink", "cat \"$4\" \"$5\" > \"$3\"\n");
    let done = assembler.assemble(&units, 90).expect("it works");
    assert_eq!(done.cubin, b"-c\nfirst\n-c\nsecond\n");
    assert!(done.notes[0].contains("2 units"), "{:?}", done.notes);
}

#[test]
fn an_assembler_that_does_not_end_is_stopped_with_what_it_started() {
    let scratch = Scratch::new();
    let program = scratch.script("ptxas", "sleep 3600 & sleep 3600\n");
    let call = Call {
        program: &program,
        by: "ptxas".into(),
        architecture: 90,
        limit: Duration::from_millis(200),
    };
    let said = call.assemble("", Kind::Whole).expect_err("it sleeps");
    assert!(said.contains("did not end"), "{said}");
}

/// Counts its calls in a file, tells its version, and gives code of a name of its own.
fn counting(scratch: &Scratch, version: &str) -> PathBuf {
    let log = scratch.0.join("log");
    scratch.script(
        "ptxas",
        &format!(
            "echo \"$1\" >> {}\nif [ \"$1\" = --version ]; then echo 'tools, release 1, V{version}'; exit; fi\n\
             cp \"$4\" \"$3\"\n",
            log.display()
        ),
    )
}

fn calls(scratch: &Scratch) -> Vec<String> {
    let log = scratch.0.join("log");
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    // The next question is about calls since this one.
    let _ = std::fs::remove_file(&log);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn what_was_assembled_once_is_taken_from_the_cache() {
    let scratch = Scratch::new();
    let program = counting(&scratch, "1.2.3");
    let assemble = |text: &str, architecture| {
        let assembler = Assembler::new(vec![program.clone()], LIMIT, scratch.cache());
        assembler.assemble(&[text], architecture).expect("it works")
    };
    let text = ".target sm_100\nadd";
    let cold = assemble(text, 90);
    assert_eq!(calls(&scratch), ["--version", "-arch=sm_90"]);
    assert_eq!(assemble(text, 90), cold, "notes too");
    assert_eq!((cold.notes.len(), cold.by.as_str()), (1, "ptxas 1.2.3"));
    assert_eq!(calls(&scratch), [""; 0], "nobody was started");
    assemble("sub", 90);
    assemble(text, 80);
    assert_eq!(calls(&scratch), ["-arch=sm_90", "-arch=sm_80"]);
    // Another assembler in its place is asked again, and makes its own code.
    counting(&scratch, "1.2.40");
    assert_eq!(assemble(text, 90).by, "ptxas 1.2.40");
    assert_eq!(calls(&scratch), ["--version", "-arch=sm_90"]);
}

#[test]
fn an_assembler_without_a_version_makes_everything_anew() {
    let scratch = Scratch::new();
    let program = counting(&scratch, "none");
    for _ in 0..2 {
        let assembler = Assembler::new(vec![program.clone()], LIMIT, scratch.cache());
        assert_eq!(
            assembler.assemble(&["add"], 90).expect("code").cubin,
            b"add"
        );
        assert_eq!(calls(&scratch), ["--version", "-arch=sm_90"]);
    }
}

#[test]
fn entries_that_are_no_code_are_refused() {
    assert!(unpack(b"", "").is_none());
    assert!(unpack(&u64::MAX.to_le_bytes(), "").is_none());
    let made = Assembled {
        cubin: b"code".to_vec(),
        notes: vec!["a".into(), "b".into()],
        by: "ptxas".into(),
    };
    assert_eq!(unpack(&pack(&made), "ptxas"), Some(made));
}
