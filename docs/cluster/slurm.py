"""A sweep by the jobs of a Slurm cluster: `pip install dask-jobqueue` beside `ranpace[dask]`, in an environment that all nodes see.

    python docs/cluster/slurm.py SHARED_FOLDER        on a login node
    python docs/cluster/slurm.py --script             prints what `sbatch` would get, and submits nothing
"""

from __future__ import annotations

import sys
from pathlib import Path

import ranpace
from dask_jobqueue import SLURMCluster
from distributed import Client

SCENARIO = Path(__file__).parents[2] / "examples/drive.toml"
CORES = 16
"""Of a job: each is a worker of its own, because a run has one thread."""


def make_cluster() -> SLURMCluster:
    """Jobs of an hour with 2 GB a core; `job_extra_directives=["--partition=NAME"]` and others go to `sbatch`."""
    return SLURMCluster(cores=CORES, processes=CORES, memory=f"{2 * CORES}GB", walltime="01:00:00")


def main(out: str) -> None:
    """Plays 300,000 runs with 10 jobs."""
    with make_cluster() as cluster, Client(cluster) as client:
        cluster.scale(jobs=10)
        # Jobs that Slurm starts later join in; those whose hour is over cost their batches, which others play.
        client.wait_for_workers(1)
        sweep = ranpace.sweep(SCENARIO, vary={"flow.cc": ["cubic", "bbr1", "vegas"]}, seeds=100_000, executor=client, out=out)
        print(sweep)


if __name__ == "__main__":
    if sys.argv[1:] == ["--script"]:
        with make_cluster() as cluster:
            print(cluster.job_script())
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(__doc__)
