//! Logarithmic axes.

use super::text;
use lockstep_text::numbers::rounded;
use std::fmt::Write;

/// A logarithmic axis.
pub struct Axis {
    /// The power of ten at its beginning.
    pub low: f64,
    high: f64,
    /// Where it begins in the picture.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

impl Axis {
    /// Whole powers of ten around values that are above 0.
    pub fn around(values: &[f64], from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.iter().filter(|value| **value > 0.0) {
            low = low.min(value.log10());
            high = high.max(value.log10());
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let (low, high) = (low.floor(), high.ceil());
        Self {
            low,
            high: high.max(low + 1.0),
            from,
            to,
        }
    }

    /// Where a value lies in the picture.
    pub fn at(&self, value: f64) -> f64 {
        let place = (value.log10() - self.low) / (self.high - self.low);
        self.from + place.clamp(0.0, 1.0) * (self.to - self.from)
    }

    fn powers(&self) -> impl Iterator<Item = f64> {
        // Every so many, so that at most about 12 lines are drawn.
        let step = ((self.high - self.low) / 12.0).ceil().max(1.0) as usize;
        let powers = (self.low as i32..=self.high as i32).step_by(step);
        powers.map(|power| 10f64.powi(power))
    }
}

/// Lines at the powers of ten, and what the axes are.
pub fn frame(page: &mut String, x: &Axis, y: &Axis, names: [&str; 2]) {
    for value in x.powers() {
        let _ = writeln!(
            page,
            "<path class=\"grid\" d=\"M{0:.1} {1:.1}V{2:.1}\"/>",
            x.at(value),
            y.from,
            y.to
        );
        text(
            page,
            x.at(value),
            y.from + 18.0,
            "middle",
            &short_number(value),
        );
    }
    for value in y.powers() {
        let _ = writeln!(
            page,
            "<path class=\"grid\" d=\"M{0:.1} {1:.1}H{2:.1}\"/>",
            x.from,
            y.at(value),
            x.to
        );
        text(
            page,
            x.from - 6.0,
            y.at(value) + 4.0,
            "end",
            &short_number(value),
        );
    }
    text(
        page,
        (x.from + x.to) / 2.0,
        y.from + 38.0,
        "middle",
        names[0],
    );
    text(page, x.from, y.to - 10.0, "start", names[1]);
}

fn short_number(value: f64) -> String {
    if value >= 1.0 {
        rounded(value).replace(".0", "")
    } else {
        format!("{value}")
    }
}
