"""Files of a small world and a small COIN, a fresh copy for each test; functions to import them and to read tables."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage import Store
from tasks.demo_world.files import BACKBONE, write_world
from tasks.demo_world.knobs import PRESETS
from tasks.demo_world.script import World
from tasks.importers.import_session import Summary
from tasks.importers.sources import import_source

SMALL = replace(PRESETS["short"], num_videos=20, num_articles=20, num_rendered=1, topic_share=0.5, feature_width=8)
COIN = {
    f"coin-{number}": {
        "class": "BoilEgg",
        "recipe_type": 7,
        "subset": "training" if number else "testing",
        "duration": 30.5,
        "start": 0,
        "end": 30.5,
        "video_url": f"https://example.org/{number}",
        "annotation": [
            {"id": "12", "segment": [20.0, 25.5], "label": "take it out"},
            {"id": "9", "segment": [1.0, 8.0 + number], "label": "heat the water"},
        ],
    }
    for number in range(3)
}
"""COIN's database; the demo world has none."""
Import = Callable[..., Summary]


@pytest.fixture(scope="session")
def world_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "corpus"
    write_world(World(SMALL, 1), folder)
    (folder / "coin").mkdir()
    (folder / "coin/COIN.json").write_text(json.dumps({"database": COIN}))
    return folder


@pytest.fixture
def corpus(world_files: Path, tmp_path: Path) -> Path:
    """One folder a source; that of the features has no sub-folder for the backbone, whose texts are there as well."""
    folder = tmp_path / "corpus"
    shutil.copytree(world_files, folder, ignore=shutil.ignore_patterns("features"))
    shutil.copytree(world_files / "features" / BACKBONE, folder / "features")
    (folder / "texts").mkdir()
    texts = pa.table({"text": ["stir", "mix"], "vector": [[1.0, 0.0], [0.0, 1.0]]})
    pq.write_table(texts, folder / "texts/features.parquet")
    return folder


@pytest.fixture
def bring(tmp_path: Path) -> Import:
    """Import a path into the test's own store."""
    store = Store(tmp_path / "store")

    def work(source: str, path: Path, **options: Any) -> Summary:
        return import_source(store, "run-1", source, path, **options)

    return work


def rows(folder: Path, table: str, **partition: str) -> list[dict[str, Any]]:
    snapshot = Store(folder / "store").table(table).snapshot().where(**partition)
    return list(snapshot.read().to_pylist()) if snapshot.shards else []


def rejects(folder: Path) -> list[tuple[str, str, int | None]]:
    """What was rejected: item, reason, line."""
    return [(row["item"], row["reason"], row["line"]) for row in rows(folder, "rejects")]
