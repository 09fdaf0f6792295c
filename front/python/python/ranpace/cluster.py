"""Sweeps on a Dask cluster: workers play batches of runs and write them as parts of one Parquet data set.

`ranpace.sweep(..., executor=client, out=PATH)` calls this, and so does `ranpace sweep --dask ADDRESS`, by `python -m ranpace.cluster`.

The folder of a data set has `provenance.json`, which says all that determines its figures, and `part-NUMBER.parquet` for each batch.
A task is the number of a batch: its worker reads the provenance, plays the runs, and writes the part under a temporary name that
it then changes. So nothing large passes the scheduler, and a part that exists is complete.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import _ranpace
from .errors import OptionError, RanpaceError, ResultsError, VersionError

__all__ = ["ClusterSweep", "play", "play_batch"]

PROVENANCE = "provenance.json"

BATCH_S = 1.0
"""Work of a batch by default. Ours: a thousand times what it costs the scheduler (docs/python.md)."""

LONG_S = 600.0
"""Runs of this network time are batches of their own, and none is played to see how long it takes. Ours."""

MOST_PARTS = 10_000
"""Batches of a sweep by default, at most: each costs the scheduler about 2 ms, and is a file. Ours; docs/python.md has the figures."""

WAITING = 4
"""Batches per core that are with the scheduler at once. Ours."""


def _file_system(out: str) -> tuple[Any, str]:
    try:
        import fsspec
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ImportError(f"a sweep by an executor needs fsspec and pyarrow ({error}): pip install 'ranpace[dask]'") from None
    files, folder = fsspec.core.url_to_fs(out)
    return files, str(folder)


def _part(folder: str, number: int) -> str:
    return f"{folder}/part-{number:07d}.parquet"


def _settings(vary: list[tuple[str, list[str]]], point: int) -> list[tuple[str, list[str]]]:
    """The values of a combination; the last setting changes fastest."""
    chosen: list[tuple[str, list[str]]] = []
    for key, values in reversed(vary):
        point, place = divmod(point, len(values))
        chosen.append((key, [values[place]]))
    return chosen[::-1]


def play_batch(out: str, number: int, version: str) -> int:
    """Plays a batch and writes its part; what a worker does. Returns the number of runs.

    Raises
    ------
    VersionError : if this machine has another version of Ranpace than the one that began the sweep
    ResultsError : if the part cannot be written
    """
    if _ranpace.__version__ != version:
        raise VersionError(
            f"the sweep was begun by ranpace {version}, this worker has {_ranpace.__version__}: install the same version on both"
        )
    import pyarrow
    from pyarrow import parquet

    files, folder = _file_system(out)
    with files.open(f"{folder}/{PROVENANCE}") as file:
        plan = json.load(file)
    seeds, begin = plan["seeds"], number * plan["batch"]
    end = min(begin + plan["batch"], plan["runs"])
    tables = []
    while begin < end:
        point, skip = divmod(begin, seeds)
        count = min(seeds - skip, end - begin)
        traces = None if plan["traces"] is None else Path(plan["traces"])
        runs = _ranpace.sweep_plan(
            plan["scenario"], plan["file"], vary=_settings(plan["vary"], point), seeds=count, skip=skip, traces=traces
        )
        played = runs.play(series=False, threads=1, out=None, command="", show=None)
        tables.append(pyarrow.table(played.flows()))
        begin += count
    path = _part(folder, number)
    beside = f"{path}.{uuid.uuid4().hex}.tmp"
    try:
        with files.open(beside, "wb") as file:
            parquet.write_table(pyarrow.concat_tables(tables), file, compression="zstd")
        files.mv(beside, path)
    except OSError as error:
        if files.exists(beside):
            files.rm(beside)
        raise ResultsError(f"batch {number}: cannot write {path}: {error}; the same sweep again resumes with it") from error
    return int(end - number * plan["batch"])


class ClusterSweep:
    """A sweep whose results are a Parquet data set."""

    def __init__(self, out: str) -> None:
        self.out = out
        """Path of the data set."""

    @property
    def provenance(self) -> dict[str, Any]:
        """Scenario, settings, seeds and version."""
        files, folder = _file_system(self.out)
        try:
            with files.open(f"{folder}/{PROVENANCE}") as file:
                plan: dict[str, Any] = json.load(file)
        except (OSError, ValueError) as error:
            raise ResultsError(f"{self.out} is not the data set of a sweep: {PROVENANCE}: {error}") from error
        return plan

    @property
    def flows(self) -> Any:
        """A pyarrow table with a row per flow of each run: the varied settings, `seed`, `run` (its key) and the flow's figures."""
        import pyarrow
        from pyarrow import parquet

        files, folder = _file_system(self.out)
        tables = []
        for part in sorted(files.glob(f"{folder}/part-*.parquet")):
            with files.open(part) as file:
                tables.append(parquet.read_table(file))
        if not tables:
            raise ResultsError(f"{self.out} has no results: expected part-NUMBER.parquet, which the workers of a sweep write")
        return pyarrow.concat_tables(tables)

    def __repr__(self) -> str:
        plan = self.provenance
        return f"ClusterSweep({self.out!r}: {plan['runs']} runs of ranpace {plan['version']})"


