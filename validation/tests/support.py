"""What tests share: a way to import scripts by their place, and a command that stands in for another."""

import importlib.util
import os
import pathlib
import stat
import sys

VALIDATION = pathlib.Path(__file__).resolve().parents[1]
ROOT = VALIDATION.parent
sys.path.insert(0, str(VALIDATION))


def script(place):
    """A script of the repository as a module."""
    path = ROOT / place
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = "script_" + place.replace("/", "_").replace("-", "_").removesuffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def command(path, text):
    """An executable script."""
    path = pathlib.Path(path)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def simulator():
    """The simulator, if one is built: LOCKSTEP or the release build. Tests that ask it are skipped without."""
    built = os.environ.get("LOCKSTEP") or ROOT / "target" / "release" / "lockstep"
    return str(built) if pathlib.Path(built).exists() else None
