"""Every file of every source, damaged as files of users are: a clear reject, and the others kept."""

import codecs
import json
import os
import shutil
from pathlib import Path
from tempfile import mkdtemp

import pytest

from storage import Store
from tasks.importers.sources import SOURCES, import_source
from tests.tasks.importers.conftest import Import, rejects, rows

TEXT = {
    "howto100m": ("HowTo100M_v1.csv", "task_ids.csv", "sentencified_htm.json"),
    "wikihow": ("wikihowAll.csv", "wikihowSep.csv"),
    "crosstask": ("tasks_primary.txt", "tasks_related.txt", "videos.csv", "videos_val.csv", "annotations/*.csv"),
    "htstep": ("taxonomy.csv", "annotations.json", "video_splits.json"),
    "coin": ("COIN.json",),
    "htm-align": ("htm_align.json",),
    "youwikihow": ("crosstask_test.json",),
    "videos": ("*.srt",),
}
FILES = [(source, name) for source, names in TEXT.items() for name in names]
ALL_FILES = [*FILES, ("videos", "*.mp4"), ("features", "*.npy")]
JSON_FILES = [(source, name) for source, name in FILES if name.endswith(".json")]
WITH_HEADER = [
    ("howto100m", "HowTo100M_v1.csv"),
    ("wikihow", "wikihowAll.csv"),
    ("wikihow", "wikihowSep.csv"),
    ("htstep", "taxonomy.csv"),
]


def the_file(corpus: Path, source: str, name: str) -> Path:
    return sorted((corpus / source).glob(name))[0]


def content(store: Path) -> dict[str, str]:
    """Every table's content, by name: equal rows have equal hashes."""
    tables = (table for table in Store(store).tables() if table.name != "rejects")
    return {table.name: table.snapshot().content_version for table in tables}


def other_rows_are_kept(corpus: Path, bring: Import, source: str, reason: str, path: Path) -> None:
    summary = bring(source, corpus / source)
    assert reason in summary.rejected
    found = [row for row in rows(corpus.parent, "rejects") if row["reason"] == reason]
    assert found and all(row["file"] == str(path) for row in found)
    assert str(path) in str(found[0]["detail"]) or found[0]["item"] == path.name
    if len(list((corpus / source).rglob("*.*"))) > 1:
        assert summary.kept


def test_the_list_has_every_source() -> None:
    assert {source for source, _ in ALL_FILES} | {"texts"} == set(SOURCES)  # which are tested with their baselines


@pytest.mark.parametrize(("source", "name"), ALL_FILES)
def test_empty_file(corpus: Path, bring: Import, source: str, name: str) -> None:
    path = the_file(corpus, source, name)
    path.write_bytes(b"")
    reason = {".mp4": "not a video", ".npy": "not an array"}.get(path.suffix, "empty file")
    other_rows_are_kept(corpus, bring, source, reason, path)


@pytest.mark.parametrize(("source", "name"), FILES)
def test_a_folder_in_place_of_a_file(corpus: Path, bring: Import, source: str, name: str) -> None:
    path = the_file(corpus, source, name)
    path.unlink()
    path.mkdir()
    if path.suffix == ".srt":  # any name may be a folder's there
        assert bring(source, corpus / source).kept
    else:
        other_rows_are_kept(corpus, bring, source, "a folder in place of a file", path)


@pytest.mark.parametrize(("source", "name"), ALL_FILES)
def test_no_permission(world_files: Path, source: str, name: str) -> None:
    """As a user who is not root, for root may read everything."""
    folder = Path(mkdtemp(prefix="vina-permission-"))
    try:
        shutil.copytree(world_files / source, folder / "corpus" / source)
        path = sorted((folder / "corpus" / source).rglob(name))[0]
        for place in (folder, *folder.rglob("*")):
            place.chmod(0o777)
        path.chmod(0)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)
        try:
            summary = import_source(Store(folder / "store"), "run-1", source, folder / "corpus" / source)
        finally:
            if is_root:
                os.seteuid(0)
        found = [row for row in rows(folder, "rejects") if "ermission denied" in row["detail"]]
        assert [row["file"] for row in found] == [str(path)]
        assert summary.kept or len(list((folder / "corpus" / source).rglob("*.*"))) == 1
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(("source", "name"), FILES)
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(
    corpus: Path, bring: Import, tmp_path: Path, source: str, name: str
) -> None:
    bring(source, corpus / source)
    assert rejects(tmp_path) == []
    before = content(tmp_path / "store")
    for path in sorted((corpus / source).glob(name)):
        plain = path.read_bytes().replace(b"\r\n", b"\n")
        path.write_bytes(codecs.BOM_UTF8 + plain.replace(b"\n", b"\r\n"))
    other = Store(tmp_path / "other")
    assert import_source(other, "run-1", source, corpus / source).rejected.total() == 0
    assert content(tmp_path / "other") == before


