"""The console's threads, deadlines and shared values: late work ends, and is not repeated."""

import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from starlette.types import ASGIApp, Message

from bucketlog.console.aged_value import StillReadingError
from bucketlog.console.application import PAGES, application
from bucketlog.console.log_view import ConsoleLog
from bucketlog.console.page_deadline import Deadline, DeadlineBucket, PageTimeoutError
from bucketlog.console.page_query import PageQuery
from bucketlog.console.page_threads import PagesBusyError, PageThreads
from bucketlog.console.pages import Console
from bucketlog.console.posted_forms import FORM
from bucketlog.console.settings import ConsoleSettings
from bucketlog.log_format.errors import BucketError
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
    "footers": Console.usage,
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
    app: ASGIApp,
    target: str,
    *,
    host: str = "localhost",
    method: str = "GET",
    origin: str = "",
    form: bytes | None = None,
) -> tuple[int, dict[str, str], str]:
    """Return the response's status, headers and body. `origin` '': no `Origin` header is sent.
    `form` is the body of a form; None: no body."""
    split, sent = urlsplit(target), list[Message]()

    async def receive() -> Message:
        return {"type": "http.request", "body": form or b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    given = {"host": host, "origin": origin, "content-type": "" if form is None else FORM}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": split.path,
        "raw_path": split.path.encode(),
        "query_string": split.query.encode(),
        "root_path": "",
        "headers": [(name.encode(), text.encode()) for name, text in given.items() if text],
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
