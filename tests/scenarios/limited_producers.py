"""Producers above their quotas beside one without a quota.

The rates are those beyond the burst: at first, a client may use the quota of a window at once. The
burst cannot be told from the rest by time, because its acknowledgements take a while.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S, let_pass
from tests.rigs.wire_client import WireClient

ALONE_S = 5.0
BURST_S = 10
VALUE_BYTES = 50_000
BATCH_BYTES = 200_000
BYSTANDER_PAUSE_S = 0.05


@dataclass
class Client:
    """`pause_s` None: as fast as librdkafka takes records."""

    name: str
    bootstrap: str
    pause_s: float | None
    end: threading.Event
    acknowledged: list[tuple[float, int]] = field(default_factory=list)
    """Times and bytes."""
    delays_s: list[tuple[float, float]] = field(default_factory=list)
    """Times, and how long an acknowledgement took."""
    throttle_ms: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "client.id": self.name,
                "batch.size": BATCH_BYTES,
                "linger.ms": 0 if self.pause_s else 20,
                "queue.buffering.max.kbytes": 8_192,
                "throttle_cb": lambda event: self.throttle_ms.append(
                    round(event.throttle_time * 1000)
                ),
            }
        )
        value = bytes(100 if self.pause_s else VALUE_BYTES)
        while not self.end.is_set():
            try:
                producer.produce(self.name, value, on_delivery=self._note(time.monotonic()))
            except BufferError:
                producer.poll(0.1)
            producer.poll(self.pause_s or 0)
        producer.purge()
        producer.flush(PATIENCE_S)

    def _note(self, sent_s: float) -> Any:
        def acknowledged(error: KafkaError | None, message: Message) -> None:
            now_s = time.monotonic()
            if error is None:
                self.acknowledged.append((now_s, len(message.value() or b"")))
                self.delays_s.append((now_s, now_s - sent_s))
            elif not self.end.is_set():
                self.errors.append(str(error))

        return acknowledged

    def bytes_between(self, first_s: float, last_s: float) -> int:
        return sum(size for at_s, size in self.acknowledged if first_s <= at_s < last_s)

    def p99_ms(self, first_s: float, last_s: float) -> float:
        found = sorted(delay for at_s, delay in self.delays_s if first_s <= at_s < last_s)
        return round(found[int(len(found) * 0.99)] * 1000, 1) if found else 0.0


@dataclass(frozen=True, slots=True)
class LimitedFigures:
    quota_mb_s: float
    rates_mb_s: dict[str, float]
    throttled: dict[str, int]
    bystander_p99_before_ms: float
    bystander_p99_ms: float
    errors: list[str]

    @property
    def deviation_percent(self) -> float:
        """Of the client that is farthest from its quota."""
        rates = self.rates_mb_s.values()
        return round(max(abs(rate / self.quota_mb_s - 1) for rate in rates) * 100, 1)

    def table(self) -> str:
        rows = [
            f"  {name:<12}{rate:>8.3f} MB/s{self.throttled[name]:>8} throttled responses"
            for name, rate in self.rates_mb_s.items()
        ]
        return "\n".join(rows)


def limited_producers(
    bootstraps: list[str], *, clients: int, quota_bytes_s: int, seconds: float
) -> LimitedFigures:
    """Each client produces to one partition, so one broker limits it."""
    names = [f"limited-{number}" for number in range(clients)]
    bootstrap = ",".join(bootstraps)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, 1) for name in [*names, "other"]]).values():
        made.result(PATIENCE_S)
    entries = [
        {
            "entity": [{"entity_type": "client-id", "entity_name": name}],
            "ops": [{"key": "producer_byte_rate", "value": float(quota_bytes_s), "remove": False}],
        }
        for name in names
    ]
    with WireClient(bootstraps[0]) as wire:
        answer = wire.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
    assert all(entry.error_code == 0 for entry in answer.entries), answer
    end = threading.Event()
    other = Client("other", bootstrap, BYSTANDER_PAUSE_S, end)
    limited = [Client(name, bootstrap, None, end) for name in names]
    threads = [threading.Thread(target=client.run) for client in [other, *limited]]
    threads[0].start()
    let_pass(ALONE_S)
    began_s = time.monotonic()
    for thread in threads[1:]:
        thread.start()
    last_s = began_s + seconds
    let_pass(seconds)
    end.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    return LimitedFigures(
        quota_bytes_s / 1e6,
        {
            client.name: round(
                (client.bytes_between(began_s, last_s) - BURST_S * quota_bytes_s) / seconds / 1e6,
                3,
            )
            for client in limited
        },
        {client.name: sum(ms > 0 for ms in client.throttle_ms) for client in limited},
        other.p99_ms(0, began_s),
        other.p99_ms(began_s, last_s),
        [error for client in [other, *limited] for error in client.errors],
    )
