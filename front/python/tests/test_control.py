"""Congestion controls written in Python."""

from __future__ import annotations

import math

import pytest
import ranpace


class Aimd:
    """Additive increase, multiplicative decrease"""

    def __init__(self, gain: float = 1.0, beta: float = 0.5) -> None:
        self.gain, self.beta = gain, beta

    def on_ack(self, cx: ranpace.Context, window: ranpace.Window, ack: ranpace.Ack) -> None:
        if not cx.cwnd_limited:
            return
        left = window.slow_start(ack.acked) if window.cwnd < window.ssthresh else ack.acked
        if left > 0:
            window.cwnd += self.gain * left / window.cwnd

    def on_loss(self, cx: ranpace.Context, window: ranpace.Window, loss: ranpace.Congestion) -> float:
        return max(window.cwnd * self.beta, 2.0)


@pytest.fixture(autouse=True)
def aimd() -> None:
    ranpace.register("aimd", Aimd)


def with_cc(scenario: str, cc: str) -> str:
    return scenario.replace('"newreno"', f'"{cc}"')


def test_aimd_has_the_window_of_newreno(scenario: str) -> None:
    scenario = scenario.replace("2s", "20s")
    own, listed = ranpace.run(with_cc(scenario, "aimd")), ranpace.run(scenario)
    assert own.series()["cwnd_bytes"] == listed.series()["cwnd_bytes"]
    assert own.flows["delivered_bytes"] == listed.flows["delivered_bytes"]
    assert own.flows["dropped_packets"][0] > 0


def test_the_same_run_gives_the_same_figures(scenario: str) -> None:
    runs = [ranpace.run(with_cc(scenario, "aimd:gain=2")) for _ in range(2)]
    assert runs[0].series().to_dicts() == runs[1].series().to_dicts()
    assert runs[0].series().to_dicts() != ranpace.run(with_cc(scenario, "aimd")).series().to_dicts()


def test_a_class_goes_wherever_a_name_goes(scenario: str) -> None:
    table = ranpace.compare(rate="10Mbit/s", cc=["newreno", Aimd, "aimd:gain=4"], time="2s", seeds=2).table
    assert table["cc"] == ["newreno", "Aimd", "aimd:gain=4"]
    assert table["goodput_bit_s"][0] == table["goodput_bit_s"][1]
    sweep = ranpace.sweep(scenario, vary={"flow.cc": ["cubic", Aimd]})
    assert sweep.table["cc"] == ["cubic", "Aimd"]
    assert ranpace.list_cc()["algorithms"][-1]["source"] == "Python"


def test_options_have_the_type_of_their_defaults(scenario: str) -> None:
    seen = []

    @ranpace.control("typed")
    class Typed:
        def __init__(self, on: bool = False, count: int = 1, gain: float = 1.0, word: str = "a", seed: int = 0) -> None:
            seen.append((on, count, gain, word))

        def on_start(self, cx, window) -> None:  # type: ignore[no-untyped-def]
            pass

    ranpace.run(with_cc(scenario, "typed:on=on:count=3:gain=0.5:word=b"))
    assert set(seen) == {(True, 3, 0.5, "b")}
    for option, expected in [
        ("on=maybe", "on or off"),
        ("count=1.5", "a whole number"),
        ("gain=nan", "a number"),
        ("other=1", "there are: on, count, gain, word"),
    ]:
        with pytest.raises(ranpace.ScenarioError, match=expected):
            ranpace.run(with_cc(scenario, f"typed:{option}"))


def test_an_exception_stops_the_run_with_its_traceback(scenario: str) -> None:
    @ranpace.control("broken")
    class Broken:
        def on_ack(self, cx, window, ack) -> None:  # type: ignore[no-untyped-def]
            raise ZeroDivisionError("mine")

    for call in (
        lambda: ranpace.run(with_cc(scenario, "broken")),
        lambda: ranpace.compare(rate="10Mbit/s", cc="broken,cubic", time="2s"),
    ):
        with pytest.raises(ZeroDivisionError, match="mine") as raised:
            call()
        assert raised.traceback[-1].name == "on_ack"
    ranpace.run(scenario)


def test_a_constructor_that_fails_is_raised(scenario: str) -> None:
    @ranpace.control("unmade")
    class Unmade:
        def __init__(self) -> None:
            raise KeyError("no such table")

        def on_ack(self, cx, window, ack) -> None:  # type: ignore[no-untyped-def]
            pass

    with pytest.raises(KeyError, match="no such table"):
        ranpace.run(with_cc(scenario, "unmade"))


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("cwnd", math.nan, "nan.on_ack set cwnd to NaN"),
        ("cwnd", math.inf, "set cwnd to inf"),
        ("cwnd", -1.0, "set cwnd to -1"),
        ("ssthresh", math.nan, "set ssthresh to NaN"),
        ("pacing_bit_s", math.nan, "set pacing_bit_s to NaN"),
        ("pacing_bit_s", -5.0, "set pacing_bit_s to -5"),
    ],
)
def test_values_that_no_sender_can_use_are_refused(scenario: str, field: str, value: float, expected: str) -> None:
    @ranpace.control("nan")
    class Nan:
        def on_ack(self, cx, window, ack) -> None:  # type: ignore[no-untyped-def]
            setattr(window, field, value)

    with pytest.raises(ValueError, match=expected):
        ranpace.run(with_cc(scenario, "nan"))


