//! Tables of measurements, as `validation/measure.py` writes them.
//!
//! A table starts with lines `# key: value` that say where it comes from. A row is one launch of
//! one program at one size; a cell holds one value for each repetition, separated by blanks.

use crate::figures::Repeated;
use crate::state::State;
use crate::{CorrelationError, read};
use std::collections::BTreeMap;
use std::path::Path;

/// A program at a size.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Case {
    /// The program.
    pub program: String,
    /// Which arguments of `workloads.toml`: `default`, `medium`.
    pub size: String,
}

/// One launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel as the profiler prints it.
    pub kernel: String,
    /// Blocks in all.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u64,
    /// Registers of a thread.
    pub registers: u64,
    /// Bytes of shared memory of a block.
    pub shared: u64,
    /// What was counted, by column.
    pub counters: BTreeMap<String, Repeated>,
}

/// One table.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    /// Lines of its head, without `#`.
    pub provenance: Vec<(String, String)>,
    /// Launches of each case by number.
    pub launches: BTreeMap<Case, BTreeMap<u64, Launch>>,
}

impl Measurements {
    /// Reads a table.
    pub fn load(path: &Path) -> Result<Self, CorrelationError> {
        Self::parse(&read(path)?).map_err(|problem| CorrelationError::malformed(path, problem))
    }

    /// From a table's text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut table = Self::default();
        for line in text.lines().take_while(|line| line.starts_with('#')) {
            if let Some((key, value)) = line.trim_start_matches(['#', ' ']).split_once(": ") {
                table.provenance.push((key.into(), value.trim().into()));
            }
        }
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let head = reader.headers().map_err(|error| error.to_string())?.clone();
        let column = |name: &str| {
            head.iter().position(|own| own == name).ok_or_else(|| {
                format!(
                    "no column `{name}`; found {}",
                    head.iter().collect::<Vec<_>>().join(", ")
                )
            })
        };
        let [
            program,
            size,
            launch,
            kernel,
            grid,
            block,
            registers,
            shared,
        ] = [
            "program",
            "size",
            "launch",
            "kernel",
            "grid",
            "block",
            "registers",
            "shared",
        ]
        .map(column);
        let (program, size, launch, kernel) = (program?, size?, launch?, kernel?);
        let (grid, block, registers, shared) = (grid?, block?, registers?, shared?);
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let place = || format!("line {}", record.position().map_or(0, csv::Position::line));
            let whole = |index: usize| {
                record[index]
                    .parse::<f64>()
                    .map(|value| value as u64)
                    .map_err(|_| format!("{}: `{}` is not a number", place(), &record[index]))
            };
            let counters = counters(&head, &record, shared + 1)
                .map_err(|problem| format!("{}: {problem}", place()))?;
            let case = Case {
                program: record[program].into(),
                size: record[size].into(),
            };
            let found = Launch {
                kernel: record[kernel].into(),
                blocks: product(&record[grid]),
                threads: product(&record[block]),
                registers: whole(registers)?,
                shared: whole(shared)?,
                counters,
            };
            if table
                .launches
                .entry(case)
                .or_default()
                .insert(whole(launch)?, found)
                .is_some()
            {
                return Err(format!("{}: this launch stands there twice", place()));
            }
        }
        Ok(table)
    }

    /// A line of the head.
    pub fn said(&self, key: &str) -> Option<&str> {
        self.provenance
            .iter()
            .find(|(own, _)| own == key || own.starts_with(&format!("{key} ")))
            .map(|(_, value)| value.as_str())
    }

    /// How many repetitions most cells have.
    pub fn repetitions(&self) -> usize {
        self.launches
            .values()
            .flat_map(BTreeMap::values)
            .flat_map(|launch| launch.counters.values())
            .map(|repeated| repeated.values().len())
            .max()
            .unwrap_or(0)
    }
}

/// The counters of a row, from a column on: several values are repetitions, an empty cell is unknown.
fn counters(
    head: &csv::StringRecord,
    row: &csv::StringRecord,
    first: usize,
) -> Result<BTreeMap<String, Repeated>, String> {
    let mut counters = BTreeMap::new();
    for (name, cell) in head.iter().zip(row).skip(first) {
        if cell.is_empty() {
            continue;
        }
        let values: Result<Vec<f64>, _> = cell.split(' ').map(str::parse).collect();
        let repeated = values.ok().and_then(Repeated::new);
        let repeated = repeated.ok_or_else(|| format!("`{name}` = `{cell}`, expected numbers"))?;
        counters.insert(name.to_owned(), repeated);
    }
    Ok(counters)
}