@pytest.mark.parametrize(("source", "name"), JSON_FILES)
@pytest.mark.parametrize("share", [0.1, 0.6, 0.999])
def test_truncated_json(corpus: Path, bring: Import, tmp_path: Path, source: str, name: str, share: float) -> None:
    path = the_file(corpus, source, name)
    whole = path.read_bytes()
    cut = whole[: int(len(whole.rstrip()) * share)]
    path.write_bytes(cut)
    summary = bring(source, corpus / source)
    (row,) = rows(tmp_path, "rejects")
    assert row["reason"] == "malformed JSON" and row["line"] == cut.count(b"\n") + 1 and len(summary.damaged) == 1
    assert str(path) in summary.damaged[0] and "line" in summary.damaged[0]
    if name == "sentencified_htm.json":
        complete = list(json.loads(whole).items())[: cut.count(b"]}")]
        spoken = [video_id for video_id, value in complete if value["text"]]
        assert sorted({row["video_id"] for row in rows(tmp_path, "narrations")}) == sorted(spoken)


@pytest.mark.parametrize(("source", "name"), JSON_FILES)
@pytest.mark.parametrize(
    "text", ["[1, 2]", '"text"', "not json at all", "\x00\x01", "{", '{"a"', '{"a": }', '{"a": 1 "b": 2}']
)
def test_no_json(corpus: Path, bring: Import, tmp_path: Path, source: str, name: str, text: str) -> None:
    path = the_file(corpus, source, name)
    path.write_text(text)
    summary = bring(source, path)
    assert summary.rejected.total() >= 1 and not summary.kept and len(rows(tmp_path, "rejects")) >= 1


@pytest.mark.parametrize(("source", "name"), JSON_FILES)
def test_entries_of_another_form(corpus: Path, bring: Import, tmp_path: Path, source: str, name: str) -> None:
    path = the_file(corpus, source, name)
    data = json.loads(path.read_text())
    odd = {
        "number": 1,
        "nothing": None,
        "text": "x",
        "object": {"x": 1},
        "list": [[1, 2], {"a": 1}, None, "x"],
        "truth": True,
    }
    path.write_text(json.dumps(odd | data))
    expected = bring(source, path).kept
    assert {item for item, _, _ in rejects(tmp_path)} >= {"number", "nothing", "text", "object", "truth"}
    assert expected.total() > 0


@pytest.mark.parametrize(("source", "name"), WITH_HEADER)
def test_wrong_columns(corpus: Path, bring: Import, tmp_path: Path, source: str, name: str) -> None:
    path = the_file(corpus, source, name)
    _, _, rest = path.read_text().partition("\n")
    path.write_text("these,are,other\n" + rest)
    bring(source, path)
    (row,) = rows(tmp_path, "rejects")
    assert row["reason"] == "wrong columns" and row["line"] == 1
    assert "has no column" in row["detail"] and "these, are, other" in row["detail"]


@pytest.mark.slow
@pytest.mark.parametrize(("source", "name"), FILES)
def test_a_line_of_100_megabytes(corpus: Path, bring: Import, tmp_path: Path, source: str, name: str) -> None:
    path = the_file(corpus, source, name)
    before = path.read_text()
    long = "x" * 100_000_000
    if path.suffix == ".json":
        data = json.loads(before)
        key = next(iter(data))
        path.write_text(f'{{"{long}": {json.dumps(data[key])}, "{key}-2": "{long}",' + before.lstrip()[1:])
    elif name == "annotations/*.csv" or path.suffix == ".srt":
        path.write_text(before + f"\n\n{long}\n")
    else:
        first, end, rest = before.partition("\n")
        path.write_text(
            first + end + (f"{long}\n" if source != "crosstask" or ".csv" in name else "") + rest + f"\n{long}"
        )
    summary = bring(source, corpus / source)
    assert summary.kept and summary.rejected
    assert max(len(str(row)) for row in rows(tmp_path, "rejects")) < 10_000
    if path.suffix != ".json":
        assert summary.rejected["line too long"] >= 1


@pytest.mark.parametrize(("source", "name"), FILES)
def test_bytes_that_are_not_utf8(corpus: Path, bring: Import, tmp_path: Path, source: str, name: str) -> None:
    path = the_file(corpus, source, name)
    path.write_bytes(path.read_bytes().rstrip()[:-1] + b"\xff\xfe" + path.read_bytes().rstrip()[-1:])
    summary = bring(source, corpus / source)
    assert summary.rejected.total() >= 1 and rows(tmp_path, "rejects")


@pytest.mark.parametrize("source", list(SOURCES))
def test_nothing_there(tmp_path: Path, bring: Import, source: str) -> None:
    with pytest.raises(ValueError, match="there is nothing at"):
        bring(source, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/unrelated.txt").write_text("hello")
    with pytest.raises(ValueError, match=rf"nothing to import at .*empty: {source} knows "):
        bring(source, tmp_path / "empty")


def test_a_video_in_a_folder_whose_name_is_not_utf8(corpus: Path, bring: Import, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(corpus / "videos") + b"/caf\xe9"))
    odd.mkdir()
    shutil.copy(the_file(corpus, "videos", "*.mp4"), odd / "odd.mp4")
    summary = bring("videos", corpus / "videos")
    assert summary.rejected["path is not UTF-8"] == 1 and summary.kept["videos"] >= 1
    assert ("odd.mp4", "path is not UTF-8", None) in rejects(tmp_path)
    assert "odd" not in {row["video_id"] for row in rows(tmp_path, "videos")}
