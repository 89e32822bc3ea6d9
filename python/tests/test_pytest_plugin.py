"""`pytest --lockstep` on a suite of CUDA tests: what it runs, prints, writes and ends with."""

import os
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"

SUITE = """
import ctypes

def test_sums():
    import vector_add
    assert vector_add.add(600)[599] == 600

def test_there_is_a_gpu():
    cuda = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int()
    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value == 1
"""

FAILING = """
def test_difference():
    import vector_add
    assert vector_add.add(600)[599] == 0
"""

# A suite whose tests are for a GPU alone, and whose conftest finds out as it is imported.
CONFTEST = """
import ctypes, pytest

def pytest_addoption(parser):
    parser.addoption("--own-option")

def pytest_collection_modifyitems(items):
    try:
        found = ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        found = False
    for item in items:
        item.add_marker(pytest.mark.skipif(not found, reason="no GPU"))
"""


@pytest.fixture
def suite(place):
    """Runs pytest on a suite of CUDA tests."""
    (place / "test_cuda.py").write_text(SUITE)
    (place / "conftest.py").write_text(CONFTEST)

    def run(*words, command=(sys.executable, "-m", "pytest")):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        environment["PYTHONPATH"] = os.pathsep.join([str(PROGRAMS), environment.get("PYTHONPATH", "")])
        words = [*command, "-p", "no:cacheprovider", *words]
        return subprocess.run(words, capture_output=True, text=True, env=environment, check=False)

    return run


def test_without_the_option_the_tests_find_no_gpu(suite):
    done = suite()
    assert (done.returncode, "2 skipped" in done.stdout) == (0, True), done.stdout


def test_tests_run_on_a_simulated_gpu(suite, place):
    done = suite("--lockstep", "--lockstep-gpu", "a100", "--junitxml", "junit.xml", "--own-option", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "lockstep: simulated a100, functional" in done.stdout
    assert "lockstep: 1 launches of 1 kernels on a simulated a100" in done.stdout
    assert f"run folder: {place / 'lockstep-out' / 'pytest-1'}" in done.stdout
    counted = xml.etree.ElementTree.parse(place / "junit.xml").getroot().find("testsuite").attrib
    assert (counted["tests"], counted["failures"], counted["skipped"]) == ("2", "0", "0")


def test_exit_codes_are_those_of_pytest(suite, place):
    (place / "test_failing.py").write_text(FAILING)
    assert suite("--lockstep").returncode == 1
    assert suite("--lockstep", "-k", "nothing").returncode == 5
    done = suite("--lockstep", "--lockstep-gpu", "h2000")
    assert done.returncode != 0 and "no GPU is called `h2000`" in done.stdout + done.stderr


def test_settings_mode_and_folder_can_be_chosen(suite, place):
    options = ["--lockstep-mode", "timing", "--lockstep-set", "l2.capacity=30 MiB", "--lockstep-out", "results"]
    done = suite("--lockstep", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = (place / "results" / "summary.json").read_text()
    assert '"mode": "timing"' in summary and '"30 MiB"' in summary


def test_the_script_and_a_configuration_file_do_the_same(suite, place):
    (place / "pytest.ini").write_text("[pytest]\naddopts = --lockstep\npythonpath = .\n")
    script = Path(sys.executable).with_name("pytest")
    if not script.exists():
        pytest.skip("there is no script `pytest` beside the interpreter")
    done = suite(command=(script,))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout and "lockstep: 1 launches" in done.stdout