/// Of the numbers in `(4, 2, 1)` or `4x2x1`.
fn product(text: &str) -> u64 {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .filter_map(|part| part.parse::<u64>().ok())
        .product()
}

/// Everything measured on one GPU.
#[derive(Clone, Debug, Default)]
pub struct Hardware {
    /// Whose cycles are compared: those of `cold`, or those of `warm`.
    pub state: State,
    /// Cycles and counts of one pass with emptied caches.
    pub cold: Measurements,
    /// The same with caches as the program left them.
    pub warm: Option<Measurements>,
    /// Traffic and occupancy, with emptied caches.
    pub traffic: Option<Measurements>,
    /// Who asks L2, with emptied caches and the memory of programs elsewhere in each repetition.
    pub sources: Option<Measurements>,
    /// Why warps wait.
    pub stalls: Option<Measurements>,
    /// Kernels that do nothing.
    pub floors: Option<Measurements>,
}

impl Hardware {
    /// From a folder of tables, or from one table of cold cycles.
    pub fn load(path: &Path) -> Result<Self, CorrelationError> {
        if !path.is_dir() {
            return Ok(Self {
                cold: Measurements::load(path)?,
                ..Self::default()
            });
        }
        let table = |name: &str| {
            let file = path.join(name);
            file.exists().then(|| Measurements::load(&file)).transpose()
        };
        Ok(Self {
            state: State::Cold,
            cold: Measurements::load(&path.join("cold.csv"))?,
            warm: table("warm.csv")?,
            traffic: table("traffic.csv")?,
            sources: table("sources.csv")?,
            stalls: table("stalls.csv")?,
            floors: table("launch_floors.csv")?,
        })
    }

    /// What a kernel of this shape costs before it does anything: the cycles of the empty kernel
    /// that is nearest in blocks, threads, registers and shared memory, in the state that is compared.
    pub fn floor(&self, launch: &Launch) -> f64 {
        let near = |a: u64, b: u64| ((a.max(1) as f64).ln() - (b.max(1) as f64).ln()).abs();
        let Some(floors) = &self.floors else {
            return 0.0;
        };
        let measured = floors
            .launches
            .iter()
            .filter(|(case, _)| case.size == self.state.of_floors())
            .flat_map(|(_, launches)| launches.values());
        let mut best = (f64::INFINITY, 0.0);
        for floor in measured {
            let Some(cycles) = floor.counters.get("cycles") else {
                continue;
            };
            let far = 4.0 * near(floor.blocks, launch.blocks)
                + 2.0 * near(floor.threads, launch.threads)
                + near(floor.registers, launch.registers)
                + 0.1 * near(floor.shared, launch.shared);
            if far < best.0 {
                best = (far, cycles.median());
            }
        }
        best.1
    }

    /// Cycles and counts in the state that is compared; nothing where that state was not measured.
    pub fn timed(&self) -> Option<&Measurements> {
        match self.state {
            State::Cold => Some(&self.cold),
            State::AsRun => self.warm.as_ref(),
        }
    }

    /// The measured launches of a case with the counters of every table of the state in one map. A counter
    /// that two tables have is what the first of them says.
    pub fn launches(&self, case: &Case) -> BTreeMap<u64, Launch> {
        let timed = self.timed().and_then(|table| table.launches.get(case));
        let mut launches = timed.cloned().unwrap_or_default();
        let tables = match self.state {
            State::Cold => [&self.traffic, &self.sources, &self.stalls],
            // These were measured with emptied caches alone.
            State::AsRun => [&None, &None, &None],
        };
        for table in tables.into_iter().flatten() {
            for (number, other) in table.launches.get(case).into_iter().flatten() {
                if let Some(launch) = launches.get_mut(number) {
                    for (name, values) in &other.counters {
                        launch
                            .counters
                            .entry(name.clone())
                            .or_insert_with(|| values.clone());
                    }
                }
            }
        }
        for launch in launches.values_mut() {
            let of = |name: &str| launch.counters.get(name);
            let parts = (of("l2_sectors_of_gpcs"), of("l2_sectors_of_fabric"));
            if let (Some(gpcs), Some(fabric)) = parts
                && let Some(sum) = Repeated::sum([gpcs, fabric])
            {
                launch.counters.insert("l2_sectors_of_kernel".into(), sum);
            }
        }
        launches
    }

