//! What reports say of run folders, whole and broken.

mod common;

use common::{Folder, launch};
use lockstep_report::{report, report_page};

const MANGLED: &str = "_Z10vector_addPKfS0_Pfi";

#[test]
fn the_longest_kernel_comes_first_and_its_limit_is_named() {
    // 34 MB in 20,000 cycles of 1.98 GHz: four fifths of what DRAM takes.
    let rows = [
        launch(0, MANGLED, 20_000, 34_000_000),
        launch(1, "short", 10_000, 0),
        launch(2, MANGLED, 20_000, 34_000_000),
    ];
    let folder = Folder::simulated("longest", &rows);
    let runs = [folder.read().unwrap()];
    let report = report(&runs);
    let [first, second] = &report.runs[0].kernels[..] else {
        panic!("two kernels");
    };
    assert_eq!((first.name.as_str(), first.launches), ("vector_add", 2));
    assert!((first.time_share.unwrap() - 0.8).abs() < 1e-6);
    assert_eq!(first.counters["cycles"], 40_000);
    assert_eq!(first.bounds[0].resource, "DRAM bandwidth");
    let busy = first.bounds[0].share;
    assert!((0.78..0.80).contains(&busy), "{busy}");

    // The gain is what the largest bound has over the next.
    let advice = first
        .advice
        .iter()
        .find(|one| one.limit == "DRAM bandwidth");
    let next = first.bounds[1].share;
    let gain = advice.unwrap().speed_up.unwrap();
    assert!((gain - 1.0 / (1.0 - busy + next)).abs() < 1e-9, "{gain}");

    // 64 registers a thread let an SM hold four blocks of 256 threads, half its warps.
    let occupancy = first.occupancy.as_ref().unwrap();
    assert_eq!((occupancy.blocks_per_sm, occupancy.theoretical), (4, 0.5));
    assert_eq!(occupancy.bounded_by, ["registers"]);
    assert_eq!(occupancy.achieved, Some(0.5));
    assert_eq!(first.stalls[0].name, "long_scoreboard");
    assert!(
        second
            .advice
            .iter()
            .any(|one| one.limit == "occupancy, by registers")
    );

    // The busiest of three links was busy 2 us of the 25 us of kernels.
    let link = &report.runs[0].memory.as_ref().unwrap().links[0];
    assert_eq!(
        (link.name.as_str(), link.links, link.bytes),
        ("reply of slice", 3, 3000)
    );
    assert!((link.busiest.unwrap() - 2.0 / 25.2525).abs() < 1e-4);

    let text = report_page(&report, &runs).text();
    assert!(
        text.contains("vector_add(float const*, float const*, float*, int)"),
        "{text}"
    );
    assert!(text.contains("DRAM bandwidth: in use 7"), "{text}");
}

#[test]
fn atomics_that_fill_l2_are_named() {
    let mut row = launch(0, "count", 20_000, 0);
    row.counters.as_mut().unwrap().values.strong_accesses = 30_000;
    let folder = Folder::simulated("atomics", &[row]);
    let report = report(&[folder.read().unwrap()]);
    let mut advice = report.runs[0].kernels[0].advice.iter();
    let found = advice.find(|one| one.limit == "atomics").unwrap();
    assert!(
        found
            .sentence
            .starts_with("75 % of what SMs ask of L2 are atomics"),
        "{found:?}"
    );
}

#[test]
fn functional_runs_have_instructions_and_no_time() {
    let mut row = launch(0, "plain", 100, 0);
    row.duration_ns = None;
    row.start_ns = None;
    row.counters.as_mut().unwrap().timed = false;
    let folder = Folder::simulated("functional", &[row]);
    let runs = [folder.read().unwrap()];
    let report = report(&runs);
    let kernel = &report.runs[0].kernels[0];
    assert_eq!(kernel.time_ns, None);
    assert_eq!(kernel.counters["inst_executed"], 100_000);
    assert!(kernel.advice.is_empty() && kernel.bounds.is_empty());
    assert!(report_page(&report, &runs).text().contains("integer 50 %"));
}

