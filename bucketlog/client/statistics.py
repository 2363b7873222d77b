"""Statistics of librdkafka as typed values.

The text comes from librdkafka, which repeats names that brokers sent. Invariant: `parse` never
raises an error. A figure that is missing or has another type is 0, or None if it may be unknown. A
text that is not an object of JSON gives no statistics.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CONNECTED = "UP"


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    """Figures of the connection to one broker. Given by `Statistics.brokers`.

    Attributes:
        name: Address of the broker with its id, as in `localhost:9092/0`.
        node_id: Id of the broker; None for an address of `bootstrap`.
        is_connected: Whether the connection is open.
        queued_requests: Number of requests that wait to be sent.
        outstanding_requests: Number of requests that wait for their responses.
        sent_requests: Number of sent requests.
        sent_bytes: Size of the sent requests, in bytes.
        received_bytes: Size of the received responses, in bytes.
        failed_requests: Number of requests that could not be sent.
        timed_out_requests: Number of requests whose response did not come in time.
        rtt_mean_ms: Mean time from a request to its response in the last interval, in milliseconds;
            None if there was no response.
        rtt_p99_ms: 99th percentile of this time, in milliseconds; None if there was no response.
        throttle_mean_ms: Mean time that the broker made the client wait, in milliseconds; None if
            there was no response.

    Examples:
        >>> from bucketlog.client.statistics import Statistics
        >>> text = '{"brokers": {"a": {"name": "a:9092/0", "nodeid": 0, "waitresp_cnt": 2}}}'
        >>> (broker,) = Statistics.parse(text).brokers
        >>> broker.node_id, broker.outstanding_requests, broker.rtt_mean_ms
        (0, 2, None)
    """

    name: str
    node_id: int | None
    is_connected: bool
    queued_requests: int
    outstanding_requests: int
    sent_requests: int
    sent_bytes: int
    received_bytes: int
    failed_requests: int
    timed_out_requests: int
    rtt_mean_ms: float | None
    rtt_p99_ms: float | None
    throttle_mean_ms: float | None


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """Figures of one partition. Given by `Statistics.partitions`.

    Attributes:
        topic: Name of the topic.
        partition: Number of the partition.
        leader: Id of the leader; None if it is not known.
        queued_records: Number of records that wait to be sent.
        queued_bytes: Size of the records that wait to be sent, in bytes.
        fetched_records: Number of records that were fetched and not yet taken by the consumer.
        fetched_bytes: Size of these records, in bytes.
        sent_records: Number of sent records.
        received_records: Number of received records.
        lag_records: Number of offsets from the committed offset to the end; None if nothing is
            committed, or if the end is not known.
        committed_offset: Committed offset; None if nothing is committed.

    Examples:
        >>> from bucketlog.client.statistics import Statistics
        >>> text = '{"topics": {"t": {"topic": "t", "partitions": {"0": {"consumer_lag": 7}}}}}'
        >>> (row,) = Statistics.parse(text).partitions
        >>> row.topic, row.partition, row.lag_records
        ('t', 0, 7)
    """

    topic: str
    partition: int
    leader: int | None
    queued_records: int
    queued_bytes: int
    fetched_records: int
    fetched_bytes: int
    sent_records: int
    received_records: int
    lag_records: int | None
    committed_offset: int | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures of a producer or a consumer, as librdkafka counts them. Returned by
    `Producer.statistics` and `Consumer.statistics`.

    Counters begin when the client is opened.

    Attributes:
        name: Name of the client in librdkafka's log, as in `shop#producer-1`.
        time_ms: Time of the statistics, in milliseconds since 1970 UTC.
        age_ms: Time since the client was opened, in milliseconds.
        queued_records: Number of records that wait to be sent or acknowledged; 0 for a consumer.
        queued_bytes: Size of these records, in bytes.
        sent_requests: Number of sent requests.
        sent_bytes: Size of the sent requests, in bytes.
        received_bytes: Size of the received responses, in bytes.
        sent_records: Number of sent records.
        received_records: Number of received records.
        brokers: Figures of each broker, in the order of their names.
        partitions: Figures of each partition, in order.

    Examples:
        >>> from bucketlog.client.statistics import Statistics
        >>> statistics = Statistics.parse('{"name": "shop#producer-1", "msg_cnt": 3}')
        >>> statistics.queued_records, statistics.brokers
        (3, ())
    """

    name: str
    time_ms: int
    age_ms: float
    queued_records: int
    queued_bytes: int
    sent_requests: int
    sent_bytes: int
    received_bytes: int
    sent_records: int
    received_records: int
    brokers: tuple[BrokerStatistics, ...]
    partitions: tuple[PartitionStatistics, ...]

    @classmethod
    def parse(cls, text: str) -> "Statistics | None":
        """Read the text that librdkafka makes.

        Args:
            text: JSON, as in librdkafka's STATISTICS.md.

        Returns:
            The statistics; None if the text is not an object of JSON.
        """
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        return cls(
            name=_text(found, "name"),
            time_ms=_count(found, "time") * 1000,
            age_ms=_count(found, "age") / 1000,
            queued_records=_count(found, "msg_cnt"),
            queued_bytes=_count(found, "msg_size"),
            sent_requests=_count(found, "tx"),
            sent_bytes=_count(found, "tx_bytes"),
            received_bytes=_count(found, "rx_bytes"),
            sent_records=_count(found, "txmsgs"),
            received_records=_count(found, "rxmsgs"),
            brokers=tuple(sorted(_brokers(found), key=lambda row: row.name)),
            partitions=tuple(sorted(_partitions(found), key=_place)),
        )


