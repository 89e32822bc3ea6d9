//! On which node of a cluster a process lives.
//!
//! All processes of a run are on one machine, so nothing of the system can say it. What says it is
//! [`NODE_VARIABLE`], or the launcher: its own count of nodes where it knows of several, and otherwise the rank,
//! in equal blocks. A process of which nothing is said is on node 0.
//!
//! Start reading at [`node_of`].

use thiserror::Error;

/// The environment variable that says how many nodes a run has, if there are several.
pub const NODES_VARIABLE: &str = "LOCKSTEP_NODES";

/// The environment variable by which a process, or what started it, says on which node it is.
pub const NODE_VARIABLE: &str = "LOCKSTEP_NODE";

/// How a launcher tells a process where it stands.
struct Launcher {
    /// The rank among all processes.
    rank: &'static str,
    /// How many there are.
    size: &'static str,
    /// What the launcher knows of nodes.
    nodes: Nodes,
}

/// What a launcher knows of nodes.
enum Nodes {
    /// The variable with the number of processes on a node: ranks are counted node by node.
    LocalSize(&'static str),
    /// The variables with the number of this node, and of all.
    Numbered(&'static str, &'static str),
}

/// From the innermost launcher to the outermost: workers of `torchrun` may have been started by `srun`.
const LAUNCHERS: &[Launcher] = &[
    // torchrun
    Launcher {
        rank: "RANK",
        size: "WORLD_SIZE",
        nodes: Nodes::LocalSize("LOCAL_WORLD_SIZE"),
    },
    // Open MPI
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        nodes: Nodes::LocalSize("OMPI_COMM_WORLD_LOCAL_SIZE"),
    },
    // MPICH and those that descend from it
    Launcher {
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        nodes: Nodes::LocalSize("MPI_LOCALNRANKS"),
    },
    // Slurm
    Launcher {
        rank: "SLURM_PROCID",
        size: "SLURM_NTASKS",
        nodes: Nodes::Numbered("SLURM_NODEID", "SLURM_NNODES"),
    },
];

/// Why nobody knows on which node a process is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlacementError {
    /// A variable that should be a number.
    #[error(
        "{variable}={found} in the environment is no number; it says on which node a process is"
    )]
    NotANumber {
        /// The variable.
        variable: String,
        /// Its value.
        found: String,
    },
    /// A node that is not there.
    #[error(
        "{variable}={found} in the environment puts a process on node {node}, and the run has {nodes}, numbered \
         from 0: see --nodes"
    )]
    NoSuchNode {
        /// The variable.
        variable: String,
        /// Its value.
        found: u32,
        /// The node that follows from it.
        node: u32,
        /// Nodes of the run.
        nodes: u32,
    },
}

/// The node of a process, by what its environment says.
///
/// # Errors
/// A variable is no number, or there is no such node.
pub fn node_of(variable: impl Fn(&str) -> Option<String>) -> Result<u32, PlacementError> {
    let number = |name: &str| match variable(name).filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => match text.trim().parse::<u32>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(PlacementError::NotANumber {
                variable: name.into(),
                found: text,
            }),
        },
    };
    let nodes = number(NODES_VARIABLE)?.unwrap_or(1).max(1);
    let there = |variable: &str, found: u32, node: u32| match node < nodes {
        true => Ok(node),
        false => Err(PlacementError::NoSuchNode {
            variable: variable.into(),
            found,
            node,
            nodes,
        }),
    };
    if let Some(node) = number(NODE_VARIABLE)? {
        return there(NODE_VARIABLE, node, node);
    }
    // With one node launchers have nothing to say.
    let launchers = if nodes > 1 { LAUNCHERS } else { &[] };
    for launcher in launchers {
        let (Some(rank), Some(size)) = (number(launcher.rank)?, number(launcher.size)?) else {
            continue;
        };
        let mut each = size.div_ceil(nodes);
        match launcher.nodes {
            Nodes::LocalSize(local) => {
                let local = number(local)?;
                each = local.filter(|local| *local < size).unwrap_or(each);
            }
            Nodes::Numbered(own, all) => {
                if let (Some(node), Some(2..)) = (number(own)?, number(all)?) {
                    return there(own, node, node);
                }
            }
        }
        return there(launcher.rank, rank, rank / each.max(1));
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(environment: &str, expected: Result<u32, &str>) {
        let variable = |name: &str| {
            let mut words = environment.split_whitespace();
            let found = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            found.map(str::to_owned)
        };
        let found = node_of(variable);
        match expected {
            Ok(node) => assert_eq!(found, Ok(node), "{environment}"),
            Err(words) => {
                let said = found.expect_err(environment).to_string();
                assert!(said.contains(words), "{environment}: {said}");
            }
        }
    }

    #[test]
    fn the_variable_of_ours_comes_first() {
        check("", Ok(0));
        check("LOCKSTEP_NODES=8", Ok(0));
        check(
            "LOCKSTEP_NODES=8 LOCKSTEP_NODE=3 RANK=0 WORLD_SIZE=2",
            Ok(3),
        );
        check("LOCKSTEP_NODES=8 LOCKSTEP_NODE=8", Err("LOCKSTEP_NODE=8"));
        check("LOCKSTEP_NODE=1", Err("node 1, and the run has 1"));
        check(
            "LOCKSTEP_NODES=8 LOCKSTEP_NODE=one",
            Err("LOCKSTEP_NODE=one"),
        );
    }

    #[test]
    fn launchers_say_where_a_rank_is() {
        let torchrun = |rank: u32| format!("RANK={rank} WORLD_SIZE=16 LOCAL_WORLD_SIZE=8");
        check(&format!("LOCKSTEP_NODES=2 {}", torchrun(7)), Ok(0));
        check(&format!("LOCKSTEP_NODES=2 {}", torchrun(8)), Ok(1));
        check(&torchrun(8), Ok(0));
        let slurm = "SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_NODEID=1 SLURM_NNODES=2";
        check(&format!("LOCKSTEP_NODES=2 {slurm}"), Ok(1));
        check(
            "LOCKSTEP_NODES=2 RANK=9 WORLD_SIZE=12 LOCAL_WORLD_SIZE=4",
            Err("RANK=9 in the environment puts a process on node 2"),
        );
    }

    #[test]
    fn a_launcher_that_knows_one_machine_has_its_ranks_in_blocks() {
        for (rank, node) in [(0, 0), (7, 0), (8, 1), (63, 7)] {
            check(
                &format!(
                    "LOCKSTEP_NODES=8 OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_SIZE=64 \
                     OMPI_COMM_WORLD_LOCAL_SIZE=64"
                ),
                Ok(node),
            );
        }
        let slurm = "SLURM_NTASKS=3 SLURM_NODEID=0 SLURM_NNODES=1";
        check(&format!("LOCKSTEP_NODES=2 SLURM_PROCID=2 {slurm}"), Ok(1));
        check(
            "LOCKSTEP_NODES=2 PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2",
            Ok(1),
        );
    }
}
