//! Launches as a Parquet file: one row group, a plain page a column, nothing compressed.
//!
//! Format: <https://parquet.apache.org/docs/file-format/>. A column is optional; which of its values
//! are there stands before them as definition levels of one bit, in one bit-packed run.

use super::columns::{Column, Names, Values, columns};
use super::thrift::{Struct, varint};
use crate::error::ReportError;
use crate::folder::Run;

const MAGIC: &[u8; 4] = b"PAR1";

// Physical types.
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
// Converted types, for readers that know no logical ones.
const UTF8: i32 = 0;
const UINT_64: i32 = 14;
// Others of the format.
const OPTIONAL: i32 = 1;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const UNCOMPRESSED: i32 = 0;
const DATA_PAGE: i32 = 0;

/// A file with a row a launch.
///
/// # Errors
/// A column is larger than a page can be.
pub fn parquet(run: &Run, names: Names) -> Result<Vec<u8>, ReportError> {
    let columns = columns(run, names);
    let rows = run.launches.len() as i64;
    let mut file = MAGIC.to_vec();
    let mut chunks = Vec::new();
    let mut all_bytes = 0i64;
    for column in &columns {
        let offset = file.len() as i64;
        let page = page(column);
        let length = i32::try_from(page.len()).map_err(|_| ReportError::Export {
            what: "Parquet",
            because: format!("column `{}` takes more than 2 GiB", column.name),
        })?;
        let header = Struct::default()
            .i32(1, DATA_PAGE)
            .i32(2, length)
            .i32(3, length)
            .inner(
                5,
                Struct::default()
                    .i32(1, rows as i32)
                    .i32(2, PLAIN)
                    .i32(3, RLE)
                    .i32(4, RLE),
            );
        file.extend(header.end());
        file.extend(page);
        let size = file.len() as i64 - offset;
        all_bytes += size;
        let about = Struct::default()
            .i32(1, physical(column).0)
            .numbers(2, &[PLAIN, RLE])
            .texts(3, &[column.name])
            .i32(4, UNCOMPRESSED)
            .i64(5, rows)
            .i64(6, size)
            .i64(7, size)
            .i64(9, offset);
        chunks.push(Struct::default().i64(2, offset).inner(3, about));
    }
    let group = Struct::default()
        .list(1, chunks)
        .i64(2, all_bytes)
        .i64(3, rows);
    let footer = Struct::default()
        .i32(1, 1)
        .list(2, schema(&columns))
        .i64(3, rows)
        .list(4, vec![group])
        .text(6, concat!("lockstep version ", env!("CARGO_PKG_VERSION")));
    let footer = footer.end();
    file.extend_from_slice(&footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(MAGIC);
    Ok(file)
}

/// Physical and converted type.
fn physical(column: &Column) -> (i32, Option<i32>) {
    match column.values {
        Values::Text(_) => (BYTE_ARRAY, Some(UTF8)),
        Values::Whole(_) => (INT64, Some(UINT_64)),
        Values::Decimal(_) => (DOUBLE, None),
    }
}

fn schema(columns: &[Column]) -> Vec<Struct> {
    let root = Struct::default()
        .text(4, "launches")
        .i32(5, columns.len() as i32);
    let mut all = vec![root];
    for column in columns {
        let (physical, converted) = physical(column);
        let mut one = Struct::default()
            .i32(1, physical)
            .i32(3, OPTIONAL)
            .text(4, column.name);
        if let Some(converted) = converted {
            one = one.i32(6, converted);
        }
        // The logical type, a union: 1 is a string, 10 an integer of 64 bits without a sign.
        one = match column.values {
            Values::Text(_) => one.inner(10, Struct::default().inner(1, Struct::default())),
            Values::Whole(_) => one.inner(10, Struct::default().inner(10, unsigned())),
            Values::Decimal(_) => one,
        };
        all.push(one);
    }
    all
}

/// `IntType { bitWidth: 64, isSigned: false }`.
fn unsigned() -> Struct {
    Struct::default().byte(1, 64).no(2)
}

/// Which values are there, then those.
fn page(column: &Column) -> Vec<u8> {
    match &column.values {
        Values::Text(values) => levels(values, |page, value| {
            page.extend((value.len() as u32).to_le_bytes());
            page.extend(value.as_bytes());
        }),
        Values::Whole(values) => levels(values, |page, value| page.extend(value.to_le_bytes())),
        Values::Decimal(values) => levels(values, |page, value| page.extend(value.to_le_bytes())),
    }
}

fn levels<V>(values: &[Option<V>], write: impl Fn(&mut Vec<u8>, &V)) -> Vec<u8> {
    let mut run = Vec::new();
    let groups = values.len().div_ceil(8);
    varint(&mut run, (groups as u64) << 1 | 1);
    for eight in values.chunks(8) {
        let bits = eight.iter().enumerate();
        run.push(bits.fold(0, |byte, (place, value)| {
            byte | u8::from(value.is_some()) << place
        }));
    }
    let mut page = (run.len() as u32).to_le_bytes().to_vec();
    page.extend(run);
    for value in values.iter().flatten() {
        write(&mut page, value);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_there_take_a_bit_and_no_bytes() {
        let column = Column {
            name: "cycles",
            values: Values::Whole(vec![Some(7), None, Some(u64::MAX)]),
        };
        let page = page(&column);
        assert_eq!(page[..6], [2, 0, 0, 0, 3, 0b101]);
        assert_eq!(page[6..14], 7u64.to_le_bytes());
        assert_eq!(page[14..], u64::MAX.to_le_bytes());
    }
}
