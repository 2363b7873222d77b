"""The thread that samples lag: it survives a failing bucket, and ends with the console."""

import itertools
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from bucketlog.console.lag_sampler import LagSampler, take_sample
from bucketlog.console.page_deadline import DeadlineBucket
from bucketlog.console.pages import Console
from bucketlog.console.settings import ConsoleSettings
from bucketlog.log_format.errors import BucketUnavailableError
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.rigs.group_log import GroupLog
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.written_log import START_MS


class Requests:
    """Calls `act`, if it is there, at the begin of each request to the bucket."""

    def __init__(self) -> None:
        self.count = 0
        self.act: Callable[[], None] | None = None

    def begin(self) -> None:
        self.count += 1
        if self.act is not None:
            self.act()


def console_of(requests: Requests, **settings: int) -> Console:
    """A console whose clock is a millisecond later at each reading."""
    log = GroupLog(MemoryBucket(), lambda: START_MS)
    log.append(0)
    log.commit("g", p0=1)
    ticks = itertools.count(START_MS)
    known = ConsoleSettings.model_validate({"refresh_ms": 0, "lag_interval_ms": 1, **settings})
    bucket = DeadlineBucket(log.bucket, requests.begin)
    return Console(bucket, "b", known, KeyAccess(), 1, lambda: next(ticks), lambda: 0.0)


def times(console: Console) -> list[int]:
    return [each.at_ms for each in console.lag_history.samples("g")]


def test_a_sample_is_that_of_the_log() -> None:
    console = console_of(Requests())
    take_sample(console)
    (sample,) = console.lag_history.samples("g")
    assert sample[1:] == (2, 1, 3, 1)


def test_samples_are_taken_until_the_console_closes() -> None:
    console = console_of(Requests())
    with closing(LagSampler(console)) as sampler:
        eventually(lambda: len(times(console)) >= 3)
        console.stop()
    assert not sampler.is_running
    assert console.lag_history.samples("g")[0].lag == 2


@pytest.mark.parametrize("error", [BucketUnavailableError("no"), OSError("no")])
def test_a_failing_bucket_is_a_gap(error: Exception) -> None:
    requests = Requests()
    console = console_of(requests)

    def fail() -> None:
        raise error

    with closing(LagSampler(console)) as sampler:
        eventually(lambda: bool(times(console)))
        requests.act = fail
        begun = requests.count
        eventually(lambda: requests.count > begun + 3)
        before = times(console)
        assert sampler.is_running
        eventually(lambda: requests.count > begun + 6)
        assert times(console) == before, "a failure is no sample"
        requests.act = None
        eventually(lambda: len(times(console)) > len(before))
        console.stop()


def test_closing_ends_a_long_interval() -> None:
    console = console_of(Requests(), lag_interval_ms=1_000_000_000)
    with closing(LagSampler(console)) as sampler:
        eventually(lambda: len(times(console)) == 1)
    assert not sampler.is_running


def test_a_bucket_that_hangs_does_not_keep_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketlog.console.lag_sampler.CLOSE_S_MAX", 0.01)
    requests, opened, hanging = Requests(), threading.Event(), threading.Event()
    console = console_of(requests)

    def hang() -> None:
        hanging.set()
        assert opened.wait(PATIENCE_S)

    requests.act = hang
    sampler = LagSampler(console)
    assert hanging.wait(PATIENCE_S)
    console.stop()
    sampler.close()
    assert sampler.is_running, "the request has not ended"
    count = requests.count
    opened.set()
    eventually(lambda: not sampler.is_running)
    assert requests.count == count, "a stopped console began a request"


def test_an_interval_of_zero_takes_no_sample() -> None:
    requests = Requests()
    with closing(LagSampler(console_of(requests, lag_interval_ms=0))) as sampler:
        assert not sampler.is_running
    assert requests.count == 0
