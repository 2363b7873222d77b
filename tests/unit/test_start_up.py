"""What a broker says of its environment."""

import pytest

from bucketlog.stateless_broker.process.start_up import misspelt
from bucketlog.stateless_broker.settings import BrokerSettings


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("BUCKETLOG_FLUSH_INTERVALL_MS", "BUCKETLOG_FLUSH_INTERVAL_MS"),
        ("BUCKETLOG_PUT_IN_FLIGHT", "BUCKETLOG_PUTS_IN_FLIGHT"),
        ("BUCKETLOG_REDISURL", "BUCKETLOG_REDIS_URL"),
    ],
)
def test_a_misspelt_setting_is_found(name: str, meant: str) -> None:
    assert list(misspelt([name, "PATH", "BUCKETLOG_LOG_LEVEL"])) == [(name, meant)]


def test_what_is_a_setting_or_something_else_is_not() -> None:
    settings = [f"BUCKETLOG_{name}".upper() for name in BrokerSettings.model_fields]
    others = ["BUCKETLOG_BOOTSTRAP", "BUCKETLOG_CACHE", "BUCKETLOG_LOG_LEVEL", "BUCKETLOG_DATA"]
    assert not list(misspelt([*settings, *others]))
