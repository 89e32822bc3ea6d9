//! Which image of a fat binary runs, as the driver chooses.

use super::fatbinary::{Kind, Packed};

/// The best machine code for a GPU: same major version, the highest minor that is not above.
#[must_use]
pub fn cubin<'list, 'bytes>(
    entries: &'list [Packed<'bytes>],
    architecture: u32,
) -> Option<&'list Packed<'bytes>> {
    entries
        .iter()
        .filter(|entry| entry.kind == Kind::Cubin)
        .filter(|entry| {
            entry.architecture / 10 == architecture / 10 && entry.architecture <= architecture
        })
        .max_by_key(|entry| entry.architecture)
}

/// The best PTX for a GPU: the highest target that is not above, or, if there is none, the lowest
/// one above (then `true`: the driver would refuse it).
#[must_use]
pub fn ptx<'list, 'bytes>(
    entries: &'list [Packed<'bytes>],
    architecture: u32,
) -> Option<(&'list Packed<'bytes>, bool)> {
    let texts = || entries.iter().filter(|entry| entry.kind == Kind::Ptx);
    let fitting = texts()
        .filter(|entry| entry.architecture <= architecture)
        .max_by_key(|entry| entry.architecture);
    fitting.map(|entry| (entry, false)).or_else(|| {
        texts()
            .min_by_key(|entry| entry.architecture)
            .map(|entry| (entry, true))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(list: &[(Kind, u32)]) -> Vec<Packed<'static>> {
        list.iter()
            .map(|(kind, architecture)| Packed::plain(*kind, *architecture, &[]))
            .collect()
    }

    #[test]
    fn code_of_the_same_generation_runs_and_no_other() {
        let all = entries(&[
            (Kind::Cubin, 75),
            (Kind::Cubin, 80),
            (Kind::Cubin, 86),
            (Kind::Ptx, 75),
        ]);
        let chosen = |architecture| cubin(&all, architecture).map(|entry| entry.architecture);
        assert_eq!(chosen(80), Some(80));
        assert_eq!(chosen(89), Some(86));
        assert_eq!(chosen(90), None);
        assert_eq!(chosen(70), None);
    }

    #[test]
    fn the_newest_text_that_is_not_too_new_runs() {
        let all = entries(&[(Kind::Ptx, 52), (Kind::Ptx, 75), (Kind::Ptx, 100)]);
        assert_eq!(
            ptx(&all, 90).map(|(entry, newer)| (entry.architecture, newer)),
            Some((75, false))
        );
        let newer = entries(&[(Kind::Ptx, 100)]);
        assert_eq!(
            ptx(&newer, 90).map(|(entry, newer)| (entry.architecture, newer)),
            Some((100, true))
        );
    }
}