class LatestStatistics:
    """The last statistics of a client. librdkafka calls `take` in a thread that polls; the text is
    parsed when somebody asks for it."""

    def __init__(self) -> None:
        self._text: str | None = None
        self._found: Statistics | None = None

    def added_to(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a client, with a function that takes its statistics."""
        if "statistics.interval.ms" not in config or "stats_cb" in config:
            return dict(config)
        take: Callable[[str], None] = self.take
        return {**config, "stats_cb": take}

    def take(self, text: str) -> None:
        """Keep the newest text."""
        self._text = text

    @property
    def latest(self) -> Statistics | None:
        text, self._text = self._text, None
        if text is not None:
            self._found = Statistics.parse(text) or self._found
        return self._found


def _brokers(found: dict[str, Any]) -> Iterator[BrokerStatistics]:
    for row in _rows(found, "brokers"):
        name = _text(row, "name")
        if _text(row, "source") in ("internal", "logical"):
            continue  # entries of librdkafka that are not servers
        yield BrokerStatistics(
            name=name,
            node_id=_known(row, "nodeid"),
            is_connected=row.get("state") == CONNECTED,
            queued_requests=_count(row, "outbuf_cnt"),
            outstanding_requests=_count(row, "waitresp_cnt"),
            sent_requests=_count(row, "tx"),
            sent_bytes=_count(row, "txbytes"),
            received_bytes=_count(row, "rxbytes"),
            failed_requests=_count(row, "txerrs"),
            timed_out_requests=_count(row, "req_timeouts"),
            rtt_mean_ms=_window(row, "rtt", "avg", 1000),
            rtt_p99_ms=_window(row, "rtt", "p99", 1000),
            throttle_mean_ms=_window(row, "throttle", "avg", 1),
        )


def _partitions(found: dict[str, Any]) -> Iterator[PartitionStatistics]:
    for topic in _rows(found, "topics"):
        for key, row in _named_rows(topic, "partitions"):
            if not key.isascii() or not key.isdigit():
                continue  # -1: records without a partition yet
            yield PartitionStatistics(
                topic=_text(topic, "topic"),
                partition=int(key[:10]),
                leader=_known(row, "leader"),
                queued_records=_count(row, "msgq_cnt") + _count(row, "xmit_msgq_cnt"),
                queued_bytes=_count(row, "msgq_bytes") + _count(row, "xmit_msgq_bytes"),
                fetched_records=_count(row, "fetchq_cnt"),
                fetched_bytes=_count(row, "fetchq_size"),
                sent_records=_count(row, "txmsgs"),
                received_records=_count(row, "rxmsgs"),
                lag_records=_known(row, "consumer_lag"),
                committed_offset=_known(row, "committed_offset"),
            )


def _place(row: PartitionStatistics) -> tuple[str, int]:
    return row.topic, row.partition


def _rows(of: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    return (row for _, row in _named_rows(of, name))


def _named_rows(of: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = of.get(name)
    if isinstance(rows, dict):
        for key, row in rows.items():
            if isinstance(row, dict):
                yield key, row


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _known(row: dict[str, Any], name: str) -> int | None:
    """The number, or None. A negative number of librdkafka means "unknown"."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def _count(row: dict[str, Any], name: str) -> int:
    return _known(row, name) or 0


def _window(row: dict[str, Any], window: str, name: str, divisor: int) -> float | None:
    """A figure of the last interval; None if nothing was measured in it."""
    found = row.get(window)
    if not isinstance(found, dict) or not _count(found, "cnt"):
        return None
    value = _known(found, name)
    return None if value is None else value / divisor
