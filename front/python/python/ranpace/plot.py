"""Pictures of results with matplotlib, which draws a hundred thousand points at once and saves as PDF for a paper.

Every method draws into `ax`, or into a new figure, and returns the axes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .results import Comparison, Run, Sweep
    from .traces import Trace

__all__ = ["ComparisonPlots", "RunPlots", "SweepPlots", "TracePlots"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933")
"""Okabe and Ito's colours, which people with any colour vision tell apart."""


def _axes(ax: Axes | None, title: str, x: str, y: str) -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"plots need matplotlib ({error}): pip install 'ranpace[plot]'") from None
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    ax.set_prop_cycle(color=_COLOURS)
    ax.set_title(title, loc="left", fontsize="medium")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _numbers(values: list[Any], factor: float = 1.0) -> list[float]:
    return [math.nan if value is None else value * factor for value in values]


def _legend(ax: Axes, count: int) -> None:
    if count > 1:
        ax.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


class RunPlots:
    """Pictures of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def _over_time(self, column: str, factor: float, title: str, y: str, ax: Axes | None) -> Axes:
        ax = _axes(ax, title, "time (s)", y)
        names = self._run.flow_names
        for name in names:
            series = self._run.series(name)
            if column in series.columns:
                ax.plot(series["time_s"], _numbers(series[column], factor), label=name, linewidth=1.2)
        ax.set_ylim(bottom=0)
        _legend(ax, len(names))
        return ax

    def goodput(self, ax: Axes | None = None) -> Axes:
        """Goodput of each flow over time."""
        return self._over_time("goodput_bit_s", 1e-6, self._run.name, "goodput (Mbit/s)", ax)

    def rtt(self, ax: Axes | None = None) -> Axes:
        """Smoothed RTT of each flow over time."""
        return self._over_time("srtt_s", 1e3, self._run.name, "RTT (ms)", ax)

    def window(self, ax: Axes | None = None) -> Axes:
        """Congestion window of each flow over time."""
        return self._over_time("cwnd_bytes", 1e-3, self._run.name, "window (KB)", ax)


class ComparisonPlots:
    """Pictures of a comparison."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def tradeoff(self, ax: Axes | None = None) -> Axes:
        """Goodput against the 95th percentile of the delay: up and to the left is better. Bars are 95 % intervals."""
        return _tradeoff(self._comparison.title, self._comparison.table, ax)

    def _over_time(self, column: str, factor: float, y: str, ax: Axes | None) -> Axes:
        ax = _axes(ax, self._comparison.title, "time (s)", y)
        runs = self._comparison.runs
        for label, seeds in runs.items():
            series = seeds[0].series(0)
            ax.plot(series["time_s"], _numbers(series[column], factor), label=label, linewidth=1.2)
        ax.set_ylim(bottom=0)
        _legend(ax, len(runs))
        return ax

    def goodput(self, ax: Axes | None = None) -> Axes:
        """Goodput of the first flow of each algorithm over time, of the first seed."""
        return self._over_time("goodput_bit_s", 1e-6, "goodput (Mbit/s)", ax)

    def rtt(self, ax: Axes | None = None) -> Axes:
        """Smoothed RTT of the first flow of each algorithm over time, of the first seed."""
        return self._over_time("srtt_s", 1e3, "RTT (ms)", ax)


class SweepPlots:
    """Pictures of a sweep."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep

    def tradeoff(self, ax: Axes | None = None) -> Axes:
        """Goodput against the 95th percentile of the delay of each combination of settings."""
        return _tradeoff("Sweep", self._sweep.table, ax)


class TracePlots:
    """Pictures of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def rate(self, interval: str = "1s", ax: Axes | None = None) -> Axes:
        """The mean rate of each interval."""
        ax = _axes(ax, f"{self._trace.name}, mean of {interval}", "time (s)", "rate (Mbit/s)")
        rates = self._trace.rates(interval)
        ax.step(rates["time_s"], _numbers(rates["rate_bit_s"], 1e-6), where="post", linewidth=1.2)
        ax.set_ylim(bottom=0)
        return ax


def _tradeoff(title: str, table: Any, ax: Axes | None) -> Axes:
    ax = _axes(ax, title, "delay in the bottleneck, 95th percentile (ms)", "goodput (Mbit/s)")
    columns = [
        _numbers(table[name], factor)
        for name, factor in (
            ("delay_p95_s", 1e3),
            ("goodput_bit_s", 1e-6),
            ("delay_p95_s_ci95", 1e3),
            ("goodput_bit_s_ci95", 1e-6),
        )
    ]
    for number, (label, x, y, dx, dy) in enumerate(zip(table["cc"], *columns, strict=True)):
        colour = _COLOURS[number % len(_COLOURS)]
        ax.plot(x, y, "o", color=colour, label=label)
        if not math.isnan(dx + dy):
            ax.errorbar(x, y, xerr=dx, yerr=dy, color=colour, capsize=2)
    # Room above and to the right, so that no point lies on the frame.
    ax.autoscale_view()
    ax.set_xlim(0, 1.08 * ax.get_xlim()[1])
    ax.set_ylim(0, 1.08 * ax.get_ylim()[1])
    _legend(ax, 2)
    return ax
