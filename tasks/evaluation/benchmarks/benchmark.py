"""What a benchmark and a protocol are: plain declarations, one object each, that the rest of the code works from.

SQL is given as templates: `{benchmark}` stands for the quoted name, `{held_back}` for the list of held-back splits.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal

from storage.catalogue import quoted
from tasks.evaluation.families import Pathway
from vina_model.metrics.bootstrap import Values
from vina_model.metrics.columns import Bools, Floats

if TYPE_CHECKING:
    from tasks.evaluation.scoring import Comparison
    from tasks.evaluation.truth import Truth

VALIDATION, TEST, ALL = "validation", "test", "all"
STEP_LOCALIZATION, ARTICLE_GROUNDING = "step localization", "article grounding"
"""Groups of columns in `vina results`; a benchmark may have another one."""
Metric = Callable[[Floats], Values]
"""From the weights of videos to metrics by name: see vina_model/metrics."""
STEPS = """
    SELECT article_id, headline AS text, step_id AS label FROM steps WHERE source = {benchmark}
    ORDER BY article_id, row"""
"""The texts of most benchmarks: the steps of their articles."""
ANNOTATED = """
    SELECT DISTINCT video_id, article_id FROM annotations
    WHERE benchmark = {benchmark} AND step_id IS NOT NULL AND split NOT IN ({held_back})"""
"""The pairs of most benchmarks: videos, and the articles whose steps are annotated in them."""


class Role(Enum):
    """What a column of a file of predictions holds. The value is the column of the table `predictions`."""

    ARTICLE = "article_id"
    VIDEO = "video_id"
    LABEL = "label"
    PEAK = "peak_s"
    START = "start_s"
    END = "end_s"
    SCORE = "score"


TIMES = (Role.PEAK, Role.START, Role.END)


class Decoding(Enum):
    """How a prediction is read from a row of scores."""

    ARGMAX = "the best second of each text"
    ORDERED = "one second for each text, in the order of the texts, with the best sum of scores"
    DETECTIONS = "segments that stand out of their row"


@dataclass(frozen=True, eq=False)
class Protocol:
    """One measure of a benchmark."""

    name: str
    version: int
    """Rises when the same predictions would have another number."""
    columns: Mapping[str, Role]
    """Columns of the file that `vina score` takes, in their order."""
    decoding: Decoding
    measure: "Callable[[Comparison], Metric]"
    """Computes the metrics; it may add to the comparison's notes."""
    takes_files: bool = True
    """Whether `vina score` has it; not if its files would be those of another protocol."""
    needs_own_label: bool = True
    """Whether an annotated segment is found only by a prediction of the same label."""
    measures_all_pathways: bool = False
    """Whether a model's pathways apart are measured by it, too."""

    @property
    def names(self) -> list[str]:
        """Column names that a file of predictions must have."""
        return list(self.columns)

    def column(self, role: Role) -> str | None:
        """Name of the column of a role; None if the files have none."""
        return next((name for name, own_role in self.columns.items() if own_role is role), None)

    @property
    def video(self) -> str:
        """Column of the video."""
        return self._required(Role.VIDEO)

    @property
    def label(self) -> str:
        """Column that says which text of the video it is."""
        return self._required(Role.LABEL)

    @property
    def times(self) -> list[str]:
        """Columns of a moment, or of a segment."""
        return [name for name in map(self.column, TIMES) if name is not None]

    @property
    def is_point(self) -> bool:
        """Whether it asks for one moment a label, not for segments."""
        return self.decoding is not Decoding.DETECTIONS

    def _required(self, role: Role) -> str:
        name = self.column(role)
        if name is None:
            raise ValueError(f"the protocol {self.name} has no column for {role.name}: add one to its `columns`")
        return name


@dataclass(frozen=True)
class ResultColumns:
    """Columns of a benchmark in `vina results`."""

    group: str
    """Columns of the same group stand in one table."""
    titles: Mapping[tuple[str, str], str]
    """Heads by protocol and metric."""
    legend: str = ""
    """A note above the table."""
    in_summary: bool = True
    """Whether the short table at the end of `vina run` has them."""


