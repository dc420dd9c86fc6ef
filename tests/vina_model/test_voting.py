"""The nearest title against brute force in float64: exact in any block size, ties included, for all vectors."""

from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vina_model import voting
from vina_model.voting import GROUP, TitleIndex, hub_handicaps

Half = npt.NDArray[np.float16]
BLOCKS = (1, 3, 7, 1000)


def brute_force(titles: Half, sentences: Half, handicaps: npt.NDArray[np.float64] | None = None) -> list[int]:
    """Products of float16 are exact in float64, and so are their sums here: equal is equal. The first of equals."""
    scores = sentences.astype(np.float64) @ titles.astype(np.float64).T
    return [int(np.argmax(row - (0 if handicaps is None else handicaps))) for row in scores]


def unit_vectors(rng: np.random.Generator, count: int, width: int) -> Half:
    vectors = rng.standard_normal((count, width))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)


def nudged(vectors: Half, rng: np.random.Generator) -> Half:
    """The same but for the last bit of one number each."""
    changed, places = vectors.copy(), rng.integers(0, vectors.shape[1], len(vectors))
    rows = np.arange(len(vectors))
    changed[rows, places] = np.nextafter(changed[rows, places], np.float16(0))
    return changed


def nearly_equal(rng: np.random.Generator, count: int, width: int) -> Half:
    """Rows of the same numbers in other orders: their similarities to such a row differ by less than float32 sees."""
    numbers = 1 / np.sqrt(width) * (1 + rng.integers(0, 4, width) / 2**10)
    return np.stack([rng.permutation(numbers) for _ in range(count)]).astype(np.float16)


def crowded(seed: int, count: int, width: int, kind: str) -> Half:
    """Titles among which many are equal, or nearly so."""
    rng = np.random.default_rng(seed)
    if kind == "few values":
        return (rng.integers(-1, 2, (count, width)) / (2 * width)).astype(np.float16)
    if kind == "hair's breadth":
        return nearly_equal(rng, count, width)
    base = unit_vectors(rng, -(-count // 3), width)
    other = {"copies": base, "last bits": nudged(base, rng), "opposites": -base}[kind]
    return rng.permutation(np.concatenate([base, other, base]))[:count]


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 2, 15, 16, 17, 31, 33]),
    width=st.sampled_from([1, 2, 5, 64, 768]),
    kind=st.sampled_from(["few values", "copies", "last bits", "opposites", "hair's breadth"]),
    size=st.sampled_from([0, 1, 2, 8, 20]),
    block=st.sampled_from(BLOCKS),
    handicapped=st.booleans(),
)
@settings(max_examples=250, deadline=None)
def test_the_nearest_title_is_that_of_brute_force(
    seed: int, count: int, width: int, kind: str, size: int, block: int, handicapped: bool
) -> None:
    rng, titles = np.random.default_rng(seed), crowded(seed, count, width, kind)
    near = titles[rng.integers(0, count, size)]
    sentences = np.where(rng.random((size, 1)) < 0.5, near, unit_vectors(rng, size, width)).astype(np.float16)
    sentences[rng.random(size) < 0.1] = 0
    handicaps = np.round(rng.choice([0, 0.1, 0.1001, rng.random()], count), 4) if handicapped else None
    expected = brute_force(titles, sentences, handicaps)
    found = TitleIndex(titles, handicaps_C=handicaps).nearest(sentences, block)
    assert found.rows.tolist() == expected
    exact = np.einsum("nd,nd->n", sentences.astype(np.float64), titles[expected].astype(np.float64))
    assert np.array_equal(found.similarities, exact.astype(np.float32))


@given(seed=st.integers(0, 2**32 - 1), blocks=st.lists(st.sampled_from(BLOCKS), min_size=2, max_size=4))
@settings(max_examples=20, deadline=None)
def test_the_block_size_changes_nothing_even_from_call_to_call(seed: int, blocks: list[int]) -> None:
    rng, titles = np.random.default_rng(seed), crowded(seed, 300, 96, "last bits")
    index, sentences = TitleIndex(titles), unit_vectors(rng, 50, 96)
    first, *others = [index.nearest(sentences, block) for block in blocks]
    for other in others:
        assert np.array_equal(first.rows, other.rows) and np.array_equal(first.similarities, other.similarities)


@given(seed=st.integers(0, 2**32 - 1))
@example(seed=0)
@settings(max_examples=10, deadline=None)
def test_similarities_that_are_all_negative_are_compared_as_such(seed: int) -> None:
    """Padding that stood for zeros would win here."""
    rng = np.random.default_rng(seed)
    titles, sentences = np.abs(unit_vectors(rng, 17, 8)), -np.abs(unit_vectors(rng, 9, 8))
    found = TitleIndex(titles).nearest(sentences)
    assert found.rows.tolist() == brute_force(titles, sentences) and (found.similarities < 0).all()


