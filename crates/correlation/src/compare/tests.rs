//! Whole reports from small tables, with figures done by hand.

use super::*;
use crate::hardware::Measurements;
use crate::simulated::SimulatedLaunch;
use crate::{plot, text};

const SETS: &str = r#"
    [[family]]
    name = "sums"
    set = "calibration"
    programs = ["first"]
    [[family]]
    name = "graphs"
    set = "development"
    programs = ["second"]
    [[family]]
    name = "races"
    set = "untimed"
    because = "chance"
    programs = ["race"]
"#;

/// `first` has two kernels, one of them launched twice; `second` one large kernel.
const COLD: &str = "program,size,launch,kernel,grid,block,registers,shared,cycles,inst_executed,thread_inst_executed,warps_launched\n\
first,default,0,\"void a<int>(int *)\",\"(1, 1, 1)\",\"(32, 1, 1)\",16,0,1000 1010 990 1000 1000,10 10 10 10 10,320 320 320 320 320,1 1 1 1 1\n\
first,default,1,b(int),\"(1, 1, 1)\",\"(32, 1, 1)\",16,0,2000 2000 2000 2000 2000,20 20 20 20 20,640 640 640 640 640,1 1 1 1 1\n\
first,default,2,\"void a<int>(int *)\",\"(1, 1, 1)\",\"(32, 1, 1)\",16,0,1000 1000 1000 1000 1000,10 10 11 10 10,320 320 320 320 320,1 1 1 1 1\n\
second,default,0,c,\"(1, 1, 1)\",\"(32, 1, 1)\",16,0,30000 30000 30000 30000 30000,30 30 30 30 30,960 960 960 960 960,1 1 1 1 1\n\
race,default,0,d,\"(1, 1, 1)\",\"(32, 1, 1)\",16,0,500 900 700 600 800,5 9 7 6 8,160 160 160 160 160,1 1 1 1 1\n";

fn hardware() -> Hardware {
    Hardware {
        cold: Measurements::parse(COLD).expect("table"),
        ..Hardware::default()
    }
}

fn case(program: &str) -> Case {
    Case {
        program: program.into(),
        size: "default".into(),
    }
}

fn run(launches: &[(&str, f64, f64)]) -> ProgramRun {
    ProgramRun {
        launches: launches
            .iter()
            .map(|(kernel, cycles, instructions)| SimulatedLaunch {
                kernel: (*kernel).into(),
                counters: [
                    ("cycles", *cycles),
                    ("inst_executed", *instructions),
                    ("thread_inst_executed", instructions * 32.0),
                    ("warps_launched", 1.0),
                ]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            })
            .collect(),
        ..ProgramRun::default()
    }
}

fn runs() -> BTreeMap<Case, ProgramRun> {
    [
        (
            "first",
            run(&[("a", 1100.0, 10.0), ("b", 1800.0, 20.0), ("a", 900.0, 10.0)]),
        ),
        ("second", run(&[("c", 33_000.0, 31.0)])),
        ("race", run(&[("d", 5000.0, 7.0)])),
    ]
    .map(|(name, run)| (case(name), run))
    .into()
}

fn report(runs: &BTreeMap<Case, ProgramRun>) -> Report {
    compare("h200", &Sets::parse(SETS).expect("sets"), &hardware(), runs)
}

fn close(got: f64, wanted: f64) {
    assert!((got - wanted).abs() < 1e-9, "{got} is not {wanted}");
}

#[test]
fn figures_of_a_report_are_those_done_by_hand() {
    let report = report(&runs());
    // Kernel a: launches sum to 2000 on both sides; b: 200 off of 2000. Together 200 of 4000.
    close(report.programs[0].error(|_| true).expect("error"), 0.05);
    // c: 3000 off of 30000.
    close(report.programs[1].error(|_| true).expect("error"), 0.1);
    let all = report.headline(&Set::ALL, |_| true).expect("headline");
    close(all.errors.mean, 0.075);
    close(all.errors.maximum, 0.1);
    // 3200 of 34000 cycles.
    close(all.errors.time_weighted, 3200.0 / 34_000.0);
    // Kernels: a 0, b |ln 0.9|, c |ln 1.1|.
    close(
        all.log_error,
        ((0.9f64.ln().abs() + 1.1f64.ln()) / 3.0).exp() - 1.0,
    );
    // The race is counted nowhere.
    assert_eq!(all.errors.count, 2);
    let large = report
        .headline(&Set::ALL, |kernel| !kernel.is_small())
        .expect("headline");
    assert_eq!(large.errors.count, 1);
    assert_eq!(report.small_kernels(&Set::ALL), (2, 2));
}

