"""How tables of results name the models that are trained here."""

from tasks.training.settings import TrainingSettings

VINA = "vina"
TAN_LC, TAN_PE_LC = "tan-lc", "tan-pe-lc"


def tan_method(settings: TrainingSettings) -> str:
    """Return the name of the TAN* that these settings train: with positional embeddings of narrations, or without."""
    return TAN_PE_LC if settings.tan_text_positions else TAN_LC
