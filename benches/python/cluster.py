"""What a cluster costs: overhead and speedup of workers on this machine, the scheduler's and the client's time a task, and from these what a
million runs on 1,000 cores would take.

    python benches/python/cluster.py sweep       overhead and speedup; two idle cores, a minute
    python benches/python/cluster.py tasks       CPU time a task
    python benches/python/cluster.py simulate    a million runs on 1,000 cores; takes --scheduler-us and --client-us from `tasks`
"""

from __future__ import annotations

import argparse
import heapq
import random
import tempfile
import time
from pathlib import Path

import ranpace
from ranpace import cluster

SCENARIO = """
duration = "60s"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "20Mbit/s"
delay = "20ms"
queue = { kind = "droptail", limit = "150KB" }
duplex = true
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"""

def nothing(number: int) -> int:
    """A task without work."""
    return number


def runs_a_second() -> float:
    """Runs of the scenario that a core plays a second."""
    begun = time.perf_counter()
    ranpace.sweep(SCENARIO, vary={"flow.cc": ["cubic"]}, seeds=50, threads=1)
    return 50 / (time.perf_counter() - begun)


def play_batches(out: str, numbers: range) -> None:
    """Plays batches as a worker does, without Dask."""
    for number in numbers:
        cluster.play_batch(out, number, ranpace.__version__)


def sweep(tasks: int) -> None:
    """The same batches of a second without Dask, in one process and in two, and by one worker and by two."""
    from multiprocessing import get_context

    from distributed import Client, LocalCluster

    batch = max(1, round(runs_a_second()))
    runs, vary = batch * tasks, {"flow.cc": ["cubic"]}
    print(f"{tasks} tasks of {batch} runs of 60 s")
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        for processes in (1, 2):
            out = Path(folder) / f"{processes} processes"
            out.mkdir()
            # As a sweep would begin; the first batches, in which Python loads packages, do not count.
            plan = {"version": ranpace.__version__, "file": "", "scenario": SCENARIO, "vary": [["flow.cc", ["cubic"]]], "seeds": runs + 2 * batch,
                    "runs": runs + 2 * batch, "batch": batch, "traces": None}  # fmt: skip
            cluster._begin(*cluster._file_system(str(out)), plan, lambda: batch)
            with get_context("spawn").Pool(processes) as pool:
                pool.starmap(play_batches, [(str(out), range(tasks + first, tasks + first + 1)) for first in range(processes)], 1)
                begun = time.perf_counter()
                pool.starmap(play_batches, [(str(out), range(first, tasks, processes)) for first in range(processes)], 1)
                times[f"{processes} without Dask"] = time.perf_counter() - begun
        for workers in (1, 2):
            out = Path(folder) / f"{workers} workers"
            with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as local, Client(local) as client:
                ranpace.sweep(SCENARIO, vary=vary, seeds=2 * batch, executor=client, out=f"{out} warm", batch=batch)
                begun = time.perf_counter()
                ranpace.sweep(SCENARIO, vary=vary, seeds=runs, executor=client, out=out, batch=batch)
                times[f"{workers} with Dask"] = time.perf_counter() - begun
    for name, took in times.items():
        print(f"{name}: {took:.2f} s")
    one, two = times["1 without Dask"], times["2 without Dask"]
    print(f"overhead of Dask: {times['1 with Dask'] / one - 1:.1%} with one worker, {times['2 with Dask'] / two - 1:.1%} with two")
    print(f"speedup by a second process {one / two:.2f}, by a second worker {times['1 with Dask'] / times['2 with Dask']:.2f}")


