"""The numbers of the VINA paper (ICCV 2023) that ours stand next to. Percentages; names as in the table `metrics`.

A number belongs to a split, by the beginning of its name: HT-Step's validation and test videos have their own numbers.
MIL-NCE's on CrossTask are of moments in the task's order, as prior work decodes; those of article grounding do not say
whether narrations were given, and stand beside VINA without; TAN's on HTM-Align made use of the narrations' times.
"""

MILNCE, CLIP = "s3d-milnce-joint zero-shot", "clip-vit-b-32 zero-shot"
Number = tuple[str, str, str, str, str, float]
"""Benchmark, protocol, metric, split, method, value."""
PAPER_NUMBERS: tuple[Number, ...] = (
    ("htstep", "htstep-r1", "R@1", "test", "vina", 35.6),
    ("htstep", "htstep-r1", "R@1", "test", "vina with narrations", 37.4),
    ("htstep", "htstep-r1", "R@1", "test", "tan-lc", 31.2),
    ("htstep", "htstep-r1", "R@1", "test", "tan-pe-lc", 7.9),
    ("htstep", "htstep-r1", "R@1", "test", MILNCE, 30.7),
    ("htstep", "htstep-r1", "R@1", "val", "vina", 36.9),
    ("htstep", "htstep-r1", "R@1", "val", "vina with narrations", 39.1),
    ("htstep", "htstep-r1", "R@1", "val", "tan-lc", 30.7),
    ("htm-align", "htm-align", "R@1", "test", "vina", 66.5),
    ("htm-align", "htm-align", "AUC", "test", "vina", 76.0),
    ("htm-align", "htm-align", "R@1", "test", "tan", 49.4),
    ("htm-align", "htm-align", "R@1", "test", "tan-lc", 47.1),
    ("htm-align", "htm-align", "R@1", "test", "tan-pe-lc", 63.0),
    ("htm-align", "htm-align", "R@1", "test", MILNCE, 34.2),
    ("htm-align", "htm-align", "R@1", "test", CLIP, 23.4),
    ("crosstask", "crosstask", "recall", "test", "vina", 44.1),
    ("crosstask", "crosstask", "recall", "test", "vina with narrations", 44.8),
    ("crosstask", "crosstask-ordered", "recall", "test", MILNCE, 40.5),
    *(
        ("crosstask-articles", "crosstask-articles", f"R@{k} IoU {iou}", "test", method, value)
        for method, rows in {
            "vina": ((87.1, 59.0, 30.0), (90.6, 61.1, 30.9)),
            "mil-nce-max": ((33.5, 12.0, 4.9), (39.7, 14.3, 5.9)),
            "mil-nce-avg": ((42.9, 24.3, 12.9), (56.8, 32.1, 17.0)),
            "wsag": ((40.1, 23.1, 10.1), (54.3, 31.3, 14.0)),
        }.items()
        for k, values in zip((50, 100), rows, strict=True)
        for iou, value in zip((0.1, 0.3, 0.5), values, strict=True)
    ),
)
LATER_NUMBERS: tuple[Number, ...] = tuple(
    (benchmark, protocol, metric, "test", method, value)
    for method, values in {"MPTVA": (43.3, 69.3, 47.9), "NSVA": (46.4, 71.6, 46.7)}.items()
    for (benchmark, protocol, metric), value in zip(
        (("htstep", "htstep-r1", "R@1"), ("htm-align", "htm-align", "R@1"), ("crosstask", "crosstask", "recall")),
        values,
        strict=True,
    )
)
"""Of methods that were published after it, on the same benchmarks."""
