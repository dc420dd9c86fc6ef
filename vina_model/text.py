"""The text encoder that VINA trains: a bag of words on Word2Vec vectors, with the vocabulary in its state dict.

Word vectors come from the MIL-NCE checkpoint, from any gensim KeyedVectors, or from training on the corpus's own
sentences. Chosen: each distinct word of a batch goes through the hidden layer once, and the maximum is taken without
spelling out N x L x K: 5 times faster at 800 sentences on a CPU, 9 times with gradients. Costs: a GPU waits for the
count of distinct words, and its gradients may vary in the last bits from run to run.
"""

# N sentences, L words of a sentence, U distinct words of a batch, V words of the vocabulary, W = 300 numbers of a word
# vector, K = 2048 hidden units, E = 512 dimensions of the embedding.

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vina_model.s3d_text import HIDDEN_WIDTH, JOINT_WIDTH
from vina_model.tokenizer import Tokenizer, words

if TYPE_CHECKING:
    from gensim.models import KeyedVectors

VOCABULARY_KEY = "_extra_state"  # PyTorch's name for what get_extra_state returns


class BagOfWords(nn.Module):
    """Embeds each known word, one hidden layer with ReLU, the maximum over the words, a projection.

    Its parameters have the names of the MIL-NCE text tower. Padding and unknown words never take part; a sentence with
    no known word has hidden units of 0, so its embedding is the bias of the projection.
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        vectors_VW: Tensor,
        hidden_width: int = HIDDEN_WIDTH,
        output_width: int = JOINT_WIDTH,
        word_dropout: float = 0.0,
    ) -> None:
        """The vectors are copied, in the order of the vocabulary; the other layers are drawn by torch's generator.

        In training mode each word is left out with the probability `word_dropout`, but never all of a sentence.
        """
        super().__init__()
        _check_vectors(vocabulary, vectors_VW)
        if not 0 <= word_dropout < 1:
            raise ValueError(f"word_dropout is a probability of at least 0 and less than 1, not {word_dropout}")
        self.word_dropout = word_dropout
        table_VW = F.pad(vectors_VW.detach().float(), (0, 0, 1, 0))  # a first row for padding, number 0
        self.word_embd = nn.Embedding(len(table_VW), vectors_VW.shape[1], padding_idx=0, _weight=table_VW)
        self.fc1 = nn.Linear(vectors_VW.shape[1], hidden_width)
        self.fc2 = nn.Linear(hidden_width, output_width)
        self._set_vocabulary(vocabulary)
        self.register_load_state_dict_pre_hook(_refuse_another_size)  # type: ignore[no-untyped-call]

    def forward(self, ids_NL: Tensor) -> Tensor:
        """Embed the ids of `tokenizer.tan`, N x L, L >= 1, as N x E. Id 0 is ignored wherever it is."""
        if ids_NL.dim() != 2 or ids_NL.shape[1] == 0 or ids_NL.is_floating_point():
            shown = f"{ids_NL.dtype} {list(ids_NL.shape)}"
            raise ValueError(f"ids must be integers N x L, L >= 1, not {shown}: make them with `tokenizer`")
        if self.training and self.word_dropout:
            ids_NL = drop_words(ids_NL, self.word_dropout)
        ids_U, rows_NL = torch.unique(ids_NL, return_inverse=True)
        if ids_U.numel() and not 0 <= int(ids_U[0]) <= int(ids_U[-1]) <= len(self.vocabulary):
            shown = f"{int(ids_U[0])} to {int(ids_U[-1])}, not 0 to {len(self.vocabulary)}"
            raise ValueError(f"ids range from {shown}: make them with this encoder's own `tokenizer`")
        hidden_UK = F.relu(self.fc1(self.word_embd(ids_U)))
        hidden_UK = hidden_UK.masked_fill((ids_U == 0)[:, None], 0)  # the least that ReLU gives: never wins
        return self.fc2(F.embedding_bag(rows_NL, hidden_UK, mode="max"))

    @classmethod
    def from_state(cls, state: Mapping[str, Any], prefix: str = "", word_dropout: float = 0.0) -> Self:
        """Read an encoder from its `state_dict`, or from a larger model's, where its names have a prefix ("text.")."""
        tensors = _read_state(state, prefix)
        hidden_width, output_width = len(tensors["fc1.bias"]), len(tensors["fc2.bias"])
        vocabulary, vectors_VW = _unpack(tensors[VOCABULARY_KEY]), tensors["word_embd.weight"][1:]
        encoder = cls(vocabulary, vectors_VW, hidden_width, output_width, word_dropout)
        encoder.load_state_dict(tensors)
        return encoder

    @classmethod
    def from_milnce(
        cls, state: Mapping[str, Any], vocabulary: Sequence[str], prefix: str = "", word_dropout: float = 0.0
    ) -> Self:
        """Read MIL-NCE's text tower ("text_module." in its checkpoint) or TAN's copy ("bert."), with its dictionary."""
        return cls.from_state({**state, prefix + VOCABULARY_KEY: _pack(vocabulary)}, prefix, word_dropout)

    @classmethod
    def from_keyed_vectors(
        cls,
        vectors: "KeyedVectors",
        hidden_width: int = HIDDEN_WIDTH,
        output_width: int = JOINT_WIDTH,
        word_dropout: float = 0.0,
    ) -> Self:
        """Take word vectors of gensim; the other layers are random.

        Keys that the tokenizer never produces (capitals, hyphens, spaces) are left out.
        """
        rows = [row for row, word in enumerate(vectors.index_to_key) if words(word) == [word]]
        vocabulary = [vectors.index_to_key[row] for row in rows]
        vectors_VW = torch.from_numpy(np.asarray(vectors.vectors[rows], dtype=np.float32))
        return cls(vocabulary, vectors_VW, hidden_width, output_width, word_dropout)

    def get_extra_state(self) -> Tensor:
        """Return the vocabulary for the state dict: a tensor, so that any tool can carry it."""
        return _pack(self.vocabulary)

    def set_extra_state(self, state: Tensor) -> None:
        """Take over the vocabulary of the vectors that were just loaded."""
        self._set_vocabulary(_unpack(state))

    def _set_vocabulary(self, vocabulary: Sequence[str]) -> None:
        self.vocabulary = tuple(str(word) for word in vocabulary)
        self.tokenizer = Tokenizer(self.vocabulary, expected_words=len(self.vocabulary))


