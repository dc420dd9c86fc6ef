"""End a process that has run flows without Python's own clean-up.

Prefect keeps what a flow has touched for ever, and DuckDB would list every object of its own among it as a leak.
"""

import atexit
import logging
import os
import sys


class QuietEnd:
    """Create it before Prefect is imported, so that it runs last; then set `code`, the exit code."""

    def __init__(self) -> None:
        self.code = 1
        atexit.register(self._end)

    def _end(self) -> None:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.code)
