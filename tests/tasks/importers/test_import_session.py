"""Imports come twice, in parts, to S3, and to an untimely end: what was kept stays, and nothing is there twice."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from storage import Store, StoreError
from tasks.importers import import_session, reject_log
from tasks.importers.settings import ImportSettings
from tasks.importers.sources import SOURCES, Options, forget_source, import_source, missing_lines
from tasks.importers.stage import import_corpus
from tasks.pipeline.job import Job
from tests.tasks.importers.conftest import Import, rejects, rows


def narrations(*videos: str, text: str = "hello") -> str:
    return json.dumps({video: {"text": [text, "again"], "start": [0, 2], "end": [1, 3]} for video in videos})


@pytest.mark.parametrize("source", list(SOURCES))
def test_a_second_import_adds_nothing(corpus: Path, bring: Import, tmp_path: Path, source: str) -> None:
    first = bring(source, corpus / source)
    assert first.kept
    versions = {table.name: table.snapshot().version for table in Store(tmp_path / "store").tables()}
    second = bring(source, corpus / source)
    assert not second.kept and second.read == first.read
    assert {table: count for table, count in second.present.items() if count} == dict(first.kept)
    assert {table.name: table.snapshot().version for table in Store(tmp_path / "store").tables()} == versions


def test_parts_add_up(tmp_path: Path, bring: Import) -> None:
    for name, videos in (("a", ["v1", "v2"]), ("b", ["v2", "v3"])):
        (tmp_path / f"{name}.json").write_text(narrations(*videos, text=name))
    bring("howto100m", tmp_path / "a.json")
    summary = bring("howto100m", tmp_path / "b.json")
    assert (summary.kept["narrations"], summary.present["narrations"]) == (2, 2)
    kept = [(row["video_id"], row["text"]) for row in rows(tmp_path, "narrations") if row["row"] == 0]
    assert sorted(kept) == [("v1", "a"), ("v2", "a"), ("v3", "b")]


def test_a_source_is_forgotten_to_be_imported_anew(tmp_path: Path, corpus: Path, bring: Import) -> None:
    store = Store(tmp_path / "store")
    for source in SOURCES:
        bring(source, corpus / source)
    before = sorted_rows(tmp_path / "store")
    for source in SOURCES:
        taken = forget_source(store, source, "features" if source in ("features", "texts") else None)
        assert taken
        bring(source, corpus / source)
        assert sorted_rows(tmp_path / "store") == before
    with pytest.raises(ValueError, match="name the features to forget with --backbone"):
        forget_source(store, "features")
    for source in SOURCES:
        forget_source(store, source, "features")
    assert not any(sorted_rows(tmp_path / "store").values())
    assert store.table("steps").snapshot(1).num_rows > 0, "older versions keep them"


def test_rejects_of_a_path_are_those_of_its_last_import(tmp_path: Path, bring: Import) -> None:
    path = tmp_path / "a.json"
    path.write_text(narrations("v1", text=""))
    bring("howto100m", path)
    bring("howto100m", path)
    assert [(item, reason) for item, reason, _ in rejects(tmp_path)] == [("v1", "empty text")]
    path.write_text(narrations("v1"))
    bring("howto100m", path)
    assert rejects(tmp_path) == []


def test_many_rejects_are_written_as_they_come(tmp_path: Path, bring: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reject_log, "ROWS_PER_SHARD", 10)
    path = tmp_path / "a.json"
    path.write_text(narrations(*(f"v{number}" for number in range(35)), text=""))
    bring("howto100m", path)
    assert len(rejects(tmp_path)) == 35 and len(Store(tmp_path / "store").table("rejects").snapshot().shards) == 4
    path.write_text(narrations(*(f"w{number}" for number in range(12)), text=""))
    bring("howto100m", path.parent / ".." / path.parent.name / path.name)
    assert sorted(item for item, _, _ in rejects(tmp_path)) == sorted(f"w{number}" for number in range(12))


def test_what_was_kept_stays_when_an_error_ends_the_import(
    tmp_path: Path, bring: Import, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("tasks.importers.howto100m._read_narrations", fail)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        bring("howto100m", corpus / "howto100m")
    assert len(rows(tmp_path, "videos")) == 20


def test_an_import_larger_than_a_shard(tmp_path: Path, bring: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_session, "BYTES_PER_SHARD", 300)
    monkeypatch.setattr("tasks.importers.narrations.SENTENCES_AT_ONCE", 7)
    (tmp_path / "a.json").write_text(narrations(*(f"v{number}" for number in range(50))))
    summary = bring("howto100m", tmp_path / "a.json")
    assert summary.kept["narrations"] == 100 and len(rows(tmp_path, "narrations")) == 100
    assert len(Store(tmp_path / "store").table("narrations").snapshot().shards) > 5


def test_a_store_that_cannot_be_written_stops_the_import(
    tmp_path: Path, bring: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise StoreError("no room")

    monkeypatch.setattr(import_session.ImportSession, "_write", fail)
    (tmp_path / "a.json").write_text(narrations("v1"))
    with pytest.raises(StoreError, match="no room"):
        bring("howto100m", tmp_path / "a.json")


SLOWLY = """
import sys, time
from pathlib import Path
from storage import Store
from tasks.importers import import_session, reject_log
from tasks.importers.sources import import_source

