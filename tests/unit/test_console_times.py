"""The console's threads, deadlines and shared values: late work ends, and is not repeated."""

import threading
from collections.abc import Callable, Iterator
from math import inf
from urllib.parse import urlsplit

import pytest
from starlette.types import ASGIApp, Message

from bucketlog.console.aged_value import AgedValue, StillReadingError
from bucketlog.console.application import PAGES, application
from bucketlog.console.log_view import ConsoleLog
from bucketlog.console.page_deadline import Deadline, DeadlineBucket, PageTimeoutError
from bucketlog.console.page_query import PageQuery
from bucketlog.console.page_threads import PagesBusyError, PageThreads
from bucketlog.console.pages import Console
from bucketlog.console.settings import ConsoleSettings
from bucketlog.cost.assumptions import Assumptions
from bucketlog.log_format.errors import BucketError, BucketlogError, BucketUnavailableError
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import Body, Span, Suffix, SyncBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from bucketlog.tiered_storage.identity import NoLogError
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.written_log import WrittenLog, some_records
from tests.unit.test_verify import IDENTITY

QUERIES = {
    "messages": {"topic": "t"},
    "record": {"topic": "t", "offset": "0"},
}


class SteppedClock:
    """Its time is what a test sets."""

    def __init__(self) -> None:
        self.now = 0

    def ms(self) -> int:
        return self.now

    def s(self) -> float:
        return self.now / 1000


class BlockedBucket(MemoryBucket):
    """Reads wait for `opened`, if it is there."""

    opened: threading.Event | None = None

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        if self.opened is not None:
            assert self.opened.wait(PATIENCE_S)
        return super().get(key, span)


@pytest.fixture
def bucket() -> BlockedBucket:
    store = BlockedBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(store)
    log.create_topic("t")
    log.append("t", 0, some_records(3))
    log.flush()
    return store


@pytest.fixture
def blocked(bucket: BlockedBucket) -> Iterator[BlockedBucket]:
    bucket.opened = threading.Event()
    yield bucket
    bucket.opened.set()


def console_of(bucket: SyncBucket, clock: SteppedClock, **settings: int) -> Console:
    known = ConsoleSettings.model_validate(settings)
    return Console(bucket, "memory://b", known, KeyAccess(), 1, clock.ms, clock.s)


def failing(calls: list[int]) -> Callable[[Deadline], int]:
    def fail(_: Deadline) -> int:
        calls.append(len(calls))
        raise BucketUnavailableError(f"failure {len(calls)}")

    return fail


def timed(clock: SteppedClock) -> Callable[[], Deadline]:
    """Begins work whose time is that of `clock`."""
    return lambda: Deadline(clock.s, inf, "read_ms_max")


def test_work_that_takes_longer_than_its_age_is_not_repeated() -> None:
    clock, calls = SteppedClock(), list[int]()

    def make(_: Deadline) -> int:
        calls.append(clock.now)
        clock.now += 61_000
        return len(calls)

    value: AgedValue[int] = AgedValue(60_000, clock.ms, timed(clock))
    assert [value.get(make) for _ in range(3)] == [1, 1, 1]
    clock.now += 60_000
    assert value.get(make) == 1, "work runs for more than a fifth of the time"
    clock.now += 4 * 61_000 - 60_000
    assert value.get(make) == 2


def test_a_step_of_the_clock_within_the_work_does_not_count_as_work() -> None:
    """As when a laptop sleeps. The value would be kept for four times as long."""
    wall, monotonic, calls = SteppedClock(), SteppedClock(), list[int]()

    def make(_: Deadline) -> int:
        calls.append(len(calls))
        if len(calls) == 1:
            wall.now += 8 * 3_600_000
            monotonic.now += 100
        return len(calls)

    value: AgedValue[int] = AgedValue(1_000, wall.ms, timed(monotonic))
    assert value.get(make) == 1
    wall.now += 1_000
    assert value.get(make) == 2


def test_a_thread_that_cannot_start_does_not_end_all_readings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    value: AgedValue[int] = AgedValue(1_000, lambda: 0)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(BucketlogError, match="no thread"):
            value.get(lambda _: 1)
    assert value.get(lambda _: 1, Deadline(lambda: 0.0, 60_000, "page_ms_max")) == 1


def test_a_failure_is_kept_for_the_age() -> None:
    clock, calls = SteppedClock(), list[int]()
    value: AgedValue[int] = AgedValue(1_000, clock.ms)
    for _ in range(3):
        with pytest.raises(BucketUnavailableError, match="failure 1"):
            value.get(failing(calls))
    clock.now += 1_000
    assert value.get(lambda _: 7) == 7
    assert len(calls) == 1


