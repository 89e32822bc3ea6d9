//! What a warp of each kernel adds to a counter, from how the counter and the work change together.
//!
//! Where a group ran inside its time is a guess; how much of each kernel ran within several turns of
//! all contexts is not. So work and growth are summed over a window that slides over the run, longer
//! than a rotation of turns, and the rates that explain the sums best are sought (least squares,
//! none negative). Kernels that come in the same proportion everywhere, and turns that repeat without
//! a change, tell nothing; a small weight draws the parts to a guess, which decides there.

/// Turns take two milliseconds; a rotation of several contexts fits in this many nanoseconds.
const ROTATION: u64 = 8_000_000;
/// How much parts are drawn to the guess, beside what was measured.
const DRAWN: f64 = 3e-3;
/// Sweeps of the descent, and the change of a part that ends it.
const SWEEPS: usize = 2_000;
const SETTLED: f64 = 1e-9;

/// The part of each kernel in all growth of one counter; parts add up to about one.
///
/// `work` has the warps by kernel and interval, `growth` the counter by interval; an interval lasts
/// `length` nanoseconds; `guess` has a part for each kernel. Nothing if the counter did not grow.
pub fn parts(work: &[Vec<f64>], growth: &[f64], guess: &[f64], length: u64) -> Option<Vec<f64>> {
    let whole: f64 = growth.iter().sum();
    if whole <= 0.0 {
        return None;
    }
    let window = usize::try_from(ROTATION / length.max(1))
        .unwrap_or(1)
        .max(1);
    let measured = slid(growth, whole, window);
    let columns: Vec<Vec<f64>> = work
        .iter()
        .map(|kernel| slid(kernel, kernel.iter().sum(), window))
        .collect();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let kernels = columns.len();
    let mut products: Vec<Vec<f64>> = columns
        .iter()
        .map(|a| columns.iter().map(|b| product(a, b)).collect())
        .collect();
    let mut sought: Vec<f64> = columns.iter().map(|one| product(one, &measured)).collect();
    let norms: f64 = (0..kernels).map(|k| products[k][k].sqrt()).sum();
    let drawn = DRAWN * (norms / kernels as f64).powi(2);
    for (kernel, (products, sought)) in products.iter_mut().zip(&mut sought).enumerate() {
        products[kernel] += drawn;
        *sought += drawn * guess[kernel];
    }
    let mut parts = guess.to_vec();
    for _ in 0..SWEEPS {
        let mut change: f64 = 0.0;
        for kernel in 0..kernels {
            let own = products[kernel][kernel];
            if own <= 0.0 {
                parts[kernel] = 0.0;
                continue;
            }
            let rest = sought[kernel] - product(&products[kernel], &parts);
            let part = (parts[kernel] + rest / own).max(0.0);
            change = change.max((part - parts[kernel]).abs());
            parts[kernel] = part;
        }
        if change < SETTLED {
            break;
        }
    }
    Some(parts)
}

/// Sums over every window that touches the run, as parts of `whole`.
fn slid(values: &[f64], whole: f64, window: usize) -> Vec<f64> {
    let scale = if whole > 0.0 { 1.0 / whole } else { 0.0 };
    let mut sum = 0.0;
    (0..values.len() + window - 1)
        .map(|end| {
            sum += values.get(end).copied().unwrap_or(0.0);
            if let Some(left) = end.checked_sub(window) {
                sum -= values[left];
            }
            sum * scale
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_placed_wrongly_by_some_intervals_is_still_told_apart() {
        // A short kernel in every seventh interval, seen two intervals early, beside a long one.
        let length = 1_000_000;
        let work = vec![
            (0..200)
                .map(|i| if i % 7 == 0 && i < 90 { 50.0 } else { 0.0 })
                .collect::<Vec<f64>>(),
            vec![10.0; 200],
        ];
        let growth: Vec<f64> = (0..200)
            .map(|i| {
                10.0 * 300.0
                    + if i % 7 == 2 && i < 90 {
                        50.0 * 2.0
                    } else {
                        0.0
                    }
            })
            .collect();
        let whole: f64 = growth.iter().sum();
        let parts = parts(&work, &growth, &[0.5, 0.5], length).unwrap();
        assert!((parts[1] - 600_000.0 / whole).abs() < 0.01, "{parts:?}");
        assert!(parts[0] < 0.01, "{parts:?}");
    }

    #[test]
    fn kernels_in_the_same_proportion_share_as_guessed() {
        let work = vec![vec![3.0; 50], vec![1.0; 50]];
        let parts = parts(&work, &[8.0; 50], &[0.5, 0.5], 1_000_000).unwrap();
        assert!((parts[0] - 0.5).abs() < 1e-3 && (parts[1] - 0.5).abs() < 1e-3);
    }

    #[test]
    fn a_counter_that_stands_still_says_nothing() {
        assert_eq!(parts(&[vec![1.0; 4]], &[0.0; 4], &[1.0], 1_000_000), None);
    }
}
