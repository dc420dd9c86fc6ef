"""The end of a process that has run flows: without Python's own tidying up.

Prefect keeps what a flow has touched for ever, and DuckDB would list every object of its own among it as a leak.
"""

import atexit
import logging
import os
import sys


class QuietEnd:
    """Make it before Prefect is imported: what is registered first runs when all else has run. Then set `code`."""

    def __init__(self) -> None:
        self.code = 1
        atexit.register(self._end)

    def _end(self) -> None:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.code)
