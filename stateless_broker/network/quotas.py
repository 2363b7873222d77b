"""Use of quotas by clients, and the time that clients must wait. Pure: the clock is passed in.

Invariants: a quota is looked up once for each client, until quotas change. Each user or client id
that a quota applies to has its own bucket, so the default quota limits each of them. The
number of buckets is bounded: the one that was unused for longest is forgotten. Source: KIP-13,
KIP-124, KIP-599, KIP-612; Kafka's ClientQuotaManager. Rates are those of token buckets, not of
Kafka's samples (docs/decisions/0026-quotas-by-token-bucket.md).
"""

import hashlib
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from bucketlog.metadata.client_quotas import ClientQuotas
from bucketlog.metadata.host_addresses import canonical_host
from bucketlog.metadata.quota_entities import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.network.token_bucket import TokenBucket

THROTTLE_MS_MAX = 2**31 - 1
"""The longest throttle time that a response can have."""
CLIENT_ID_CHARS_MAX = 256
"""Longest client id that is remembered. Of a longer one, only a digest is remembered, because
clients invent them."""
_PERCENT_A_NS = 100 / 1_000_000_000
_Key = tuple[str, str | None, str | None]


class QuotaRules(NamedTuple):
    """`samples` of `sample_ms` each are the window of a rate. `tracked_max` bounds the rates of
    clients that are measured, and those of addresses."""

    samples: int
    sample_ms: int
    tracked_max: int
    idle_ms: int

    @property
    def burst_s(self) -> float:
        """The time whose quota a client may use at once."""
        return max(self.samples - 1, 1) * self.sample_ms / 1000


class ThrottleCounts:
    """Counts of throttled requests, by the key of the quota."""

    def __init__(self) -> None:
        self.throttled: Counter[str] = Counter()
        self.throttle_ms: Counter[str] = Counter()
        self.tracked = 0

    def note(self, key: str, ms: int) -> None:
        if ms > 0:
            self.throttled[key] += 1
            self.throttle_ms[key] += ms


class Limit(NamedTuple):
    """A quota of a client. `key` names the bucket: the quota, with the client's user and client id
    if the quota depends on them."""

    per_s: float
    key: _Key


