//! Machine code beside PTX: does every program verify with both, does memory hold the same, and how long
//! does a warp instruction take.
//!
//! `cargo xtask validate --frontends` writes `validation/frontends.csv`, `cargo xtask bench --frontends` prints
//! times.

use crate::simulator::{self, Run};
use crate::workloads::{self, Program};
use crate::{process, project, validate};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// GPUs, and the architecture whose programs they can run. The compiler knows nothing older than sm_75, whose
/// PTX is assembled for the V100.
const GPUS: &[(&str, u32)] = &[("h200", 90), ("a100", 80), ("rtx2060", 75), ("v100", 75)];

/// What plain nvcc compiles for.
const PLAIN: &str = "sm_75";

/// Programs of which machine code and PTX leave different memory, and what leaves it open.
const OPEN: &[(&str, &str)] = &[
    ("atomics", ORDER),
    ("bfs", ORDER),
    ("bilateral_filter", FUSED),
    ("black_scholes", APPROXIMATE),
    ("coherence_of_reads", ORDER),
    ("conjugate_gradient", FUSED),
    ("convolution", CONSTANTS),
    ("data_race", ORDER),
    ("fft", FUSED),
    ("fp64_math", FUSED),
    ("hash_table", ORDER),
    ("hydrodynamics", FUSED),
    ("lu_decomposition", FUSED),
    ("message_passing", ORDER),
    ("molecular_dynamics", ORDER),
    ("n_queens", CODE),
    ("rotary_embedding", FUSED),
    ("spin_lock", ORDER),
    ("store_buffering", ORDER),
    ("transcendental", APPROXIMATE),
    ("triton_attention", NO_PTX),
    ("triton_layer_norm", NO_PTX),
    ("triton_matmul", NO_PTX),
    ("triton_softmax", NO_PTX),
    ("wmma_gemm", PARTS),
];
const ORDER: &str = "threads meet in an order that nothing fixes";
const FUSED: &str = "PTX without a rounding lets the assembler fuse products and sums";
const APPROXIMATE: &str = "approximate functions are spelled out by the assembler";
const CODE: &str = "memory holds addresses of functions";
const CONSTANTS: &str = "constants lie elsewhere in memory";
const PARTS: &str = "older matrix units add in other parts";
const NO_PTX: &str = "the program carries machine code only";

const LIMIT: Duration = Duration::from_secs(900);

/// What one program came to on one GPU.
struct Row {
    program: String,
    gpu: &'static str,
    machine_code: String,
    ptx: String,
    memory: &'static str,
    instructions: [u64; 2],
}

/// Runs every program on every GPU as machine code, with its control bits checked, and as PTX.
pub fn sweep(only: &[String]) -> Result<()> {
    simulator::build()?;
    validate::build_programs_for(PLAIN)?;
    let mut work = Vec::new();
    for program in workloads::all()? {
        let chosen = only.is_empty() || only.contains(&program.name);
        if !chosen || program.gpus.is_some() {
            continue;
        }
        for (gpu, _) in GPUS {
            if meets_needs(&program, gpu) {
                work.push((program.clone(), *gpu));
            }
        }
    }
    println!("{} programs on GPUs that meet their needs", work.len());
    let rows = process::in_parallel(&work, |(program, gpu)| {
        let row = compare(
            program,
            gpu,
            &validate::programs_for(PLAIN).join(&program.name),
        );
        println!(
            "{:<26} {:<8} machine code {}, PTX {}, memory {}",
            row.program, row.gpu, row.machine_code, row.ptx, row.memory
        );
        row
    });
    let verified = rows.iter().filter(|row| row.machine_code == "PASS").count();
    let equal = rows.iter().filter(|row| row.memory == "equal").count();
    println!(
        "{verified} of {} verify as machine code, and no value was read too early; memory is equal in {equal}",
        rows.len()
    );
    if only.is_empty() {
        let path = project::root().join("validation/frontends.csv");
        std::fs::write(&path, table(&rows)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", project::shown(&path));
    }
    let unexplained: Vec<&str> = rows
        .iter()
        .filter(|row| row.memory != "equal" && why(&row.program).is_empty())
        .map(|row| row.program.as_str())
        .collect();
    if verified != rows.len() || !unexplained.is_empty() {
        bail!(
            "{} runs do not verify; memory differs for no known reason in [{}]",
            rows.len() - verified,
            unexplained.join(", ")
        );
    }
    Ok(())
}

fn table(rows: &[Row]) -> Result<String> {
    let mut text = String::from(
        "# Every program at its default size in functional mode, by `cargo xtask validate --frontends`: machine code\n\
         # (--frontend sass --assemble --check control-bits) and PTX (--frontend ptx) of one executable for sm_75. `memory`\n\
         # compares memory_digest of both runs: every byte of device memory, when it was freed and at the end.\n\
         program,gpu,machine_code,ptx,memory,machine_instructions,ptx_instructions,why\n",
    );
    for row in rows {
        let [machine, ptx] = row.instructions;
        writeln!(
            text,
            "{},{},{},{},{},{machine},{ptx},{}",
            row.program,
            row.gpu,
            row.machine_code,
            row.ptx,
            row.memory,
            if row.memory == "equal" {
                ""
            } else {
                why(&row.program)
            }
        )?;
    }
    Ok(text)
}

/// Why memory may differ; empty where it may not.
fn why(program: &str) -> &'static str {
    let entry = OPEN.iter().find(|(name, _)| *name == program);
    entry.map_or("", |(_, why)| why)
}

