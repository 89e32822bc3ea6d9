"""`lockstep.profile`: one launch of a kernel on a simulated GPU, with its counters under the names of ncu.

CUDA in this process cannot be replaced after the fact, so the launch is made by a fresh process under `lockstep run`
(`lockstep.launcher`). Code is compiled here, by the compilers of Triton, numba or cuda.core, which need no GPU; arrays
are copied there and back, so that the caller's hold what the kernel wrote.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lockstep import command, kernels, launcher, runs
from lockstep.errors import LockstepError
from lockstep.kernels.launch import Extent, Shape, Target
from lockstep.tables import Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

_STALLED = "stalled_"


class Profile:
    """What one launch counted."""

    def __init__(self, run: runs.Run) -> None:
        #: The run with everything else: digest, statistics, report.
        self.run = run
        #: A row with the names of ncu.
        self.counters: Table = run.counters("ncu")

    @property
    def stalls(self) -> Table:
        """What warps did while they were resident, most first: cycles of warps, and their share of all."""
        row = self.run.kernels[0]
        spent = {name.removeprefix(_STALLED): row[name] or 0 for name in row if name.startswith(_STALLED)}
        order = sorted(spent, key=lambda name: -spent[name])
        total = sum(spent.values()) or 1
        return Table(
            {
                "reason": order,
                "warp_cycles": [spent[name] for name in order],
                "share": [spent[name] / total for name in order],
            }
        )

    def __getitem__(self, counter: str) -> Any:
        """One counter, by ncu's name or by that of `kernels.csv`."""
        if counter in self.counters.columns:
            return self.counters[0][counter]
        if counter in self.run.kernels.columns:
            return self.run.kernels[0][counter]
        raise LockstepError(f"no counter is called `{counter}`; there are: {', '.join(self.counters.columns)}")

    def to_pandas(self) -> pandas.DataFrame:
        """The counters as a data frame of pandas."""
        return self.counters.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The counters as a data frame of polars."""
        return self.counters.to_polars()

    def to_arrow(self) -> pyarrow.Table:
        """The counters as a table of Arrow."""
        return self.counters.to_arrow()

    def to_json(self) -> str:
        """The counters as JSON."""
        return self.counters.to_json()

    def to_markdown(self) -> str:
        """The counters as a table of Markdown, a line a counter."""
        return self._lines().to_markdown()

    def plot(self, counter: str = "stalls", ax: Axes | None = None) -> Axes:
        """What warps waited for, or one counter."""
        return self.run.plot(counter, ax)

    def _lines(self) -> Table:
        lines = self.counters.transposed().to_dict()
        return Table({"counter": lines["counter"], "value": lines["0"]})

    def __repr__(self) -> str:
        row = self.counters[0]
        return f"Profile of {row['kernel']}: {row['sm__cycles_elapsed.max']} cycles, {self.run.folder}"

    def _repr_html_(self) -> str:
        return self._lines()._repr_html_()


def profile(
    kernel: Any,
    *arguments: Any,
    grid: Extent | Callable[[dict[str, Any]], Extent] = 1,
    block: Extent | None = None,
    shared: int = 0,
    entry: str | None = None,
    gpu: runs.Word = "h200",
    set: Mapping[str, object] | None = None,  # noqa: A002  as the option of the command is called
    mode: Literal["timing", "functional"] = "timing",
    frontend: Literal["auto", "sass", "ptx"] = "auto",
    threads: int | None = None,
    cold_caches: bool = False,
    out: runs.Word | None = None,
    run_options: Sequence[str] = (),
    **options: Any,
) -> Profile:
    """Launches a kernel once on a simulated GPU.

    `kernel` is the path or the bytes of a cubin or fat binary, PTX as a path or text, a kernel of Triton (`options`
    are its own: constants by name, `num_warps`, ...), a kernel of numba, or an `ObjectCode` of cuda.core. `entry` names
    the kernel where code holds several. Arrays of numpy, and tensors of the host, are copied to the device and back:
    afterwards those that can be written hold what the kernel left.
    """
    launch = kernels.prepare(kernel, arguments, options, Shape(grid, block, shared, entry), target(gpu))
    with tempfile.TemporaryDirectory(prefix="lockstep-profile-") as place:
        launch.write(Path(place))
        run = runs.run(
            [sys.executable, "-I", launcher.__file__, place],
            gpu=gpu,
            set=set,
            mode=mode,
            frontend=frontend,
            threads=threads,
            cold_caches=cold_caches,
            out=out,
            name=_folder_name(launch.entry),
            options=run_options,
        )
        launch.read_back(Path(place))
    return Profile(run)


def target(gpu: runs.Word) -> Target:
    """What code is compiled for."""
    text = command.call(["gpus", "show", gpu])
    found = re.search(r'^compute-capability = "(\d+)\.(\d+)"', text, re.MULTILINE)
    if found is None:
        raise LockstepError(f"`lockstep gpus show {gpu}` names no compute capability")
    return Target(int(found[1]), int(found[2]))


def _folder_name(entry: str | None) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "_", entry or "kernel")[:60]
