"""Rows that cannot be used, in every source: each is a reject with its reason and line, the rest is kept."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from tests.tasks.importers.conftest import Import, rejects, rows

NAN = float("nan")


def write(path: Path, text: str | dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def test_howto100m_narrations(tmp_path: Path, bring: Import) -> None:
    good = {"text": ["b &amp; b", " two\tspaces  "], "start": [2, 0.5], "end": [3, 0.5]}
    data = {
        "_good-": good,
        "times": {
            "text": ["a", "b", "c", "d", "e", "f", "kept"],
            "start": [NAN, -1, 5, 1, None, "x", 7],
            "end": [1, 1, 4, float("inf"), 1, 1, 8],
        },
        "texts": {"text": ["", "  ", None, 5, "x" * 20_000, "kept"], "start": [0] * 6, "end": [1] * 6},
        "uneven": {"text": ["a"], "start": [1, 2], "end": [1]},
        "no lists": {"text": "a", "start": 1, "end": 2},
        "columns": {"words": ["a"], "start": [1], "end": [2]},
        "": {"text": ["a"], "start": [1], "end": [2]},
        "y" * 600: {"text": ["a"], "start": [1], "end": [2]},
    }
    text = json.dumps(data)[:-1] + f', "_good-": {json.dumps(good)}}}'
    summary = bring("howto100m", write(tmp_path / "sentencified.json", text))
    kept = [(row["video_id"], row["row"], row["text"], row["start_s"]) for row in rows(tmp_path, "narrations")]
    assert kept == [
        ("_good-", 0, "two spaces", 0.5),
        ("_good-", 1, "b & b", 2),
        ("times", 0, "kept", 7),
        ("texts", 0, "kept", 0),
    ]
    assert dict(summary.rejected) == {
        "time is not a number": 4,
        "negative time": 1,
        "end before start": 1,
        "empty text": 4,
        "text too long": 1,
        "lists of different lengths": 2,
        "wrong columns": 1,
        "empty id": 1,
        "id too long": 1,
        "duplicate id": 1,
    }
    assert all(line == 1 for _, _, line in rejects(tmp_path))


def test_howto100m_raw_captions(tmp_path: Path, bring: Import) -> None:
    captions = {"text": ["take an", "onion. and", "", "cut it"], "start": [0, 1, 2, 9], "end": [3, 5, 3, 2]}
    summary = bring(
        "howto100m", write(tmp_path / "raw_caption.json", {"v": captions, "w": {"text": 1, "start": 1, "end": 1}})
    )
    kept = [(row["row"], row["text"], row["start_s"], row["end_s"]) for row in rows(tmp_path, "narrations")]
    assert [row[1] for row in kept] == ["take an onion.", "and"] and kept[0][3] <= kept[1][2]
    assert dict(summary.rejected) == {"empty text": 1, "end before start": 1, "lists of different lengths": 1}


def test_howto100m_metadata(tmp_path: Path, bring: Import) -> None:
    header = "video_id,category_1,category_2,rank,task_id\n"
    lines = [
        "a,Food &amp; Drink,x,1,5",
        "b,y,z,first,5",
        ",y,z,1,5",
        "c,y",
        'd,"open,z,1,5',
        "a,y,z,1,5",
        "a,y,z,2,6",
        'e,"two ""quotes"", a comma",z,,5',
    ]
    write(tmp_path / "d/HowTo100M_v1.csv", header + "\n".join(lines))
    write(tmp_path / "d/task_ids.csv", "5\tMake Jello Shots1\n6\t\n7\tInstall CS6\n5\tAgain\n")
    bring("howto100m", tmp_path / "d")
    assert sorted(rejects(tmp_path)) == [
        ("6", "empty id or title", 2),
        ("a, howto100m/5", "duplicate id", 7),
        ("b", "rank is not a number", 3),
        ("howto100m/5", "duplicate id", 4),
        ("line 4", "empty id", 4),
        ("line 5", "too few cells", 5),
        ("line 6", "quote never closed", 6),
    ]
    videos = [(row["video_id"], row["article_id"], row["category_1"], row["rank"]) for row in rows(tmp_path, "videos")]
    assert videos == [
        ("a", "howto100m/5", "Food & Drink", 1),
        ("a", "howto100m/6", "y", 2),
        ("e", "howto100m/5", 'two "quotes", a comma', None),
    ]
    articles = [(row["title"], row["variation"]) for row in rows(tmp_path, "articles")]
    assert articles == [("Make Jello Shots", "1"), ("Install CS6", None)]


def test_quotes_that_make_no_sense_cost_their_own_lines(tmp_path: Path, bring: Import) -> None:
    header = "video_id,category_1,category_2,rank,task_id\n"
    lines = [
        "a,x,y,1,5",
        'b,"open,y,1,5',
        "c,x,y,1,5",
        "d,x,y,1,5",
        'e,"open,y,1,5',
        "f,x,y,1,5",
        'g,x"y,y,1,5',
        "h,x,y,1,5",
    ]
    write(tmp_path / "d/HowTo100M_v1.csv", header + "\n".join(lines))
    write(tmp_path / "d/task_ids.csv", '1\tMake a 12" Pizza\n2\tBoil\n3\t"Open\n4\tGood\n5\t"Open too\n')
    summary = bring("howto100m", tmp_path / "d")
    assert [row["video_id"] for row in rows(tmp_path, "videos")] == ["a", "c", "d", "f", "g", "h"]
    assert [(reason, line) for _, reason, line in rejects(tmp_path)] == [
        ("malformed CSV", 3),
        ("malformed CSV", 6),
    ]
    assert summary.read["videos"] == 8 and summary.kept["videos"] == 6
    assert [row["title"] for row in rows(tmp_path, "articles")] == [
        'Make a 12" Pizza',
        "Boil",
        '"Open',
        "Good",
        '"Open too',
    ]


def test_values_that_only_look_like_numbers(tmp_path: Path, bring: Import) -> None:
    header = "video_id,category_1,category_2,rank,task_id\n"
    write(tmp_path / "d/HowTo100M_v1.csv", header + "a,x,y,²,5\nb,x,y,99999999999,5\nc,x,y,3,5\n")
    assert dict(bring("howto100m", tmp_path / "d").rejected) == {"rank is not a number": 2}
    huge = (
        '{"a": {"text": ["x"], "start": [NaN], "end": ['
        + "9" * 5000
        + ']}, "b": {"text": ["x\\ud83d"], "start": [0], "end": [1e39]}}'
    )
    write(tmp_path / "n.json", huge)
    assert dict(bring("howto100m", tmp_path / "n.json").rejected) == {"malformed JSON": 1, "time too large": 1}
    write(tmp_path / "h.json", '{"a": [[1, 0, 1, "half \\ud83d"]], "b": [[1, "1_000", 2, "x"]]}')
    assert dict(bring("htm-align", tmp_path / "h.json").rejected) == {"time is not a number": 1}
    assert [row["text"] for row in rows(tmp_path, "annotations")] == ["half ?"]
    write(tmp_path / "t/tasks_primary.txt", "5\nMake Tea\nurl\n1\nboil water\n")
    write(tmp_path / "t/annotations/5_v.csv", "1,2,5,3,5\n1,1,2\n")
    write(tmp_path / "t/videos.csv", "5,v,url\n5,w,url\n5,x,url\n")
    write(tmp_path / "t/video_durations.json", {"v": "x", "w": -3, "x": 12.5})
    assert dict(bring("crosstask", tmp_path / "t").rejected) == {"too many cells": 1}
    assert [row["duration_s"] for row in rows(tmp_path, "videos", source="crosstask")] == [None, None, 12.5]


def test_files_of_another_encoding(tmp_path: Path, bring: Import) -> None:
    (tmp_path / "task_ids.csv").write_text("1\tCut Wood\n", encoding="utf-16")
    summary = bring("howto100m", tmp_path / "task_ids.csv")
    assert dict(summary.rejected) == {"not UTF-8": 1} and "iconv" in summary.damaged[0]
    (tmp_path / "task_ids.csv").write_bytes(b"1\tCut Wood\r2\tBoil\r")
    assert dict(bring("howto100m", tmp_path / "task_ids.csv").rejected) == {"line ends": 1}


def test_a_file_name_that_is_not_utf8(tmp_path: Path, bring: Import) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    np.save(folder / "good.npy", np.ones((2, 4)))
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.npy")).write_bytes((folder / "good.npy").read_bytes())
    summary = bring("features", folder)
    assert dict(summary.rejected) == {"id is not UTF-8": 1} and summary.kept["features"] == 1


def test_wikihow(tmp_path: Path, bring: Import) -> None:
    whole = (
        "headline,title,text\n"
        '"\nCut &amp; peel.,\nBoil\u00a0it,\n\n,\nServe.",How to Make Soup1,long text\n'
        '"\nOther way.",How to Make Soup2,x\n'
        '"\nTwice.",How to Make Soup1,x\n'
        '"",How to Do Nothing,x\n"\nStep.",,x\n'
    )
    write(tmp_path / "d/wikihowAll.csv", whole)
    write(
        tmp_path / "d/wikihowSep.csv",
        "overview,headline,text,sectionLabel,title\n"
        'o,"\nOther way, said better.",Because.,Steps,How to Make Soup2\n'
        'o,"\n,",Empty.,Steps,How to Make Soup2\n',
    )
    bring("wikihow", tmp_path / "d")
    steps = [(row["article_id"], row["row"], row["headline"], row["paragraph"]) for row in rows(tmp_path, "steps")]
    assert steps == [
        ("wikihow/Make-Soup-method-2", 0, "Other way, said better.", "Because."),
        ("wikihow/Make-Soup-method-1", 0, "Cut & peel.", None),
        ("wikihow/Make-Soup-method-1", 1, "Boil it", None),
        ("wikihow/Make-Soup-method-1", 2, "Serve.", None),
    ]
    assert sorted((reason, line) for _, reason, line in rejects(tmp_path)) == [
        ("duplicate id", 10),
        ("empty or overlong headline", 2),
        ("empty or overlong title", 13),
        ("no steps", 12),
    ]


def test_crosstask(tmp_path: Path, bring: Import) -> None:
    folder = tmp_path / "d"
    write(
        folder / "tasks_primary.txt",
        "5\nMake Tea\nurl\n2\nboil water,add_tea &amp; sugar\n\n6\nBroken\nurl\n3\na,b\n\n7\nShort\n\n",
    )
    write(folder / "videos.csv", "5,_-a,url\n5,_-a,url\n9,b,url\n5\n,c,url\n")
    write(folder / "videos_val.csv", "5,_-a,url\n")
    segments = ["1,2.5,3.5", "2,1,1", "3,1,2", "1,nan,2", "1,-1,2", "1,4,3", "1,x,2", "1,2", "x,1,2", "2,9000,9001"]
    write(folder / "annotations/5__-a.csv", "\n".join(segments))
    write(folder / "annotations/9_b.csv", "1,2,3")
    write(folder / "annotations/noname.csv", "1,2,3")
    bring("crosstask", folder)
    kept = [(r["video_id"], r["step_id"], r["text"], r["start_s"], r["split"]) for r in rows(tmp_path, "annotations")]
    assert kept == [
        ("_-a", "1", "boil water", 2.5, "validation"),
        ("_-a", "2", "add tea & sugar", 1, "validation"),
        ("_-a", "2", "add tea & sugar", 9000, "validation"),
    ]
    assert sorted((reason, item, line) for item, reason, line in rejects(tmp_path) if line) == [
        ("duplicate id", "_-a, crosstask/5", 2),
        ("empty id", "line 5", 5),
        ("end before start", "_-a", 6),
        ("malformed task", "6", 7),
        ("malformed task", "7", 13),
        ("negative time", "_-a", 5),
        ("time is not a number", "_-a", 4),
        ("time is not a number", "_-a", 7),
        ("too few cells", "line 4", 4),
        ("too few cells", "line 8", 8),
        ("unknown step", "_-a", 3),
        ("unknown step", "_-a", 9),
        ("unknown task", "b", 3),
    ]
    assert sorted(item for item, reason, line in rejects(tmp_path) if line is None) == ["9_b", "noname"]


def test_crosstask_in_two_parts(tmp_path: Path, bring: Import) -> None:
    """Annotations find tasks that came with an earlier import; without any they say what is missing."""
    write(tmp_path / "b/annotations/5_v.csv", "2,1,2")
    summary = bring("crosstask", tmp_path / "b")
    assert dict(summary.rejected) == {"unknown task": 1} and "`unlisted`" in summary.notes[0]
    write(tmp_path / "a/tasks_primary.txt", "5\nMake Tea\nurl\n2\nboil water,add tea\n")
    bring("crosstask", tmp_path / "a")
    assert bring("crosstask", tmp_path / "b").kept["annotations"] == 1
    assert rejects(tmp_path) == [] and rows(tmp_path, "annotations")[0]["text"] == "add tea"


def test_crosstask_validation_videos_stay_so_in_parts(tmp_path: Path, bring: Import) -> None:
    write(tmp_path / "a/tasks_primary.txt", "5\nMake Tea\nurl\n1\nboil water\n")
    write(tmp_path / "a/videos.csv", "5,v,url\n5,w,url\n")
    write(tmp_path / "a/videos_val.csv", "5,v,url\n")
    bring("crosstask", tmp_path / "a")
    for video in ("v", "w"):
        write(tmp_path / f"b/annotations/5_{video}.csv", "1,1,2")
    bring("crosstask", tmp_path / "b/annotations")
    splits = {row["video_id"]: row["split"] for row in rows(tmp_path, "annotations")}
    assert splits == {"v": "validation", "w": "test"}


def test_htstep_in_parts_has_one_row_a_video(tmp_path: Path, corpus: Path, bring: Import) -> None:
    for name in ("video_splits.json", "annotations.json", "taxonomy.csv"):
        bring("htstep", corpus / "htstep" / name)
    bring("htstep", corpus / "htstep")
    assert len(rows(tmp_path, "videos")) == 20 and len(rows(tmp_path, "annotations")) > 20


def test_htstep(tmp_path: Path, bring: Import) -> None:
    folder = tmp_path / "d"
    write(
        folder / "taxonomy.csv",
        "global_step_index,activity,step_index,variation,variation_index,headline,paragraph\n"
        "10,Make Tea,1,none,2,Same.,\n3,Make Tea,0,none,1,Same.,Why &amp; how\n3,Make Tea,2,none,3,Twice.,\n"
        "x,Make Tea,2,none,3,Bad.,\n40,Make Tea,0,Cold Tea,A1,Cool it.,\n41,,0,none,1,Nobody.,\n",
    )
    segments = [
        {"segment": [1, 2], "id": 10},
        {"segment": [1, 2], "id": 11},
        {"segment": [3, 2], "id": 3},
        {"segment": [-1, 2], "id": 3},
        {"segment": [None, 2], "id": 3},
        {"segment": [1], "id": 3},
        {"id": 3},
        "odd",
        {"segment": [9999, 10000], "id": "3"},
    ]
    write(folder / "annotations.json", {"v": {"subset": "val_seen", "annotations": segments}, "w": {"annotations": 1}})
    write(folder / "video_splits.json", {"train": ["a", "v"], "val": ["a", "b"], "odd": [1], "odder": "x"})
    summary = bring("htstep", folder)
    kept = [(row["step_id"], row["text"], row["start_s"], row["split"]) for row in rows(tmp_path, "annotations")]
    assert kept == [("10", "Same.", 1, "val_seen"), ("3", "Same.", 9999, "val_seen")]
    steps = [(row["article_id"], row["row"], row["step_id"], row["paragraph"]) for row in rows(tmp_path, "steps")]
    assert steps == [
        ("htstep/Make Tea", 0, "3", "Why & how"),
        ("htstep/Make Tea", 1, "10", None),
        ("htstep/Make Tea/Cold Tea", 0, "40", None),
    ]
    assert dict(summary.rejected) == {
        "duplicate id": 2,
        "malformed step": 2,
        "malformed split": 1,
        "empty id": 1,
        "unknown step": 2,
        "end before start": 1,
        "negative time": 1,
        "time is not a number": 1,
        "malformed segment": 2,
        "wrong columns": 1,
    }
    assert sorted(row["video_id"] for row in rows(tmp_path, "videos")) == ["a", "b", "v"]


def test_coin(tmp_path: Path, bring: Import) -> None:
    good = {"id": "10", "segment": [1, 2.5], "label": " add &amp; stir "}
    annotations = [
        good,
        {"id": 9, "segment": [3, 4], "label": "boil"},
        {"id": "10", "segment": [5, 6], "label": "another label"},
        {"id": "x", "segment": [1, 2], "label": "boil"},
        {"id": "11", "segment": [1, 2], "label": " "},
        {"id": "11", "segment": [1, 2]},
        {"id": "9", "segment": [1], "label": "boil"},
        {"id": "9", "segment": [4, 3], "label": "boil"},
        {"id": "9", "segment": ["x", 3], "label": "boil"},
        "odd",
    ]
    database = {
        "v": {"class": "MakeTeaWithUSBKettle", "subset": "training", "duration": 9, "annotation": annotations},
        "no split": {"class": "MakeTeaWithUSBKettle", "duration": -1, "annotation": [good]},
        "nothing shown": {"class": "MakeTeaWithUSBKettle", "subset": "testing", "annotation": []},
        "": {"class": "MakeTeaWithUSBKettle", "annotation": []},
        "no class": {"annotation": [good]},
        "no list": {"class": "MakeTea", "annotation": 1},
        "no object": 1,
    }
    summary = bring("coin", write(tmp_path / "COIN.json", {"database": database, "version": "1.0"}))
    kept = [(r["video_id"], r["step_id"], r["text"], r["start_s"], r["split"]) for r in rows(tmp_path, "annotations")]
    assert kept == [
        ("v", "10", "add & stir", 1, "training"),
        ("v", "9", "boil", 3, "training"),
        ("no split", "10", "add & stir", 1, "unknown"),
    ]
    (article,) = rows(tmp_path, "articles")
    assert (article["article_id"], article["title"]) == ("coin/MakeTeaWithUSBKettle", "Make Tea With USB Kettle")
    steps = [(row["row"], row["step_id"], row["headline"]) for row in rows(tmp_path, "steps")]
    assert steps == [(0, "9", "boil"), (1, "10", "add & stir")]
    videos = [(row["video_id"], row["split"], row["duration_s"]) for row in rows(tmp_path, "videos")]
    assert videos == [("v", "training", 9), ("no split", "unknown", None), ("nothing shown", "testing", None)]
    assert dict(summary.rejected) == {
        "malformed step": 4,
        "malformed segment": 1,
        "unknown step": 1,
        "end before start": 1,
        "time is not a number": 1,
        "wrong columns": 4,
        "empty id": 1,
    }


def test_coin_steps_that_a_stored_article_lacks_are_rejected(tmp_path: Path, bring: Import) -> None:
    def video(*ids: int) -> dict[str, Any]:
        shown = [{"id": str(step), "segment": [step, step + 1], "label": f"label {step}"} for step in ids]
        return {"class": "MakeTea", "subset": "testing", "duration": 20, "annotation": shown}

    bring("coin", write(tmp_path / "part/COIN.json", {"database": {"a": video(1, 3)}}))
    summary = bring("coin", write(tmp_path / "COIN.json", {"database": {"a": video(1, 3), "b": video(2, 3)}}))
    assert [row["step_id"] for row in rows(tmp_path, "steps")] == ["1", "3"]
    assert [(row["video_id"], row["step_id"]) for row in rows(tmp_path, "annotations")] == [
        ("a", "1"),
        ("a", "3"),
        ("b", "3"),
    ]
    (reject,) = rows(tmp_path, "rejects")
    assert dict(summary.rejected) == {"unknown step": 1}
    assert reject["item"] == "b" and "`vina forget coin`" in reject["detail"]


def test_htm_align(tmp_path: Path, bring: Import) -> None:
    narrations: list[Any] = [
        [1, 2, 3, "a &lt; b"],
        [0, NAN, -5, "chat"],
        [1, NAN, 2, "x"],
        [1, 3, 2, "x"],
        [1, -1, 2, "x"],
    ]
    narrations += [[1, 2, 3, ""], [2, 1, 2, "x"], [1, 2, "x"], "odd", [1, 2, 3, 4]]
    path = write(tmp_path / "htm_align.json", {"v": narrations})
    summary = bring("htm-align", path)
    kept = [
        (row["narration_row"], row["text"], row["alignable"], row["start_s"]) for row in rows(tmp_path, "annotations")
    ]
    assert kept == [(0, "a < b", True, 2), (1, "chat", False, None)]
    assert dict(summary.rejected) == {
        "time is not a number": 1,
        "end before start": 1,
        "negative time": 1,
        "empty text": 1,
        "malformed narration": 4,
    }


def test_youwikihow(tmp_path: Path, bring: Import) -> None:
    text = {
        "simplified_headline_list": ["A &amp; b.", "A &amp; b.", "C."],
        "simplified_article_list": ["x"],
        "head2sent": {"2": [0, 7]},
    }
    segments = [
        ("1", "1", "2"),
        ("2", "3", "4"),
        ("3", "5", "6"),
        ("4", "5", "6"),
        ("1", "x", "6"),
        ("1", "7", "6"),
        ("0", "7", "8"),
    ]
    task = {
        "task_full_name": "How to Do It2",
        "task_text": text,
        "task_video": ["v", "v", ""],
        "video_duration": {"v": "long"},
        "step2headline": ["0", "_", "1/2", "9"],
        "crosstask_annotations": {
            "v": [dict(zip(("step_id", "step_s", "step_e"), s, strict=True)) for s in segments],
            "w": 5,
        },
    }
    odd = {"task_full_name": "x", "task_text": {"simplified_headline_list": ["", "b"]}}
    write(tmp_path / "d/crosstask_test.json", {"5": task, "105222": task, "6": odd, "7": {"task_full_name": 3}})
    (tmp_path / "d/wikihow_data.pkl").write_bytes(pickle.dumps({}))
    summary = bring("youwikihow", tmp_path / "d")
    kept = [
        (r["step_id"], r["start_s"], r["split"])
        for r in rows(tmp_path, "annotations")
        if r["article_id"].endswith("/5")
    ]
    assert kept == [("0", 1, "test"), (None, 3, "test"), ("1", 5, "test"), ("2", 5, "test")]
    assert {row["split"] for row in rows(tmp_path, "annotations")} == {"test", "excluded"}
    assert [row["paragraph"] for row in rows(tmp_path, "steps")][:3] == [None, None, "x"]
    assert dict(summary.rejected) == {
        "pickle is not read": 1,
        "duplicate id": 2,
        "empty id": 2,
        "unknown step": 6,
        "time is not a number": 2,
        "end before start": 2,
        "empty headline": 1,
        "wrong columns": 1,
    }
    assert "json.dump(pickle.load" in summary.damaged[0]
