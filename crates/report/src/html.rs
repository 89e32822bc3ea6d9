//! A document as one HTML file: no script, nothing from elsewhere, dark or light as the reader has it.
//!
//! Everything that is not written here passes [`escape`]; figures come from `charts.rs`, which does
//! the same. A policy in the head forbids the browser to load or run anything, whatever slipped through.

use crate::document::{Block, Cell, Document, Grid};
use lockstep_correlation::plot::escape;
use lockstep_text::Align;
use std::fmt::Write;

const STYLE: &str = "
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --faint: #d0d7de; --shade: #f3f5f7; --bar: #b6dcf5; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e3e6ea; --faint: #3a4149; --shade: #1f242a; --bar: #0b4a70; } }
body { background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--faint); } h3 { margin: 1.6rem 0 0.4rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.7rem; text-align: left; white-space: nowrap; } th { background: var(--shade); }
td.right, th.right { text-align: right; } tr + tr td { border-top: 1px solid var(--faint); }
td[title] { text-decoration: underline dotted; text-underline-offset: 3px; cursor: help; }
figure { margin: 1rem 0; max-width: 56rem; } figcaption { font-size: 0.85rem; opacity: 0.8; } summary { cursor: pointer; }
svg { width: 100%; height: auto; font: 13px system-ui, sans-serif; } svg text { fill: currentColor; }
.grid { stroke: var(--faint); fill: none; } .roof { fill: none; stroke-width: 2; }
";

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

impl Document {
    /// As a page of its own.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        );
        for block in &self.blocks {
            block_html(&mut page, block);
        }
        page.push_str("</body>\n</html>\n");
        page
    }
}

fn block_html(page: &mut String, block: &Block) {
    let _ = match block {
        Block::Heading(level, title) => writeln!(page, "<h{level}>{}</h{level}>", escape(title)),
        Block::Paragraph(words) => writeln!(page, "<p>{}</p>", marked(words)),
        Block::List(items) => {
            page.push_str("<ul>\n");
            for item in items {
                let _ = writeln!(page, "<li>{}</li>", marked(item));
            }
            writeln!(page, "</ul>")
        }
        Block::Table(grid) => {
            table(page, grid);
            Ok(())
        }
        Block::Figure(svg, caption) => writeln!(
            page,
            "<figure>\n{svg}<figcaption>{}</figcaption>\n</figure>",
            escape(caption)
        ),
        Block::Details(summary, grid) => {
            let _ = writeln!(page, "<details><summary>{}</summary>", escape(summary));
            table(page, grid);
            writeln!(page, "</details>")
        }
    };
}

/// Text with what stands between backticks as code.
fn marked(text: &str) -> String {
    let mut safe = String::new();
    for (place, part) in text.split('`').enumerate() {
        let tag = if place % 2 == 1 {
            ("<code>", "</code>")
        } else {
            ("", "")
        };
        safe.extend([tag.0, &escape(part), tag.1]);
    }
    safe
}

fn table(page: &mut String, grid: &Grid) {
    let side = |align: Align| match align {
        Align::Left => "",
        Align::Right => " class=\"right\"",
    };
    page.push_str("<div class=\"wide\"><table>\n<tr>");
    for (name, align) in &grid.columns {
        let _ = write!(page, "<th{}>{}</th>", side(*align), escape(name));
    }
    page.push_str("</tr>\n");
    for row in &grid.rows {
        page.push_str("<tr>");
        for (cell, (_, align)) in row.iter().zip(&grid.columns) {
            let _ = write!(
                page,
                "<td{}{}>{}</td>",
                side(*align),
                attributes(cell),
                escape(&cell.text)
            );
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

fn attributes(cell: &Cell) -> String {
    let mut text = String::new();
    if let Some(hint) = &cell.hint {
        let _ = write!(text, " title=\"{}\"", escape(hint));
    }
    if let Some(share) = cell.bar {
        let part = 100.0 * share;
        let _ = write!(
            text,
            " style=\"background: linear-gradient(to right, var(--bar) {part:.1}%, transparent {part:.1}%)\""
        );
    }
    text
}
