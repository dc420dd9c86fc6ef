"""The networks and the mathematics, in torch, numpy and gensim only: knows neither Prefect nor paths nor storage.

`vina_model.Grounder` is a trained model, ready to use; README.md has the formulas and a line for every module.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vina_model.grounder import Grounder

__all__ = ["Grounder"]


def __getattr__(name: str) -> Any:
    """Load the Grounder on first use, so that metrics need no torch."""
    if name == "Grounder":
        from vina_model.grounder import Grounder

        return Grounder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
