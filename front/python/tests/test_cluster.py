"""Sweeps on a Dask cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ranpace
from conftest import REPOSITORY, command

distributed = pytest.importorskip("distributed")

from ranpace import cluster  # noqa: E402

VARY = {"flow.cc": ["cubic", "vegas"], "link.down.rate": ["5Mbit/s", "10Mbit/s"]}


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


@pytest.fixture(scope="module")
def client():  # type: ignore[no-untyped-def]
    """Two workers in processes of their own, as on a cluster."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        yield client


def test_workers_write_the_bytes_of_one_process(client, tmp_path: Path, scenario: str) -> None:  # type: ignore[no-untyped-def]
    there = ranpace.sweep(scenario, vary=VARY, seeds=3, executor=client, out=tmp_path / "there", batch=5)
    (tmp_path / "here").mkdir()
    (tmp_path / "here/provenance.json").write_bytes((tmp_path / "there/provenance.json").read_bytes())
    assert [cluster.play_batch(str(tmp_path / "here"), number, ranpace.__version__) for number in range(3)] == [5, 5, 2]
    assert parts(tmp_path / "here") == parts(tmp_path / "there")
    whole = ranpace.sweep(scenario, vary=VARY, seeds=3)
    assert there.flows.to_pylist() == whole.flows.to_dicts()
    assert there.provenance["version"] == ranpace.__version__


def test_a_sweep_is_resumed_with_what_is_missing(client, tmp_path: Path, scenario: str) -> None:  # type: ignore[no-untyped-def]
    ranpace.sweep(scenario, vary=VARY, executor=client, out=tmp_path, batch=1)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("part-*")}
    (tmp_path / "part-0000002.parquet").unlink()
    ranpace.sweep(scenario, vary=VARY, executor=client, out=tmp_path, batch=1)
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("part-*")}
    assert set(after) == set(before)
    assert {name for name in after if after[name] != before[name]} == {"part-0000002.parquet"}
    # It goes on with the batches that it began with, whatever the default would be here.
    assert ranpace.sweep(scenario, vary=VARY, executor=client, out=tmp_path).provenance["batch"] == 1
    with pytest.raises(ranpace.ResultsError, match="seeds, runs differ"):
        ranpace.sweep(scenario, vary=VARY, seeds=2, executor=client, out=tmp_path, batch=1)


def test_a_killed_worker_costs_only_its_batch(tmp_path: Path, scenario: str) -> None:
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        victim = min(client.run(os.getpid).values())

        def kill_when_begun() -> None:
            while not list(tmp_path.glob("part-*")):
                time.sleep(0.005)
            os.kill(victim, signal.SIGKILL)

        import threading

        killer = threading.Thread(target=kill_when_begun)
        killer.start()
        sweep = ranpace.sweep(
            scenario.replace("2s", "20s"), vary={"flow.cc": ["cubic"]}, seeds=40, executor=client, out=tmp_path, batch=4
        )
        killer.join()
    assert sweep.flows["seed"].to_pylist() == list(range(1, 41))


def test_another_version_is_refused_and_both_are_named(tmp_path: Path, scenario: str) -> None:
    (tmp_path / "provenance.json").write_text(json.dumps({"version": "0.0.1"}))
    with pytest.raises(ranpace.VersionError, match=f"0.0.1, this worker has {ranpace.__version__.split('+')[0]}"):
        cluster.play_batch(str(tmp_path), 0, "0.0.1")


def test_a_worker_with_another_version_is_refused_by_its_sweep(client, tmp_path: Path, scenario: str) -> None:  # type: ignore[no-untyped-def]
    def become(version: str) -> str:
        before: str = ranpace._ranpace.__version__
        ranpace._ranpace.__version__ = version
        return before

    client.run(become, "0.0.1")
    try:
        with pytest.raises(ranpace.VersionError, match=f"begun by ranpace {ranpace.__version__.split('+')[0]}.*this worker has 0.0.1"):
            ranpace.sweep(scenario, vary=VARY, executor=client, out=tmp_path)
    finally:
        client.run(become, ranpace.__version__)
    assert list(tmp_path.glob("part-*")) == []