def drop_words(ids_NL: Tensor, probability: float) -> Tensor:
    """Set each id to 0 with this probability; one word of each sentence, drawn at random, always stays."""
    draws_NL = torch.rand(ids_NL.shape, device=ids_NL.device).masked_fill(ids_NL == 0, -1)
    stays_NL = (draws_NL >= probability) | (draws_NL == draws_NL.amax(dim=1, keepdim=True))
    return ids_NL * stays_NL


@dataclass(frozen=True)
class WordTraining:
    """How Word2Vec is trained on a corpus's own sentences; the fields have gensim's names."""

    vector_size: int = 300
    """Width of a word vector."""
    window: int = 5
    """Size of the context window, in words."""
    min_count: int = 5
    """Words that occur less often are unknown."""
    sg: int = 1
    """1: skip-gram, the better one for rare words and small corpora; 0: the faster continuous bag of words."""
    negative: int = 5
    """Negative samples per context word."""
    sample: float = 1e-3
    """Words with a larger share of the corpus than this are subsampled; 0 keeps them all, which a tiny corpus needs."""
    epochs: int = 5
    """Training epochs."""
    seed: int = 0
    """Random seed."""


def train_word_vectors(sentences: Iterable[str], settings: WordTraining) -> "KeyedVectors":
    """Train Word2Vec vectors of the sentences' words, for `BagOfWords.from_keyed_vectors`; the most frequent first.

    The sentences are read once per epoch and once before. One thread trains, so that a seed has one outcome.
    """
    from gensim.models import Word2Vec  # takes more than a second, and nothing else here needs it

    if iter(sentences) is sentences:
        raise ValueError("the sentences can be read only once, and training reads them often: give a list of them")
    word_lists = _WordLists(sentences)
    model = Word2Vec(**asdict(settings), workers=1)
    model.build_vocab(word_lists)
    if len(model.wv) == 0:
        raise ValueError(
            f"no word occurs {settings.min_count} times in the {model.corpus_count:,} sentences: "
            "give more of them, or lower min_count"
        )
    model.train(word_lists, total_examples=model.corpus_count, epochs=settings.epochs)
    return model.wv


