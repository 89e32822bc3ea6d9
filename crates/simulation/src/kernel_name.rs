//! Names of kernels and functions for people.

/// Letters of a name in messages.
const MOST_LETTERS: usize = 48;

/// A kernel's or function's name for people: demangled, without its parameters, not too long. A function that belongs to one kernel
/// is called by both names in machine code (`$kernel$function`); its own is the last.
#[must_use]
pub fn readable(name: &str) -> String {
    let own = match name.strip_prefix('$') {
        Some(both) => both.rsplit('$').next().unwrap_or(both),
        None => name,
    };
    let options = cpp_demangle::DemangleOptions::new().no_params();
    let demangled = cpp_demangle::Symbol::new(own)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| own.to_string());
    if demangled.chars().count() <= MOST_LETTERS {
        return demangled;
    }
    let kept: String = demangled.chars().take(MOST_LETTERS - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_demangled_without_parameters_and_cut() {
        for (name, people) in [
            ("_Z10vector_addPKfS0_Pfi", "vector_add"),
            ("plain", "plain"),
            ("_Zxyz", "_Zxyz"),
            ("", ""),
            ("$", ""),
            ("$_Z7leadersPKi$_Z9neighbourjii", "neighbour"),
            ("$leaders$_Z9neighbourjii", "neighbour"),
        ] {
            assert_eq!(readable(name), people, "{name}");
        }
        let long = readable(&"k".repeat(100));
        assert_eq!(long.chars().count(), MOST_LETTERS);
        assert!(long.ends_with('…'));
    }
}
