"""Gymnasium environments: a flow whose window an agent sets, over a link or in a cell.

Registered with Gymnasium by `import ranpace.gym`:

>>> import gymnasium, ranpace.gym
>>> env = gymnasium.make("ranpace/Link-v0", rate="20Mbit/s")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
>>> sorted(info)[:3]
['acked_segments', 'cell_prbs', 'cqi']

**A step** is a monitor interval: 10 ms by default, or one smoothed RTT (`step="rtt"`).

**The action** is one number from -1 to 1. With `action="window"` the congestion window is multiplied by 2^action; it stays
between 2 and 10,000 segments. With `action="pacing"` the window is multiplied likewise, and packets are paced at 1.2 windows per
smoothed RTT. What is set applies from the next acknowledgement on.

**The observation** is a vector of float32, each entry without a unit and of the order of 1, from -1 to 10:

| entry | what |
|---|---|
| throughput | acknowledged payload in the step over the largest throughput of the episode |
| rtt | mean RTT of the step over the smallest of the episode, less 1, over 2 |
| gradient | slope of the RTT over time in the step, in s/s |
| loss | lost over lost and acknowledged segments of the step |
| flight | packets in flight over the window |
| window | log2 of the window in segments, over 10 |
| min_rtt | smallest RTT of the episode in s, times 10 |

and with `radio=True` also the radio information that the flow's server gets: `cqi` over 15, `granted` PRBs over those of the cell,
and `queue`, the base station's RLC queue in megabytes; -1 before any was reported. `info` has the same figures with their units.

**The reward** is chosen by name:

| name | per step | source |
|---|---|---|
| "aurora" | (10 throughput (packets/s) - 1,000 latency (s) - 2,000 loss) / 1,000 | Jay et al., ICML 2019, section 3.1 |
| "vivace" | x^0.9 - 900 x max(gradient, 0) - 11.35 x loss, x the throughput in Mbit/s | Dong et al., NSDI 2018, equation 1 |
| "power" | (throughput - 5 lost) over its largest, both in bit/s, over what RTT exceeds 1.25 of its smallest | Abbasloo et al., SIGCOMM 2020, section 4 (Orca) |

"aurora" is divided by 1,000 as in its code, and counts packets of 1,500 bytes. The constants of "vivace" are those of WebRTC's implementation, too
(modules/congestion_controller/pcc); there x is what was sent, here what was acknowledged, and that a falling RTT earns nothing is ours. The 5 and the
1.25 of "power" are those of Orca's code (rl-module/envwrapper.py and params.json of github.com/Soheil-ab/Orca). It compares throughput and RTT
with those of the episode, so an agent that sends little is not told what it misses; the other two reward throughput as such.

**Randomisation**: `rate`, `rtt` and `buffer_bdp` may be pairs (low, high) from which each episode draws (`rate` and `buffer_bdp`
log-uniformly); `trace`, `cell` and `cross` may be lists. `Cell-v0` draws the place of its user, which walks, and how many others there
are. Everything is drawn from the seed of `reset`; the same seed and actions give the same observations, bit by bit.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Union

import gymnasium
import numpy as np
from gymnasium import spaces

from . import _ranpace
from .scenario import _toml

__all__ = ["OBSERVED", "REWARDS", "CellEnv", "LinkEnv"]

OBSERVED = (
    "time_s",
    "throughput_bit_s",
    "rtt_s",
    "min_rtt_s",
    "srtt_s",
    "gradient",
    "acked_segments",
    "lost_segments",
    "window_segments",
    "in_flight_segments",
    "cqi",
    "granted_prbs",
    "cell_prbs",
    "queue_bytes",
)
"""What a step measures, in the order of `info`. `None` in `info`, and NaN inside, where nothing was measured."""

MIN_WINDOW, MAX_WINDOW = 2.0, 10_000.0
"""Limits of the window, in segments."""

PACKET_BITS = 1500 * 8

Range = Union[float, Sequence[float]]
Choice = Union[str, Sequence[Union[str, None]], None]


class _FlowEnv(gymnasium.Env[np.ndarray, np.ndarray], ABC):
    """A flow whose window an agent sets. Subclasses draw its scenario."""

    metadata = {"render_modes": []}

    def __init__(self, *, step: float | str, episode_s: float, action: str, reward: str, radio: bool) -> None:
        if step != "rtt" and not (isinstance(step, (int, float)) and 1e-4 <= step <= 10):
            raise ValueError(f'step: expected seconds from 0.0001 to 10, or "rtt", found {step!r}')
        if action not in ("window", "pacing"):
            raise ValueError(f'action: expected "window" or "pacing", found {action!r}')
        if reward not in REWARDS:
            raise ValueError(f"reward: expected one of {', '.join(REWARDS)}, found {reward!r}")
        if not episode_s > 0:
            raise ValueError(f"episode_s: expected seconds above 0, found {episode_s!r}")
        self._step, self._paces, self._radio, self.episode_s = step, action == "pacing", radio, episode_s
        self._reward = REWARDS[reward]
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.observation_space = spaces.Box(-1.0, 10.0, (10 if radio else 7,), np.float32)
        self._link: _ranpace.Link | None = None

    @abstractmethod
    def _scenario(self) -> dict[str, Any]:
        """The scenario of the next episode."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begins an episode: the connection is established, and has sent its initial window for one round trip."""
        super().reset(seed=seed)
        scenario = self._scenario()
        scenario["seed"] = int(self.np_random.integers(1, 2**31))
        self.scenario = _toml(scenario)
        self._link = _ranpace.Link(self.scenario, "episode", flow="agent", radio=self._radio, traces=None)
        self._most_throughput, self._least_rtt, self._window, self._srtt = 1.0, math.inf, 10.0, 0.1
        seen: list[float] = []
        for _ in range(200):
            seen, ended = self._link.step(None, None, 0.02)
            if seen[6] > 0 or ended:
                break
        return self._observe(seen), _info(seen)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Sets the window, plays a step, and returns what it measured."""
        if self._link is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        change = float(action[0])
        if not -1.0 <= change <= 1.0:
            raise ValueError(f"action: expected a number from -1 to 1, found {change}")
        window = min(max(self._window * 2.0**change, MIN_WINDOW), MAX_WINDOW)
        pacing = 1.2 * window * PACKET_BITS / self._srtt if self._paces else None
        self._length = self._srtt if isinstance(self._step, str) else self._step
        seen, ended = self._link.step(window, pacing, self._length)
        observation = self._observe(seen)
        return observation, self._reward(self, seen), False, ended, _info(seen)

    def close(self) -> None:
        """Ends the episode; `reset` begins another one."""
        self._link = None

    def _observe(self, seen: list[float]) -> np.ndarray:
        _, throughput, rtt, min_rtt, srtt, gradient, acked, lost, window, in_flight, *radio = seen
        self._window = max(window, MIN_WINDOW)
        if srtt > 0:
            self._srtt = srtt
        if throughput > self._most_throughput:
            self._most_throughput = throughput
        if min_rtt < self._least_rtt:
            self._least_rtt = min_rtt
        known = self._least_rtt < math.inf
        sent = acked + lost
        values = [
            throughput / self._most_throughput,
            # Without a sample the RTT has grown by an unknown amount: the smoothed one stands for it.
            ((rtt if rtt == rtt else self._srtt) / self._least_rtt - 1.0) / 2.0 if known else 0.0,
            gradient,
            lost / sent if sent else 0.0,
            in_flight / self._window,
            math.log2(self._window) / 10.0,
            self._least_rtt * 10.0 if known else 0.0,
        ]
        if self._radio:
            cqi, granted, cell, queue = radio
            values += [
                cqi / 15.0 if cqi == cqi else -1.0,
                granted / cell if cell == cell and cell > 0 else -1.0,
                queue * 1e-6 if queue == queue else -1.0,
            ]
        return np.array([min(max(value, -1.0), 10.0) for value in values], np.float32)


def _info(seen: list[float]) -> dict[str, float | None]:
    # A NaN would not equal that of the same step played again.
    return {name: value if value == value else None for name, value in zip(OBSERVED, seen, strict=True)}


def _aurora(env: _FlowEnv, seen: list[float]) -> float:
    sent = seen[6] + seen[7]
    rtt = seen[2] if seen[2] == seen[2] else env._srtt
    return 1e-3 * (10.0 * seen[1] / PACKET_BITS - 1e3 * rtt - 2e3 * (seen[7] / sent if sent else 0.0))


def _vivace(env: _FlowEnv, seen: list[float]) -> float:
    rate, sent = seen[1] * 1e-6, seen[6] + seen[7]
    lost = seen[7] / sent if sent else 0.0
    return float(rate**0.9) - 900.0 * rate * max(seen[5], 0.0) - 11.35 * rate * lost


def _power(env: _FlowEnv, seen: list[float]) -> float:
    lost_bit_s = seen[7] * PACKET_BITS / env._length
    rtt = seen[2] if seen[2] == seen[2] else env._srtt
    excess = rtt / (1.25 * env._least_rtt) if env._least_rtt < math.inf else 1.0
    return (seen[1] - 5.0 * lost_bit_s) / env._most_throughput / max(excess, 1.0)


REWARDS = {"aurora": _aurora, "vivace": _vivace, "power": _power}
"""The rewards by name."""


class LinkEnv(_FlowEnv):
    """`ranpace/Link-v0`: a flow over a fixed link or a trace; see the head of the module.

    Parameters
    ----------
    rate : of the link, such as "20Mbit/s", or in bit/s, or a pair (low, high) in bit/s; without a trace
    trace : "builtin:lte", a file, or a list to draw from
    rtt_s : round-trip time of the empty path, or a pair
    buffer_bdp : limit of the drop-tail queue over rate times RTT (12 Mbit/s for a trace), or a pair
    loss : probability of random loss
    cross : control of a rival flow such as "cubic", `None` for no rival, or a list to draw from
    """

    def __init__(
        self,
        *,
        rate: str | Range = 20e6,
        trace: Choice = None,
        rtt_s: Range = 0.04,
        buffer_bdp: Range = 2.0,
        loss: float = 0.0,
        cross: Choice = None,
        step: float | str = 0.01,
        episode_s: float = 30.0,
        action: str = "window",
        reward: str = "power",
    ) -> None:
        super().__init__(step=step, episode_s=episode_s, action=action, reward=reward, radio=False)
        self._rate, self._trace, self._rtt_s = rate, trace, rtt_s
        self._buffer_bdp, self._loss, self._cross = buffer_bdp, loss, cross

    def _scenario(self) -> dict[str, Any]:
        draw = self.np_random
        rtt = _drawn(draw, self._rtt_s, "rtt_s")
        trace = _chosen(draw, self._trace)
        rate = self._rate if isinstance(self._rate, str) else f"{_drawn(draw, self._rate, 'rate', log=True):.0f}bit/s"
        bit_s = 12e6 if trace is not None else _bits(rate)
        limit = max(int(_drawn(draw, self._buffer_bdp, "buffer_bdp", log=True) * bit_s * rtt / 8), 6_000)
        down: dict[str, Any] = {"name": "down", "from": "server", "to": "phone", "delay": _seconds(rtt / 2)}
        down |= {"trace": trace} if trace is not None else {"rate": rate}
        down["queue"] = {"kind": "droptail", "limit": f"{limit}B"}
        if self._loss:
            down["loss"] = self._loss
        up = {"name": "up", "from": "phone", "to": "server", "rate": "1Gbit/s", "delay": _seconds(rtt / 2)}
        return {
            "duration": _seconds(self.episode_s),
            "sample": "1s",
            "link": [down, up],
            "flow": _flows(_chosen(draw, self._cross)),
        }


class CellEnv(_FlowEnv):
    """`ranpace/Cell-v0`: a download in an LTE or NR cell to a user who walks; see the head of the module.

    Parameters
    ----------
    cell : "lte", "nr", another preset, or a list to draw from
    distance_m : of the user from the mast, or a pair
    others : number of other users who load web pages, or a pair
    wire_rtt_s : round-trip time between server and mast, or a pair
    cross : control of another download to the same user, `None` for none, or a list to draw from
    radio : whether the observation has radio information
    """

    def __init__(
        self,
        *,
        cell: Choice = "lte",
        distance_m: Range = (50.0, 400.0),
        others: int | Sequence[int] = (0, 3),
        wire_rtt_s: Range = 0.02,
        cross: Choice = None,
        radio: bool = True,
        step: float | str = 0.01,
        episode_s: float = 30.0,
        action: str = "window",
        reward: str = "power",
    ) -> None:
        super().__init__(step=step, episode_s=episode_s, action=action, reward=reward, radio=radio)
        self._cell, self._distance_m, self._others = cell, distance_m, others
        self._wire_rtt_s, self._cross = wire_rtt_s, cross

    def _scenario(self) -> dict[str, Any]:
        draw = self.np_random
        low, high = self._others if isinstance(self._others, Sequence) else (self._others, self._others)
        others = int(draw.integers(low, high + 1))
        distance = _drawn(draw, self._distance_m, "distance_m")
        wire = {"name": "core", "from": "server", "to": "mast", "rate": "1Gbit/s", "duplex": True}
        wire["delay"] = _seconds(_drawn(draw, self._wire_rtt_s, "wire_rtt_s") / 2)
        users: list[dict[str, Any]] = [
            {"name": "phone", "walk": {"radius": f"{max(distance, 10.0):.1f}m", "speed": ["1m/s", "5m/s"]}}
        ]
        flows = _flows(_chosen(draw, self._cross))
        if others:
            users.append({"name": "other", "count": others, "walk": {"radius": "400m", "speed": ["1m/s", "5m/s"]}})
            pages = {"kind": "web", "page": "2MB", "interval": "5s"}
            flows.append({"name": "pages", "from": "server", "to": "other", "cc": "cubic", "workload": pages})
        scenario = {
            "duration": _seconds(self.episode_s),
            "sample": "1s",
            "link": [wire],
            "cell": [{"host": "mast", "preset": _chosen(draw, self._cell)}],
            "user": users,
            "flow": flows,
        }
        return scenario


def _flows(cross: str | None) -> list[dict[str, Any]]:
    flows = [{"name": "agent", "from": "server", "to": "phone", "cc": "newreno"}]
    if cross is not None:
        flows.append({"name": "rival", "from": "server", "to": "phone", "cc": cross})
    return flows


def _seconds(time: float) -> str:
    return f"{round(time * 1e6)}us"


def _bits(rate: str) -> float:
    for unit, factor in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)):
        if rate.endswith(unit):
            return float(rate.removesuffix(unit)) * factor
    raise ValueError(f'rate: expected a rate such as "20Mbit/s", found {rate!r}')


def _drawn(draw: np.random.Generator, range_: Range, name: str, *, log: bool = False) -> float:
    if not isinstance(range_, Sequence):
        low = high = float(range_)
    elif len(range_) == 2:
        low, high = float(range_[0]), float(range_[1])
    else:
        raise ValueError(f"{name}: expected a number or a pair (low, high), found {range_!r}")
    if not 0 < low <= high < math.inf:
        raise ValueError(f"{name}: expected numbers above 0, the lower one first, found {range_!r}")
    return float(math.exp(draw.uniform(math.log(low), math.log(high))) if log else draw.uniform(low, high))


def _chosen(draw: np.random.Generator, choice: Choice) -> str | None:
    if choice is None or isinstance(choice, str):
        return choice
    return choice[int(draw.integers(len(choice)))]


gymnasium.register("ranpace/Link-v0", entry_point="ranpace.gym:LinkEnv")
gymnasium.register("ranpace/Cell-v0", entry_point="ranpace.gym:CellEnv")