#[test]
fn counts_are_compared_where_hardware_repeats() {
    let report = report(&runs());
    // The third launch of `first` and the race do not repeat; `second` executes 31 instead of 30.
    let exact = report.exact();
    assert_eq!((exact.launches, exact.repeating, exact.equal), (5, 3, 2));
    assert_eq!(
        exact.first_difference.as_deref(),
        Some("second/default: launch 0 c inst_executed: hardware 30, simulated 31")
    );
}

#[test]
fn one_program_that_fails_voids_the_headline() {
    let failures = [
        Failure::Crashed("signal 11".into()),
        Failure::Hung(60),
        Failure::Wrong("FAIL second 3 wrong".into()),
        Failure::NotBuilt,
    ];
    for failure in failures {
        let mut runs = runs();
        runs.get_mut(&case("second")).expect("run").failure = Some(failure.clone());
        let report = report(&runs);
        assert_eq!(report.headline(&Set::ALL, |_| true), None);
        // Not even for the set that the other program is in.
        assert_eq!(report.headline(&[Set::Calibration], |_| true), None);
        let text = text::text(&report);
        assert!(
            text.contains("no headline: 1 of 3 programs cannot be compared"),
            "{text}"
        );
        assert!(text.contains(&failure.to_string()), "{text}");
        assert!(!text.contains("\nheadline:"), "{text}");
        assert!(
            text.contains("cycles                 no figure while"),
            "{text}"
        );
    }
}

#[test]
fn other_launches_than_hardwares_are_a_failure() {
    for launches in [
        &[("a", 1.0, 1.0), ("b", 1.0, 1.0)][..],
        &[("a", 1.0, 1.0), ("x", 1.0, 1.0), ("a", 1.0, 1.0)][..],
    ] {
        let mut runs = runs();
        runs.insert(case("first"), run(launches));
        let report = report(&runs);
        assert_eq!(report.failures().len(), 1);
        assert!(report.headline(&Set::ALL, |_| true).is_none());
    }
    // A program that hardware never ran cannot be compared either.
    let mut runs = runs();
    let unmeasured = Case {
        size: "medium".into(),
        ..case("first")
    };
    runs.insert(unmeasured, run(&[("a", 1.0, 1.0)]));
    assert_eq!(report(&runs).failures().len(), 1);
}

#[test]
fn text_names_the_worst_kernels_and_every_figure() {
    let mut runs = runs();
    runs.insert(case("second"), run(&[("c", 90_000.0, 30.0)]));
    let text = text::text(&report(&runs));
    for wanted in [
        "headline: 102.5 % mean error of 2 programs",
        "median 102.5 %, 90th percentile 200.0 %, maximum 200.0 %",
        "R² of logarithms",
        "200.0 %  second/default c: 30,000 cycles on hardware, 90,000 simulated; traffic is not counted",
        "kernels below that: 2 of 2 within 10 % or 400 cycles",
        "dram_bytes_read        not known on both sides",
    ] {
        assert!(text.contains(wanted), "`{wanted}` is not in\n{text}");
    }
}

#[test]
fn the_plot_has_a_mark_for_every_timed_kernel() {
    let plot = plot::svg(&report(&runs()));
    assert_eq!(plot.matches("measured, ").count(), 3, "{plot}");
    assert!(plot.starts_with("<svg") && plot.trim_end().ends_with("</svg>"));
    assert!(!plot.contains("NaN") && !plot.contains("inf"));
}
