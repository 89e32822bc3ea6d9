//! The job and the rank of a process, as its batch system or its launcher says.

/// Variables that name the job, the surest first.
const JOB: &[&str] = &[
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "FLUX_JOB_ID",
    "JOB_ID",
];

/// Variables that number the process, the closest launcher first.
pub const RANK_VARIABLES: &[&str] = &[
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
    "FLUX_TASK_RANK",
    "RANK",
];

/// Longer texts are no numbers of jobs.
const LONGEST: usize = 64;

/// The job that this process belongs to.
pub(super) fn job() -> Option<String> {
    first(JOB, |name| std::env::var(name).ok())
}

/// The rank of this process, if a launcher numbered it.
pub fn rank() -> Option<String> {
    first(RANK_VARIABLES, |name| std::env::var(name).ok())
}

fn first(names: &[&str], variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    names
        .iter()
        .filter_map(|name| variable(name))
        .find(|text| !text.is_empty() && text.len() <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_launcher_numbers_the_process() {
        let variables = |name: &str| match name {
            "SLURM_PROCID" => Some("0".to_owned()),
            "OMPI_COMM_WORLD_RANK" => Some("3".to_owned()),
            "PMI_RANK" => Some(String::new()),
            _ => None,
        };
        assert_eq!(first(RANK_VARIABLES, variables), Some("3".to_owned()));
        assert_eq!(first(JOB, variables), None);
    }
}
