//! Counters over simulated time, and counts by instruction: what they say, and that asking changes no answer.

mod support;

use support::{Folder, SCALE, scale_run};

/// Runs a kernel of some blocks with more options; the digest.
fn run(folder: &Folder, out: &str, more: &[&str]) -> String {
    let said = folder.run(&scale_run(folder, out, more));
    assert_eq!(said.code, Some(0), "{said:?}");
    let summary = std::fs::read_to_string(folder.0.join(out).join("summary.json")).unwrap();
    let digest = summary.lines().find(|line| line.contains("\"digest\":"));
    digest.unwrap().to_string()
}

fn column(head: &str, name: &str) -> usize {
    let place = head.split(',').position(|column| column == name);
    place.unwrap_or_else(|| panic!("{name} is not in {head}"))
}

#[test]
fn a_series_is_the_same_for_any_threads_and_changes_no_digest() {
    let folder = Folder::new();
    let plain = run(&folder, "plain", &["--threads", "1"]);
    let mut all = Vec::new();
    for threads in ["1", "4"] {
        let options = ["--threads", threads, "--series", "200 cycles", "--lines"];
        let digest = run(&folder, threads, &options);
        assert_eq!(digest, plain, "{threads} threads");
        let read = |name: &str| std::fs::read(folder.0.join(threads).join(name)).unwrap();
        all.push((read("series.blocks"), read("lines.csv")));
    }
    assert!(all[0].0 == all[1].0, "the bytes of the series differ");
    assert_eq!(all[0].1, all[1].1);
    assert!(!folder.0.join("plain/series.blocks").exists());
}

#[test]
fn sums_of_a_series_are_the_counters_of_the_launches() {
    let folder = Folder::new();
    run(&folder, "out", &["--series", "200"]);
    let export = |table: &str| {
        let said = folder.run(&["export", "out", "--table", table, "--to", "csv"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        said.out
    };
    let (series, launches) = (export("series"), export("launches"));
    for (counter, part) in [
        ("inst_executed", "sm"),
        ("inst_executed", "gpu"),
        ("warp_cycles", "sm"),
        ("active_cycles", "gpu"),
        ("l1_sectors", "sm"),
        ("stalled_long_scoreboard", "sm"),
        ("l2_sectors_of_sms", "slice"),
        ("dram_bytes_read", "slice"),
    ] {
        let sum = |text: &str, part: Option<&str>| -> u64 {
            let mut lines = text.lines();
            let head = lines.next().unwrap();
            let (place, of) = (column(head, counter), part.map(|_| column(head, "part")));
            lines
                .map(|line| line.split(',').collect::<Vec<_>>())
                .filter(|cells| of.is_none_or(|of| Some(cells[of]) == part))
                .map(|cells| cells[place].parse::<u64>().unwrap_or(0))
                .sum()
        };
        let (sampled, counted) = (sum(&series, Some(part)), sum(&launches, None));
        assert_eq!(sampled, counted, "{counter} of {part}");
        assert!(counter == "dram_bytes_read" || counted > 0, "{counter}");
    }
    let head = series.lines().next().unwrap();
    let launch = column(head, "launch");
    let known = series
        .lines()
        .skip(1)
        .filter(|line| !line.split(',').nth(launch).unwrap().is_empty());
    assert!(known.count() > 10, "{series}");
}

#[test]
fn hottest_instructions_stand_beside_their_text() {
    let folder = Folder::new();
    run(&folder, "out", &["--lines"]);
    let said = folder.run(&["report", "out"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("Hottest instructions"), "{said:?}");
    assert!(
        said.out.contains("ld.global.f32") && said.out.contains("long scoreboard"),
        "{said:?}"
    );
    let page = folder.run(&["report", "out", "--format", "html"]);
    assert!(page.out.contains("ld.global.f32"), "{page:?}");
    // What was issued is what the launches counted.
    let text = std::fs::read_to_string(folder.0.join("out/lines.csv")).unwrap();
    let issued = column(text.lines().next().unwrap(), "issued");
    assert!(issued > 0 && text.lines().count() > 10, "{text}");
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let folder = Folder::new();
    std::fs::write(folder.0.join("scale.ptx"), SCALE).unwrap();
    for (words, sentence) in [
        ("--series often", "no interval"),
        ("--series 0", "no interval"),
        ("--series 1000 --mode functional", "need time"),
        ("--lines --mode functional", "need time"),
    ] {
        let mut all = vec!["kernel", "scale.ptx", "--out", "out"];
        all.extend(words.split_whitespace());
        let said = folder.run(&all);
        assert_eq!(said.code, Some(2), "{words}: {said:?}");
        assert!(said.err.contains(sentence), "{words}: {said:?}");
    }
    let said = folder.run(&["export", "nowhere", "--table", "series", "--to", "csv"]);
    assert_eq!(said.code, Some(2), "{said:?}");
}
