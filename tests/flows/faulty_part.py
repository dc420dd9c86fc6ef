"""One process of a torchrun whose part fails in the second process: once by the network, or always by its data."""

import sys
from pathlib import Path

from flows import torchrun_part
from tasks.pipeline.job import Job
from tasks.pipeline.parts import Part, PartKind
from tasks.training.processes import joined


def fail(job: Job, part: Part) -> None:
    """Note the try; on the first one, or on all, fail."""
    with joined("cpu") as processes:
        tries = Path(job.store) / "tries"
        count = len(tries.read_text()) if tries.exists() else 0
        processes.wait()
        if processes.is_first:
            tries.write_text("x" * (count + 1))
        elif part["fault"] == "data":
            raise ValueError("features of video x are not finite")
        elif not count:
            raise ConnectionResetError("the network is gone")
        processes.wait()


if __name__ == "__main__":
    torchrun_part.part_kind = lambda name: PartKind(name, fail)
    sys.exit(torchrun_part.main())
