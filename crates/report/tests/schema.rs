//! The JSON form is what its published schema says, field by field.

mod common;

use common::{Folder, launch};
use lockstep_report::report;
use serde_json::Value;

/// The parts of JSON Schema that ours uses.
fn check(schema: &Value, root: &Value, value: &Value, place: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#'));
        return check(target.ok_or("no such definition")?, root, value, place);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let tried: Vec<_> = any
            .iter()
            .map(|one| check(one, root, value, place))
            .collect();
        return match tried.iter().any(Result::is_ok) {
            true => Ok(()),
            false => Err(format!("{tried:?}")),
        };
    }
    let fits = |name: &Value| match name.as_str() {
        Some("null") => value.is_null(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        other => panic!("the test does not know the type {other:?}"),
    };
    let fitting = match &schema["type"] {
        Value::Null => {
            schema["const"] == *value
                || schema["enum"]
                    .as_array()
                    .is_some_and(|all| all.contains(value))
        }
        Value::Array(names) => names.iter().any(fits),
        name => fits(name),
    };
    if !fitting {
        return Err(format!("{place}: {value} is not {schema}"));
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&schema["items"], root, item, &format!("{place}/{number}"))?;
    }
    let Some(fields) = value.as_object() else {
        return Ok(());
    };
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !fields.contains_key(name) {
            return Err(format!("{place}: `{name}` is missing"));
        }
    }
    for (name, field) in fields {
        let inner = match &schema["properties"][name] {
            Value::Null => &schema["additionalProperties"],
            known => known,
        };
        if *inner == Value::Bool(false) || inner.is_null() {
            return Err(format!("{place}: the schema does not know `{name}`"));
        }
        check(inner, root, field, &format!("{place}/{name}"))?;
    }
    Ok(())
}

fn schema() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/report.schema.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_json_form_is_as_published() {
    let whole = Folder::simulated(
        "schema",
        &[launch(0, "a", 20_000, 34_000_000), launch(1, "b", 100, 0)],
    );
    let cut = Folder::new("schema-cut");
    cut.write("kernels.csv", "launch,kernel,duration_ns\n0,a,17\n");
    let runs = [whole.read().unwrap(), cut.read().unwrap()];
    let value = serde_json::to_value(report(&runs)).unwrap();
    assert!(
        !value["runs"][0]["kernels"][0]["advice"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert_eq!(value["comparison"]["kernels"][0]["name"], "a");
    check(&schema(), &schema(), &value, "").unwrap();
}

#[test]
fn what_does_not_fit_the_schema_is_found() {
    let folder = Folder::simulated("schema-wrong", &[launch(0, "a", 100, 0)]);
    let mut value = serde_json::to_value(report(&[folder.read().unwrap()])).unwrap();
    value["runs"][0]["kernels"][0]["launches"] = "three".into();
    let said = check(&schema(), &schema(), &value, "").unwrap_err();
    assert!(said.starts_with("/runs/0/kernels/0/launches: "), "{said}");
    value["runs"][0]["kernels"][0]["launches"] = 3.into();
    value["runs"][0]["new"] = 1.into();
    let said = check(&schema(), &schema(), &value, "").unwrap_err();
    assert_eq!(said, "/runs/0: the schema does not know `new`");
}
