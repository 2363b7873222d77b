"""What the configs of a share group come to."""

import pytest

from bucketlog.consumers.share.group_rules import configured, starting_age_ms
from bucketlog.consumers.share.settings import ShareRules

RULES = ShareRules(0, False, 2_000, 5, 30_000, True)


@pytest.mark.parametrize(
    ("text", "age_ms"),
    [
        ("latest", 0),
        ("earliest", None),
        ("by_duration:PT1H", 3_600_000),
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
        ("by_duration:PT0.0015S", 1),
        ("by_duration:p1d", 86_400_000),
    ],
)
def test_where_a_group_begins(text: str, age_ms: int | None) -> None:
    assert starting_age_ms(text) == age_ms


@pytest.mark.parametrize("text", ["", "none", "by_duration:", "by_duration:P", "by_duration:PT-1H"])
def test_unknown_starting_points_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="by_duration"):
        starting_age_ms(text)


def test_configs_of_a_group_come_before_those_of_the_broker() -> None:
    configs = {
        "share.auto.offset.reset": "earliest",
        "share.isolation.level": "read_committed",
        "share.record.lock.duration.ms": "15000",
        "share.delivery.count.limit": "7",
        "share.partition.max.record.locks": "100",
        "share.renew.acknowledge.enable": "false",
        "consumer.session.timeout.ms": "45000",
    }
    assert configured(RULES, configs) == ShareRules(None, True, 100, 7, 15_000, False)
    assert configured(RULES, {}) == RULES
