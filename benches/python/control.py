"""What a congestion control written in Python costs: CPU time an acknowledgement, more than the built-in one with the same window.

    python benches/python/control.py
"""

from __future__ import annotations

import time

import ranpace

RUNS = 7
SCENARIO = """
duration = "60s"
[[link]]
name = "down"
from = "server"
to = "phone"
rate = "50Mbit/s"
delay = "20ms"
queue = { kind = "droptail", limit = "250KB" }
duplex = true
[[flow]]
from = "server"
to = "phone"
cc = "CONTROL"
"""
acknowledgements = 0


@ranpace.control("aimd")
class Aimd:
    """The example of docs/python.md."""

    def on_ack(self, cx: ranpace.Context, window: ranpace.Window, ack: ranpace.Ack) -> None:
        if not cx.cwnd_limited:
            return
        left = ack.acked
        if window.cwnd < window.ssthresh:
            left = window.slow_start(ack.acked)
        if left > 0:
            window.cwnd += left / window.cwnd

    def on_loss(self, cx: ranpace.Context, window: ranpace.Window, loss: ranpace.Congestion) -> float:
        return max(window.cwnd * 0.5, 2.0)


@ranpace.control("counted")
class Counted(Aimd):
    """The same, counted."""

    def on_ack(self, cx: ranpace.Context, window: ranpace.Window, ack: ranpace.Ack) -> None:
        global acknowledgements
        acknowledgements += 1
        super().on_ack(cx, window, ack)


def play(control: str) -> tuple[float, ranpace.Run]:
    """CPU seconds, and the run."""
    begun = time.process_time()
    run = ranpace.run(SCENARIO.replace("CONTROL", control))
    return time.process_time() - begun, run


def main() -> None:
    """Alternates both, and compares their fastest runs."""
    counted = play("counted")[1]
    times: dict[str, list[float]] = {"newreno": [], "aimd": []}
    for _ in range(RUNS):
        for control, own in times.items():
            used, run = play(control)
            own.append(used)
            assert run.series()["cwnd_bytes"] == counted.series()["cwnd_bytes"], f"{control} has another window"
    least = {control: min(own) for control, own in times.items()}
    more = (least["aimd"] - least["newreno"]) / acknowledgements
    print(f"{acknowledgements} acknowledgements: newreno {least['newreno']:.3f} s, aimd {least['aimd']:.3f} s of CPU time")
    print(f"{more * 1e6:.2f} us an acknowledgement more")


if __name__ == "__main__":
    main()