#[test]
fn a_page_of_many_launches_is_small_needs_nothing_and_runs_nothing() {
    let name = "evil<script>alert(1)</script>\"onload='x'&amp;";
    let rows: Vec<_> = (0..1400)
        .map(|number| launch(number, name, 5000, 0))
        .collect();
    let folder = Folder::simulated("page", &rows);
    let runs = [folder.read().unwrap(), folder.read().unwrap()];
    let page = report_page(&report(&runs), &runs).html();
    assert!(page.len() < 5 << 20, "{} bytes", page.len());
    assert!(!page.contains("<script"), "markup in a name is text");
    assert!(!page.contains("\"onload"), "a quote ends no attribute");
    for outside in ["http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("evil&lt;script&gt;"));
}

#[test]
fn a_killed_run_leaves_a_folder_that_can_be_read() {
    let folder = Folder::new("killed");
    folder.write(
        "summary.json",
        r#"{"lockstep": "0.1.0", "state": "failed", "command": ["./p"], "gpu": "h200", "mode": "timing",
            "ending": {"problems": ["the simulator was killed"]}, "totals": {"kernels": 3, "kernel": "_Z4workPf"}}"#,
    );
    let said = || {
        let runs = [folder.read().unwrap()];
        let text = report_page(&report(&runs), &runs).text();
        // Lines are broken where a terminal ends.
        text.replace("\n  ", " ")
    };
    let text = said();
    for words in [
        "The run failed.",
        "the simulator was killed",
        "3 kernels had begun, at last work",
        "nothing more to say",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for table in ["kernels.csv", "stats.csv", "copies.csv", "lines.csv"] {
        folder.write(table, "");
    }
    assert_eq!(said(), text, "tables that have not even a head are missing");
    let runs = [folder.read().unwrap()];
    let refused = runs[0].require_launches("export").unwrap_err();
    assert!(
        refused.to_string().contains("no launches to export"),
        "{refused}"
    );
}

#[test]
fn broken_folders_are_told_in_a_sentence() {
    let folder = Folder::new("broken");
    assert!(folder.read().unwrap_err().starts_with("DIR: No such file"));
    std::fs::create_dir_all(&folder.0).unwrap();
    assert!(
        folder
            .read()
            .unwrap_err()
            .starts_with("DIR: no run left this folder")
    );
    folder.write("summary.json", "{\"a\": 1}");
    assert!(
        folder
            .read()
            .unwrap_err()
            .contains("not the summary of a run")
    );
    folder.write("summary.json", "not json");
    assert!(
        folder
            .read()
            .unwrap_err()
            .contains("DIR/summary.json: not JSON")
    );
    std::fs::remove_file(folder.0.join("summary.json")).unwrap();
    folder.write("kernels.csv", "name,age\nx,1\n");
    let said = folder.read().unwrap_err();
    assert!(
        said.contains("not a table of launches: it begins with `name,age`"),
        "{said}"
    );
    std::fs::remove_file(folder.0.join("kernels.csv")).unwrap();
    std::fs::create_dir(folder.0.join("kernels.csv")).unwrap();
    assert!(folder.read().unwrap_err().contains("not a plain file"));
}

#[test]
fn torn_lines_are_left_out_and_said() {
    let rows = [launch(0, "whole", 100, 0), launch(1, "torn", 100, 0)];
    let folder = Folder::simulated("torn", &rows);
    let text = folder.text("kernels.csv");
    folder.write("kernels.csv", &text[..text.len() - 60]);
    let run = folder.read().unwrap();
    assert_eq!(run.launches.len(), 1);
    assert!(
        run.notes[0].starts_with("kernels.csv: line 3 has"),
        "{:?}",
        run.notes
    );
    folder.write("kernels.csv", text.replace("2000x2x1", "2000x2"));
    let run = folder.read().unwrap();
    assert!(run.launches.is_empty());
    assert!(
        run.notes[0].contains("has `2000x2` as its grid"),
        "{:?}",
        run.notes
    );
    folder.write(
        "stats.csv",
        "component,statistic,value\ngpu 0,a,1\ngpu 0,b\n",
    );
    assert!(
        folder
            .read()
            .unwrap()
            .notes
            .iter()
            .any(|note| note.contains("1 lines cannot be read"))
    );
}

#[test]
fn files_cut_or_changed_anywhere_never_panic() {
    let folder = Folder::simulated("cut", &[launch(0, MANGLED, 100, 10), launch(1, "b", 0, 0)]);
    for name in ["kernels.csv", "stats.csv", "summary.json"] {
        let whole = folder.text(name).into_bytes();
        for place in (0..whole.len()).step_by(whole.len() / 60 + 1) {
            let mut changed = whole.clone();
            changed[place] = changed[place].wrapping_mul(31) ^ 0x95;
            for bytes in [&whole[..place], &changed[..]] {
                folder.write(name, bytes);
                if let Ok(run) = folder.read() {
                    let runs = [run.clone(), run];
                    let page = report_page(&report(&runs), &runs);
                    assert!(!page.html().is_empty() && !page.markdown().is_empty());
                }
            }
        }
        folder.write(name, &whole);
    }
}
