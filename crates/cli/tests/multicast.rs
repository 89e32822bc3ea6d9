//! Multicast objects over several GPUs: what kernels load, store and add by them, as PTX and as machine code, and what
//! is refused. Without nvcc or the interposition libraries these tests say so and pass.

mod support;

use support::runs::assert_one;
use support::{Folder, build_with_driver};

const SOURCE: &str = include_str!("sources/multicast.cu");

const NONE_WRONG: &str = "loaded: 0 0 0 0 0 0 0 0 0 0 0 0 0 wrong\n\
     stored: 0 wrong, 0 not seen by who stored\n\
     added: 0 wrong\n";

fn values(folder: &Folder, gpus: &str, options: &[&str]) {
    let options = [&["--gpus", gpus], options].concat();
    let said = folder.run_program(&options, &["./program", "values", gpus]);
    assert_eq!(said.code, Some(0), "{options:?}: {said:?}");
    assert!(
        said.out.starts_with(NONE_WRONG),
        "{options:?}: {}",
        said.out
    );
    assert!(said.out.ends_with("gone: 1\n"), "{}", said.out);
}

#[test]
fn members_are_read_written_and_added_to_together() {
    let Some(folder) = build_with_driver(SOURCE) else {
        return;
    };
    for gpus in ["2", "4"] {
        for mode in ["functional", "timing"] {
            for frontend in ["ptx", "sass"] {
                values(&folder, gpus, &["--mode", mode, "--frontend", frontend]);
            }
        }
    }
}

#[test]
fn the_answer_is_one_for_any_number_of_threads() {
    let Some(folder) = build_with_driver(SOURCE) else {
        return;
    };
    let digests = ["1", "2", "4"].map(|threads| {
        values(&folder, "3", &["--threads", threads]);
        folder.digest()
    });
    assert_one(&digests);
    // What the switch sent to members: each stores or adds once, and each member receives it.
    let statistics = folder.result("stats.csv");
    let count = |name: &str| -> u64 {
        let rows = statistics.lines().filter(|row| row.contains(name));
        rows.filter_map(|row| row.rsplit(',').find_map(|cell| cell.parse::<u64>().ok()))
            .sum()
    };
    assert!(count("multicast_written_sectors") > 0, "{statistics}");
    let (read, written) = (
        count("multicast_read_sectors"),
        count("multicast_written_sectors"),
    );
    assert_eq!((read % 3, written % 3), (0, 0), "of three members each");
}

#[test]
fn what_is_no_multicast_access_is_a_fault_with_a_sentence() {
    let Some(folder) = build_with_driver(SOURCE) else {
        return;
    };
    for (what, sentence) in [
        (
            "load",
            "reached by multimem.ld_reduce, multimem.st and multimem.red",
        ),
        (
            "plain",
            "no multicast object that this GPU may use is mapped there",
        ),
        (
            "unbound",
            "nothing is bound there on GPU 1, see cuMulticastBindMem",
        ),
    ] {
        for frontend in ["ptx", "sass"] {
            let options = [
                "--gpus",
                "2",
                "--mode",
                "functional",
                "--frontend",
                frontend,
            ];
            let said = folder.run_program(&options, &["./program", "fault", what]);
            assert_eq!(said.out, format!("{what}: 700\n"), "{said:?}");
            assert!(said.err.contains(sentence), "{what}: {}", said.err);
        }
    }
    let options = ["--gpus", "2", "--mode", "functional"];
    let said = folder.run_program(&options, &["./program", "fault", "copy"]);
    assert_eq!(said.out, "copy: 1\n", "{said:?}");
}

#[test]
fn calls_are_refused_as_the_manual_says() {
    let Some(folder) = build_with_driver(SOURCE) else {
        return;
    };
    let run = |options: &[&str]| {
        let options = [&["--mode", "functional"], options].concat();
        folder.run_program(&options, &["./program", "refusals"]).out
    };
    assert_eq!(
        run(&["--gpus", "3"]),
        "GPU 0: 1\nGPU 1: 1\nGPU 2: 1\ncreate: 0\ngranularity: 2097152\n\
         odd size 1, 17 GPUs 1, no GPUs 1\n\
         added twice 1, no such GPU 101\n\
         bound too early 401\n\
         one too many 1\n\
         odd offset 1, odd offset of the memory 1, odd bytes 1\n\
         beyond the object 1, beyond the memory 1\n\
         of another GPU 101\n\
         twice 1, flags 1\n\
         unbound other bytes 1, of another GPU 1\n\
         unbound again 1\n\
         memory as an object 1, an object as memory 1\n\
         not to be shared 1\n\
         not exported 1\n"
    );
    // Without NVLinks to a switch, without others, and before Hopper there is none.
    let without = "GPU 0: 0\nGPU 1: 0\ncreate: 801\n";
    assert_eq!(run(&["--gpus", "2", "--node", "pcie"]), without);
    assert_eq!(run(&["--gpus", "2", "--node", "nvlink-mesh"]), without);
    assert_eq!(run(&["--gpus", "1"]), "GPU 0: 0\ncreate: 801\n");
}

#[test]
fn processes_have_an_object_in_common_and_leave_nothing_in_it() {
    let Some(folder) = build_with_driver(SOURCE) else {
        return;
    };
    for (mode, threads) in [("functional", "2"), ("timing", "1")] {
        let options = ["--gpus", "2", "--mode", mode, "--threads", threads];
        let said = folder.run_program(&options, &["./program", "processes"]);
        let mut lines: Vec<&str> = said.out.lines().collect();
        lines.sort_unstable();
        let expected = ["rank 0: 0 wrong", "rank 0: alone: 700", "rank 1: 0 wrong"];
        assert_eq!(lines, expected, "{said:?}");
    }
}
