"""R@1: is the second that a model points at one in which the step (or narration) is seen?"""

import math
from collections.abc import Sequence

NAME, VERSION = "htstep-r1", 1


def is_hit(second: int, segments: Sequence[tuple[float, float]]) -> bool:
    """Whether floor(start) <= second <= ceil(end) for one of the segments."""
    return any(math.floor(start) <= second <= math.ceil(end) for start, end in segments)


def chance(num_seconds: int, segments: Sequence[tuple[float, float]]) -> float:
    """The share of a video's seconds that would be a hit: what pointing at random gives."""
    return sum(is_hit(second, segments) for second in range(num_seconds)) / num_seconds
