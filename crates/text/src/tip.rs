//! Tips for command lines that are refused.

use std::path::Path;

/// The right command line, if a program stands where `--` is missing before it, after one of the commands that take
/// programs.
pub fn program_without_dashes(
    commands: &[&str],
    words: impl Iterator<Item = String>,
) -> Option<String> {
    let words: Vec<String> = words.collect();
    let command = words.first()?;
    if !commands.contains(&command.as_str()) || words.iter().any(|word| word == "--") {
        return None;
    }
    let is_program = |word: &String| Path::new(word).is_file();
    let place = words.iter().skip(1).position(is_program)? + 1;
    let (options, program) = words.split_at(place);
    Some(format!(
        "tip: put `--` before the program: lockstep {} -- {}",
        options.join(" "),
        program.join(" ")
    ))
}
