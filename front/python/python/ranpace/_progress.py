"""Progress in notebooks. In a terminal the Rust half draws its own bar."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

_PATIENCE_S = 1.0
"""Work that takes longer than this is shown."""


def _in_notebook() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def shower(what: str) -> Iterator[Callable[[float], None] | None]:
    """A function that shows the part that is done, 0 to 1; `None` outside of notebooks. The bar disappears at the end."""
    if not _in_notebook():
        yield None
        return
    from IPython import display as page

    since = time.monotonic()
    bar = None

    def show(part: float) -> None:
        nonlocal bar
        if time.monotonic() - since < _PATIENCE_S:
            return
        shown = page.HTML(f"<progress value='{part:.3f}' max='1'></progress> {what}, {part:.0%}")
        if bar is None:
            bar = page.display(shown, display_id=True)
        else:
            bar.update(shown)

    try:
        yield show
    finally:
        if bar is not None:
            bar.update(page.HTML(""))
