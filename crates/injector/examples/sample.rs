//! The commands `sample` and `sampled` alone, without the simulator: small enough to carry to a
//! machine that only has a GPU.

#[path = "../../tools/src/commands/job_rank.rs"]
mod job_rank;
#[path = "../../tools/src/commands/sample.rs"]
mod sample;
#[path = "../../tools/src/commands/sampled.rs"]
mod sampled;

use clap::Parser;

#[derive(Parser)]
enum Command {
    Sample(sample::SampleArguments),
    Sampled(sampled::SampledArguments),
}

fn main() {
    let result = match Command::parse() {
        Command::Sample(arguments) => arguments.run(),
        Command::Sampled(arguments) => arguments.run(),
    };
    std::process::exit(result.unwrap_or_else(|error| {
        eprintln!("lockstep: {error:#}");
        2
    }));
}