@dataclass(frozen=True)
class PublishedNumber:
    """A number that others published, in percent."""

    protocol: str
    metric: str
    method: str
    value: float
    pathway: Pathway = Pathway.DIRECT
    split: str = TEST


@dataclass(frozen=True)
class DrawnTestSets:
    """Test sets that are drawn from all videos: the splits are then `test` (the mean over them) and `all`."""

    count: int
    """How many are drawn where nothing else is asked for."""
    draw: "Callable[[Truth, int, int], Bools]"
    """Takes the annotations of all videos, a count and a seed; returns count x videos, True where it is tested."""


@dataclass(frozen=True)
class EvaluationServer:
    """A server that keeps the annotations of some videos: what `vina export` writes for it."""

    protocol: str
    split: str
    """The split that is exported where nothing else is asked for."""


@dataclass(frozen=True)
class WholeArticles:
    """Annotations of all steps of an article, so that a step that is not annotated is not shown; what they measure."""

    recall: str
    """Protocol whose predictions the SQL view `video_recall` judges: one moment a step."""
    presence: Mapping[str, str]
    """Protocols of whether a step is shown at all, and the column of `presences` that each measures."""
    presence_version: int
    """Rises when the same presences would have another number."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """All there is to know of one benchmark."""

    name: str
    """Partition of `annotations`, and the source of its rows in `steps`, `articles` and `videos`."""
    title: str
    """Name for people."""
    source: str
    """Importer that reads its annotations: `vina import SOURCE PATH`."""
    protocols: tuple[Protocol, ...]
    results: tuple[ResultColumns, ...]
    texts: Literal["steps", "narrations"] = "steps"
    """What is asked for: steps of articles, or narrations of the video itself (whose id is then the article's)."""
    texts_sql: str = STEPS
    """Rows of article_id, text, label in their order."""
    pairs_sql: str = f"{ANNOTATED} ORDER BY ALL"
    """Rows of video_id, article_id: which article's texts are asked of which video."""
    several_articles: bool = False
    """Whether a video may have several articles. Then what is counted as a video is a video of an article."""
    held_back: tuple[str, ...] = ("train", "excluded")
    """Splits of its annotations that are no part of the benchmark."""
    reported_split: str = TEST
    """Split that results are of, if it is measured."""
    validation_split: str = VALIDATION
    """Split that choices are made on: ablations, the calibration of presence. Without one: the reported split."""
    test_sets: DrawnTestSets | None = None
    whole_articles: WholeArticles | None = None
    split_help: str = ""
    """What `vina score --help` says about its splits."""
    paper: tuple[PublishedNumber, ...] = ()
    """Numbers of the VINA paper (ICCV 2023)."""
    later: tuple[PublishedNumber, ...] = ()
    """Numbers of methods that were published after it."""
    paper_counts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Counts of the paper's appendix by split, as it prints them."""
    paper_averages: Mapping[str, str] = field(default_factory=dict)
    """Averages over activities in the paper's appendix, as it prints them."""
    paper_averages_of: str = ""
    """The splits that they are of."""
    server: EvaluationServer | None = None

    @property
    def has_narrations(self) -> bool:
        """Whether the texts are narrations of the video."""
        return self.texts == "narrations"

    def query(self, sql: str) -> str:
        """Fill in a template."""
        held_back = ", ".join(quoted(split) for split in self.held_back) or "''"
        return sql.format(benchmark=quoted(self.name), held_back=held_back)

    def measured_splits(self, annotated: list[str]) -> list[str]:
        """Splits that are measured, the default first, if these are annotated."""
        return [TEST, ALL] if self.test_sets else annotated

    def split_to_choose_on(self, splits: Collection[str]) -> str:
        """Return the one of these splits that choices are made on; "" if there are none."""
        preferred = (self.validation_split, self.reported_split, *sorted(splits))
        return next((split for split in preferred if split in splits), "")

    def protocol(self, name: str) -> Protocol:
        """Return one of its protocols."""
        return next(protocol for protocol in self.protocols if protocol.name == name)
