"""The protocols by name: what a file of predictions holds, and whose annotations it is held against."""

from dataclasses import dataclass

from vina_model.metrics import crosstask, crosstask_articles, htm_align, htstep_map, htstep_r1

VALIDATION, TEST, ALL = "validation", "test", "all"
TEST_SETS = crosstask.DRAWS
"""How many CrossTask's protocol draws."""


@dataclass(frozen=True)
class Protocol:
    """One way to measure. `header` has the columns of the files that people bring."""

    name: str
    version: int
    benchmark: str
    """Whose annotations: a partition of `annotations`."""
    source: str
    """The importer that reads the data set's own folder."""
    header: str

    @property
    def columns(self) -> list[str]:
        """What a file of predictions must have."""
        return self.header.split(",")

    @property
    def task(self) -> str | None:
        """The column that names the task, if a video may have several."""
        return "task" if "task" in self.columns else None

    @property
    def video(self) -> str:
        """The column that names the video."""
        return next(column for column in self.columns if column.startswith("video"))

    @property
    def label(self) -> str:
        """The column that says which text of the video it is."""
        return next(column for column in self.columns if column in ("label", "step", "headline", "index"))

    @property
    def times(self) -> list[str]:
        """The columns of a moment, or of a segment."""
        return [column for column in self.columns if column in ("t", "t-start", "t-end")]

    @property
    def score(self) -> str | None:
        """The column that says how sure the model is."""
        return "score" if "score" in self.columns else None

    @property
    def is_point(self) -> bool:
        """Whether it asks for one moment a label, not for segments."""
        return len(self.times) == 1


HTSTEP_R1 = Protocol(htstep_r1.NAME, htstep_r1.VERSION, "htstep", "htstep", "video-id,label,t")
HTSTEP_MAP = Protocol(
    htstep_map.NAME, htstep_map.VERSION, "htstep", "htstep", "video-id,t-start,t-end,label,score"
)  # fmt: skip
HTM_ALIGN = Protocol(
    htm_align.NAME, htm_align.VERSION, "htm-align", "htm-align", "video-id,index,t,score"
)  # fmt: skip
CROSSTASK = Protocol(
    crosstask.NAME, crosstask.VERSION, "crosstask", "crosstask", "task,video,step,t"
)  # fmt: skip
CROSSTASK_ORDERED = Protocol(
    crosstask.ORDERED, crosstask.VERSION, "crosstask", "crosstask", "task,video,step,t"
)  # fmt: skip
CROSSTASK_ARTICLES = Protocol(
    crosstask_articles.NAME, crosstask_articles.VERSION, "crosstask-articles", "youwikihow",
    "task,video-id,headline,t-start,t-end,score",
)  # fmt: skip
PROTOCOLS = {
    protocol.name: protocol
    for protocol in (HTSTEP_R1, HTSTEP_MAP, HTM_ALIGN, CROSSTASK, CROSSTASK_ORDERED, CROSSTASK_ARTICLES)
}
SOURCES = {protocol.benchmark: protocol.source for protocol in PROTOCOLS.values()}
"""The importer of each benchmark."""
