"""Names of methods: a family (`vina`, `tan-lc`, `uniform`, ...) and a pathway.

Tables have both in separate columns, `method` and `pathway`; only `label_of` joins them, for display.
"""

from enum import StrEnum

from tasks.training import method_names

VINA, BURNT_IN = method_names.VINA, "vina burn-in"
TAN, TAN_LC, TAN_PE_LC = "tan", method_names.TAN_LC, method_names.TAN_PE_LC
RANDOM, CENTRE, UNIFORM, TRUTH = "random", "centre", "uniform", "truth"
"""Rules without training; `truth` predicts the annotations themselves, an upper bound."""
SENTENCES = "sentences by ASR times"
MILNCE, CLIP = "s3d-milnce-joint zero-shot", "clip-vit-b-32 zero-shot"
STUDENTS = (VINA, BURNT_IN)
"""Families of the student: fully trained, and after its burn-in."""


class Pathway(StrEnum):
    """How a text is aligned with seconds."""

    DIRECT = "direct"
    """Text to video, without narrations at inference."""
    FUSED = "fused"
    """The mean of the direct and the indirect pathway, with narrations."""
    DIRECT_WITH_NARRATIONS = "direct with narrations"
    """Text to video, by a model that is also given the narrations."""
    INDIRECT = "indirect"
    """Text to narrations to video, both learned."""
    INDIRECT_BY_ASR = "indirect by ASR times"
    """Text to narrations learned, narrations to video by their ASR times."""


MAIN_PATHWAYS = (Pathway.DIRECT, Pathway.FUSED)
"""Pathways of a model that every protocol measures; the others are for ablations."""
_ENDINGS = {
    Pathway.FUSED: "",
    Pathway.DIRECT_WITH_NARRATIONS: ", direct",
    Pathway.INDIRECT: ", indirect",
    Pathway.INDIRECT_BY_ASR: ", indirect by ASR times",
}


def label_of(method: str, pathway: str) -> str:
    """Return the label that is shown: `vina`, `vina with narrations`, `vina with narrations, indirect`, ..."""
    if pathway == Pathway.DIRECT or method == SENTENCES:  # it has only one pathway
        return method
    return f"{method} with narrations{_ENDINGS[Pathway(pathway)]}"
