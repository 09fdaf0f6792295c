"""Results: tables that every Arrow library takes without a copy, pictures, and the report."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _ranpace
from ._ranpace import Table
from .errors import ResultsError

if TYPE_CHECKING:
    from .plot import ComparisonPlots, RunPlots, SweepPlots

__all__ = ["Comparison", "Reproduction", "Run", "Survey", "Sweep", "Table", "read"]


class Run:
    """The results of one run. Columns are named with their units; docs/results.md describes each.

    >>> import ranpace
    >>> run = ranpace.run({"duration": "1s", "link": [{"from": "a", "to": "b", "rate": "10Mbit/s", "delay": "10ms",
    ...     "duplex": True}], "flow": [{"from": "a", "to": "b", "cc": "newreno"}]})
    >>> run.flows["cc"]
    ['newreno']
    >>> run.series().columns[:2]
    ['time_s', 'delivered_bytes']
    """

    def __init__(self, inner: _ranpace.Run, command: str) -> None:
        self._inner = inner
        self._command = command

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self._inner.name

    @property
    def label(self) -> str:
        """What distinguishes it from the other runs of a comparison or a sweep."""
        return self._inner.label

    @property
    def seed(self) -> int:
        """The seed that it was played with."""
        return self._inner.seed

    @property
    def scenario(self) -> str:
        """The scenario's text, as it was played."""
        return self._inner.scenario_text

    @property
    def key(self) -> str:
        """Digest of all that determines the results; the name of their folder."""
        return self._inner.key

    @property
    def table(self) -> Table:
        """A row per flow with the figures of a comparison; `_ci95` are halves of 95 % confidence intervals."""
        return self._inner.rows()

    @property
    def flows(self) -> Table:
        """A row per flow with all its figures."""
        return self._inner.table_of("flows")

    @property
    def transfers(self) -> Table:
        """A row per transfer of fixed size; KeyError if no flow had any."""
        return self._inner.table_of("transfers")

    @property
    def distributions(self) -> Table:
        """Points of the distribution functions of RTTs and delays."""
        return self._inner.table_of("distributions")

    @property
    def summary(self) -> dict[str, Any]:
        """Everything that is not a series, as `ranpace run --json` prints it."""
        summary: dict[str, Any] = json.loads(self._inner.summary())
        return summary

    @property
    def notes(self) -> list[str]:
        """Remarks: lost connections, users out of service."""
        return self._inner.notes()

    @property
    def flow_names(self) -> list[str]:
        """Names of the flows."""
        return self._inner.flow_names

    @property
    def link_names(self) -> list[str]:
        """Names of the links; each user of a cell has a `NAME.down` and a `NAME.up`."""
        return self._inner.link_names

    @property
    def user_names(self) -> list[str]:
        """Names of the cells' users."""
        return self._inner.user_names

    def series(self, flow: str | int = 0) -> Table:
        """A flow's series over time, by its name or number."""
        return self._inner.table_of(f"flow-{_number(flow, self.flow_names, 'flow')}")

    def link_series(self, link: str | int = 0) -> Table:
        """A link's series over time, by its name or number."""
        return self._inner.table_of(f"link-{_number(link, self.link_names, 'link')}")

    def user_series(self, user: str | int = 0) -> Table:
        """A cell user's series over time, by its name or number."""
        return self._inner.table_of(f"user-{_number(user, self.user_names, 'user')}")

    @property
    def plot(self) -> RunPlots:
        """Pictures with matplotlib."""
        from .plot import RunPlots

        return RunPlots(self)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report, one page that needs no other file."""
        self._inner.report(Path(path), self._command)
        return Path(path)

    def save(self, out: str | os.PathLike[str] = "results") -> Path:
        """Writes what `ranpace run --out OUT` writes, byte by byte, and returns the run's folder."""
        return Path(self._inner.save(Path(out), self._command))

    def __repr__(self) -> str:
        return self._inner.text()

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    def __reduce__(self) -> Any:
        raise TypeError("a run is not pickled: save() it where both sides can read it, and ranpace.read() it there")


def _number(wanted: str | int, names: list[str], what: str) -> int:
    if isinstance(wanted, str):
        if wanted not in names:
            raise KeyError(f"no {what} is called {wanted!r}; there are: {', '.join(names)}")
        return names.index(wanted)
    if not 0 <= wanted < len(names):
        raise KeyError(f"expected a {what} from 0 to {len(names) - 1}, found {wanted}")
    return wanted


