"""End a process that has run flows without Python's own clean-up.

Prefect never releases the objects that a flow has used, and DuckDB would report each of its own among them as a leak.
"""

import atexit
import logging
import os
import sys


class QuietEnd:
    """An exit handler. Create it before Prefect is imported, so that it runs last; then set `code`, the exit code."""

    def __init__(self) -> None:
        self.code = 1
        atexit.register(self._end)

    def _end(self) -> None:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.code)
