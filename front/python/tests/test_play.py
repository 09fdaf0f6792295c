"""Playing, and the results: the same as the command's."""

from __future__ import annotations

import datetime
import gc
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import ranpace
from conftest import REPOSITORY, command


def files(folder: Path) -> dict[str, bytes]:
    """Contents by path; the report names the call that made it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "report.html"
    }


def test_a_run_writes_the_bytes_of_the_command(
    tmp_path: Path, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link.toml").write_text(scenario)
    command("run", "link.toml", "--seed", "7", "--out", "command", cwd=tmp_path)
    monkeypatch.chdir(tmp_path)
    run = ranpace.run("link.toml", seed=7, out="python")
    written = files(tmp_path / "python")
    assert written == files(tmp_path / "command")
    assert f"link/{run.key}/summary.json" in written


def test_comparison_and_sweep_write_the_bytes_of_the_command(
    tmp_path: Path, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command("compare", "--rate", "10Mbit/s", "--cc", "cubic,bbr1", "--time", "2s", "--seeds", "2", "--out", "command", cwd=tmp_path)
    comparison = ranpace.compare(rate="10Mbit/s", cc="cubic,bbr1", time="2s", seeds=2, out="python")
    (tmp_path / "link.toml").write_text(scenario)
    command("sweep", "link.toml", "--vary", "flow.cc=cubic,vegas", "--seeds", "2", "--out", "command", cwd=tmp_path)
    sweep = ranpace.sweep("link.toml", vary={"flow.cc": ["cubic", "vegas"]}, seeds=2, out="python")
    assert files(tmp_path / "python") == files(tmp_path / "command")
    assert comparison.table["seeds"] == [2, 2]
    assert sweep.flows["flow.cc"] == ["cubic", "cubic", "vegas", "vegas"]
    assert sweep.flows["seed"] == [1, 2, 1, 2]


def test_the_comparison_of_all_writes_the_bytes_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One candidate beside CUBIC and no recordings: 26 of some 600 runs for each seed.
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANPACE_TRACES", raising=False)
    command("compare", "--all", "--cc", "dcic", "--out", "command", cwd=tmp_path)
    survey = ranpace.compare(all=True, cc="dcic", out="python")
    written = files(tmp_path / "python")
    assert written == files(tmp_path / "command")
    assert json.loads(written["compare-all/compare.json"]) == survey.table.to_dicts()
    assert set(survey.table["cc"]) == {"cubic", "dcic"}
    assert any("recordings" in note for note in survey.notes), survey.notes
    assert "x CUBIC" in repr(survey)
    # It needs a cell's downlink: other situations have CUBIC alone.
    where = {row["situation"] for row in survey.table.to_dicts() if row["cc"] == "dcic"}
    assert "lte-1-down" in where and not {"lte-1-up", "builtin-lte"} & where
    page = tmp_path / "page.md"
    page.write_text("# Mine\n<!-- compare --all -->\nwhat was there\n<!-- end -->\nrest\n")
    survey.write_page(page)
    text = page.read_text()
    assert "| dcic |" in text and "what was there" not in text and text.endswith("<!-- end -->\nrest\n")
    assert (tmp_path / "page-cells.svg").read_text() == survey.pictures["cells"]
    page.write_text("# No place\n")
    with pytest.raises(ranpace.OptionError, match="expected a line <!-- compare --all -->"):
        survey.write_page(page)


def test_every_form_of_a_scenario_plays_the_same(scenario: str) -> None:
    link = {
        "name": "down",
        "from": "server",
        "to": "phone",
        "rate": "10Mbit/s",
        "delay": datetime.timedelta(milliseconds=10),
        "queue": {"kind": "droptail", "limit": "40KB"},
        "duplex": True,
    }
    as_dict = {"duration": "2s", "link": [link], "flow": [{"from": "server", "to": "phone", "cc": "newreno"}]}
    as_classes = ranpace.Scenario(
        duration="2s",
        links=[
            ranpace.Link(
                "server",
                "phone",
                name="down",
                rate="10Mbit/s",
                delay="10ms",
                queue={"kind": "droptail", "limit": "40KB"},
                duplex=True,
            )
        ],
        flows=[ranpace.Flow("server", "phone", cc="newreno")],
    )
    runs = [ranpace.run(form) for form in (scenario, as_dict, as_classes)]
    figures = [run.flows.to_dicts() for run in runs]
    assert figures[0] == figures[1] == figures[2]


def test_tables_go_to_other_libraries_without_a_copy(scenario: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    series = ranpace.run(scenario).series()
    first, second = pyarrow.record_batch(series), pyarrow.record_batch(series)
    address = [batch.column("goodput_bit_s").buffers()[1].address for batch in (first, second)]
    assert address[0] == address[1], "both look at the memory of the table"
    assert pyarrow.table(series).num_rows == len(series)
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(series)["goodput_bit_s"].to_list() == series["goodput_bit_s"]
    pytest.importorskip("pandas")
    assert list(series.to_pandas()["time_s"]) == series["time_s"]
    # It scans the same memory as the others: its argument is the stream that they take.
    duckdb = pytest.importorskip("duckdb")
    ((counted, largest),) = duckdb.sql("select count(*), max(goodput_bit_s) from series").fetchall()
    assert (counted, largest) == (len(series), max(value for value in series["goodput_bit_s"] if value is not None))


def test_a_table_outlives_its_run(scenario: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    run = ranpace.run(scenario)
    expected = run.series()["time_s"]
    arrow = pyarrow.table(run.series())
    del run
    gc.collect()
    assert arrow["time_s"].to_pylist() == expected


def test_results_are_read_again(tmp_path: Path, scenario: str) -> None:
    run = ranpace.run(scenario, out=tmp_path)
    folder = tmp_path / "scenario" / run.key
    read = ranpace.read(folder)
    assert isinstance(read, ranpace.Run)
    assert read.flows.to_dicts() == run.flows.to_dicts()
    assert read.scenario == run.scenario
    assert len(ranpace.read(tmp_path / "scenario")) == 1
    (folder / "flow-0.parquet").write_bytes(b"PAR1")
    with pytest.raises(ranpace.ResultsError, match="no complete and unchanged run"):
        ranpace.read(folder)


def test_the_report_is_a_page(tmp_path: Path, scenario: str) -> None:
    page = ranpace.run(scenario).report(tmp_path / "report.html").read_text()
    assert "<svg" in page and "ranpace.run(" in page


def test_a_refused_scenario_says_where_and_what_to_do(tmp_path: Path, scenario: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(scenario.replace('"10ms"', "10").replace("rate", "rats"))
    with pytest.raises(ranpace.ScenarioError) as refused:
        ranpace.run(path)
    error = refused.value
    assert error.file == str(path) and error.line == 3
    assert any("did you mean" in found.message for found in error.diagnostics)
    assert any("10" in found.message and "expected" in found.message for found in error.diagnostics)


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        (lambda: ranpace.compare(light="recorded"), ranpace.OptionError, "light: expected trace="),
        (lambda: ranpace.compare(all=True, cc="cubik"), ranpace.OptionError, "none that is called"),
        (lambda: ranpace.compare(all=True, time="5s"), ranpace.OptionError, "time: cannot be combined"),
        (lambda: ranpace.compare(all=True, seeds=0), ranpace.OptionError, "seeds"),
        (lambda: ranpace.compare(rtt="20"), ranpace.OptionError, "rtt"),
        (lambda: ranpace.compare(cc="cubik"), ranpace.OptionError, "nearest: cubic"),
        (lambda: ranpace.compare(cell="lte", buffer="1KB"), ranpace.OptionError, "cannot be combined"),
        (lambda: ranpace.compare(cell="let"), ranpace.OptionError, "nearest: lte"),
        (lambda: ranpace.compare(trace="nowhere"), ranpace.TraceError, "no trace"),
        (lambda: ranpace.compare(flows=0), ranpace.OptionError, "flows"),
        (lambda: ranpace.compare(rtt=20), ranpace.OptionError, "rtt"),
        (lambda: ranpace.run("nowhere.toml"), ranpace.ScenarioError, "cannot read"),
        (lambda: ranpace.run(7), TypeError, "expected a scenario"),
        (lambda: ranpace.run({"duration": object()}), ranpace.ScenarioError, "duration"),
        (lambda: ranpace.reproduce("nothing"), ranpace.OptionError, "nearest"),
        (lambda: ranpace.trace(times_ms=[0.5]), TypeError, "whole milliseconds"),
        (lambda: ranpace.trace(times_ms=[5, 1]), ranpace.OptionError, "must not decrease"),
        (lambda: ranpace.trace(model="lten"), ranpace.OptionError, "expected lte"),
        (lambda: ranpace.trace(), TypeError, "one of"),
        (lambda: ranpace.read("nowhere"), ranpace.ResultsError, "no folder"),
        (lambda: ranpace.compare(rate="20"), ranpace.OptionError, "rate"),
        (lambda: ranpace.compare(rate="20ms"), ranpace.OptionError, "rate"),
        (lambda: ranpace.compare(time="1MB"), ranpace.OptionError, "time"),
        (lambda: ranpace.compare(rtt=datetime.timedelta(days=-1)), ranpace.OptionError, "rtt"),
        (lambda: ranpace.compare(ratte="20Mbit/s"), TypeError, "ratte"),
        (lambda: ranpace.compare(seeds=1.5), TypeError, "seeds"),
        (lambda: ranpace.compare(seeds="2"), TypeError, "seeds"),
        (lambda: ranpace.compare(cc=[7]), TypeError, "found int"),
        (lambda: ranpace.trace(times_ms=["a"]), TypeError, "whole milliseconds"),
        (lambda: ranpace.trace(times_ms=[True, None]), TypeError, "whole milliseconds"),
    ],
)
def test_bad_input_is_answered(call, kind, expected) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind, match=expected):
        call()


@pytest.mark.parametrize(
    ("vary", "kind", "expected"),
    [
        ({"flow.ccc": "cubic"}, ranpace.RanpaceError, "ccc"),
        ({"link.up.rate": "5Mbit/s"}, ranpace.RanpaceError, "up"),
        ({"link.down.rate": ["5Mbit/s", "fast"]}, ranpace.RanpaceError, "fast"),
        ({"link.down.rate": [5]}, ranpace.RanpaceError, "5"),
        ({"flow.cc": 7}, TypeError, "found 7"),
        ({"flow.cc": []}, ValueError, "at least one"),
    ],
)
def test_variations_that_cannot_be_played_are_answered(scenario: str, vary, kind, expected) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind, match=expected):
        ranpace.sweep(scenario, vary=vary)


def test_a_run_is_not_pickled(scenario: str) -> None:
    import pickle

    with pytest.raises(TypeError, match="save"):
        pickle.dumps(ranpace.run(scenario))


def test_ctrl_c_ends_a_long_run_within_a_second(scenario: str) -> None:
    code = f"import ranpace; print('begun', flush=True); ranpace.run({scenario.replace('2s', '100000s')!r})"
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None and run.stdout.readline() == "begun\n"
    time.sleep(0.5)
    since = time.monotonic()
    run.send_signal(signal.SIGINT)
    _, error = run.communicate(timeout=30)
    assert "KeyboardInterrupt" in error
    assert time.monotonic() - since < 10, "a busy machine has its time"


def test_other_threads_go_on_during_a_run(scenario: str) -> None:
    ticks = 0
    over = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not over.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    ranpace.run(scenario.replace("2s", "60s"))
    over.set()
    thread.join()
    assert ticks >= 3


@pytest.mark.parametrize("cc", ["newreno", "mine"])
def test_an_interpreter_that_ends_during_a_run_does_not_crash(scenario: str, cc: str) -> None:
    scenario = scenario.replace("2s", "100000s").replace("newreno", cc)
    code = f"""
