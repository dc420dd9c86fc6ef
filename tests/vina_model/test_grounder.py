from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from vina_model import Grounder
from vina_model.grounder import WITH_NARRATIONS, WITHOUT_NARRATIONS
from vina_model.presence import EVIDENCE, Presence
from vina_model.text import BagOfWords
from vina_model.vina import Vina, VinaConfig

WORDS = ["chop", "the", "onion", "fry", "it", "so", "now"]
STEPS, NARRATIONS = ["Chop the onion", "Fry it"], ["so now chop it"]
FEATURES = np.random.default_rng(0).standard_normal((50, 12)).astype(np.float32)
SURE = {
    condition: Presence((0.0,) * len(EVIDENCE), (1.0,) * len(EVIDENCE), (0.0,) * len(EVIDENCE), bias)
    for condition, bias in ((WITHOUT_NARRATIONS, 2.0), (WITH_NARRATIONS, -2.0))
}


def make(**changes: object) -> Grounder:
    torch.manual_seed(0)
    config = replace(VinaConfig(video_width=12, width=16, layers=1, heads=2, max_seconds=64), **changes)  # type: ignore[arg-type]
    text = BagOfWords(WORDS, torch.randn(len(WORDS), 8), hidden_width=16, output_width=8)
    return Grounder(Vina(config, text).eval(), SURE, "s3d-milnce", {"frame_px": 224}, "vina@1")


def test_every_step_has_a_segment_within_the_video_and_all_matrices_are_there() -> None:
    found = make().ground(FEATURES, STEPS, NARRATIONS)
    assert [step.text for step in found.steps] == STEPS and found.num_seconds == 50
    assert all(0 <= step.start_s < step.end_s <= 50 for step in found.steps)
    shapes = {name: matrix.shape for name, matrix in found.matrices.items()}
    assert shapes == {"direct": (2, 50), "indirect": (2, 50), "fused": (2, 50), "narrations": (1, 50)}
    mean = (found.matrices["direct"] + found.matrices["indirect"]) / 2
    np.testing.assert_allclose(found.matrices["fused"], mean, atol=1e-6)


def test_presence_is_judged_by_what_was_fitted_with_and_without_narrations() -> None:
    grounder = make()
    without, narrated = (grounder.ground(FEATURES, STEPS, texts).steps for texts in ((), NARRATIONS))
    assert all(step.is_shown and step.presence == pytest.approx(0.8808, abs=1e-4) for step in without)
    assert not any(step.is_shown for step in narrated)
    assert set(grounder.ground(FEATURES, STEPS).matrices) == {"direct"}


def test_a_model_that_was_never_calibrated_does_not_say_whether_a_step_is_shown() -> None:
    found = replace(make(), presence={}).ground(FEATURES, STEPS)
    assert all(step.presence is None and step.is_shown is None for step in found.steps)


def test_a_file_says_the_same_as_what_was_saved_and_runs_no_code(tmp_path: Path) -> None:
    grounder = make()
    torch.save(grounder.saved(), tmp_path / "model.pt")
    again = Grounder.from_checkpoint(tmp_path / "model.pt")
    assert again.ground(FEATURES, STEPS, NARRATIONS).steps == grounder.ground(FEATURES, STEPS, NARRATIONS).steps
    assert (again.backbone, again.made_with, again.name) == ("s3d-milnce", {"frame_px": 224}, "vina@1")


def test_a_student_without_a_place_for_steps_aligns_them_as_narrations() -> None:
    found = make(steps=False).ground(FEATURES, STEPS, NARRATIONS)
    assert found.matrices["direct"].shape == (2, 50) and "fused" not in found.matrices


def test_a_long_video_is_seen_in_windows() -> None:
    found = make().ground(np.tile(FEATURES, (4, 1)), STEPS, NARRATIONS)
    assert found.matrices["fused"].shape == (2, 200) and np.isfinite(found.matrices["fused"]).all()


def test_words_that_it_does_not_know_are_counted() -> None:
    found = make().ground(FEATURES, ["Chop the onion", "Zwiebeln schneiden"])
    assert [step.num_known_words for step in found.steps] == [3, 0]


@pytest.mark.parametrize(
    ("features", "steps", "message"),
    [
        (FEATURES, [], "there are no steps"),
        (FEATURES[:0], STEPS, "at least one second"),
        (FEATURES[0], STEPS, "seconds x numbers"),
        (FEATURES[:, :5], STEPS, "features of 5 numbers: this model takes 12"),
        (np.full_like(FEATURES, np.nan), STEPS, "not finite"),
    ],
)
def test_what_makes_no_sense_is_refused(features: np.ndarray, steps: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make().ground(features, steps)


def test_files_that_are_no_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no checkpoint at"):
        Grounder.from_checkpoint(tmp_path / "none.pt")
    (tmp_path / "text.pt").write_text("hello")
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        Grounder.from_checkpoint(tmp_path / "text.pt")
    torch.save({"weights": torch.zeros(3)}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match="no checkpoint of a VINA"):
        Grounder.from_checkpoint(tmp_path / "other.pt")
