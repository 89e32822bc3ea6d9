"""What the checks of `lockstep.profile` share: the same launch by a program of its own, under `lockstep run`.

A script of checks is also the program: with `--launch NAME` it makes the launch NAME with its package's own launcher.
"""

import contextlib
import os
import sys
import tempfile

import lockstep

#: Columns that tell when a launch was and how its kernel is called: a program does other things before its launch, and
#: numba writes the options of its compiler into names.
OTHER = {"start_ns", "start_cycle", "kernel"}


def counters_of_program(script, name, mode):
    """The counters of the only launch of the program `SCRIPT --launch NAME`."""
    run = lockstep.run(
        [sys.executable, "-B", "-Wignore", script, "--launch", name],
        mode=mode,
        name=name,
    )
    (row,) = run.kernels
    return {column: cell for column, cell in row.items() if column not in OTHER}


def same_counters(script, name, launch, arguments, **shape):
    """`lockstep.profile` counts what the program counts, cycles included; answers the arguments after it."""
    with scratch():
        profile = lockstep.profile(launch, *arguments, **shape)
        (row,) = profile.run.kernels
        ours = {column: cell for column, cell in row.items() if column not in OTHER}
        theirs = counters_of_program(script, name, "timing")
    different = {
        column: (ours[column], theirs[column])
        for column in ours
        if ours[column] != theirs[column]
    }
    assert not different, f"profile and run differ: {different}"
    assert ours["cycles"] > 100 and ours["inst_executed"] > 0
    return profile


@contextlib.contextmanager
def scratch():
    """A folder for runs, which is gone afterwards."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="lockstep-profiles-") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def refused(sentence, kernel, *arguments, **options):
    """`lockstep.profile` says so, and nothing runs."""
    try:
        lockstep.profile(kernel, *arguments, **options)
    except lockstep.LockstepError as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(f"not refused with: {sentence}")


def asked_launch():
    """The launch that this process is asked for, or None where it shall check."""
    return sys.argv[2] if sys.argv[1:2] == ["--launch"] else None
