"""The queries of a benchmark: videos, each with a list of texts to find in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from storage import Store
from storage.catalogue import Catalogue
from tasks.evaluation.benchmarks.benchmark import Benchmark
from tasks.training.corpus import Corpus
from tasks.training.teachers import Pair, plan_pairs

ANY_LENGTH_S = 1 << 30


@dataclass(frozen=True)
class BenchmarkQueries:
    """Pairs of a video and an article (for narrations: the video itself), and a corpus whose steps are the texts."""

    benchmark: Benchmark
    pairs: list[Pair]
    corpus: Corpus
    labels: Mapping[str, list[int]]
    """Labels of the texts of each article in predictions."""

    def batches(self) -> Iterator[tuple[list[Pair], list[int], list[int]]]:
        """Yield pairs of similar length, with their numbers of seconds and of texts."""
        for numbers in plan_pairs(self.pairs, self.corpus, ANY_LENGTH_S):
            pairs = [self.pairs[number] for number in numbers]
            lengths = [self.corpus.num_seconds[video] for video, _ in pairs]
            yield pairs, lengths, [len(self.corpus.steps[article]) for _, article in pairs]

    @cached_property
    def has_speech(self) -> bool:
        """Whether any of the videos has narrations."""
        return any(self.corpus.narrations(video).texts for video, _ in self.pairs)

    @property
    def is_about_narrations(self) -> bool:
        """Whether the texts are narrations of the video."""
        return self.benchmark.has_narrations


def read_queries(store: Store, benchmark: Benchmark, corpus: Corpus) -> BenchmarkQueries:
    """Return the queries of a benchmark about videos that have features."""
    with Catalogue(store) as catalogue:
        texts = catalogue.query(benchmark.query(benchmark.texts_sql))
        pairs = catalogue.query(benchmark.query(benchmark.pairs_sql))
    steps: dict[str, list[str]] = {}
    labels: dict[str, list[int]] = {}
    for row in texts.to_pylist():
        steps.setdefault(row["article_id"], []).append(row["text"])
        labels.setdefault(row["article_id"], []).append(int(row["label"]))
    listed = [(row["video_id"], row["article_id"]) for row in pairs.to_pylist()]
    asked = [(video, article) for video, article in listed if video in corpus.num_seconds and article in steps]
    return BenchmarkQueries(benchmark, asked, corpus.with_steps(steps), labels)
