//! A report as headings, paragraphs, lists, tables and figures, and its forms for terminals and
//! Markdown. HTML has a file of its own.

use lockstep_text::{Align, Table};
use std::fmt::Write;

/// Letters of a line of text; tables are as wide as they are.
const MAXIMUM_WIDTH: usize = 100;

/// A text with its parts in order.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// What it is called.
    pub title: String,
    /// Its parts.
    pub blocks: Vec<Block>,
}

/// One part.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading, of level 2 or 3.
    Heading(u8, String),
    /// A paragraph.
    Paragraph(String),
    /// Sentences one below the other.
    List(Vec<String>),
    /// A table.
    Table(Grid),
    /// A picture as SVG with what it shows; only pages have it.
    Figure(String, String),
    /// More than a terminal wants to see: only pages have it, closed at first.
    Details(String, Grid),
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// Names of columns and the side they keep to.
    pub columns: Vec<(&'static str, Align)>,
    /// Rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell, with a longer text at hand where there is room for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// What a page shows when asked for more.
    pub hint: Option<String>,
    /// How full a page draws it, from 0 to 1.
    pub bar: Option<f64>,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

impl Cell {
    /// With a longer text, if that says more.
    pub fn hint(mut self, hint: &str) -> Self {
        self.hint = (hint != self.text).then(|| hint.to_string());
        self
    }

    /// With a bar behind it.
    pub fn bar(mut self, share: Option<f64>) -> Self {
        self.bar = share.map(|share| share.clamp(0.0, 1.0));
        self
    }
}

impl Grid {
    /// A table with these columns.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    fn as_table(&self) -> Table {
        let mut table = Table::new(&self.columns);
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| cell.text.clone()).collect();
            table.row(&cells);
        }
        table
    }
}

impl Document {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("── {} ──\n", self.title);
        for block in &self.blocks {
            let _ = match block {
                Block::Heading(2, title) => writeln!(text, "\n── {title} ──"),
                Block::Heading(_, title) => writeln!(text, "\n{title}"),
                Block::Paragraph(words) => writeln!(text, "{}", wrapped(words, "")),
                Block::List(items) => {
                    for item in items {
                        let _ = writeln!(text, "- {}", wrapped(item, "  "));
                    }
                    Ok(())
                }
                Block::Table(grid) => write!(text, "{}", grid.as_table()),
                Block::Figure(..) | Block::Details(..) => Ok(()),
            };
        }
        text
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n", plain(&self.title));
        for block in &self.blocks {
            match block {
                Block::Heading(level, title) => {
                    let signs = "#".repeat(usize::from(*level));
                    let _ = writeln!(text, "\n{signs} {}", plain(title));
                }
                Block::Paragraph(words) => {
                    let _ = writeln!(text, "\n{}", plain(words));
                }
                Block::List(items) => {
                    text.push('\n');
                    for item in items {
                        let _ = writeln!(text, "- {}", plain(item));
                    }
                }
                Block::Table(grid) => {
                    text.push('\n');
                    text.push_str(&markdown_table(grid));
                }
                Block::Figure(..) | Block::Details(..) => {}
            }
        }
        text
    }
}

/// Words in lines that a terminal has room for.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut width = indent.len();
    for word in text.split(' ') {
        let length = word.chars().count();
        if width + 1 + length > MAXIMUM_WIDTH && width > indent.len() {
            lines.push('\n');
            lines.push_str(indent);
            width = indent.len();
        } else if width > indent.len() {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines
}

fn markdown_table(grid: &Grid) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(grid.columns.iter().map(|(name, _)| plain(name)).collect());
    let rule = grid.columns.iter().map(|(_, align)| match align {
        Align::Left => "---".to_string(),
        Align::Right => "---:".to_string(),
    });
    text.push_str(&line(rule.collect()));
    for row in &grid.rows {
        text.push_str(&line(row.iter().map(|cell| plain(&cell.text)).collect()));
    }
    text
}

/// Text that Markdown takes as it is: names of kernels carry `<`, `*`, `_` and `|`.
fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut code = false;
    for letter in text.chars() {
        code ^= letter == '`';
        match letter {
            '<' => safe.push_str("&lt;"),
            '|' => safe.push_str("\\|"),
            '*' | '_' | '[' | ']' | '\\' if !code => safe.extend(['\\', letter]),
            '\n' | '\r' => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_stays_text_in_markdown() {
        let mut grid = Grid::new(&[("kernel", Align::Left)]);
        grid.rows.push(vec!["<script>a|b*c_d".into()]);
        let page = Document {
            title: "runs".into(),
            blocks: vec![Block::Table(grid)],
        };
        assert_eq!(
            page.markdown(),
            "# runs\n\n| kernel |\n| --- |\n| &lt;script>a\\|b\\*c\\_d |\n"
        );
        assert!(page.text().contains("<script>a|b*c_d"));
    }
}
