//! Statistics of many components, for writers and for the digest.
//!
//! A GPU has tens of thousands of statistics, so they are kept as numbers, kind by kind of component;
//! rows are made where somebody reads them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::declare::Kind;
use crate::{Description, Digest, DigestTree, Hasher, Histogram, Statistics, Value};

/// Parts of a path that name what has a digest of its own: "gpu 0/sm/17".
const DIGEST_PARTS: usize = 3;

/// One number of one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'table> {
    /// Path of the component: "gpu 0/sm/17".
    pub component: &'table str,
    /// Name of the statistic; of a histogram, with what about it: "latency.sum".
    pub name: Cow<'static, str>,
    /// What it counts in.
    pub unit: &'static str,
    /// The value.
    pub value: u64,
    /// Sentence that says what it counts.
    pub help: &'static str,
}

/// What one component counted.
#[derive(Clone, Debug)]
struct Component {
    path: String,
    kind: usize,
    /// Where its numbers and histograms begin.
    first: (usize, usize),
}

/// What components of one kind count.
#[derive(Clone, Debug)]
struct ComponentKind {
    /// Where its declaration lies, which no other kind shares.
    declaration: usize,
    descriptions: Vec<&'static Description>,
}

/// The statistics of many components.
#[derive(Clone, Debug, Default)]
pub struct Table {
    kinds: Vec<ComponentKind>,
    components: Vec<Component>,
    numbers: Vec<u64>,
    histograms: Vec<Histogram>,
}

impl Table {
    /// Adds what one component counted.
    pub fn add<S: Statistics>(&mut self, component: &str, statistics: &S) {
        let declaration = S::DESCRIPTIONS.as_ptr() as usize;
        let mut kinds = self.kinds.iter();
        let kind = match kinds.position(|kind| kind.declaration == declaration) {
            Some(kind) => kind,
            None => {
                let mut descriptions = Vec::new();
                statistics.visit(&mut |description, _| descriptions.push(description));
                self.kinds.push(ComponentKind {
                    declaration,
                    descriptions,
                });
                self.kinds.len() - 1
            }
        };
        self.components.push(Component {
            path: component.to_owned(),
            kind,
            first: (self.numbers.len(), self.histograms.len()),
        });
        statistics.visit(&mut |_, value| match value {
            Value::Number(number) => self.numbers.push(number),
            Value::Histogram(histogram) => self.histograms.push(histogram.clone()),
        });
    }

    /// The number of kinds of components.
    #[must_use]
    pub fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// Path, kind and values of each component, in the order in which they were added.
    pub fn components(&self) -> impl Iterator<Item = (&str, usize, Values<'_>)> {
        self.components.iter().map(|component| {
            let (number, histogram) = component.first;
            let values = Values {
                descriptions: &self.kinds[component.kind].descriptions,
                numbers: &self.numbers[number..],
                histograms: &self.histograms[histogram..],
            };
            (component.path.as_str(), component.kind, values)
        })
    }

    /// All rows, in the order in which components were added.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for (component, _, values) in self.components() {
            values.each(&mut |description, name, unit, value| {
                rows.push(Row {
                    component,
                    name: name.map_or(Cow::Borrowed(description.name), Cow::Owned),
                    unit,
                    value,
                    help: description.help,
                });
            });
        }
        rows
    }

    /// The digest of each part of the GPU; everything below a path of three parts is one.
    #[must_use]
    pub fn digests(&self) -> DigestTree {
        let shapes: Vec<Digest> = self.kinds.iter().map(ComponentKind::shape).collect();
        let mut parts: BTreeMap<&str, Hasher> = BTreeMap::new();
        for (path, kind, values) in self.components() {
            let mut slashes = path.match_indices('/').map(|(at, _)| at);
            let (part, rest) = path.split_at(slashes.nth(DIGEST_PARTS - 1).unwrap_or(path.len()));
            let hasher = parts
                .entry(part)
                .or_insert_with(|| Hasher::new("statistics"));
            hasher.text(rest);
            hasher.digest(shapes[kind]);
            values.hash(hasher);
        }
        let mut tree = DigestTree::default();
        for (part, hasher) in parts {
            tree.insert(part, hasher.finish());
        }
        tree
    }
}

impl ComponentKind {
    /// The digest of names and units.
    fn shape(&self) -> Digest {
        let mut hasher = Hasher::new("shape");
        for description in &self.descriptions {
            hasher.text(description.name);
            hasher.text(description.unit);
        }
        hasher.finish()
    }
}

/// The values of one component.
#[derive(Clone, Copy)]
pub struct Values<'table> {
    descriptions: &'table [&'static Description],
    numbers: &'table [u64],
    histograms: &'table [Histogram],
}

impl<'table> Values<'table> {
    /// What they are.
    #[must_use]
    pub fn descriptions(&self) -> &'table [&'static Description] {
        self.descriptions
    }

    /// Whether all of them are numbers: then there is one for each description.
    #[must_use]
    pub fn numbers(&self) -> Option<&'table [u64]> {
        let mut kinds = self.descriptions.iter().map(|description| description.kind);
        (!kinds.any(|kind| kind == Kind::Histogram))
            .then(|| &self.numbers[..self.descriptions.len()])
    }

    /// Calls `f` with each number: its description, its name if that is another, its unit, its value.
    pub fn each(
        &self,
        f: &mut impl FnMut(&'static Description, Option<String>, &'static str, u64),
    ) {
        let (mut numbers, mut histograms) = (self.numbers.iter(), self.histograms.iter());
        for description in self.descriptions {
            let (name, unit) = (description.name, description.unit);
            if description.kind != Kind::Histogram {
                f(
                    description,
                    None,
                    unit,
                    numbers.next().copied().unwrap_or(0),
                );
                continue;
            }
            let Some(histogram) = histograms.next() else {
                continue;
            };
            let mut about = |what: &str, unit, value| {
                f(description, Some(format!("{name}.{what}")), unit, value);
            };
            about("count", "samples", histogram.count());
            about("sum", unit, histogram.sum());
            about("largest", unit, histogram.largest());
            for (bound, count) in histogram.buckets() {
                about(&format!("up_to.{bound}"), "samples", count);
            }
        }
    }

    fn hash(&self, hasher: &mut Hasher) {
        if let Some(numbers) = self.numbers() {
            for number in numbers {
                hasher.number(*number);
            }
            return;
        }
        self.each(&mut |_, name, _, value| {
            hasher.text(name.as_deref().unwrap_or_default());
            hasher.number(value);
        });
    }
}
