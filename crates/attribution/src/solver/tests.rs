use super::*;

const MILLISECOND: u64 = 1_000_000;

#[test]
fn turns_are_told_apart_by_what_was_measured_in_them() {
    // Two streams take turns of two intervals: 100 warps of 10 instructions, 300 warps of 2.
    let growth: Vec<Vec<Option<u64>>> = (0..256)
        .map(|i| {
            if i / 2 % 2 == 0 {
                vec![Some(1000), Some(100)]
            } else {
                vec![Some(600), Some(300)]
            }
        })
        .collect();
    // Half a turn alone, then half a turn that ends with the beginning of the next.
    let group = |stream: usize, begin: u64, end: u64| Group {
        stream,
        kernel: stream,
        begin,
        end: Some(end),
        not_before: end,
        waited: false,
        warps: if stream == 0 { 100.0 } else { 300.0 },
        within: Some(1.0),
        short: true,
    };
    let mut groups = Vec::new();
    for turn in 0..64 {
        let at = 4 * MILLISECOND * turn;
        let group = |stream, begin, end| group(stream, at + begin, at + end);
        groups.extend([
            group(0, 0, MILLISECOND),
            group(0, MILLISECOND, 2 * MILLISECOND),
        ]);
        groups.extend([
            group(1, 2 * MILLISECOND, 3 * MILLISECOND),
            group(1, 5 * MILLISECOND / 2, 9 * MILLISECOND / 2),
        ]);
    }
    let problem = Problem {
        intervals: (0..256)
            .map(|i| (MILLISECOND * i, MILLISECOND * (i + 1)))
            .collect(),
        growth: growth.iter().map(Vec::as_slice).collect(),
        warps: Some(1),
        groups,
        rates: vec![vec![None, None]; 2],
        counted: vec![vec![None, None]; 2],
        numbers: vec![0, 1],
    };
    let solution = problem.solve(&mut Evidence::default());
    for (group, work) in problem.groups.iter().zip(&solution.work) {
        assert!((work.warps.iter().sum::<f64>() - group.warps).abs() < 1e-6);
    }
    let rates = &solution.rates;
    assert!((rates[0][0] - 10.0).abs() < 1.0, "{rates:?}");
    assert!((rates[1][0] - 2.0).abs() < 0.5, "{rates:?}");
}
