"""What can go wrong, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.runs import Run


class LockstepError(Exception):
    """Something cannot be done; the sentence says what was found and what to do."""


class RunFailed(LockstepError):
    """A run ended with another exit code than 0. What there is of it is in `run`."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


def missing(package: str, purpose: str) -> LockstepError:
    """A package that nobody installed, of those that are only needed for one purpose."""
    return LockstepError(f"{purpose} needs {package}, which is not installed; `pip install {package}` brings it")
