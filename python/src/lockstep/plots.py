"""Pictures of runs, by matplotlib, which is imported when one is asked for."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from lockstep.errors import LockstepError, missing
from lockstep.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Characters of a kernel's name below a bar.
_NAME = 30

_STALLED = "stalled_"


def bars(kernels: Table, counter: str, ax: Axes | None) -> Axes:
    """One counter, a bar a launch."""
    heights = kernels.column(counter)
    if not all(isinstance(height, (int, float)) or height is None for height in heights):
        raise LockstepError(f"`{counter}` holds no numbers; name a counter of `lockstep counters`")
    ax = _axes(ax)
    names = [
        f"{launch}: {_short(kernel)}" for launch, kernel in zip(kernels.column("launch"), kernels.column("kernel"))
    ]
    ax.bar(names, [height or 0 for height in heights])
    ax.set_ylabel(counter)
    ax.set_xlabel("launch")
    ax.tick_params(axis="x", rotation=90 if len(names) > 4 else 0)
    return ax


def stalls(kernels: Table, ax: Axes | None) -> Axes:
    """What the warps of each kernel did while they were resident, as shares that add up to 1."""
    reasons = [name for name in kernels.columns if name.startswith(_STALLED)]
    spent: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(reasons, 0.0))
    for row in kernels:
        for reason in reasons:
            spent[_short(row["kernel"])][reason] += float(row[reason] or 0)
    ax = _axes(ax)
    left = dict.fromkeys(spent, 0.0)
    for reason in reasons:
        shares = [counted[reason] / (sum(counted.values()) or 1) for counted in spent.values()]
        if any(shares):
            ax.barh(list(spent), shares, left=list(left.values()), label=reason.removeprefix(_STALLED))
        left = {kernel: begun + share for (kernel, begun), share in zip(left.items(), shares)}
    ax.set_xlabel("share of the cycles of warps")
    ax.legend(fontsize="small")
    return ax


def line(table: Table, x: str, y: str, ax: Axes | None) -> Axes:
    """One column of a table over another."""
    ax = _axes(ax)
    ax.plot([str(cell) for cell in table.column(x)], [float(cell or 0) for cell in table.column(y)], marker="o")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    return ax


def _short(name: Any) -> str:
    text = str(name)
    return text if len(text) <= _NAME else text[: _NAME - 1] + "…"


def _axes(ax: Axes | None) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise missing("matplotlib", "a plot") from None
    return pyplot.subplots(layout="constrained")[1]
