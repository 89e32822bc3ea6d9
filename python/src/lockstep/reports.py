"""Reports of `lockstep report` and `lockstep compare`, in every form that they have."""

from __future__ import annotations

import functools
import html
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep import command
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from lockstep.runs import Run

#: Forms by the suffix of a file.
_FORMATS = {".txt": "text", ".md": "markdown", ".html": "html", ".json": "json"}


class Report:
    """What a subcommand says of run folders; each form is made when it is first asked for."""

    def __init__(self, arguments: Sequence[str | os.PathLike[str]]) -> None:
        self._arguments = list(arguments)
        self._made: dict[str, str] = {}

    def _form(self, name: str) -> str:
        if name not in self._made:
            self._made[name] = command.call([*self._arguments, "--format", name])
        return self._made[name]

    @property
    def text(self) -> str:
        """For a terminal."""
        return self._form("text")

    @property
    def markdown(self) -> str:
        """As Markdown."""
        return self._form("markdown")

    @property
    def html(self) -> str:
        """One page with pictures, which needs nothing else."""
        return self._form("html")

    @functools.cached_property
    def json(self) -> Any:
        """Everything that is known, as `docs/reference/report.schema.json` describes it."""
        return json.loads(self._form("json"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the form that the name of the file asks for."""
        form = _FORMATS.get(Path(path).suffix)
        if form is None:
            raise LockstepError(f"{path}: reports are written as {', '.join(_FORMATS)}")
        Path(path).write_text(self._form(form))

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        # The page forbids itself to load anything, and has a style of its own: both want a frame.
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="600" style="border:0"></iframe>'


def compare(a: Run | str | os.PathLike[str], b: Run | str | os.PathLike[str]) -> Report:
    """Two runs side by side; the first is the reference."""
    folders = [run if isinstance(run, (str, os.PathLike)) else run.folder for run in (a, b)]
    return Report(["compare", *folders])
