"""A transactional producer that sends what a test says, by the requests of either version."""

import asyncio
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.isolation import batches_of, shown_of
from tests.rigs.broker_rig import Rig, outcome
from tests.rigs.wire_client import fetch_values, transactional_values

READ_COMMITTED = 1
TIMEOUT_MS = 60_000
PRODUCE_VERSIONS = {1: 9, 2: 12}
END_VERSIONS = {1: 3, 2: 5}
OFFSETS_VERSIONS = {1: 3, 2: 5}


class TransactionalClient:
    """Of topic `t`. `pair` is what its next requests carry."""

    def __init__(self, rig: Rig, transactional_id: str = "x", *, version: int = 2) -> None:
        self.rig = rig
        """Where its requests go; a test may change it."""
        self.id = transactional_id
        self.version = version
        self.pair = (-1, -1)
        self.kept = (-1, -1)
        """The pair that began the transaction kept by the last init."""
        self.sequences: dict[int, int] = {}

    async def init(
        self,
        *,
        expected: tuple[int, int] = (-1, -1),
        timeout_ms: int = TIMEOUT_MS,
        two_phase: bool = False,
        keeps: bool = False,
    ) -> ErrorCode:
        extended = two_phase or keeps
        answer = await self.rig.call(
            ApiKey.INIT_PRODUCER_ID,
            6 if extended else 5,
            transactional_id=self.id,
            transaction_timeout=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
            **({"enable2_pc": two_phase, "keep_prepared_txn": keeps} if extended else {}),
        )
        if answer.error_code is ErrorCode.none:
            self.pair, self.sequences = (answer.producer_id, answer.producer_epoch), {}
        if extended:
            self.kept = answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch
        return ErrorCode(answer.error_code)

    @property
    def _owner(self) -> dict[str, Any]:
        return {
            "transactional_id": self.id,
            "producer_id": self.pair[0],
            "producer_epoch": self.pair[1],
        }

    def send(self, value: bytes = b"value", *, partition: int = 0) -> "asyncio.Task[Any]":
        sequence = self.sequences.get(partition, 0)
        self.sequences[partition] = sequence + 1
        values = transactional_values(self.id, self.pair, "t", partition, value, sequence=sequence)
        return self.rig.send(ApiKey.PRODUCE, PRODUCE_VERSIONS[self.version], **values)

    async def produce(self, value: bytes = b"value", *, partition: int = 0) -> ErrorCode:
        if self.version == 1:
            added = await self.add(partition)
            if added is not ErrorCode.none:
                return added
        return (await outcome(self.send(value, partition=partition)))[0]

    async def add(self, *partitions: int, topic: str = "t", version: int = 3) -> ErrorCode:
        values = {f"v3_and_below_{name}": value for name, value in self._owner.items()}
        answer = await self.rig.call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            version,
            **values,
            v3_and_below_topics=[{"name": topic, "partitions": partitions}],
        )
        (rows,) = answer.results_by_topic_v3_and_below
        (code,) = {ErrorCode(row.partition_error_code) for row in rows.results_by_partition}
        return code

    async def offsets(self, offset: int, *, group: str = "g") -> ErrorCode:
        if self.version == 1:
            added = await self.rig.call(ApiKey.ADD_OFFSETS_TO_TXN, 3, **self._owner, group_id=group)
            if added.error_code is not ErrorCode.none:
                return ErrorCode(added.error_code)
        return await self.offsets_alone(offset, group=group)

    async def offsets_alone(self, offset: int, *, group: str = "g") -> ErrorCode:
        """Commit an offset without AddOffsetsToTxn."""
        row = {
            "partition_index": 0,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        answer = await self.rig.call(
            ApiKey.TXN_OFFSET_COMMIT,
            OFFSETS_VERSIONS[self.version],
            **self._owner,
            group_id=group,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[{"name": "t", "partitions": [row]}],
        )
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def send_end(self, *, commit: bool = True) -> "asyncio.Task[Any]":
        return self.rig.send(
            ApiKey.END_TXN, END_VERSIONS[self.version], **self._owner, committed=commit
        )

    async def end(self, *, commit: bool = True) -> ErrorCode:
        """A successful end of version 2 gives the next pair."""
        answer = await self.send_end(commit=commit)
        if self.version == 2 and answer.error_code is ErrorCode.none:
            self.pair, self.sequences = (answer.producer_id, answer.producer_epoch), {}
        return ErrorCode(answer.error_code)


async def committed(rig: Rig, partition: int = 0) -> list[bytes]:
    """What a read_committed consumer shows of the partition."""
    values = fetch_values("t", {partition: 0}) | {"isolation_level": READ_COMMITTED}
    row = (await rig.call(ApiKey.FETCH, 11, **values)).responses[0].partitions[0]
    assert row.error_code is ErrorCode.none
    aborted = [(each.producer_id, each.first_offset) for each in row.aborted_transactions or ()]
    data = bytes(row.records or b"")
    shown = {header.base_offset for header in shown_of(data, aborted)}
    return [
        record.value or b""
        for header, batch in batches_of(data)
        if header.base_offset in shown
        for record in decode_records(batch, header)
    ]
