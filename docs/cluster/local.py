"""A sweep by the cores of this machine, as a cluster would play it.

    python docs/cluster/local.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import ranpace
from distributed import Client, LocalCluster

SCENARIO = Path(__file__).parents[2] / "examples/drive.toml"


def main(out: str) -> None:
    """Plays three controls with ten seeds each."""
    # A process per core: a run has one thread.
    with LocalCluster(threads_per_worker=1) as cluster, Client(cluster) as client:
        sweep = ranpace.sweep(
            SCENARIO, vary={"flow.cc": ["cubic", "bbr1", "vegas"], "duration": ["10s"]}, seeds=10, executor=client, out=out
        )
    goodput = sweep.flows.group_by("flow.cc").aggregate([("goodput_bit_s", "mean"), ("goodput_bit_s", "stddev")])
    print(goodput.to_pylist())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "results/local")
