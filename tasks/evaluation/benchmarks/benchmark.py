"""Declarations of benchmarks and protocols, one object each; the rest of the code reads them.

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
    """Raised when the same predictions would get another number."""
    columns: Mapping[str, Role]
    """Columns of the file that `vina score` takes, in order."""
    decoding: Decoding
    measure: "Callable[[Comparison], Metric]"
    """Makes the metric of a comparison; it may add to the comparison's notes."""
    takes_files: bool = True
    """Whether `vina score` offers it; not if another protocol takes the same files."""
    needs_own_label: bool = True
    """Whether only a prediction of the same label can match an annotated segment."""
    measures_all_pathways: bool = False
    """Whether it also measures the pathways that are not a method's main ones."""

    @property
    def names(self) -> list[str]:
        """Column names that a file of predictions must have."""
        return list(self.columns)

    def column(self, role: Role) -> str | None:
        """Return the name of the column with a role; None if the files have none."""
        return next((name for name, column_role in self.columns.items() if column_role is role), None)

    @property
    def video(self) -> str:
        """Column of the video."""
        return self._required(Role.VIDEO)

    @property
    def label(self) -> str:
        """Column with the label of the text."""
        return self._required(Role.LABEL)

    @property
    def times(self) -> list[str]:
        """Columns of a moment, or of a segment."""
        return [name for name in map(self.column, TIMES) if name is not None]

    @property
    def is_point(self) -> bool:
        """Whether a prediction is one moment per label, not segments."""
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
    """Columns of the same group are in one table."""
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
    """Default number of test sets."""
    draw: "Callable[[Truth, int, int], Bools]"
    """Takes the annotations of all videos, a count and a seed; returns count x videos, True where a video is tested."""


@dataclass(frozen=True)
class EvaluationServer:
    """A server that keeps the annotations of some videos private; `vina export` writes files for it."""

    protocol: str
    split: str
    """Default split to export."""


@dataclass(frozen=True)
class WholeArticles:
    """What is measured where all shown steps of an article are annotated: a step without annotation is not shown."""

    recall: str
    """Protocol whose predictions the SQL view `video_recall` uses: one moment per step."""
    presence: Mapping[str, str]
    """Protocols in `metrics`, and the column of `presences` that each measures. The peak is the baseline."""
    presence_version: int
    """Raised when the metrics of the same presences change."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Everything about one benchmark."""

    name: str
    """Partition of `annotations`, and the source of its rows in `steps`, `articles` and `videos`."""
    title: str
    """Name that is shown."""
    source: str
    """Importer that reads its annotations: `vina import SOURCE PATH`."""
    protocols: tuple[Protocol, ...]
    results: tuple[ResultColumns, ...]
    texts: Literal["steps", "narrations"] = "steps"
    """The texts to find: steps of articles, or narrations of the video (whose id then replaces the article's)."""
    texts_sql: str = STEPS
    """Query for rows of article_id, text, label, in order."""
    pairs_sql: str = f"{ANNOTATED} ORDER BY ALL"
    """Query for rows of video_id, article_id: the texts of which article are looked for in which video."""
    several_articles: bool = False
    """Whether a video may have several articles. Then each pair of video and article counts as a video."""
    held_back: tuple[str, ...] = ("train", "excluded")
    """Splits of the annotations that do not belong to the benchmark."""
    reported_split: str = TEST
    """Split that results are reported on, if it is measured."""
    validation_split: str = VALIDATION
    """Split for ablations and for the calibration of presence; if it is not annotated, the reported split."""
    test_sets: DrawnTestSets | None = None
    whole_articles: WholeArticles | None = None
    split_help: str = ""
    """Help text of `vina score` about its splits."""
    paper: tuple[PublishedNumber, ...] = ()
    """Numbers of the VINA paper (ICCV 2023)."""
    later: tuple[PublishedNumber, ...] = ()
    """Numbers of methods that were published after it."""
    paper_counts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Counts of the paper's appendix by split, as it prints them."""
    paper_averages: Mapping[str, str] = field(default_factory=dict)
    """Averages over activities in the paper's appendix, as it prints them."""
    paper_averages_of: str = ""
    """Splits that the averages are computed on."""
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
        """Return the splits that are measured, the default first, given the annotated ones."""
        return [TEST, ALL] if self.test_sets else annotated

    def split_to_choose_on(self, splits: Collection[str]) -> str:
        """Return the split for ablations and calibration among these; "" if there are none."""
        preferred = (self.validation_split, self.reported_split, *sorted(splits))
        return next((split for split in preferred if split in splits), "")

    def protocol(self, name: str) -> Protocol:
        """Return one of its protocols by name."""
        return next(protocol for protocol in self.protocols if protocol.name == name)
