"""One process of a torchrun that does a piece of work with others: `torchrun ... -m flows.torchrun_part`."""

import json
import logging
import os
import sys

from pydantic import TypeAdapter

from flows.parts import KINDS, PART
from flows.quiet_end import QuietEnd
from tasks.pipeline.job import Interrupted, Job


def main() -> int:
    """Do what the environment says."""
    first = os.environ.get("RANK", "0") == "0"
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("vina").setLevel(logging.INFO if first else logging.WARNING)
    asked = json.loads(os.environ[PART])
    try:
        KINDS[asked["kind"]](TypeAdapter(Job).validate_python(asked["job"]), asked["part"])
    except Interrupted as stop:
        print(f"vina: {stop}", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    end = QuietEnd()
    end.code = main()
    sys.exit(end.code)
