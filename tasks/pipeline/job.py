"""The job of a stage. Plain values only, because it is sent to workers on other machines."""

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from storage import Store
from tasks.pipeline.settings import Settings

AnySettings = TypeVar("AnySettings", bound=Settings)


class Job(BaseModel):
    """The store, the run, and the settings of its stages by group. A group that is missing has its defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    store: str
    run_id: str
    settings: Mapping[str, Mapping[str, Any]] = {}
    force: bool = False
    """Whether the stages run again although nothing has changed."""

    @classmethod
    def of(cls, store: str, run_id: str, *settings: Settings, force: bool = False) -> "Job":
        """Return a job with these settings."""
        groups = {each.group: each.model_dump() for each in settings}
        return cls(store=store, run_id=run_id, settings=groups, force=force)

    def settings_of(self, group: type[AnySettings]) -> AnySettings:
        """Return the settings of a group."""
        return group(**self.settings.get(group.group, {}))

    def changed(self, *settings: Settings, **fields: Any) -> "Job":
        """Return a copy with other settings of some groups, and other fields."""
        merged = {**self.settings, **{each.group: each.model_dump() for each in settings}}
        return self.model_copy(update={"settings": merged, **fields})

    def open_store(self) -> Store:
        """Return the store for reading; it is opened again every minute, because its credentials may change."""
        return _open(self.store, int(time.monotonic() // 60))


@lru_cache(1)
def _open(uri: str, minute: int) -> Store:
    return Store(uri)


class Interrupted(Exception):
    """A stage was asked to end (SIGTERM); everything is saved, and the same run continues from there."""
