"""Progress of a stage: a line in the log, and the share that is done for a listener."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[float, str], None]
"""Receives the share that is done, from 0 to 1, and a line of text."""
_listener: ContextVar[Listener] = ContextVar("listener", default=lambda share, line: None)


def say(logger: logging.Logger, share: float, line: str) -> None:
    """Report progress, and log it."""
    logger.info("%s", line)
    tell(share, line)


def tell(share: float, line: str) -> None:
    """Report progress."""
    _listener.get()(min(max(share, 0.0), 1.0), line)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Report to this listener inside the `with`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part(number: int, count: int) -> Iterator[None]:
    """Count progress inside the `with` as that of one part of several."""
    whole = _listener.get()
    with listening(lambda share, line: whole((number + share) / count, line)):
        yield
    whole((number + 1) / count, "")
