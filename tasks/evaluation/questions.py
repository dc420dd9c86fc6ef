"""What a benchmark asks of a model: some videos, each with a list of texts that are to be found in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from storage import Store
from storage.catalogue import Catalogue, quoted
from storage.views import TITLE_KEY
from tasks.evaluation.truth import HELD_BACK
from tasks.training.corpus import Corpus
from tasks.training.teachers import Pair, plan_pairs

BENCHMARKS = ("htstep", "htm-align", "crosstask", "crosstask-articles")
NARRATIONS = "htm-align"
ANY_LENGTH_S = 1 << 30


@dataclass(frozen=True)
class Question:
    """Pairs of a video and an article (of narrations: the video itself), and a corpus whose steps are the texts."""

    benchmark: str
    pairs: list[Pair]
    corpus: Corpus
    labels: Mapping[str, list[int]]
    """For each article, what its texts are called in predictions."""

    def batches(self) -> Iterator[tuple[list[Pair], list[int], list[int]]]:
        """Pairs of like length, with their seconds and the number of their texts."""
        for numbers in plan_pairs(self.pairs, self.corpus, ANY_LENGTH_S):
            own = [self.pairs[number] for number in numbers]
            lengths = [self.corpus.num_seconds[video] for video, _ in own]
            yield own, lengths, [len(self.corpus.steps[article]) for _, article in own]

    @cached_property
    def has_narrations(self) -> bool:
        """Whether anything is said in one of the videos."""
        return any(self.corpus.narrations(video).texts for video, _ in self.pairs)

    @property
    def is_about_narrations(self) -> bool:
        """Whether the texts are what is said in the video."""
        return self.benchmark == NARRATIONS


def question_of(store: Store, benchmark: str, corpus: Corpus) -> Question:
    """All that a benchmark asks about videos that have features; in HT-Step also about those only its server knows."""
    with Catalogue(store) as catalogue:
        texts = catalogue.query(_NARRATIONS if benchmark == NARRATIONS else _STEPS.format(quoted(benchmark)))
        pairs = catalogue.query(_PAIRS[benchmark if benchmark in _PAIRS else "steps"].format(quoted(benchmark)))
    steps: dict[str, list[str]] = {}
    labels: dict[str, list[int]] = {}
    for row in texts.to_pylist():
        steps.setdefault(row["article_id"], []).append(row["text"])
        labels.setdefault(row["article_id"], []).append(int(row["label"]))
    known = [(row["video_id"], row["article_id"]) for row in pairs.to_pylist()]
    asked = [(video, article) for video, article in known if video in corpus.num_seconds and article in steps]
    return Question(benchmark, asked, corpus.with_steps(steps), labels)


_STEPS = """
    SELECT article_id, headline AS text, step_id AS label FROM steps WHERE source = {} ORDER BY article_id, row"""
_NARRATIONS = f"""
    SELECT video_id AS article_id, text, narration_row AS label FROM annotations WHERE benchmark = '{NARRATIONS}'
    ORDER BY video_id, narration_row"""
_ANNOTATED = """
    SELECT DISTINCT video_id, article_id FROM annotations
    WHERE benchmark = {} AND step_id IS NOT NULL AND split NOT IN """ + str(HELD_BACK)
_PAIRS = {
    NARRATIONS: f"SELECT DISTINCT video_id, video_id AS article_id FROM annotations WHERE benchmark = '{NARRATIONS}' "
    "ORDER BY ALL",
    "steps": f"{_ANNOTATED} ORDER BY ALL",
    # Videos without annotations here: all variations of the activity that the data sets' metadata name.
    "htstep": f"""{_ANNOTATED}
    UNION
    SELECT v.video_id, a.article_id FROM videos v
    JOIN videos m ON m.video_id = v.video_id
    JOIN (SELECT article_id, {TITLE_KEY} AS title FROM articles) t ON t.article_id = m.article_id
    JOIN (SELECT article_id, {TITLE_KEY} AS title FROM articles WHERE source = 'htstep') a ON a.title = t.title
    WHERE v.source = 'htstep' AND v.split <> 'train'
      AND v.video_id NOT IN (SELECT video_id FROM annotations WHERE benchmark = 'htstep')
    ORDER BY ALL""",
}
