"""Settings that know their limits: what makes no sense is refused where it is made, and forms can show what does."""

from typing import ClassVar


class Limited:
    """A base for dataclasses of settings."""

    CHOICES: ClassVar[dict[str, tuple[str, ...]]] = {}
    """The values that a setting may have, if they can be listed."""
    LIMITS: ClassVar[dict[tuple[float, float], str]] = {}
    """The least and the largest value, of the settings whose names stand there."""

    def __post_init__(self) -> None:
        for name, choices in self.CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"setting {name} is {getattr(self, name)!r}: choose {' or '.join(choices)}")
        for (low, high), names in self.LIMITS.items():
            for name in names.split():
                value = getattr(self, name)
                if value is not None and not low <= value <= high:  # also false for NaN
                    raise ValueError(f"setting {name} is {value}; it goes from {low} to {high}")

    @classmethod
    def limits_of(cls, name: str) -> tuple[float | None, float | None]:
        """The least and the largest value of a setting; None where there is none."""
        found = [limits for limits, names in cls.LIMITS.items() if name in names.split()]
        return found[0] if found else (None, None)
