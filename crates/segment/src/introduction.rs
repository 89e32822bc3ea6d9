//! Who publishes: the names that every segment begins with.

use super::membership;
use super::publisher::Publisher;
use super::record::{IdentityKind, NO_IDENTITY};

/// Longer commands are cut.
const LONGEST_COMMAND: usize = 1000;

impl Publisher {
    /// Names the node, this process and its command, the job and the rank that it belongs to, and
    /// the counters in the order of the values of its records.
    pub fn introduce(&mut self, command: &str, counters: &[&str]) {
        let command: String = command.chars().take(LONGEST_COMMAND).collect();
        let process = std::process::id();
        self.name(IdentityKind::Node, NO_IDENTITY, 0, &node_name());
        self.name(IdentityKind::Process, NO_IDENTITY, process, &command);
        for (kind, text) in [
            (IdentityKind::Job, membership::job()),
            (IdentityKind::Rank, membership::rank()),
        ] {
            if let Some(text) = text {
                self.name(kind, NO_IDENTITY, 0, &text);
            }
        }
        for counter in counters {
            self.name(IdentityKind::Counter, NO_IDENTITY, 0, counter);
        }
    }
}

/// The name of this machine.
pub fn node_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}
