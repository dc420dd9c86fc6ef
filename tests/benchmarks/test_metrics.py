"""HT-Step's mAP against data frames and a loop over their rows; all that CrossTask's evaluation takes."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from storage import Store
from tasks.evaluation.benchmarks.benchmark import Benchmark
from tasks.evaluation.benchmarks.crosstask import CROSSTASK, CROSSTASK_FREE, CROSSTASK_ORDERED
from tasks.evaluation.benchmarks.crosstask_articles import CROSSTASK_ARTICLES, CROSSTASK_ARTICLES_RECALL
from tasks.evaluation.benchmarks.htstep import HTSTEP, HTSTEP_MAP
from tasks.evaluation.scoring import Predictions, Scored, score
from tasks.evaluation.truth import Truth, read_truth
from tasks.importers.sources import import_source
from tests.benchmarks.measure import ratio_of_times, report
from vina_model.alignment import mask_of
from vina_model.decoding import in_order
from vina_model.detection import detect
from vina_model.metrics.bootstrap import estimate
from vina_model.metrics.columns import Floats, Ints, Segments

SEED = 0


def made_truth(rng: np.random.Generator, num_videos: int, num_tasks: int, benchmark: Benchmark, source: str) -> Truth:
    """About 6 segments a video and 10 steps a task; videos of 100 to 600 s."""
    tasks = [f"{source}/task{number % num_tasks}" for number in range(num_videos)]
    articles = {task: list(range(10 * row, 10 * row + 10)) for row, task in enumerate(dict.fromkeys(tasks))}
    durations_V = rng.uniform(100, 600, num_videos)
    videos = np.repeat(np.arange(num_videos), rng.integers(3, 10, num_videos))
    labels = np.array([rng.choice(articles[tasks[video]]) for video in videos])
    starts = rng.uniform(0, durations_V[videos] - 40)
    segments = Segments(videos, labels, starts, starts + rng.uniform(5, 40, len(videos)))
    names = [f"video{number:04}" for number in range(num_videos)]
    return Truth(
        benchmark, "test", names, tasks, segments, segments, np.ones(len(videos), np.bool_),
        rng.permutation(num_videos) < num_videos // 8, durations_V, articles, {task: task for task in articles},
    )  # fmt: skip


def made_predictions(rng: np.random.Generator, truth: Truth, count: int) -> Predictions:
    """So many segments of each video: half near an annotated one, half anywhere; a label of the article each."""
    own_V = [np.flatnonzero(truth.segments.videos == number) for number in range(truth.num_videos)]
    videos = np.repeat(np.arange(truth.num_videos), count)
    labels = np.concatenate([rng.choice(truth.articles[task], count) for task in truth.tasks])
    near = truth.segments.take(np.concatenate([rng.choice(own, count) for own in own_V]))
    noise = rng.normal(0, 4, (2, len(videos)))
    anywhere = rng.uniform(0, np.nan_to_num(truth.durations_V, nan=300)[videos])
    is_near = rng.random(len(videos)) < 0.5
    starts = np.where(is_near, near.starts + noise[0], anywhere)
    ends = np.maximum(starts, np.where(is_near, near.ends + noise[1], starts + 20))
    return Predictions(videos, np.where(is_near, near.labels, labels), (starts, ends), rng.random(len(videos)))


def plain_map(truth: pd.DataFrame, found: pd.DataFrame, steps: dict[str, set[int]]) -> float:
    """As one writes it down from the protocol: a data frame for each activity, a loop over its predictions."""
    thresholds = np.linspace(0.3, 0.7, 5)
    is_own = [row["label"] in steps[row["video-id"]] for _, row in found.iterrows()]
    found = found[is_own]
    found = found[found["label"].isin(truth["label"].unique())]
    activity_of = truth.groupby("video-id")["activity"].first()
    found = found.assign(activity=found["video-id"].map(activity_of))
    precisions = []
    for activity, own_truth in truth.groupby("activity"):
        ranked = found[found["activity"] == activity].sort_values("score", ascending=False).reset_index(drop=True)
        by_video = own_truth.reset_index(drop=True).groupby("video-id")
        right = np.zeros((len(thresholds), len(ranked)))
        taken = np.zeros((len(thresholds), len(own_truth)), bool)
        for place, row in ranked.iterrows():
            if row["video-id"] not in by_video.groups:
                continue
            segments = by_video.get_group(row["video-id"])
            starts, ends = segments[["t-start", "t-end"]].to_numpy().T
            common = np.clip(np.minimum(ends, row["t-end"]) - np.maximum(starts, row["t-start"]), 0, None)
            overlaps = common / ((ends - starts) + (row["t-end"] - row["t-start"]) - common)
            for level, threshold in enumerate(thresholds):
                for best in overlaps.argsort()[::-1]:
                    if overlaps[best] < threshold:
                        break
                    if not taken[level, segments.index[best]]:
                        taken[level, segments.index[best]] = right[level, place] = True
                        break
        precisions.append([_interpolated(hits, len(own_truth)) for hits in right])
    return float(np.mean(precisions))


def _interpolated(hits: Floats, num_segments: int) -> float:
    precision, best, total = np.cumsum(hits) / np.arange(1, len(hits) + 1), 0.0, 0.0
    for hit, value in zip(hits[::-1], precision[::-1], strict=True):
        best = max(best, value)
        total += best if hit else 0
    return total / num_segments


def test_article_grounding_against_data_frames() -> None:
    rng = np.random.default_rng(SEED)
    truth = made_truth(rng, 600, 120, HTSTEP, "htstep")
    made = made_predictions(rng, truth, 50)
    rows = pa.table(
        {"video-id": pa.array(np.array(truth.videos)[made.videos]), "label": made.labels, "score": made.scores}
        | {"t-start": made.times[0], "t-end": made.times[1]}
    )
    found_frame = rows.to_pandas()
    segments = truth.segments
    truth_frame = pd.DataFrame(
        {"video-id": np.array(truth.videos)[segments.videos], "activity": np.array(truth.tasks)[segments.videos]}
        | {"label": segments.labels, "t-start": segments.starts, "t-end": segments.ends}
    )
    steps = {video: set(truth.articles[task]) for video, task in zip(truth.videos, truth.tasks, strict=True)}

    def ours() -> Scored:
        again = replace(truth)  # nothing of it is known from before
        return score(HTSTEP_MAP, again, Predictions.of(rows, HTSTEP_MAP, again))

    begun = time.perf_counter()
    value = ours().metrics["mAP"].value
    interval_s = time.perf_counter() - begun
    values = []
    with patch("tasks.evaluation.scoring.estimate", partial(estimate, draws=0)):
        slow, fast, ratio = ratio_of_times(
            lambda: values.append(100 * plain_map(truth_frame, found_frame, steps)),
            lambda: values.append(ours().metrics["mAP"].value),
            repeats=1,
        )
    assert values == pytest.approx([value] * 4, abs=1e-6)
    detail = f"{slow:.1f} and {fast:.3f} s; {interval_s:.1f} s with the interval of 1,000 draws; mAP {value:.1f} %"
    report("HT-Step mAP of 30,000 predictions, data frames / ours", ratio, ">= 20", detail)


def crosstask_truth(folder: Path) -> Truth:
    """CrossTask's own annotations, where VINA_DATA names a folder that has them."""
    if "VINA_DATA" not in os.environ:
        return made_truth(np.random.default_rng(SEED), 2_750, 18, CROSSTASK, "crosstask")
    store = Store(folder / "store")
    import_source(store, "run-1", "crosstask", Path(os.environ["VINA_DATA"]) / "crosstask")
    return read_truth(store, CROSSTASK, "test")


