//! Comparisons and exports: what other tools get.

mod common;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use common::{Folder, launch};
use lockstep_report::compare::compare;
use lockstep_report::export::{Names, csv, parquet, perfetto};

#[test]
fn a_real_and_a_simulated_run_are_paired_by_name_and_counter() {
    let simulated = Folder::simulated(
        "compare",
        &[launch(0, "_Z4workPfi", 1980, 0), launch(1, "own", 10, 0)],
    );
    let real = Folder::new("compare-real");
    real.write(
        "summary.json",
        r#"{"lockstep": "0.1.0", "source": "real", "command": ["./p"], "exit_code": 0, "totals": [{"gpu": "GPU-1"}]}"#,
    );
    real.write(
        "kernels.csv",
        "launch,kernel,gpu,context,stream,grid,block,start_ns,duration_ns,cycles,inst_executed,process,source,exact\n\
         0,void ns::work(float *),GPU-1,1,7,2x1x1,64x1x1,1794756691983900523,2000,,50000,8,real,exact\n\
         1,void ns::work(float *),GPU-1,1,7,2x1x1,64x1x1,1794756691983909523,2000,,50000,8,real,exact\n",
    );
    let comparison = compare(&[real.read().unwrap(), simulated.read().unwrap()]);
    assert_eq!(comparison.runs[0].source, "real");
    assert_eq!(comparison.runs[0].state, "finished");
    let [kernel] = &comparison.kernels[..] else {
        panic!("{:?}", comparison.kernels);
    };
    assert_eq!(
        (kernel.name.as_str(), &kernel.launches[..]),
        ("work", &[2, 1][..])
    );
    let shown: Vec<_> = kernel
        .counters
        .iter()
        .map(|one| (one.counter, one.ratios[1].unwrap()))
        .collect();
    assert_eq!(shown, [("duration_ns", 0.5), ("inst_executed", 2.0)]);
    let notes = comparison.notes.join("\n");
    assert!(notes.contains("work was launched 2 and 1 times"), "{notes}");
    assert!(notes.contains("has own"), "{notes}");
    let page = lockstep_report::comparison_page(&comparison);
    assert!(page.html().contains("<svg") && page.text().contains("0.500"));
}

#[test]
fn csv_has_names_of_ncu_where_there_are_some() {
    let folder = Folder::simulated("csv", &[launch(0, "a, \"b\"", 1980, 12)]);
    let run = folder.read().unwrap();
    let text = String::from_utf8(csv(&run, Names::Ncu).unwrap()).unwrap();
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    let cell = |name: &str| &row[head.iter().position(|column| column == name).unwrap()];
    assert_eq!(cell("sm__cycles_elapsed.max"), "1980");
    assert_eq!(cell("dram__bytes_write.sum"), "12");
    assert_eq!(
        cell("sm__warps_active.avg.pct_of_peak_sustained_active"),
        "50"
    );
    assert_eq!(
        (cell("blocks_completed"), cell("grid_y"), cell("kernel")),
        ("0", "2", "a, \"b\"")
    );
    let ours = String::from_utf8(csv(&run, Names::Lockstep).unwrap()).unwrap();
    assert!(ours.lines().next().unwrap().contains(",cycles,"));
}

/// One field of a message on the wire: number, and a number or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        match key & 7 {
            0 => all.push((key >> 3, value, &[][..])),
            2 => {
                let (inner, rest) = bytes.split_at(value as usize);
                all.push((key >> 3, 0, inner));
                bytes = rest;
            }
            other => panic!("kind {other}"),
        }
    }
    all
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for place in 0.. {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << (7 * place);
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

fn one<'bytes>(message: &[(u64, u64, &'bytes [u8])], field: u64) -> (u64, &'bytes [u8]) {
    let found = message.iter().find(|(number, ..)| *number == field);
    found.map(|(_, value, bytes)| (*value, *bytes)).unwrap()
}

#[test]
fn a_perfetto_trace_has_typed_launches_and_counters() {
    let folder = Folder::simulated(
        "perfetto",
        &[launch(0, "_Z4workPfi", 1980, 0), launch(1, "b", 1980, 7)],
    );
    let trace = perfetto(&folder.read().unwrap(), Names::Ncu);
    let packets: Vec<_> = fields(&trace)
        .into_iter()
        .map(|(_, _, packet)| fields(packet))
        .collect();
    let interned = fields(one(&packets[0], 12).1);
    let kernel = fields(one(&interned, 1000).1);
    assert_eq!(one(&kernel, 2).1, b"_Z4workPfi");
    assert_eq!(one(&kernel, 3).1, b"work(float*, int)");
    assert_eq!(one(&kernel, 4).1, b"sm_90");

    let launches: Vec<_> = packets
        .iter()
        .filter(|packet| packet.iter().any(|field| field.0 == 53))
        .collect();
    assert_eq!(launches.len(), 2);
    assert_eq!(one(launches[1], 8).0, 21_000);
    let event = fields(one(launches[1], 53).1);
    assert_eq!((one(&event, 2).0, one(&event, 17).1), (1000, &b"b"[..]));
    let shape = fields(one(&event, 21).1);
    let [x, y, z] = [1, 2, 3].map(|axis| one(&fields(one(&shape, 1).1), axis).0);
    assert_eq!([x, y, z], [2000, 2, 1]);

    // A descriptor, and a value where each launch begins and ends.
    let counters: Vec<_> = packets
        .iter()
        .filter(|packet| packet.iter().any(|field| field.0 == 52))
        .collect();
    assert_eq!(counters.len(), 1 + 4);
    let descriptor = fields(one(counters[0], 52).1);
    let spec = fields(one(&fields(one(&descriptor, 1).1), 1).1);
    assert_eq!(one(&spec, 2).1, b"sm__cycles_elapsed.max");
    let values: Vec<u64> = counters[1..]
        .iter()
        .map(|packet| one(&fields(one(&fields(one(packet, 52).1), 2).1), 2).0)
        .collect();
    assert_eq!(values, [1980, 0, 1980, 0]);
}

#[test]
fn a_parquet_file_has_a_row_a_launch() {
    let folder = Folder::simulated("parquet", &[launch(0, "a", 1980, 0), launch(1, "b", 5, 7)]);
    let file = parquet(&folder.read().unwrap(), Names::Lockstep).unwrap();
    let path = std::env::temp_dir().join(format!("lockstep-export-{}", std::process::id()));
    std::fs::write(&path, file).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 2);
    let rows = reader.get_row_iter(None).unwrap();
    let rows: Vec<String> = rows.map(|row| row.unwrap().to_string()).collect();
    assert!(rows[0].contains("dram_bytes_written: 0,"), "{}", rows[0]);
    assert!(rows[1].contains("dram_bytes_written: 7,"), "{}", rows[1]);
}
