"""The labels of one round, in memory: for a video and an article, the span of each step that was kept."""

from storage import Store
from tasks.training.corpus import Span


class Labels:
    """The rows of `pseudo_labels` of one student and round."""

    def __init__(self, store: Store, model_id: str, label_round: int) -> None:
        snapshot = store.table("pseudo_labels").snapshot().where(model_id=model_id, round=label_round)
        if not snapshot.num_rows:
            raise ValueError(f"there are no labels of {model_id}, round {label_round}: label the corpus first")
        rows = snapshot.read(["video_id", "article_id", "step_row", "start_s", "end_s", "kept"])
        rows = rows.sort_by([("video_id", "ascending"), ("article_id", "ascending"), ("step_row", "ascending")])
        self._spans = [
            (start, end) if kept else None
            for start, end, kept in zip(*(rows[name].to_pylist() for name in ("start_s", "end_s", "kept")), strict=True)
        ]
        self._rows_of: dict[tuple[str, str], slice] = {}
        keys = list(zip(rows["video_id"].to_pylist(), rows["article_id"].to_pylist(), strict=True))
        begin = 0
        for end in range(1, len(keys) + 1):
            if end == len(keys) or keys[end] != keys[begin]:
                self._rows_of[keys[begin]] = slice(begin, end)
                begin = end

    def spans(self, video_id: str, article_id: str) -> list[Span | None]:
        """Return the span of each step of the article; None where the label was dropped."""
        return self._spans[self._rows_of.get((video_id, article_id), slice(0))]
