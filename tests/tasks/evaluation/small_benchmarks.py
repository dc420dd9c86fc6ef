"""Small data sets in their own formats, written by hand, and predictions whose scores are known by hand.

Ids begin with a dash or look like numbers, one video belongs to two tasks, and one task has its videos held back.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

Cell = str | float
HTSTEP_VIDEOS: dict[str, tuple[str, str, list[tuple[int, float, float]]]] = {
    "-dash": ("Boil an Egg", "A", [(10, 10.5, 20.2), (10, 50, 60), (11, 30, 40)]),
    "007": ("Boil an Egg", "B", [(20, 0, 10)]),
    "1234567": ("Fry Rice", "none", [(30, 5, 15)]),
}
HTSTEP_STEPS = {("Boil an Egg", "A"): (10, 11, 12), ("Boil an Egg", "B"): (20,), ("Fry Rice", "none"): (30, 31)}
CROSSTASK = {
    "tasks_primary.txt": "1\nMake Tea\nurl\n3\nboil water,pour water,stir\n\n2\nMake Coffee\nurl\n2\nboil water,stir\n",
    "videos.csv": "1,both,url\n2,both,url\n1,-v,url\n1,held,url\n",
    "videos_val.csv": "1,held,url\n",
    "video_durations.json": '{"both": 20}',
    "annotations/1_both.csv": "1,0.5,10.2\n2,5,15\n",
    "annotations/2_both.csv": "1,0,10\n",
    "annotations/1_-v.csv": "3,1,2\n",
    "annotations/1_held.csv": "1,0,1\n",
}
GROUNDING = {
    "task_full_name": "How to Make Tea",
    "task_text": {"simplified_headline_list": ["Boil.", "Pour.", "Wait.", "Serve."]},
    "step2headline": ["0", "1/2", "_"],
    "task_video": ["007", "-solo", "unmapped"],
    "video_duration": {"007": 40},
    "crosstask_annotations": {
        "007": [
            {"step_id": "1", "step_s": "0", "step_e": "10"},
            {"step_id": "2", "step_s": "20", "step_e": "30"},
            {"step_id": "3", "step_s": "30", "step_e": "40"},
        ],
        "-solo": [{"step_id": "1", "step_s": "0", "step_e": "10"}],
        "unmapped": [{"step_id": "3", "step_s": "1", "step_e": "2"}],  # nothing of the article
    },
}
EXCLUDED = GROUNDING | {"crosstask_annotations": {"elsewhere": [{"step_id": "1", "step_s": "0", "step_e": "10"}]}}
NARRATIONS = {
    "first": [[1, 0.5, 1.2, "stir it"], [0, 0, 0, "hello"], [1, 3, 4, "pour it"]],
    "-x": [[1, 10, 20, "fry it"], [0, 0, 0, "bye"]],
}

# floor(10.5) <= 10; 41 > 40; 10 <= ceil(10); 4.9 < 5: two of four pairs are hit.
R1_ROWS: list[tuple[Cell, ...]] = [("-dash", 10, 10), ("-dash", 11, 41), ("007", 20, 10), ("1234567", 30, 4.9)]
# Eggs, best first: right, wrong, right, right (of another step's segment), so (1 + 3/4 + 3/4) / 4 segments = 0.625.
# Rice: an overlap of 6.5 / 10, right but at 0.7. So 0.8125 four times and 0.3125: 71.25 % on average.
MAP_ROWS: list[tuple[Cell, ...]] = [
    ("-dash", 50, 60, 10, 0.9),
    ("-dash", 80, 90, 11, 0.8),
    ("007", 0, 10, 20, 0.7),
    ("-dash", 30, 40, 10, 0.6),
    ("1234567", 5, 11.5, 30, 0.1),
]
# Tea: 10 < ceil(10.2), 15 is not < 15, 1 is in [1, 2), and 0 in [0, 1): 3 of 4, or 2 of 3 without the video held back.
# Coffee: 1 of 1. The means are 87.5 % and 83.33 %.
CROSSTASK_ROWS: list[tuple[Cell, ...]] = [
    (1, "both", 1, 10),
    (1, "both", 2, 15),
    (2, "both", 1, 0),
    (1, "-v", 3, 1),
    (1, "held", 1, 0),
]
# 007 has three segments, for its second step is two headlines. Overlaps are 1, 4 / 10 and 1.5 / 10, so of the segments
# 3, 2 and 1 are found at 0.1, 0.3 and 0.5; -solo has none of 1. Over two videos: 50, 33.33 and 16.67 %.
ARTICLE_ROWS: list[tuple[Cell, ...]] = [
    (1, "007", 0, 0, 10, 0.9),
    (1, "007", 2, 20, 24, 0.8),
    (1, "007", 1, 21, 22.5, 0.7),
    (1, "-solo", 1, 0, 10, 0.9),
]
# 2 <= ceil(1.2), 5 > 4, 15 is in [10, 20]: 2 of 3. Alignable 0.9, 0.5, 0.2 against 0.5, 0.1: 4.5 of 6 pairs, 75 %.
ALIGN_ROWS: list[tuple[Cell, ...]] = [
    ("first", 0, 2, 0.9),
    ("first", 1, 0, 0.5),
    ("first", 2, 5, 0.5),
    ("-x", 0, 15, 0.2),
    ("-x", 1, 0, 0.1),
]
ROWS = {
    "htstep-r1": R1_ROWS,
    "htstep-map": MAP_ROWS,
    "crosstask": CROSSTASK_ROWS,
    "crosstask-articles": ARTICLE_ROWS,
    "htm-align": ALIGN_ROWS,
}
HEADERS = {
    "htstep-r1": "video-id,label,t",
    "htstep-map": "video-id,t-start,t-end,label,score",
    "crosstask": "task,video,step,t",
    "crosstask-articles": "task,video-id,headline,t-start,t-end,score",
    "htm-align": "video-id,index,t,score",
}
VALUES: dict[str, dict[str, float]] = {
    "htstep-r1": {"R@1": 50},
    "htstep-map": {
        "mAP": 71.25,
        **dict.fromkeys([f"mAP IoU 0.{n}" for n in (3, 4, 5, 6)], 81.25),
        "mAP IoU 0.7": 31.25,
    },
    "crosstask": {"recall": 500 / 6},
    "crosstask-articles": {
        f"R@{best} IoU {iou}": value for best in (50, 100) for iou, value in ((0.1, 50), (0.3, 100 / 3), (0.5, 100 / 6))
    },
    "htm-align": {"R@1": 200 / 3, "AUC": 75},
}


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def htstep_files(
    videos: Mapping[str, tuple[str, str, Sequence[tuple[int, float, float]]]],
    steps: Mapping[tuple[str, str], Sequence[int]],
    splits: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Videos are 100 s long, and of the split val_seen where nothing else is said."""
    taxonomy = "global_step_index,activity,step_index,variation,variation_index,headline,paragraph\n" + "".join(
        f"{step},{activity},{step},{variation},1,Do it,\n"
        for (activity, variation), own in steps.items()
        for step in own
    )
    annotations = {
        video: {"subset": (splits or {}).get(video, "val_seen"), "activity": activity, "variation": variation}
        | {"duration": 100, "annotations": [{"id": step, "segment": times} for step, *times in segments]}
        for video, (activity, variation, segments) in videos.items()
    }
    return {"taxonomy.csv": taxonomy, "annotations.json": json.dumps(annotations)}


def write_data(folder: Path, benchmark: str) -> Path:
    """The data set that a benchmark is measured on."""
    files = {
        "htstep-r1": htstep_files(HTSTEP_VIDEOS, HTSTEP_STEPS),
        "htstep-map": htstep_files(HTSTEP_VIDEOS, HTSTEP_STEPS),
        "crosstask": CROSSTASK,
        "crosstask-articles": {"crosstask_test.json": json.dumps({"1": GROUNDING, "105222": EXCLUDED})},
        "htm-align": {"htm_align.json": json.dumps(NARRATIONS)},
    }
    return write_files(folder / "data", files[benchmark])


def csv_text(benchmark: str, rows: Sequence[Sequence[Cell]] | None = None) -> str:
    """A file of predictions: those above, or others."""
    lines = [",".join(str(cell) for cell in row) for row in (ROWS[benchmark] if rows is None else rows)]
    return "\n".join([HEADERS[benchmark], *lines, ""])
