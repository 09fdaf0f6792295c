"""A sweep by pods: `pip install dask-kubernetes` beside `ranpace[dask]`, Dask's operator in the Kubernetes cluster, and an image with Ranpace
(Dockerfile beside this file) and what reaches the results' store (s3fs, gcsfs or adlfs).

    python docs/cluster/kubernetes.py IMAGE s3://bucket/folder
"""

from __future__ import annotations

import sys
from pathlib import Path

import ranpace
from dask_kubernetes.operator import KubeCluster
from distributed import Client

SCENARIO = Path(__file__).parents[2] / "examples/drive.toml"
# A run has one thread; memory is that of a core's share of a batch.
RESOURCES = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}


def main(image: str, out: str) -> None:
    """Plays 300,000 runs with 50 pods."""
    worker = ["dask", "worker", "--nthreads", "1"]
    with (
        KubeCluster(name="ranpace", image=image, n_workers=50, resources=RESOURCES, worker_command=worker) as cluster,
        Client(cluster) as client,
    ):
        # Pods that come later join in.
        client.wait_for_workers(1)
        sweep = ranpace.sweep(SCENARIO, vary={"flow.cc": ["cubic", "bbr1", "vegas"]}, seeds=100_000, executor=client, out=out)
        print(sweep)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
