"""A stage: a named step of the pipeline that declares its work, dependencies, settings and kinds of parts.

When a stage has ended, a row of `completions` holds its dependencies: its settings, the versions of what it read and of
what it left, and its code's version. A stage whose row is still valid is skipped. If it runs
needlessly, every shard is skipped by its fingerprint: the row only saves that check.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from storage import Store, fingerprint_of
from tasks.pipeline.job import Job
from tasks.pipeline.parts import PartKind, RunParts
from tasks.pipeline.settings import Settings

SKIPPED = "skipped: nothing has changed"


@dataclass(frozen=True)
class Dependencies:
    """What the results of a stage depend on now."""

    settings: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    """Versions of its inputs."""
    outputs: dict[str, str] = field(default_factory=dict)
    """Versions of its outputs: if something else has changed them, it runs again."""
    scope: str = "all"
    """Name of the results, e.g. of one model. Results of different scopes do not replace each other."""
    must_run_because: str = ""
    """Why it runs even if its row is valid; empty otherwise."""


@dataclass(frozen=True)
class Stage:
    """The declaration of a stage."""

    name: str
    work: Callable[[Job, RunParts], str]
    """Do the work, and return a report."""
    dependencies: Callable[[Job], Dependencies]
    code_version: str
    """Raised by hand when the results change."""
    reset: Callable[[Job], None] = lambda job: None
    """Retire the results, to start again; by default they are replaced one by one."""
    settings: tuple[type[Settings], ...] = ()
    """The groups of settings that it introduces."""
    parts: tuple[PartKind, ...] = ()
    """The kinds of parts that its work is divided into."""
    artifacts: Mapping[str, str] = field(default_factory=dict)
    """Tables that Prefect's UI shows after it: a query by the artifact's key."""
    links: Callable[[Job], Mapping[str, str]] = lambda job: {}
    """Objects that Prefect's UI links to after it: the object's key by the artifact's key."""
    is_shared: bool = False
    """Whether all processes under torchrun share its work."""
    measures: bool = False
    """Whether it measures the run's models on all benchmarks: `vina results` shows the newest such run."""


@dataclass(frozen=True)
class Step:
    """A stage in a plan, with the reasons why it runs; without reasons it is skipped."""

    stage: Stage
    reasons: tuple[str, ...]
    waits_for: tuple[str, ...] = ()
    """Earlier stages that run: their changes may be a reason to run."""


def plan(job: Job, stages: Sequence[Stage]) -> Iterator[Step]:
    """Yield each stage with the reasons why it would run."""
    running: list[str] = []
    for stage in stages:
        step = Step(stage, reasons_to_run(job, stage), tuple(running))
        if step.reasons:
            running.append(stage.name)
        yield step


def reasons_to_run(job: Job, stage: Stage) -> tuple[str, ...]:
    """Return why a stage must run; nothing if it is up to date."""
    if job.force:
        return ("it is forced",)
    now = stage.dependencies(job)
    if now.must_run_because:
        return (now.must_run_because,)
    done = _completion(job, stage, now.scope)
    if done is None:
        return ("it was never completed",)
    is_same = (done["_shard"], done["_fingerprint"]) == (now.scope, _fingerprint(stage, now))
    if is_same and json.loads(done["outputs"]) == now.outputs:
        return ()
    before = {name: json.loads(done[name]) for name in ("settings", "inputs", "outputs")}
    reasons = [f"{name}: {old} -> {new}" for name, old, new in _changes(before["settings"], now.settings)]
    if done["_shard"] == now.scope or not reasons:
        reasons += [f"{name} changed" for name, _, _ in _changes(before["inputs"], now.inputs)]
        reasons += [f"{name}, which it wrote, changed" for name, _, _ in _changes(before["outputs"], now.outputs)]
    return tuple(reasons) or ("its code is newer",)


def run_stage(job: Job, stage: Stage, run_parts: RunParts) -> tuple[str, bool]:
    """Run a stage if it must run; return its report, and whether it ran."""
    reasons = reasons_to_run(job, stage)
    if not reasons:
        return SKIPPED, False
    return complete_stage(job, stage, run_parts), True


def complete_stage(job: Job, stage: Stage, run_parts: RunParts) -> str:
    """Run a stage, record its completion, and return its report."""
    if job.force:  # from here on it is incomplete, even if it fails
        scope = stage.dependencies(job).scope
        completions = Store(job.store).table("completions")
        completions.retire({"stage": stage.name}, only=lambda shard: shard.name == scope)
        stage.reset(job)
    begin, dependencies = time.monotonic(), stage.dependencies(job)
    report = stage.work(job, run_parts)
    after = stage.dependencies(job)  # inputs that were fetched have a version now
    dependencies = replace(dependencies, settings=after.settings, outputs=after.outputs)
    _record(job, stage, dependencies, report, time.monotonic() - begin)
    return report


def _record(job: Job, stage: Stage, dependencies: Dependencies, report: str, took_s: float) -> None:
    row = {
        "settings": json.dumps(dependencies.settings, sort_keys=True),
        "inputs": json.dumps(dependencies.inputs, sort_keys=True),
        "outputs": json.dumps(dependencies.outputs, sort_keys=True),
        "report": report,
        "took_s": took_s,
        "finished_at": datetime.now(UTC),
    }
    table = Store(job.store).table("completions")
    rows = pa.Table.from_pylist([row], schema=table.schema.files)
    fingerprint, partition = _fingerprint(stage, dependencies), {"stage": stage.name}
    table.commit(rows, partition, dependencies.scope, fingerprint=fingerprint, run_id=job.run_id, force=True)


def _completion(job: Job, stage: Stage, scope: str) -> dict[str, Any] | None:
    """Return the last row of this scope; else of another one, to report the difference."""
    completions = job.open_store().table("completions").snapshot().where(stage=stage.name)
    rows = completions.read().to_pylist() if completions.shards else []
    return max(rows, key=lambda row: (row["_shard"] == scope, row["finished_at"]), default=None)


def _fingerprint(stage: Stage, dependencies: Dependencies) -> str:
    return fingerprint_of(dependencies.settings, dependencies.inputs, stage.code_version)


def _changes(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    names = [*old, *(name for name in new if name not in old)]
    return [(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def versions(store: Store, *tables: str) -> dict[str, str]:
    """Return the content versions of some tables."""
    return {name: store.table(name).snapshot().content_version for name in tables}
