"""How methods are named: a family (`vina`, `tan-lc`, `uniform`, ...), and the pathway that an answer took.

Tables have both in columns of their own, `method` and `pathway`; only `label_of` puts them together, for people.
"""

from enum import StrEnum

from tasks.training import method_names

VINA, BURNT_IN = method_names.VINA, "vina burn-in"
TAN, TAN_LC, TAN_PE_LC = "tan", method_names.TAN_LC, method_names.TAN_PE_LC
RANDOM, CENTRE, UNIFORM, TRUTH = "random", "centre", "uniform", "truth"
"""Rules that learn nothing; `truth` is the annotations themselves: the most that can be reached."""
SENTENCES = "sentences by ASR times"
MILNCE, CLIP = "s3d-milnce-joint zero-shot", "clip-vit-b-32 zero-shot"
STUDENTS = (VINA, BURNT_IN)
"""Families of the student; at its end, and after its burn-in."""


class Pathway(StrEnum):
    """How an answer gets from a text to seconds."""

    DIRECT = "direct"
    """Text to video, without narrations at inference."""
    FUSED = "fused"
    """The mean of the direct and the indirect pathway, with narrations."""
    DIRECT_WITH_NARRATIONS = "direct with narrations"
    """Text to video, by a model that is given the narrations too."""
    INDIRECT = "indirect"
    """Text to narrations to video, both as learnt."""
    INDIRECT_BY_ASR = "indirect by ASR times"
    """Text to narrations as learnt, narrations to video by their ASR times."""


MAIN_PATHWAYS = (Pathway.DIRECT, Pathway.FUSED)
"""Pathways of a model that every protocol measures; the others are an ablation."""
_ENDINGS = {
    Pathway.FUSED: "",
    Pathway.DIRECT_WITH_NARRATIONS: ", direct",
    Pathway.INDIRECT: ", indirect",
    Pathway.INDIRECT_BY_ASR: ", indirect by ASR times",
}


def label_of(method: str, pathway: str) -> str:
    """Return what people read: `vina`, `vina with narrations`, `vina with narrations, indirect`, ..."""
    if pathway == Pathway.DIRECT or method == SENTENCES:  # which has one pathway alone
        return method
    return f"{method} with narrations{_ENDINGS[Pathway(pathway)]}"
