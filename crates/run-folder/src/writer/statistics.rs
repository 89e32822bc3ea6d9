//! `stats.csv`: every statistic of every component.

use lockstep_stats::Table;

/// Bytes that a row takes, more or less.
const ROW: usize = 128;

/// The table as text. It has tens of thousands of rows of a few kinds of components, so what does
/// not change within a kind is made once.
pub(super) fn to_csv(table: &Table) -> Vec<u8> {
    let mut text = b"component,statistic,value,unit,description\n".to_vec();
    let mut kinds: Vec<Option<Vec<Around>>> = Vec::new();
    kinds.resize_with(table.kinds(), || None);
    for (path, kind, values) in table.components() {
        let mut component = Vec::new();
        field(&mut component, path);
        let Some(numbers) = values.numbers() else {
            values.each(&mut |description, name, unit, value| {
                let name = name.as_deref().unwrap_or(description.name);
                let around = Around::new(name, unit, description.help);
                around.write(&mut text, &component, value);
            });
            continue;
        };
        let rows = kinds[kind].get_or_insert_with(|| {
            let all = values.descriptions().iter();
            all.map(|one| Around::new(one.name, one.unit, one.help))
                .collect()
        });
        text.reserve(rows.len() * ROW);
        for (around, value) in rows.iter().zip(numbers) {
            around.write(&mut text, &component, *value);
        }
    }
    text
}

/// What stands before and after the value of a statistic.
struct Around {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Around {
    fn new(name: &str, unit: &str, help: &str) -> Self {
        let (mut before, mut after) = (b",".to_vec(), b",".to_vec());
        field(&mut before, name);
        before.push(b',');
        field(&mut after, unit);
        after.push(b',');
        field(&mut after, help);
        after.push(b'\n');
        Self { before, after }
    }

    fn write(&self, text: &mut Vec<u8>, component: &[u8], mut value: u64) {
        text.extend_from_slice(component);
        text.extend_from_slice(&self.before);
        // The last digit first: a formatter takes several times as long.
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        text.extend_from_slice(&digits[first..]);
        text.extend_from_slice(&self.after);
    }
}

/// Writes one field, in quotes if it must be.
fn field(text: &mut Vec<u8>, value: &str) {
    let special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    if !value.as_bytes().iter().any(special) {
        text.extend_from_slice(value.as_bytes());
        return;
    }
    text.push(b'"');
    for byte in value.bytes() {
        if byte == b'"' {
            text.push(b'"');
        }
        text.push(byte);
    }
    text.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_stats::statistics;

    statistics! {
        /// What a test counts.
        struct Counted {
            /// Instructions, executed.
            inst_executed: Counter [warp instructions],
            /// The largest "queue".
            queue: Maximum [requests],
        }
    }

    statistics! {
        /// How long a test waits.
        struct Waited {
            /// Waits.
            wait: Histogram [cycles],
        }
    }

    #[test]
    fn a_row_says_what_was_counted_where_and_in_which_unit() {
        let mut table = Table::default();
        let mut counted = Counted::default();
        counted.inst_executed.add(u64::MAX);
        table.add("gpu 0/sm/3", &counted);
        table.add("gpu 0/sm/4", &Counted::default());
        let mut waited = Waited::default();
        waited.wait.add(5);
        table.add("gpu 0/gmmu", &waited);
        let text = String::from_utf8(to_csv(&table)).unwrap();
        assert_eq!(
            text,
            "component,statistic,value,unit,description\n\
             gpu 0/sm/3,inst_executed,18446744073709551615,warp instructions,\"Instructions, executed.\"\n\
             gpu 0/sm/3,queue,0,requests,\"The largest \"\"queue\"\".\"\n\
             gpu 0/sm/4,inst_executed,0,warp instructions,\"Instructions, executed.\"\n\
             gpu 0/sm/4,queue,0,requests,\"The largest \"\"queue\"\".\"\n\
             gpu 0/gmmu,wait.count,1,samples,Waits.\n\
             gpu 0/gmmu,wait.sum,5,cycles,Waits.\n\
             gpu 0/gmmu,wait.largest,5,cycles,Waits.\n\
             gpu 0/gmmu,wait.up_to.7,1,samples,Waits.\n"
        );
    }
}
