//! Bounds that every value of a kind has, whatever its key: a cycle count that no run would ever
//! reach, or a clock at which nothing happens, is a slip of the pen.

use crate::ConfigError;
use lockstep_units::{Bandwidth, Bytes, BytesPerCycle, Cycles, Duration, Hertz};
use toml::{Table, Value};

/// Keys that may have more cycles than others.
const LONG: &[&str] = &["launch.watchdog"];

/// Refuses the first value of a configuration that is beyond the bounds of its kind.
pub fn check(path: &str, table: &Table) -> Result<(), ConfigError> {
    walk(path, "", table)
}

fn walk(path: &str, prefix: &str, table: &Table) -> Result<(), ConfigError> {
    for (name, value) in table {
        let key = match prefix {
            "" => name.clone(),
            prefix => format!("{prefix}.{name}"),
        };
        match value {
            Value::Table(inner) => walk(path, &key, inner)?,
            Value::Array(values) => values
                .iter()
                .try_for_each(|value| check_one(path, &key, value))?,
            value => check_one(path, &key, value)?,
        }
    }
    Ok(())
}

fn check_one(path: &str, key: &str, value: &Value) -> Result<(), ConfigError> {
    if let Value::String(text) = value
        && let Some(because) = beyond(key, text)
    {
        return Err(ConfigError::Malformed {
            path: path.into(),
            message: format!("`{key}` = {text}, but {because}"),
        });
    }
    Ok(())
}

/// What is wrong with a value, if it is one with a unit.
fn beyond(key: &str, text: &str) -> Option<&'static str> {
    if let Ok(Cycles(cycles)) = text.parse() {
        let most: u64 = if LONG.contains(&key) {
            1 << 48
        } else {
            1 << 24
        };
        return (cycles > most).then_some("at most 16,777,216 cycles can be simulated");
    }
    if let Ok(clock) = text.parse::<Hertz>() {
        let sane = 1_000_000..=100_000_000_000;
        return (!sane.contains(&clock.get())).then_some("a clock has 1 MHz to 100 GHz");
    }
    if let Ok(rate) = text.parse::<BytesPerCycle>() {
        return (rate.get() > 1 << 20).then_some("at most 1,048,576 bytes move in a cycle");
    }
    if let Ok(rate) = text.parse::<Bandwidth>() {
        let sane = 1_000_000..=1_000_000_000_000_000;
        return (!sane.contains(&rate.get())).then_some("a bandwidth is 1 MB/s to 1,000 TB/s");
    }
    if let Ok(Bytes(bytes)) = text.parse() {
        return (bytes > 1 << 40).then_some("at most 1 TiB can be simulated");
    }
    if let Ok(length) = text.parse::<Duration>() {
        return (length > Duration::microseconds(10_000_000)).then_some("at most 10 s make sense");
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::{ConfigError, load};

    fn refused(setting: &str) -> String {
        match load(Some("h200"), &[setting]) {
            Ok(_) => panic!("{setting} was accepted"),
            Err(error) => error.to_string(),
        }
    }

    /// What can be wrong, by kind of mistake.
    #[test]
    fn bad_inputs_are_refused_with_a_reason() {
        let table = [
            // Nothing, or less than that.
            ("device.sms=0", "`device.sms` = 0, but it must not be 0"),
            ("sm.sub-cores=0", "`sm.sub-cores` = 0, but it must not be 0"),
            ("device.sms=-1", "`device.sms`: invalid value"),
            ("l2.hit-latency=-3 cycles", "`l2.hit-latency`"),
            ("device.clock=0 Hz", "`device.clock`"),
            ("l2.bytes-per-cycle=0 B/cycle", "`l2.bytes-per-cycle`"),
            ("interconnect.network.buffer-flits=0", "it must not be 0"),
            // No numbers.
            ("device.sms=NaN", "`device.sms`"),
            ("device.clock=NaN GHz", "`device.clock`"),
            ("device.clock=inf GHz", "`device.clock`"),
            ("dram.turnaround=nan ps", "`dram.turnaround`"),
            ("device.sms=1.5", "`device.sms`"),
            // Too much.
            ("device.sms=4097", "at most 4096 can be simulated"),
            ("device.sms=4294967296", "`device.sms`"),
            ("device.memory=2 TiB", "at most 1 TiB can be simulated"),
            ("l2.capacity=1 TiB", "can be simulated"),
            ("l2.hit-latency=99999999999 cycles", "16,777,216 cycles"),
            (
                "interconnect.tpc-hop-latency=[\"99999999999 cycles\"]",
                "16,777,216 cycles",
            ),
            ("dram.banks=99999", "can be simulated"),
            ("sm.warps=128", "at most 64 can be simulated"),
            ("device.clock=1 THz", "`device.clock`"),
            ("device.clock=200 GHz", "a clock has 1 MHz to 100 GHz"),
            ("device.clock=10 Hz", "a clock has 1 MHz to 100 GHz"),
            ("host.call=100 s", "at most 10 s make sense"),
            ("copy.pinned=1 B/s", "a bandwidth is 1 MB/s to 1,000 TB/s"),
            // Not what hardware is made of.
            ("l2.line=96 B", "it must be"),
            ("l1.line=100 B", "it must be"),
            ("dram.burst=48 B", "it must be a power of two"),
            ("sm.front-end.line=24 B", "it must be a power of two"),
            // Impossible together.
            ("sm.warps=30", "a multiple of `sm.sub-cores`"),
            ("dram.channels=7", "do not divide evenly"),
            ("l2.ways=7", "not a multiple of slices x ways x line"),
            ("device.reserved-memory=512 GiB", "it leaves no memory"),
            // Unknown names.
            ("host.machine.kind=machin", "did you mean `machine`?"),
            ("devise.sms=3", "did you mean `device.sms`?"),
            (
                "interconnect.netwrk.buffer-flits=3",
                "did you mean `interconnect.network.buffer-flits`?",
            ),
            ("uvm.walk.mode=level", "it must be one of fixed, levels"),
        ];
        for (setting, reason) in table {
            let sentence = refused(setting);
            assert!(sentence.contains(reason), "{setting}: {sentence}");
        }
    }

    #[test]
    fn every_gpu_of_the_catalogue_is_within_them() {
        for entry in crate::CATALOGUE {
            let loaded: Result<_, ConfigError> = load::<&str>(Some(entry.name), &[]);
            loaded.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
