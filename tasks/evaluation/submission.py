"""The file that HT-Step's evaluation server takes: segments of every step, of videos whose annotations it keeps."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from storage import Store
from storage.catalogue import Catalogue
from storage.objects import atomic_file
from tasks.evaluation.methods import WITH
from tasks.evaluation.predicting import as_in_files
from tasks.evaluation.protocols import HTSTEP_MAP
from tasks.evaluation.results import student_of

PREFERRED = (f"vina{WITH}", "vina")


class Submission(NamedTuple):
    """What was written: whose predictions, how many, on how many of the split's videos."""

    model_id: str
    method: str
    num_rows: int
    num_videos: int
    num_listed: int


def export_htstep(store: Store, run: str, split: str, method: str | None, path: Path) -> Submission:
    """Write a run's (or a training's) segments for a split; the file appears whole or not at all."""
    model_id, chosen = _choose(store, student_of(store, run), run, method)
    with Catalogue(store) as catalogue:
        listed = catalogue.query(
            "SELECT DISTINCT video_id, split FROM videos WHERE source = 'htstep' AND split IS NOT NULL"
        )  # fmt: skip
    splits = sorted(set(listed["split"].to_pylist()))
    if split not in splits:
        known = ", ".join(splits) or "none: `vina import htstep PATH` with its video_splits.json"
        raise ValueError(f"HT-Step has no split {split!r} in the store; there are {known}")
    videos = listed.filter(pc.equal(listed["split"], split))["video_id"]
    snapshot = store.table("predictions").snapshot()
    rows = snapshot.where(model_id=model_id, protocol=HTSTEP_MAP.name, method=chosen).read()
    rows = rows.filter(pc.is_in(rows["video_id"], videos.combine_chunks()))
    if not len(rows):
        raise ValueError(
            f"{model_id} ({chosen}) has no predictions for {split}: its videos need features, and HowTo100M's metadata "
            "(or annotations) to know their activity; then run the stage `evaluation`"
        )
    _write(as_in_files(rows, HTSTEP_MAP), path)
    return Submission(model_id, chosen, len(rows), pc.count_distinct(rows["video_id"]).as_py(), len(videos))


def _choose(store: Store, model_id: str, run: str, method: str | None) -> tuple[str, str]:
    shards = store.table("predictions").snapshot().where(protocol=HTSTEP_MAP.name).shards
    known = sorted({(str(shard.constants["model_id"]), str(shard.constants["method"])) for shard in shards})
    own = [name for place, name in known if place == model_id]
    if not own:
        listed = ", ".join(dict.fromkeys(place for place, _ in known)) or "none: run the stage `evaluation`"
        raise ValueError(f"{run} has no predictions for HT-Step; those that have: {listed}")
    chosen = method or next((name for name in PREFERRED if name in own), own[0])
    if chosen not in own:
        raise ValueError(f"{run} has no method {chosen!r}: choose --method {' or '.join(map(repr, own))}")
    return model_id, chosen


def _write(rows: pa.Table, path: Path) -> None:
    with atomic_file(path) as partial:
        pacsv.write_csv(rows, partial, pacsv.WriteOptions(quoting_style="none", quoting_header="none"))
