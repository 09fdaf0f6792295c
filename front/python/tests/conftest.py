"""What several tests need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def scenario() -> str:
    """A second of a download over a fixed link."""
    return """
duration = "2s"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "10Mbit/s"
delay = "10ms"
queue = { kind = "droptail", limit = "40KB" }
duplex = true
[[flow]]
from = "server"
to = "phone"
cc = "newreno"
"""


def command(*arguments: str, cwd: Path) -> None:
    """Runs the command `ranpace` that was built with the package; RANPACE names it."""
    program = os.environ.get("RANPACE", str(REPOSITORY / "target/debug/ranpace"))
    if not Path(program).exists():
        if os.environ.get("RANPACE_NO_SKIP"):
            pytest.fail(f"no command {program}: build it, or set RANPACE")
        pytest.skip(f"needs the command {program}")
    # What `ranpace sweep --dask` calls is the Python of these tests.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [program, *arguments], cwd=cwd, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stderr
