"""Sentences to word ids, as the text towers of S3D and TAN were trained: words of one dictionary, numbered from 1.

Chosen: both published variants in one class, because they read the same dictionary. They differ in what an unknown
word costs: MIL-NCE drops it, so later words move up; TAN keeps its position as 0.
"""

# N sentences, L words of a sentence.

import re
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

VOCABULARY_SIZE = 66_249
MILNCE_WORDS, TAN_WORDS = 16, 32
WORD = re.compile(r"[\w']+")


def words(sentence: str) -> list[str]:
    """Return the words of a sentence in lower case: runs of letters, digits, underscores and apostrophes."""
    return WORD.findall(sentence.lower())


class Tokenizer:
    """Numbers words by their position in the dictionary, from 1; 0 is padding and the unknown word.

    A word that is listed twice has the later number, as in the published code.
    """

    def __init__(self, vocabulary: Sequence[str], expected_words: int = VOCABULARY_SIZE) -> None:
        """A dictionary of another size than the weights expect would silently give wrong ids, so it is refused."""
        if len(vocabulary) != expected_words:
            raise ValueError(
                f"the vocabulary holds {len(vocabulary):,} words where the text tower knows {expected_words:,}: "
                "use the s3d_dict.npy published with the weights"
            )
        self._ids = {str(word): number for number, word in enumerate(vocabulary, start=1)}

    def milnce(self, sentences: Iterable[str]) -> Tensor:
        """Return N x 16 ids of the known words alone, cut or padded with 0."""
        rows = ([self._ids[word] for word in words(sentence) if word in self._ids] for sentence in sentences)
        return padded([ids[:MILNCE_WORDS] for ids in rows], MILNCE_WORDS)

    def tan(self, sentences: Iterable[str]) -> Tensor:
        """Return N x L ids of the first 32 words, unknown ones 0, padded with 0 to the longest sentence (L >= 1).

        The tower masks the zeros, so its output does not depend on L.
        """
        rows = [[self._ids.get(word, 0) for word in words(sentence)[:TAN_WORDS]] for sentence in sentences]
        return padded(rows, max((len(row) for row in rows), default=1) or 1)


def padded(rows: Sequence[Sequence[int]], length: int) -> Tensor:
    """Return rows of ids as one N x `length` tensor, padded with zeros."""
    ids_NL = torch.zeros(len(rows), length, dtype=torch.int64)
    for number, row in enumerate(rows):
        ids_NL[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
    return ids_NL
