//! How much memory is left to this process: what the host has free, what its control group allows,
//! and what its own limits do. The kernel ends whoever takes more without a word; a run stops
//! before that.

use std::path::{Path, PathBuf};

/// What a simulated GPU takes before anything is in its memory, and a little more.
const LEAST: u64 = 96 << 20;
/// A run stops when less is left: enough to collect and write what it has.
const RESERVE: u64 = 64 << 20;
/// Limits of control groups above this mean that there is none.
const UNLIMITED: u64 = 1 << 60;

/// Memory that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Bytes.
    pub bytes: u64,
    /// What limits it, in words.
    pub limit: String,
}

impl Left {
    /// A sentence if a run cannot begin with this.
    pub fn too_little_to_begin(&self) -> Option<String> {
        let Self { bytes, limit } = self;
        (*bytes < LEAST).then(|| {
            format!(
                "{} MiB of memory are left ({limit}), and a simulated GPU takes {} MiB before \
                 anything runs on it: allow more, or end what else takes memory",
                bytes >> 20,
                LEAST >> 20
            )
        })
    }

    /// A sentence if a run cannot go on with this.
    pub fn too_little_to_go_on(&self) -> Option<String> {
        let Self { bytes, limit } = self;
        (*bytes < RESERVE).then(|| {
            format!(
                "the run was stopped because memory is used up: {} MiB are left ({limit}); allow \
                 more, or let the program use less",
                bytes >> 20
            )
        })
    }
}

/// The memory that is left to this process, by the tightest of all limits; `None` if the system
/// does not say.
pub fn left() -> Option<Left> {
    let all = [host(), control_group(), data_limit()];
    all.into_iter().flatten().min_by_key(|left| left.bytes)
}

fn host() -> Option<Left> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let free = field(&text, "MemAvailable:")? + field(&text, "SwapFree:").unwrap_or(0);
    Some(Left {
        bytes: free << 10,
        limit: "free on this host".into(),
    })
}

/// A number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// `ulimit -d`: private memory of this process.
fn data_limit() -> Option<Left> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Data).current?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(Left {
        bytes: limit.saturating_sub(field(&status, "VmData:")? << 10),
        limit: format!("ulimit -d {}", limit >> 10),
    })
}

fn control_group() -> Option<Left> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    control_group_under(Path::new("/sys/fs/cgroup"), &groups)
}

/// The tightest limit from the process's own group up to the root, in either version.
fn control_group_under(root: &Path, groups: &str) -> Option<Left> {
    let mut tightest: Option<Left> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        let first = controllers.split(',').any(|name| name == "memory");
        if !first && !controllers.is_empty() {
            continue;
        }
        let base = if first {
            root.join("memory")
        } else {
            root.to_path_buf()
        };
        let mut folder: PathBuf = base.join(group.trim_start_matches('/'));
        loop {
            let found = of_group(&folder, first);
            if let Some(left) = found
                && tightest
                    .as_ref()
                    .is_none_or(|known| left.bytes < known.bytes)
            {
                tightest = Some(left);
            }
            if folder == base || !folder.pop() {
                break;
            }
        }
    }
    tightest
}

fn of_group(folder: &Path, first: bool) -> Option<Left> {
    let (limit, used, cache) = match first {
        true => (
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
        ),
        false => ("memory.max", "memory.current", "inactive_file"),
    };
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    // `max` is no number, and means no limit.
    let limit: u64 = read(limit)?.trim().parse().ok()?;
    let used: u64 = read(used)?.trim().parse().ok()?;
    let cache = read("memory.stat").and_then(|text| field(&text, cache));
    // What the kernel can drop at any time is not used.
    let used = used.saturating_sub(cache.unwrap_or(0));
    (limit < UNLIMITED).then(|| Left {
        bytes: limit.saturating_sub(used),
        limit: format!("of {} MiB that its control group may have", limit >> 20),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_some_memory_left() {
        assert!(left().unwrap().bytes > 1 << 20);
    }

    #[test]
    fn the_tightest_control_group_counts() {
        let root = std::env::temp_dir().join(format!("lockstep-groups-{}", std::process::id()));
        let group = root.join("user/run");
        std::fs::create_dir_all(&group).unwrap();
        let write = |folder: &Path, limit: &str, used: u64| {
            std::fs::write(folder.join("memory.max"), format!("{limit}\n")).unwrap();
            std::fs::write(folder.join("memory.current"), format!("{used}\n")).unwrap();
            let cache = "anon 1\ninactive_file 1048576\n";
            std::fs::write(folder.join("memory.stat"), cache).unwrap();
        };
        write(&group, "max", 3 << 20);
        assert_eq!(control_group_under(&root, "0::/user/run\n"), None);
        write(group.parent().unwrap(), "209715200", 150 << 20);
        let left = control_group_under(&root, "0::/user/run\n").unwrap();
        assert_eq!(left.bytes, 51 << 20);
        let said = left.too_little_to_go_on().unwrap();
        assert!(said.contains("of 200 MiB"), "{said}");
        assert!(left.too_little_to_begin().is_some());
        write(&group, "104857600", 10 << 20);
        let tight = control_group_under(&root, "0::/user/run\n").unwrap();
        assert_eq!(tight.bytes, 51 << 20);
        std::fs::remove_dir_all(root).unwrap();
    }
}