def measure_tasks(tasks: int) -> tuple[float, float]:
    """CPU seconds a task of the scheduler, which has a process of its own, and of the client."""
    import subprocess
    import sys

    from distributed import Client

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        options = ["--scheduler-file", str(file)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        module = [sys.executable, "-m"]
        scheduler = [*module, "distributed.cli.dask_scheduler", *options, "--port", "0", "--no-dashboard"]
        worker = [*module, "distributed.cli.dask_worker", *options, "--nthreads", "1", "--no-dashboard"]
        started = [subprocess.Popen(command, **quiet) for command in (scheduler, worker, worker)]  # type: ignore[call-overload]
        try:
            with Client(scheduler_file=str(file), timeout="60s") as client:
                client.wait_for_workers(2)
                submit = lambda number: client.submit(nothing, number, pure=False)  # noqa: E731
                cluster._play_all(client, iter(range(200)), submit)
                scheduler_before, client_before = client.run_on_scheduler(time.process_time), time.process_time()
                cluster._play_all(client, iter(range(tasks)), submit)
                used = time.process_time() - client_before
                return (client.run_on_scheduler(time.process_time) - scheduler_before) / tasks, used / tasks
        finally:
            for process in started:
                process.terminate()
                process.wait()


def simulate(runs: int, batch: int, cores: int, run_s: float, scheduler_s: float, client_s: float, seed: int = 1) -> float:
    """Seconds that a sweep takes: workers that play batches, a scheduler and a client that serve one task after another.

    The client hands over a task, the scheduler sends it to a core that is idle, and hears of its end; the client then hands over the next one.
    Half of the scheduler's time is before a task and half after it. How long batches take varies by 10 % (uniformly).
    """
    draw = random.Random(seed)
    tasks, idle, queued, done, clock = -(-runs // batch), cores, 0, 0, 0.0
    left, scheduler_free, client_free = tasks, 0.0, 0.0
    events: list[tuple[float, int, str]] = []
    count = 0

    def push(at: float, what: str) -> None:
        nonlocal count
        count += 1
        heapq.heappush(events, (at, count, what))

    def submit(now: float) -> None:
        nonlocal left, client_free
        left -= 1
        client_free = max(client_free, now) + client_s
        push(client_free, "handed over")

    for _ in range(min(tasks, cluster.WAITING * cores)):
        submit(0.0)
    while done < tasks:
        clock, _, what = heapq.heappop(events)
        if what == "handed over":
            queued += 1
        elif what == "ended":
            # The scheduler hears of it when it is free.
            scheduler_free = max(scheduler_free, clock) + scheduler_s / 2
            push(scheduler_free, "heard")
        else:
            idle, done = idle + 1, done + 1
            if left:
                submit(clock)
        while queued and idle:
            queued, idle = queued - 1, idle - 1
            scheduler_free = max(scheduler_free, clock) + scheduler_s / 2
            push(scheduler_free + batch * run_s * draw.uniform(0.9, 1.1), "ended")
    return clock


def show_simulation(scheduler_s: float, client_s: float, run_s: float) -> None:
    """A million runs on 1,000 cores, by the size of batches; and from how many cores on the scheduler is the limit."""
    runs, cores = 1_000_000, 1_000
    ideal = runs * run_s / cores
    print(f"scheduler {scheduler_s * 1e6:.0f} us and client {client_s * 1e6:.0f} us a task, {run_s:.3f} s a run: {ideal:.0f} s without them")
    print("runs per batch | tasks   | work per task | sweep    | efficiency")
    for batch in (1, 2, 5, 10, 50, 100, 500):
        took = simulate(runs, batch, cores, run_s, scheduler_s, client_s)
        print(f"{batch:14} | {runs // batch:7} | {batch * run_s:11.2f} s | {took:6.0f} s | {ideal / took:.0%}")
    least = max(scheduler_s, client_s)
    print(f"tasks of a second keep at most {1 / least:,.0f} cores busy, tasks of a minute {60 / least:,.0f}")


def main() -> None:
    """One of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("sweep", "tasks", "simulate"))
    parser.add_argument("--tasks", type=int, default=None, help="how many [default: 20 of a sweep, 5000 empty ones]")
    parser.add_argument("--scheduler-us", type=float, default=None)
    parser.add_argument("--client-us", type=float, default=None)
    parser.add_argument("--run-s", type=float, default=None, help="CPU time of a run [default: measured]")
    options = parser.parse_args()
    if options.what == "sweep":
        sweep(options.tasks or 20)
    elif options.what == "tasks":
        scheduler_s, client_s = measure_tasks(options.tasks or 5_000)
        print(f"scheduler {scheduler_s * 1e6:.0f} us, client {client_s * 1e6:.0f} us of CPU time a task")
    else:
        if options.scheduler_us is None or options.client_us is None:
            parser.error("simulate needs --scheduler-us and --client-us, as `tasks` prints them")
        show_simulation(options.scheduler_us * 1e-6, options.client_us * 1e-6, options.run_s or 1 / runs_a_second())


if __name__ == "__main__":
    main()
