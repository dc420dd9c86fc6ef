"""One of the processes that run a part together under torchrun: `torchrun ... -m flows.torchrun_part`."""

import json
import logging
import os
import sys
from pathlib import Path

from flows.parts import PART
from flows.quiet_end import QuietEnd
from flows.stages import part_kind
from storage import is_transient
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
    except Exception as error:
        if is_transient(error):  # the process that started torchrun tries again
            (Path(request["faults"]) / os.environ["RANK"]).write_text(f"{type(error).__name__}: {error}")
        raise
    return 0


if __name__ == "__main__":
    end = QuietEnd()
    end.code = main()
    sys.exit(end.code)