import_session.BYTES_PER_SHARD = 2_000
import_session.LOOSE_ROWS = 20
write = import_session.ImportSession._write
import_session.ImportSession._write = lambda *arguments: (write(*arguments), time.sleep(0.05))
import_source(Store(sys.argv[1]), "run-1", sys.argv[2], Path(sys.argv[3]))
"""


def sorted_rows(store: Path) -> dict[str, list[str]]:
    """All rows of all tables but where they come from."""
    found = {}
    for table in Store(store).tables():
        columns = [column.name for column in table.schema.columns]
        snapshot = table.snapshot()
        found[table.name] = sorted(map(str, snapshot.read(columns).to_pylist())) if snapshot.shards else []
    return found


@pytest.mark.slow
@pytest.mark.parametrize("source", ["htstep", "features"])
def test_a_killed_import_is_finished_by_the_next_one(corpus: Path, tmp_path: Path, source: str) -> None:
    import_source(Store(tmp_path / "whole"), "run-1", source, corpus / source, Options(backbone="x"))
    expected = sorted_rows(tmp_path / "whole")
    hits = 0
    for attempt, seconds in enumerate((0.05, 0.2, 0.4)):
        store = tmp_path / f"killed-{attempt}"
        process = subprocess.Popen([sys.executable, "-c", SLOWLY, str(store), source, str(corpus / source)])
        while not list(store.glob("*/_delta_log/*1.json")) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
        partial = sorted_rows(store)
        hits += any(partial.values()) and partial != expected
        options = Options(backbone="features" if source == "features" else None)
        import_source(Store(store), "run-2", source, corpus / source, options)
        found = sorted_rows(store)
        assert {name: len(rows) for name, rows in found.items()} == {name: len(rows) for name, rows in expected.items()}
        if source != "features":  # whose rows name the backbone
            assert found == expected
    assert hits, "no kill came in the middle"


def test_a_whole_corpus_on_s3(world_files: Path, s3_uri: str) -> None:
    report = import_corpus(Job.of(s3_uri, "run-1", ImportSettings(corpus=str(world_files))))
    assert "features: 20 videos read, 20 kept" in report
    assert Store(s3_uri).table("annotations").snapshot().num_rows > 20


def test_uploaded_videos_are_in_the_store(corpus: Path, s3_uri: str) -> None:
    store = Store(s3_uri)
    import_source(store, "run-1", "videos", corpus / "videos", Options(upload=True))
    (uri,) = store.table("videos").snapshot().read(["uri"])["uri"].to_pylist()
    (key,) = store.objects.keys("videos/")
    (video_file,) = (corpus / "videos").glob("*.mp4")
    assert uri == key and store.objects.get(key) == video_file.read_bytes()
    assert store.objects.resolve(uri) == f"{s3_uri}/objects/{key}"


def test_what_is_missing_is_said(tmp_path: Path, corpus: Path, bring: Import) -> None:
    bring("htstep", corpus / "htstep")
    store = Store(tmp_path / "store")
    example = min(row["video_id"] for row in rows(tmp_path, "videos"))
    assert missing_lines(store) == [
        f"missing: {what}: 20, e.g. {example}"
        for what in (
            "htstep annotations without features",
            "htstep annotations without narrations",
            "videos without features",
        )
    ]
    bring("features", corpus / "features")
    bring("howto100m", corpus / "howto100m")
    what = {line.split(": ")[1] for line in missing_lines(store)}
    assert "htstep annotations without features" not in what and "features without narrations" in what
    assert not any("article" in line for line in what), "HowTo100M's titles have their steps in HT-Step's articles"


def test_folders_are_followed_or_named(tmp_path: Path, corpus: Path, bring: Import) -> None:
    (corpus / "crosstask/annotations").rename(tmp_path / "elsewhere")
    (corpus / "crosstask/annotations").symlink_to(tmp_path / "elsewhere")
    (corpus / "crosstask/loop").symlink_to(corpus / "crosstask")
    summary = bring("crosstask", corpus / "crosstask")
    assert summary.kept["annotations"] > 0 and not summary.rejected
    os.mkfifo(corpus / "crosstask/videos.csv.json")
    (corpus / "htstep/taxonomy.csv").unlink()
    (corpus / "htstep/taxonomy.csv").symlink_to(tmp_path / "nowhere")
    assert "file cannot be opened" in bring("htstep", corpus / "htstep").rejected


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bring: Import) -> None:
    (tmp_path / "d/annotations").mkdir(parents=True)
    (tmp_path / "d/tasks_primary.txt").write_text("5\nMake Tea\nurl\n1\nboil water\n")
    real = os.scandir

    def scan(path: str) -> Any:
        if str(path).endswith("annotations"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scan)
    summary = bring("crosstask", tmp_path / "d")
    assert summary.rejected["folder cannot be read"] == 1 and "annotations" in summary.damaged[0]
    assert summary.kept["articles"] == 1


def test_a_corpus_folder_may_have_empty_parts(tmp_path: Path, world_files: Path) -> None:
    shutil.copytree(world_files / "htm-align", tmp_path / "c/htm-align")
    (tmp_path / "c/htstep").mkdir()
    (tmp_path / "c/features").mkdir()
    (tmp_path / "c/features/v.npy").write_bytes(b"")
    report = import_corpus(Job.of(str(tmp_path / "store"), "run-1", ImportSettings(corpus=str(tmp_path / "c"))))
    assert (
        "htstep is empty" in report
        and "has files that are not in a backbone's folder" in report
        and "annotations: " in report
    )


def test_a_corpus_folder_without_sources(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has none of the folders howto100m"):
        import_corpus(Job.of(str(tmp_path / "store"), "run-1", ImportSettings(corpus=str(tmp_path))))
    assert "no corpus folder" in import_corpus(Job.of(str(tmp_path / "store"), "run-1"))
