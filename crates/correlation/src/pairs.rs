//! The protocol's figures of any list of pairs, for scripts that compare something else than
//! launches of the workloads: text in, JSON out.

use crate::figures::{self, Repeated, Summary};
use serde::Serialize;

/// One thing as simulation and hardware have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What the caller calls it.
    pub name: String,
    /// The simulated value.
    pub simulated: f64,
    /// The median of the hardware's repetitions.
    pub hardware: f64,
    /// The least of them.
    pub least: f64,
    /// The largest of them.
    pub most: f64,
    /// Whether every repetition said the same.
    pub repeats: bool,
    /// Whether the simulated value lies inside the hardware's spread.
    pub inside: bool,
    /// The distance from hardware over the hardware's median; 0 inside the spread. Absent when
    /// hardware says 0 and the simulator does not.
    pub error: Option<f64>,
}

/// All of them, and the figures over them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// One for each line of the input, in its order.
    pub rows: Vec<Row>,
    /// The distribution of the errors, weighted by the hardware's values where it says so.
    pub errors: Option<Summary>,
    /// exp(mean |ln(sim/hw)|) − 1.
    pub log_error: Option<f64>,
    /// R² in log space.
    pub log_r_squared: Option<f64>,
}

/// From lines `name,simulated,hardware` under a head of these names; a cell of hardware holds one
/// value for each repetition, separated by blanks.
pub fn figures(text: &str) -> Result<Figures, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().map_err(|error| error.to_string())?;
    if head.iter().ne(["name", "simulated", "hardware"]) {
        return Err(format!(
            "line 1: columns are {}, and should be name, simulated, hardware",
            head.iter().collect::<Vec<_>>().join(", ")
        ));
    }
    let (mut rows, mut logs) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let number = |text: &str| {
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
            value.ok_or_else(|| format!("line {line}: `{text}` is not a number"))
        };
        let simulated = number(&record[1])?;
        let values = record[2]
            .split_whitespace()
            .map(number)
            .collect::<Result<_, _>>()?;
        let hardware = Repeated::new(values)
            .ok_or_else(|| format!("line {line}: hardware has no value of `{}`", &record[0]))?;
        logs.push(figures::log_distance(simulated, &hardware));
        rows.push(row(&record[0], simulated, &hardware));
    }
    let errors: Vec<f64> = rows.iter().filter_map(|row| row.error).collect();
    let times: Vec<f64> = rows.iter().map(|row| row.hardware).collect();
    let points: Vec<(f64, f64)> = rows
        .iter()
        .map(|row| (row.simulated, row.hardware))
        .collect();
    // A row without an error would make a figure over the survivors.
    let complete = errors.len() == rows.len();
    Ok(Figures {
        errors: complete.then(|| Summary::of(&errors, &times)).flatten(),
        log_error: figures::log_error(&logs).filter(|error| error.is_finite()),
        log_r_squared: figures::log_r_squared(&points),
        rows,
    })
}

fn row(name: &str, simulated: f64, hardware: &Repeated) -> Row {
    let inside = figures::distance(simulated, hardware) == 0.0;
    Row {
        name: name.into(),
        simulated,
        hardware: hardware.median(),
        least: hardware.least(),
        most: hardware.most(),
        repeats: hardware.repeats(),
        inside,
        error: match inside {
            true => Some(0.0),
            false => figures::program_error([(simulated, hardware)]),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_pairs_gives_the_protocols_figures() {
        let found = figures("name,simulated,hardware\na,150,100\nb,95,90 100 120\nc,0,0 0\n")
            .expect("figures");
        let [a, b, c] = found.rows.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((a.error, a.repeats, a.inside), (Some(0.5), true, false));
        assert_eq!((b.error, b.repeats, b.inside), (Some(0.0), false, true));
        assert_eq!((b.hardware, b.least, b.most), (100.0, 90.0, 120.0));
        assert_eq!((c.error, c.inside), (Some(0.0), true));
        let errors = found.errors.expect("summary");
        assert_eq!((errors.count, errors.maximum), (3, 0.5));
        assert_eq!(errors.time_weighted, 0.25);
    }

    #[test]
    fn what_has_no_relative_error_leaves_no_figure_over_the_rest() {
        let found = figures("name,simulated,hardware\na,150,100\nb,1,0\n").expect("figures");
        assert_eq!(found.rows[1].error, None);
        assert_eq!((found.errors, found.log_error), (None, None));
    }

    #[test]
    fn bad_input_is_refused_with_its_line() {
        let refused = |text: &str| figures(text).expect_err("refused");
        assert!(refused("a,b\n").contains("should be name, simulated, hardware"));
        let head = "name,simulated,hardware\n";
        assert_eq!(
            refused(&format!("{head}a,1,2\nb,x,2\n")),
            "line 3: `x` is not a number"
        );
        assert_eq!(
            refused(&format!("{head}a,1,\n")),
            "line 2: hardware has no value of `a`"
        );
        assert!(refused(&format!("{head}a,1,2 inf\n")).contains("`inf`"));
    }
}