    /// Whether a counter of a launch has the same value in every repetition, cold and warm.
    pub fn repeats(&self, case: &Case, launch: u64, counter: &str) -> bool {
        let tables = [Some(&self.cold), self.warm.as_ref()];
        let values: Vec<f64> = tables
            .into_iter()
            .flatten()
            .filter_map(|table| {
                table
                    .launches
                    .get(case)?
                    .get(&launch)?
                    .counters
                    .get(counter)
            })
            .flat_map(|repeated| repeated.values().iter().copied())
            .collect();
        values.len() >= 5 && values.iter().all(|value| *value == values[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# date: 2026-11-15\n# card (name,driver): NVIDIA H200, 580\n\
        program,size,launch,kernel,grid,block,registers,shared,cycles,inst_executed\n\
        add,default,0,\"add(int *, int)\",\"(4, 2, 1)\",\"(32, 1, 1)\",16,1024,100 110 105 101 99,64 64 64 64 64\n\
        add,default,1,\"add(int *, int)\",\"(4, 2, 1)\",\"(32, 1, 1)\",16,1024,50 50 50 50 50,64 64 65 64 64\n";

    fn case() -> Case {
        Case {
            program: "add".into(),
            size: "default".into(),
        }
    }

    #[test]
    fn a_table_is_read_with_where_it_comes_from() {
        let table = Measurements::parse(TABLE).expect("table");
        assert_eq!(table.said("date"), Some("2026-11-15"));
        assert_eq!(table.said("card"), Some("NVIDIA H200, 580"));
        let launch = &table.launches[&case()][&0];
        assert_eq!(
            (
                launch.blocks,
                launch.threads,
                launch.registers,
                launch.shared
            ),
            (8, 32, 16, 1024)
        );
        assert_eq!(launch.counters["cycles"].median(), 101.0);
        assert_eq!(table.repetitions(), 5);
    }

    #[test]
    fn launches_whose_counts_differ_between_repetitions_do_not_repeat() {
        let hardware = Hardware {
            cold: Measurements::parse(TABLE).expect("table"),
            ..Hardware::default()
        };
        assert!(hardware.repeats(&case(), 0, "inst_executed"));
        assert!(!hardware.repeats(&case(), 1, "inst_executed"));
        // Fewer than five repetitions prove nothing.
        let four = TABLE.replace(" 64\n", "\n");
        let hardware = Hardware {
            cold: Measurements::parse(&four).expect("table"),
            ..Hardware::default()
        };
        assert!(!hardware.repeats(&case(), 0, "inst_executed"));
    }

    #[test]
    fn what_is_not_a_number_is_refused_with_its_line() {
        let error = Measurements::parse(&TABLE.replace("105", "1o5")).expect_err("refused");
        assert!(error.contains("line 4") && error.contains("1o5"), "{error}");
        let error = Measurements::parse(&TABLE.replace("launch,", "number,")).expect_err("refused");
        assert!(error.contains("no column `launch`"), "{error}");
    }

    #[test]
    fn the_first_table_counts_and_the_kernels_own_sectors_are_summed() {
        let head = "program,size,launch,kernel,grid,block,registers,shared,";
        let row = "\nadd,default,0,add,\"(4, 2, 1)\",\"(32, 1, 1)\",16,1024,";
        let parse = |columns: &str, cells: &str| {
            Measurements::parse(&format!("{head}{columns}{row}{cells}\n")).expect("table")
        };
        let hardware = Hardware {
            cold: Measurements::parse(TABLE).expect("table"),
            traffic: Some(parse("l2_sectors", "900 910")),
            sources: Some(parse(
                "l2_sectors,l2_sectors_of_gpcs,l2_sectors_of_fabric",
                "950 940,200 210,30 25",
            )),
            ..Hardware::default()
        };
        let launch = &hardware.launches(&case())[&0];
        let of = |name: &str| launch.counters[name].values().to_vec();
        assert_eq!(of("l2_sectors"), [900.0, 910.0]);
        assert_eq!(of("l2_sectors_of_kernel"), [230.0, 235.0]);
    }

    #[test]
    fn the_floor_is_the_nearest_empty_kernels() {
        let floors = "program,size,launch,kernel,grid,block,registers,shared,cycles\n\
            empty,cold,0,nothing,\"(1, 1, 1)\",\"(32, 1, 1)\",16,0,3000 3100 3050\n\
            empty,cold,1,nothing,\"(132, 1, 1)\",\"(1024, 1, 1)\",16,0,3400\n\
            empty,warm,0,nothing,\"(8, 1, 1)\",\"(32, 1, 1)\",16,0,2000\n";
        let hardware = Hardware {
            cold: Measurements::parse(TABLE).expect("table"),
            floors: Some(Measurements::parse(floors).expect("floors")),
            ..Hardware::default()
        };
        let launch = &hardware.cold.launches[&case()][&0];
        assert_eq!(hardware.floor(launch), 3050.0);
    }
}