def test_a_bucket_that_was_away_is_asked_again_after_the_age() -> None:
    """Requests are repeated before they fail. Four times as long would be minutes."""
    clock, calls = SteppedClock(), list[int]()

    def fail_late(deadline: Deadline) -> int:
        clock.now += 30_000
        return failing(calls)(deadline)

    value: AgedValue[int] = AgedValue(1_000, clock.ms, timed(clock))
    with pytest.raises(BucketUnavailableError):
        value.get(fail_late)
    clock.now += 1_000
    assert value.get(lambda _: 7) == 7


def test_work_that_takes_too_long_is_not_repeated_at_once() -> None:
    clock = SteppedClock()

    def never_ends(deadline: Deadline) -> int:
        clock.now += 5_000
        deadline.check()
        return 1

    value: AgedValue[int] = AgedValue(
        1_000, clock.ms, lambda: Deadline(clock.s, 5_000, "read_ms_max")
    )
    for pause_ms in (0, 4 * 5_000 - 1):
        clock.now += pause_ms
        with pytest.raises(PageTimeoutError):
            value.get(never_ends)
    clock.now += 1
    assert value.get(lambda _: 7) == 7


def test_a_failed_look_at_the_log_is_kept_for_its_age() -> None:
    clock, store = SteppedClock(), MemoryBucket()
    log = ConsoleLog(store, "b", refresh_ms=1_000, now_ms=clock.ms)
    with pytest.raises(NoLogError):
        log.look()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    with pytest.raises(NoLogError):
        log.look()
    clock.now += 1_000
    assert log.look().identity == IDENTITY


def test_nobody_waits_for_a_value_longer_than_its_page() -> None:
    value: AgedValue[int] = AgedValue(1_000, lambda: 0)
    entered, leave = threading.Event(), threading.Event()

    def make(_: Deadline) -> int:
        entered.set()
        assert leave.wait(PATIENCE_S)
        return 1

    thread = threading.Thread(target=value.get, args=(make,))
    thread.start()
    try:
        assert entered.wait(PATIENCE_S)
        with pytest.raises(PageTimeoutError, match="5 ms"):
            value.get(lambda _: 2, Deadline(lambda: 0.0, 5, "page_ms_max"))
    finally:
        leave.set()
        thread.join()
    assert value.get(lambda _: 2) == 1


class BlockedWork:
    """Work that ends when a test lets the work end. The result is the number of the call."""

    def __init__(self) -> None:
        self.entered, self.leave = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self, _: Deadline) -> int:
        self.calls += 1
        self.entered.set()
        assert self.leave.wait(PATIENCE_S)
        return self.calls


def test_pages_get_the_last_value_while_the_next_is_computed() -> None:
    clock, work = SteppedClock(), BlockedWork()
    value: AgedValue[int] = AgedValue(1_000, clock.ms, patience_ms=0)
    with pytest.raises(StillReadingError):
        value.get(work)
    work.leave.set()
    eventually(lambda: value.get(work) == 1, despite=(StillReadingError,))
    work.leave.clear()
    clock.now = 1_000
    assert [value.get(work) for _ in range(5)] == [1] * 5
    assert work.entered.wait(PATIENCE_S)
    assert work.calls == 2, "several threads compute"
    work.leave.set()
    eventually(lambda: value.get(work) == 2)


def test_a_failure_replaces_the_last_value() -> None:
    clock, calls = SteppedClock(), list[int]()
    value: AgedValue[int] = AgedValue(1_000, clock.ms)
    assert value.get(lambda _: 1) == 1
    clock.now = 1_000
    with pytest.raises(BucketUnavailableError, match="failure 1"):
        value.get(failing(calls))


