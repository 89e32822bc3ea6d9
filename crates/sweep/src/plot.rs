//! A plot of two columns as an SVG document: lines by what else varies, points with their words.

use crate::{Cell, Table};
use lockstep_correlation::plot::escape;
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 240.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 80.0;

/// Colours that colour-blind readers can tell apart (Okabe and Ito).
const COLOURS: &[&str] = &[
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000",
];

/// Lines that a reader can tell apart; what is beyond is drawn without a name.
const NAMED_LINES: usize = 20;

/// What is drawn.
pub(crate) struct Figure<'sweep> {
    /// Above it.
    pub title: &'sweep str,
    /// Column along.
    pub x: &'sweep str,
    /// Column upwards.
    pub y: &'sweep str,
    /// Columns that make lines; without any, points are alone.
    pub lines: &'sweep [&'sweep str],
}

/// The document; nothing if no row has both.
pub(crate) fn svg(table: &Table, figure: &Figure<'_>) -> Option<String> {
    let (x, y) = (table.find(figure.x)?, table.find(figure.y)?);
    let along = Scale::of(
        table
            .rows
            .iter()
            .filter(|row| row[y].number().is_some())
            .map(|row| &row[x]),
    );
    let upwards = Scale::of(table.rows.iter().map(|row| &row[y]));
    let mut lines: BTreeMap<String, Vec<(f64, f64, usize)>> = BTreeMap::new();
    for (index, row) in table.rows.iter().enumerate() {
        if let (Some(a), Some(_), Some(b)) =
            (along.at(&row[x]), row[y].number(), upwards.at(&row[y]))
        {
            let place = (
                LEFT + a * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - b * (HEIGHT - TOP - BOTTOM),
                index,
            );
            lines
                .entry(labels(table, row, figure.lines))
                .or_default()
                .push(place);
        }
    }
    if lines.is_empty() {
        return None;
    }
    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>{0}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"28\" font-size=\"16\">{0}: {1} over {2}</text>\n",
        escape(figure.title),
        escape(figure.y),
        escape(figure.x)
    );
    draw_axes(&mut page, figure, &along, &upwards);
    for (index, (name, mut line)) in lines.into_iter().enumerate() {
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        draw_line(&mut page, table, index, &name, &line, figure);
    }
    page.push_str("</svg>\n");
    Some(page)
}

/// What tells a line from the others.
fn labels(table: &Table, row: &[Cell], columns: &[&str]) -> String {
    let words = columns.iter().filter_map(|column| {
        let cell = &row[table.find(column)?];
        Some(format!("{column} {cell}"))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Where values lie along an axis, from 0 to 1.
enum Scale {
    /// Numbers between two ends, with what is written at some of them.
    Numbers {
        low: f64,
        high: f64,
        marks: Vec<(f64, String)>,
    },
    /// Words side by side.
    Words(Vec<String>),
}

impl Scale {
    fn of<'cell>(cells: impl Iterator<Item = &'cell Cell>) -> Self {
        let cells: Vec<&Cell> = cells.filter(|cell| **cell != Cell::Absent).collect();
        let numbers: Option<Vec<f64>> = cells.iter().map(|cell| cell.number()).collect();
        let mut texts: Vec<(String, Option<f64>)> = cells
            .iter()
            .map(|cell| (cell.to_string(), cell.number()))
            .collect();
        let Some(numbers) = numbers else {
            let mut words: Vec<String> = texts.into_iter().map(|(text, _)| text).collect();
            words.sort();
            words.dedup();
            return Self::Words(words);
        };
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Quantities are marked in the words of the file, plain numbers at round ones.
        let quantities = cells.iter().any(|cell| matches!(cell, Cell::Text(_)));
        texts.sort_by(|a, b| a.1.unwrap_or(0.0).total_cmp(&b.1.unwrap_or(0.0)));
        texts.dedup();
        let (low, high) = match quantities || least < 0.0 {
            true => (least, most),
            false => (0.0, most),
        };
        let high = if high > low {
            high
        } else {
            low + low.abs().max(1.0)
        };
        let marks = match quantities {
            true => texts
                .into_iter()
                .filter_map(|(text, at)| Some((at?, text)))
                .collect(),
            false => round_marks(low, high),
        };
        Self::Numbers { low, high, marks }
    }

    fn at(&self, cell: &Cell) -> Option<f64> {
        match self {
            Self::Numbers { low, high, .. } => Some((cell.number()? - low) / (high - low)),
            Self::Words(words) => {
                let place = words.iter().position(|word| *word == cell.to_string())?;
                Some((place as f64 + 0.5) / words.len() as f64)
            }
        }
    }

    /// Places with what is written at them.
    fn marks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Numbers { low, high, marks } => {
                let places = marks
                    .iter()
                    .map(|(at, text)| ((at - low) / (high - low), text.clone()));
                thinned(places.collect())
            }
            Self::Words(words) => {
                let places = words
                    .iter()
                    .enumerate()
                    .map(|(place, word)| ((place as f64 + 0.5) / words.len() as f64, word.clone()));
                places.collect()
            }
        }
    }
}

