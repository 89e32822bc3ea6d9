"""Runs of programs, and what is read of their folders."""

import subprocess
import sys

import pytest

import lockstep


def test_a_run_has_folder_exit_code_digest_kernels_and_statistics(vector_add, place):
    run = lockstep.run([*vector_add, "1000"], gpu="h200", name="add")
    assert run.stdout == "1000 elements, 0 wrong\n"
    assert run.folder == place / "lockstep-out" / "add-1"
    assert (run.state, run.exit_code, run.gpu) == ("finished", 0, "h200")
    assert len(run.digest) == 64
    assert [(row["kernel"], row["grid"], row["block"]) for row in run.kernels] == [("vector_add", "4x1x1", "256x1x1")]
    assert run.totals["kernels"] == 1
    assert run.kernels[0]["cycles"] > 100
    assert len(run.statistics) > 1000
    assert run.counters()[0]["smsp__inst_executed.sum"] == run.kernels[0]["inst_executed"]
    assert "vector_add" in run._repr_html_()
    assert lockstep.open(run.folder).digest == run.digest


def test_settings_mode_threads_and_variables_reach_the_run(vector_add):
    program = [sys.executable, "-c", "import os; print(os.environ['WORD'])"]
    said = lockstep.run(program, environment={"WORD": "hello"}, mode="functional", check=False)
    assert said.stdout == "hello\n"
    run = lockstep.run(vector_add, set={"l2.capacity": "30 MiB"}, threads=1, cold_caches=True)
    assert run.summary["configuration"]["l2"]["capacity"] == "30 MiB"
    assert run.summary["host"]["threads"] == 1
    assert run.kernels[0]["dram_bytes_read"] > 0, "cold caches read memory"


def test_threads_do_not_change_the_digest(vector_add):
    digests = {lockstep.run(vector_add, threads=threads).digest for threads in (1, 2)}
    assert len(digests) == 1


def test_a_program_that_fails_raises_with_its_run():
    program = [sys.executable, "-c", "import sys; print('so far'); sys.exit(3)"]
    with pytest.raises(lockstep.RunFailed, match="ended with 3") as caught:
        lockstep.run(program)
    assert caught.value.run.stdout == "so far\n"
    assert lockstep.run(program, check=False).exit_code == 3


def test_what_cannot_begin_leaves_no_folder(place):
    with pytest.raises(lockstep.LockstepError, match="no GPU is called `h2000`; did you mean `h200`"):
        lockstep.run(["true"], gpu="h2000")
    with pytest.raises(lockstep.LockstepError, match="no such program in PATH"):
        lockstep.run(["no-such-program"])
    assert list((place / "lockstep-out").iterdir()) == []
    with pytest.raises(lockstep.LockstepError, match="the mode is `timing` or `functional`, not `fast`"):
        lockstep.run(["true"], mode="fast")


def test_a_folder_that_is_none_is_named(place):
    with pytest.raises(lockstep.LockstepError, match="is no run folder: summary.json: No such file"):
        lockstep.open(place)
    (place / "summary.json").write_text("[1")
    with pytest.raises(lockstep.LockstepError, match=r"summary\.json"):
        lockstep.open(place)


def test_reports_and_comparisons_have_every_form(vector_add, place):
    first, second = (lockstep.run([*vector_add, count], name="add") for count in ("1000", "2000"))
    report = first.report()
    assert "vector_add" in str(report) and report.markdown.startswith("#")
    assert report.html.startswith("<!") and report._repr_html_().startswith("<iframe srcdoc=")
    assert report.json["runs"][0]["digest"] == first.digest
    report.save(place / "report.html")
    assert (place / "report.html").read_text() == report.html
    with pytest.raises(lockstep.LockstepError, match=r"reports are written as \.txt, \.md, \.html, \.json"):
        report.save("report.doc")
    assert "| cycles |" in lockstep.compare(first, second.folder).markdown


def test_pictures(vector_add):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    run = lockstep.run(vector_add)
    bar = run.plot("cycles").patches[0]
    assert bar.get_height() == run.kernels[0]["cycles"]
    widths = [patch.get_width() for patch in run.plot("stalls").patches]
    assert sum(widths) == pytest.approx(1)
    with pytest.raises(lockstep.LockstepError, match="`kernel` holds no numbers"):
        run.plot("kernel")


def test_the_command_of_the_environment_is_the_one_that_the_package_has():
    called = subprocess.run([sys.executable, "-m", "lockstep", "--version"], capture_output=True, text=True, check=True)
    assert called.stdout.split() == ["lockstep", lockstep.version()]


def test_a_command_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv("LOCKSTEP", "/no/such/command")
    with pytest.raises(lockstep.LockstepError, match="LOCKSTEP is `/no/such/command`, which is no program"):
        lockstep.version()


TWO_NAMES = """
import ctypes
first, second = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcuda.so")
address, context, word = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint32(7)
assert first.cuInit(0) == 0
assert first.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and first.cuCtxSetCurrent(context) == 0
assert first.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4)) == 0
assert second.cuMemcpyHtoD_v2(address, ctypes.byref(word), ctypes.c_size_t(4)) == 0
assert second.cuMemFree_v2(address) == 0
assert first.cuMemFree_v2(address) != 0
"""


def test_two_names_of_the_driver_are_one_driver_although_a_wheel_holds_no_links():
    assert lockstep.run([sys.executable, "-c", TWO_NAMES], name="names").exit_code == 0
