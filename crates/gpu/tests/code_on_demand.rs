//! Code is decoded when it is first needed, and nobody can tell.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::common::*;
use lockstep_gpu::{Advance, Contents, EngineOptions, Gpu, Mode, Options};
use lockstep_isa::code::PAGE;
use lockstep_isa::instruction::{CodeAddress, Flow, SchedulingInfo};
use lockstep_isa::memory::Space;
use lockstep_isa::{Code, Instruction, MachineCode, Module, Operation};
use lockstep_stats::Digest;
use lockstep_units::{Cycles, Time};

/// Instructions of a function with what fills it up.
const FUNCTION: usize = 2 * PAGE;

/// Hands out instructions and notes which.
#[derive(Debug)]
struct Words {
    code: Vec<Instruction>,
    asked: Mutex<BTreeSet<usize>>,
}

impl MachineCode for Words {
    fn length(&self) -> usize {
        self.code.len()
    }

    fn instruction(&self, index: usize) -> Instruction {
        self.asked.lock().unwrap().insert(index);
        self.code[index].clone()
    }

    fn text(&self, index: usize) -> String {
        format!("instruction {index}")
    }
}

fn jump(target: usize) -> Instruction {
    let flow = Flow::BranchIndirect {
        address: CodeAddress::Index,
    };
    let mut jump = Instruction::new(Operation::Flow(flow), SchedulingInfo::default());
    jump.sources[0] = imm(target as u64).into();
    jump
}

/// A kernel, a function that only a register leads to, and two that nobody calls, of which one is damaged: decoded
/// beforehand.
fn eager() -> Module {
    let mut k = Assembler::new();
    let [thread, offset, value, count] = k.regs();
    let more = k.pred();
    k.thread(thread);
    k.shl(offset, thread, imm(7));
    k.mov(count, imm(0));
    let again = k.here();
    k.load(value, Space::Global, BASE, offset, WEAK);
    // The place of the jump.
    k.mov(value, value);
    k.add(value, value, count);
    k.store(Space::Global, BASE, offset, value, WEAK);
    k.add(count, count, imm(1));
    k.less(more, count, imm(12));
    k.branch_if(more, true, again);
    k.exit();
    let mut function = Assembler::new();
    let [_, _, changed] = function.regs();
    function.add(changed, changed, imm(3));
    let function = Arc::try_unwrap(function.finish()).unwrap();
    let mut module = Arc::try_unwrap(k.finish()).unwrap();
    let called = 4;
    module.sections = (0..4).map(|number| (number * FUNCTION) as u32).collect();
    module.native = true;
    module.runs_straight = true;
    module.code.edit(|code| {
        let illegal = Operation::Illegal("damaged".into());
        let damaged = Instruction::new(illegal, SchedulingInfo::default());
        let exit = code[code.len() - 1].clone();
        let mut wide = function.code[0].clone();
        wide.destination = Some(240);
        let filling = Instruction::new(Operation::Nothing, SchedulingInfo::default());
        code[called] = jump(FUNCTION);
        let others = [
            vec![function.code[0].clone(), jump(called + 1)],
            vec![damaged, exit.clone()],
            vec![wide, exit],
        ];
        code.resize(FUNCTION, filling.clone());
        for other in others {
            let end = code.len() + FUNCTION;
            code.extend(other);
            code.resize(end, filling.clone());
        }
    });
    module
}

/// The same, to be decoded.
fn lazy() -> (Arc<Module>, Arc<Words>) {
    let mut module = eager();
    let words = Arc::new(Words {
        code: module.code.iter().cloned().collect(),
        asked: Mutex::default(),
    });
    module.code = Code::of_words(words.clone());
    (Arc::new(module), words)
}

fn new_gpu(mode: Mode, threads: usize, contents: Arc<Contents>) -> Gpu {
    let options = Options {
        mode,
        engine: EngineOptions {
            threads,
            ..EngineOptions::default()
        },
        watchdog: Some(Cycles(5_000_000)),
        ..Options::default()
    };
    Gpu::new(&small(4), contents, options).unwrap()
}

fn started(mode: Mode, threads: usize, module: &Arc<Module>) -> Gpu {
    let mut gpu = new_gpu(mode, threads, memory());
    gpu.launch(launch(module, 16, 128, &[])).unwrap();
    gpu
}

fn finish(gpu: &mut Gpu) -> Digest {
    while !gpu.is_idle() {
        if let Advance::Faulted(fault) = gpu.advance(Time::NEVER) {
            panic!("{fault}");
        }
    }
    gpu.digest("gpu").root()
}

#[test]
fn what_nobody_reaches_is_never_decoded_and_has_one_answer() {
    for mode in [Mode::Functional, Mode::Timing] {
        let expected = finish(&mut started(mode, 1, &Arc::new(eager())));
        for threads in [1, 2, 4] {
            let (module, words) = lazy();
            let mut gpu = started(mode, threads, &module);
            assert_eq!(finish(&mut gpu), expected, "{mode:?}, {threads} threads");
            assert_ne!(word(&gpu, BASE), 0, "the kernel wrote");
            let asked = words.asked.lock().unwrap();
            assert!(asked.contains(&FUNCTION), "the function was called");
            assert!(asked.iter().all(|index| *index < 2 * FUNCTION), "{asked:?}");
            assert_eq!(module.code.decoded(), asked.len());
        }
    }
}

/// State is saved without code: whoever goes on decodes what it needs again.
#[test]
fn a_machine_that_was_saved_goes_on_with_code_of_its_own() {
    for mode in [Mode::Functional, Mode::Timing] {
        let mut whole = started(mode, 1, &lazy().0);
        let expected = finish(&mut whole);
        let end = whole.now();
        for part in 1..6 {
            let mut first = started(mode, 2, &lazy().0);
            first.advance_to(Time(end.0 / 6 * part)).unwrap();
            let saved = first.save();
            let (module, words) = lazy();
            let mut second = new_gpu(mode, 1, Arc::new(Contents::anonymous(BASE, SIZE).unwrap()));
            second.load(&saved, &|_| Some(module.clone())).unwrap();
            assert_eq!(finish(&mut second), expected, "{mode:?}, {part} of 6");
            let asked = words.asked.lock().unwrap();
            assert!(asked.iter().all(|index| *index < 2 * FUNCTION), "{asked:?}");
        }
    }
}
