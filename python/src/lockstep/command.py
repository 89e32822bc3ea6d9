"""Where the `lockstep` command is, and how it is called.

It is looked for where `LOCKSTEP` says, then in this package (`tree`, which a wheel carries), then in the release
build of the checkout that this package was installed from in place, then in PATH.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lockstep.errors import LockstepError

_PACKAGE = Path(__file__).resolve().parent

#: From the package's folder.
_PLACES = ("tree/lib/lockstep/lockstep", "../../../target/release/lockstep")

#: Seconds for an interrupted command to end by itself.
_PATIENCE = 10


def find() -> Path:
    """The command."""
    named = os.environ.get("LOCKSTEP")
    if named:
        if not os.access(named, os.X_OK):
            raise LockstepError(f"LOCKSTEP is `{named}`, which is no program; unset it or name the `lockstep` command")
        return Path(named)
    for place in _PLACES:
        path = _PACKAGE / place
        if os.access(path, os.X_OK):
            return path.resolve()
    # A script of this package is in PATH as well, and would only come back here.
    for folder in os.get_exec_path():
        path = Path(folder, "lockstep")
        if os.access(path, os.X_OK) and path.is_file() and not _is_script(path):
            return path
    raise LockstepError(
        "there is no `lockstep` command: not in this package, not in PATH; install the package from a wheel or "
        "from a checkout of the project with `pip install ./python`, or name the command in LOCKSTEP"
    )


def version() -> str:
    """The version of the command."""
    return call(["--version"]).split()[-1]


def call(arguments: Sequence[str | os.PathLike[str]]) -> str:
    """Runs the command and answers what it printed; what it complains about is raised."""
    done = subprocess.run([find(), *arguments], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise LockstepError(complaint(done.stderr) or f"`lockstep {arguments[0]}` ended with {done.returncode}")
    return done.stdout


def start(
    arguments: Iterable[str | os.PathLike[str]], environment: Mapping[str, str] | None, echo: bool
) -> subprocess.CompletedProcess[str]:
    """Runs the command until its end. With `echo` its output goes where ours goes; without, it is kept.

    An interrupt is handed on, so that what was simulated until then is written.
    """
    pipe = None if echo else subprocess.PIPE
    words = [find(), *arguments]
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, env=environment, text=True, errors="replace") as process:
        try:
            out, err = process.communicate()
        except KeyboardInterrupt:
            # A terminal and a notebook interrupt the whole group; the command may not be in ours.
            try:
                process.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                process.communicate()
            raise
    return subprocess.CompletedProcess(words, process.returncode, out or "", err or "")


def complaint(text: str) -> str:
    """What the command said was wrong, without its own name before it; all that was said if it said nothing itself."""
    said = [line.removeprefix("lockstep: ") for line in text.splitlines() if line.startswith("lockstep: ")]
    return "\n".join(said) or text.strip()


def settings(values: Mapping[str, object] | None) -> list[str]:
    """Options `--set` of the command from keys and values."""
    words = []
    for key, value in (values or {}).items():
        words += ["--set", f"{key}={_setting(value)}"]
    return words


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def main() -> None:
    """The script `lockstep` of an environment: becomes the command."""
    try:
        path = find()
    except LockstepError as error:
        sys.exit(f"lockstep: {error}")
    os.execv(path, [shutil.which("lockstep") or str(path), *sys.argv[1:]])
