"""Traces: when packets of 1500 B may leave a link. Recorded, built in, or your own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _ranpace
from ._ranpace import Table
from .scenario import Time, _plain

if TYPE_CHECKING:
    from .plot import TracePlots

__all__ = ["Trace", "trace"]


class Trace:
    """A trace of a link. `save` it to name it in a scenario or in `compare(trace=...)`."""

    def __init__(self, inner: _ranpace.Trace) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """Its name."""
        return self._inner.name

    @property
    def info(self) -> dict[str, Any]:
        """Length, rates, stalls and hash, as `ranpace trace info --json`; a rate counts 1500 B for each opportunity."""
        figures: dict[str, Any] = json.loads(self._inner.info())
        return figures

    @property
    def opportunities(self) -> Table:
        """A row per millisecond with opportunities: `time_ms`, `opportunities_packets`."""
        return self._inner.opportunities()

    def rates(self, interval: Time = "1s") -> Table:
        """The mean rate of each interval: `time_s` (of its beginning), `rate_bit_s`."""
        return self._inner.rates(str(_plain(interval, "interval")))

    def cut(self, from_: Time, until: Time) -> Trace:
        """The part from one time to another."""
        return Trace(self._inner.cut(str(_plain(from_, "from_")), str(_plain(until, "until"))))

    def scale(self, factor: float) -> Trace:
        """With its capacity multiplied."""
        return Trace(self._inner.scale(factor))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes it in mahimahi's format, gzipped if the name ends in .gz, and returns the path."""
        self._inner.save(Path(path))
        return Path(path)

    @property
    def plot(self) -> TracePlots:
        """Pictures with matplotlib."""
        from .plot import TracePlots

        return TracePlots(self)

    def __repr__(self) -> str:
        info = self.info
        mean = info["mean_bit_s"] / 1e6
        return f"Trace({self.name!r}: {info['duration_s']:.1f} s, mean {mean:.2f} Mbit/s, {info['stalls']} stalls)"


def trace(
    name: str | os.PathLike[str] | None = None,
    *,
    times_ms: Iterable[int] | None = None,
    model: str | None = None,
    rate: str | None = None,
    duration: Time = "120s",
    seed: int = 1,
    traces: str | os.PathLike[str] | None = None,
) -> Trace:
    """Reads a trace, makes one from times, or generates one from a model, as `ranpace trace`.

    Parameters
    ----------
    name : a file (plain or .gz), or "builtin:lte", "builtin:umts", "builtin:nr"
    times_ms : times of opportunities in whole milliseconds, not decreasing: a list, an array, or an Arrow or pandas column
    model : "lte", "umts", "nr" or "constant" (with `rate`), generated with this `duration` and `seed`

    Raises
    ------
    TraceError : if there is no such trace, or if the file is not one
    TypeError : if times are not whole numbers

    >>> trace(times_ms=[0, 5, 5, 10]).info["opportunities"]
    4
    """
    given = [name is not None, times_ms is not None, model is not None]
    if sum(given) != 1:
        raise TypeError("expected one of: the name of a trace, times_ms, or a model")
    times = None
    if times_ms is not None:
        if hasattr(times_ms, "to_pylist"):
            times_ms = times_ms.to_pylist()
        elif hasattr(times_ms, "tolist"):
            times_ms = times_ms.tolist()
        times = list(times_ms)
        wrong = next((time for time in times if not isinstance(time, int) or isinstance(time, bool)), None)
        if wrong is not None:
            raise TypeError(f"times_ms: expected whole milliseconds, found {type(wrong).__name__} ({wrong!r})")
    title = os.fspath(name) if name is not None else (model or "times")
    inner = _ranpace.trace(
        title,
        times_ms=times,
        model=model,
        rate=rate,
        duration=str(_plain(duration, "duration")),
        seed=seed,
        traces=None if traces is None else Path(traces),
    )
    return Trace(inner)
