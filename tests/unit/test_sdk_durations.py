"""How long records are kept, as people write it."""

from datetime import timedelta

import pytest

from bucketlog.client.durations import Retention, retention_ms
from bucketlog.errors import ConfigurationError


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("7d", 604_800_000),
        ("12h", 43_200_000),
        ("30m", 1_800_000),
        ("45s", 45_000),
        ("500ms", 500),
        ("2w", 1_209_600_000),
        (" 1 d ", 86_400_000),
        ("forever", -1),
        (timedelta(hours=1), 3_600_000),
    ],
)
def test_durations(written: Retention, milliseconds: int) -> None:
    assert retention_ms(written) == milliseconds


@pytest.mark.parametrize(
    "written",
    ["", "7", "d", "7 days", "-1d", "1.5h", "0d", "٣d", "9" * 19 + "w", 7, None, timedelta(-1)],
)
def test_what_is_none_is_told_what_is_expected(written: object) -> None:
    with pytest.raises(ConfigurationError, match="7d") as caught:
        retention_ms(written)  # type: ignore[arg-type]  # what a type checker would refuse
    assert repr(written) in caught.value.message
