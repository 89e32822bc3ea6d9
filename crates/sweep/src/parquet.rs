//! A table as a Parquet file.

use crate::{Cell, SweepError, Table};
use lockstep_report::columns::{Column, Values, parquet};

/// The bytes of the file.
pub(crate) fn bytes(table: &Table) -> Result<Vec<u8>, SweepError> {
    let columns = table.columns.iter().enumerate();
    let columns: Vec<Column> = columns
        .map(|(place, name)| Column {
            name: name.clone(),
            values: values(table.rows.iter().map(|row| &row[place])),
        })
        .collect();
    Ok(parquet("sweep", &columns)?)
}

/// As whole numbers if all are, as numbers if all are, else as text.
fn values<'table>(cells: impl Iterator<Item = &'table Cell> + Clone) -> Values {
    let known = || cells.clone().filter(|cell| **cell != Cell::Absent);
    let integer = |cell: &Cell| match cell {
        Cell::Integer(value) => Some(*value),
        _ => None,
    };
    if known().next().is_some() && known().all(|cell| matches!(cell, Cell::Integer(_))) {
        Values::Signed(cells.map(integer).collect())
    } else if known().any(|cell| matches!(cell, Cell::Text(_))) || known().next().is_none() {
        let text = |cell: &Cell| (*cell != Cell::Absent).then(|| cell.to_string().into());
        Values::Text(cells.map(text).collect())
    } else {
        let number = |cell: &Cell| match cell {
            Cell::Number(value) => Some(*value),
            cell => integer(cell).map(|value| value as f64),
        };
        Values::Decimal(cells.map(number).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn what_was_written_reads_back() {
        let mut table = Table::new(vec!["key".into(), "cycles".into(), "time".into()]);
        table.push([
            ("key".into(), Cell::Text("500 MHz".into())),
            ("cycles".into(), Cell::Integer(7)),
            ("time".into(), Cell::Number(1.5)),
        ]);
        table.push([
            ("key".into(), Cell::Text("x".into())),
            ("time".into(), Cell::Integer(2)),
        ]);
        let path =
            std::env::temp_dir().join(format!("lockstep-sweep-{}.parquet", std::process::id()));
        std::fs::write(&path, bytes(&table).unwrap()).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        let rows: Vec<String> = rows.map(|row| row.unwrap().to_string()).collect();
        assert_eq!(
            rows,
            [
                "{key: \"500 MHz\", cycles: 7, time: 1.5}",
                "{key: \"x\", cycles: null, time: 2.0}"
            ]
        );
    }
}
