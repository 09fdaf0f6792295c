"""How fast environments step: steps of 10 ms a CPU second on a link of 20 Mbit/s, and what ns3-gym's protocol would take alone.

ns3-gym asks an agent once a step by ZeroMQ, request and reply, between two processes (Gawlowicz and Zubow, MSWiM 2019, section 3). So a round
trip of ZeroMQ with messages of that size, without ns-3 and without Protocol Buffers, bounds its steps a second from above.

    python benches/python/gym.py
"""

from __future__ import annotations

import subprocess
import sys
import time

import gymnasium
import numpy as np
import ranpace.gym  # noqa: F401

EPISODE_S = 100.0
ROUND_TRIPS = 20_000
STATE_BYTES, ACTION_BYTES = 128, 16
"""Seven figures and a reward; one figure."""

REPLIES = """
import sys, zmq
socket = zmq.Context().socket(zmq.REP)
print(socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
while socket.recv():
    socket.send(bytes(int(sys.argv[1])))
"""


def steps_a_second() -> float:
    """Steps a CPU second, the agent's choice of an action left out."""
    env = gymnasium.make("ranpace/Link-v0", rate="20Mbit/s", rtt_s=0.04, episode_s=EPISODE_S).unwrapped
    best = 0.0
    for seed in range(1, 6):
        env.reset(seed=seed)
        # A window of 80 segments fills the link, and a queue of a fifth of it.
        up, keep = np.array([0.5], np.float32), np.array([0.0], np.float32)
        steps, ended, begun = 0, False, time.process_time()
        while not ended:
            *_, ended, _ = env.step(up if env._window < 80 else keep)
            steps += 1
        best = max(best, steps / (time.process_time() - begun))
    return best


def round_trips_a_second() -> float:
    """Requests and replies of ZeroMQ between two processes, a second."""
    import zmq

    other = subprocess.Popen([sys.executable, "-c", REPLIES, str(ACTION_BYTES)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        socket = zmq.Context().socket(zmq.REQ)
        socket.connect(f"tcp://127.0.0.1:{int(other.stdout.readline())}")
        best = 0.0
        for _ in range(3):
            begun = time.perf_counter()
            for _ in range(ROUND_TRIPS):
                socket.send(bytes(STATE_BYTES))
                socket.recv()
            best = max(best, ROUND_TRIPS / (time.perf_counter() - begun))
        return best
    finally:
        other.kill()
        other.wait()


def main() -> None:
    """Both."""
    ours = steps_a_second()
    print(f"ranpace/Link-v0: {ours:,.0f} steps of 10 ms a CPU second")
    bound = round_trips_a_second()
    print(f"ZeroMQ alone: {bound:,.0f} round trips a second of the clock; {ours / bound:.1f} times as many steps")


if __name__ == "__main__":
    main()
