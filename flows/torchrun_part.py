"""One of the processes that run a part together under torchrun: `torchrun ... -m flows.torchrun_part`."""

import json
import logging
import os
import sys

from flows.parts import PART
from flows.quiet_end import QuietEnd
from flows.stages import part_kind
from tasks.pipeline.job import Interrupted, Job


def main() -> int:
    """Run the part that the environment variable VINA_PART describes."""
    first = os.environ.get("RANK", "0") == "0"
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("vina").setLevel(logging.INFO if first else logging.WARNING)
    request = json.loads(os.environ[PART])
    try:
        part_kind(request["kind"]).work(Job.model_validate(request["job"]), request["part"])
    except Interrupted as stop:
        print(f"vina: {stop}", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    end = QuietEnd()
    end.code = main()
    sys.exit(end.code)
