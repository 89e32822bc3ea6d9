//! Brings samples to the width of a picture: what an interval counted is spread evenly over it.

/// A stretch of time in columns of equal width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Columns {
    /// Where it begins, in nanoseconds.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// How many.
    pub count: usize,
}

/// The most columns that somebody can ask for.
const MOST: usize = 4096;

impl Columns {
    /// So many columns of a stretch; at least one, and never of no width.
    pub fn new(from: f64, to: f64, count: usize) -> Self {
        let from = if from.is_finite() { from.max(0.0) } else { 0.0 };
        let to = if to.is_finite() {
            to.max(from + 1e-3)
        } else {
            from + 1.0
        };
        Self {
            from,
            to,
            count: count.clamp(1, MOST),
        }
    }

    /// The columns that a stretch of time lies in, each with its share of the stretch. Together they are 1 where the
    /// picture shows all of it, and 0 where it shows nothing.
    pub fn shares(&self, begin: f64, end: f64, shares: &mut Vec<(usize, f64)>) {
        shares.clear();
        if end <= self.from || begin >= self.to {
            return;
        }
        let scale = self.count as f64 / (self.to - self.from);
        let place = |time: f64| (time - self.from) * scale;
        let (first, last) = (place(begin), place(end));
        let width = last - first;
        if width <= 0.0 {
            shares.push(((first.max(0.0) as usize).min(self.count - 1), 1.0));
            return;
        }
        let (low, high) = (first.max(0.0), last.min(self.count as f64));
        let mut column = low as usize;
        while column < self.count && (column as f64) < high {
            let part = high.min(column as f64 + 1.0) - low.max(column as f64);
            shares.push((column, part / width));
            column += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(columns: Columns, rows: &[(f64, f64, f64)]) -> Vec<f64> {
        let (mut sums, mut shares) = (vec![0.0; columns.count], Vec::new());
        for (begin, end, counted) in rows {
            columns.shares(*begin, *end, &mut shares);
            for (column, share) in &shares {
                sums[*column] += counted * share;
            }
        }
        sums
    }

    #[test]
    fn nothing_that_was_counted_is_lost_or_doubled() {
        let columns = Columns::new(0.0, 100.0, 7);
        let rows = [(0.0, 13.0, 26.0), (13.0, 60.0, 47.0), (60.0, 100.0, 5.0)];
        let all: f64 = sums(columns, &rows).iter().sum();
        assert!((all - 78.0).abs() < 1e-9, "{all}");
    }

    #[test]
    fn a_window_shows_its_part_alone() {
        let columns = Columns::new(10.0, 20.0, 2);
        assert_eq!(sums(columns, &[(0.0, 20.0, 40.0)]), [10.0, 10.0]);
        assert_eq!(
            sums(columns, &[(0.0, 5.0, 1.0), (25.0, 30.0, 1.0)]),
            [0.0, 0.0]
        );
        assert_eq!(sums(columns, &[(12.0, 12.0, 3.0)]), [3.0, 0.0]);
    }

    #[test]
    fn nonsense_is_a_narrow_window() {
        for (from, to, count) in [
            (f64::NAN, 1.0, 0),
            (5.0, 1.0, 9),
            (0.0, f64::INFINITY, 1 << 40),
        ] {
            let columns = Columns::new(from, to, count);
            assert!(columns.to > columns.from && (1..=MOST).contains(&columns.count));
        }
    }
}
