"""Models, losses, labels, decoding and metrics on torch and numpy, and `Grounder`, to use a trained model."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vina_model.grounder import Grounder

__all__ = ["Grounder"]


def __getattr__(name: str) -> Any:
    """Loaded when it is asked for: metrics need no torch."""
    if name == "Grounder":
        from vina_model.grounder import Grounder

        return Grounder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
