//! The known names closest to a misspelt one.

/// The three names that take the fewest edits from `wanted`, best first.
///
/// A name that contains what was typed (or the reverse) counts as close, so that `warps` finds
/// `warps_launched`.
pub fn nearest<'names>(wanted: &str, names: impl Iterator<Item = &'names str>) -> Vec<&'names str> {
    // Longer input is no name; bounding it bounds the work.
    let wanted: String = wanted.chars().take(96).collect::<String>().to_lowercase();
    let mut scored: Vec<(usize, &str)> = names
        .map(|name| {
            let contained = !wanted.is_empty() && (name.contains(&wanted) || wanted.contains(name));
            let distance = edits(&wanted, name);
            let longer = name.len().abs_diff(wanted.len());
            (
                if contained {
                    distance.min(2 + longer / 8)
                } else {
                    distance
                },
                name,
            )
        })
        .collect();
    scored.sort();
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Levenshtein distance, one row at a time.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_finds_its_name_first() {
        let names = [
            "inst_executed",
            "inst_issued",
            "active_cycles",
            "warps_launched",
        ];
        assert_eq!(
            nearest("inst_exeucted", names.into_iter())[0],
            "inst_executed"
        );
        assert_eq!(
            nearest("active_cycle", names.into_iter())[0],
            "active_cycles"
        );
        assert_eq!(nearest("warps", names.into_iter())[0], "warps_launched");
    }

    #[test]
    fn the_distance_is_the_number_of_edits() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", "abc"), 0);
    }
}
