"""Small rows for the tests, and readable views of what a table holds."""

from typing import Any

import numpy as np
import pyarrow as pa

from storage import Store
from storage.vectors import feature_rows

ENCODER = {"encoder": "tiny"}


def votes(*video_ids: str, count: int = 3) -> pa.Table:
    size = len(video_ids)
    return pa.table(
        {
            "video_id": pa.array(video_ids, pa.string()),
            "rank": [1] * size,
            "article_id": ["7"] * size,
            "votes": [count] * size,
            "similarity_sum": [1.5] * size,
            "num_narrations": [5] * size,
        },
    )


def commit_votes(
    store: Store, shard: str, *video_ids: str, fingerprint: str = "a", run: str = "run-1", **options: Any
) -> bool:
    return store.table("votes").commit(
        votes(*video_ids), ENCODER, shard, fingerprint=fingerprint, run_id=run, **options
    )


def video_ids(store: Store, table: str = "votes", version: int | None = None) -> list[str]:
    return sorted(store.table(table).snapshot(version).read(["video_id"]).column(0).to_pylist())


def made_with(**other: Any) -> dict[str, Any]:
    """How features were computed; most of it is unknown for imported ones."""
    names = ("fps", "frames_per_clip", "frame_px", "short_side_px", "value_range", "weights_sha256")
    unknown: dict[str, Any] = dict.fromkeys(names)
    return unknown | {"stride_s": 1.0, "layer": "mixed_5c"} | other


def commit_features(store: Store, shard: str, videos: dict[str, np.ndarray], backbone: str = "s3d-milnce") -> bool:
    table = store.table("features")
    constants = made_with(fps=16.0, frames_per_clip=16, value_range="[0, 1]", weights_sha256="random:0")
    with table.writer({"backbone": backbone}, shard, fingerprint="f", run_id="run-1", constants=constants) as writer:
        for video_id, vectors_TD in videos.items():
            writer.write(feature_rows(video_id, vectors_TD))
    return writer.committed


def random_videos(names: list[str], width: int = 32, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {n: rng.standard_normal((int(rng.integers(1, 40)), width)).astype(np.float16) for n in names}


def label_rows(rows: list[tuple[str, str, int, int, float, bool]]) -> pa.Table:
    """Rows of (video, article, step, peak, score, kept); a segment is the peak's second and the next one."""
    records = [
        {
            "video_id": video,
            "article_id": article,
            "step_row": step,
            "peak_s": peak,
            "score": score,
            "start_s": float(peak),
            "end_s": float(peak + 2),
            "kept": kept,
            "reason": "confidence reaches gamma" if kept else "confidence below gamma",
            "confidence": score,
            "gamma": 0.65,
            "matrix": "SV",
            "teacher": "tan-lc",
        }
        for video, article, step, peak, score, kept in rows
    ]
    return pa.Table.from_pylist(records)