def made_matrices(truth: Truth) -> list[torch.Tensor]:
    """Random scores S x T for each video: the steps of its task, and its seconds."""
    rng = torch.Generator().manual_seed(SEED)
    seconds_V = np.nan_to_num(truth.durations_V, nan=300).astype(int)
    return [
        torch.randn(len(truth.articles[task]), int(seconds), generator=rng) / 10
        for task, seconds in zip(truth.tasks, seconds_V, strict=True)
    ]


def moments(truth: Truth, seconds_of: list[Ints]) -> Predictions:
    """One second for each step of each video's task."""
    videos = np.repeat(np.arange(truth.num_videos), [len(seconds) for seconds in seconds_of])
    labels = np.concatenate([truth.articles[task] for task in truth.tasks])
    return Predictions(videos, labels, (np.concatenate(seconds_of).astype(np.float64),), np.zeros(len(videos)))


def detected(matrices: list[torch.Tensor]) -> int:
    """How many segments there are in all rows; videos of like length and number of steps are taken together."""
    order, total = sorted(range(len(matrices)), key=lambda number: matrices[number].shape), 0
    for begin in range(0, len(order), 32):
        some = [matrices[number] for number in order[begin : begin + 32]]
        scores_BST = torch.zeros(len(some), max(len(m) for m in some), max(m.shape[1] for m in some))
        for row, matrix in zip(scores_BST, some, strict=True):
            row[: len(matrix), : matrix.shape[1]] = matrix
        lengths_B = torch.tensor([matrix.shape[1] for matrix in some])
        total += int(detect(scores_BST, mask_of(lengths_B, scores_BST.shape[2])).mask.sum())
    return total


def test_all_that_crosstask_s_evaluation_takes(tmp_path: Path) -> None:
    truth = crosstask_truth(tmp_path)
    matrices = made_matrices(truth)
    detections = made_predictions(np.random.default_rng(SEED), truth, 100)
    articles = replace(truth, benchmark=CROSSTASK_ARTICLES)
    free = moments(truth, [matrix.argmax(1).numpy() for matrix in matrices])
    ordered: list[Ints] = []
    works: dict[str, Callable[[], object]] = {
        "step localization, 20 test sets": lambda: score(CROSSTASK_FREE, truth, free),
        "ordered decoding": lambda: ordered.extend(in_order(matrix.numpy()) for matrix in matrices),
        "step localization in order": lambda: score(CROSSTASK_ORDERED, truth, moments(truth, ordered)),
        "article recall, 100 detections a video": lambda: score(CROSSTASK_ARTICLES_RECALL, articles, detections),
        "detection": lambda: detected(matrices),
    }
    seconds = {}
    for name, work in works.items():
        begun = time.perf_counter()
        work()
        seconds[name] = time.perf_counter() - begun
    assert truth.num_videos == 2_750 and len(ordered) == 2_750
    where = "VINA_DATA" if "VINA_DATA" in os.environ else "made"
    print(f"\nCrossTask, 2,750 videos ({where}), seconds, intervals of 1,000 draws included:")
    for name, each in (seconds | {"all": sum(seconds.values())}).items():
        print(f"  {name}: {each:.2f}", flush=True)
