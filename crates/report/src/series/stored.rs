//! Reads `series.parquet`, whose row groups are of one kind of part each.

use super::read::{Block, Keys, Wanted, shared};
use super::{GPU, INTERVAL, KERNEL, LAUNCH, NUMBER, PART, Part, STREAM, TIME};
use crate::error::ReportError;
use ::parquet::column::reader::{ColumnReader, get_typed_column_reader};
use ::parquet::data_type::{ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::fs::File;
use std::path::Path;

/// Row groups with more rows are not ours.
const LARGEST: usize = 1 << 24;

/// Hands out the rows of a kind of part.
pub(super) fn each(
    path: &Path,
    part: Part,
    wanted: Wanted<'_>,
    mut found: impl FnMut(&mut Block) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let malformed = |error: ParquetError| ReportError::malformed(path, error.to_string());
    let file = File::open(path).map_err(|error| ReportError::system(path, error))?;
    let reader = SerializedFileReader::new(file).map_err(malformed)?;
    // Memory of one row group serves for the next: fresh pages cost more than reading does.
    let (mut block, mut scratch) = (Block::default(), Scratch::default());
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(malformed)?;
        let group = Group { group: &*group };
        if group.is_of(part).map_err(malformed)? {
            let filled = group.fill(wanted, &mut block, &mut scratch);
            filled.map_err(malformed)?;
            found(&mut block)?;
        }
    }
    Ok(())
}

/// What is between the file and a block.
#[derive(Default)]
struct Scratch {
    /// Which values are there.
    levels: Vec<i16>,
    /// Numbers as the format keeps them.
    whole: Vec<i64>,
}

/// One row group.
struct Group<'reader> {
    group: &'reader dyn RowGroupReader,
}

impl Group<'_> {
    /// Whether its rows are of a kind of part: all are of the same. The head of the file says so, in files of ours.
    fn is_of(&self, part: Part) -> Result<bool, ParquetError> {
        let place = self.place::<ByteArrayType>(PART)?;
        let about = self.group.metadata().column(place).statistics();
        if let Some(least) = about.and_then(|about| about.min_bytes_opt()) {
            return Ok(least == part.name().as_bytes());
        }
        let first = self.some::<ByteArrayType>(PART, 1)?;
        let first = first.into_iter().next().flatten();
        Ok(first.is_some_and(|name| name.data() == part.name().as_bytes()))
    }

    /// Reads the columns that are wanted in the place of what a block had before.
    fn fill(
        &self,
        wanted: Wanted<'_>,
        block: &mut Block,
        scratch: &mut Scratch,
    ) -> Result<(), ParquetError> {
        block.keys = Keys::default();
        if wanted.keys {
            let kernel = self.all::<ByteArrayType>(KERNEL)?;
            let kernel = kernel.iter().map(Option::as_ref);
            let mut gpu = Vec::new();
            self.numbers(GPU, scratch, &mut gpu)?;
            block.keys = Keys {
                gpu,
                launch: self.options(LAUNCH)?,
                stream: self.options(STREAM)?,
                kernel: shared(
                    kernel.map(|name| name.map(|name| String::from_utf8_lossy(name.data()))),
                ),
            };
        }
        self.dense::<DoubleType>(TIME, &mut scratch.levels, &mut block.time_ns)?;
        self.dense::<DoubleType>(INTERVAL, &mut scratch.levels, &mut block.interval_ns)?;
        self.numbers(NUMBER, scratch, &mut block.number)?;
        block.counters.resize(wanted.counters.len(), Vec::new());
        for (name, counter) in wanted.counters.iter().zip(&mut block.counters) {
            self.dense::<Int64Type>(name, &mut scratch.levels, &mut scratch.whole)?;
            counter.clear();
            // The format keeps numbers without a sign in the bits of those with one.
            counter.extend(scratch.whole.iter().map(|value| *value as u64));
        }
        let rows = block.time_ns.len();
        let lengths = [block.interval_ns.len(), block.number.len()];
        let equal = lengths.into_iter().all(|length| length == rows)
            && block.counters.iter().all(|counter| counter.len() == rows);
        match equal {
            true => Ok(()),
            false => Err(ParquetError::General("columns of different lengths".into())),
        }
    }

    fn numbers(
        &self,
        name: &str,
        scratch: &mut Scratch,
        numbers: &mut Vec<u32>,
    ) -> Result<(), ParquetError> {
        self.dense::<Int64Type>(name, &mut scratch.levels, &mut scratch.whole)?;
        let number = |value: &i64| u32::try_from(*value).unwrap_or(u32::MAX);
        numbers.clear();
        numbers.extend(scratch.whole.iter().map(number));
        Ok(())
    }

    fn options(&self, name: &str) -> Result<Vec<Option<u64>>, ParquetError> {
        let values = self.all::<Int64Type>(name)?.into_iter();
        // The format keeps numbers without a sign in the bits of those with one.
        Ok(values
            .map(|value| value.map(|value| value as u64))
            .collect())
    }

    /// All values of a column; what is absent is 0.
    fn dense<T: DataType>(
        &self,
        name: &str,
        levels: &mut Vec<i16>,
        values: &mut Vec<T::T>,
    ) -> Result<(), ParquetError> {
        self.read::<T>(name, self.rows()?, levels, values)?;
        if values.len() != levels.len() {
            let known = spread(levels, std::mem::take(values));
            *values = known.map(Option::unwrap_or_default).collect();
        }
        Ok(())
    }

    fn all<T: DataType>(&self, name: &str) -> Result<Vec<Option<T::T>>, ParquetError> {
        self.some::<T>(name, self.rows()?)
    }

    fn rows(&self) -> Result<usize, ParquetError> {
        let rows = usize::try_from(self.group.metadata().num_rows()).unwrap_or(usize::MAX);
        match rows <= LARGEST {
            true => Ok(rows),
            false => Err(ParquetError::General(format!("a row group of {rows} rows"))),
        }
    }

    /// The first values of a column.
    fn some<T: DataType>(
        &self,
        name: &str,
        rows: usize,
    ) -> Result<Vec<Option<T::T>>, ParquetError> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        self.read::<T>(name, rows, &mut levels, &mut values)?;
        Ok(spread(&levels, values).collect())
    }

    /// Which of the first values of a column are there, and those that are.
    fn read<T: DataType>(
        &self,
        name: &str,
        rows: usize,
        levels: &mut Vec<i16>,
        values: &mut Vec<T::T>,
    ) -> Result<(), ParquetError> {
        let reader: ColumnReader = self.group.get_column_reader(self.place::<T>(name)?)?;
        let mut reader = get_typed_column_reader::<T>(reader);
        levels.clear();
        values.clear();
        reader.read_records(rows, Some(levels), None, values)?;
        Ok(())
    }

    /// Where a column of this type is.
    fn place<T: DataType>(&self, name: &str) -> Result<usize, ParquetError> {
        let columns = self.group.metadata().columns();
        let place = columns
            .iter()
            .position(|column| column.column_path().string() == name)
            .ok_or_else(|| ParquetError::General(format!("it has no column `{name}`")))?;
        if columns[place].column_type() != T::get_physical_type() {
            let because = format!("column `{name}` has another type");
            return Err(ParquetError::General(because));
        }
        Ok(place)
    }
}

/// Values at the places where there are some.
fn spread<V>(levels: &[i16], values: Vec<V>) -> impl Iterator<Item = Option<V>> {
    let mut values = values.into_iter();
    levels.iter().map(move |level| match level {
        0 => None,
        _ => values.next(),
    })
}
