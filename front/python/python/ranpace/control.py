"""Congestion controls of your own: a class with the hooks that it wants."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from . import _ranpace

__all__ = ["HOOKS", "IGNORE", "control", "register"]

IGNORE = "ignore"
"""Answer of `on_loss`: retransmit, but keep window and threshold as if nothing had been lost."""

HOOKS: dict[str, str] = {
    "on_start": "(cx, window): the connection is established",
    "on_sent": "(cx, window, sent): a packet was sent",
    "on_sample": "(cx, window, sample): measurements of an acknowledgement, before loss detection",
    "on_ack": "(cx, window, ack): an acknowledgement; the window grows here",
    "on_loss": "(cx, window, congestion) -> ssthresh: lost segments, a timeout or an ECN mark; halves by default",
    "on_packet": "(cx, window, packet): the outcome of one packet",
    "on_recovered": "(cx, window): recovery is over",
    "on_spurious": "(cx, window, prior): nothing had been lost; the larger window is restored by default",
    "on_idle_restart": "(cx, window, idle_s): sending starts again after a pause",
    "on_path_change": "(cx, window): old minima no longer apply",
    "next_deadline": "() -> seconds since the run began, or None: when to call on_deadline",
    "on_deadline": "(cx, window): the deadline has come",
    "on_report": "(cx, window, report): bytes of the receiver's half (`receiver = NAME` in the class)",
    "on_radio": "(cx, window, hint): radio information about the flow's user",
    "on_pep": "(cx, window, report): report of a Lightweight PEP",
    "inspect": "() -> dict of numbers for the flow's series, whose columns are then called state_NAME",
}
"""The hooks and their arguments. `cx` is a `ranpace.Context`, `window` a `ranpace.Window` to be changed in place."""

_Class = TypeVar("_Class", bound=type)


def register(name: str, cls: type, *, about: str | None = None) -> None:
    """Registers a class as a congestion control, which then can be named wherever a control is named.

    Parameters
    ----------
    name : letters, digits, - and _; not the name of a control of Ranpace. A class registered before under it is replaced.
    cls : class with at least one of the `HOOKS`. The keyword parameters of its `__init__` are the control's options
        (`mine:gain=2`), with the type of their defaults (number, text or bool); one called `seed` gets the run's seed. `owns_recovery = True`
        in the class says that it sets the window during recovery, too; `ack_every = N` after how many segments the receiver
        acknowledges at once; `receiver = "cdbe"` which control's receiver's half reports to `on_report`.
    about : a description of one line; the first line of the class's docstring by default

    Raises
    ------
    TypeError : if the class has no hook, or one that nothing calls
    ValueError : if the name is refused

    An instance is made for every connection, and a few more when names are parsed. An exception in a hook stops the run, and is
    raised by the call that began it.

    >>> class Fixed:
    ...     def __init__(self, segments=20.0):
    ...         self.segments = segments
    ...     def on_ack(self, cx, window, ack):
    ...         window.cwnd = self.segments
    >>> register("fixed", Fixed)
    """
    if not inspect.isclass(cls):
        raise TypeError(f"expected a class with hooks, found {type(cls).__name__}")
    defined = {hook for hook in HOOKS if callable(getattr(cls, hook, None))}
    called = {hook for hook in defined if hook.startswith("on_")}
    if not called:
        raise TypeError(f"{cls.__name__} has no hook; it needs at least one of: {', '.join(HOOKS)}")
    for other in dir(cls):
        if other.startswith("on_") and callable(getattr(cls, other)) and other not in HOOKS:
            near = difflib.get_close_matches(other, HOOKS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(HOOKS)}"
            raise TypeError(f"{cls.__name__}.{other} is no hook, so nothing would call it{hint}")
    if ("on_deadline" in defined) != ("next_deadline" in defined):
        raise TypeError(f"{cls.__name__} needs both next_deadline and on_deadline, or none of them")
    receiver = getattr(cls, "receiver", None)
    if "on_report" in defined and receiver is None:
        raise TypeError(f'{cls.__name__}.on_report needs a receiver\'s half: set receiver = "cdbe" (or another) in the class')
    options: list[tuple[str, Any]] = []
    takes_seed = False
    parameters = () if cls.__init__ is object.__init__ else tuple(inspect.signature(cls).parameters.values())
    for parameter in parameters:
        if parameter.name == "seed":
            takes_seed = True
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        elif parameter.default is parameter.empty or parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(
                f"{cls.__name__}.__init__: parameter {parameter.name} needs a default: it is an option of the control"
            )
        else:
            options.append((parameter.name, parameter.default))
    summary = about or (inspect.getdoc(cls) or cls.__name__).splitlines()[0]
    _ranpace.register(
        name=name,
        about=summary,
        options=options,
        class_=cls,
        takes_seed=takes_seed,
        hooks=defined,
        owns_recovery=bool(getattr(cls, "owns_recovery", False)),
        receiver=receiver,
    )


def control(name: str, *, about: str | None = None) -> Callable[[_Class], _Class]:
    """Registers the class that follows; see `register`.

    >>> @control("slowly")
    ... class Slowly:
    ...     "one segment a round trip, whatever happens"
    ...     def on_ack(self, cx, window, ack):
    ...         window.cwnd += ack.acked / window.cwnd
    """

    def decorate(cls: _Class) -> _Class:
        register(name, cls, about=about)
        return cls

    return decorate