class _WordLists:
    """The sentences as lists of words, which can be read any number of times."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self._sentences = sentences

    def __iter__(self) -> Iterator[list[str]]:
        return map(words, self._sentences)


def _check_vectors(vocabulary: Sequence[str], vectors_VW: Tensor) -> None:
    """Refuse a vocabulary without words, and vectors that are not one finite row for each of its words."""
    if len(vocabulary) == 0:
        raise ValueError("no words to know: of gensim's keys only lower-case words count, check the vectors' source")
    if vectors_VW.dim() != 2 or len(vectors_VW) != len(vocabulary):
        raise ValueError(
            f"the word vectors are {list(vectors_VW.shape)}: give a row to each of {len(vocabulary)} words"
        )
    if not vectors_VW.isfinite().all():
        row = int(vectors_VW.isfinite().all(dim=1).int().argmin())
        raise ValueError(f"the vector of {vocabulary[row]!r} is not finite: mend such vectors or leave their words out")


def _pack(vocabulary: Sequence[str]) -> Tensor:
    """Return the words as the bytes of a JSON list, which holds any word."""
    return torch.frombuffer(bytearray(json.dumps([str(word) for word in vocabulary]).encode()), dtype=torch.uint8)


def _unpack(packed: Tensor) -> list[str]:
    """Return the words of `_pack`."""
    try:
        return [str(word) for word in json.loads(packed.cpu().numpy().tobytes())]
    except ValueError as error:
        raise ValueError(f"{VOCABULARY_KEY} holds no vocabulary, the checkpoint is damaged: {error}") from None


def _read_state(state: Mapping[str, Any], prefix: str) -> dict[str, Tensor]:
    """Return the encoder's tensors of a state; refuse one with a tensor missing, unknown, or of another width."""
    tensors = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    expected = ("word_embd.weight", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", VOCABULARY_KEY)
    wrong = [f"{prefix}{name} is missing" for name in expected if not isinstance(tensors.get(name), Tensor)]
    wrong += [f"{prefix}{name} is unknown" for name in tensors if name not in expected][:3]
    if wrong:
        raise ValueError(f"this is no state of a BagOfWords: {', '.join(wrong)}. Give its state dict and prefix")
    vocabulary = _unpack(tensors[VOCABULARY_KEY])
    hidden, output = tensors["fc1.bias"].numel(), tensors["fc2.bias"].numel()
    width = tensors["fc1.weight"].numel() // max(hidden, 1)
    shapes = ((len(vocabulary) + 1, width), (hidden, width), (hidden,), (output, hidden), (output,))
    for name, shape in zip(expected, shapes, strict=False):
        if tensors[name].shape != shape:
            raise ValueError(
                f"{prefix}{name} is {list(tensors[name].shape)}, not {list(shape)} as the rest of the state and its "
                f"vocabulary of {len(vocabulary):,} words ask for: use weights and dictionary of one publication"
            )
    return tensors


def _refuse_another_size(module: nn.Module, state: Mapping[str, Any], prefix: str, *_more: object) -> None:
    """Refuse another size before `load_state_dict`; a state of the same size is loaded with its own words."""
    assert isinstance(module, BagOfWords)
    if prefix and not any(name.startswith(prefix) for name in state):
        return  # a part of a larger model is loaded; torch refuses that itself unless it is asked for
    tensors = _read_state(state, prefix)
    shapes = {name: (tensors[name].shape, value.shape) for name, value in module.named_parameters()}
    wrong = [
        f"{prefix}{name} is {list(has)}, not {list(asked)}" for name, (has, asked) in shapes.items() if has != asked
    ]
    if wrong:
        raise ValueError(f"a BagOfWords of other widths: {', '.join(wrong)}. Load it with BagOfWords.from_state")
