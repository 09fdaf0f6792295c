"""Exceptions of `ranpace`. All of them say what was expected, what was found, where, and what to do."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "Diagnostic",
    "EmulationError",
    "OptionError",
    "RanpaceError",
    "ResultsError",
    "ScenarioError",
    "TraceError",
    "VersionError",
]


class RanpaceError(Exception):
    """Whatever Ranpace raises itself."""


class Diagnostic(NamedTuple):
    """One problem of a scenario."""

    line: int | None
    """Line in the file, from 1; `None` if the problem is not in the file."""
    column: int | None
    """Column in characters, from 1."""
    message: str
    """What was expected and what was found."""


class ScenarioError(RanpaceError, ValueError):
    """A scenario is refused. `file` is its name, `diagnostics` are all its problems, `line` is that of the first."""

    def __init__(
        self, message: str, file: str = "", diagnostics: list[tuple[int | None, int | None, str]] | None = None
    ) -> None:
        super().__init__(message)
        self.file = file
        self.diagnostics = [Diagnostic(*found) for found in diagnostics or []]

    @property
    def line(self) -> int | None:
        """Line of the first problem, from 1."""
        return self.diagnostics[0].line if self.diagnostics else None

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return type(self), (str(self), self.file, [tuple(found) for found in self.diagnostics])


class OptionError(RanpaceError, ValueError):
    """An option has a value that it cannot have."""


class TraceError(RanpaceError, ValueError):
    """A trace was not found, or is not a trace."""


class ResultsError(RanpaceError, OSError):
    """Results could not be written or read."""


class EmulationError(RanpaceError, OSError):
    """A network of namespaces could not be made, or failed."""


class VersionError(RanpaceError):
    """Two machines have different versions of Ranpace, whose results must not be mixed."""
