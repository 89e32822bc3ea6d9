//! Launches as a Parquet file: one row group, every column optional.

use super::columns::{Column, Names, Values, columns};
use crate::error::ReportError;
use crate::folder::Run;
use ::parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// A file with a row a launch.
///
/// # Errors
/// The columns are more than the format can hold.
pub fn parquet(run: &Run, names: Names) -> Result<Vec<u8>, ReportError> {
    file(&columns(run, names)).map_err(|problem| ReportError::Export {
        what: "Parquet",
        because: problem.to_string(),
    })
}

fn file(columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("launches")
        .with_fields(fields)
        .build()?;
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties)?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        match &column.values {
            Values::Text(values) => write::<ByteArrayType, _>(&mut group, values, |text| {
                ByteArray::from(text.as_str())
            })?,
            // The format keeps numbers without a sign in the bits of those with one.
            Values::Whole(values) => {
                write::<Int64Type, _>(&mut group, values, |value| *value as i64)?;
            }
            Values::Decimal(values) => write::<DoubleType, _>(&mut group, values, |value| *value)?,
        }
    }
    group.close()?;
    writer.into_inner()
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.values {
        Values::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Whole(_) => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
        Values::Decimal(_) => (PhysicalType::DOUBLE, None),
    };
    let field = Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    Ok(Arc::new(field.build()?))
}

fn write<T: DataType, V>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[Option<V>],
    stored: impl Fn(&V) -> T::T,
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("a column is missing".into()));
    };
    let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let values: Vec<T::T> = values.iter().flatten().map(stored).collect();
    writer
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    writer.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn what_was_written_reads_back() {
        let columns = [
            Column {
                name: "kernel",
                values: Values::Text(vec![Some("a".into()), None]),
            },
            Column {
                name: "cycles",
                values: Values::Whole(vec![None, Some(u64::MAX)]),
            },
            Column {
                name: "share",
                values: Values::Decimal(vec![Some(0.5), None]),
            },
        ];
        let name = format!("lockstep-report-{}.parquet", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, file(&columns).unwrap()).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        let rows: Vec<String> = rows.map(|row| row.unwrap().to_string()).collect();
        assert_eq!(
            rows,
            [
                "{kernel: \"a\", cycles: null, share: 0.5}",
                "{kernel: null, cycles: 18446744073709551615, share: null}"
            ]
        );
    }
}