def play(
    text: str,
    file: str,
    vary: list[tuple[str, list[str]]],
    seeds: int,
    client: Any,
    out: str,
    traces: Path | None = None,
    batch: int | None = None,
) -> ClusterSweep:
    """Plays a sweep on the workers of a Dask client; `ranpace.sweep` has the parameters."""
    if not hasattr(client, "submit") or not hasattr(client, "ncores"):
        raise TypeError(f"executor: expected a dask.distributed.Client, found {type(client).__name__}")
    if batch is not None and batch < 1:
        raise OptionError(f"batch: expected a number of runs from 1, found {batch}")
    # One seed of every combination is checked here, so that a mistake is raised before anything is sent.
    checked = _ranpace.sweep_plan(text, file, vary=vary, seeds=1, skip=0, traces=traces)
    runs = len(checked) * seeds
    plan: dict[str, Any] = {
        "version": _ranpace.__version__,
        "file": file,
        "scenario": text,
        "vary": [[key, values] for key, values in vary],
        "seeds": seeds,
        "runs": runs,
        "batch": batch,
        "traces": None if traces is None else os.path.abspath(traces),
    }
    if "://" not in out:
        # Workers have another working directory.
        out = os.path.abspath(out)
    files, folder = _file_system(out)
    files.makedirs(folder, exist_ok=True)
    _begin(files, folder, plan, lambda: _batch_of(checked, runs))
    batches = -(-runs // plan["batch"])
    there = {os.path.basename(path) for path in files.glob(f"{folder}/part-*.parquet")}
    missing = (number for number in range(batches) if os.path.basename(_part("", number)) not in there)

    def submit(number: int) -> Any:
        return client.submit(play_batch, out, number, _ranpace.__version__, pure=False, key=f"ranpace-{out}-{number}")

    _play_all(client, missing, submit)
    return ClusterSweep(out)


def _batch_of(checked: _ranpace.SweepPlan, runs: int) -> int:
    """Runs of a batch by default, from how long the first run takes here."""
    most = 1
    if checked.duration_s < LONG_S:
        begun = time.perf_counter()
        checked.play(numbers=[0], series=False, threads=1, out=None, command="", show=None)
        most = round(BATCH_S / (time.perf_counter() - begun))
    return max(1, min(most, runs), -(-runs // MOST_PARTS))


def _begin(files: Any, folder: str, plan: dict[str, Any], choose_batch: Callable[[], int]) -> None:
    """Writes the provenance, or compares it with that of the sweep to be resumed, which has chosen its batches."""
    path = f"{folder}/{PROVENANCE}"
    if not files.exists(path):
        plan["batch"] = plan["batch"] or choose_batch()
        with files.open(path, "w") as file:
            json.dump(plan, file, indent=2)
        return
    with files.open(path) as file:
        before = json.load(file)
    plan["batch"] = plan["batch"] or before.get("batch")
    if before["version"] != plan["version"]:
        raise VersionError(f"{folder} was begun by ranpace {before['version']}, this is {plan['version']}: choose another out=")
    other = [key for key in plan if before.get(key) != plan[key] and key not in ("file", "traces")]
    if other:
        raise ResultsError(f"{folder} has another sweep: {', '.join(other)} differ; choose another out=, or the same settings")


def _play_all(client: Any, numbers: Iterator[int], submit: Callable[[int], Any]) -> None:
    """Keeps a few batches per core at the workers, so that a million are not with the scheduler at once."""
    from distributed import as_completed

    waiting = WAITING * max(1, sum(client.ncores().values()))
    begun = [submit(number) for _, number in zip(range(waiting), numbers)]
    going = as_completed(begun)
    try:
        for future in going:
            future.result()
            number = next(numbers, None)
            if number is not None:
                going.add(submit(number))
    except BaseException:
        client.cancel([future for future in going.futures])
        raise


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m ranpace.cluster",
        description="Plays a sweep on a Dask cluster.",
        epilog="Example: python -m ranpace.cluster drive.toml --dask tcp://127.0.0.1:8786 --vary flow.cc=cubic,bbr1 --out results/drive",
    )
    parser.add_argument("scenario", help="scenario file")
    parser.add_argument("--dask", required=True, metavar="ADDRESS", help="of the scheduler, such as tcp://127.0.0.1:8786")
    parser.add_argument("--vary", action="append", default=[], metavar="KEY=A,B,...", help="a key and its values; repeat for a grid")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs per combination")
    parser.add_argument("--out", required=True, metavar="PATH", help="folder of the data set, or another path of fsspec")
    parser.add_argument("--traces", metavar="DIR", help="folder of recorded traces, the same on all workers")
    options = parser.parse_args()
    try:
        from distributed import Client
    except ImportError as error:
        print(f"--dask needs dask.distributed ({error}): pip install 'ranpace[dask]'", file=sys.stderr)
        return 2
    from .play import sweep

    vary = {}
    for text in options.vary:
        key, separator, values = text.partition("=")
        if not separator:
            print(f"--vary: expected KEY=A,B,..., found {text!r}", file=sys.stderr)
            return 2
        vary[key] = values
    try:
        with Client(options.dask, timeout="10s") as client:
            done = sweep(options.scenario, vary=vary, seeds=options.seeds, executor=client, out=options.out, traces=options.traces)
    except (RanpaceError, OSError) as error:
        print(f"ranpace: {error}", file=sys.stderr)
        return 2
    print(done)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
