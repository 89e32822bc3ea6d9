//! Columns of any table, and a Parquet file of them: every column is optional.

use crate::error::ReportError;
use ::parquet::basic::{self, LogicalType, Repetition, Type as PhysicalType};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{Type, TypePtr};
use std::io::Write;
use std::sync::Arc;

/// Values of one column, row by row; what is not known is absent.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Words; equal ones may share their memory.
    Text(Vec<Option<Arc<str>>>),
    /// Whole numbers without a sign.
    Whole(Vec<Option<u64>>),
    /// Whole numbers with one.
    Signed(Vec<Option<i64>>),
    /// Other numbers.
    Decimal(Vec<Option<f64>>),
    /// Whole numbers without a sign, all of them known.
    Counted(Vec<u64>),
}

impl Values {
    /// Rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Signed(values) => values.len(),
            Self::Decimal(values) => values.len(),
            Self::Counted(values) => values.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
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
    let mut file = ParquetFile::begin(name, Vec::new(), columns, Compression::None)?;
    file.group(columns)?;
    file.finish()
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all: every reader can read it.
    #[default]
    None,
    /// By Zstandard.
    Zstd,
}

/// A Parquet file that is written group by group.
pub struct ParquetFile<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> ParquetFile<W> {
    /// Begins a file with the names and types of these columns.
    ///
    /// # Errors
    /// The columns are more than the format can hold.
    pub fn begin(
        name: &str,
        sink: W,
        columns: &[Column],
        compression: Compression,
    ) -> Result<Self, ReportError> {
        begin(name, sink, columns, compression)
            .map(Self)
            .map_err(failed)
    }

    /// Adds rows: columns in the same order, equally long.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn group(&mut self, columns: &[Column]) -> Result<(), ReportError> {
        let mut group = self.0.next_row_group().map_err(failed)?;
        let mut scratch = Scratch::default();
        for column in columns {
            write_values(&mut group, &column.values, &mut scratch).map_err(failed)?;
        }
        group.close().map_err(failed)?;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<W, ReportError> {
        self.0.into_inner().map_err(failed)
    }
}

fn failed(problem: ParquetError) -> ReportError {
    ReportError::Export {
        what: "Parquet",
        because: problem.to_string(),
    }
}

fn begin<W: Write + Send>(
    name: &str,
    sink: W,
    columns: &[Column],
    compression: Compression,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(name).with_fields(fields).build()?;
    let properties = WriterProperties::builder().set_compression(match compression {
        Compression::None => basic::Compression::UNCOMPRESSED,
        Compression::Zstd => basic::Compression::ZSTD(basic::ZstdLevel::default()),
    });
    SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties.build()))
}

/// Rows that are handed to the writer of a column at once.
const ROWS: usize = 8192;

/// Memory that serves for one column after the other.
#[derive(Default)]
struct Scratch {
    levels: Vec<i16>,
    values: Vec<i64>,
}

fn write_values<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &Values,
    scratch: &mut Scratch,
) -> Result<(), ParquetError> {
    match values {
        Values::Text(values) => {
            let mut last: Option<(Arc<str>, ByteArray)> = None;
            write::<ByteArrayType, _, _>(group, values, |text| match &last {
                // Names stand below each other for many rows.
                Some((known, bytes)) if known == text => bytes.clone(),
                _ => {
                    let bytes = ByteArray::from(&**text);
                    last = Some((Arc::clone(text), bytes.clone()));
                    bytes
                }
            })
        }
        // The format keeps numbers without a sign in the bits of those with one.
        Values::Whole(values) => write::<Int64Type, _, _>(group, values, |value| *value as i64),
        Values::Signed(values) => write::<Int64Type, _, _>(group, values, |value| *value),
        Values::Decimal(values) => write::<DoubleType, _, _>(group, values, |value| *value),
        Values::Counted(values) => {
            let Some(mut writer) = group.next_column()? else {
                return Err(missing());
            };
            for rows in values.chunks(ROWS) {
                scratch.levels.resize(rows.len(), 1);
                scratch.values.clear();
                let bits = rows.iter().map(|value| *value as i64);
                scratch.values.extend(bits);
                writer.typed::<Int64Type>().write_batch(
                    &scratch.values,
                    Some(&scratch.levels),
                    None,
                )?;
            }
            writer.close()
        }
    }
}

fn missing() -> ParquetError {
    ParquetError::General("a column is missing".into())
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.values {
        Values::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Whole(_) | Values::Counted(_) => {
            (PhysicalType::INT64, Some(LogicalType::integer(64, false)))
        }
        Values::Signed(_) => (PhysicalType::INT64, None),
        Values::Decimal(_) => (PhysicalType::DOUBLE, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    Ok(Arc::new(field.build()?))
}

fn write<T: DataType, V, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[Option<V>],
    stored: impl FnMut(&V) -> T::T,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let mut known = Vec::with_capacity(values.len());
    known.extend(values.iter().flatten().map(stored));
    let Some(mut writer) = group.next_column()? else {
        return Err(missing());
    };
    writer
        .typed::<T>()
        .write_batch(&known, Some(&levels), None)?;
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
