//! Forms of PTX, read from the grammar, and the kernel that shows what a form computes.

use super::values::Kind;

/// Threads of a block.
pub const BLOCK: usize = 256;

/// One instruction with its modifiers and how it is shown.
#[derive(Clone, Debug)]
pub struct Form {
    /// Spelling, and a tag in brackets where the spelling alone does not say it.
    pub name: String,
    spelling: String,
    results: Vec<Type>,
    operands: Vec<Type>,
    template: String,
    /// Type that the spelling ends with.
    last: Option<Type>,
}

/// A type of PTX as the kernel needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    name: &'static str,
    /// Bits of its registers; 1 is a predicate.
    pub bits: u32,
    /// What values an operand of the type takes.
    pub kind: Kind,
}

const TYPES: &[(&str, u32, Kind)] = &[
    ("u8", 32, Kind::Integer32),
    ("s8", 32, Kind::Integer32),
    ("b8", 32, Kind::Integer32),
    ("u16", 16, Kind::Integer16),
    ("s16", 16, Kind::Integer16),
    ("b16", 16, Kind::Integer16),
    ("u32", 32, Kind::Integer32),
    ("s32", 32, Kind::Integer32),
    ("b32", 32, Kind::Integer32),
    ("u64", 64, Kind::Integer64),
    ("s64", 64, Kind::Integer64),
    ("b64", 64, Kind::Integer64),
    ("b128", 128, Kind::Integer64),
    ("u16x2", 32, Kind::Integer16x2),
    ("s16x2", 32, Kind::Integer16x2),
    ("f16", 16, Kind::Half),
    ("f16x2", 32, Kind::Half2),
    ("bf16", 16, Kind::Brain),
    ("bf16x2", 32, Kind::Brain2),
    ("f32", 32, Kind::Single),
    ("tf32", 32, Kind::Single),
    ("f32x2", 64, Kind::Integer64),
    ("f64", 64, Kind::Double),
    ("e4m3x2", 16, Kind::Integer16),
    ("e5m2x2", 16, Kind::Integer16),
    ("pred", 1, Kind::Predicate),
    ("lane", 32, Kind::Lane),
    ("shift", 32, Kind::Shift),
    ("field", 32, Kind::Shift),
    ("few", 32, Kind::Few),
];

impl Type {
    fn named(name: &str) -> Option<Self> {
        let found = TYPES.iter().find(|(known, _, _)| *known == name);
        found.map(|&(name, bits, kind)| Self { name, bits, kind })
    }

    fn wider(self) -> Option<Self> {
        match self.name {
            "u16" | "s16" => Self::named("b32"),
            "u32" | "s32" => Self::named("b64"),
            _ => None,
        }
    }
}

/// All forms of the grammar, in its order; each name once.
pub fn forms() -> Vec<Form> {
    let mut groups: Vec<(&str, &str)> = Vec::new();
    let mut forms: Vec<Form> = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for line in include_str!("grammar.txt").lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(group) = line.strip_prefix('@') {
            groups.push(group.split_once(" = ").expect("a group is `@name = .a.b`"));
            continue;
        }
        let fields: Vec<&str> = line.split(" : ").collect();
        let mut pattern = fields[0].to_owned();
        // Longer names first, so that none is taken for the beginning of another.
        groups.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for (name, members) in &groups {
            pattern = pattern.replace(&format!("@{name}"), members);
        }
        for spelling in spellings(&pattern) {
            let form = Form::new(spelling, &fields);
            if names.insert(form.name.clone()) {
                forms.push(form);
            }
        }
    }
    forms
}