/// Marks that do not stand on each other.
fn thinned(marks: Vec<(f64, String)>) -> Vec<(f64, String)> {
    let mut last = f64::NEG_INFINITY;
    let apart = marks.into_iter().filter(|(at, _)| {
        let keep = at - last > 0.06;
        if keep {
            last = *at;
        }
        keep
    });
    apart.collect()
}

/// Some five round numbers.
fn round_marks(low: f64, high: f64) -> Vec<(f64, String)> {
    let wide = (high - low) / 5.0;
    let power = 10f64.powf(wide.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = step.into_iter().find(|step| *step >= wide).unwrap_or(wide);
    let first = (low / step).ceil() as i64;
    let marks = (first..first + 12).map(|times| times as f64 * step);
    let digits = if step < 1.0 {
        (-step.log10().floor()) as usize
    } else {
        0
    };
    marks
        .take_while(|at| *at <= high * (1.0 + 1e-9))
        .map(|at| {
            let whole = lockstep_correlation::text::count(at);
            (
                at,
                if digits == 0 {
                    whole
                } else {
                    format!("{at:.digits$}")
                },
            )
        })
        .collect()
}

fn draw_axes(page: &mut String, figure: &Figure<'_>, along: &Scale, upwards: &Scale) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for (at, text) in along.marks() {
        let x = LEFT + at * (right - LEFT);
        let _ = writeln!(
            page,
            "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 20.0,
            escape(&text)
        );
    }
    for (at, text) in upwards.marks() {
        let y = bottom - at * (bottom - TOP);
        let _ = writeln!(
            page,
            "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            escape(&text)
        );
    }
    let _ = writeln!(
        page,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text transform=\"translate(18 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        (LEFT + right) / 2.0,
        bottom + 50.0,
        escape(figure.x),
        (TOP + bottom) / 2.0,
        escape(figure.y)
    );
}

fn draw_line(
    page: &mut String,
    table: &Table,
    index: usize,
    name: &str,
    line: &[(f64, f64, usize)],
    figure: &Figure<'_>,
) {
    let colour = COLOURS[index % COLOURS.len()];
    let front = table.find("pareto");
    let alone = figure.title == "Pareto front";
    if !alone {
        let path: Vec<String> = line
            .iter()
            .map(|(x, y, _)| format!("{x:.1} {y:.1}"))
            .collect();
        let _ = writeln!(
            page,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\"/>",
            path.join("L")
        );
    }
    for (x, y, row) in line {
        let on = front.is_some_and(|column| table.rows[*row][column] == Cell::Integer(1));
        let columns = [figure.x, figure.y, "point", "gpu", "arguments"];
        let label = labels(table, &table.rows[*row], &columns);
        let colour = if alone && !on { "#999999" } else { colour };
        let _ = writeln!(
            page,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{}\" fill=\"{colour}\"><title>{}</title></circle>",
            if on { 6 } else { 4 },
            escape(&label)
        );
    }
    if index < NAMED_LINES && !name.is_empty() {
        let y = TOP + 18.0 * index as f64;
        let _ = writeln!(
            page,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\">{}</text>",
            WIDTH - RIGHT + 14.0,
            y - 9.0,
            WIDTH - RIGHT + 30.0,
            y,
            escape(name)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, Cell, &str)]) -> Table {
        let mut table = Table::default();
        for (clock, time, gpu) in rows {
            table.push([
                ("clock".into(), Cell::Text((*clock).into())),
                ("time".into(), time.clone()),
                ("gpu".into(), Cell::Text((*gpu).into())),
            ]);
        }
        table
    }

    #[test]
    fn a_line_for_every_value_of_what_else_varies() {
        let rows = [
            ("500 MHz", Cell::Number(3.0), "a"),
            ("1 GHz", Cell::Number(2.0), "a"),
            ("500 MHz", Cell::Number(4.0), "b & c"),
            ("1 GHz", Cell::Absent, "b & c"),
        ];
        let figure = Figure {
            title: "T",
            x: "clock",
            y: "time",
            lines: &["gpu"],
        };
        let page = svg(&table(&rows), &figure).unwrap();
        assert_eq!(page.matches("<circle").count(), 3);
        assert_eq!(page.matches("stroke=\"#0072b2\"").count(), 1);
        assert!(
            page.contains("gpu b &amp; c") && page.contains(">500 MHz<"),
            "{page}"
        );
    }

    #[test]
    fn words_stand_side_by_side_and_one_value_is_drawn() {
        let rows = [("fast", Cell::Integer(5), "a")];
        let figure = Figure {
            title: "T",
            x: "clock",
            y: "time",
            lines: &[],
        };
        let page = svg(&table(&rows), &figure).unwrap();
        assert!(
            page.contains(">fast<") && !page.contains("NaN") && !page.contains("inf"),
            "{page}"
        );
        assert_eq!(svg(&table(&[("fast", Cell::Absent, "a")]), &figure), None);
    }

    #[test]
    fn marks_are_round() {
        let marks: Vec<String> = round_marks(0.0, 860.6)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert_eq!(marks, ["0", "200", "400", "600", "800"]);
        let marks: Vec<String> = round_marks(0.0, 0.7)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert_eq!(marks, ["0.0", "0.2", "0.4", "0.6"]);
    }
}