@pytest.mark.parametrize(("answer", "expected"), [(None, "returned None"), ("later", "returned later"), (math.nan, "NaN")])
def test_answers_to_losses_are_checked(scenario: str, answer: object, expected: str) -> None:
    @ranpace.control("answer")
    class Answer(Aimd):
        def on_loss(self, cx, window, loss):  # type: ignore[no-untyped-def]
            return answer

    with pytest.raises((TypeError, ValueError), match=expected):
        ranpace.run(with_cc(scenario.replace("2s", "20s"), "answer"))


def test_a_deadline_in_the_past_does_not_hang(scenario: str) -> None:
    @ranpace.control("late")
    class Late:
        def next_deadline(self) -> float:
            return 0.5

        def on_deadline(self, cx, window) -> None:  # type: ignore[no-untyped-def]
            pass

    with pytest.raises(ValueError, match="expected a later time"):
        ranpace.run(with_cc(scenario, "late"))


def test_hooks_of_radio_reports_and_deadlines_are_called() -> None:
    heard = set()

    @ranpace.control("listens")
    class Listens(Aimd):
        receiver = "cdbe"

        def __init__(self) -> None:
            super().__init__()
            self.at = 0.1

        def on_report(self, cx, window, report) -> None:  # type: ignore[no-untyped-def]
            assert isinstance(report, bytes) and report
            heard.add("report")

        def on_radio(self, cx, window, hint) -> None:  # type: ignore[no-untyped-def]
            assert hint.cell_prbs > 0 and hint.rate_bit_s(hint.cell_prbs) >= 0
            heard.add("radio")

        def next_deadline(self) -> float:
            return self.at

        def on_deadline(self, cx, window) -> None:  # type: ignore[no-untyped-def]
            assert cx.now_s == pytest.approx(self.at)
            self.at += 0.1
            heard.add("deadline")

        def inspect(self) -> dict[str, float]:
            return {"at": self.at}

    run = ranpace.run(
        {
            "duration": "1s",
            "link": [{"from": "server", "to": "mast", "rate": "1Gbit/s", "delay": "5ms", "duplex": True}],
            "cell": [{"host": "mast", "preset": "lte"}],
            "user": [{"name": "phone", "position": [100, 0]}],
            "flow": [{"from": "server", "to": "phone", "cc": "listens"}],
        }
    )
    assert heard == {"report", "radio", "deadline"}
    assert max(run.series()["state_at"]) > 0.9


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        (type("Nothing", (), {}), "has no hook"),
        (type("Typo", (), {"on_akc": lambda *_: None, "on_ack": lambda *_: None}), "did you mean on_ack"),
        (type("Half", (), {"on_deadline": lambda *_: None}), "next_deadline"),
        (type("Deaf", (), {"on_report": lambda *_: None}), "receiver"),
        (type("Needs", (), {"__init__": lambda self, gain: None, "on_ack": lambda *_: None}), "gain needs a default"),
        (type("List", (), {"__init__": lambda self, gain=[]: None, "on_ack": lambda *_: None}), "found list"),
        (Aimd(), "expected a class"),
    ],
)
def test_classes_that_cannot_work_are_refused(cls: type, expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        ranpace.register("refused", cls)


@pytest.mark.parametrize("name", ["cubic", "c2tcp", "a+b", "a:b", ""])
def test_names_that_mean_something_else_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"control"):
        ranpace.register(name, Aimd)


@pytest.mark.parametrize(
    ("hook", "answer", "expected"),
    [
        ("inspect", {"rate": "fast"}, "must be real number|float"),
        ("inspect", [1.0], "dict|mapping"),
        ("next_deadline", math.nan, "next_deadline returned NaN"),
        ("next_deadline", -1.0, "next_deadline returned -1"),
        ("next_deadline", "soon", "must be real number|float"),
    ],
)
def test_answers_of_other_hooks_are_checked(scenario: str, hook: str, answer: object, expected: str) -> None:
    members = {hook: lambda self: answer, "on_deadline": lambda self, cx, window: None, "next_deadline": lambda self: None}
    ranpace.register("odd", type("Odd", (Aimd,), {**members, hook: lambda self: answer}))
    with pytest.raises((TypeError, ValueError), match=expected):
        ranpace.run(with_cc(scenario, "odd"))
