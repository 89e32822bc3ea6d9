//! A table: columns by name, cells that may be absent.

use lockstep_units::{Bandwidth, Bytes, BytesPerCycle, Cycles, Duration, Hertz};
use std::fmt;

/// One value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// Not known.
    #[default]
    Absent,
    /// A whole number.
    Integer(i64),
    /// Any number.
    Number(f64),
    /// Words, or a quantity with its unit.
    Text(String),
}

impl Cell {
    /// A value of a configuration.
    pub(crate) fn of_value(value: &toml::Value) -> Self {
        match value {
            toml::Value::String(text) => Self::Text(text.clone()),
            toml::Value::Integer(integer) => Self::Integer(*integer),
            toml::Value::Float(number) => Self::Number(*number),
            other => Self::Text(other.to_string()),
        }
    }

    /// The number in it; that of a quantity is in its smallest unit.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Absent => None,
            Self::Integer(integer) => Some(*integer as f64),
            Self::Number(number) => Some(*number).filter(|number| number.is_finite()),
            Self::Text(text) => quantity(text),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => Ok(()),
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The number of a quantity, in bytes, hertz, cycles, seconds or what is made of them.
fn quantity(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok().filter(|number| number.is_finite());
    plain
        .or_else(|| text.parse().ok().map(|bytes: Bytes| bytes.0 as f64))
        .or_else(|| text.parse().ok().map(|rate: Hertz| rate.get() as f64))
        .or_else(|| text.parse().ok().map(|cycles: Cycles| cycles.0 as f64))
        .or_else(|| text.parse().ok().map(|rate: Bandwidth| rate.get() as f64))
        .or_else(|| {
            text.parse()
                .ok()
                .map(|rate: BytesPerCycle| rate.get() as f64)
        })
        .or_else(|| {
            text.parse()
                .ok()
                .map(|time: Duration| time.0 as f64 * 1e-15)
        })
}

/// Columns by name, rows of as many cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names, in order.
    pub columns: Vec<String>,
    /// Rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: Vec<String>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// The place of a column, which is made if it is not there.
    pub fn column(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.columns.push(name.into());
            for row in &mut self.rows {
                row.push(Cell::Absent);
            }
            self.columns.len() - 1
        })
    }

    /// The place of a column.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Adds a row of values by column; columns that are not there are made.
    pub fn push(&mut self, values: impl IntoIterator<Item = (String, Cell)>) {
        let mut row = vec![Cell::Absent; self.columns.len()];
        for (name, value) in values {
            let column = self.column(&name);
            row.resize(self.columns.len(), Cell::Absent);
            row[column] = value;
        }
        self.rows.push(row);
    }

    /// As comma-separated values.
    pub fn csv(&self) -> Vec<u8> {
        const IN_MEMORY: &str = "memory takes every row";
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns).expect(IN_MEMORY);
        for row in &self.rows {
            let cells = row.iter().map(ToString::to_string);
            writer.write_record(cells).expect(IN_MEMORY);
        }
        writer.into_inner().expect(IN_MEMORY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_numbers() {
        let number = |text: &str| Cell::Text(text.into()).number();
        assert_eq!(number("500 MHz"), Some(5e8));
        assert_eq!(number("30 MiB"), Some(30.0 * 1_048_576.0));
        assert_eq!(number("80 cycles"), Some(80.0));
        assert_eq!(number("32 B/cycle"), Some(32.0));
        assert_eq!(number("1.5"), Some(1.5));
        assert!((number("2 us").unwrap() - 2e-6).abs() < 1e-12);
        assert_eq!(number("crossbar"), None);
        assert_eq!(number("inf"), None);
    }

    #[test]
    fn a_row_may_bring_new_columns() {
        let mut table = Table::new(vec!["a".into()]);
        table.push([("a".into(), Cell::Integer(1))]);
        table.push([("b".into(), Cell::Text("x, y".into()))]);
        assert_eq!(table.csv(), b"a,b\n1,\n,\"x, y\"\n");
    }
}
