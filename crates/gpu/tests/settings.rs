//! Settings that cannot be: every key with every kind of wrong value is refused with a sentence, or
//! makes a GPU that runs. Nothing panics, hangs or takes memory without bound.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::common::*;
use lockstep_config::{GpuConfig, load, to_toml};
use lockstep_gpu::{Gpu, Mode, Options};
use lockstep_isa::Module;
use lockstep_isa::memory::{AtomicOperation, AtomicType, Scope, Space};
use lockstep_units::Cycles;

/// Small enough to be made thousands of times.
const SMALL: &[&str] = &[
    "device.sms=2",
    "l2.slices=4",
    "l2.interleave-slices=4",
    "l2.capacity=\"2560 KiB\"",
    "dram.channels=4",
];

/// A little of everything that takes time.
fn kernel() -> Arc<Module> {
    let mut k = Assembler::new();
    k.shared_bytes = 256;
    let [thread, offset, value] = k.regs();
    k.thread(thread);
    k.shl(offset, thread, imm(2));
    k.load(value, Space::Global, BASE, offset, WEAK);
    k.add(value, value, imm(1));
    k.store(Space::Global, BASE, offset, value, WEAK);
    k.store(Space::Shared, 0, imm(4), value, WEAK);
    k.sync();
    k.atomic(
        None,
        Space::Global,
        AtomicOperation::Add,
        AtomicType::U32,
        BASE + 4096,
        imm(0),
        &[imm(1)],
        RELAXED,
    );
    k.fence(Scope::Gpu);
    k.finish()
}

fn keys() -> Vec<(String, String)> {
    let config = load(Some("h200"), SMALL).unwrap();
    let (mut keys, mut section) = (Vec::new(), String::new());
    for line in to_toml(&config).lines() {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            section = name.into();
        } else if let Some((key, value)) = line.split_once(" = ") {
            keys.push((format!("{section}.{key}"), value.to_string()));
        }
    }
    keys
}

/// Wrong values of the kind that a key has.
fn values(value: &str) -> Vec<String> {
    let unit = value
        .trim_matches('"')
        .split_once(' ')
        .map(|(_, unit)| unit);
    let numbers = [
        "0",
        "1",
        "-1",
        "NaN",
        "4294967295",
        "99999999999999999999999",
    ];
    match unit {
        Some(unit) => numbers
            .iter()
            .map(|number| format!("{number} {unit}"))
            .collect(),
        None => numbers.iter().map(|number| number.to_string()).collect(),
    }
}

/// Whether it was refused; what it does if not.
fn attempt(config: &GpuConfig, module: &Arc<Module>) -> Result<(), String> {
    let options = Options {
        mode: Mode::Timing,
        watchdog: Some(Cycles(100_000)),
        managed: Some(BASE + (1 << 21)..BASE + (1 << 22)),
        ..Options::default()
    };
    let mut gpu = Gpu::new(config, memory(), options).map_err(|error| error.to_string())?;
    let id = gpu
        .launch(launch(module, 4, 64, &[]))
        .map_err(|error| error.to_string())?;
    gpu.run_until_complete(id)
        .map_err(|error| error.to_string())?;
    Ok(())
}

#[test]
fn no_value_of_any_key_does_harm() {
    let module = kernel();
    let keys = keys();
    assert!(keys.len() > 200, "{}", keys.len());
    let (mut refused, mut ran, mut panicked) = (0, 0, Vec::new());
    std::panic::set_hook(Box::new(|_| {}));
    for kind in ["crossbar", "mesh"] {
        // Other keys have nothing to do with how packets travel.
        let concerned = |key: &str| kind == "crossbar" || key.starts_with("interconnect.");
        for (key, value) in keys.iter().filter(|(key, _)| concerned(key)) {
            for wrong in values(value) {
                let mut settings: Vec<String> = SMALL.iter().map(|s| (*s).into()).collect();
                settings.push(format!("interconnect.kind={kind}"));
                settings.push(format!("{key}={wrong}"));
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    let config =
                        load(Some("h200"), &settings).map_err(|error| error.to_string())?;
                    attempt(&config, &module)
                }));
                match outcome {
                    Ok(Ok(())) => ran += 1,
                    Ok(Err(sentence)) => {
                        assert!(sentence.len() > 10, "{key}={wrong}: {sentence}");
                        refused += 1;
                    }
                    Err(_) => panicked.push(format!("{key}={wrong} ({kind})")),
                }
            }
        }
    }
    let _ = std::panic::take_hook();
    assert!(
        panicked.is_empty(),
        "{} panic: {panicked:#?}",
        panicked.len()
    );
    assert!(refused > 800 && ran > 100, "{refused} refused, {ran} ran");
}
