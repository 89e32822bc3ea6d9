//! The examples in C, compiled and run.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo left the library: beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().to_path_buf();
    assert!(folder.join("liblockstep_embed.so").exists());
    folder
}

/// Compiles an example as strictly as a cautious user does; gone when dropped.
struct Program(PathBuf);

impl Program {
    fn new(name: &str) -> Self {
        let program =
            std::env::temp_dir().join(format!("lockstep-embed-{name}-{}", std::process::id()));
        let done = Command::new("cc")
            .args([
                "-std=c11",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pedantic",
            ])
            .arg("-I")
            .arg(folder().join("include"))
            .arg(folder().join("examples").join(format!("{name}.c")))
            .arg("-L")
            .arg(library())
            .arg("-llockstep_embed")
            .arg("-o")
            .arg(&program)
            .output()
            .expect("a C compiler");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        Self(program)
    }

    fn run(&self, arguments: &[&str]) -> (bool, Vec<String>, String) {
        let done = Command::new(&self.0)
            .args(arguments)
            .env("LD_LIBRARY_PATH", library())
            .output()
            .unwrap();
        let out = String::from_utf8(done.stdout).unwrap();
        let lines = out.lines().map(str::to_owned).collect();
        let err = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.success(), lines, err)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_c_program_runs_a_kernel_reads_counters_and_goes_on_from_what_it_saved() {
    let program = Program::new("vector_add");
    let (well, lines, err) = program.run(&[]);
    assert!(well, "{err}");
    let words: Vec<&str> = lines[0]
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .collect();
    assert_eq!(
        &words[..5],
        ["0", "wrong", "1", "kernels", "ended"],
        "{lines:?}"
    );
    let number = |place: usize| words[place].parse::<u64>().unwrap();
    let (cycles, instructions, of_all_sms) = (number(5), number(7), number(9));
    // Its 16 blocks have 8 warps each.
    assert!(instructions >= 128 * 10 && cycles > 1000, "{lines:?}");
    assert_eq!(
        instructions, of_all_sms,
        "counters of the launch and of the SMs agree"
    );
    let loaded = lines[2].strip_suffix(" after saving and loading").unwrap();
    assert_eq!(lines[1], loaded);
    assert_eq!(loaded.len(), 64);

    let (well, _, err) = program.run(&["h2000"]);
    assert!(!well && err.contains("no GPU is called `h2000`"), "{err}");
}

#[test]
fn simulations_in_one_process_have_the_digests_of_processes_of_their_own() {
    let program = Program::new("two_gpus");
    let digests = |counts: &[&str]| {
        let (well, lines, err) = program.run(counts);
        assert!(well, "{err}");
        lines
    };
    let together = digests(&["1", "3"]);
    let apart = [digests(&["1"]), digests(&["3"])].concat();
    assert_eq!(together, apart);
    assert_ne!(together[0], together[1]);
}

#[test]
fn memory_of_a_c_program_answers_a_gpu() {
    let program = Program::new("outside_memory");
    let (well, lines, err) = program.run(&["100", "1100"]);
    assert!(well, "{err}");
    let numbers = |line: &str| -> Vec<u64> {
        let words = line.split([' ', ',']);
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let (near, far) = (numbers(&lines[0]), numbers(&lines[1]));
    let sectors = 8192 / 8;
    assert_eq!((near[0], near[1]), (0, 64), "{lines:?}");
    assert_eq!((near[3], near[4]), (sectors, sectors), "{lines:?}");
    assert!(near[5] > 0 && near[3..] == far[3..], "{lines:?}");
    // A load and, after it, a write or an atomic: 1000 ns more each, at 1.98 cycles a nanosecond.
    assert!((3500..4500).contains(&(far[2] - near[2])), "{lines:?}");
}
