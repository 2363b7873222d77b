"""The short form of `make prove WHAT=crash`."""

from pathlib import Path

import pytest

from tests.scenarios.crash import crash

pytestmark = pytest.mark.long

KILLS = 3
RECORDS_BETWEEN = 2_000


def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path: Path) -> None:
    figures = crash(tmp_path, KILLS, records_between=RECORDS_BETWEEN)
    assert figures.kills == KILLS
    assert figures.acknowledged == figures.in_log > 2 * KILLS * RECORDS_BETWEEN
