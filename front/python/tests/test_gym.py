"""Environments for learning."""

from __future__ import annotations

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

import ranpace.gym  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ranpace/Link-v0", {"cross": [None, "cubic"], "rate": (5e6, 50e6), "action": "pacing"}),
        ("ranpace/Link-v0", {"trace": ["builtin:lte", "builtin:umts"], "step": "rtt", "reward": "vivace"}),
        ("ranpace/Cell-v0", {"reward": "aurora"}),
    ],
)
@pytest.mark.filterwarnings("ignore:.*render.*")
def test_gymnasium_accepts_the_environments(name: str, options: dict) -> None:  # type: ignore[type-arg]
    check_env(gymnasium.make(name, episode_s=2.0, **options).unwrapped)


def episode(name: str, seed: int) -> np.ndarray:
    env = gymnasium.make(name, episode_s=1.0)
    observation, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    seen, ended = [observation], False
    while not ended:
        observation, reward, terminated, ended, _ = env.step(env.action_space.sample())
        assert not terminated and np.isfinite(reward)
        seen.append(np.append(observation, np.float32(reward)))
    return np.concatenate(seen)


@pytest.mark.parametrize("name", ["ranpace/Link-v0", "ranpace/Cell-v0"])
def test_seeds_reproduce_bit_by_bit(name: str) -> None:
    assert episode(name, 3).tobytes() == episode(name, 3).tobytes()
    assert episode(name, 3).tobytes() != episode(name, 4).tobytes()


def test_a_larger_window_fills_the_link() -> None:
    env = gymnasium.make("ranpace/Link-v0", rate="20Mbit/s", rtt_s=0.04, episode_s=5.0)
    env.reset(seed=1)
    for _ in range(200):
        action = np.array([1.0 if env.unwrapped._window < 80 else 0.0], np.float32)
        _, _, _, _, info = env.step(action)
    # 80 segments are 0.92 MBit for the 0.8 MBit of the path.
    assert info["throughput_bit_s"] > 17e6
    assert info["rtt_s"] > 0.042 and info["in_flight_segments"] > 60


def test_environments_work_side_by_side() -> None:
    both = gymnasium.make_vec("ranpace/Link-v0", num_envs=2, vectorization_mode="sync", episode_s=1.0)
    observations, _ = both.reset(seed=5)
    assert observations.shape == (2, 7)
    observations, rewards, *_ = both.step(np.zeros((2, 1), np.float32))
    assert rewards.shape == (2,)
    both.close()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"step": 0.0}, "step"),
        ({"action": "jump"}, "window"),
        ({"reward": "best"}, "aurora"),
        ({"episode_s": -1.0}, "episode_s"),
    ],
)
def test_bad_options_are_refused(options: dict, expected: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match=expected):
        ranpace.gym.LinkEnv(**options)


def test_bad_actions_are_refused() -> None:
    env = ranpace.gym.LinkEnv(episode_s=1.0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1, np.float32))
    env.reset(seed=1)
    with pytest.raises(ValueError, match="-1 to 1"):
        env.step(np.array([np.nan], np.float32))
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1, np.float32))
    with pytest.raises(ranpace.ScenarioError):
        ranpace.gym.LinkEnv(cross="nobody").reset(seed=1)


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        # 10 Mbit/s at 50 ms, twice the smallest RTT, which grows by 2 ms a second; 2 of 10 segments of 10 ms are lost.
        ("aurora", (10 * 10e6 / 12_000 - 1_000 * 0.050 - 2_000 * 0.2) / 1_000),
        ("vivace", 10**0.9 - 900 * 10 * 0.002 - 11.35 * 10 * 0.2),
        # 2 lost segments in 10 ms are 2.4 Mbit/s; the RTT is 1.6 times what Orca's margin of 1.25 allows.
        ("power", (10e6 - 5 * 2.4e6) / 20e6 / 1.6),
    ],
)
def test_rewards_are_those_of_their_sources(reward: str, expected: float) -> None:
    env = ranpace.gym.LinkEnv(reward=reward)
    env._length, env._least_rtt, env._most_throughput = 0.010, 0.025, 20e6
    seen = [0.0, 10e6, 0.050, 0.025, 0.050, 0.002, 8.0, 2.0, 10.0, 10.0]
    assert ranpace.gym.REWARDS[reward](env, seen) == pytest.approx(expected)