fn compare(program: &Program, gpu: &'static str, executable: &Path) -> Row {
    let base = ["--gpu", gpu, "--mode", "functional", "--threads", "1"];
    let run = |more: &[&str]| {
        let options: Vec<&str> = base.iter().chain(more).copied().collect();
        simulator::run(&options, executable, &[], LIMIT)
    };
    let machine = run(&[
        "--frontend",
        "sass",
        "--assemble",
        "--check",
        "control-bits",
    ]);
    let ptx = run(&["--frontend", "ptx"]);
    let digest = |run: &Result<Run>| {
        let summary = run.as_ref().ok()?.summary.as_ref()?;
        summary.memory_digest.clone()
    };
    let instructions = |run: &Result<Run>| {
        let summary = run.as_ref().ok().and_then(|run| run.summary.as_ref());
        summary
            .and_then(|summary| summary.totals.inst_executed)
            .unwrap_or(0)
    };
    let memory = match (digest(&machine), digest(&ptx)) {
        (Some(one), Some(other)) if one == other => "equal",
        (Some(_), Some(_)) => "differs",
        _ => "unknown",
    };
    Row {
        program: program.name.clone(),
        gpu,
        machine_code: verdict(program, &machine),
        ptx: verdict(program, &ptx),
        memory,
        instructions: [instructions(&machine), instructions(&ptx)],
    }
}

/// `PASS`, or the first thing that was said against it.
fn verdict(program: &Program, run: &Result<Run>) -> String {
    match run {
        Ok(run) if run.verifies(&program.name) => "PASS".into(),
        Ok(run) if run.output.tail(30).contains("no kernel image") => "none".into(),
        Ok(run) => {
            let said = run.output.tail(30);
            let first = said.lines().find(|line| line.starts_with("lockstep:"));
            first.unwrap_or("FAIL").replace([',', '"'], " ")
        }
        Err(error) => format!("{error:#}").replace([',', '"', '\n'], " "),
    }
}

/// Whether a GPU of the table has what a program needs.
pub fn meets_needs(program: &Program, gpu: &str) -> bool {
    GPUS.iter()
        .any(|(name, architecture)| *name == gpu && needs(program) <= *architecture)
}

/// The number in `sm_80`.
fn needs(program: &Program) -> u32 {
    let digits = program
        .architecture
        .trim_start_matches("sm_")
        .trim_end_matches('a');
    digits.parse().unwrap_or(u32::MAX)
}

/// Programs whose time is spent in instructions, of many kinds; arguments as the programs take them.
const SPEED: &[(&str, &[&str])] = &[
    ("matrix_multiply", &["256"]),
    ("vector_add", &["1048576"]),
    ("dgemm", &["192"]),
    ("n_body", &["2048"]),
    ("stencil_2d", &[]),
    ("sgemm_variants", &[]),
    ("softmax", &[]),
    ("bfs", &["16384"]),
    ("spmv", &[]),
    ("black_scholes", &[]),
];