def test_differences_that_float32_cannot_see_are_seen() -> None:
    """The float32 product alone, ties and all, gets these wrong."""
    rng = np.random.default_rng(3)
    titles, sentences = nearly_equal(rng, 60, 768), nearly_equal(rng, 200, 768)
    expected = brute_force(titles, sentences)
    scores = torch.from_numpy(sentences).float() @ torch.from_numpy(titles).float().T
    right = scores[range(200), expected]
    assert (right < scores.amax(1)).any(), "these vectors show nothing: float32 is enough for them"
    for block in BLOCKS:
        assert TitleIndex(titles).nearest(sentences, block).rows.tolist() == expected


def test_a_title_among_thousands_is_found_at_every_place_of_its_group() -> None:
    titles = unit_vectors(np.random.default_rng(0), 5 * GROUP + 3, 32)
    assert TitleIndex(titles).nearest(titles).rows.tolist() == list(range(len(titles)))


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_the_callers_matmul_precision_neither_counts_nor_changes(precision: str) -> None:
    rng, used = np.random.default_rng(0), []
    titles, sentences = crowded(0, 99, 768, "last bits"), unit_vectors(rng, 40, 768)
    multiply = torch.mm

    def noting(*arguments: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        used.append(torch.get_float32_matmul_precision())
        return multiply(*arguments, out=out)

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        with patch.object(torch, "mm", noting):
            found = TitleIndex(titles).nearest(sentences)
        assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_float32_matmul_precision(before)
    assert found.rows.tolist() == brute_force(titles, sentences) and used == ["highest"]


def test_sentences_that_all_titles_are_equally_near_to_take_the_first_in_little_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """64 x 2,000 candidates, compared some at a time."""
    compared: list[int] = []
    double = torch.Tensor.double

    def noting(tensor: torch.Tensor) -> torch.Tensor:
        compared.append(tensor.numel())
        return double(tensor)

    monkeypatch.setattr(torch.Tensor, "double", noting)
    titles = unit_vectors(np.random.default_rng(0), 2_000, 64)
    found = TitleIndex(titles).nearest(np.zeros((64, 64), np.float16))
    assert found.rows.tolist() == [0] * 64 and max(compared) <= voting.PAIRS * 64


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_refused(wrong: float) -> None:
    rng = np.random.default_rng(0)
    titles, sentences = unit_vectors(rng, 20, 8), unit_vectors(rng, 5, 8)
    sentences[2] = [wrong, -wrong] * 4
    with pytest.raises(ValueError, match="not finite"):
        TitleIndex(titles).nearest(sentences)
    titles[3, 1] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        TitleIndex(titles).nearest(unit_vectors(rng, 5, 8))


@pytest.mark.parametrize("shape", [(0, 8), (3,), (3, 0)])
def test_an_index_of_nothing_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        TitleIndex(np.zeros(shape, np.float16))


def test_a_handicap_costs_a_title_its_votes() -> None:
    titles = np.array([[1, 0], [0.8, 0.6]], np.float16)
    sentences = np.array([[1, 0], [0.8, 0.6]], np.float16)
    handicapped = TitleIndex(titles, handicaps_C=np.array([0.3, 0.0])).nearest(sentences)
    assert TitleIndex(titles).nearest(sentences).rows.tolist() == [0, 1]
    assert handicapped.rows.tolist() == [1, 1]
    assert handicapped.similarities[0] == np.float32(np.float64(np.float16(0.8))), "it is the similarity, not the score"


@given(
    seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1, 9, 10, 11, 40, 2100]), neighbours=st.sampled_from([1, 10])
)
@settings(max_examples=25, deadline=None)
def test_a_handicap_is_half_the_mean_similarity_to_the_nearest_sentences(seed: int, size: int, neighbours: int) -> None:
    rng = np.random.default_rng(seed)
    titles, sample = unit_vectors(rng, 35, 48), unit_vectors(rng, size, 48)
    scores = np.sort(titles.astype(np.float64) @ sample.astype(np.float64).T, axis=1)[:, ::-1]
    expected = np.round(scores[:, :neighbours].mean(1) / 2, 4)
    assert np.array_equal(hub_handicaps(titles, sample, neighbours=neighbours), expected)


def test_handicaps_do_not_depend_on_rounding() -> None:
    """Among many titles some lie where float32 would round the last decimal the other way."""
    rng = np.random.default_rng(1)
    titles, sample = unit_vectors(rng, 200_000, 3), unit_vectors(rng, 1, 3)
    expected = np.round((titles.astype(np.float64) @ sample[0].astype(np.float64)) / 2, 4)
    in_float32 = np.round((titles.astype(np.float32) @ sample[0].astype(np.float32)).astype(np.float64) / 2, 4)
    assert (in_float32 != expected).any(), "these vectors show nothing: float32 is enough for them"
    assert np.array_equal(hub_handicaps(titles, sample), expected)


def test_hubs_cannot_be_told_without_sentences() -> None:
    with pytest.raises(ValueError, match="no sentences"):
        hub_handicaps(np.ones((2, 2), np.float16), np.zeros((0, 2), np.float16))
