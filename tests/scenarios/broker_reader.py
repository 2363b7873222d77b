"""A reader that fetches from one broker alone, whoever leads the partitions.

Its notes say when a record is visible at this broker, whichever broker accepted the record.
"""

import threading
import time

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.history import History, Read, Seen, Sent
from tests.rigs.wire_client import WireClient, fetch_values
from tests.scenarios.load import sent_of

FETCH_WAIT_MS = 100
ANSWER_TIMEOUT_S = 2.0
PAUSE_S = 0.05


class BrokerReader(threading.Thread):
    """Its name in the history is `<prefix><node id>`."""

    prefix = "from broker "

    def __init__(
        self, node_id: int, address: str, history: History, *, topic: str, partitions: int
    ) -> None:
        super().__init__(name=f"{self.prefix}{node_id}")
        self.failures: list[str] = []
        self._address = address
        self._history = history
        self._topic = topic
        self._positions = dict.fromkeys(range(partitions), 0)
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            try:
                with WireClient(self._address, timeout_s=ANSWER_TIMEOUT_S) as client:
                    while not self._stopping.is_set():
                        self._fetch(client)
            except OSError:
                continue  # it is dead, or does not answer

    def _fetch(self, client: WireClient) -> None:
        began = time.monotonic()
        wanted = fetch_values(self._topic, self._positions, max_wait=FETCH_WAIT_MS)
        answer = client.call(ApiKey.FETCH, 11, **wanted)
        retry = False
        for row in answer.responses[0].partitions:
            partition, error = row.partition_index, ErrorCode(row.error_code)
            if error is ErrorCode.offset_out_of_range:
                self._history.resets.append(f"{self.name}, partition {partition}")
            retry = retry or error is not ErrorCode.none
            if row.records:
                self._take(partition, bytes(row.records), began)
        if retry:
            self._stopping.wait(PAUSE_S)

    def _take(self, partition: int, data: bytes, began: float) -> None:
        first, at = self._positions[partition], 0
        rows: list[tuple[int, Sent]] = []
        while at < len(data):
            header = read_header(data, at)
            batch = data[at : at + header.size_bytes]
            rows += [(one.offset, sent_of(one.value)) for one in decode_records(batch, header)]
            at += header.size_bytes
        rows = [row for row in rows if row[0] >= first]
        if not rows:
            return
        self._history.reads.append(Read(self.name, partition, first, rows, began))
        self._positions[partition] = rows[-1][0] + 1
        self._history.positions.append(Seen(self.name, partition, rows[-1][0] + 1))