/// What a program took: processor time, warp instructions.
type Cost = (f64, u64);

/// Prints processor time a warp instruction of both front ends, and their ratio. What a program takes at its
/// small size counts as its start and is taken off. Each figure is the best of several runs, which take turns
/// so that what else the host does falls on all.
pub fn speed(only: &str, repeat: u32) -> Result<()> {
    simulator::build()?;
    validate::build_programs()?;
    println!(
        "{:<18} {:>13} {:>13} {:>11} {:>11} {:>11} {:>11} {:>7}",
        "program",
        "machine inst",
        "PTX inst",
        "start ms",
        "PTX start",
        "machine ns",
        "PTX ns",
        "ratio"
    );
    let mut sums = [(0.0, 0u64); 2];
    let mut ratios: Vec<f64> = Vec::new();
    for (name, arguments) in SPEED.iter().filter(|(name, _)| name.contains(only)) {
        let large: Vec<String> = arguments.iter().map(|word| (*word).to_string()).collect();
        let sizes = [workloads::named(name)?.small, large];
        let mut best: [[Option<Cost>; 2]; 2] = [[None; 2]; 2];
        for _ in 0..repeat.max(1) {
            for (frontend, best) in ["sass", "ptx"].iter().zip(&mut best) {
                for (arguments, best) in sizes.iter().zip(best) {
                    let cost = cost(name, frontend, arguments)?;
                    if best.is_none_or(|least| cost.0 < least.0) {
                        *best = Some(cost);
                    }
                }
            }
        }
        let [machine, ptx] = best.map(|[start, whole]| {
            let (start, whole) = (start.unwrap_or_default(), whole.unwrap_or_default());
            let rest = (whole.0 - start.0, whole.1.saturating_sub(start.1).max(1));
            (start.0 * 1e3, rest)
        });
        let [first, second] = [machine.1, ptx.1].map(nanoseconds);
        println!(
            "{name:<18} {:>13} {:>13} {:>11.1} {:>11.1} {first:>11.1} {second:>11.1} {:>7.2}",
            machine.1.1,
            ptx.1.1,
            machine.0,
            ptx.0,
            first / second
        );
        ratios.push(first / second);
        for (sum, (seconds, count)) in sums.iter_mut().zip([machine.1, ptx.1]) {
            sum.0 += seconds;
            sum.1 += count;
        }
    }
    let [first, second] = sums.map(nanoseconds);
    let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64;
    println!(
        "all together: machine code {first:.1} ns, PTX {second:.1} ns a warp instruction, ratio {:.2}; geometric mean \
         of the ratios {:.2}",
        first / second,
        mean.exp()
    );
    process::step("Figures are about this machine and no part of any digest");
    Ok(())
}

fn nanoseconds((seconds, count): Cost) -> f64 {
    seconds / count.max(1) as f64 * 1e9
}

/// Runs a program once in functional mode.
fn cost(name: &str, frontend: &str, arguments: &[String]) -> Result<Cost> {
    let options = [
        "--mode",
        "functional",
        "--threads",
        "1",
        "--frontend",
        frontend,
    ];
    let run = simulator::run(&options, &validate::programs().join(name), arguments, LIMIT)?;
    if !run.verifies(name) {
        bail!("{name} ({frontend}) failed:\n{}", run.output.tail(6));
    }
    let summary = run.summary.context("the run left no summary.json")?;
    let seconds = summary.host.processor_seconds;
    let seconds = seconds.context("no processor_seconds in summary.json")?;
    Ok((seconds, summary.totals.inst_executed.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_the_speed_table_is_a_workload() {
        assert!(SPEED.len() >= 6);
        for (name, _) in SPEED {
            assert!(workloads::named(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn programs_that_need_more_than_a_gpu_has_are_left_out() {
        let program = workloads::named("vector_add").expect("vector_add");
        assert!(meets_needs(&program, "v100"));
        let newer = Program {
            architecture: "sm_80".into(),
            ..program
        };
        assert!(meets_needs(&newer, "a100") && !meets_needs(&newer, "rtx2060"));
    }
}
