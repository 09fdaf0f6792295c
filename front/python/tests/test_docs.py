"""The guide's examples and the notebooks run."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import ranpace
from conftest import REPOSITORY


def blocks() -> list[str]:
    """The Python blocks of the guide that are not marked as not run."""
    page = (REPOSITORY / "docs/python.md").read_text()
    found: list[tuple[str, str]] = re.findall(r"([^\n]*)\n+```python\n(.*?)\n```", page, re.S)
    return [code for above, code in found if "not run" not in above]


def test_the_guides_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    assert len(blocks()) >= 5
    for code in blocks():
        exec(compile(code.replace('time="20s"', 'time="4s"'), "docs/python.md", "exec"), names)
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_the_guides_aimd_is_newreno(scenario: str) -> None:
    code = next(code for code in blocks() if '@ranpace.control("aimd")' in code)
    aimd = code[: code.index("\n\n\n")]
    assert len(aimd.splitlines()) <= 30
    exec(compile(aimd, "docs/python.md", "exec"), {"ranpace": ranpace})
    scenario = scenario.replace("2s", "30s")
    own = ranpace.run(scenario.replace('"newreno"', '"aimd"')).series()
    assert own["cwnd_bytes"] == ranpace.run(scenario).series()["cwnd_bytes"]


NOTEBOOKS = sorted((REPOSITORY / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_within_a_minute(notebook: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    page = nbformat.read(notebook, as_version=4)
    since = time.monotonic()
    client = nbclient.NotebookClient(page, kernel_name="python3", timeout=300, resources={"metadata": {"path": str(notebook.parent)}})
    client.execute()
    # A minute on an idle machine; tests share theirs.
    assert time.monotonic() - since < 240
    shown = [kind for cell in page.cells if cell.cell_type == "code" for output in cell.outputs for kind in output.get("data", {})]
    assert "image/png" in shown or "text/html" in shown
    assert all(not cell.get("outputs") for cell in nbformat.read(notebook, as_version=4).cells), "outputs are not committed"
