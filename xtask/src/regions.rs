//! Regions of pages that are written by hand: what stands between `<!-- begin NAME -->` and `<!-- end NAME -->` is made
//! from the code and from measurements.

use crate::project;
use anyhow::{Context, Result, bail};
use std::ops::Range;

/// A page, by its path in the repository.
pub fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(project::root().join(path)).with_context(|| path.to_string())
}

/// Range of a region's text in a page.
pub fn place(page: &str, name: &str) -> Result<Range<usize>> {
    let (begin, end) = (
        format!("<!-- begin {name} -->\n"),
        format!("<!-- end {name} -->\n"),
    );
    match (page.find(&begin), page.find(&end)) {
        (Some(from), Some(to)) if from < to => Ok(from + begin.len()..to),
        _ => bail!("the page has no region `{name}`: it must stand between {begin}and {end}"),
    }
}

/// The page with another text in a region.
pub fn with(page: &str, name: &str, text: &str) -> Result<String> {
    let place = place(page, name)?;
    Ok(format!(
        "{}\n{}\n\n{}",
        &page[..place.start],
        text.trim(),
        &page[place.end..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_replaced_and_the_rest_is_kept() {
        let page = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n";
        let new = with(page, "x", "new\n").expect("region");
        assert_eq!(new, "a\n<!-- begin x -->\n\nnew\n\n<!-- end x -->\nb\n");
        assert_eq!(with(&new, "x", "new").expect("region"), new);
        assert!(with(page, "y", "").is_err());
    }
}
