//! A recorded run of a real GPU, scraped over a socket.

#[path = "support/recorded.rs"]
mod recorded;
mod support;

use std::collections::BTreeMap;

use lockstep_exporter::{Access, Options, Service};
use support::prometheus::Prometheus;
use support::{Folder, get, sum, values};

fn serve(options: &Options) -> String {
    let service = Service::start(options).unwrap();
    let url = service.url().unwrap();
    std::thread::spawn(move || service.run(None, |error| panic!("{error}")));
    url
}

/// Sums of the columns of `kernels.csv`, read without the exporter.
fn columns() -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(recorded::folder().join("kernels.csv")).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut sums = BTreeMap::new();
    for line in lines {
        for (name, field) in names.iter().zip(line.split(',')) {
            if let Ok(count) = field.parse::<u64>() {
                *sums.entry((*name).to_owned()).or_default() += count;
            }
        }
        *sums.entry("launches".to_owned()).or_default() += 1;
    }
    sums
}

#[test]
fn a_scrape_of_a_recorded_run_has_its_sums() {
    let url = serve(&recorded::options());
    let (head, page) = get(&url, "");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("application/openmetrics-text"), "{head}");
    let columns = columns();
    for name in [
        "inst_executed",
        "active_cycles",
        "inst_issued",
        "thread_inst_executed_pred_on",
        "warps_launched",
        "launches",
    ] {
        let served = sum(&page, &format!("lockstep_gpu_{name}_total"));
        assert!(served > 0.0, "{name}");
        assert_eq!(served, columns[name] as f64, "{name}");
    }
    assert_eq!(sum(&page, "lockstep_sampled_seconds_total"), 2.681_963_223);
    let real = values(&page).into_keys();
    assert!(real.filter(|key| key.contains("UUID")).all(|key| {
        key.contains("GPU-333b3954-edcb-41bc-baaa-e29bd4178454") && key.contains("source=\"real\"")
    }));
    let (head, _) = get(&url.replace("/metrics", "/nothing"), "");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[test]
fn labels_of_kernels_divide_the_same_sums() {
    let url = serve(&Options {
        top_kernels: 1,
        ..recorded::options()
    });
    let (_, page) = get(&url, "");
    let series = values(&page).into_keys();
    let kernels = series.filter(|key| key.starts_with("lockstep_gpu_inst_executed_total"));
    assert!(kernels.count() > 1, "{page}");
    let served = sum(&page, "lockstep_gpu_inst_executed_total");
    assert_eq!(served, columns()["inst_executed"] as f64);
}

#[test]
fn a_token_must_be_the_right_one() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let file = folder.0.join("token");
    std::fs::write(&file, "0123456789abcdef0123\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = Access::new(Some(&file), None).unwrap_err().to_string();
    assert!(
        refused.contains("others may read it (mode 644)"),
        "{refused}"
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let url = serve(&Options {
        access: Access::new(Some(&file), None).unwrap(),
        ..recorded::options()
    });
    let (head, _) = get(&url, "Authorization: Bearer 0123456789abcdef0123\r\n");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let (head, body) = get(&url, "Authorization: Bearer 0123456789abcdef0124\r\n");
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    assert!(!body.contains("lockstep_gpu"), "{body}");
}

#[test]
fn a_series_is_served_as_far_as_it_went() {
    let folder = Folder::new();
    let series = "sequence,time_ns,node,gpu,process,context,stream,kernel,source,exact,inst_executed,power,temperature,sm_clock,memory_clock,memory_used,host_cpu_time,host_memory\n\
        0,1000,n1,GPU-a,7,1,2,k,real,exact,10,,,,,,,\n\
        1,1500,n1,GPU-a,9,,,,real,exact,,70000,40,,,,,\n\
        2,2000,n1,GPU-a,7,1,2,k,real,exact,25,,,,,,,\n\
        3,2000,n1,GPU-a,8,1,2,k,real,exact,100,,,,,,,\n\
        4,2500,n1,,7,,,,real,exact,,,,,,,5,6\n";
    std::fs::write(folder.0.join("series.csv"), series).unwrap();
    let summary = r#"{"memberships": {"7": {"job": "12", "rank": "0"}}, "lost": 3}"#;
    std::fs::write(folder.0.join("summary.json"), summary).unwrap();
    let mut replay = lockstep_exporter::Replay::open(&folder.0, 0).unwrap();
    let mut counts = Vec::new();
    for elapsed in [0, 600, 1000] {
        replay.advance(elapsed);
        let page = lockstep_exporter::page(&std::sync::Arc::new(replay.figures().clone()));
        counts.push((
            sum(&page, "lockstep_gpu_inst_executed_total"),
            sum(&page, "DCGM_FI_DEV_POWER_USAGE"),
            sum(&page, "lockstep_records_lost_total"),
        ));
    }
    assert_eq!(
        counts,
        [(10.0, 0.0, 0.0), (10.0, 70.0, 0.0), (125.0, 70.0, 3.0)]
    );
    let page = lockstep_exporter::page(&std::sync::Arc::new(replay.figures().clone()));
    assert!(page.contains("hpc_job=\"12\",rank=\"0\"} 25"), "{page}");
}

#[test]
fn a_folder_that_is_no_run_is_named_with_its_line() {
    let folder = Folder::new();
    let open = || {
        lockstep_exporter::Replay::open(&folder.0, 0)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(open().contains("kernels.csv: "), "{}", open());
    let head = "kernel,gpu,start_ns,duration_ns,inst_executed\n";
    std::fs::write(
        folder.0.join("kernels.csv"),
        format!("{head}k,g,1,2,3\nk,g,1,2,many\n"),
    )
    .unwrap();
    assert!(
        open().contains("line 3: `many` is not a whole number"),
        "{}",
        open()
    );
    std::fs::write(folder.0.join("kernels.csv"), "kernel,start_ns\n").unwrap();
    assert!(open().contains("no column `gpu`"), "{}", open());
}

#[test]
fn prometheus_itself_scrapes_and_answers_a_query() {
    let folder = Folder::new();
    let url = serve(&recorded::options());
    let Some(prometheus) = Prometheus::start(&folder.0, &url) else {
        return;
    };
    let wanted = format!("\"{}\"", columns()["inst_executed"]);
    let query = "lockstep_gpu_inst_executed_total";
    let answer = prometheus.wait_for(query, |answer| answer.contains(&wanted));
    assert!(
        answer.contains("GPU-333b3954-edcb-41bc-baaa-e29bd4178454"),
        "{answer}"
    );
}
