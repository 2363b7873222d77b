"""The console in a browser: beside brokers under load, and after all brokers and Redis were killed.

Invariant of both: what the pages count is what `bucketlog doctor` counts.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser

from bucketlog.inspect.doctor.digest import LogDigest, differences
from bucketlog.inspect.doctor.of_bucket import digest_of_bucket
from bucketlog.inspect.doctor.of_cluster import digest_of_cluster
from tests.models.history import History
from tests.rigs.console_log import EARLY_UPKEEP, fill, hostile_records
from tests.scenarios.console_walk import (
    PAGES,
    check_accessibility,
    check_counts,
    check_groups,
    check_hostile,
    check_live,
    check_query,
    check_replay,
    check_use,
)
from tests.scenarios.load import Load
from tests.scenarios.round_trip import create_topic
from tests.servers.browser import WatchedPage, chromium, console_process, found_chromium
from tests.servers.cluster import Cluster, Store, running_cluster

BROKERS = 2
TOPIC, PARTITIONS = "load", 4
FRESH = {"refresh_ms": "0", "listing_age_ms": "0", "page_ms_max": "600000", "sql_ms_max": "600000"}
"""Pages show the newest state. Those of a large log on MinIO may take long."""
SLOW_PAUSE_S = 0.25
"""The pause between bursts of the load, while the browser looks: each page reads the log again."""


@dataclass(frozen=True, slots=True)
class ConsoleFigures:
    store: str
    topics: int
    records: int
    groups: int
    pages: int
    hostile_records: int
    acknowledged: int
    slowest_page_ms: int
    """Until the page is loaded, in the browser."""


def console_beside_brokers(store: Store, *, records: int) -> ConsoleFigures:
    """Pages, keys and hostile records while a producer sends; then axe-core and the counts. Raises
    `AssertionError`."""
    with (
        _filled(store) as cluster,
        chromium(found_chromium()) as browser,
        TemporaryDirectory() as folder,
    ):
        log_file = Path(folder) / "console.log"
        with (
            _loaded(cluster) as load,
            console_process(
                cluster.bucket_url,
                *("--replay-folder", folder),
                log_file=log_file,
                settings=FRESH,
            ) as address,
        ):
            load.wait_for(records)
            load.slow_down(SLOW_PAUSE_S)
            check_query(WatchedPage(browser.new_context(), address))
            check_replay(WatchedPage(browser.new_context(), address), Path(folder))
            check_use(WatchedPage(browser.new_context(), address))
            check_hostile(WatchedPage(browser.new_context(), address))
            check_live(WatchedPage(browser.new_context(), address), TOPIC)
            load.stop()
            assert load.failures == []
            check_accessibility(browser, address)
            digest = _digest(cluster)
            found = list(differences(digest, digest_of_cluster(cluster.bootstrap)))
            assert not found, found
            return _counted(browser, address, digest, store, load.acknowledged)


def console_without_brokers(store: Store, *, records: int) -> ConsoleFigures:
    """All brokers and Redis are killed (-9) under load; then the console starts. Raises
    `AssertionError`."""
    with (
        _filled(store) as cluster,
        chromium(found_chromium()) as browser,
        TemporaryDirectory() as folder,
    ):
        with _loaded(cluster) as load:
            load.wait_for(records)
            cluster.valkey.kill()
            for broker in cluster.brokers:
                broker.kill()
        acknowledged = load.acknowledged
        digest = _digest(cluster)
        log_file = Path(folder) / "console.log"
        with console_process(cluster.bucket_url, log_file=log_file, settings=FRESH) as address:
            check_hostile(WatchedPage(browser.new_context(), address))
            return _counted(browser, address, digest, store, acknowledged)


@contextmanager
def _filled(store: Store) -> Iterator[Cluster]:
    with running_cluster(BROKERS, store=store, settings=EARLY_UPKEEP) as cluster:
        fill(cluster.bootstrap)
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        yield cluster


@contextmanager
def _loaded(cluster: Cluster) -> Iterator[Load]:
    """The load of a producer, which ends with the block, also after a failed check."""
    load = Load("p", cluster.bootstrap, History(), topic=TOPIC, partitions=PARTITIONS)
    load.start()
    try:
        yield load
    finally:
        load.abandon()


def _digest(cluster: Cluster) -> LogDigest:
    with closing(cluster.open_bucket()) as bucket:
        return digest_of_bucket(bucket)


def _counted(
    browser: Browser, address: str, digest: LogDigest, store: Store, acknowledged: int
) -> ConsoleFigures:
    watched = WatchedPage(browser.new_context(), address)
    slowest_s = 0.0
    for path in PAGES.values():
        began = time.perf_counter()
        watched.open(path)
        slowest_s = max(slowest_s, time.perf_counter() - began)
    assert check_counts(watched, digest) == digest.records
    check_groups(watched, digest)
    assert sum(part.records for part in digest.topics[TOPIC].partitions) >= acknowledged
    assert watched.complaints == []
    return ConsoleFigures(
        store.value,
        len(digest.topics),
        digest.records,
        len(digest.groups),
        len(PAGES),
        len(hostile_records()),
        acknowledged,
        round(slowest_s * 1000),
    )