class Comparison:
    """Algorithms side by side."""

    def __init__(self, inner: _ranpace.Comparison, command: str) -> None:
        self._inner = inner
        self._command = command

    @property
    def title(self) -> str:
        """What was compared."""
        return self._inner.title

    @property
    def table(self) -> Table:
        """A row per algorithm, over its flows and seeds; `_ci95` are halves of 95 % confidence intervals."""
        return self._inner.rows()

    @property
    def runs(self) -> dict[str, list[Run]]:
        """The runs of each algorithm, in the order of the seeds."""
        return {label: [Run(run, self._command) for run in runs] for label, runs in self._inner.runs()}

    @property
    def notes(self) -> list[str]:
        """Remarks: lost connections, users out of service."""
        return self._inner.notes()

    @property
    def plot(self) -> ComparisonPlots:
        """Pictures with matplotlib."""
        from .plot import ComparisonPlots

        return ComparisonPlots(self)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report, one page that needs no other file."""
        self._inner.report(Path(path), self._command)
        return Path(path)

    def __repr__(self) -> str:
        return self._inner.text()

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


class Survey:
    """Every control and mechanism in every situation, as `compare(all=True)` plays them."""

    def __init__(self, inner: _ranpace.Survey, command: str) -> None:
        self._inner = inner
        self._command = command

    @property
    def table(self) -> Table:
        """A row per control or mechanism, situation and measure: `cc`, `needs`, `situation`, `measure`, `mean`, `ci95`, `seeds`.

        Means are over the seeds, in base units (bit/s, seconds, shares); `ci95` are halves of 95 % confidence intervals. What
        needs radio information has rows of cells alone.
        """
        return self._inner.rows()

    @property
    def notes(self) -> list[str]:
        """What was left out, and why: controls that fit no situation, recordings that are not there."""
        return self._inner.notes()

    @property
    def pictures(self) -> dict[str, str]:
        """Goodput against delay relative to CUBIC's with the Pareto front, for "links", "cells" and "uploads", as SVG."""
        return dict(self._inner.plots())

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report, one page that needs no other file."""
        self._inner.report(Path(path), self._command)
        return Path(path)

    def write_page(self, path: str | os.PathLike[str]) -> Path:
        """Writes the tables into a page in Markdown, between its lines `<!-- compare --all -->` and `<!-- end -->`, and the
        pictures beside it.

        Raises
        ------
        OptionError : if the page cannot be read or written, or has no such lines
        """
        self._inner.write_page(Path(path))
        return Path(path)

    def __repr__(self) -> str:
        return self._inner.text()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._inner.text())}</pre>"


class Sweep:
    """A scenario over a grid of settings and seeds."""

    def __init__(self, inner: _ranpace.Sweep, command: str) -> None:
        self._inner = inner
        self._command = command

    @property
    def table(self) -> Table:
        """A row per combination of settings, over its seeds; `_ci95` are halves of 95 % confidence intervals."""
        return self._inner.rows()

    @property
    def flows(self) -> Table:
        """A row per flow of each run: the varied settings, `seed`, `run` (its key) and the flow's figures."""
        return self._inner.flows()

    @property
    def runs(self) -> list[Run]:
        """The runs, all seeds of a combination together."""
        return [Run(run, self._command) for run in self._inner.runs()]

    @property
    def plot(self) -> SweepPlots:
        """Pictures with matplotlib."""
        from .plot import SweepPlots

        return SweepPlots(self)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report, one page that needs no other file."""
        self._inner.report(Path(path), self._command)
        return Path(path)

    def __repr__(self) -> str:
        return self._inner.text()

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


class Reproduction:
    """Published experiments, played again and judged."""

    def __init__(self, inner: _ranpace.Reproduction, command: str) -> None:
        self._inner = inner
        self._command = command

    @property
    def table(self) -> Table:
        """A row per criterion: what was published, what was measured, and the verdict."""
        return self._inner.rows()

    @property
    def figures(self) -> dict[str, Table]:
        """The measured figures as tables of texts, by their titles."""
        return dict(self._inner.figures())

    @property
    def pictures(self) -> list[str]:
        """The figures of the source as the report draws them again, with what was published beside it: SVG, as `IPython.display.SVG` takes it."""
        return re.findall(r"<svg .*?</svg>", self._inner.html(self._command), re.DOTALL)

    @property
    def missing(self) -> list[str]:
        """Recordings that were not found, without which rows are skipped."""
        return self._inner.missing

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report, in which each published figure is drawn again."""
        self._inner.report(Path(path), self._command)
        return Path(path)

    def __repr__(self) -> str:
        return self._inner.text()

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def read(folder: str | os.PathLike[str]) -> Run | list[Run]:
    """Reads what the command or `out=` wrote: one run, or all complete runs of a comparison's or a sweep's folder.

    Raises
    ------
    ResultsError : if there is no complete and unchanged run of this version's schema
    """
    place = Path(folder)
    if not place.is_dir():
        raise ResultsError(f"no folder {place}; expected one that `ranpace run` or out= wrote")
    command = f"ranpace.read({os.fspath(folder)!r})"
    one = _ranpace.read(place)
    if one is not None:
        return Run(one, command)
    found = [_ranpace.read(inner) for inner in sorted(place.iterdir()) if inner.is_dir()]
    runs = [Run(run, command) for run in found if run is not None]
    if not runs:
        raise ResultsError(
            f"{place}: no complete and unchanged run of this version's schema; expected a summary.json here or one folder below"
        )
    return runs
