"""`pytest --lockstep`: the CUDA tests of a suite, on a simulated GPU.

The driver of a process cannot be exchanged once it is loaded, so pytest starts itself again, with the same words, under
`lockstep run`, before it has imported any test. What the second pytest prints, writes (junit files, caches) and ends
with is what the caller sees; below it stands what was launched, and the run folder.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from typing import Any

import pytest

from lockstep import command, runs
from lockstep.errors import LockstepError

#: The command sets it in every process under it.
_UNDER_LOCKSTEP = "LOCKSTEP_SOCKET"

#: Kernels that the summary names.
_SHOWN = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("lockstep", "CUDA tests on a simulated GPU")
    group.addoption("--lockstep", action="store_true", help="run the tests on a simulated GPU")
    group.addoption("--lockstep-gpu", metavar="NAME|FILE", default="h200", help="GPU of `lockstep gpus` (h200)")
    group.addoption(
        "--lockstep-mode",
        choices=["functional", "timing"],
        default="functional",
        help="values only, which is quick, or every cycle (functional)",
    )
    group.addoption(
        "--lockstep-set", metavar="KEY=VALUE", action="append", default=[], help="change one setting of the GPU"
    )
    group.addoption("--lockstep-out", metavar="DIR", help="folder for the results (lockstep-out/pytest-N)")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Starts again under Lockstep, before the first file of the suite is imported."""
    options = early_config.known_args_namespace
    if not getattr(options, "lockstep", False) or _UNDER_LOCKSTEP in os.environ:
        return
    try:
        code = _again(options, list(early_config.invocation_params.args))
    except LockstepError as error:
        raise pytest.UsageError(f"--lockstep: {error}") from None
    sys.stdout.flush()
    raise SystemExit(code)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Says at the beginning where the tests run."""
    if config.getoption("--lockstep"):
        return f"lockstep: simulated {config.getoption('--lockstep-gpu')}, {config.getoption('--lockstep-mode')}"
    return None


def _again(options: Any, arguments: list[str]) -> int:
    folder = options.lockstep_out or runs.new_folder("pytest")
    call = ["run", "--quiet", "--gpu", options.lockstep_gpu, "--mode", options.lockstep_mode]
    for setting in options.lockstep_set:
        call += ["--set", setting]
    done = command.start([*call, "--out", folder, "--", *_words(arguments)], None, echo=True)
    found = runs.Run(folder)
    if (found.folder / "summary.json").is_file():
        print("\n".join(_summary(found)))
    # A shell says so of a program that a signal ended.
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def _words(arguments: list[str]) -> list[str]:
    """The command line that started us, if it is pytest's own; else pytest with the arguments it was given."""
    if arguments == sys.argv[1:] and sys.argv[0] != "-c":
        return [sys.executable, *sys.orig_argv[1:]]
    return [sys.executable, "-m", "pytest", *arguments]


def _summary(found: runs.Run) -> list[str]:
    """What was launched, most instructions first."""
    counted: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in found.kernels:
        counts = counted[str(row["kernel"])]
        counts[0] += 1
        counts[1] += int(row["inst_executed"] or 0)
    launches = sum(count for count, _ in counted.values())
    title = f" lockstep: {launches} launches of {len(counted)} kernels on a simulated {found.gpu} "
    lines = ["", title.center(80, "=")]
    if counted:
        lines.append(f"{'launches':>8} {'warp instructions':>18}  kernel")
    order = sorted(counted, key=lambda name: (-counted[name][1], name))
    for name in order[:_SHOWN]:
        lines.append(f"{counted[name][0]:>8} {counted[name][1]:>18}  {name}")
    if len(order) > _SHOWN:
        lines.append(f"and {len(order) - _SHOWN} kernels more")
    lines += [f"problem: {problem}" for problem in found.problems]
    return [*lines, f"run folder: {found.folder}"]
