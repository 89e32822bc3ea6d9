//! `cargo xtask book`: the book as a site, built with mdBook where that is installed; its chapters and links are
//! checked in any case.
//!
//! Pages of the book link to the reference and to decisions, which lie beside it. So a source for mdBook is put
//! together under `target/book`, with all three, and chapters for all pages.

use crate::{links, process, project};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Folders of pages, the book first.
const FOLDERS: [&str; 3] = ["book", "reference", "decisions"];
/// Pictures of the book, taken by `cargo xtask viewer --pictures`.
const PICTURES: &str = "book/pictures";
/// How long mdBook may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Build the book with mdBook if it is installed, and check its chapters and links.
#[derive(Args)]
pub struct Book {}

impl Book {
    /// Runs it.
    pub fn run(self) -> Result<()> {
        build()
    }
}

/// Checks the book, and builds it if that is possible here.
pub fn build() -> Result<()> {
    check()?;
    links::check()?;
    let installed = process::capture(process::command("mdbook").arg("--version"), PATIENCE);
    if !installed.is_ok_and(|version| version.success()) {
        process::step("the book was checked; install mdbook to build it as a site");
        return Ok(());
    }
    let place = project::target().join("book");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    assemble(&place)?;
    process::run(process::command("mdbook").arg("build").arg(&place))?;
    process::step(&format!(
        "the book is in {}",
        project::shown(&place.join("book"))
    ));
    Ok(())
}

/// Every page of the book is a chapter, and every chapter a page.
pub fn check() -> Result<()> {
    let folder = project::root().join("docs/book");
    let summary = fs::read_to_string(folder.join("SUMMARY.md"))?;
    let mut missing = Vec::new();
    for name in pages(&folder)? {
        if name != "SUMMARY.md" && !summary.contains(&format!("]({name})")) {
            missing.push(name);
        }
    }
    if !missing.is_empty() {
        bail!(
            "docs/book/SUMMARY.md does not list {}: add a line for each",
            missing.join(", ")
        );
    }
    Ok(())
}

/// Names of the pages in a folder, in order.
fn pages(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| project::shown(folder))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// A source for mdBook with all pages at the places that their links expect.
fn assemble(place: &Path) -> Result<()> {
    let (docs, source) = (project::root().join("docs"), place.join("src"));
    let mut chapters = String::new();
    for folder in FOLDERS {
        let (from, to) = (docs.join(folder), source.join(folder));
        copy_files(&from, &to)?;
        chapters += &match folder {
            "book" => prefixed(&fs::read_to_string(from.join("SUMMARY.md"))?),
            _ => listed(folder, &from)?,
        };
    }
    copy_files(&docs.join(PICTURES), &source.join(PICTURES))?;
    fs::write(source.join("SUMMARY.md"), chapters)?;
    let about = "[book]\ntitle = \"Lockstep\"\nlanguage = \"en\"\n\n[output.html]\nno-section-label = true\n";
    fs::write(place.join("book.toml"), about)?;
    Ok(())
}

/// The files of a folder, without those of folders in it.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| project::shown(from))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// The chapters of the book, in its folder. mdBook takes lists and titles, and no other lines.
fn prefixed(summary: &str) -> String {
    let mut text = "# Summary\n".to_string();
    for line in summary.lines() {
        if let Some(rest) = line.strip_prefix("- [") {
            text += &format!("\n- [{}", rest.replacen("](", "](book/", 1));
        } else if !line.is_empty() && !line.contains("](") && !line.starts_with('#') {
            text += &format!("\n\n# {line}\n");
        }
    }
    text
}

/// A part with the pages of a folder.
fn listed(folder: &str, from: &Path) -> Result<String> {
    let mut text = format!("\n\n# {}{}\n", folder[..1].to_uppercase(), &folder[1..]);
    for name in pages(from)? {
        let page = fs::read_to_string(from.join(&name))?;
        let title = page.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.unwrap_or(&name).replace(['[', ']'], "");
        text += &format!("\n- [{title}]({folder}/{name})");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_a_chapter() {
        check().unwrap();
    }

    #[test]
    fn chapters_keep_their_order_and_parts() {
        let summary = "# The book\n\nUsing it\n\n- [One](one.md)\n\nWords are in [x](../x.md).\n";
        let expected = "# Summary\n\n\n# Using it\n\n- [One](book/one.md)";
        assert_eq!(prefixed(summary), expected);
    }
}
