//! From axes to every combination of their values.

use crate::file::{PLAIN, Part};
use std::collections::BTreeMap;
use toml::Value;

/// More points than anybody waits for are a mistake in the file.
pub(crate) const MOST_POINTS: usize = 100_000;

/// What one point sets: values by key.
pub(crate) type Assignment = BTreeMap<String, Value>;

/// How many points a part has; nothing if there are too many to count.
fn size(part: &Part) -> Option<usize> {
    part.axes
        .iter()
        .try_fold(1usize, |size, axis| size.checked_mul(axis.length()))
}

/// The points of all parts, the last axis fastest; nothing if there are more than [`MOST_POINTS`].
pub(crate) fn combinations(parts: &[Part]) -> Option<Vec<Assignment>> {
    let mut sizes = parts.iter().map(size);
    let all = sizes.try_fold(0usize, |all, size| all.checked_add(size?))?;
    if all > MOST_POINTS {
        return None;
    }
    Some(parts.iter().flat_map(of_part).collect())
}

fn of_part(part: &Part) -> Vec<Assignment> {
    let mut points = vec![part.fixed.clone()];
    for axis in &part.axes {
        let chosen = |below: &Assignment, place: usize| {
            let mut point = below.clone();
            for (key, values) in &axis.values {
                point.insert(key.clone(), values[place].clone());
            }
            point
        };
        points = points
            .iter()
            .flat_map(|below| (0..axis.length()).map(move |place| chosen(below, place)))
            .collect();
    }
    points
}

/// Keys that vary somewhere, those of a run first and then settings, as they are written.
pub(crate) fn varied(parts: &[Part]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    let written = parts
        .iter()
        .flat_map(|part| part.axes.iter().flat_map(|axis| axis.values.keys()));
    for key in written {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys.sort_by_key(|key| {
        PLAIN
            .iter()
            .position(|plain| plain == key)
            .unwrap_or(PLAIN.len())
    });
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::File;

    fn points(text: &str) -> Option<Vec<String>> {
        let file = File::parse("x", text).unwrap();
        let points = combinations(&file.parts)?;
        let said = |point: &Assignment| {
            let values = point.iter().map(|(key, value)| format!("{key}={value}"));
            values.collect::<Vec<_>>().join(" ")
        };
        Some(points.iter().map(said).collect())
    }

    #[test]
    fn a_grid_is_every_combination_and_a_list_moves_together() {
        let seen = points("[grid]\nb = [1, 2]\n[[list]]\nc = [5, 6]\nd = [7, 8]\n");
        assert_eq!(
            seen.unwrap(),
            ["b=1 c=5 d=7", "b=1 c=6 d=8", "b=2 c=5 d=7", "b=2 c=6 d=8"]
        );
    }

    #[test]
    fn a_file_without_axes_is_one_point() {
        assert_eq!(points("[set]\na = 1\n").unwrap(), ["a=1"]);
    }

    #[test]
    fn more_points_than_anybody_waits_for_are_none() {
        let many = (0..64).map(|key| format!("k{key} = [1, 2]\n"));
        assert_eq!(
            points(&format!("[grid]\n{}", many.collect::<String>())),
            None
        );
    }
}
