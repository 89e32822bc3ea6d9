//! What the task makes of runs that went well and of runs that did not.

use super::*;

const OUT: &str = "client x 1.0\n1 add: ok\n2 sort: ok\n2 of 2 checks passed, 0 lacking\n";

fn client(lacks: Option<(&str, &str)>) -> Client {
    Client {
        name: "x".into(),
        script: "x.py".into(),
        checks: 2,
        packages: vec!["x==1.0".into()],
        environment: None,
        alone: false,
        lacks: lacks.map(|(why, says)| table::Lacks {
            why: why.into(),
            says: says.into(),
        }),
    }
}

fn judged(client: &Client, out: &str, err: &str, code: i32) -> Row {
    let output = process::Output {
        code: Some(code),
        out: out.into(),
        err: err.into(),
        processor: Duration::ZERO,
    };
    judge(client, true, verdict::read(out), &output, 1.25)
}

#[test]
fn a_client_whose_checks_all_pass_has_no_problem() {
    let row = judged(&client(None), OUT, "", 0);
    assert_eq!((row.checks, row.passed), (2, 2));
    assert!(row.problems.is_empty());
    let text = shown(&[row]);
    assert!(
        text.contains("x                         1.0       2       2       0      1.2"),
        "{text}"
    );
}

#[test]
fn failures_fewer_checks_deaths_and_bad_ends_are_problems() {
    let problem = |out: &str, code| {
        judged(&client(None), out, "why it died", code)
            .problems
            .join("; ")
    };
    let failed = OUT
        .replace("2 sort: ok", "2 sort: FAILED wrong")
        .replace("2 of", "1 of");
    assert_eq!(problem(&failed, 1), "sort: wrong");
    let fewer = OUT.replace("2 sort: ok\n", "").replace("2 of 2", "1 of 1");
    assert_eq!(problem(&fewer, 0), "1 checks ran, clients.toml says 2");
    assert!(problem("client x 1.0\n", 134).contains("why it died"));
    assert!(problem(OUT, 101).contains("the run ended with 101"));
}

#[test]
fn a_check_that_lacks_something_is_named_and_no_problem() {
    let lacking = OUT
        .replace("2 sort: ok", "2 sort: lacks a lock")
        .replace("2 of 2 checks passed, 0", "1 of 2 checks passed, 1");
    let row = judged(&client(None), &lacking, "", 0);
    assert!(row.problems.is_empty());
    assert!(shown(&[row]).contains("x lacks: sort: a lock"));
}

#[test]
fn a_client_that_lacks_something_must_still_fail_with_its_words() {
    let lacking = client(Some(("it wants a library.", "no library")));
    let row = judged(&lacking, "", "there is no library here", 1);
    assert!(row.problems.is_empty());
    assert_eq!(row.lacking, ["it wants a library."]);
    assert_eq!(judged(&lacking, "", "something else", 1).problems.len(), 1);
    assert_eq!(judged(&lacking, OUT, "no library", 0).problems.len(), 1);
}
