"""Runs that follow a log: when they begin, and which errors end them."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bucketlog.ingesting.local_ingest import LocalIngest, RepeatedUpkeep
from bucketlog.log_format.errors import (
    BucketError,
    BucketlogError,
    BucketRefusedError,
    BucketUnavailableError,
    ConfigurationError,
)


def followed(
    monkeypatch: pytest.MonkeyPatch,
    outcomes: list[Exception | str],
    took_s: float,
    upkeep: RepeatedUpkeep | None = None,
) -> tuple[list[Any], list[str], list[float]]:
    """The reports, the errors that were passed over, and the pauses of runs every 10 s."""
    left, now_s = iter(outcomes), [0.0]
    pauses: list[float] = []
    errors: list[str] = []

    class Stopped(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            pauses.append(timeout)
            now_s[0] += timeout
            if len(pauses) == len(outcomes):
                self.set()
            return self.is_set()

    def run(*arguments: Any, **settings: Any) -> Any:
        now_s[0] += took_s
        outcome = next(left)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    class ClosedLog:
        def close(self) -> None:
            closed.append(True)

    closed: list[bool] = []
    monkeypatch.setattr(LocalIngest, "_run", run)
    log: Any = ClosedLog()
    nothing: Any = None
    ingest = LocalIngest(log, nothing, 1)
    reports: Iterator[Any] = ingest.follow(
        10,
        Stopped(),
        failed=lambda error: errors.append(error.args[0]),
        upkeep=upkeep,
        now_s=lambda: now_s[0],
    )
    found = list(reports)
    assert len(closed) == 1 + len(errors)
    return found, errors, pauses


def test_a_run_begins_when_its_time_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    reports, _, pauses = followed(monkeypatch, ["a", "b"], took_s=3)
    assert (reports, pauses) == (["a", "b"], [7, 7])


def test_a_run_that_is_late_begins_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert followed(monkeypatch, ["a", "b"], took_s=30)[2] == [0, 0]


def test_an_outage_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    outages = [
        BucketUnavailableError("the bucket is away"),
        BucketError("the catalog fails"),
        ConnectionRefusedError("the catalog is away"),
    ]
    reports, errors, _ = followed(monkeypatch, [*outages, "b"], took_s=1)
    assert reports == ["b"]
    assert errors == ["the bucket is away", "the catalog fails", "the catalog is away"]


@pytest.mark.parametrize(
    "wrong", [ConfigurationError("no topic", remedy="name one"), BucketRefusedError("no right")]
)
def test_a_wrong_setting_ends_it(monkeypatch: pytest.MonkeyPatch, wrong: BucketlogError) -> None:
    with pytest.raises(type(wrong)):
        followed(monkeypatch, [wrong, "b"], took_s=1)


def test_a_table_is_maintained_when_the_time_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs take 3 s and begin every 10 s. Maintenance is due 20 s after the start and after the
    last one. A failed maintenance is tried again after the same time."""
    calls: list[bool] = []

    def run() -> None:
        calls.append(True)
        if len(calls) == 1:
            raise BucketUnavailableError("the catalog is away")

    upkeep = RepeatedUpkeep(20, run)
    reports, errors, _ = followed(monkeypatch, [*"abcdef"], took_s=3, upkeep=upkeep)
    assert (reports, errors) == ([*"abcdef"], ["the catalog is away"])
    assert len(calls) == 2


def test_a_table_that_cannot_be_maintained_is_still_ingested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others may set a property that maintenance refuses."""

    def run() -> None:
        raise ConfigurationError("its files are elsewhere", remedy="remove the property")

    upkeep = RepeatedUpkeep(20, run)
    reports, errors, _ = followed(monkeypatch, [*"abcd"], took_s=3, upkeep=upkeep)
    assert (reports, len(errors)) == ([*"abcd"], 1)
