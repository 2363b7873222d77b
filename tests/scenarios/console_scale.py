"""The console beside a large log: many topics, groups and objects, and a writer that continues.

The log is made in memory and copied to a folder. A checkpoint covers most of its segments, as
brokers write it. While a browser looks at the pages, another segment is written every second.
"""

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from uuid import UUID

from playwright.sync_api import expect

from bucketlog.log_format.records import DecodedRecord
from bucketlog.metadata.facts import OffsetRow, OffsetsCommitted
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.identity import FORMAT_VERSION, ClusterIdentity
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.patience import PATIENCE_S
from tests.rigs.written_log import START_MS, WrittenLog
from tests.scenarios.large_logs import to_folder
from tests.servers.browser import WatchedPage, chromium, console_process, found_chromium

IDENTITY = ClusterIdentity(cluster_id=UUID(int=1), format_version=FORMAT_VERSION, created_ms=1)
FACTS_A_SEGMENT = 500
TOPICS_A_SEGMENT = 8
TOPICS_A_GROUP = 2
RECORDS = 3
WRITE_PAUSE_S = 1.0
LOOKS = 9
"""The number of times that the browser opens each page."""
PAGES = {
    "overview": "",
    "topics": "topics",
    "topic": "topic?name=topic-00000",
    "messages": "messages?topic=topic-00000",
    "groups": "groups",
    "group": "group?name=group-00000",
    "bucket": "bucket",
    "verify": "verify",
    "cost": "cost",
    "transactions": "transactions",
    "access": "access",
}
FIRST_PAINT = """() => new Promise((found) => {
  new PerformanceObserver((list) => {
    const [paint] = list.getEntriesByName("first-contentful-paint");
    if (paint) found(paint.startTime);
  }).observe({ type: "paint", buffered: true });
})"""
NOTE_CLICK = """() => document.addEventListener(
  "click",
  () => sessionStorage.setItem("clicked", performance.timeOrigin + performance.now()),
  { capture: true, once: true },
)"""
WATCH_RESULTS = """() => {
  window.shown = new Promise((found) => {
    let askedAt = 0;
    const ask = window.fetch;
    window.fetch = (...given) => { askedAt = performance.now(); return ask(...given); };
    new MutationObserver(() => found(performance.now() - askedAt))
      .observe(document.querySelector("main"), { childList: true, subtree: true });
  });
}"""


@dataclass(frozen=True, slots=True)
class ScaleFigures:
    """Times in ms. `first_opened_ms` has the first paint of each page at its first opening, and
    `first_paint_ms` the median at later openings. `interaction_ms` has the median of several times
    from an input until its result is on the page, and `interaction_ms_max` the longest."""

    topics: int
    groups: int
    objects: int
    ready_s: float
    first_opened_ms: dict[str, float]
    first_paint_ms: dict[str, float]
    interaction_ms: dict[str, float]
    interaction_ms_max: dict[str, float]

    @property
    def slowest_paint_ms(self) -> float:
        return max(*self.first_opened_ms.values(), *self.first_paint_ms.values())

    @property
    def slowest_interaction_ms(self) -> float:
        return max(self.interaction_ms.values())


class LargeLog:
    """A log with `topics` topics of one partition, and as many groups. `log.bucket` is in memory
    until `to` moves it to a folder."""

    def __init__(self, topics: int) -> None:
        self.log = WrittenLog(MemoryBucket())
        self.names = [f"topic-{number:05d}" for number in range(topics)]
        self._chance = Random(1)
        self._made = 0
        created = self.log.bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
        assert created
        for number, name in enumerate(self.names):
            self.log.create_topic(name)
            self._flush_sometimes(number)
        for number in range(topics):
            self.log.fact(self._commit(f"group-{number:05d}"))
            self._flush_sometimes(number)
        self.log.flush()

    def _flush_sometimes(self, number: int) -> None:
        if number % FACTS_A_SEGMENT == FACTS_A_SEGMENT - 1:
            self.log.flush()

    def _commit(self, group: str) -> OffsetsCommitted:
        rows = [
            OffsetRow(UUID(bytes=self.log.topics[name][0]), 0, 0, -1, "")
            for name in self._chance.sample(self.names, TOPICS_A_GROUP)
        ]
        return OffsetsCommitted(group=group, committed_ms=START_MS, offsets=tuple(rows))

    def write_segment(self) -> None:
        """Write a segment with a batch of each of some topics."""
        self._made += 1
        for name in self._chance.sample(self.names, TOPICS_A_SEGMENT):
            value = b"v" * self._chance.randint(10, 60)
            record = DecodedRecord(0, START_MS + self._made, b"key", value)
            self.log.append(name, 0, [record] * RECORDS)
        self.log.flush()

    def to(self, folder: Path) -> None:
        assert isinstance(self.log.bucket, MemoryBucket)
        to_folder(self.log.bucket, folder)
        self.log.bucket = FileBucket(folder)

    @contextmanager
    def written_on(self) -> Iterator[None]:
        """Write a segment every second."""
        stopped = threading.Event()

        def write() -> None:
            while not stopped.wait(WRITE_PAUSE_S):
                self.write_segment()

        thread = threading.Thread(target=write, name="writer")
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()


