import numpy as np
import pytest
import torch

from tests.vina_model import golden
from vina_model.tokenizer import Tokenizer, words


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(golden.vocabulary())


@pytest.fixture
def small() -> Tokenizer:
    return Tokenizer(["stir", "the", "soup", "don't"], expected_words=4)


def test_words() -> None:
    assert words("Don't STIR the soup,twice! (x_1) crème 2.5") == [
        "don't", "stir", "the", "soup", "twice", "x_1", "crème", "2", "5",
    ]  # fmt: skip
    assert words(" ...!") == []


def test_published_numbers(tokenizer: Tokenizer) -> None:
    ids_NL = tokenizer.milnce(golden.answers("s3d_text")["sentences"])
    assert ids_NL.shape == (4, 16) and ids_NL.dtype == torch.int64
    assert [row[:5] for row in ids_NL.tolist()] == [[1, 2, 3, 0, 0], [4, 5, 6, 7, 0], [9, 10, 0, 0, 0], [0] * 5]
    assert ids_NL[:, 5:].sum() == 0
    assert tokenizer.milnce(["word66248"])[0, 0] == 66_249


def test_milnce_drops_unknown_words_and_tan_keeps_their_places(small: Tokenizer) -> None:
    sentences = ["Stir: quickly the SOUP", "don't"]
    assert small.milnce(sentences)[:, :4].tolist() == [[1, 2, 3, 0], [4, 0, 0, 0]]
    assert small.tan(sentences).tolist() == [[1, 0, 2, 3], [4, 0, 0, 0]]


def test_where_they_cut(small: Tokenizer) -> None:
    long = "unknown " + "stir " * 40
    assert small.milnce([long]).tolist() == [[1] * 16]
    assert small.tan([long]).tolist() == [[0] + [1] * 31]


def test_nothing_to_say(small: Tokenizer) -> None:
    assert small.milnce(["", "zzz"]).tolist() == [[0] * 16] * 2
    assert small.tan([""]).tolist() == [[0]]
    assert small.tan(["", "zzz yyy"]).tolist() == [[0, 0], [0, 0]]
    assert small.milnce([]).shape == (0, 16) and small.tan([]).shape == (0, 1)


def test_a_word_listed_twice_has_the_later_number() -> None:
    assert Tokenizer(["salt", "and", "salt"], expected_words=3).tan(["salt and"]).tolist() == [[3, 2]]


def test_an_array_of_words_is_a_vocabulary() -> None:
    vocabulary = np.array(["salt", "pepper"])
    assert Tokenizer(vocabulary, expected_words=2).tan(["pepper salt"]).tolist() == [[2, 1]]


def test_a_vocabulary_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"holds 2 words where the text tower knows 66,249: use the s3d_dict\.npy"):
        Tokenizer(["salt", "pepper"])
