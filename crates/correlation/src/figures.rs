//! The arithmetic of the protocol: each figure is one function, tested against cases done by hand.

/// What hardware said in each repetition of one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeated {
    values: Vec<f64>,
}

impl Repeated {
    /// Of at least one finite value.
    pub fn new(values: Vec<f64>) -> Option<Self> {
        let usable = !values.is_empty() && values.iter().all(|value| value.is_finite());
        usable.then_some(Self { values })
    }

    /// One value a repetition.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The value that stands for all.
    pub fn median(&self) -> f64 {
        median(&self.values).unwrap_or(0.0)
    }

    /// The least value.
    pub fn least(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The largest value.
    pub fn most(&self) -> f64 {
        self.values
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// Whether every repetition said the same.
    pub fn repeats(&self) -> bool {
        self.least() == self.most()
    }

    /// Sums repetition by repetition; only repetitions that every part has.
    pub fn sum<'part>(parts: impl IntoIterator<Item = &'part Repeated>) -> Option<Self> {
        let parts: Vec<&Repeated> = parts.into_iter().collect();
        let repetitions = parts.iter().map(|part| part.values.len()).min()?;
        Self::new(
            (0..repetitions)
                .map(|repetition| parts.iter().map(|part| part.values[repetition]).sum())
                .collect(),
        )
    }
}

/// How far `simulated` is from hardware; nothing when it lies inside the hardware's own spread.
pub fn distance(simulated: f64, hardware: &Repeated) -> f64 {
    if simulated >= hardware.least() && simulated <= hardware.most() {
        0.0
    } else {
        (simulated - hardware.median()).abs()
    }
}

/// |ln(simulated / hardware)|, nothing inside the spread; infinite when one of them is nothing.
pub fn log_distance(simulated: f64, hardware: &Repeated) -> f64 {
    if distance(simulated, hardware) == 0.0 {
        0.0
    } else if simulated <= 0.0 || hardware.median() <= 0.0 {
        f64::INFINITY
    } else {
        (simulated / hardware.median()).ln().abs()
    }
}

/// A program's error: the sum of its kernels' distances over the sum of their hardware values.
///
/// Never the error of the sum, in which kernels that are too slow would pay for those too fast.
pub fn program_error<'kernel>(
    kernels: impl IntoIterator<Item = (f64, &'kernel Repeated)>,
) -> Option<f64> {
    let (mut off, mut whole) = (0.0, 0.0);
    for (simulated, hardware) in kernels {
        off += distance(simulated, hardware);
        whole += hardware.median();
    }
    (whole > 0.0).then(|| off / whole)
}

/// The error of a traffic counter: relative to hardware, but never to less than 5 % of the
/// footprint, so that a counter near zero does not decide.
pub fn traffic_error(simulated: f64, hardware: &Repeated, footprint: f64) -> f64 {
    let base = hardware.median().max(0.05 * footprint);
    let off = distance(simulated, hardware);
    if off == 0.0 {
        0.0
    } else if base > 0.0 {
        off / base
    } else {
        f64::INFINITY
    }
}

/// Kernels with less net cycles form a stratum of their own.
pub const SMALL_KERNEL_CYCLES: f64 = 20_000.0;

/// Whether a kernel of that stratum is right: within 10 % or 400 cycles a launch.
pub fn small_kernel_is_right(simulated: f64, hardware: &Repeated, launches: usize) -> bool {
    let off = distance(simulated, hardware);
    off <= 0.1 * hardware.median() || off <= 400.0 * launches as f64
}

/// The arithmetic mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The middle value, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The least value that at least nine tenths do not exceed.
pub fn ninetieth_percentile(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (sorted.len() * 9).div_ceil(10);
    rank.checked_sub(1).map(|index| sorted[index])
}

/// The largest value.
pub fn maximum(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

/// The mean of errors, each weighted by the time that hardware spends.
pub fn time_weighted_mean(errors: &[f64], times: &[f64]) -> Option<f64> {
    let whole: f64 = times.iter().sum();
    let off: f64 = errors
        .iter()
        .zip(times)
        .map(|(error, time)| error * time)
        .sum();
    (whole > 0.0).then(|| off / whole)
}

/// exp(mean |ln(sim/hw)|) − 1 of such logarithms: half and twice weigh the same.
pub fn log_error(log_distances: &[f64]) -> Option<f64> {
    mean(log_distances).map(|mean| mean.exp() - 1.0)
}

/// R² in log space, of the claim that simulated equals hardware: 1 − Σ(ln s − ln h)² / Σ(ln h − m)².
pub fn log_r_squared(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .filter(|(simulated, hardware)| *simulated > 0.0 && *hardware > 0.0)
        .map(|(simulated, hardware)| (simulated.ln(), hardware.ln()))
        .collect();
    let middle = mean(
        &logs
            .iter()
            .map(|(_, hardware)| *hardware)
            .collect::<Vec<_>>(),
    )?;
    let spread: f64 = logs.iter().map(|(_, h)| (h - middle).powi(2)).sum();
    let residue: f64 = logs.iter().map(|(s, h)| (s - h).powi(2)).sum();
    (spread > 0.0).then(|| 1.0 - residue / spread)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A distribution of errors as the protocol prints it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// How many.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub median: f64,
    /// Their 90th percentile.
    pub ninetieth: f64,
    /// The largest.
    pub maximum: f64,
    /// Their mean, weighted by hardware time.
    pub time_weighted: f64,
}

impl Summary {
    /// Of errors and the hardware times that weigh them; nothing when there are none.
    pub fn of(errors: &[f64], times: &[f64]) -> Option<Self> {
        Some(Self {
            count: errors.len(),
            mean: mean(errors)?,
            median: median(errors)?,
            ninetieth: ninetieth_percentile(errors)?,
            maximum: maximum(errors)?,
            time_weighted: time_weighted_mean(errors, times)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hardware(values: &[f64]) -> Repeated {
        Repeated::new(values.to_vec()).expect("values")
    }

    fn close(got: f64, wanted: f64) {
        assert!((got - wanted).abs() < 1e-9, "{got} is not {wanted}");
    }

    #[test]
    fn inside_the_spread_there_is_no_error() {
        let measured = hardware(&[90.0, 100.0, 120.0, 101.0, 99.0]);
        close(measured.median(), 100.0);
        for simulated in [90.0, 95.0, 120.0] {
            close(distance(simulated, &measured), 0.0);
        }
        // Outside, the distance is to the median and not to the edge.
        close(distance(121.0, &measured), 21.0);
        close(distance(80.0, &measured), 20.0);
    }

    #[test]
    fn a_programs_error_does_not_let_kernels_cancel() {
        // +50 of 100 and -50 of 300: the sums agree, the kernels do not.
        let (first, second) = (hardware(&[100.0]), hardware(&[300.0]));
        close(
            program_error([(150.0, &first), (250.0, &second)]).expect("error"),
            100.0 / 400.0,
        );
        // A kernel that is missing in the simulation is wholly off.
        close(
            program_error([(0.0, &first), (300.0, &second)]).expect("error"),
            0.25,
        );
        assert_eq!(program_error([]), None);
    }

    #[test]
    fn launches_of_a_kernel_are_summed_by_repetition() {
        // Sums are 11, 22, 33: the third launch lacks two repetitions, so only three count.
        let parts = [
            hardware(&[1.0, 2.0, 3.0]),
            hardware(&[10.0, 20.0, 30.0, 40.0, 50.0]),
        ];
        let sum = Repeated::sum(&parts).expect("sum");
        assert_eq!(sum.values(), [11.0, 22.0, 33.0]);
        assert!(!sum.repeats());
        assert_eq!(Repeated::sum([]), None);
    }

    #[test]
    fn traffic_is_measured_against_a_share_of_the_footprint() {
        // Hardware wrote 32 bytes, the simulator 132, of 10,000: relative to 500 and not to 32.
        close(traffic_error(132.0, &hardware(&[32.0]), 10_000.0), 0.2);
        // Above 5 % of the footprint, hardware is the base.
        close(traffic_error(1_100.0, &hardware(&[1_000.0]), 10_000.0), 0.1);
        close(traffic_error(0.0, &hardware(&[0.0]), 0.0), 0.0);
        assert_eq!(traffic_error(1.0, &hardware(&[0.0]), 0.0), f64::INFINITY);
    }

    #[test]
    fn small_kernels_may_be_ten_percent_or_400_cycles_off() {
        let measured = hardware(&[3_000.0]);
        assert!(small_kernel_is_right(3_400.0, &measured, 1));
        assert!(!small_kernel_is_right(3_401.0, &measured, 1));
        let longer = hardware(&[10_000.0]);
        assert!(small_kernel_is_right(11_000.0, &longer, 1));
        assert!(!small_kernel_is_right(11_001.0, &longer, 1));
        // 400 cycles are for each launch.
        assert!(small_kernel_is_right(10_000.0 + 1_200.0, &longer, 3));
    }

    #[test]
    fn averages_are_what_a_pencil_says() {
        let errors = [0.1, 0.2, 0.3, 1.0];
        close(mean(&errors).expect("mean"), 0.4);
        close(median(&errors).expect("median"), 0.25);
        close(median(&[3.0, 1.0, 2.0]).expect("median"), 2.0);
        close(maximum(&errors).expect("maximum"), 1.0);
        // Nine of ten values are at most 9.
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        close(ninetieth_percentile(&ten).expect("percentile"), 9.0);
        close(ninetieth_percentile(&[5.0]).expect("percentile"), 5.0);
        assert_eq!(
            (mean(&[]), median(&[]), ninetieth_percentile(&[])),
            (None, None, None)
        );
    }

    #[test]
    fn time_weighs_errors() {
        // 10 % of 900 and 100 % of 100: 190 of 1,000.
        close(
            time_weighted_mean(&[0.1, 1.0], &[900.0, 100.0]).expect("mean"),
            0.19,
        );
        assert_eq!(time_weighted_mean(&[], &[]), None);
    }

    #[test]
    fn half_and_twice_weigh_the_same_in_logarithms() {
        let measured = hardware(&[100.0]);
        let logs = [
            log_distance(50.0, &measured),
            log_distance(200.0, &measured),
        ];
        close(log_error(&logs).expect("error"), 1.0);
        // MAPE sees 50 % and 100 %.
        close(distance(50.0, &measured) / 100.0, 0.5);
        close(distance(200.0, &measured) / 100.0, 1.0);
        assert_eq!(log_distance(0.0, &measured), f64::INFINITY);
        close(log_distance(100.0, &measured), 0.0);
    }

    #[test]
    fn r_squared_is_of_the_identity_in_log_space() {
        let e = std::f64::consts::E;
        // Logarithms of hardware 0, 1, 2 (spread 2); of simulated 0, 1, 3 (residue 1).
        let points = [(1.0, 1.0), (e, e), (e.powi(3), e * e)];
        close(log_r_squared(&points).expect("figure"), 0.5);
        // Twice everywhere correlates perfectly and is still wrong: spread 2, residue 3 ln² 2.
        let twice = [(2.0, 1.0), (2.0 * e, e), (2.0 * e * e, e * e)];
        close(
            log_r_squared(&twice).expect("figure"),
            1.0 - 3.0 * 2f64.ln().powi(2) / 2.0,
        );
        assert_eq!(log_r_squared(&[(1.0, 1.0)]), None);
    }
}
