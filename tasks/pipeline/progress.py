"""How far a piece of work is: a line in the log, and a share of the whole to whoever listens."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[float, str], None]
"""Is told the share that is done, from 0 to 1, and a line for people."""
_listener: ContextVar[Listener] = ContextVar("listener", default=lambda share, line: None)


def say(logger: logging.Logger, share: float, line: str) -> None:
    """Tell how far it is, also in the log."""
    logger.info("%s", line)
    tell(share, line)


def tell(share: float, line: str) -> None:
    """Tell how far it is."""
    _listener.get()(min(max(share, 0.0), 1.0), line)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell this one while it lasts."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part(number: int, count: int) -> Iterator[None]:
    """What is said inside is about one part of several alike; it is done at the end."""
    whole = _listener.get()
    with listening(lambda share, line: whole((number + share) / count, line)):
        yield
    whole((number + 1) / count, "")
