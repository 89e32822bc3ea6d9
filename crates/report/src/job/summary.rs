//! `summary.json` of a job.

use super::rank::Rank;
use super::{rank_folder, replace};
use crate::error::ReportError;
use serde_json::{Value, json};
use std::path::Path;

/// Writes it.
pub(super) fn write(job: &Path, ranks: &[Rank], begun: u64) -> Result<(), ReportError> {
    let ended = || ranks.iter().filter_map(|rank| rank.summary.as_ref());
    let first = ended().next();
    let of_first = |name: &str| first.map_or(Value::Null, |one| one[name].clone());
    let real = ended().any(|one| one["source"] == "real");
    let codes = || ended().map(|one| one["exit_code"].as_i64());
    // A rank that a signal ended has no code.
    let failed = codes().find(|code| *code != Some(0));
    let partial = ended().count() < ranks.len();
    let state = match (partial, failed) {
        (true, _) => "running",
        (false, Some(_)) => "failed",
        (false, None) => "finished",
    };
    let said = json!({
        "lockstep": env!("CARGO_PKG_VERSION"),
        "source": if real { "real" } else { "simulated" },
        "state": state,
        "partial": partial,
        "command": of_first("command"),
        "exit_code": failed.unwrap_or(Some(0)),
        "metadata": of_first("metadata"),
        "began_ns": begun,
        "ranks": ranks.iter().map(about).collect::<Vec<_>>(),
        "totals": from_each(ranks, "totals", |rank, mut total| {
            total["rank"] = rank.info.rank.into();
            total
        }),
        "notices": from_each(ranks, "notices", sentence),
        "losses": from_each(ranks, "losses", sentence),
    });
    let text = serde_json::to_vec_pretty(&said).unwrap_or_default();
    replace(&job.join("summary.json"), &text)
}

fn about(rank: &Rank) -> Value {
    let summary = rank.summary.as_ref();
    let folder = rank_folder(Path::new(""), rank.info.rank);
    json!({
        "rank": rank.info.rank,
        "node": rank.info.node,
        "folder": folder,
        "ended": summary.is_some(),
        "exit_code": summary.map(|one| one["exit_code"].clone()),
        "clock_offset_ns": rank.info.clock_offset_ns,
        "clock_within_ns": rank.info.clock_within_ns,
        "aligned_by_ns": rank.offset(),
    })
}

/// The members of a list that every rank has, each with its rank.
fn from_each(ranks: &[Rank], name: &str, with_rank: impl Fn(&Rank, Value) -> Value) -> Vec<Value> {
    let mut all = Vec::new();
    for rank in ranks {
        let list = rank.summary.as_ref().and_then(|one| one[name].as_array());
        let list = list.into_iter().flatten().cloned();
        all.extend(list.map(|one| with_rank(rank, one)));
    }
    all
}

fn sentence(rank: &Rank, said: Value) -> Value {
    format!("rank {}: {}", rank.info.rank, said.as_str().unwrap_or("")).into()
}
