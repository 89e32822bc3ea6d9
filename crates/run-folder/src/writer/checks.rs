//! What checks found: `checks.csv`, a row for each instruction of a kernel that did something wrong.

use std::fmt::Write;

/// One thing that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckRow {
    /// The check: `outside` without one, `memory`, `initialised`, `race`, `barriers` or `leaks`.
    pub check: &'static str,
    /// Mangled name of the kernel.
    pub kernel: String,
    /// The first launch in which it happened.
    pub launch: Option<u64>,
    /// The first block, of that launch.
    pub block: Option<[u32; 3]>,
    /// The first thread.
    pub thread: Option<[u32; 3]>,
    /// Index of the instruction.
    pub instruction: Option<u32>,
    /// Its text.
    pub text: String,
    /// `file:line` of the source.
    pub line: String,
    /// What was wrong the first time.
    pub what: String,
    /// Threads that did so, each time.
    pub count: u64,
}

/// The table.
pub(super) fn table(rows: &[CheckRow]) -> String {
    let mut text =
        "check,kernel,launch,block,thread,instruction,text,line,what,count\n".to_string();
    for row in rows {
        let number = |number: Option<u64>| number.map_or_else(String::new, |n| n.to_string());
        let index = |index: Option<[u32; 3]>| {
            index.map_or_else(String::new, |[x, y, z]| format!("{x} {y} {z}"))
        };
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{}",
            row.check,
            quoted(&row.kernel),
            number(row.launch),
            index(row.block),
            index(row.thread),
            number(row.instruction.map(u64::from)),
            quoted(&row.text),
            quoted(&row.line),
            quoted(&row.what),
            row.count
        );
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_where_and_what() {
        let row = CheckRow {
            check: "race",
            kernel: "k".into(),
            launch: Some(2),
            block: Some([1, 0, 0]),
            thread: Some([33, 0, 0]),
            instruction: Some(7),
            text: "LDS R0, [R1]".into(),
            line: "a.cu:3".into(),
            what: "a \"hazard\"".into(),
            count: 64,
        };
        let text = table(&[row]);
        let line = text.lines().nth(1).unwrap();
        assert_eq!(
            line,
            "race,k,2,1 0 0,33 0 0,7,\"LDS R0, [R1]\",a.cu:3,\"a \"\"hazard\"\"\",64"
        );
    }
}