class _Tracked:
    """Buckets by key, the one that was used last at the end."""

    def __init__(self, burst_s: float, rules: QuotaRules) -> None:
        self._burst_s = burst_s
        self._rules = rules
        self._rows: OrderedDict[_Key, tuple[TokenBucket, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def at(self, key: _Key, now_s: float) -> TokenBucket:
        row = self._rows.pop(key, None)
        bucket = TokenBucket(self._burst_s) if row is None else row[0]
        self._rows[key] = bucket, now_s
        if row is None:
            self._forget(now_s)
        return bucket

    def _forget(self, now_s: float) -> None:
        """The buckets that are one too many, or were not used for long."""
        rows, rules = self._rows, self._rules
        while len(rows) > 1:
            key, (_, used_s) = next(iter(rows.items()))
            is_quiet = now_s - used_s >= rules.idle_ms / 1000
            if len(rows) <= rules.tracked_max and not is_quiet:
                return
            del rows[key]


class Quotas:
    """`now_s` is a monotonic clock."""

    def __init__(
        self, view: View, rules: QuotaRules, now_s: Callable[[], float], counts: ThrottleCounts
    ) -> None:
        self.view = view
        self.rules = rules
        self.counts = counts
        self.now_s = now_s
        self._known: ClientQuotas | None = None
        self._version = -1
        self._limits: dict[tuple[str, str], ClientLimits] = {}
        self._rates = _Tracked(rules.burst_s, rules)
        self._changes = _Tracked(rules.samples * rules.sample_ms / 1000, rules)
        self._connections = _Tracked(rules.burst_s, rules)

    def limits_of(self, principal: str, client_id: str) -> "ClientLimits | None":
        """The quotas of a client; None: it has none."""
        quotas = self.view.client_quotas
        if quotas is not self._known or quotas.version != self._version:
            self._limits.clear()
            self._known, self._version = quotas, quotas.version
        if len(client_id) > CLIENT_ID_CHARS_MAX:
            client_id = hashlib.blake2b(client_id.encode(), digest_size=16).hexdigest()
        found = self._limits.get((principal, client_id))
        if found is None:
            user = principal.partition(":")[2]
            found = ClientLimits(
                self,
                *(
                    self._limit(quotas, key, user, client_id)
                    for key in (
                        PRODUCER_BYTE_RATE,
                        CONSUMER_BYTE_RATE,
                        REQUEST_PERCENTAGE,
                        CONTROLLER_MUTATION_RATE,
                    )
                ),
            )
            if len(self._limits) >= self.rules.tracked_max:
                self._limits.clear()
            self._limits[principal, client_id] = found
        return found if found.has_any else None

    @staticmethod
    def _limit(quotas: ClientQuotas, key: str, user: str, client_id: str) -> Limit | None:
        found = quotas.of_client(key, user, client_id)
        if found is None:
            return None
        entity = found.entity
        return Limit(
            found.limit,
            (
                key,
                None if entity.user is None else user,
                None if entity.client_id is None else client_id,
            ),
        )

    def connection_refusal(self, host: str) -> str | None:
        """The reason to refuse a new connection of the address (KIP-612). A refused connection does
        not count."""
        address = canonical_host(host)
        found = self.view.client_quotas.of_ip(CONNECTION_CREATION_RATE, address)
        if found is None:
            return None
        now_s = self.now_s()
        bucket = self._connections.at((CONNECTION_CREATION_RATE, address, None), now_s)
        if not bucket.wait_s(found.limit, now_s):
            bucket.take(1, found.limit, now_s)
            return None
        self.counts.throttled[CONNECTION_CREATION_RATE] += 1
        return (
            f"more than {found.limit:g} new connections in a second from its address "
            f"(quota {CONNECTION_CREATION_RATE})"
        )

    def take(self, limit: Limit, amount: float, *, debt_s_max: float = math.inf) -> float:
        """Count what a client uses. Returns how long it must wait, in seconds."""
        now_s = self.now_s()
        bucket = self._rates.at(limit.key, now_s)
        self.counts.tracked = len(self._rates)
        return bucket.take(amount, limit.per_s, now_s, debt_s_max=debt_s_max)

    def wait_s(self, limit: Limit) -> float:
        now_s = self.now_s()
        return self._rates.at(limit.key, now_s).wait_s(limit.per_s, now_s)

    def changes(self, limit: Limit) -> TokenBucket:
        return self._changes.at(limit.key, self.now_s())

    def throttle_ms(self, limit: Limit, wait_s: float) -> int:
        bounded = min(math.ceil(wait_s * 1000), THROTTLE_MS_MAX)
        self.counts.note(limit.key[0], bounded)
        return bounded


class ClientLimits:
    """The quotas that apply to one client, and what it uses of them."""

    __slots__ = ("_changes", "_fetch", "_produce", "_quotas", "_work")

    def __init__(
        self,
        quotas: Quotas,
        produce: Limit | None,
        fetch: Limit | None,
        work: Limit | None,
        changes: Limit | None,
    ) -> None:
        self._quotas = quotas
        self._produce = produce
        self._fetch = fetch
        self._work = work
        self._changes = changes

    @property
    def has_any(self) -> bool:
        return any((self._produce, self._fetch, self._work, self._changes))

    @property
    def counts_work(self) -> bool:
        return self._work is not None

    def produced(self, size_bytes: int) -> int:
        """Count a Produce request. Returns the throttle time in milliseconds."""
        limit, quotas = self._produce, self._quotas
        return 0 if limit is None else quotas.throttle_ms(limit, quotas.take(limit, size_bytes))

    @property
    def fetch_bytes_max(self) -> int | None:
        """A larger response would be above the quota of a whole window."""
        if self._fetch is None:
            return None
        return max(1, int(self._fetch.per_s * self._quotas.rules.burst_s))

    def fetching(self, size_bytes: int) -> int:
        """Count a response before its records are read. Returns the throttle time in milliseconds;
        if there is one, the response must be empty, and does not count."""
        limit, quotas = self._fetch, self._quotas
        if limit is None or size_bytes <= 0:
            return 0
        throttle_ms = quotas.throttle_ms(limit, quotas.wait_s(limit))
        if not throttle_ms:
            quotas.take(limit, size_bytes)
        return throttle_ms

    def fetched(self, more_bytes: int) -> int:
        """The response has this many bytes more than what was counted; or fewer, if negative.
        Returns the throttle time in milliseconds."""
        limit, quotas = self._fetch, self._quotas
        return 0 if limit is None else quotas.throttle_ms(limit, quotas.take(limit, more_bytes))

    def worked(self, ns: int) -> int:
        """Count time of the event loop. Returns the throttle time in milliseconds, at most one
        sample, as in Kafka. What a client used before a window is forgotten."""
        limit, quotas = self._work, self._quotas
        if limit is None:
            return 0
        rules = quotas.rules
        wait_s = quotas.take(limit, ns * _PERCENT_A_NS, debt_s_max=rules.burst_s)
        return quotas.throttle_ms(limit, min(wait_s, rules.sample_ms / 1000))

    def worked_after(self, ns: int) -> None:
        """Count time after the response: later requests wait for it."""
        if self._work is not None:
            burst_s = self._quotas.rules.burst_s
            self._quotas.take(self._work, ns * _PERCENT_A_NS, debt_s_max=burst_s)

    def changes_wait_s(self) -> float:
        """Time until the client may create or delete partitions again, in seconds. 0: now."""
        limit, quotas = self._changes, self._quotas
        if limit is None:
            return 0
        return quotas.changes(limit).wait_s(limit.per_s, quotas.now_s())

    def changed(self, partitions: int) -> None:
        limit, quotas = self._changes, self._quotas
        if limit is not None:
            quotas.changes(limit).take(partitions, limit.per_s, quotas.now_s())

    def throttled_changes(self) -> int:
        """The throttle time of a response about changes, in milliseconds."""
        limit, wait_s = self._changes, self.changes_wait_s()
        return 0 if limit is None else self._quotas.throttle_ms(limit, wait_s)
