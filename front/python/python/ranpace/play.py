"""Playing scenarios: the commands `run`, `compare`, `sweep` and `reproduce` as functions, with their options as keyword arguments."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, overload

from . import _ranpace
from ._progress import shower
from .control import register
from .errors import OptionError
from .results import Comparison, Reproduction, Run, Survey, Sweep
from .scenario import ScenarioLike, Time, _plain, text_of

if TYPE_CHECKING:
    from .cluster import ClusterSweep

__all__ = ["compare", "experiments", "list_cc", "reproduce", "run", "sweep"]

Folder = Union[str, "os.PathLike[str]"]
Algorithms = Union[str, type, Iterable[Union[str, type]]]
"""Names separated by commas, or a list of names and of registered classes."""


def _path(folder: Folder | None) -> Path | None:
    return None if folder is None else Path(folder)


def _text(value: Any, name: str) -> str | None:
    return None if value is None else str(_plain(value, name))


def _name(algorithm: str | type) -> str:
    if isinstance(algorithm, str):
        return algorithm
    if inspect.isclass(algorithm):
        # A class that was not registered gets its own name.
        register(algorithm.__name__, algorithm)
        return algorithm.__name__
    raise TypeError(f"cc: expected names of controls or classes, found {type(algorithm).__name__}")


def _names(cc: Algorithms) -> list[str]:
    if isinstance(cc, str):
        return [name.strip() for name in cc.split(",")]
    if isinstance(cc, type):
        return [_name(cc)]
    return [_name(algorithm) for algorithm in cc]


def run(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    out: Folder | None = None,
    traces: Folder | None = None,
) -> Run:
    """Plays a scenario in virtual time, as `ranpace run`.

    Parameters
    ----------
    scenario : a file's path, a text in TOML, a dictionary with a scenario's keys, or a `Scenario`
    seed : to play with instead of the scenario's
    out : folder for results and report, which then are those that the command writes; nothing is written by default
    traces : folder of recorded traces, searched after the working directory; by default RANPACE_TRACES, or "traces"

    Raises
    ------
    ScenarioError : with file, line and advice, if the scenario is refused
    KeyboardInterrupt : after Ctrl-C; the run is lost

    >>> run = run("examples/drive.toml", seed=7)  # doctest: +SKIP
    """
    text, file = text_of(scenario)
    command = _command("run", file, seed=seed)
    with shower("playing") as show:
        inner = _ranpace.run(
            text, file, seed=seed, out=_path(out), traces=_path(traces), command=command, show=show
        )
    return Run(inner, command)


@overload
def compare(
    *,
    all: Literal[False] = False,
    cell: str | None = None,
    trace: Folder | None = None,
    trace_up: Folder | None = None,
    light: Folder | None = None,
    light_up: Folder | None = None,
    scale: float | None = None,
    rate: str | None = None,
    cc: Algorithms | None = None,
    rtt: Time | None = None,
    buffer: str | None = None,
    queue: str | None = None,
    loss: float | None = None,
    time: Time | None = None,
    warmup: Time | None = None,
    flows: int | None = None,
    seeds: int = 1,
    threads: int = 0,
    out: Folder | None = None,
    traces: Folder | None = None,
) -> Comparison: ...
@overload
def compare(
    *,
    all: Literal[True],
    cc: str | Iterable[str] | None = None,
    seeds: int = 1,
    threads: int = 0,
    out: Folder | None = None,
    traces: Folder | None = None,
) -> Survey: ...
def compare(
    *,
    all: bool = False,
    cell: str | None = None,
    trace: Folder | None = None,
    trace_up: Folder | None = None,
    light: Folder | None = None,
    light_up: Folder | None = None,
    scale: float | None = None,
    rate: str | None = None,
    cc: Algorithms | None = None,
    rtt: Time | None = None,
    buffer: str | None = None,
    queue: str | None = None,
    loss: float | None = None,
    time: Time | None = None,
    warmup: Time | None = None,
    flows: int | None = None,
    seeds: int = 1,
    threads: int = 0,
    out: Folder | None = None,
    traces: Folder | None = None,
) -> Comparison | Survey:
    """Compares congestion controls over one link or in a cell, as `ranpace compare`.

    Parameters
    ----------
    all : every control and mechanism in every situation instead (links, cells, beside CUBIC, short transfers, a call), as
        `ranpace compare --all`; the result is a `Survey`. Of the other options `cc`, `seeds`, `threads`, `out` and `traces`
        go with it; `cc` then chooses some by their names in its table. With 20 seeds it takes some twenty minutes on two cores
    cell : a cell instead of a link: "lte", "nr", or another of `ranpace list cells`
    trace, trace_up : traces of the link down and up: files, or "builtin:lte" (the default), "builtin:umts", "builtin:nr"
    light, light_up : what was recorded under light load, as CellReplay records it; `trace` and `trace_up` are then those of heavy load
    scale : capacity factor of the traces
    rate : rate of a fixed link instead, such as "20Mbit/s"
    cc : names separated by commas, or a list of names and classes; "cubic,bbr1,vegas,c2tcp:target=50ms" by default
    rtt : round-trip time of the empty path, "20ms" by default; in a cell of the wire alone
    buffer : capacity of the bottleneck's queue: "150KB" (the default), "100 packets" or "unlimited"
    queue : the bottleneck's queue: "droptail" (the default), "codel", "fq_codel", "pie", "dualpi2", "l4span" or "abc"
    loss : probability of random loss on the way down
    time, warmup : length of each run ("60s"), and time from which figures are counted ("0s")
    flows : number of simultaneous flows (1), all with the same algorithm; in a cell, per user
    seeds : runs of each algorithm; several give confidence intervals
    threads : 0 for one per core; runs with controls written in Python use one
    out : folder for results and report; completed runs that it has already are not played again
    traces : folder of recorded traces

    >>> comparison = compare(rate="10Mbit/s", cc="cubic,bbr1", time="2s")
    >>> comparison.table["cc"]
    ['cubic', 'bbr1']
    """
    link = {
        "cell": cell,
        "trace": trace,
        "trace_up": trace_up,
        "light": light,
        "light_up": light_up,
        "scale": scale,
        "rate": rate,
        "rtt": rtt,
        "buffer": buffer,
        "queue": queue,
        "loss": loss,
        "time": time,
        "warmup": warmup,
        "flows": flows,
    }
    if all:
        given = [name for name, value in link.items() if value is not None]
        if given:
            raise OptionError(f"{given[0]}: cannot be combined with all=True, whose situations are fixed")
        return _compare_all(cc, seeds, threads, out, traces)
    names = _names("cubic,bbr1,vegas,c2tcp:target=50ms" if cc is None else cc)
    options = {
        **link,
        "trace": None if trace is None else os.fspath(trace),
        "trace_up": None if trace_up is None else os.fspath(trace_up),
        "light": None if light is None else os.fspath(light),
        "light_up": None if light_up is None else os.fspath(light_up),
        "cc": names,
        "rtt": _text(rtt, "rtt"),
        "time": "60s" if time is None else _text(time, "time"),
        "warmup": "0s" if warmup is None else _text(warmup, "warmup"),
        "flows": 1 if flows is None else flows,
        "seeds": seeds,
    }
    known = {key: value for key, value in options.items() if value is not None}
    command = _command("compare", **{**known, "cc": ",".join(names)})
    with shower("comparing") as show:
        inner = _ranpace.compare(
            **options, threads=threads, out=_path(out), traces=_path(traces), command=command, show=show
        )
    return Comparison(inner, command)


def _compare_all(
    cc: Algorithms | None, seeds: int, threads: int, out: Folder | None, traces: Folder | None
) -> Survey:
    names = None if cc is None else _names(cc)
    command = _command("compare", all=True, cc=names and ",".join(names), seeds=seeds)
    with shower("comparing all") as show:
        inner = _ranpace.compare_all(
            cc=names, seeds=seeds, threads=threads, out=_path(out), traces=_path(traces), command=command, show=show
        )
    return Survey(inner, command)


def _variations(vary: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    variations = []
    for key, values in vary.items():
        if isinstance(values, str):
            values = values.split(",")
        if not isinstance(values, Iterable) or isinstance(values, Mapping):
            raise TypeError(f"vary[{key!r}]: expected a list of values, or a text such as \"A,B\", found {values!r}")
        texts = [_name(value) if inspect.isclass(value) else str(_plain(value, key)).strip() for value in values]
        if not texts:
            raise ValueError(f"vary[{key!r}]: expected at least one value")
        variations.append((key, texts))
    return variations


def sweep(
    scenario: ScenarioLike,
    *,
    vary: Mapping[str, Any],
    seeds: int = 1,
    series: bool = False,
    threads: int = 0,
    out: Folder | None = None,
    traces: Folder | None = None,
    executor: Any = None,
    batch: int | None = None,
) -> Sweep | ClusterSweep:
    """Plays a scenario over a grid of settings and seeds, as `ranpace sweep`.

    Parameters
    ----------
    scenario : a file's path, a text in TOML, a dictionary with a scenario's keys, or a `Scenario`
    vary : keys of the scenario and their values: {"flow.cc": ["cubic", "bbr1"], "link.down.rate": "5Mbit/s,20Mbit/s"}
    seeds : runs per combination, with the scenario's seed and the following ones
    series : whether series over time are kept
    threads : 0 for one per core
    out : folder for results and report; completed runs that it has already are not played again. With `executor` any
        path that fsspec knows (a shared folder, s3://...): it gets a Parquet data set
    executor : a `dask.distributed.Client` whose workers play the runs
    batch : runs per task of the executor; by default about a second of work, as long as the first run takes here, and more
        in sweeps of more than 10,000 such batches

    >>> scenario = {"duration": "1s", "link": [{"name": "down", "from": "a", "to": "b", "rate": "10Mbit/s",
    ...     "delay": "10ms", "duplex": True}], "flow": [{"from": "a", "to": "b", "cc": "newreno"}]}
    >>> sweep(scenario, vary={"flow.cc": ["cubic", "newreno"]}, seeds=2).table["seeds"]
    [2, 2]
    """
    text, file = text_of(scenario)
    variations = _variations(vary)
    command = _command("sweep", file, vary={key: ",".join(values) for key, values in variations}, seeds=seeds)
    if executor is not None:
        from .cluster import play

        if out is None:
            raise ValueError("a sweep by an executor needs out=: the workers write the results there")
        return play(text, file, variations, seeds, executor, os.fspath(out), _path(traces), batch)
    plan = _ranpace.sweep_plan(text, file, vary=variations, seeds=seeds, traces=_path(traces))
    with shower("sweeping") as show:
        inner = plan.play(series=series, threads=threads, out=_path(out), command=command, show=show)
    return Sweep(inner, command)


def reproduce(
    *names: str,
    quick: bool = False,
    sensitivity: bool = False,
    threads: int = 0,
    out: Folder | None = None,
    traces: Folder | None = None,
) -> Reproduction:
    """Plays published experiments again and judges whether their results hold, as `ranpace reproduce`.

    Parameters
    ----------
    names : of experiments, or beginnings of names ("002" for all of that document); `experiments()` lists them
    quick : shorter runs at fewer points; nothing is judged
    sensitivity : also every combination of the algorithm's switches

    >>> reproduce("001-a1-detector", quick=True).table.columns[:2]
    ['experiment', 'id']
    """
    if not names:
        raise ValueError("name at least one experiment; ranpace.experiments() lists them")
    command = _command("reproduce", *names, quick=quick or None)
    inner = _ranpace.reproduce(
        list(names),
        quick=quick,
        sensitivity=sensitivity,
        threads=threads,
        out=_path(out),
        traces=_path(traces),
        command=command,
    )
    return Reproduction(inner, command)


def experiments() -> list[dict[str, Any]]:
    """The published experiments that `reproduce` knows: name, aliases, title and source."""
    listed: list[dict[str, Any]] = json.loads(_ranpace.experiments())
    return listed


def list_cc() -> dict[str, Any]:
    """Congestion controls, decorators and short names, as `ranpace list cc --json`; registered classes come last.

    >>> [entry["name"] for entry in list_cc()["algorithms"]][:2]
    ['newreno', 'cubic']
    """
    listed: dict[str, Any] = json.loads(_ranpace.list_cc())
    return listed


def _command(function: str, *places: str, **options: Any) -> str:
    """The call, for the head of the report."""
    given: Sequence[str] = [repr(place) for place in places]
    given = [*given, *(f"{key}={value!r}" for key, value in options.items() if value is not None)]
    return f"ranpace.{function}({', '.join(given)})"