def test_a_worker_whose_disk_is_full_says_so(client, tmp_path: Path, scenario: str) -> None:  # type: ignore[no-untyped-def]
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", tmp_path], capture_output=True).returncode != 0:
        if os.environ.get("RANPACE_NO_SKIP"):
            pytest.fail("needs the right to mount")
        pytest.skip("needs the right to mount")
    try:
        with pytest.raises(ranpace.ResultsError, match="batch .*cannot write .*No space left on device.*resumes"):
            ranpace.sweep(scenario, vary=VARY, seeds=10, executor=client, out=tmp_path, batch=10)
        # The batches of the other workers may still be on their way to the same error.
        deadline = time.monotonic() + 30
        while list(tmp_path.glob("*.tmp")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list(tmp_path.glob("*.tmp")) == []
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_results_that_are_gone_are_named(tmp_path: Path) -> None:
    gone = cluster.ClusterSweep(str(tmp_path / "gone"))
    for read in (lambda: gone.flows, lambda: gone.provenance, lambda: repr(gone)):
        with pytest.raises(ranpace.ResultsError, match="gone"):
            read()


def test_a_full_disk_names_the_batch_and_leaves_nothing(tmp_path: Path, scenario: str, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    import fsspec.implementations.local as local

    plan = {
        "version": ranpace.__version__, "file": "x", "scenario": scenario, "vary": [], "seeds": 1, "runs": 1, "batch": 1, "traces": None
    }  # fmt: skip
    (tmp_path / "provenance.json").write_text(json.dumps(plan))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local.LocalFileSystem, "mv", full)
    with pytest.raises(ranpace.ResultsError, match="batch 0: cannot write .*No space left"):
        cluster.play_batch(str(tmp_path), 0, ranpace.__version__)
    assert [path.name for path in tmp_path.iterdir()] == ["provenance.json"]


def test_what_cannot_be_played_is_refused_before_it_is_sent(client, tmp_path: Path, scenario: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ranpace.ScenarioError, match="nearest: cubic"):
        ranpace.sweep(scenario, vary={"flow.cc": ["cubik"]}, executor=client, out=tmp_path)
    with pytest.raises(ValueError, match="needs out="):
        ranpace.sweep(scenario, vary={}, executor=client)
    with pytest.raises(TypeError, match="Client"):
        ranpace.sweep(scenario, vary={}, executor=object(), out=tmp_path)


def test_the_command_goes_the_same_way(client, tmp_path: Path, scenario: str) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "link.toml").write_text(scenario)
    command(
        "sweep", "link.toml", "--vary", "flow.cc=cubic,vegas", "--seeds", "2", "--dask", client.scheduler.address, "--out", "data",
        cwd=tmp_path,
    )  # fmt: skip
    here = ranpace.sweep(tmp_path / "link.toml", vary={"flow.cc": "cubic,vegas"}, seeds=2)
    assert cluster.ClusterSweep(str(tmp_path / "data")).flows.to_pylist() == here.flows.to_dicts()


CLUSTERS = REPOSITORY / "docs/cluster"


def test_the_example_of_this_machine_plays(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, CLUSTERS / "local.py", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "goodput_bit_s_mean" in done.stdout
    assert json.loads((tmp_path / "provenance.json").read_text())["runs"] == 30


def test_the_example_of_slurm_writes_a_job_for_its_workers() -> None:
    pytest.importorskip("dask_jobqueue")
    done = subprocess.run([sys.executable, CLUSTERS / "slurm.py", "--script"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for expected in ("#SBATCH --cpus-per-task=16", "#SBATCH -t 01:00:00", "dask_worker tcp://", "--nthreads 1 ", "--nworkers 16 "):
        assert expected in done.stdout