import threading, time, ranpace
@ranpace.control("mine")
class Mine:
    def on_ack(self, cx, window, ack):
        window.cwnd = 20.0
threading.Thread(target=ranpace.run, args=({scenario!r},), daemon=True).start()
time.sleep(0.3)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


def test_a_reproduction_has_verdicts() -> None:
    played = ranpace.reproduce("001-a1-detector", quick=True)
    assert set(played.table["experiment"]) == {"001-a1-detector"}
    assert len(played.table) > 0
    assert ranpace.reproduce("001-a6-target", quick=True).pictures[0].startswith("<svg xmlns")


def test_traces_are_made_changed_and_played(tmp_path: Path) -> None:
    trace = ranpace.trace(times_ms=range(0, 2000, 2))
    assert trace.info["opportunities"] == 1000
    doubled = trace.scale(2.0).cut("0s", "1s")
    assert doubled.info["mean_bit_s"] == pytest.approx(12e6, rel=0.01)
    path = doubled.save(tmp_path / "mine.down.gz")
    assert ranpace.trace(path).info["sha256"] == doubled.info["sha256"]
    rates = trace.rates("100ms")
    assert rates["rate_bit_s"][0] == pytest.approx(6e6)
    comparison = ranpace.compare(trace=path, cc="cubic", time="2s")
    assert comparison.table["utilisation"][0] > 0.5


def test_list_has_the_names_of_the_command() -> None:
    listed = ranpace.list_cc()
    assert listed["short_names"]["reno"] == "newreno"
    assert {"cubic", "bbr1"} <= {entry["name"] for entry in listed["algorithms"]}


def test_examples_of_the_repository_play(tmp_path: Path) -> None:
    run = ranpace.run(ranpace.vary((REPOSITORY / "examples/cell.toml").read_text(), "duration", "2s"))
    assert run.user_names[0] == "phone"
    assert "cqi" in run.user_series("phone").columns
    with pytest.raises(KeyError, match="no user"):
        run.user_series("nobody")
