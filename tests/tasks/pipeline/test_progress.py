import logging

import pytest

from tasks.pipeline import progress

LOG = logging.getLogger("vina.test")


def test_who_listens_is_told_the_share_of_the_whole(caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[float, str]] = []
    with caplog.at_level(logging.INFO), progress.listening(lambda share, line: told.append((share, line))):
        progress.say(LOG, 0.5, "half")
        for number in range(2):
            with progress.part(number, 2):
                progress.say(LOG, 0.5, f"half of part {number}")
        progress.tell(3.0, "more than all")
    with caplog.at_level(logging.INFO):
        progress.say(LOG, 0.1, "nobody listens")
    assert told == [
        (0.5, "half"), (0.25, "half of part 0"), (0.5, ""), (0.75, "half of part 1"), (1.0, ""), (1.0, "more than all"),
    ]  # fmt: skip
    assert caplog.messages == ["half", "half of part 0", "half of part 1", "nobody listens"]
