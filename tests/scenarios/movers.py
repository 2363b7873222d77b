"""Clients whose transactions and reads are recorded in a history.

A mover moves records of a topic to random partitions of the same topic, so that transactions depend
on each other. It notes their outcomes. The value of a record is its name: `<transaction> <number>`.
"""

import threading
import time
from collections.abc import Sequence
from random import Random

from confluent_kafka import KafkaException, Message, Producer
from kio.schema.errors import ErrorCode

from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.isolation import batches_of, shown_of
from tests.models.transaction_history import (
    Item,
    Moved,
    Outcome,
    Poll,
    StableSeen,
    Transaction,
    TransactionHistory,
)
from tests.rigs.patience import let_pass
from tests.rigs.wire_client import WireClient, fetch_values
from tests.scenarios.copier import Copier, spans

BATCH = 5
PAUSE_S = 0.03
LEFT_SHARE = 0.02
"""The share of transactions whose producer is abandoned. The next producer fences it."""
HASTY_S = 0.001
FETCH_WAIT_MS = 100
ANSWER_TIMEOUT_S = 2.0
READ_COMMITTED = 1


def value_of(item: Item) -> bytes:
    return f"{item.transaction} {item.number}".encode()


def item_of(value: bytes | None) -> Item:
    name, number = (value or b"").decode().split(" ")
    return Item(name, int(number))


class _LeftError(Exception):
    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Mover(Copier):
    """A thread that runs from `start` to `stop`. `failures`: errors that a client must not get."""

    def __init__(
        self,
        name: str,
        bootstrap: str,
        history: TransactionHistory,
        *,
        group: str,
        topic: str,
        partitions: int,
        source: Random,
    ) -> None:
        super().__init__(bootstrap, name, group=group, source=topic, batch=BATCH)
        self.failures: list[str] = []
        self.fatal: list[str] = []
        """Errors that ended a producer. librdkafka 2.16 sends records anew in other batches, if a
        broker that accepted them is missing in an answer to Metadata."""
        self.committed = 0
        self._history = history
        self._group = group
        self._topic = topic
        self._partitions = partitions
        self._random = source
        self._turn = 0
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping = True
        self._thread.join()

    def _run(self) -> None:
        ended = False
        try:
            self.run()
            ended = True
        finally:
            if not ended:
                self.failures.append(f"{self._id} ended with an error: see its traceback")

    @property
    def _name(self) -> str:
        return f"{self._id}/{self._turn}"

    def _copy(self, messages: Sequence[Message]) -> bool:
        self._turn += 1
        try:
            outcome = Outcome.COMMITTED if super()._copy(messages) else Outcome.ABORTED
        except _LeftError as left:
            outcome = left.outcome
            self._begin_anew()
        except KafkaException as error:
            outcome = Outcome.UNKNOWN
            self.fatal.append(f"{self._name}: {error}")
            self._begin_anew()
        self._history.transactions.append(
            Transaction(
                self._name,
                outcome,
                len(messages),
                [item_of(each.value()) for each in messages],
                [
                    Moved(self._group, place, first, last + 1)
                    for place, (first, last) in spans(messages).items()
                ],
                time.monotonic(),
            )
        )
        self.committed += outcome is Outcome.COMMITTED
        let_pass(PAUSE_S)
        return outcome is Outcome.COMMITTED

    def _begin_anew(self) -> None:
        self._producer = self._new_producer()
        self._rewind()

    def _write(self, producer: Producer, messages: Sequence[Message]) -> None:
        for number in range(len(messages)):
            value = value_of(Item(self._name, number))
            partition = self._random.randrange(self._partitions)
            producer.produce(self._topic, value, partition=partition)

    def _commit(self) -> None:
        """Commit. Abandons some producers before the commit, or while it may be in flight."""
        chance = self._random.random()
        if chance < LEFT_SHARE / 2:
            raise _LeftError(Outcome.ABORTED)
        if chance < LEFT_SHARE:
            try:
                self._producer.commit_transaction(HASTY_S)
            except KafkaException as error:
                if error.args[0].retriable():
                    raise _LeftError(Outcome.UNKNOWN) from None
                raise
        else:
            super()._commit()


class IsolatedReader(threading.Thread):
    """Reads from one broker with `read_committed`, even if other brokers lead the partitions. Notes
    the records that it gets, and the last stable offsets."""

    def __init__(
        self,
        node_id: int,
        address: str,
        history: TransactionHistory,
        *,
        topic: str,
        partitions: int,
    ) -> None:
        super().__init__(name=f"from broker {node_id}")
        self.failures: list[str] = []
        self.positions = dict.fromkeys(range(partitions), 0)
        self._address = address
        self._history = history
        self._topic = topic
        self._stable: dict[int, int] = {}
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
                continue  # the broker is dead, or does not answer

    def _fetch(self, client: WireClient) -> None:
        wanted = fetch_values(self._topic, self.positions, max_wait=FETCH_WAIT_MS)
        answer = client.call(ApiKey.FETCH, 11, **wanted | {"isolation_level": READ_COMMITTED})
        retry = False
        for row in answer.responses[0].partitions:
            number, error = row.partition_index, ErrorCode(row.error_code)
            if error is ErrorCode.offset_out_of_range:
                self.failures.append(f"{self.name}, partition {number}: {error.name}")
            if error is not ErrorCode.none:
                retry = True
                continue
            if self._stable.get(number) != row.last_stable_offset:
                self._stable[number] = row.last_stable_offset
                seen = StableSeen(self.name, (self._topic, number), row.last_stable_offset)
                self._history.stable_seen.append(seen)
            aborted = [(each.producer_id, each.first_offset) for each in row.aborted_transactions]
            self._take(number, bytes(row.records or b""), aborted)
        if retry:
            self._stopping.wait(PAUSE_S)

    def _take(self, number: int, data: bytes, aborted: Sequence[tuple[int, int]]) -> None:
        first = position = self.positions[number]
        shown = {header.base_offset for header in shown_of(data, aborted)}
        rows: list[tuple[int, Item]] = []
        for header, batch in batches_of(data):
            if header.base_offset in shown:
                rows += [
                    (record.offset, item_of(record.value))
                    for record in decode_records(batch, header)
                    if record.offset >= first
                ]
            position = max(position, header.next_offset)
        if position > first:
            self.positions[number] = position
            poll = Poll(self.name, (self._topic, number), first, rows, position)
            self._history.polls.append(poll)