def test_an_unexpected_error_does_not_leave_pages_waiting() -> None:
    ended = list[threading.ExceptHookArgs]()
    value: AgedValue[int] = AgedValue(1_000, lambda: 0)
    before, threading.excepthook = threading.excepthook, ended.append
    try:
        with pytest.raises(BucketlogError, match="unexpected error"):
            value.get(lambda _: 1 // 0)
        eventually(lambda: [each.exc_type for each in ended] == [ZeroDivisionError])
    finally:
        threading.excepthook = before


def test_a_late_page_begins_no_request(bucket: BlockedBucket) -> None:
    clock = SteppedClock()
    late = DeadlineBucket(bucket, Deadline(clock.s, 10, "page_ms_max").check)
    assert late.get(keys.CLUSTER).data
    listing = late.list(keys.LOG)
    clock.now = 10
    for request in (
        lambda: late.get(keys.CLUSTER),
        lambda: late.head(keys.CLUSTER),
        lambda: next(listing),
        lambda: late.create("x", [b""]),
        lambda: late.delete(["x"]),
    ):
        with pytest.raises(PageTimeoutError, match=r"10 ms.*BUCKETLOG_CONSOLE_PAGE_MS_MAX"):
            request()


SHARED_READS: dict[str, Callable[[Console], object]] = {
    "log": Console.look,
    "listing": Console.objects,
    "garbage": Console.garbage,
    "footers": lambda console: console.usage(Assumptions()),
}


@pytest.mark.parametrize("name", SHARED_READS)
def test_a_shared_read_ends_at_its_own_time(bucket: BlockedBucket, name: str) -> None:
    clock = SteppedClock()

    def step() -> None:
        clock.now += 15  # per request

    slow = DeadlineBucket(bucket, step)
    read = SHARED_READS[name]
    read(console_of(slow, clock).for_page())
    console = console_of(slow, clock, read_ms_max=20, page_ms_max=100_000)
    with pytest.raises(PageTimeoutError, match="BUCKETLOG_CONSOLE_READ_MS_MAX"):
        read(console.for_page())


@pytest.mark.parametrize("name", ["messages", "record"])
def test_a_search_ends_at_the_time_of_its_page(bucket: BlockedBucket, name: str) -> None:
    clock = SteppedClock()
    page = console_of(bucket, clock, refresh_ms=1_000_000, page_ms_max=50).for_page()
    page.look()
    clock.now += 50
    with pytest.raises(PageTimeoutError, match="BUCKETLOG_CONSOLE_PAGE_MS_MAX"):
        PAGES[name][1](page, PageQuery(QUERIES[name]))


def test_a_stopped_console_begins_no_request(bucket: BlockedBucket) -> None:
    console = console_of(bucket, SteppedClock())
    page = console.for_page()
    console.stop()
    with pytest.raises(PageTimeoutError, match="stopped"):
        page.look()
    with pytest.raises(PageTimeoutError, match="stopped"):
        page.bucket.get(keys.CLUSTER)


def test_pages_share_what_is_computed_once(bucket: BlockedBucket) -> None:
    console = console_of(bucket, SteppedClock())
    first, second = console.for_page(), console.for_page()
    assert first.look() is second.look()
    assert first.objects() is second.objects()
    assert first.topics(first.look()) is second.topics(second.look())


async def test_a_slot_is_free_when_its_thread_has_ended() -> None:
    threads, opened = PageThreads(1), threading.Event()
    try:
        with pytest.raises(TimeoutError):
            await threads.run(lambda: opened.wait(PATIENCE_S), wait_s=1, page_s=0.01)
        for _ in range(3):
            with pytest.raises(PagesBusyError, match="PAGES_IN_FLIGHT_MAX"):
                await threads.run(lambda: True, wait_s=0.01, page_s=1)
    finally:
        opened.set()
    assert await threads.run(lambda: 7, wait_s=PATIENCE_S, page_s=PATIENCE_S) == 7


async def test_a_failed_page_frees_its_slot() -> None:
    threads = PageThreads(1)

    def fail() -> int:
        raise BucketError("no")

    for _ in range(3):
        with pytest.raises(BucketError):
            await threads.run(fail, wait_s=PATIENCE_S, page_s=PATIENCE_S)


async def answer(
    app: ASGIApp, target: str, *, host: str = "localhost", method: str = "GET", origin: str = ""
) -> tuple[int, dict[str, str], str]:
    """Return the response's status, headers and body. `origin` '': no `Origin` header is sent."""
    split, sent = urlsplit(target), list[Message]()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": split.path,
        "raw_path": split.path.encode(),
        "query_string": split.query.encode(),
        "root_path": "",
        "headers": [(b"host", host.encode()), *([(b"origin", origin.encode())] if origin else [])],
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    headers = {name.decode(): text.decode() for name, text in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], headers, body.decode()


async def test_a_full_console_answers_when_to_try_again(bucket: BlockedBucket) -> None:
    console = console_of(
        bucket, SteppedClock(), pages_in_flight_max=1, page_wait_ms_max=10, page_ms_max=20
    )
    console.look()
    app = application(console, hosts=["localhost"])
    bucket.opened = threading.Event()  # the page reads the batches itself
    try:
        status, _, body = await answer(app, "/messages?topic=t")
        assert (status, "BUCKETLOG_CONSOLE_PAGE_MS_MAX" in body) == (504, True)
        status, headers, body = await answer(app, "/topics")
        assert (status, headers["retry-after"]) == (503, "2")
        assert "BUCKETLOG_CONSOLE_PAGES_IN_FLIGHT_MAX" in body
    finally:
        bucket.opened.set()


async def test_a_page_before_the_first_reading_opens_by_itself(blocked: BlockedBucket) -> None:
    console = console_of(blocked, SteppedClock(), refresh_wait_ms=0)
    app = application(console, hosts=["localhost"])
    status, headers, body = await answer(app, "/topics")
    assert (status, headers["refresh"]) == (202, "1")
    assert "The bucket is being read" in body
    assert blocked.opened is not None
    blocked.opened.set()
    eventually(lambda: console.look().identity == IDENTITY, despite=(StillReadingError,))
    status, headers, body = await answer(app, "/topics")
    assert (status, "refresh" in headers) == (200, False)
