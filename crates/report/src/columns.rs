//! Columns of any table, and a Parquet file of them: one row group, every column optional.

use crate::error::ReportError;
use ::parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Values of one column, row by row; what is not known is absent.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Words.
    Text(Vec<Option<String>>),
    /// Whole numbers without a sign.
    Whole(Vec<Option<u64>>),
    /// Whole numbers with one.
    Signed(Vec<Option<i64>>),
    /// Other numbers.
    Decimal(Vec<Option<f64>>),
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// The bytes of a Parquet file of columns that are equally long, whose schema has this name.
///
/// # Errors
/// The columns are more than the format can hold.
pub fn parquet(name: &str, columns: &[Column]) -> Result<Vec<u8>, ReportError> {
    file(name, columns).map_err(|problem| ReportError::Export {
        what: "Parquet",
        because: problem.to_string(),
    })
}

fn file(name: &str, columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(name).with_fields(fields).build()?;
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
            Values::Signed(values) => write::<Int64Type, _>(&mut group, values, |value| *value)?,
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
        Values::Signed(_) => (PhysicalType::INT64, None),
        Values::Decimal(_) => (PhysicalType::DOUBLE, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
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
                name: "kernel".into(),
                values: Values::Text(vec![Some("a".into()), None]),
            },
            Column {
                name: "cycles".into(),
                values: Values::Whole(vec![None, Some(u64::MAX)]),
            },
            Column {
                name: "share".into(),
                values: Values::Decimal(vec![Some(0.5), None]),
            },
            Column {
                name: "change".into(),
                values: Values::Signed(vec![Some(-1), None]),
            },
        ];
        let name = format!("lockstep-report-{}.parquet", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, parquet("launches", &columns).unwrap()).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        let rows: Vec<String> = rows.map(|row| row.unwrap().to_string()).collect();
        assert_eq!(
            rows,
            [
                "{kernel: \"a\", cycles: null, share: 0.5, change: -1}",
                "{kernel: null, cycles: 18446744073709551615, share: null, change: null}"
            ]
        );
    }
}
