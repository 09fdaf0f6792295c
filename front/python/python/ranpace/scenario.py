"""Scenarios as a file, a text, a dictionary or small classes."""

from __future__ import annotations

import dataclasses
import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

import tomli_w

from .errors import ScenarioError

__all__ = ["Cell", "Flow", "Link", "Scenario", "ScenarioLike", "User"]

Time = Union[str, datetime.timedelta]
"""A time with its unit ("20ms"), or a `timedelta`."""


@dataclasses.dataclass
class Link:
    """A link from one host to another; docs/scenarios.md has all keys, of which those without a field go into `more`.

    >>> Link("server", "phone", rate="12Mbit/s", delay="20ms", duplex=True)  # doctest: +ELLIPSIS
    Link(from_='server', to='phone', name=None, rate='12Mbit/s', ...)
    """

    from_: str
    """Host at its beginning."""
    to: str
    """Host at its end."""
    name: str | None = None
    """Its name in results; `link1`, `link2`, ... by default."""
    rate: str | None = None
    """Capacity, such as "12Mbit/s"."""
    trace: str | None = None
    """A recorded link instead of a rate: a file, or "builtin:lte"."""
    delay: Time | None = None
    """Propagation delay, such as "20ms"."""
    queue: Mapping[str, Any] | None = None
    """Its queue: {"kind": "droptail", "limit": "150KB"}."""
    loss: Any = None
    """Probability of random loss, or a table of a loss model."""
    duplex: bool | None = None
    """Whether there is another link back, with the same rate and delay."""
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Other keys."""


@dataclasses.dataclass
class Cell:
    """An LTE or NR cell; docs/cells.md has all keys, of which those without a field go into `more`."""

    host: str | None = None
    """Host of its base station."""
    preset: str | None = None
    """Settings to start from: "lte", "nr" or one that `ranpace list cells` shows."""
    scheduler: Any = None
    """The scheduler: "pf", "rr", "max-ci", or a table such as {"kind": "pf", "window": 99}."""
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Other keys."""


@dataclasses.dataclass
class User:
    """A user of a cell; docs/cells.md has all keys, of which those without a field go into `more`."""

    name: str
    """Its name, which is also that of a host."""
    position: tuple[float, float] | None = None
    """Place in metres from the origin."""
    count: int | None = None
    """How many such users there are."""
    walk: Mapping[str, Any] | None = None
    """A random walk: {"radius": "400m", "speed": ["1m/s", "5m/s"]}."""
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Other keys."""


@dataclasses.dataclass
class Flow:
    """A flow from one host to another; docs/scenarios.md has all keys, of which those without a field go into `more`."""

    from_: str
    """Host of the sender."""
    to: str
    """Host of the receiver."""
    cc: str | None = None
    """Congestion control: "cubic", "cubic+c2tcp:target=50ms", or the name of one of your own."""
    name: str | None = None
    """Its name in results."""
    start: Time | None = None
    """When it begins."""
    stop: Time | None = None
    """When it ends."""
    workload: Mapping[str, Any] | None = None
    """What it carries: {"kind": "web", "page": "2MB", "interval": "5s"}; a download without end by default."""
    transport: str | None = None
    """"tcp", "quic" or "udp"."""
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Other keys."""


@dataclasses.dataclass
class Scenario:
    """What is played: links or cells, and flows over them.

    >>> scenario = Scenario(
    ...     duration="5s",
    ...     links=[Link("server", "phone", rate="12Mbit/s", delay="20ms", duplex=True)],
    ...     flows=[Flow("server", "phone", cc="cubic")],
    ... )
    >>> print(scenario.to_toml().splitlines()[0])
    duration = "5s"
    """

    duration: Time
    """Length of the run."""
    links: list[Link] = dataclasses.field(default_factory=list)
    cells: list[Cell] = dataclasses.field(default_factory=list)
    users: list[User] = dataclasses.field(default_factory=list)
    flows: list[Flow] = dataclasses.field(default_factory=list)
    name: str | None = None
    """Its name in results."""
    warmup: Time | None = None
    """Results count from this time on."""
    seed: int | None = None
    """Seed of all random choices; 1 by default."""
    sample: Time | None = None
    """Sampling interval of series; "100ms" by default."""
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Other tables and keys: {"proxy": [...], "rnis": {...}}."""

    def to_dict(self) -> dict[str, Any]:
        """The scenario as a dictionary with the keys of the file."""
        top = _keys(self, skip=("links", "cells", "users", "flows"))
        lists: dict[str, list[Any]] = {
            "link": [*self.links],
            "cell": [*self.cells],
            "user": [*self.users],
            "flow": [*self.flows],
        }
        return top | {key: [_keys(entry) for entry in entries] for key, entries in lists.items() if entries}

    def to_toml(self) -> str:
        """The scenario as the text of a file, which `ranpace run` plays, too."""
        return _toml(self.to_dict())


ScenarioLike = Union[str, "os.PathLike[str]", Mapping[str, Any], Scenario]
"""A file's path, a text in TOML (of more than one line), a dictionary with a scenario's keys, or a `Scenario`."""


def _keys(entry: Any, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for field in dataclasses.fields(entry):
        value = getattr(entry, field.name)
        if value is not None and field.name not in ("more", *skip):
            keys[field.name.rstrip("_")] = value
    return keys | dict(entry.more)


def _plain(value: Any, path: str) -> Any:
    """A value as TOML has it: times with their unit, tables as dictionaries."""
    if isinstance(value, datetime.timedelta):
        return f"{value // datetime.timedelta(microseconds=1)}us"
    if isinstance(value, Mapping):
        return {str(key): _plain(inner, f"{path}.{key}") for key, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, f"{path}[{number}]") for number, inner in enumerate(value)]
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    # Numbers of numpy.
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    found = f"{type(value).__name__} ({value!r})"
    raise ScenarioError(f"{path}: expected a text, a number, a bool, a list or a table, found {found}")


def _toml(keys: Mapping[str, Any]) -> str:
    text: str = tomli_w.dumps({key: _plain(value, key) for key, value in keys.items() if value is not None})
    return text


def text_of(scenario: ScenarioLike) -> tuple[str, str]:
    """The text of a scenario and its name in errors."""
    if isinstance(scenario, Scenario):
        return scenario.to_toml(), "scenario"
    if isinstance(scenario, Mapping):
        return _toml(scenario), "scenario"
    if isinstance(scenario, str) and "\n" in scenario:
        return scenario, "scenario"
    if not isinstance(scenario, (str, os.PathLike)):
        found = type(scenario).__name__
        raise TypeError(f"expected a scenario as a path, a text in TOML, a dict or a ranpace.Scenario, found {found}")
    path = Path(scenario)
    try:
        return path.read_text(encoding="utf-8"), str(scenario)
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        message = f"{path}:{line}: expected a scenario in UTF-8 text, found other bytes"
        raise ScenarioError(message, str(path), [(line, None, message)]) from None
    except OSError as error:
        message = f"cannot read the scenario {path}: {error.strerror}; docs/scenarios.md shows how to write one"
        raise ScenarioError(message, str(path)) from error
