//! Instruction counts alone: a row for each program whose launches were compared one to one.

use crate::compare::{ProgramComparison, Report};
use crate::figures::Repeated;
use crate::hardware::{Case, Hardware};
use std::io;

/// Whether a program verified itself and every repeating launch has the hardware's counts.
pub fn agrees(program: &ProgramComparison) -> bool {
    program.failure.is_none() && program.exact.equal == program.exact.repeating
}

/// The table: a row for each program and size.
pub fn csv(report: &Report) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "program",
        "size",
        "verified",
        "launches",
        "repeating",
        "equal",
        "first_difference",
    ])?;
    for program in &report.programs {
        let exact = &program.exact;
        writer.write_record([
            program.case.program.clone(),
            program.case.size.clone(),
            program.failure.is_none().to_string(),
            exact.launches.to_string(),
            exact.repeating.to_string(),
            exact.equal.to_string(),
            difference(program),
        ])?;
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}

/// The same as lines of text, with a total.
pub fn text(report: &Report) -> String {
    let mut lines: Vec<String> = Vec::new();
    for program in &report.programs {
        let exact = &program.exact;
        let line = format!(
            "{} {} {}: {} of {} equal ({} launches) {}",
            if agrees(program) { "ok  " } else { "BAD " },
            program.case.program,
            program.case.size,
            exact.equal,
            exact.repeating,
            exact.launches,
            difference(program)
        );
        lines.push(line.trim_end().to_owned());
    }
    let bad = report.programs.iter().filter(|one| !agrees(one)).count();
    lines.push(format!("{bad} programs differ"));
    lines.join("\n") + "\n"
}

fn difference(program: &ProgramComparison) -> String {
    let failure = program.failure.as_ref().map(ToString::to_string);
    failure
        .or_else(|| program.exact.first_difference.clone())
        .unwrap_or_default()
}

/// The counts that a launch must have: `program, size, launch, counter, value`, for every counter
/// of every launch that repeats on hardware.
pub fn repeating(hardware: &Hardware) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["program", "size", "launch", "counter", "value"])?;
    for (case, launches) in &hardware.cold.launches {
        for (number, launch) in launches {
            for counter in crate::counters::EXACT {
                if let Some(value) = repeated(
                    hardware,
                    case,
                    *number,
                    launch.counters.get(*counter),
                    counter,
                ) {
                    let (number, value) = (number.to_string(), value.to_string());
                    writer.write_record([&case.program, &case.size, &number, *counter, &value])?;
                }
            }
        }
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}

fn repeated(
    hardware: &Hardware,
    case: &Case,
    launch: u64,
    values: Option<&Repeated>,
    counter: &str,
) -> Option<f64> {
    hardware
        .repeats(case, launch, counter)
        .then(|| values.map(Repeated::median))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ExactCounts;
    use crate::{Failure, Measurements, Set};

    fn program(name: &str, equal: usize, failure: Option<Failure>) -> ProgramComparison {
        ProgramComparison {
            case: Case {
                program: name.into(),
                size: "default".into(),
            },
            set: Set::Development,
            failure,
            kernels: Vec::new(),
            exact: ExactCounts {
                repeating: 3,
                equal,
                launches: 4,
                first_difference: (equal < 3).then(|| "launch 1 add: other".into()),
            },
            seconds: 0.0,
        }
    }

    #[test]
    fn a_program_agrees_if_it_verified_and_no_count_differs() {
        let report = Report {
            state: crate::State::Cold,
            gpu: "h200".into(),
            programs: vec![
                program("good", 3, None),
                program("other", 2, None),
                program("wrong", 3, Some(Failure::Wrong("FAIL wrong".into()))),
            ],
        };
        assert_eq!(
            text(&report),
            "ok   good default: 3 of 3 equal (4 launches)\n\
             BAD  other default: 2 of 3 equal (4 launches) launch 1 add: other\n\
             BAD  wrong default: 3 of 3 equal (4 launches) computed wrongly: FAIL wrong\n\
             2 programs differ\n"
        );
        let table = String::from_utf8(csv(&report).expect("table")).expect("text");
        assert!(table.contains("\nother,default,true,4,3,2,launch 1 add: other\n"));
        assert!(table.contains("\nwrong,default,false,4,3,3,computed wrongly: FAIL wrong\n"));
    }

    #[test]
    fn only_counts_that_five_repetitions_agree_on_are_listed() {
        let head =
            "program,size,launch,kernel,grid,block,registers,shared,inst_executed,warps_launched\n";
        let row = "add,default,0,add,\"(1, 1, 1)\",\"(32, 1, 1)\",16,0,64 64 64 64 64,1 1 2 1 1\n";
        let hardware = Hardware {
            cold: Measurements::parse(&format!("{head}{row}")).expect("table"),
            ..Hardware::default()
        };
        let table = String::from_utf8(repeating(&hardware).expect("table")).expect("text");
        assert_eq!(
            table,
            "program,size,launch,counter,value\nadd,default,0,inst_executed,64\n"
        );
    }
}
