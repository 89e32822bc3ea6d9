//! What is wrong with a text is said with its place, and no text makes the front end panic.

use crate::harness;
use crate::harness::link;
use proptest::prelude::*;

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

fn message(body: &str) -> String {
    match link(&format!("{HEAD}{body}")) {
        Ok(_) => "it links".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn in_kernel(statements: &str) -> String {
    message(&format!(
        ".visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n.reg .pred %p<2>;\n{statements}\n}}\n"
    ))
}

/// A newer compiler may write forms that no table has; code that is never executed harms nobody.
#[test]
fn an_unknown_form_of_a_known_instruction_stops_who_executes_it() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .b64 %rd<4>;\n\
                add.rn.e2m1x4 %rd1, %rd2, %rd3;\nret;\n}\n";
    let module = lockstep_frontend::ptx::parse(text)
        .and_then(|image| image.link(&[]))
        .expect("it links");
    let stops = |one: &lockstep_isa::Instruction| match &one.operation {
        lockstep_isa::Operation::Unsupported(sentence) => Some(sentence.to_string()),
        _ => None,
    };
    assert_eq!(
        module.code.iter().find_map(stops).as_deref(),
        Some("`add.rn.e2m1x4 %rd1, %rd2, %rd3` has modifiers that are not modelled")
    );
}

#[test]
fn messages_name_the_place_and_what_is_wrong() {
    let cases = [
        (
            in_kernel("frobnicate.u32 %r1, %r2;"),
            "PTX 9:1: no instruction is spelled `frobnicate.u32` with 2 operands (in `frobnicate.u32 %r1, %r2`)",
        ),
        (
            in_kernel("add.u32 %r1, %r2;"),
            "PTX 9:1: no instruction is spelled `add.u32` with 2 operands (in `add.u32 %r1, %r2`)",
        ),
        (
            in_kernel("add.u32 %r1, %r2, %r9;"),
            "PTX 9:1: `%r9` is not declared as a register",
        ),
        (
            in_kernel("bra NOWHERE;"),
            "PTX 9:1: `NOWHERE` is not declared as a label",
        ),
        (
            in_kernel("add.u64 %rd1, %r2, %rd2;"),
            "PTX 9:1: a register of 32 bits stands where 64 bits are read (in `add.u64 %rd1, %r2, %rd2`)",
        ),
        (
            in_kernel("mov.u32 %r1 %r2;"),
            "PTX 9:13: found `%r2`, expected `,` or `;`",
        ),
        (
            in_kernel("@%p5 bra L; L: ret;"),
            "PTX 9:1: `%p5` is not declared as a predicate",
        ),
        (
            in_kernel("L: ret; L: ret;"),
            "PTX 9:9: `L` is declared twice in one block (in `L`)",
        ),
        (
            message(".global .u32 x = 1 2;"),
            "PTX 4:20: found the number 2, expected `;`",
        ),
        (
            message(".visible .entry k()\n{\nret;\n"),
            "PTX 7:1: found the end of the text, expected a statement or `}`",
        ),
        (
            message(".extern .func f();\n.visible .entry k()\n{\ncall f;\nret;\n}\n"),
            "PTX 7:1: `f` is declared but no module that was given defines it (in `call f`)",
        ),
        (
            message(".global .u32 x = y;"),
            "PTX 4:14: `y` is not declared as a variable with an address, or a function",
        ),
        (
            message(".const .b8 big[70000];"),
            "PTX: constant memory is 70000, the limit is 65536",
        ),
    ];
    for (found, wanted) in cases {
        assert_eq!(found, wanted);
    }
    let no_version = link(".target sm_80")
        .map(|_| ())
        .map_err(|error| error.to_string());
    assert_eq!(
        no_version,
        Err(
            "PTX 1:1: found no `.version`, expected a PTX text that begins with `.version`"
                .to_owned()
        )
    );
}

#[test]
fn what_cannot_run_stops_when_it_is_reached() {
    let text = format!(
        "// fails: is Blackwell's matrix unit\n{HEAD}.visible .entry k()\n{{\ntcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nret;\n}}\n"
    );
    assert_eq!(harness::compare(&text), Ok(()));
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = "{".repeat(100_000);
    assert!(in_kernel(&deep).contains("64 levels of nesting"));
    let expression = format!(".global .u32 x = {}1;", "(".repeat(100_000));
    assert!(message(&expression).contains("64 levels of nesting"));
    let minus = format!(".global .u32 x = {}1;", "-".repeat(100_000));
    assert!(message(&minus).contains("64 levels of nesting"));
}

#[test]
fn huge_numbers_cost_no_memory() {
    assert_eq!(
        in_kernel(".reg .b32 %many<4294967295>;\nmov.u32 %many4000000000, 1;\nret;"),
        "it links"
    );
    assert!(message(".global .b8 x[1000000000000000000];").contains("the limit is"));
    assert!(in_kernel(".local .b8 x[1000000000000];\nret;").contains("the limit is"));
    assert!(in_kernel(".shared .b8 x[4000000000];\nret;").contains("the limit is"));
}

/// A text with most of the grammar in it, to be damaged.
fn samples() -> Vec<String> {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/computes_correctly");
    let mut texts: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder is part of the repository")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        // Comments hold long lists of numbers, which would take all the damage.
        .map(|text| {
            text.lines()
                .filter(|l| !l.starts_with("//"))
                .collect::<Vec<_>>()
                .join("\n")
        })
        .collect();
    texts.sort();
    texts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_text_never_panics(text in "\\PC{0,200}") {
        let _ = link(&text);
    }

    #[test]
    fn random_words_never_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                ".version", "8.0", ".target", "sm_80", ".entry", ".func", "k", "(", ")", "{", "}", ";", ",",
                ".reg", ".b32", "%r", "<", "5", ">", "mov", ".u32", "%r1", "[", "]", "+", "-", "@", "!", "%p1",
                "bra", ":", "L", "ret", ".param", ".u64", ".global", "=", ".align", "0f3F800000", "1", "|", "_",
                ".branchtargets", ".callprototype", "call", ".shared", "ld", "st", ".loc", ".pragma", "\"x\"",
            ]),
            0..60,
        ),
    ) {
        let _ = link(&words.join(" "));
        let _ = link(&format!("{HEAD}{}", words.join(" ")));
    }

    #[test]
    fn damaged_programs_never_panic(
        pick in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, any::<u8>()), 1..6),
    ) {
        let texts = samples();
        let mut bytes = pick.get(&texts).clone().into_bytes();
        for (place, kind, byte) in damage {
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte & 0x7f,
                1 => { bytes.remove(at); }
                2 => bytes.insert(at, byte & 0x7f),
                _ => {
                    let end = (at + usize::from(byte)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    let to = usize::from(byte) * 7 % bytes.len();
                    bytes.splice(to..to, piece);
                }
            }
        }
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = link(&text);
        }
    }
}
