"""Sweeps from Python."""

import sys

import pytest

import lockstep

CLOCKS = ["1 GHz", "1.98 GHz"]


def test_a_grid_becomes_one_table(vector_add):
    words = [str(word) for word in vector_add[1:]]
    sweep = lockstep.sweep(
        program=sys.executable,
        arguments=[*words, "1000"],
        grid={"device.clock": CLOCKS},
        pareto={"minimize": ["kernel_ns", "cycles"]},
        workers=2,
    )
    assert sweep.points.column("device.clock") == CLOCKS
    assert sweep.points.column("state") == ["finished", "finished"]
    assert sweep.failed == []
    slow, fast = sweep.points.column("kernel_ns")
    assert slow > fast
    alone = lockstep.run([*vector_add, "1000"], set={"device.clock": "1 GHz"})
    assert sweep.points[0]["digest"] == sweep.run(1).digest == alone.digest
    with pytest.raises(lockstep.LockstepError, match="has no point 3, but 2 others"):
        sweep.run(3)


def test_a_sweep_goes_on_where_it_ended(vector_add):
    words = [str(word) for word in vector_add[1:]]
    described = {"program": sys.executable, "arguments": words, "out": "sweep", "workers": 2}
    lockstep.sweep(**described, grid={"device.clock": CLOCKS[:1]})
    stamps = []
    for _ in range(2):
        again = lockstep.sweep(**described, grid={"device.clock": CLOCKS}, resume=True)
        stamps.append((again.run(1).folder / "kernels.csv").stat().st_mtime_ns)
    assert stamps[0] == stamps[1], "what is finished is not simulated again"
    assert len(again.points) == 2


def test_what_is_wrong_is_said_before_anything_runs(place):
    with pytest.raises(lockstep.LockstepError, match="a sweep has a file, or a program"):
        lockstep.sweep()
    with pytest.raises(lockstep.LockstepError, match="which sweep goes on"):
        lockstep.sweep(program="true", resume=True)
    with pytest.raises(lockstep.LockstepError, match="l2.capasity"):
        lockstep.sweep(program=sys.executable, grid={"l2.capasity": ["1 MiB"]}, out=place / "sweep")


def test_a_point_that_fails_is_named():
    described = {"program": sys.executable, "arguments": ["-c", "import sys; sys.exit(4)"]}
    with pytest.raises(lockstep.LockstepError, match="point 1: "):
        lockstep.sweep(**described, grid={"device.clock": CLOCKS[:1]})
    assert len(lockstep.sweep(**described, grid={"device.clock": CLOCKS[:1]}, check=False).failed) == 1
