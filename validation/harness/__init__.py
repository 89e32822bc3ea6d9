"""What the scripts of `validation/`, `studies/` and `workloads/` share.

    project     where the repository, the simulator and the CUDA toolkit are
    simulator   one run of `lockstep run` and what it left behind
    protocol    the rules of the validation protocol, asked of `lockstep figures`
    tables      tables of measurements with where they come from, and Markdown
    workloads   the programs of workloads.toml: arguments, building, verdicts
    metrics     the profiler's names of counters
    machine     the GPU and the processors that a measurement was made on
    claims      sentences of a study that hold or fail

Only the standard library is needed. A measurement rule is never written here: an error, a spread, a
launch that repeats or the plain name of a kernel is asked of the simulator, which has the one copy
(`crates/correlation`).
"""
