"""HT-Step's step grounding: every annotated step of every held-out video, with the other steps of its article."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from storage import Store
from storage.catalogue import Catalogue
from tasks.training.corpus import Corpus
from tasks.training.teachers import SECONDS_PER_BATCH, plan_by_seconds, read_pairs
from vina_model.alignment import Alignment
from vina_model.batch import Batch
from vina_model.metrics.step_recall import chance, is_hit
from vina_model.tokenizer import Tokenizer
from vina_model.windows import align_in_windows

Segments = list[tuple[float, float]]


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
            steps = catalogue.query(
                "SELECT article_id, headline FROM steps WHERE source = 'htstep' ORDER BY article_id, row"
            )
        articles: dict[str, list[str]] = {}
        for row in steps.to_pylist():
            articles.setdefault(row["article_id"], []).append(row["headline"])
        truth: dict[tuple[str, str], dict[int, Segments]] = {}
        for row in rows:
            if row["video_id"] in corpus.num_seconds:
                steps_seen = truth.setdefault((row["video_id"], row["task_id"]), {})
                steps_seen.setdefault(row["row"], []).append((row["start_s"], row["end_s"]))
        return cls(corpus.with_steps(articles), truth)

    def recall(
        self, align: Callable[[Batch], Alignment], tokenizer: Tokenizer, with_narrations: bool, device: str, window: int
    ) -> dict[str, list[bool]]:
        """Hits of each video. With narrations the fused matrix is read, without them the direct one."""
        pairs, hits = list(self.truth), dict[str, list[bool]]()
        for numbers in plan_by_seconds([self.corpus.num_seconds[video] for video, _ in pairs], SECONDS_PER_BATCH):
            batch = read_pairs([pairs[number] for number in numbers], self.corpus, tokenizer)
            if not with_narrations:
                batch = replace(batch, narrations=None)
            with torch.inference_mode():
                found = align_in_windows(align, batch.to(device), window, window // 4)
            scores_BST = found.fused_BST if with_narrations else found.sv_BST
            assert scores_BST is not None
            best_BS = scores_BST.masked_fill(~found.seconds_BT[:, None], -torch.inf).argmax(2).cpu().numpy()
            for row, number in enumerate(numbers):
                hits[pairs[number][0]] = [
                    is_hit(int(best_BS[row, step]), segments) for step, segments in self.truth[pairs[number]].items()
                ]
        return hits

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
