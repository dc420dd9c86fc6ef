"""Where and how the parts of a run are executed: parameters of the flows, and options of the commands."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tasks.pipeline.settings import PRESETS

STRICT = ConfigDict(extra="forbid", use_attribute_docstrings=True)
Preset = Literal[PRESETS]  # type: ignore[valid-type]
Dispatch = Literal["here", "pool"]
"""Where parts run: in the flow's own process, or on the workers of the GPU pool."""


class Execution(BaseModel):
    """Where and how the parts run."""

    model_config = STRICT

    runner: Literal["threads", "processes", "dask", "ray"] = "threads"
    """Task runner of the parts; dask and ray are Prefect's integrations. Trainings run in processes, not threads."""
    workers: Annotated[int, Field(ge=1, le=1024)] = 1
    """Number of parts that the task runner runs at once. Workers of a pool have their own limits."""
    address: str | None = None
    """Address of a running Dask scheduler or Ray cluster (default: one is started for the run)."""
    devices: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes that train and label together under torchrun, one per GPU."""
    retries: Annotated[int, Field(ge=0, le=100)] = 3
    """Retries of a part after a transient fault (network, S3), or when its worker is lost."""
    retry_delay_s: Annotated[float, Field(ge=0, le=3600)] = 10
    """Seconds before the first retry; the delay doubles with each further one."""
    timeout_minutes: Annotated[float, Field(ge=0)] = 0
    """Minutes after which a part is stopped and fails; 0 means never."""
