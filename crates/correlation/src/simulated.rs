//! What a simulated run left behind.

use crate::{CorrelationError, read};
use std::collections::BTreeMap;
use std::path::Path;

/// Why a run cannot be compared. One of these and there is no headline.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Failure {
    /// There is no executable to run.
    NotBuilt,
    /// It ended with this exit code or signal, and these words.
    Crashed(String),
    /// It had not ended after this many seconds.
    Hung(u64),
    /// It ended, and said that its result is wrong, or said nothing.
    Wrong(String),
    /// Its launches are not those of the hardware's run.
    OtherLaunches(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotBuilt => f.write_str("not built"),
            Self::Crashed(how) => write!(f, "crashed: {how}"),
            Self::Hung(seconds) => write!(f, "no end after {seconds} s"),
            Self::Wrong(what) => write!(f, "computed wrongly: {what}"),
            Self::OtherLaunches(how) => write!(f, "launches differ: {how}"),
        }
    }
}

/// One launch of a simulated run: its kernel and what was counted, by column; what the simulator
/// does not know is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimulatedLaunch {
    /// The kernel, as the simulator names it.
    pub kernel: String,
    /// Its counters.
    pub counters: BTreeMap<String, f64>,
}

/// One program's run.
#[derive(Clone, Debug, Default)]
pub struct ProgramRun {
    /// Its launches in order.
    pub launches: Vec<SimulatedLaunch>,
    /// Why it cannot be compared.
    pub failure: Option<Failure>,
    /// Wall time of the simulation, in seconds.
    pub seconds: f64,
    /// Whether any kernel came from PTX, whose instructions are not the hardware's.
    pub from_ptx: bool,
}

/// Reads the `kernels.csv` of a run folder.
pub fn launches(path: &Path) -> Result<Vec<SimulatedLaunch>, CorrelationError> {
    parse(&read(path)?).map_err(|problem| CorrelationError::malformed(path, problem))
}

/// From the text of a `kernels.csv`, without launches by kernels: profilers have no rows for those.
pub fn parse(text: &str) -> Result<Vec<SimulatedLaunch>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().map_err(|error| error.to_string())?.clone();
    let mut launches = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let mut launch = SimulatedLaunch::default();
        for (name, cell) in head.iter().zip(&record) {
            if name == "kernel" {
                launch.kernel = cell.into();
            } else if let Ok(value) = cell.parse::<f64>() {
                launch.counters.insert(name.into(), value);
            }
        }
        if !launch.counters.contains_key("parent") {
            launches.push(launch);
        }
    }
    Ok(launches)
}

/// The unqualified name of a kernel, mangled or not, without return type, namespaces, template
/// arguments and parameters: `void ns::reduce<float>(const T1 *)` and `reduce` are one.
pub fn plain_name(kernel: &str) -> String {
    let short = short_name(kernel);
    short.split('<').next().unwrap_or(&short).to_owned()
}

/// The same with template arguments, which make kernels of their own.
pub fn short_name(kernel: &str) -> String {
    // A plain `a` would be read as a type.
    let mangled = kernel.starts_with("_Z").then_some(kernel);
    let demangled = mangled
        .and_then(|kernel| cpp_demangle::Symbol::new(kernel).ok())
        .and_then(|symbol| symbol.demangle().ok());
    let whole = demangled.as_deref().unwrap_or(kernel);
    let (mut templates, mut name) = (0usize, String::new());
    let mut characters = whole.replace("(anonymous namespace)::", "");
    // Casts inside template arguments, `(int)4`, are how profilers write plain constants.
    for cast in ["(int)", "(bool)", "(unsigned int)", "(unsigned long)"] {
        characters = characters.replace(cast, "");
    }
    for character in characters.chars() {
        match character {
            '<' => templates += 1,
            '>' => templates = templates.saturating_sub(1),
            '(' if templates == 0 => break,
            ' ' | ':' | '*' | '&' if templates == 0 => {
                name.clear();
                continue;
            }
            _ => {}
        }
        name.push(character);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_profiler_and_simulator_agree() {
        for text in [
            "void work::reduce_blocks<float>(const T1 *, T1 *, int)",
            "reduce_blocks",
            "reduce_blocks(const float *, float *, int)",
            "void (anonymous namespace)::reduce_blocks<(int)4, ns::Add<int>>(T1)",
            "_Z13reduce_blocksIfEvPKT_PS0_i",
        ] {
            assert_eq!(plain_name(text), "reduce_blocks", "{text}");
        }
        assert_eq!(short_name("void work::sum<(int)4>(const T1 *)"), "sum<4>");
        assert_eq!(short_name("_Z11scan_blocksPKjPjS1_i"), "scan_blocks");
    }

    #[test]
    fn empty_cells_are_unknown_and_not_zero() {
        let launches =
            parse("launch,kernel,grid,cycles,dram_bytes_read\n0,\"add, twice\",1x1x1,42,\n")
                .expect("launches");
        assert_eq!(launches[0].kernel, "add, twice");
        assert_eq!(launches[0].counters.get("cycles"), Some(&42.0));
        assert_eq!(launches[0].counters.get("dram_bytes_read"), None);
    }
}
