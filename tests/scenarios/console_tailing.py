"""Producers beside ten readers that tail a topic in the console: the cost for the producers.

Phases without readers and phases with ten readers of the page Messages alternate. Each reader asks
again after the pause of a live page.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from tests.models.history import History
from tests.rigs.patience import PATIENCE_S, let_pass
from tests.scenarios.bystander import Bystander
from tests.scenarios.load import Load
from tests.scenarios.round_trip import create_topic
from tests.servers.browser import console_process
from tests.servers.cluster import Store, running_cluster

BROKERS = 2
TOPIC, PARTITIONS = "tailed", 4
READERS = 10
LIVE_S = 2.0
BURST_PAUSE_S = 0.05
"""The pause of the load between bursts of 40 records: some 800 records a second. A load at full
speed keeps both cores busy, and then any process beside the brokers delays acknowledgements."""
BYSTANDER_TOPIC = "beside"


@dataclass(frozen=True, slots=True)
class TailingFigures:
    """The p99 of acknowledgements in ms: the medians of both kinds of phases, and their ratio.
    `pages` is the number of pages that the readers got."""

    store: str
    p99_without_ms: float
    p99_with_ms: float
    ratio: float
    pages: int


class Readers:
    """Ten readers of a live page."""

    def __init__(self, address: str) -> None:
        self._url = f"{address}messages?topic={TOPIC}&rows=50"
        self.pages = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        stopped = threading.Event()
        threads = [
            threading.Thread(target=self._read, args=(stopped,), name=f"reader-{number}")
            for number in range(READERS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stopped.set()
            for thread in threads:
                thread.join()

    def _read(self, stopped: threading.Event) -> None:
        while not stopped.wait(LIVE_S):
            with urlopen(self._url, timeout=PATIENCE_S) as page:
                assert b"table class" in page.read()
            self.pages += 1


def console_tailing(store: Store, *, turns: int, phase_s: float) -> TailingFigures:
    """Measure acknowledgements with and without readers. Raises `AssertionError` if a request of a
    producer fails."""
    alone: list[float] = []
    beside: list[float] = []
    with (
        TemporaryDirectory(prefix="bucketlog-") as folder,
        running_cluster(BROKERS, store=store) as cluster,
    ):
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        create_topic(cluster.brokers[0].bootstrap, BYSTANDER_TOPIC, 1)
        load = Load("p", cluster.bootstrap, History(), topic=TOPIC, partitions=PARTITIONS)
        load.start()
        load.wait_for(1_000)
        load.slow_down(BURST_PAUSE_S)
        log_file = Path(folder) / "console.log"
        with (
            console_process(
                cluster.bucket_url, log_file=log_file, settings={"refresh_wait_ms": "250"}
            ) as address,
            Bystander([cluster.brokers[0].bootstrap], BYSTANDER_TOPIC) as bystander,
        ):
            readers = Readers(address)
            for _ in range(turns):
                let_pass(phase_s)
                without = bystander.phase()
                with readers.reading():
                    let_pass(phase_s)
                    found = bystander.phase()
                assert without.failures == found.failures == []
                alone.append(without.produce_p99_ms)
                beside.append(found.produce_p99_ms)
        load.stop()
        assert load.failures == []
    return TailingFigures(
        store.value,
        median(alone),
        median(beside),
        round(median(beside) / median(alone), 2),
        readers.pages,
    )
