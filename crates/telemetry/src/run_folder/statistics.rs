//! `stats.csv`: every statistic of every component.

use lockstep_stats::Row;
use std::io;

pub(super) fn to_csv(rows: &[Row]) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["component", "statistic", "value", "unit", "description"])?;
    for row in rows {
        let value = row.value.to_string();
        writer.write_record([&*row.component, &*row.name, &value, row.unit, row.help])?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_was_counted_where_and_in_which_unit() {
        let row = Row {
            component: "gpu 0/sm/3".into(),
            name: "inst_executed".into(),
            unit: "warp instructions",
            value: 7,
            help: "Instructions, executed.",
        };
        let text = String::from_utf8(to_csv(&[row]).unwrap()).unwrap();
        assert_eq!(
            text,
            "component,statistic,value,unit,description\n\
             gpu 0/sm/3,inst_executed,7,warp instructions,\"Instructions, executed.\"\n"
        );
    }
}
