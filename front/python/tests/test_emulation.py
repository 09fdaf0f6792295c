"""Real time: scenarios between network namespaces, and controls of one's own in them. Needs root and TUN devices."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
import ranpace

LINK = """
duration = "2s"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "20Mbit/s"
delay = "20ms"
queue = { kind = "droptail", limit = "200KB" }
duplex = true
"""
QUIC = """
[[flow]]
from = "server"
to = "phone"
transport = "quic"
cc = "CONTROL"
"""
PROXY = """
duration = "2s"
[[link]]
from = "server"
to = "edge"
rate = "100Mbit/s"
delay = "5ms"
duplex = true
[[link]]
name = "down"
from = "edge"
to = "phone"
rate = "20Mbit/s"
delay = "20ms"
duplex = true
[[flow]]
from = "server"
to = "phone"
cc = "cubic"
opener = "receiver" # without a cell, the user is who opens connections
[[proxy]]
host = "edge"
kind = "split"
ran_cc = "fixed:segments=10"
"""


@pytest.fixture(autouse=True)
def rights() -> None:
    if os.geteuid() != 0 or not Path("/dev/net/tun").exists():
        if os.environ.get("RANPACE_NO_SKIP"):
            pytest.fail("needs root and /dev/net/tun")
        pytest.skip("needs root and /dev/net/tun")


class Fixed:
    """A window that nothing changes."""

    def __init__(self, segments: float = 20.0) -> None:
        self.segments = segments

    def on_start(self, cx: ranpace.Context, window: ranpace.Window) -> None:
        window.cwnd = self.segments

    def on_ack(self, cx: ranpace.Context, window: ranpace.Window, ack: ranpace.Ack) -> None:
        window.cwnd = self.segments

    def on_loss(self, cx: ranpace.Context, window: ranpace.Window, loss: ranpace.Congestion) -> float:
        return self.segments


@pytest.fixture(autouse=True)
def fixed() -> None:
    ranpace.register("fixed", Fixed)


def left_of(process: int) -> list[str]:
    """Names of namespaces that a process has left behind."""
    folder = Path("/run/netns")
    return [path.name for path in folder.iterdir() if path.name.startswith(f"ranpace-{process}-")] if folder.exists() else []


@pytest.mark.filterwarnings("ignore:invalid")
def test_a_class_decides_over_real_sockets(tmp_path: Path) -> None:
    emulation = ranpace.emulate(LINK + QUIC.replace("CONTROL", "fixed:segments=20"), out=tmp_path)
    assert emulation.flows["cc"] == ["fixed:segments=20"]
    # 20 segments of at most 1460 B in 40 ms are less than a third of the link; less while it starts, or if the machine is busy.
    assert 3e6 < emulation.flows["goodput_bit_s"][0] < 20 * 1460 * 8 / 0.040
    hooks = emulation.timeliness["hooks"]
    assert hooks["calls"] > 100 and 0 < hooks["run_p50_s"] <= hooks["run_max_s"] <= hooks["longest_s"]
    folder = tmp_path / "scenario.emulated/1"
    assert {"emulation.json", "report.html", "summary.json"} <= {path.name for path in folder.iterdir()}
    read = ranpace.read(folder)
    assert isinstance(read, ranpace.Run) and read.flows.to_dicts() == emulation.flows.to_dicts()
    assert left_of(os.getpid()) == []


@pytest.mark.filterwarnings("ignore:invalid")
def test_a_class_sends_for_a_proxy_between_kernels() -> None:
    emulation = ranpace.emulate(PROXY)
    assert emulation.flows["cc"] == ["kernel cubic"]
    # 10 segments in the 40 ms from the proxy to the phone; cubic alone would fill the 20 Mbit/s.
    assert 1e6 < emulation.flows["goodput_bit_s"][0] < 10 * 1460 * 8 / 0.040
    assert emulation.timeliness["hooks"]["calls"] > 50


def test_programs_run_behind_hosts() -> None:
    words = ["sh", "-c", 'test "$RANPACE_HOST" = phone && grep -qw server /etc/hosts && exit 3']
    assert ranpace.emulate(LINK + QUIC.replace("CONTROL", "cubic"), program=words, time="10s").exit_status == 3


def test_an_exception_stops_the_emulation_with_its_traceback() -> None:
    @ranpace.control("breaks")
    class Breaks(Fixed):
        def on_ack(self, cx, window, ack) -> None:  # type: ignore[no-untyped-def]
            raise ZeroDivisionError("mine")

    since = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        ranpace.emulate(LINK.replace("2s", "1000s") + QUIC.replace("CONTROL", "breaks"))
    assert raised.traceback[-1].name == "on_ack"
    assert time.monotonic() - since < 60, "a busy machine has its time"
    assert left_of(os.getpid()) == []


def test_a_hook_that_waits_for_pythons_lock_makes_the_run_invalid() -> None:
    over = threading.Event()

    def hold() -> None:
        while not over.is_set():
            # One call into C, which keeps the lock.
            sum(range(5_000_000))

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        with pytest.warns(RuntimeWarning, match="invalid"):
            emulation = ranpace.emulate(LINK + QUIC.replace("CONTROL", "fixed"))
    finally:
        over.set()
        thread.join()
    assert not emulation.valid
    assert emulation.timeliness["hooks"]["wait_max_s"] > 0.02


def test_a_slow_init_makes_the_run_invalid_and_its_results_are_saved_though_the_warning_is_an_error(tmp_path: Path) -> None:
    @ranpace.control("slow")
    class Slow(Fixed):
        def __init__(self) -> None:
            super().__init__()
            time.sleep(0.05)

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(RuntimeWarning, match="^invalid: "):
            ranpace.emulate(LINK.replace("2s", "1s") + QUIC.replace("CONTROL", "slow"), out=tmp_path)
    (saved,) = tmp_path.rglob("emulation.json")
    hooks = json.loads(saved.read_text())["hooks"]
    assert hooks["run_max_s"] > 0.045 and hooks["longest_s"] > 0.045, hooks


def test_ctrl_c_ends_an_emulation_and_leaves_nothing() -> None:
    code = f"import ranpace; print('begun', flush=True); ranpace.emulate({(LINK + QUIC).replace('2s', '1000s').replace('CONTROL', 'cubic')!r})"
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None and run.stdout.readline() == "begun\n"
    since = time.monotonic()
    while not left_of(run.pid):
        assert time.monotonic() - since < 60
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    _, error = run.communicate(timeout=60)
    assert "KeyboardInterrupt" in error
    assert left_of(run.pid) == []


def test_what_cannot_be_emulated_is_refused() -> None:
    @ranpace.control("radio")
    class Radio(Fixed):
        def on_radio(self, cx, window, hint) -> None:  # type: ignore[no-untyped-def]
            pass

    @ranpace.control("unmade")
    class Unmade(Fixed):
        def __init__(self) -> None:
            raise KeyError("no such table")

    # The kernel cannot call Python.
    with pytest.raises(ranpace.OptionError, match='"fixed".*transport = "quic" plays any of ours'):
        ranpace.emulate(LINK + QUIC.replace('transport = "quic"', "").replace("CONTROL", "fixed"))
    with pytest.raises(ranpace.OptionError, match="radio, which reads radio information"):
        ranpace.emulate(LINK + QUIC.replace("CONTROL", "radio"))
    with pytest.raises(KeyError, match="no such table"):
        ranpace.emulate(LINK + QUIC.replace("CONTROL", "unmade"))
    flow = LINK + QUIC.replace("CONTROL", "cubic")
    with pytest.raises(ranpace.OptionError, match="no host 'nowhere'|no host \"nowhere\""):
        ranpace.emulate(flow, program=["true"], host="nowhere")
    with pytest.raises(ranpace.OptionError, match="time"):
        ranpace.emulate(flow, time="2")
    with pytest.raises(ranpace.OptionError, match="add a"):
        ranpace.emulate(flow, rnis="socket")
    with pytest.raises(TypeError, match="list of words"):
        ranpace.emulate(flow, program="ping server")
    with pytest.raises(ValueError, match="program"):
        ranpace.emulate(flow, host="phone")


def test_a_process_plays_one_emulation_at_a_time() -> None:
    flow = LINK + QUIC.replace("CONTROL", "cubic")
    first = threading.Thread(target=lambda: ranpace.emulate(flow, program=["sleep", "1"]))
    first.start()
    since = time.monotonic()
    while not left_of(os.getpid()):
        assert first.is_alive(), "the first emulation has ended"
        assert time.monotonic() - since < 60
        time.sleep(0.01)
    with pytest.raises(ranpace.OptionError, match="already"):
        ranpace.emulate(flow)
    first.join()


@pytest.mark.filterwarnings("ignore:invalid")
def test_an_interpreter_that_ends_does_not_crash_and_the_next_emulation_tidies_up() -> None:
    flow = LINK + QUIC.replace("CONTROL", "mine")
    code = f"""
import threading, time, pathlib, os, ranpace
@ranpace.control("mine")
class Mine:
    def on_ack(self, cx, window, ack):
        window.cwnd = 20.0
        acknowledged.set()
acknowledged = threading.Event()
threading.Thread(target=ranpace.emulate, args=({flow.replace("2s", "1000s")!r},), daemon=True).start()
acknowledged.wait()
print(os.getpid())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and "panicked" not in ended.stderr, ended.stderr
    ranpace.emulate(flow.replace("mine", "cubic").replace("2s", "100ms"))
    assert left_of(int(ended.stdout)) == []
