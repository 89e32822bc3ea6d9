//! Tables of TOML by dotted keys.

use toml::{Table, Value};

/// The value of a key such as `l2.hit-latency`.
pub(crate) fn lookup<'table>(table: &'table Table, key: &str) -> Option<&'table Value> {
    match key.split_once('.') {
        None => table.get(key),
        Some((section, rest)) => lookup(table.get(section)?.as_table()?, rest),
    }
}

/// Gives a key its value, with the sections that it needs. A value where a section belongs stays.
pub(crate) fn set(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.into(), value);
        }
        Some((section, rest)) => {
            let inner = table.entry(section).or_insert_with(|| Table::new().into());
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// Takes the value of a key, and the sections that are empty without it.
pub(crate) fn remove(table: &mut Table, key: &str) -> Option<Value> {
    let Some((section, rest)) = key.split_once('.') else {
        return table.remove(key);
    };
    let inner = table.get_mut(section)?.as_table_mut()?;
    let value = remove(inner, rest)?;
    if inner.is_empty() {
        table.remove(section);
    }
    Some(value)
}

/// Every key of the table, with dots, down to plain values.
pub(crate) fn keys(table: &Table) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                all.extend(keys(inner).iter().map(|rest| format!("{key}.{rest}")));
            }
            _ => all.push(key.clone()),
        }
    }
    all
}

/// Lays a table over another.
pub(crate) fn merge(below: &mut Table, above: &Table) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}
