"""The package that pip makes of a clone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import ranpace
from conftest import REPOSITORY


def test_pip_installs_the_package_from_the_repositorys_root() -> None:
    pytest.importorskip("maturin")
    # What `pip install .` would install, without compiling it.
    options = ["--dry-run", "--no-deps", "--no-build-isolation", "--ignore-installed", "--quiet", "--report", "-"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *options, "."],
        cwd=REPOSITORY, capture_output=True, text=True, env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (planned,) = json.loads(done.stdout)["install"]
    metadata = planned["metadata"]
    assert metadata["name"] == "ranpace"
    assert ranpace.__version__.startswith(metadata["version"])
    assert metadata["requires_python"] == ">=3.10"
    assert {"plot", "pandas", "polars", "gym", "dask"} <= set(metadata["provides_extra"])
    assert "Congestion controls over cellular links" in metadata["description"]
