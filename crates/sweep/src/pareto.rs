//! The Pareto front: rows that no other row beats in both columns.

/// Which of these points, less is better in both, no other one beats: at least as good in both and
/// better in one. Points without numbers are never on it.
pub(crate) fn front(points: &[Option<(f64, f64)>]) -> Vec<bool> {
    let beats = |a: (f64, f64), b: (f64, f64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
    let beaten = |point: (f64, f64)| points.iter().flatten().any(|other| beats(*other, point));
    points
        .iter()
        .map(|point| point.is_some_and(|point| !beaten(point)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_beats_is_on_the_front() {
        let points = [
            Some((1.0, 5.0)),
            Some((2.0, 3.0)),
            Some((2.0, 4.0)),
            Some((5.0, 1.0)),
            Some((5.0, 1.0)),
            Some((6.0, 6.0)),
            None,
        ];
        assert_eq!(
            front(&points),
            [true, true, false, true, true, false, false]
        );
        assert!(front(&[]).is_empty());
    }
}
