//! A topology for people: as text and as a graph.

use std::fmt::Write;

use crate::Topology;

impl Topology {
    /// Partitions and links as aligned text.
    pub fn text(&self) -> String {
        let cycles = self.clock().whole_cycles(self.epoch());
        let mut rows = vec![["kind".to_owned(), "count".to_owned(), "numbers".to_owned()]];
        for kind in self.kinds() {
            let count = kind.ids.end - kind.ids.start;
            let numbers = match count {
                0 => "none".to_owned(),
                1 => kind.ids.start.to_string(),
                _ => format!("{} to {}", kind.ids.start, kind.ids.end - 1),
            };
            rows.push([kind.name.clone(), count.to_string(), numbers]);
        }
        let mut out = format!(
            "clock {}, epoch {} ({cycles}), {} partitions\n\n",
            self.clock(),
            self.epoch(),
            self.partitions()
        );
        write_table(&mut out, &rows);
        let mut rows =
            vec![["link", "from", "to", "latency", "cycles", "bandwidth"].map(String::from)];
        for link in self.links() {
            rows.push([
                link.name.clone(),
                self.kind(link.from).name.clone(),
                self.kind(link.to).name.clone(),
                link.latency.to_string(),
                self.clock().whole_cycles(link.latency).0.to_string(),
                link.bandwidth
                    .map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string()),
            ]);
        }
        out.push('\n');
        write_table(&mut out, &rows);
        out
    }

    /// Partitions and links in the language of Graphviz.
    pub fn graphviz(&self) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut out =
            String::from("digraph topology {\n    rankdir = LR;\n    node [shape = box];\n");
        for kind in self.kinds() {
            let name = quoted(&kind.name);
            let count = kind.ids.end - kind.ids.start;
            let _ = writeln!(out, "    \"{name}\" [label = \"{name}\\n{count}\"];");
        }
        for link in self.links() {
            let rate = link
                .bandwidth
                .map_or_else(String::new, |rate| format!("\\n{rate}"));
            let _ = writeln!(
                out,
                "    \"{}\" -> \"{}\" [label = \"{}\\n{}{rate}\"];",
                quoted(&self.kind(link.from).name),
                quoted(&self.kind(link.to).name),
                quoted(&link.name),
                link.latency,
            );
        }
        out.push_str("}\n");
        out
    }
}

/// Writes rows in columns as wide as their widest cell.
fn write_table<const N: usize>(out: &mut String, rows: &[[String; N]]) {
    let widths: [usize; N] = std::array::from_fn(|column| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    });
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
