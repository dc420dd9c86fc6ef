"""The numbers of the VINA paper (ICCV 2023) that ours stand next to. Percentages; names as in the table `metrics`."""

# benchmark, protocol, metric, method, value
PAPER_NUMBERS: tuple[tuple[str, str, str, str, float], ...] = (
    ("htstep", "htstep-r1", "R@1", "vina", 35.6),
    ("htstep", "htstep-r1", "R@1", "vina with narrations", 37.4),
    ("htstep", "htstep-r1", "R@1", "tan-lc", 31.2),
    ("htstep", "htstep-r1", "R@1", "tan-pe-lc", 7.9),
    ("htstep", "htstep-r1", "R@1", "mil-nce", 30.7),
    ("htm-align", "htm-align", "R@1", "vina", 66.5),
    ("htm-align", "htm-align", "AUC", "vina", 76.0),
    ("htm-align", "htm-align", "R@1", "tan", 49.4),
    ("htm-align", "htm-align", "R@1", "tan-lc", 47.1),
    ("htm-align", "htm-align", "R@1", "tan-pe-lc", 63.0),
    ("htm-align", "htm-align", "R@1", "mil-nce", 34.2),
    ("htm-align", "htm-align", "R@1", "clip-vit-b-32", 23.4),
    ("crosstask", "crosstask", "recall", "vina", 44.1),
    ("crosstask", "crosstask", "recall", "vina with narrations", 44.8),
    ("crosstask", "crosstask", "recall", "mil-nce", 40.5),
    *(
        ("crosstask", "crosstask-articles", f"R@{k} IoU {iou}", method, value)
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
