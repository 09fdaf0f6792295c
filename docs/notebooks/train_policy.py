"""Trains the policy of the notebook `5-learning-in-a-cell`: linear in the observation, by the cross-entropy method.

python train_policy.py --minutes 10 --out policy.json

A generation draws policies around a mean, plays each over the same links (5 to 50 Mbit/s, 20 to 80 ms, with and without a rival),
and moves the mean to the best fifth (Szita and Lőrincz, 2006). The same seed and number of generations give the same policy.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import ranpace.gym

POPULATION, ELITE, LINKS = 20, 4, 3
SEED = 1


def score(weights: np.ndarray, seeds: list[int]) -> float:
    """Mean reward of a step over some episodes."""
    total, steps = 0.0, 0
    for seed in seeds:
        env = ranpace.gym.LinkEnv(
            rate=(5e6, 50e6),
            rtt_s=(0.02, 0.08),
            buffer_bdp=(0.5, 4.0),
            cross=[None, None, "cubic"],
            step="rtt",
            episode_s=6.0,
            reward="aurora",
        )
        observation, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            action = np.clip(weights[:-1] @ observation + weights[-1], -1.0, 1.0)
            observation, reward, _, ended, _ = env.step(np.array([action], np.float32))
            total, steps = total + reward, steps + 1
    return total / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="stop after this time, at the end of a generation")
    parser.add_argument("--generations", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("policy.json"))
    options = parser.parse_args()
    draw = np.random.default_rng(SEED)
    mean, spread = np.zeros(8), np.full(8, 0.5)
    since, history = time.monotonic(), []
    with ProcessPoolExecutor() as workers:
        for generation in range(options.generations):
            if time.monotonic() - since > options.minutes * 60:
                break
            seeds = [int(seed) for seed in draw.integers(1, 2**31, LINKS)]
            population = draw.normal(mean, spread, (POPULATION, 8))
            scores = np.array(list(workers.map(score, population, [seeds] * POPULATION)))
            best = population[np.argsort(scores)[-ELITE:]]
            # Some spread is added, so that the search does not settle early.
            mean, spread = best.mean(axis=0), best.std(axis=0) + 0.2 / (1 + generation)
            history.append(round(float(scores.mean()), 4))
            print(f"generation {generation + 1}: mean reward {history[-1]}, best {scores.max():.4f}", flush=True)
    policy = {"weights": [round(float(weight), 5) for weight in mean], "generations": len(history), "mean_rewards": history}
    options.out.write_text(json.dumps(policy, indent=1) + "\n")


if __name__ == "__main__":
    main()
