"""HT-Step's step grounding: every annotated step of every held-out video, with the other steps of its article."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from storage import Store
from storage.catalogue import Catalogue
from tasks.training.corpus import Corpus
from tasks.training.teachers import Teacher, ask, plan_pairs, read_pairs
from vina_model.metrics.step_recall import chance, is_hit

Segments = list[tuple[float, float]]
WITH = tuple(f" with narrations{way}" for way in ("", ", direct", ", indirect"))
"""What a model's name goes on with where it is given narrations: both ways fused, or one of them."""


@dataclass(frozen=True)
class HeldOut:
    """The videos, the steps of their articles, and when each annotated step is seen, by its row."""

    corpus: Corpus
    truth: dict[tuple[str, str], dict[int, Segments]]

    @classmethod
    def of(cls, store: Store, corpus: Corpus) -> "HeldOut":
        """All annotated videos that are held out and have features; those for testing, if there are any."""
        with Catalogue(store) as catalogue:
            rows = catalogue.query(_TRUTH).to_pylist()
            steps = catalogue.query(_STEPS)
        articles: dict[str, list[str]] = {}
        for row in steps.to_pylist():
            articles.setdefault(row["article_id"], []).append(row["headline"])
        truth: dict[tuple[str, str], dict[int, Segments]] = {}
        for row in rows:
            if row["video_id"] in corpus.num_seconds:
                steps_seen = truth.setdefault((row["video_id"], row["task_id"]), {})
                steps_seen.setdefault(row["row"], []).append((row["start_s"], row["end_s"]))
        return cls(corpus.with_steps(articles), truth)

    def recall(self, model: Teacher, device: str) -> dict[str, float]:
        """Step R@1 in percent, by what the method's name goes on with: nothing, or one of WITH, for a model that knows
        narrations."""
        hits: dict[str, list[bool]] = {}
        pairs = list(self.truth)
        for numbers in plan_pairs(pairs, self.corpus, model.window_s):
            own = [pairs[number] for number in numbers]
            batch = read_pairs(own, self.corpus, model.tokenizer).to(device)
            silent, told = ask(model, replace(batch, narrations=None)), ask(model, batch)
            ways = {"": silent.sv_BST}
            if told.snv_BST is not None:
                ways |= dict(zip(WITH, (told.fused_BST, told.sv_BST, told.snv_BST), strict=True))
            for way, scores_BST in ways.items():
                assert scores_BST is not None
                best_BS = scores_BST.masked_fill(~silent.seconds_BT[:, None], -torch.inf).argmax(2).tolist()
                hits.setdefault(way, []).extend(
                    is_hit(best_S[step], segments)
                    for best_S, pair in zip(best_BS, own, strict=True)
                    for step, segments in self.truth[pair].items()
                )
        return {way: 100 * float(np.mean(own)) for way, own in hits.items()}

    def by_chance(self) -> float:
        """What pointing at random gives, in percent."""
        return 100 * float(np.mean([chance(length, segments) for length, _, _, segments in self._steps()]))

    def evenly(self) -> float:
        """What spreading an article's steps evenly over the video gives, in percent."""
        return 100 * float(np.mean([
            is_hit(min(int((step + 0.5) / count * length), length - 1), segments)
            for length, count, step, segments in self._steps()
        ]))  # fmt: skip

    def _steps(self) -> Iterator[tuple[int, int, int, Segments]]:
        for (video, article), steps in self.truth.items():
            for step, segments in steps.items():
                yield self.corpus.num_seconds[video], len(self.corpus.steps[article]), step, segments


_STEPS = "SELECT article_id, headline FROM steps WHERE source = 'htstep' ORDER BY article_id, row"
_TRUTH = """
    WITH held_out AS (SELECT * FROM annotations WHERE benchmark = 'htstep' AND split <> 'train' AND alignable)
    SELECT h.video_id, h.task_id, s.row, h.start_s, h.end_s
    FROM held_out h JOIN steps s ON s.source = 'htstep' AND s.article_id = h.task_id AND s.step_id = h.step_id
    WHERE h.split LIKE 'test%' OR NOT EXISTS (SELECT 1 FROM held_out WHERE split LIKE 'test%')
    ORDER BY h.video_id, s.row, h.start_s"""
