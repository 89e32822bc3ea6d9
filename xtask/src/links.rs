//! Links between the pages of the repository lead somewhere.

use crate::{process, project};
use anyhow::{Context, Result, bail};
use std::path::Path;

/// Checks every relative link of every committed page; an error lists those that lead nowhere.
pub fn check() -> Result<()> {
    let mut broken = Vec::new();
    for page in process::git(&["ls-files", "*.md"])?.lines() {
        let path = project::root().join(page);
        let text = std::fs::read_to_string(&path).with_context(|| page.to_string())?;
        let folder = path.parent().unwrap_or(Path::new("."));
        for target in targets(&text) {
            if !folder.join(target).exists() {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    if !broken.is_empty() {
        bail!("links that lead nowhere:\n{}", broken.join("\n"));
    }
    Ok(())
}

/// What a page's links name inside the repository, without the place on the page.
fn targets(text: &str) -> Vec<&str> {
    let mut code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if code {
            continue;
        }
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', '#', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                found.push(target);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_leads_somewhere() {
        check().unwrap();
    }

    #[test]
    fn links_into_the_repository_are_found_and_others_are_not() {
        let page = "[a](b.md) and [c](../d.md#e)\n```\nx[0](y)\n```\n[f](https://g.h) [i](#j)\n";
        assert_eq!(targets(page), ["b.md", "../d.md"]);
    }
}