/// Every spelling of a pattern.
fn spellings(pattern: &str) -> Vec<String> {
    let mut made = vec![String::new()];
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let close = match first {
            '[' => Some(']'),
            '(' => Some(')'),
            _ => None,
        };
        let (choices, after): (Vec<String>, &str) = match close {
            Some(close) => {
                let (body, after) = rest[1..].split_once(close).expect("a bracket closes");
                let words = body.split('.').filter(|word| !word.is_empty());
                let mut choices: Vec<String> = words.map(|word| format!(".{word}")).collect();
                if close == ']' {
                    choices.insert(0, String::new());
                }
                (choices, after)
            }
            None => {
                let end = rest.find(['[', '(']).unwrap_or(rest.len());
                (vec![rest[..end].to_owned()], &rest[end..])
            }
        };
        made = made
            .iter()
            .flat_map(|start| choices.iter().map(move |choice| format!("{start}{choice}")))
            .collect();
        rest = after;
    }
    made
}

impl Form {
    fn new(spelling: String, fields: &[&str]) -> Self {
        let types: Vec<Type> = spelling.split('.').filter_map(Type::named).collect();
        let (first, last) = (types.first().copied(), types.last().copied());
        let read = |word: &str| {
            let kind = match word {
                "T" => last,
                "D" => first,
                "W" => last.and_then(Type::wider),
                word => Type::named(word),
            };
            kind.unwrap_or_else(|| panic!("`{spelling}` has no type {word}"))
        };
        let (results, operands) = match fields[1].split_once('=') {
            Some(sides) => sides,
            None => panic!("`{}` has no `results = operands`", fields[0]),
        };
        let list = |text: &str| text.split_whitespace().map(read).collect::<Vec<Type>>();
        let (results, operands) = (list(results), list(operands));
        let template = match fields.get(2) {
            Some(template) => (*template).to_owned(),
            None => plain(results.len(), operands.len()),
        };
        let name = match fields.get(3) {
            Some(tag) => format!("{spelling} ({tag})"),
            None => spelling.clone(),
        };
        Self {
            name,
            spelling,
            results,
            operands,
            template,
            last,
        }
    }

    /// What stands before the first dot.
    pub fn opcode(&self) -> &str {
        self.spelling.split('.').next().unwrap_or("")
    }

    /// How many vectors it is given. Forms that are many and alike get fewer.
    pub fn vectors(&self) -> usize {
        let few = ["set", "setp", "atom", "red", "ld", "ldu", "st"];
        let opcode = self.opcode();
        if few.contains(&opcode) || opcode.starts_with('v') {
            4 * BLOCK
        } else {
            16 * BLOCK
        }
    }

    /// Bytes that count of each result.
    pub fn result_bytes(&self) -> Vec<usize> {
        let bytes = self.results.iter().map(|kind| match kind.bits {
            1 => 1,
            bits => (bits as usize / 8).min(8),
        });
        bytes.collect()
    }

    /// What values its operands take.
    pub fn operand_kinds(&self) -> Vec<Kind> {
        self.operands.iter().map(|kind| kind.kind).collect()
    }

    /// A kernel of PTX that stores what the form gives for each vector: result `k` of vector `v` is the word of 64
    /// bits with number `k × vectors + v`.
    pub fn kernel(&self, name: &str) -> String {
        let mut text = format!(
            ".visible .entry {name}(.param .u64 in1, .param .u64 in2, .param .u64 in3, .param .u64 in4, \
             .param .u64 out, .param .u64 cells)\n{{\n\
             .reg .b16 %v<4>; .reg .b32 %t<4>; .reg .b64 %u<4>; .reg .pred %q<4>; .reg .b32 %n<4>; .reg .b64 %m<9>;\n"
        );
        if let Some(last) = self.last.filter(|_| self.template.contains("$u")) {
            text += &format!(".reg {} %spare;\n", register(last.bits));
        }
        text += "mov.u32 %n0, %ctaid.x; mov.u32 %n1, %tid.x; mad.lo.u32 %n2, %n0, 256, %n1; mul.wide.u32 %m0, %n2, 8;\n";
        for (index, operand) in self.operands.iter().enumerate() {
            text += &load(index + 1, *operand);
        }
        text += &self.places();
        for (index, result) in self.results.iter().enumerate() {
            text += &format!(".reg {} %z{index};\n", register(result.bits));
        }
        text += &self.statement();
        text += "\nld.param.u64 %m1, [out]; add.u64 %m1, %m1, %m0;\n";
        for (index, result) in self.results.iter().enumerate() {
            text += &store(index, *result, index * self.vectors() * 8);
        }
        text + "ret;\n}\n"
    }

