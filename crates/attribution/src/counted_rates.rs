//! What a warp of each kernel adds to each counter, from a run that counted it exactly.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why nothing is known from a run.
#[derive(Debug, Error)]
pub enum RatesError {
    /// The file cannot be read.
    #[error("{}: cannot read the launches of an exact run: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system or the file's form is about.
        source: csv::Error,
    },
    /// A column is missing.
    #[error("{}: not the launches of a run: there is no column `{column}`", path.display())]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// Its name.
        column: &'static str,
    },
    /// Nothing in it was counted exactly.
    #[error("{}: no launch was counted exactly; make the run with `lockstep sample --exact`", path.display())]
    NothingExact {
        /// The file.
        path: PathBuf,
    },
}

/// Rates by kernel, then by counter.
#[derive(Clone, Debug, Default)]
pub struct Rates(BTreeMap<String, Vec<Option<f64>>>);

impl FromIterator<(String, Vec<Option<f64>>)> for Rates {
    fn from_iter<T: IntoIterator<Item = (String, Vec<Option<f64>>)>>(rates: T) -> Self {
        Self(rates.into_iter().collect())
    }
}

impl Rates {
    /// Reads the launches of an exact run in `folder`, for `counters` in their order.
    pub fn read(folder: &Path, counters: &[&'static str]) -> Result<Self, RatesError> {
        let path = folder.join("kernels.csv");
        let unreadable = |source| RatesError::Unreadable {
            path: path.clone(),
            source,
        };
        let text = fs::read(&path).map_err(|error| unreadable(error.into()))?;
        let mut reader = csv::Reader::from_reader(text.as_slice());
        let header = reader.headers().map_err(unreadable)?.clone();
        let place = |name: &str| header.iter().position(|column| column == name);
        let demand = |column: &'static str| {
            let path = path.clone();
            place(column).ok_or(RatesError::NoColumn { path, column })
        };
        let (kernel, exact, warps) = (
            demand("kernel")?,
            demand("exact")?,
            demand("warps_launched")?,
        );
        let places: Vec<Option<usize>> = counters.iter().map(|name| place(name)).collect();
        let mut sums: BTreeMap<String, (f64, Vec<Option<f64>>)> = BTreeMap::new();
        for row in reader.records() {
            let row = row.map_err(unreadable)?;
            let number = |place: usize| row.get(place).and_then(|text| text.parse::<f64>().ok());
            let Some(count) = number(warps).filter(|_| row.get(exact) == Some("exact")) else {
                continue;
            };
            let name = row.get(kernel).unwrap_or_default().to_owned();
            let (warps, growth) = sums
                .entry(name)
                .or_insert_with(|| (0.0, vec![None; counters.len()]));
            *warps += count;
            for (sum, place) in growth.iter_mut().zip(&places) {
                if let Some(value) = place.and_then(number) {
                    *sum = Some(sum.unwrap_or(0.0) + value);
                }
            }
        }
        sums.retain(|_, (warps, _)| *warps > 0.0);
        if sums.is_empty() {
            return Err(RatesError::NothingExact { path });
        }
        let rate = |(kernel, (warps, sums)): (String, (f64, Vec<Option<f64>>))| {
            let rates = sums.into_iter().map(|sum| sum.map(|sum| sum / warps));
            (kernel, rates.collect())
        };
        Ok(sums.into_iter().map(rate).collect())
    }

    /// What a warp of `kernel` adds to a counter, if that was counted.
    pub fn of(&self, kernel: &str, counter: usize) -> Option<f64> {
        *self.0.get(kernel)?.get(counter)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, text: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("lockstep-rates-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("kernels.csv"), text).unwrap();
        folder
    }

    #[test]
    fn rates_are_means_over_all_exact_launches() {
        let text = "launch,kernel,inst_executed,warps_launched,exact\n\
            0,\"a<1,2>\",100,10,exact\n1,\"a<1,2>\",500,20,exact\n2,b,7,,exact\n3,b,70,7,estimated\n";
        let folder = folder("means", text);
        let rates = Rates::read(
            &folder,
            &["warps_launched", "inst_executed", "active_cycles"],
        );
        let rates = rates.unwrap();
        assert_eq!(rates.of("a<1,2>", 1), Some(20.0));
        assert_eq!(rates.of("a<1,2>", 2), None);
        assert_eq!(rates.of("b", 1), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_no_exact_run_is_named() {
        let sampled = folder("sampled", "kernel,warps_launched,exact\na,1,estimated\n");
        let error = Rates::read(&sampled, &[]).unwrap_err().to_string();
        assert!(
            error.ends_with("make the run with `lockstep sample --exact`"),
            "{error}"
        );
        let other = folder("other", "a,b\n1,2\n");
        let error = Rates::read(&other, &[]).unwrap_err().to_string();
        assert!(error.ends_with("there is no column `kernel`"), "{error}");
        let broken = folder("broken", "kernel,warps_launched,exact\na,1\n");
        let error = Rates::read(&broken, &[]).unwrap_err().to_string();
        assert!(error.contains("cannot read the launches"), "{error}");
        for folder in [sampled, other, broken] {
            fs::remove_dir_all(folder).unwrap();
        }
    }
}
