//! Machine code that runs straight on does what it does step by step, in the same cycles.

use std::sync::Arc;

use crate::common::*;
use lockstep_frontend::sass::Image;
use lockstep_gpu::{Launch, Mode};
use lockstep_isa::{Module, code::PAGE};

const CUBIN: &[u8] = include_bytes!("sass/mix.sm_90.cubin");

fn module() -> Module {
    let image = Image::read(CUBIN).expect("a cubin");
    image.link(&[]).expect("it has no variables")
}

#[test]
fn runs_of_instructions_that_compute_are_found() {
    let module = module();
    let lengths = (0..=module.code.len() as u32).map(|index| module.straight_line(index).len());
    let lengths: Vec<usize> = lengths.collect();
    let longest = lengths.iter().max().unwrap();
    assert!(*longest >= 4, "{longest}");
    for (index, pair) in lengths.windows(2).enumerate() {
        let [straight, next] = [pair[0], pair[1]];
        let page_ends = (index + 1).is_multiple_of(PAGE);
        let after = if page_ends { 0 } else { next };
        assert!(straight == 0 || straight == after + 1, "at {index}");
    }
}

#[test]
fn straight_on_or_step_by_step_is_one_answer() {
    let outcome = |module: Module| {
        let mut gpu = gpu(&small(2), Mode::Functional);
        let module = Arc::new(module);
        // More warps than fit at once, of which the last have lanes that do nothing.
        let mut launch = Launch::new(&module, "mix", [80, 1, 1], [160, 1, 1]).unwrap();
        launch.arguments.extend(BASE.to_le_bytes());
        launch.arguments.extend((BASE + (512 << 10)).to_le_bytes());
        launch.arguments.extend(12_345u32.to_le_bytes());
        let id = gpu.launch(launch).unwrap();
        let record = gpu.run_until_complete(id).unwrap();
        (record, gpu.memory_digest(), gpu.digest("gpu").root())
    };
    let straight = module();
    let mut step_by_step = straight.clone();
    step_by_step.runs_straight = false;
    let (record, memory, whole) = outcome(straight);
    let (expected, expected_memory, expected_whole) = outcome(step_by_step);
    assert!(record.counters.inst_executed > 1000);
    assert_eq!(record, expected);
    assert_eq!(memory, expected_memory);
    assert_eq!(whole, expected_whole);
}
