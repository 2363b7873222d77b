"""How long records are kept, as people write it."""

from datetime import timedelta

import pytest

from bucketlog.client.retention import Retention, format_retention, retention_ms
from bucketlog.log_format.errors import ConfigurationError


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("7d", 604_800_000),
        ("1.5h", 5_400_000),
        ("0d", 0),
        ("forever", -1),
        (timedelta(hours=1), 3_600_000),
        (timedelta(microseconds=1999), 1),
        (timedelta(), 0),
    ],
)
def test_retention(written: Retention, milliseconds: int) -> None:
    assert retention_ms(written) == milliseconds
    assert retention_ms(format_retention(milliseconds)) == milliseconds


@pytest.mark.parametrize("written", ["", "7 days", "-1d", "Forever", 7, None, timedelta(-1)])
def test_an_error_says_how_to_write_a_retention(written: object) -> None:
    with pytest.raises(ConfigurationError, match=r"7d.*forever.*timedelta") as caught:
        retention_ms(written)  # type: ignore[arg-type]  # what a type checker would refuse
    assert repr(written) in caught.value.message
