//! Names of kernels for people.
//!
//! A name from outside may be as long as it likes and hold anything, so it is bounded here; who
//! writes it into a page escapes it.

use cpp_demangle::{DemangleOptions, Symbol};

/// Letters of a kernel's name in a table.
const MAXIMUM_NAME: usize = 48;
/// Letters of a whole name. Templates of real programs reach some thousand.
const MAXIMUM_WHOLE_NAME: usize = 4000;

/// A kernel's or function's name for people: demangled, without its parameters, not too long. A function that
/// belongs to one kernel is called by both names in machine code (`$kernel$function`); its own is the last.
pub fn readable(name: &str) -> String {
    let own = match name.strip_prefix('$') {
        Some(both) => both.rsplit('$').next().unwrap_or(both),
        None => name,
    };
    let options = DemangleOptions::new().no_params();
    shortened(&demangled(own, Some(&options)), MAXIMUM_NAME)
}

/// The whole name, demangled with its parameters.
pub fn whole(name: &str) -> String {
    shortened(&demangled(name, None), MAXIMUM_WHOLE_NAME)
}

fn demangled(name: &str, options: Option<&DemangleOptions>) -> String {
    // A plain `a` would be read as a type, and a long one takes long.
    let mangled = (name.starts_with("_Z") && name.len() <= 4 * MAXIMUM_WHOLE_NAME).then_some(name);
    let symbol = mangled.and_then(|name| Symbol::new(name).ok());
    let text = symbol.and_then(|symbol| match options {
        Some(options) => symbol.demangle_with_options(options).ok(),
        None => symbol.demangle().ok(),
    });
    text.unwrap_or_else(|| name.to_string())
}

/// The beginning of a text, with a sign that there is more.
fn shortened(text: &str, maximum: usize) -> String {
    // Control characters would move a terminal's cursor.
    let plain = text.replace(char::is_control, " ");
    if plain.chars().count() <= maximum {
        return plain;
    }
    let kept: String = plain.chars().take(maximum - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_demangled_and_shortened() {
        assert_eq!(readable("_Z10vector_addPKfS0_Pfi"), "vector_add");
        assert_eq!(
            whole("_Z10vector_addPKfS0_Pfi"),
            "vector_add(float const*, float const*, float*, int)"
        );
        assert_eq!(readable("plain"), "plain");
        assert_eq!(readable("a"), "a");
        assert_eq!(readable("_Zxyz"), "_Zxyz");
        assert_eq!(readable("$"), "");
        assert_eq!(readable("$_Z7leadersPKi$_Z9neighbourjii"), "neighbour");
        assert_eq!(readable("$leaders$_Z9neighbourjii"), "neighbour");
        assert_eq!(readable(&"n".repeat(99)).chars().count(), MAXIMUM_NAME);
        assert_eq!(readable("two\x1b[2Jlines"), "two [2Jlines");
    }
}