    /// Addresses that the template asks for.
    fn places(&self) -> String {
        let mut text = String::new();
        if self.template.contains("$g") {
            text +=
                "ld.param.u64 %m2, [cells]; mul.wide.u32 %m3, %n2, 32; add.u64 %m2, %m2, %m3;\n";
        }
        if self.template.contains("$s") {
            text += ".shared .align 32 .b8 shared_cells[8192]; mul.wide.u32 %m4, %n1, 32; mov.u64 %m5, shared_cells; \
                     add.u64 %m4, %m4, %m5;\n";
        }
        if self.template.contains("$l") {
            text += ".local .align 32 .b8 local_cell[32]; mov.u64 %m6, local_cell;\n";
        }
        if self.template.contains("$q") {
            text += "and.b64 %m7, %m8, -32;\n";
        }
        text
    }

    fn statement(&self) -> String {
        let width = self.last.map_or(32, |kind| kind.bits);
        let cas = match width {
            128 => "@$3 mov.b128 $u, $1; @!$3 mov.b128 $u, $2;",
            _ => "selp.b$w $u, $1, $2, $3;",
        };
        let spelled = &self.spelling;
        let width = width.to_string();
        let name = self.last.map_or("", |kind| kind.name);
        let words: &[(&str, &str)] = &[
            ("$c", cas),
            ("$i", spelled),
            ("$d", "%z0"),
            ("$e", "%z1"),
            ("$f", "%z2"),
            ("$h", "%z3"),
            ("$1", "%a1"),
            ("$2", "%a2"),
            ("$3", "%a3"),
            ("$4", "%a4"),
            ("$t", name),
            ("$w", &width),
            ("$u", "%spare"),
            ("$g", "%m2"),
            ("$s", "%m4"),
            ("$l", "%m6"),
            ("$p", "%m8"),
            ("$q", "%m7"),
        ];
        let start = self.template.clone();
        words
            .iter()
            .fold(start, |text, (word, meaning)| text.replace(word, meaning))
    }
}

/// The template of a statement like most.
fn plain(results: usize, operands: usize) -> String {
    let results = ["", "$d", "$d|$e"][results];
    let operands = (1..=operands).map(|index| format!(", ${index}"));
    format!("$i {results}{};", operands.collect::<String>())
}

fn register(bits: u32) -> &'static str {
    match bits {
        1 => ".pred",
        16 => ".b16",
        32 => ".b32",
        128 => ".b128",
        _ => ".b64",
    }
}

fn load(index: usize, kind: Type) -> String {
    let mut text = format!(".reg {} %a{index};\n", register(kind.bits));
    text += &format!("ld.param.u64 %m1, [in{index}]; add.u64 %m1, %m1, %m0;");
    if index == 1 {
        text += " mov.b64 %m8, %m1;";
    }
    text += &match kind.bits {
        1 => format!(
            " ld.global.b32 %n3, [%m1]; and.b32 %n3, %n3, 1; setp.ne.u32 %a{index}, %n3, 0;\n"
        ),
        128 => format!(
            " ld.global.b64 %u0, [%m1]; not.b64 %u1, %u0; mov.b128 %a{index}, {{%u0, %u1}};\n"
        ),
        bits => format!(" ld.global.b{bits} %a{index}, [%m1];\n"),
    };
    text
}

fn store(index: usize, kind: Type, offset: usize) -> String {
    match kind.bits {
        1 => {
            format!("selp.u32 %n3, 1, 0, %z{index}; st.global.b32 [%m1+{offset}], %n3;\n")
        }
        128 => format!(
            "mov.b128 {{%u0, %u1}}, %z{index}; mad.lo.u64 %u0, %u1, 5, %u0; st.global.b64 [%m1+{offset}], %u0;\n"
        ),
        bits => format!("st.global.b{bits} [%m1+{offset}], %z{index};\n"),
    }
}