def console_scale(*, topics: int, segments: int, tail: int) -> ScaleFigures:
    """Measure the console beside a log of `segments` log segments. A checkpoint covers all but the
    last `tail` segments. Raises `AssertionError`."""
    large = LargeLog(topics)
    for number in range(segments):
        if number == segments - tail:
            write_checkpoint(large.log.bucket)
        large.write_segment()
    with TemporaryDirectory(prefix="bucketlog-") as place, chromium(found_chromium()) as browser:
        folder = Path(place) / "log"
        large.to(folder / "0")
        began = time.perf_counter()
        with console_process(
            f"file://{folder}",
            log_file=Path(place) / "console.log",
            settings={"refresh_wait_ms": "250"},
        ) as address:
            ready_s = time.perf_counter() - began
            watched = WatchedPage(browser.new_context(), address)
            with large.written_on():
                opened = {name: _paint_ms(watched, path) for name, path in PAGES.items()}
                _until_read(watched)
                painted: dict[str, list[float]] = {name: [] for name in PAGES}
                for _ in range(LOOKS):
                    for name, path in PAGES.items():
                        painted[name].append(_paint_ms(watched, path))
                interactions = _interactions(watched)
            assert watched.complaints == []
            objects = len(list(large.log.bucket.list("")))
    return ScaleFigures(
        topics,
        topics,
        objects,
        round(ready_s, 1),
        {name: round(found) for name, found in opened.items()},
        {name: round(median(found)) for name, found in painted.items()},
        {name: round(median(found)) for name, found in interactions.items()},
        {name: round(max(found)) for name, found in interactions.items()},
    )


def _paint_ms(watched: WatchedPage, path: str) -> float:
    return float(watched.open(path).evaluate(FIRST_PAINT))


def _until_read(watched: WatchedPage) -> None:
    """Wait until no page says that the bucket is being read."""
    for path in PAGES.values():
        page = watched.open(path)
        expect(page).not_to_have_title(re.compile("^Reading"), timeout=PATIENCE_S * 1000)


def _interactions(watched: WatchedPage) -> dict[str, Sequence[float]]:
    """By kind of input, the times from an input of a person to the result."""
    return {
        "filter topics": [_filter_ms(watched, "topics", f"topic-0{n}") for n in range(LOOKS)],
        "filter groups": [_filter_ms(watched, "groups", f"group-0{n}") for n in range(LOOKS)],
        "sort topics": [_click_ms(watched, "topics", "Worst lag") for _ in range(LOOKS)],
        "sort groups": [_click_ms(watched, "groups", "Lag in records") for _ in range(LOOKS)],
        "next page": [_click_ms(watched, "topics", "Next →") for _ in range(LOOKS)],
        "open a topic": [_click_ms(watched, "topics", "topic-00000") for _ in range(LOOKS)],
        "open a group": [_click_ms(watched, "groups", "group-00000") for _ in range(LOOKS)],
    }


def _filter_ms(watched: WatchedPage, path: str, text: str) -> float:
    """The time from the request after the last key to the filtered table. Before this request, the
    page waits 180 ms for further keys."""
    page = watched.open(path)
    page.locator("#q").focus()
    page.keyboard.type(text[:-1])
    page.wait_for_url(f"**q={text[:-1]}")
    page.evaluate(WATCH_RESULTS)
    page.keyboard.type(text[-1])
    return float(page.evaluate("() => window.shown"))


def _click_ms(watched: WatchedPage, path: str, link: str) -> float:
    """The time from a click to the first paint of the page that the click opens. The time begins
    when the browser gets the click, because Playwright first waits until the link stops moving."""
    page = watched.open(path)
    before = page.url
    page.evaluate(NOTE_CLICK)
    with page.expect_navigation(url=lambda url: url != before):
        page.get_by_role("link", name=link).first.click()
    clicked_ms = float(page.evaluate("sessionStorage.getItem('clicked')"))
    return (
        float(page.evaluate("performance.timeOrigin"))
        + float(page.evaluate(FIRST_PAINT))
        - clicked_ms
    )
