"""What a broker says of its environment."""

import logging

import pytest
import typer
from typer.core import TyperGroup

from bucketlog.cli.main import app
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.process.start_up import (
    NAMES_IN_LINE,
    load_settings,
    misspelt,
    unknown,
)
from bucketlog.stateless_broker.settings.broker import BrokerSettings


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


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings without which no broker starts."""
    monkeypatch.setenv("BUCKETLOG_BUCKET_URL", "memory:")
    monkeypatch.setenv("BUCKETLOG_REDIS_URL", "redis://127.0.0.1")


@pytest.mark.usefixtures("complete")
def test_unknown_settings_are_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"BUCKETLOG_Z{number}" for number in range(10, 15 + NAMES_IN_LINE)]
    for name in ["BUCKETLOG_RETENSHUN", "BUCKETLOG_PUT_IN_FLIGHT", *names]:
        monkeypatch.setenv(name, "secret")
    load_settings()
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(lines) == 2
    assert "did you mean BUCKETLOG_PUTS_IN_FLIGHT?" in lines[0]
    assert "BUCKETLOG_RETENSHUN, BUCKETLOG_Z10" in lines[1]
    assert "and 6 more" in lines[1]
    assert "secret" not in str(lines)


def test_variables_of_the_command_line_are_known() -> None:
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    for name in command.commands:
        assert not unknown([f"BUCKETLOG_{name.upper()}_FLAG"])
    assert not unknown(["BUCKETLOG_S3_PATH_STYLE", "BUCKETLOG_LOG_LEVEL", "HOME"])
    assert unknown(["BUCKETLOG_S3_NONSENSE"])


@pytest.mark.usefixtures("complete")
@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("FLUSH_BYTES", "0", "a whole number of bytes, at least 1 (default: 8388608)"),
        ("FLUSH_INTERVAL_MS", "1s", "a whole number of milliseconds, at least 0"),
        ("PRODUCE_BUFFER_ADDRESS_PERCENT_MAX", "101", "at least 1 and at most 100"),
        ("PUT_HEDGE_QUANTILE", "2", "a number, at least 0 and below 1"),
        ("PORT", "65536", "at least 0 and at most 65535 (default: 9092)"),
    ],
)
def test_a_wrong_value_is_shown_with_unit_and_bounds(
    name: str, value: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"BUCKETLOG_{name}", value)
    with pytest.raises(ConfigurationError) as raised:
        load_settings()
    text = raised.value.message
    assert text.startswith(f"BUCKETLOG_{name}: '{value}' is not ")
    assert wanted in text


@pytest.mark.usefixtures("complete")
def test_values_that_may_be_secret_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUCKETLOG_AUTO_CREATE_TOPICS", "hunter2")
    with pytest.raises(ConfigurationError) as raised:
        load_settings()
    assert "hunter2" not in str(raised.value)
