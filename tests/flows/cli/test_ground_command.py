"""`vina ground`: from a video to a table, to files and to a page; and its errors when something is missing."""

import csv
import hashlib
import json
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import torch

from flows.cli.main import main
from storage import Store
from tasks.grounding.video_input import _settings
from tasks.pipeline.job import Job
from tasks.pipeline.run_record import record_run
from tasks.training.model_files import find_model, key, read_model
from tests.trained_store import RUN, video_files
from tests.vina_model.test_grounder import make
from vina_model.grounder import Grounder

Out = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def video_file(trained: Job) -> Path:
    return next(iter(video_files(Store(trained.store)).values()))


def article_id_of(job: Job, video: str) -> str:
    rows = Store(job.store).table("annotations").snapshot().where(benchmark="htstep").read().to_pylist()
    return str(next(row["article_id"] for row in rows if row["video_id"] == video))


def answer(arguments: list[str], capsys: Out) -> dict[str, object]:
    assert main([*arguments, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_from_the_video_to_a_table_and_files(trained: Job, video_file: Path, tmp_path: Path, capsys: Out) -> None:
    article_id = article_id_of(trained, video_file.stem)
    outputs = [tmp_path / f"out.{ending}" for ending in ("json", "csv", "vtt", "html")]
    arguments = ["ground", str(video_file), "--article", article_id, "--store", trained.store, "--device", "cpu"]
    assert main([*arguments, *(word for path in outputs for word in ("--output", str(path)))]) == 0
    shown = capsys.readouterr().out
    steps = json.loads(outputs[0].read_text())["steps"]
    assert len(steps) == len(list(csv.DictReader(outputs[1].open())))
    for step in steps:
        assert step["text"] in shown and 0 <= step["start_s"] < step["end_s"]
    assert ("not shown (" in shown) == any(not step["shown"] for step in steps)
    assert outputs[2].read_text().startswith("WEBVTT\n") and "<video" in outputs[3].read_text()
    assert all(f"written: {path}" in shown for path in outputs)


def test_a_store_that_was_moved_has_its_videos(trained: Job, video_file: Path, tmp_path: Path, capsys: Out) -> None:
    shutil.copytree(trained.store, tmp_path / "first")
    moved = (tmp_path / "first").rename(tmp_path / "moved")
    (address,) = {path for path in video_files(Store(moved)).values() if path.stem == video_file.stem}
    assert address.is_relative_to(moved) and address.is_file()
    article = ["--article", article_id_of(trained, video_file.stem), "--device", "cpu", "--store", str(moved)]
    page = tmp_path / "video.html"
    assert main(["ground", video_file.stem, *article, "--output", str(page)]) == 0
    assert "<video" in page.read_text(), "the page has the file, found by the video's id"
    capsys.readouterr()
    assert answer(["ground", str(address), *article], capsys)["narrations"], "they are those of the file's video"


def test_the_features_are_made_from_the_video(trained: Job, video_file: Path, tmp_path: Path, capsys: Out) -> None:
    """A copy that was not imported gives the same steps as the imported file; stored features differ a little."""
    article_id = article_id_of(trained, video_file.stem)
    copy = tmp_path / "copy.mp4"
    shutil.copyfile(video_file, copy)
    rows = Store(trained.store).table("narrations").snapshot().read().to_pylist()
    rows = [row for row in rows if row["video_id"] == video_file.stem]
    narrations = [{"text": row["text"], "start": row["start_s"], "end": row["end_s"]} for row in rows]
    (tmp_path / "narrations.json").write_text(json.dumps(narrations))
    common = ["--article", article_id, "--store", trained.store, "--device", "cpu"]
    imported = answer(["ground", str(video_file), *common], capsys)
    copied = answer(["ground", str(copy), *common, "--narrations", str(tmp_path / "narrations.json")], capsys)
    by_id = answer(["ground", video_file.stem, *common], capsys)
    assert imported["steps"] == copied["steps"] != by_id["steps"]
    assert imported["seconds"] == copied["seconds"] == by_id["seconds"]


def test_a_models_file_is_enough_without_a_store(trained: Job, video_file: Path, tmp_path: Path, capsys: Out) -> None:
    store = Store(trained.store)
    model = store.objects.download(key(find_model(store)["model_id"]), tmp_path / "model.pt")
    arguments = ["ground", str(video_file), "--steps", "Chop the onion; Fry it", "--checkpoint", str(model)]
    found = answer([*arguments, "--store", str(tmp_path / "none")], capsys)
    assert [step["text"] for step in found["steps"]] == ["Chop the onion", "Fry it"]  # type: ignore[attr-defined]
    assert found["narrations"] == 0 and found["model"] == find_model(store, RUN)["model_id"]


def test_an_article_is_a_file_or_one_of_the_store(
    trained: Job, video_file: Path, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file goes first, an id or a title of the store otherwise; an error names the remedy if there is no store."""
    store, article_id = Store(trained.store), article_id_of(trained, video_file.stem)
    rows = store.table("articles").snapshot().read().to_pylist()
    title = next(row["title"] for row in rows if row["article_id"] == article_id)
    arguments = ["ground", video_file.stem, "--store", trained.store]
    by_id, by_title = (answer([*arguments, "--article", name], capsys) for name in (article_id, title))
    assert by_id["article"] == {"id": article_id, "title": title}
    assert by_title["article"]["title"] == title  # type: ignore[index]
    monkeypatch.chdir(tmp_path)
    Path(title).write_text("# Fry an Onion\nChop it\nFry it\n")
    assert answer([*arguments, "--article", title], capsys)["article"] == {"id": None, "title": "Fry an Onion"}
    model = store.objects.download(key(find_model(store)["model_id"]), tmp_path / "model.pt")
    nowhere = ["--article", "nowhere", "--store", str(tmp_path / "none"), "--checkpoint", str(model)]
    assert main(["ground", str(video_file), *nowhere]) == 1
    assert "there is no file nowhere, and no store to find an article in: give a file" in capsys.readouterr().err


def test_without_an_article_the_vote_proposes_three(trained: Job, video_file: Path, capsys: Out) -> None:
    arguments = ["ground", video_file.stem, "--store", trained.store]
    found = answer(arguments, capsys)
    proposals = found["proposals"]
    assert isinstance(proposals, list) and 1 <= len(proposals) <= 3
    assert found["article"]["id"] == proposals[0]["article_id"]  # type: ignore[index]
    assert main(arguments) == 0
    assert "proposed by the narrations" in capsys.readouterr().out


def test_a_training_checkpoint_works_without_a_calibration(
    trained: Job, video_file: Path, tmp_path: Path, capsys: Out
) -> None:
    store = Store(trained.store)
    checkpoint = store.objects.download(f"checkpoints/{find_model(store)['model_id']}/last.pt", tmp_path / "last.pt")
    arguments = ["ground", video_file.stem, "--steps", "Chop the onion; Xyzzy", "--store", trained.store]
    assert main([*arguments, "--checkpoint", str(checkpoint)]) == 0
    shown = capsys.readouterr().out
    assert (
        "unknown" in shown and "is not calibrated" in shown and "no word is in the model's vocabulary: Xyzzy" in shown
    )


def odd_video(path: Path, num_frames: int) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(12))
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        container.start_encoding()  # a video of no frames has a header too
        for _ in range(num_frames):
            frame = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.mp4", "--steps", "x"], "there is no video file at none.mp4"),
        (["nobody", "--steps", "x"], "there is no file nobody, and no video with that id in the store"),
        (["FOLDER", "--steps", "x"], "it is a folder"),
        (["VIDEO", "--steps", " ; "], "--steps has no steps"),
        (
            ["VIDEO", "--article", "none.txt"],
            "there is no file none.txt, and the store has no article 'none.txt' with steps; the",
        ),
        (["VIDEO", "--article", "FOLDER"], "cannot be read: Is a directory"),
        (["VIDEO", "--article", "Nothing at All"], "the store has no article 'Nothing at All'"),
        (["VIDEO", "--article", "long " * 99], "the store has no article 'long"),
        (["VIDEO", "--steps", "x", "--narrations", "none.srt"], "there is no file of narrations at none.srt"),
        (["VIDEO", "--steps", "x", "--checkpoint", "none.pt"], "there is no checkpoint at none.pt"),
        (["VIDEO", "--steps", "x", "--checkpoint", "run-77"], "no checkpoint file run-77, and no run of that id"),
        (["VIDEO", "--steps", "x", "--checkpoint", "vina@0"], "there is no model vina@0; the models there are: vina@"),
        (["VIDEO", "--steps", "x", "--output", "x.docx"], "must end in .json, .csv, .vtt, .html"),
        (["VIDEO", "--steps", "x", "--output", "no/x.csv"], "there is no folder no"),
        (["VIDEO", "--steps", "x", "--device", "abacus"], "there is no device 'abacus' here"),
        (["VIDEO", "--steps", "x", "--weights", "none.pth"], "there are no weights at none.pth"),
        (["TEXT", "--steps", "x"], "cannot be opened as a video"),
        (["EMPTY", "--steps", "x"], "cannot be opened as a video"),
        (["NOTHING", "--steps", "x"], "nothing.mp4 has no video stream"),
        (["STILL", "--steps", "x"], "still.mkv cannot be opened as a video"),
    ],
)
def test_mistakes_are_named(
    trained: Job, video_file: Path, tmp_path: Path, capsys: Out, arguments: list[str], message: str
) -> None:
    (tmp_path / "text.mp4").write_text("hello")
    (tmp_path / "empty.mp4").write_bytes(b"")
    places = {
        "VIDEO": video_file, "FOLDER": tmp_path, "TEXT": tmp_path / "text.mp4", "EMPTY": tmp_path / "empty.mp4",
        "NOTHING": odd_video(tmp_path / "nothing.mp4", 0), "STILL": odd_video(tmp_path / "still.mkv", 0),
    }  # fmt: skip
    named = [str(places.get(word, word)) for word in arguments]
    assert main(["ground", *named, "--store", trained.store]) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_video_of_less_than_a_second(trained: Job, tmp_path: Path, capsys: Out) -> None:
    path = odd_video(tmp_path / "short.mp4", 3)
    found = answer(["ground", str(path), "--steps", "Chop the onion", "--store", trained.store], capsys)
    assert found["seconds"] == 1


def test_a_store_without_a_model_and_no_store_at_all(video_file: Path, tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "store").mkdir()
    assert main(["ground", str(video_file), "--steps", "x", "--store", str(tmp_path / "store")]) == 1
    assert "has no trained model: make one with `vina run`, or name --checkpoint FILE" in capsys.readouterr().err
    assert main(["ground", str(video_file), "--steps", "x", "--store", str(tmp_path / "none")]) == 1
    assert "there is no checkpoint, and no store to take a model from" in capsys.readouterr().err


def test_a_video_with_neither_steps_nor_narrations(trained: Job, tmp_path: Path, capsys: Out) -> None:
    path = odd_video(tmp_path / "silent.mp4", 30)
    assert main(["ground", str(path), "--store", trained.store]) == 1
    assert "no steps were given, and no narrations that could vote for an article" in capsys.readouterr().err


def test_features_by_other_weights_are_refused(trained: Job, video_file: Path, tmp_path: Path, capsys: Out) -> None:
    """A model whose features were made by weights that are not at hand says so, and which."""
    store = Store(trained.store)
    model = read_model(store, find_model(store)["model_id"], "cpu")
    for made_with, message in (
        ({"weights_sha256": "a" * 64}, "was trained on demo-concepts features with weights aaaaaaaaaaaaaaaa"),
        ({}, None),
    ):
        torch.save(replace(model, made_with=made_with).saved(), tmp_path / "model.pt")
        code = main(["ground", str(video_file), "--steps", "x", "--checkpoint", str(tmp_path / "model.pt")])
        assert code == (1 if message else 0) and (message or "") in capsys.readouterr().err
    torch.save(replace(model, backbone="clip-vit-b-32").saved(), tmp_path / "model.pt")
    assert main(["ground", str(video_file), "--steps", "x", "--checkpoint", str(tmp_path / "model.pt")]) == 1
    assert "the model takes 'clip-vit-b-32' features, which cannot be made here" in capsys.readouterr().err
    torch.save(replace(model, backbone="s3d-milnce", made_with={}).saved(), tmp_path / "model.pt")
    assert main(["ground", str(video_file), "--steps", "x", "--checkpoint", str(tmp_path / "model.pt")]) == 1
    assert "with its trained weights: give their file with --weights" in capsys.readouterr().err


def test_the_python_api_is_three_words(trained: Job, video_file: Path, tmp_path: Path) -> None:
    store = Store(trained.store)
    path = store.objects.download(key(find_model(store)["model_id"]), tmp_path / "model.pt")
    features = np.random.default_rng(0).standard_normal((30, 128))
    found = Grounder.from_checkpoint(path).ground(features, ["Chop the onion"], ["so chop it"])
    assert found.steps[0].presence is not None and found.matrices["fused"].shape == (1, 30)


def test_weights_that_a_run_has_used_are_found_by_their_hash(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for number, content in enumerate((b"these", b"others")):
        path = tmp_path / f"{number}.pth"
        path.write_bytes(content)
        with record_run(store, f"run-{number}", ["features"], {"settings": {"features": {"weights": str(path)}}}):
            pass
    sha256 = hashlib.sha256(b"these").hexdigest()
    model = replace(make(), made_with={"weights_sha256": sha256, "frame_px": 112})
    found = _settings(model, store, None, "cpu")
    assert (found.weights, found.size_px) == (str(tmp_path / "0.pth"), 112)
    (tmp_path / "0.pth").unlink()
    with pytest.raises(ValueError, match="give their file with --weights"):
        _settings(model, store, None, "cpu")
