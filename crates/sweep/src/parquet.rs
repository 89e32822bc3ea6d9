//! A table as a Parquet file: one row group, every column optional.

use crate::{Cell, SweepError, Table};
use ::parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// What all cells of a column can be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Integer,
    Number,
    Text,
}

impl Kind {
    /// The narrowest that holds every cell of a column; text if there is none.
    fn of(table: &Table, column: usize) -> Self {
        let kinds = table.rows.iter().filter_map(|row| match row[column] {
            Cell::Absent => None,
            Cell::Integer(_) => Some(Self::Integer),
            Cell::Number(_) => Some(Self::Number),
            Cell::Text(_) => Some(Self::Text),
        });
        kinds.max().unwrap_or(Self::Text)
    }

    fn field(self, name: &str) -> Result<TypePtr, ParquetError> {
        let physical = match self {
            Self::Integer => PhysicalType::INT64,
            Self::Number => PhysicalType::DOUBLE,
            Self::Text => PhysicalType::BYTE_ARRAY,
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type((self == Self::Text).then_some(LogicalType::String));
        Ok(Arc::new(field.build()?))
    }
}

/// The bytes of the file.
pub(crate) fn bytes(table: &Table) -> Result<Vec<u8>, SweepError> {
    let kinds: Vec<Kind> = (0..table.columns.len())
        .map(|column| Kind::of(table, column))
        .collect();
    let fields = table.columns.iter().zip(&kinds);
    let fields = fields.map(|(name, kind)| kind.field(name));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("sweep")
        .with_fields(fields)
        .build()?;
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties)?;
    let mut group = writer.next_row_group()?;
    for (column, kind) in kinds.into_iter().enumerate() {
        write_column(&mut group, table, column, kind)?;
    }
    group.close()?;
    Ok(writer.into_inner()?)
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    table: &Table,
    column: usize,
    kind: Kind,
) -> Result<(), ParquetError> {
    let cells: Vec<&Cell> = table.rows.iter().map(|row| &row[column]).collect();
    let present = cells.iter().filter(|cell| ***cell != Cell::Absent);
    let levels: Vec<i16> = cells
        .iter()
        .map(|cell| i16::from(**cell != Cell::Absent))
        .collect();
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("a column is missing".into()));
    };
    match kind {
        Kind::Integer => {
            let values: Vec<i64> = present
                .filter_map(|cell| match cell {
                    Cell::Integer(value) => Some(*value),
                    _ => None,
                })
                .collect();
            writer
                .typed::<Int64Type>()
                .write_batch(&values, Some(&levels), None)?;
        }
        Kind::Number => {
            let values: Vec<f64> = present
                .map(|cell| match cell {
                    Cell::Number(value) => *value,
                    cell => cell.number().unwrap_or(f64::NAN),
                })
                .collect();
            writer
                .typed::<DoubleType>()
                .write_batch(&values, Some(&levels), None)?;
        }
        Kind::Text => {
            let text = present.map(|cell| ByteArray::from(cell.to_string().into_bytes()));
            let values: Vec<ByteArray> = text.collect();
            writer
                .typed::<ByteArrayType>()
                .write_batch(&values, Some(&levels), None)?;
        }
    }
    writer.close()
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
