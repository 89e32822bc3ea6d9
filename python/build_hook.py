"""Puts the tree of `cargo xtask package` into the wheel: the command, its libraries and its data.

`LOCKSTEP_TREE` names a tree that is there (its folder, or that of an unpacked archive); without it the checkout around
this folder is built, which takes minutes. Files of a wheel cannot be links, so what links to a library is a copy of it;
the libraries of CUDA's names hold no state, which is why that does no harm.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Folders of the tree that programs need; manual pages and completions are of no use below site-packages.
FOLDERS = ("lib/lockstep", "share/lockstep", "share/doc")

COMMAND = "lib/lockstep/lockstep"


class TreeHook(BuildHookInterface):
    """What hatchling calls."""

    def initialize(self, version, build_data):
        """Adds the tree, unless the package is installed in place: then the checkout's own build is used."""
        if version == "editable":
            return
        tree = find_tree(Path(self.root))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{platform.machine()}"
        for name in FOLDERS:
            for path in sorted((tree / name).rglob("*")):
                if path.is_file():
                    inside = path.relative_to(tree)
                    build_data["force_include"][str(path)] = f"lockstep/tree/{inside}"


def find_tree(root):
    """The tree, made if nobody named one."""
    named = os.environ.get("LOCKSTEP_TREE")
    tree = Path(named).expanduser().resolve() if named else build(root.parent)
    if not os.access(tree / COMMAND, os.X_OK):
        sys.exit(
            f"{tree} holds no {COMMAND}; LOCKSTEP_TREE names a folder that `cargo xtask package` made, or one that an "
            "archive of it was unpacked to"
        )
    return tree


def build(project):
    """Builds the checkout; answers its tree."""
    if not (project / "xtask" / "Cargo.toml").is_file():
        sys.exit(
            f"{project} is no checkout of Lockstep, so its command cannot be built; set LOCKSTEP_TREE to a folder that "
            "`cargo xtask package` made elsewhere"
        )
    out = project / "target" / "python"
    print(f"building the command into {out}; this takes minutes the first time", file=sys.stderr, flush=True)
    command = [*"cargo run --quiet --release --package xtask -- package --tree --out".split(), str(out)]
    try:
        subprocess.run(command, cwd=project, check=True)
    except FileNotFoundError:
        sys.exit("there is no `cargo`; install Rust, or set LOCKSTEP_TREE to a tree that was built elsewhere")
    except subprocess.CalledProcessError as error:
        sys.exit(f"`{' '.join(command)}` ended with {error.returncode}")
    trees = sorted(out.glob("lockstep-*"), key=lambda path: path.stat().st_mtime)
    return trees[-1] if trees else out
