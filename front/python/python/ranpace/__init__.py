"""Transport over cellular links: simulated, compared, learned.

>>> import ranpace
>>> comparison = ranpace.compare(rate="10Mbit/s", cc="cubic,vegas", time="2s")
>>> sorted(comparison.runs)
['cubic', 'vegas']

The guide is docs/python.md. Keyword arguments are the options of the command `ranpace`, results have the columns of docs/results.md.
"""

from __future__ import annotations

import atexit

from . import errors
from ._ranpace import (
    Ack,
    Congestion,
    Context,
    Packet,
    PepReport,
    RadioHint,
    Sample,
    Sent,
    Table,
    Window,
    __version__,
    stop_runs,
    vary,
)
from .control import HOOKS, IGNORE, control, register
from .emulation import Emulation, emulate
from .errors import EmulationError, OptionError, RanpaceError, ResultsError, ScenarioError, TraceError, VersionError
from .play import compare, experiments, list_cc, reproduce, run, sweep
from .results import Comparison, Reproduction, Run, Survey, Sweep, read
from .scenario import Cell, Flow, Link, Scenario, User
from .traces import Trace, trace

__all__ = [
    "HOOKS",
    "IGNORE",
    "Ack",
    "Cell",
    "Comparison",
    "Congestion",
    "Context",
    "Emulation",
    "EmulationError",
    "Flow",
    "Link",
    "OptionError",
    "Packet",
    "PepReport",
    "RadioHint",
    "RanpaceError",
    "Reproduction",
    "ResultsError",
    "Run",
    "Sample",
    "Scenario",
    "ScenarioError",
    "Sent",
    "Survey",
    "Sweep",
    "Table",
    "Trace",
    "TraceError",
    "User",
    "VersionError",
    "Window",
    "__version__",
    "compare",
    "control",
    "emulate",
    "errors",
    "experiments",
    "list_cc",
    "read",
    "register",
    "reproduce",
    "run",
    "sweep",
    "trace",
    "vary",
]

# Threads that the interpreter does not wait for may be playing.
atexit.register(stop_runs)
