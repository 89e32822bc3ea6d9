//! One counter of all parts of a kind, as it is kept in memory: ten bytes a row, so that ten million rows are held.

use crate::resample::Columns;
use lockstep_run_folder::series::SeriesBlock;

/// More parts than any GPU has.
const MOST_PARTS: u32 = 4096;

/// One counter of all parts of a kind.
#[derive(Default)]
pub struct Counter {
    intervals: Vec<Interval>,
    /// Number of the part of every row.
    numbers: Vec<u16>,
    /// What it counted.
    counted: Vec<u64>,
    /// One more than the highest number of a part.
    pub parts: u32,
    /// Beginnings or ends go back somewhere: no interval can be found by halving.
    unordered: bool,
}

/// A stretch of time that some rows share.
struct Interval {
    begin: f64,
    end: f64,
    /// The first of its rows; they go on to the first of the next interval.
    first: usize,
}

impl Counter {
    /// Takes the rows of a block with one counter; what counted nothing is left out.
    pub fn add(&mut self, block: &SeriesBlock) {
        let Some(values) = block.counters.first() else {
            return;
        };
        for (row, end) in block.time_ns.iter().enumerate() {
            let (number, counted) = (block.number[row], values[row]);
            if number >= MOST_PARTS || counted == 0 {
                continue;
            }
            self.interval(end - block.interval_ns[row], *end);
            self.parts = self.parts.max(number + 1);
            self.numbers.push(number as u16);
            self.counted.push(counted);
        }
    }

    /// Begins an interval, unless the last one is the same.
    fn interval(&mut self, begin: f64, end: f64) {
        if let Some(last) = self.intervals.last() {
            if (last.begin, last.end) == (begin, end) {
                return;
            }
            self.unordered |= begin < last.begin || end < last.end;
        }
        let first = self.numbers.len();
        self.intervals.push(Interval { begin, end, first });
    }

    /// Rows that are held.
    pub fn rows(&self) -> usize {
        self.numbers.len()
    }

    /// Sums over all parts.
    pub fn sums(&self, columns: Columns) -> Vec<f64> {
        let mut sums = vec![0.0; columns.count];
        self.each(columns, |column, _, counted| sums[column] += counted);
        sums
    }

    /// Sums for each part, one part after the other.
    pub fn by_part(&self, columns: Columns) -> Vec<f64> {
        let mut sums = vec![0.0; columns.count * self.parts as usize];
        self.each(columns, |column, number, counted| {
            sums[usize::from(number) * columns.count + column] += counted;
        });
        sums
    }

    /// Hands out what every part counted within every column of a picture.
    fn each(&self, columns: Columns, mut found: impl FnMut(usize, u16, f64)) {
        let mut shares = Vec::new();
        for place in self.within(columns) {
            let interval = &self.intervals[place];
            columns.shares(interval.begin, interval.end, &mut shares);
            let next = self.intervals.get(place + 1);
            let rows = interval.first..next.map_or(self.numbers.len(), |next| next.first);
            for row in rows {
                let (number, counted) = (self.numbers[row], self.counted[row] as f64);
                for (column, share) in &shares {
                    found(*column, number, counted * share);
                }
            }
        }
    }

    /// The intervals that a picture shows, and perhaps some more.
    fn within(&self, columns: Columns) -> std::ops::Range<usize> {
        if self.unordered {
            return 0..self.intervals.len();
        }
        let from = self.intervals.partition_point(|one| one.end < columns.from);
        let to = self.intervals.partition_point(|one| one.begin < columns.to);
        from..to.max(from)
    }

    /// The end of the last interval.
    pub fn end(&self) -> f64 {
        self.intervals.iter().map(|one| one.end).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(rows: &[(f64, f64, u32, u64)]) -> SeriesBlock {
        SeriesBlock {
            time_ns: rows.iter().map(|row| row.1).collect(),
            interval_ns: rows.iter().map(|row| row.1 - row.0).collect(),
            number: rows.iter().map(|row| row.2).collect(),
            counters: vec![rows.iter().map(|row| row.3).collect()],
            ..SeriesBlock::default()
        }
    }

    fn counter(rows: &[(f64, f64, u32, u64)]) -> Counter {
        let mut counter = Counter::default();
        // In two blocks, whose border lies within an interval.
        let (first, second) = rows.split_at(rows.len() / 2);
        counter.add(&block(first));
        counter.add(&block(second));
        counter
    }

    const ROWS: [(f64, f64, u32, u64); 6] = [
        (0.0, 10.0, 0, 5),
        (0.0, 10.0, 2, 7),
        (10.0, 20.0, 0, 1),
        (10.0, 20.0, 1, 0),
        (10.0, 20.0, 2, 2),
        (20.0, 40.0, 1, 8),
    ];

    #[test]
    fn parts_keep_what_they_counted() {
        let counter = counter(&ROWS);
        assert_eq!((counter.parts, counter.rows(), counter.end()), (3, 5, 40.0));
        let columns = Columns::new(0.0, 40.0, 4);
        assert_eq!(counter.sums(columns), [12.0, 3.0, 4.0, 4.0]);
        let expected = [5.0, 1.0, 0.0, 0.0, 0.0, 0.0, 4.0, 4.0, 7.0, 2.0, 0.0, 0.0];
        assert_eq!(counter.by_part(columns), expected);
    }

    #[test]
    fn a_window_is_found_in_ordered_and_in_unordered_rows() {
        let columns = Columns::new(15.0, 30.0, 3);
        let expected = [1.5, 2.0, 2.0];
        assert_eq!(counter(&ROWS).sums(columns), expected);
        let mut backwards = ROWS;
        backwards.reverse();
        let backwards = counter(&backwards);
        assert!(backwards.unordered);
        assert_eq!(backwards.sums(columns), expected);
        assert_eq!(counter(&[]).sums(columns), [0.0; 3]);
    }

    #[test]
    fn parts_that_no_gpu_has_are_left_out() {
        let counter = counter(&[(0.0, 1.0, u32::MAX, 1), (0.0, 1.0, MOST_PARTS, 1)]);
        assert_eq!((counter.parts, counter.rows()), (0, 0));
    }
}
