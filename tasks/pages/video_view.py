"""The content of a page about one video: steps, matrices, labels by round, annotations, narrations, the video."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from storage import Store
from storage.catalogue import Catalogue, quoted
from tasks.grounding.articles import Article
from tasks.grounding.grounding import Grounded
from tasks.grounding.video_input import local_video
from tasks.importers.captions import Sentence
from tasks.pages.drawing import heat_map
from vina_model.grounder import GroundedStep

EMBEDDED_MB = 64
"""Largest video, in MB, that is embedded in the page; larger ones are linked."""
KINDS = {".mp4": "video/mp4", ".m4v": "video/mp4", ".mov": "video/mp4", ".webm": "video/webm", ".mkv": "video/webm"}
MATRICES = {
    "fused": "steps (rows, the first on top) to seconds: the mean of the next two",
    "direct": "steps to seconds, by the video alone",
    "indirect": "steps to seconds, through the narrations",
    "narrations": "narrations to seconds",
}
TICKS = 6
Span = tuple[float, float]


@dataclass(frozen=True)
class Player:
    """The video for a browser: data inside the page, or an address."""

    kind: str
    data: str = ""
    address: str = ""


@dataclass(frozen=True)
class HeatMap:
    """A matrix as a picture."""

    name: str
    meaning: str
    picture: str
    num_rows: int
    low: float
    high: float

    @property
    def height_px(self) -> int:
        """Height of the picture: rows of 14 pixels, within limits."""
        return max(min(14 * self.num_rows, 420), 20)


@dataclass(frozen=True)
class Label:
    """A pseudo-label."""

    step: int
    start_s: float
    end_s: float
    is_kept: bool


@dataclass(frozen=True)
class VideoView:
    """Contents of a page; without a `player`, `no_video` has the reason."""

    name: str
    title: str
    article_id: str | None
    model: str
    num_seconds: int
    steps: list[GroundedStep]
    narrations: list[Sentence]
    maps: list[HeatMap]
    truth: dict[int, list[Span]] = field(default_factory=dict)
    """Annotated segments by the number of the step; empty without annotations."""
    rounds: dict[int, list[Label]] = field(default_factory=dict)
    player: Player | None = None
    no_video: str = "there is no file of this video"
    note: str = ""

    @property
    def ticks(self) -> list[float]:
        """Round times on the axis."""
        steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
        every = next((step for step in steps if self.num_seconds / step <= TICKS), 7200)
        return [float(tick) for tick in range(0, self.num_seconds - every // 2, every)] + [float(self.num_seconds)]

    @property
    def is_calibrated(self) -> bool:
        """Whether the model gives each step a presence."""
        return all(step.presence is not None for step in self.steps)

    def percent(self, seconds: float) -> str:
        """Return a time as a position on the axis, in percent."""
        return f"{100 * min(max(seconds, 0) / self.num_seconds, 1):.3f}"


def view_of(grounded: Grounded, store: Store | None) -> VideoView:
    """Return the result of a model for a video, with annotations and labels of the store."""
    video_input, article, result = grounded.video_input, grounded.article, grounded.result
    view = VideoView(
        video_input.name, article.title, article.article_id, grounded.model.name, result.num_seconds, result.steps,
        video_input.narrations, maps_of(result.matrices),
    )  # fmt: skip
    if store is None or video_input.video_id is None:
        return view
    with Catalogue(store) as catalogue:
        truth = _truth(catalogue, video_input.video_id, article)
        rounds = _rounds(catalogue, video_input.video_id, article, grounded.model.name)
    return replace(view, truth=truth, rounds=rounds)


def maps_of(matrices: Mapping[str, npt.NDArray[np.floating]], chosen: str | None = None) -> list[HeatMap]:
    """Return matrices as pictures, in the order of MATRICES; all, or the chosen one."""
    return [
        HeatMap(name, meaning, heat_map(matrix), len(matrix), float(matrix.min()), float(matrix.max()))
        for name, meaning in MATRICES.items()
        if (matrix := matrices.get(name)) is not None and chosen in (None, name)
    ]


def _truth(catalogue: Catalogue, video_id: str, article: Article) -> dict[int, list[Span]]:
    """Return annotated segments by the number of the step; steps are matched by text: ids differ."""
    rows = catalogue.query(f"""
        SELECT DISTINCT article_id, lower(text) AS text, start_s, end_s FROM annotations
        WHERE video_id = {quoted(video_id)} AND step_id IS NOT NULL AND alignable ORDER BY start_s""").to_pylist()
    article_rows = [row for row in rows if row["article_id"] == article.article_id] or rows
    spans: dict[str, list[Span]] = {}
    for row in article_rows:
        spans.setdefault(row["text"], []).append((row["start_s"], row["end_s"]))
    numbered = enumerate(article.steps)
    return {number: list(dict.fromkeys(spans[step.lower()])) for number, step in numbered if step.lower() in spans}


def _rounds(catalogue: Catalogue, video_id: str, article: Article, model_id: str) -> dict[int, list[Label]]:
    if article.article_id is None:
        return {}
    rows = catalogue.query(f"""
        SELECT round, step_row, start_s, end_s, kept FROM pseudo_labels
        WHERE model_id = {quoted(model_id)} AND video_id = {quoted(video_id)}
          AND article_id = {quoted(article.article_id)} ORDER BY ALL""").to_pylist()
    labels_by_round: dict[int, list[Label]] = {}
    for row in rows:
        label = Label(row["step_row"], row["start_s"], row["end_s"], row["kept"])
        labels_by_round.setdefault(row["round"], []).append(label)
    return labels_by_round


def with_video_file(view: VideoView, uri: str | None, limit_mb: int = EMBEDDED_MB) -> VideoView:
    """Embed the video in the page, or link it if it is large."""
    if uri is None:
        return view
    if (kind := KINDS.get(Path(uri).suffix.lower())) is None:
        return replace(view, no_video=f"browsers cannot play {Path(uri).name}")
    try:
        with TemporaryDirectory() as folder:
            path = local_video(uri, Path(folder))
            size_mb = path.stat().st_size / (1 << 20)
            if size_mb <= limit_mb:
                player = Player(kind, data=base64.b64encode(path.read_bytes()).decode())
            elif path == Path(uri):
                player = Player(kind, address=path.resolve().as_uri())
            else:
                return replace(view, no_video=f"its {size_mb:,.0f} MB are too large for a page; it is at {uri}")
    except (OSError, ValueError) as error:
        return replace(view, no_video=f"the video cannot be read: {error}")
    return replace(view, player=player)


def served_video(view: VideoView, uri: str | None) -> VideoView:
    """Set the address from which `vina explore` serves the video."""
    if uri is None:
        return view
    if (kind := KINDS.get(Path(uri).suffix.lower())) is None:
        return replace(view, no_video=f"browsers cannot play {Path(uri).name}")
    return replace(view, player=Player(kind, address=f"/video-file?id={quote(view.name, safe='')}"))
