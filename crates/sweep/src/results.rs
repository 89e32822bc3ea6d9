//! What a sweep leaves: the table of all points, a plot and the Pareto front.

use crate::file::Pareto;
use crate::plot::{self, Figure};
use crate::{Cell, Outcome, Sweep, SweepError, SweepFolder, Table, outcome, pareto, parquet};
use std::collections::BTreeMap;

/// What is drawn upwards unless the file says otherwise: the time in kernels.
const MEASURE: &str = "kernel_ns";

/// Writes table, plot and front from what is in the folder; the table, and sentences about what
/// could not be drawn.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &SweepFolder, sweep: &Sweep) -> Result<(Table, Vec<String>), SweepError> {
    let mut table = table(folder, sweep);
    let mut problems = Vec::new();
    if let Some(columns) = &sweep.pareto {
        match mark_front(&mut table, columns) {
            Ok((x, y)) => {
                let figure = Figure {
                    title: "Pareto front",
                    x: &x,
                    y: &y,
                    lines: &[],
                };
                let drawn = plot::svg(&table, &figure);
                match drawn {
                    Some(svg) => folder.replace("pareto.svg", svg.as_bytes())?,
                    None => problems.push("pareto.svg: no point has both numbers".into()),
                }
            }
            Err(problem) => problems.push(format!("[pareto]: {problem}")),
        }
    }
    match draw(&table, sweep) {
        Ok(svg) => folder.replace("sweep.svg", svg.as_bytes())?,
        Err(problem) => problems.push(format!("[plot]: {problem}")),
    }
    folder.replace("sweep.csv", &table.csv())?;
    folder.replace("sweep.parquet", &parquet::bytes(&table)?)?;
    Ok((table, problems))
}

/// A row a point; points that share a run have its results each.
fn table(folder: &SweepFolder, sweep: &Sweep) -> Table {
    let mut outcomes = BTreeMap::new();
    for point in sweep.runs() {
        let end = outcome(&folder.run(point), &folder.log(point));
        outcomes.insert(&point.id, end);
    }
    let mut table = Table::new(
        ["point", "gpu", "program", "arguments"]
            .map(String::from)
            .into(),
    );
    for point in &sweep.points {
        let mut row = vec![
            ("point".to_string(), Cell::Integer(point.number as i64)),
            ("gpu".into(), Cell::Text(point.run.gpu.clone())),
            ("program".into(), Cell::Text(point.run.file.clone())),
            (
                "arguments".into(),
                Cell::Text(point.run.arguments.join(" ")),
            ),
        ];
        row.extend(
            sweep
                .varied
                .iter()
                .cloned()
                .zip(point.varied.iter().cloned()),
        );
        let (state, reason, results) = match &outcomes[&point.id] {
            Outcome::Missing => ("missing", Cell::Absent, &[][..]),
            Outcome::Failed(reason) => ("failed", Cell::Text(reason.clone()), &[][..]),
            Outcome::Finished(results) => ("finished", Cell::Absent, &results[..]),
        };
        row.push(("state".into(), Cell::Text(state.into())));
        row.push(("reason".into(), reason));
        row.push(("run".into(), Cell::Text(point.id.clone())));
        row.extend(results.iter().cloned());
        table.push(row);
    }
    table
}

/// Adds a column that says which rows are on the front; the names of both columns.
fn mark_front(table: &mut Table, columns: &Pareto) -> Result<(String, String), String> {
    let less = columns.minimize.iter().map(|name| (name, 1.0));
    let more = columns.maximize.iter().map(|name| (name, -1.0));
    let mut wanted = Vec::new();
    for (name, sign) in less.chain(more) {
        wanted.push((place(table, name)?, sign, name.clone()));
    }
    let [(first, one, x), (second, other, y)] = &wanted[..] else {
        return Err("two columns in all".into());
    };
    let points: Vec<Option<(f64, f64)>> = table
        .rows
        .iter()
        .map(|row| Some((row[*first].number()? * one, row[*second].number()? * other)))
        .collect();
    let front = pareto::front(&points);
    let column = table.column("pareto");
    for (row, on) in table.rows.iter_mut().zip(front) {
        row[column] = Cell::Integer(i64::from(on));
    }
    Ok((x.clone(), y.clone()))
}

fn place(table: &Table, name: &str) -> Result<usize, String> {
    table.find(name).ok_or_else(|| {
        let nearest = lockstep_config::nearest(name, table.columns.iter().map(String::as_str));
        let nearest = nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
        format!("no column of the table is called `{name}`{nearest}")
    })
}

/// The plot: a line for each combination of what varies besides `x`.
fn draw(table: &Table, sweep: &Sweep) -> Result<String, String> {
    let first = sweep.varied.first().map_or("point", String::as_str);
    let x = sweep.plot.x.as_deref().unwrap_or(first);
    let y = sweep.plot.y.as_deref().unwrap_or(MEASURE);
    place(table, x)?;
    place(table, y)
        .map_err(|problem| format!("{problem}; nothing is finished yet, or it is misspelt"))?;
    // Keys that change together with `x` would make a line of every point.
    let lines: Vec<&str> = sweep
        .varied
        .iter()
        .map(String::as_str)
        .filter(|key| *key != x && !follows(table, x, key))
        .collect();
    let figure = Figure {
        title: "Sweep",
        x,
        y,
        lines: &lines,
    };
    plot::svg(table, &figure).ok_or_else(|| format!("no point has numbers for `{x}` and `{y}`"))
}

/// Whether a column has one value for each value of `x`.
fn follows(table: &Table, x: &str, key: &str) -> bool {
    let (Some(x), Some(key)) = (table.find(x), table.find(key)) else {
        return false;
    };
    let mut seen = BTreeMap::new();
    table.rows.iter().all(|row| {
        let value = row[key].to_string();
        *seen
            .entry(row[x].to_string())
            .or_insert_with(|| value.clone())
            == value
    })
}
