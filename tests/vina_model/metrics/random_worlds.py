"""Small worlds of annotations and predictions that are full of ties, and the columns that metrics want them in.

Times stand on a grid of half seconds and scores are one of few, so that equal scores, equal overlaps, overlaps that
are exactly a threshold, and repeated, touching and nested segments are common. Some videos have no segments, some no
predictions, and some labels are predicted that nobody annotated.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from tests.vina_model.metrics.slow_metrics import Detection, Narration, Seconds, Segment
from vina_model.metrics.columns import Bools, Floats, Ints, Points, ScoredSegments, Segments

OTHER_THREADS = "ignore:Do not use the .random. module"
"""A filter of warnings: hypothesis blames a strategy for random numbers that Prefect's threads draw meanwhile."""
NUM_VIDEOS = 4
LABELS = range(4)
ANNOTATED = range(3)  # nobody annotates the last label
Row = TypeVar("Row", Segment, Detection, Narration)

videos = st.integers(0, NUM_VIDEOS - 1)
starts_s = st.integers(0, 12).map(lambda halves: halves / 2)
lengths_s = st.integers(0, 10).map(lambda halves: halves / 2)
some_scores = st.sampled_from([0.0, 0.25, 0.5, 1.0])
weights = st.lists(st.integers(0, 3), min_size=NUM_VIDEOS, max_size=NUM_VIDEOS)


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    start_s = draw(starts_s)
    return Segment(draw(videos), draw(st.sampled_from(ANNOTATED)), start_s, start_s + draw(lengths_s))


@st.composite
def detections(draw: st.DrawFn) -> Detection:
    start_s = draw(starts_s)
    label = draw(st.sampled_from(LABELS))
    return Detection(draw(videos), label, start_s, start_s + draw(lengths_s), draw(some_scores))


@st.composite
def narrations(draw: st.DrawFn) -> Narration:
    start_s = draw(starts_s)
    scores = some_scores | st.just(-np.inf)
    return Narration(
        draw(videos), draw(st.booleans()), start_s, start_s + draw(lengths_s), draw(st.integers(0, 12)), draw(scores)
    )


def up_to(most: int, rows: st.SearchStrategy[Row]) -> st.SearchStrategy[list[Row]]:
    """Lists of all lengths alike."""
    return st.integers(0, most).flatmap(lambda count: st.lists(rows, min_size=count, max_size=count))


truths = up_to(14, segments())
founds = up_to(24, detections())
narrated = up_to(16, narrations())
named_seconds = st.dictionaries(
    st.tuples(videos, st.sampled_from(LABELS)), st.integers(0, 12), max_size=NUM_VIDEOS * len(LABELS)
)


@st.composite
def distinct_founds(draw: st.DrawFn) -> list[Detection]:
    """No two have the same score."""
    rows = draw(founds)
    scores = draw(st.permutations(range(len(rows))))
    return [row._replace(score=float(score)) for row, score in zip(rows, scores, strict=True)]


def ints(values: Sequence[object]) -> Ints:
    return np.array(values, np.int64)


def floats(values: Sequence[object]) -> Floats:
    return np.array(values, np.float64)


def bools(values: Sequence[object]) -> Bools:
    return np.array(values, np.bool_)


def segment_columns(rows: Sequence[Segment]) -> Segments:
    return Segments(
        ints([row.video for row in rows]),
        ints([row.label for row in rows]),
        floats([row.start_s for row in rows]),
        floats([row.end_s for row in rows]),
    )


def detection_columns(rows: Sequence[Detection]) -> ScoredSegments:
    return ScoredSegments(
        ints([row.video for row in rows]),
        ints([row.label for row in rows]),
        floats([row.start_s for row in rows]),
        floats([row.end_s for row in rows]),
        floats([row.score for row in rows]),
    )


def point_columns(seconds: Seconds) -> Points:
    return Points(
        ints([video for video, _ in seconds]), ints([label for _, label in seconds]), floats(list(seconds.values()))
    )


def as_they_are(num_videos: int) -> Floats:
    """Weights of one draw in which every video is there once."""
    return np.ones((1, num_videos))


def copies(row: Row, times: Sequence[int]) -> list[Row]:
    """The row once for each copy of its video; a copy's name is (video, number)."""
    return [row._replace(video=(row.video, number)) for number in range(times[int(row.video)])]


def repeated_in_place(rows: Sequence[Row], times: Sequence[int]) -> list[Row]:
    """A data set in which each video is there several times; a row's copies follow each other."""
    return [copy for row in rows for copy in copies(row, times)]


def repeated_by_video(rows: Sequence[Row], times: Sequence[int]) -> list[Row]:
    """The same with a video's rows together: copy after copy of the whole video."""
    return [
        row._replace(video=(row.video, number))
        for number in range(max(times))
        for row in rows
        if number < times[int(row.video)]
    ]


def repeated_keys(values: Mapping[int, object], times: Sequence[int]) -> dict[tuple[int, int], object]:
    """What is known of each video, for its copies."""
    return {(video, number): value for video, value in values.items() for number in range(times[video])}
