"""The vectors of scenes in a demo world."""

import numpy as np
import pytest

from tasks.demo_world.features import ConceptSpace
from tasks.demo_world.knobs import Knobs
from tasks.demo_world.scenes import FINISHED, PRESENTER, TITLE
from tasks.demo_world.script import World


@pytest.fixture(scope="module")
def concept_space() -> ConceptSpace:
    return ConceptSpace(World(Knobs(), 7))


@pytest.mark.parametrize(
    ("action", "thing", "vector"),
    [
        ("chop", "tomato", [0.908246, -0.147208, 0.144241, -1.173726]),
        ("hang", "lamp", [-0.671322, -0.531583, 0.920667, -1.097004]),
        (PRESENTER, "", [0.176956, -1.043146, -0.558880, 0.753187]),
    ],
)
def test_scenes_keep_their_vectors_when_others_are_added(
    concept_space: ConceptSpace, action: str, thing: str, vector: list[float]
) -> None:
    np.testing.assert_allclose(concept_space.concept(action, thing)[:4], vector, atol=1e-5)


def test_a_title_card_and_a_finished_object_have_vectors_of_their_own(concept_space: ConceptSpace) -> None:
    scenes = [(TITLE, ""), (PRESENTER, ""), (FINISHED, "lamp"), (FINISHED, "tile"), ("hang", "lamp")]
    vectors = np.stack([concept_space.concept(*scene) for scene in scenes])
    distances = np.linalg.norm(vectors[:, None] - vectors, axis=2)
    assert distances[~np.eye(len(scenes), dtype=bool)].min() > np.linalg.norm(vectors, axis=1).mean() / 3
