"""Real time: a scenario between network namespaces, for real programs and for controls of your own."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _ranpace
from ._progress import shower
from .errors import EmulationError
from .play import Folder, _command, _path, _text
from .results import Run
from .scenario import ScenarioLike, Time, text_of

__all__ = ["Emulation", "emulate"]

_SWITCH_S = 1e-4
"""How long another thread of the program keeps Python's lock from a hook that waits for it, at most; Python's own default is 5 ms.
Ours: a tenth of what a packet may be late."""

_INSIDE = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
sys.path.insert(0, sys.argv.pop(1))
from ranpace._ranpace import emulate_inside
sys.exit(emulate_inside(*sys.argv[1:4], sys.argv[4:]))
"""
"""What the first process of a program's namespace runs; Ctrl-C is the program's."""


class Emulation(Run):
    """The results of a scenario in real time: those of a run, and whether machine and hooks kept up."""

    def __init__(self, inner: _ranpace.Emulation, command: str) -> None:
        super().__init__(inner.run, command)
        self._emulation = inner

    @property
    def valid(self) -> bool:
        """Whether machine and hooks kept up. If not, the figures are not those of the scenario."""
        return self._emulation.invalid_because is None

    @property
    def invalid_because(self) -> str | None:
        """What was late, and by how much; `None` if the run is valid."""
        return self._emulation.invalid_because

    @property
    def timeliness(self) -> dict[str, Any]:
        """How late packets, timers and slots were; docs/emulate.md has the limits. `hooks` says how long calls of controls in Python waited
        for Python's lock and ran, in seconds; it is `None` if there were none."""
        timeliness: dict[str, Any] = json.loads(self._emulation.timeliness)
        return timeliness

    @property
    def exit_status(self) -> int | None:
        """Of the program; `None` if there was none, or the time was over before it ended."""
        status: int | None = self.timeliness["program_exit_status"]
        return status

    @property
    def notes(self) -> list[str]:
        """Deviations from the scenario, and the remarks of any run."""
        return [*self._emulation.notes, *super().notes]

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report, one page that needs no other file."""
        Path(path).write_text(self._emulation.html(self._command), encoding="utf-8")
        return Path(path)

    def save(self, out: str | os.PathLike[str] = "results") -> Path:
        """Writes what `ranpace emulate --out OUT` writes, into a new folder, and returns it."""
        return Path(self._emulation.save(Path(out), self._command))


def emulate(
    scenario: ScenarioLike,
    *,
    program: Sequence[str] = (),
    host: str | None = None,
    also: Mapping[str, str] | None = None,
    workloads: bool = False,
    cc: str | None = None,
    time: Time | None = None,
    seed: int | None = None,
    pcap: Folder | None = None,
    hints: Folder | None = None,
    rnis: Folder | None = None,
    out: Folder | None = None,
    traces: Folder | None = None,
) -> Emulation:
    """Plays a scenario in real time between network namespaces, as `ranpace emulate`. Needs Linux, root and /dev/net/tun.

    A control written in Python plays in flows with `transport = "quic"`, whose two ends are Ranpace's own over the kernel's UDP, and as `ran_cc`
    of a `[[proxy]]`. TCP flows are the kernel's, which cannot call Python: there `cc` names a control of the kernel.

    Parameters
    ----------
    scenario : a file's path, a text in TOML, a dictionary with a scenario's keys, or a `Scenario`
    program : a program and its arguments, ["iperf3", "-c", "server"]; the emulation ends with it. Without one the scenario's flows are
        played
    host : where the program runs; by default the first user, or without cells where the first flow ends
    also : other programs, by host: {"server": "iperf3 -s"}
    workloads : also play the scenario's flows beside the program
    cc : the kernel's congestion control for all TCP flows
    time : the emulation ends then at the latest; without a program the scenario's duration
    seed : to play with instead of the scenario's
    pcap, hints, rnis : files for packets and for radio information, and the socket at which cells are published, as for the command
    out : folder for results and report: a new one in it for each call, as the command makes it
    traces : folder of recorded traces

    Raises
    ------
    ScenarioError, OptionError : if the scenario or an option is refused
    EmulationError : if namespaces cannot be made (root is missing), or fail
    KeyboardInterrupt : after Ctrl-C; what was measured is lost
    Any exception of a hook : stops the emulation

    A run with which machine or hooks did not keep up is returned with a RuntimeWarning; its `valid` is False.

    >>> emulation = emulate("drive.toml", time="10s")  # doctest: +SKIP
    >>> emulation.timeliness["hooks"]["wait_p99_s"]  # doctest: +SKIP
    4.1e-05
    """
    if not hasattr(_ranpace, "emulate"):
        raise EmulationError("emulations need Linux: its network namespaces and TUN devices")
    if isinstance(program, str) or not all(isinstance(word, str) for word in program):
        raise TypeError(f'program: expected a list of words, such as ["ping", "server"], found {program!r}')
    if host is not None and not program:
        raise ValueError("host= says where program= runs, and there is none")
    text, file = text_of(scenario)
    given: dict[str, Any] = {"program": list(program) or None, "host": host, "also": also, "cc": cc, "time": _text(time, "time"), "seed": seed}
    command = _command("emulate", file, **given, workloads=workloads or None)
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _SWITCH_S))
    try:
        with shower("emulating") as show:
            inner = _ranpace.emulate(
                text,
                file,
                seed=seed,
                program=list(program),
                host=host,
                also=list((also or {}).items()),
                workloads=workloads,
                cc=cc,
                time=_text(time, "time"),
                pcap=_path(pcap),
                hints=_path(hints),
                rnis=_path(rnis),
                out=_path(out),
                traces=_path(traces),
                inside=(Path(sys.executable), ["-c", _INSIDE, str(Path(__file__).parents[1])]),
                show=show,
            )
    finally:
        sys.setswitchinterval(before)
    emulation = Emulation(inner, command)
    if out is not None:
        emulation.save(out)
    # Last: a program may have made an error of it.
    if not emulation.valid:
        warnings.warn(f"invalid: {emulation.invalid_because}", RuntimeWarning, stacklevel=2)
    return emulation
