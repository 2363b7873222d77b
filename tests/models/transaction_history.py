"""Checks that transactions were isolated and complete: finds anomalies in a history. Pure.

The names G1a, G1b and G1c are Adya's. Transactions of a log may interleave their writes to a
partition, so the order of writes implies no dependency (Jepsen's analyses of Kafka agree). Instead,
information flows from a transaction to those that read its records. It also flows from a
transaction that commits a group's offset to the transaction that continues from this offset.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

Partition = tuple[str, int]
"""A topic and a partition number."""


class Outcome(StrEnum):
    """UNKNOWN: the client died, or did not learn the outcome."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Item(NamedTuple):
    """A record: a transaction, and the record's number in the transaction, from 0."""

    transaction: str
    number: int


Rows = Sequence[tuple[int, Item]]
"""Offsets and records, as a reader got them."""


class Moved(NamedTuple):
    """The move of a group's offset. A transaction consumed a partition from `first` to before
    `end`, and committed `end`."""

    group: str
    partition: Partition
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """`writes`: the number of records. `ended`: when the client got the response to its commit or
    abort."""

    name: str
    outcome: Outcome
    writes: int
    reads: Sequence[Item] = ()
    offsets: Sequence[Moved] = ()
    ended: float = 0.0


class Poll(NamedTuple):
    """A poll of a reader at offset `first`, which returned `rows`; then it was at `position`."""

    reader: str
    partition: Partition
    first: int
    rows: Rows
    position: int


class OffsetSeen(NamedTuple):
    """A group's committed offset (-1: none). The request for it was sent at `began` or later."""

    group: str
    partition: Partition
    offset: int
    began: float


class StableSeen(NamedTuple):
    """A last stable offset. Offsets of one observer are in the order in which it saw them."""

    observer: str
    partition: Partition
    offset: int


@dataclass(slots=True)
class TransactionHistory:
    """`final`: all committed records in the end, by partition. Records whose transaction is not
    listed were written without one."""

    transactions: list[Transaction] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    offsets_seen: list[OffsetSeen] = field(default_factory=list)
    stable_seen: list[StableSeen] = field(default_factory=list)
    final: Mapping[Partition, Rows] = field(default_factory=dict)


class Anomaly(StrEnum):
    ABORTED_READ = "G1a: something of an aborted transaction was seen"
    INTERMEDIATE_READ = "G1b: a reader saw a part of a transaction and passed its rest"
    CIRCULAR_FLOW = "G1c: transactions depend on each other in a circle"
    PASSED_OVER = "a reader passed a committed transaction without seeing it"
    LOST_OFFSETS = "a committed offset was lost"
    TORN_COMMIT = "a part of a transaction is committed, the rest never"
    LOST_COMMIT = "a committed transaction is not in the log"
    DUPLICATED = "a record is in the log twice"
    STABLE_END_BACK = "a last stable offset went back"


class Found(NamedTuple):
    anomaly: Anomaly
    what: str

    def __str__(self) -> str:
        return f"{self.anomaly}: {self.what}"


def anomalies(history: TransactionHistory) -> list[Found]:
    """Return all anomalies of the history."""
    log = _Log(history)
    return [
        *_duplicated(history),
        *_aborted_reads(history, log),
        *_unfinished(history, log),
        *_passed(history, log),
        *_circles(history, log),
        *_lost_offsets(history, log),
        *_offsets_of_aborted(history, log),
        *_stable_ends_back(history.stable_seen),
    ]


class _Log:
    """The committed records in the end. A transaction with an unknown outcome counts as committed
    if one of its records is there."""

    def __init__(self, history: TransactionHistory) -> None:
        self.by_name = {each.name: each for each in history.transactions}
        self.items: dict[str, set[int]] = defaultdict(set)
        self.places: dict[str, list[tuple[Partition, int, Item]]] = defaultdict(list)
        for partition, rows in history.final.items():
            for offset, item in rows:
                self.items[item.transaction].add(item.number)
                self.places[item.transaction].append((partition, offset, item))

    def committed(self, transaction: Transaction) -> bool:
        """Whether it was committed; False if nothing shows the outcome."""
        if transaction.outcome is Outcome.UNKNOWN:
            return transaction.name in self.items
        return transaction.outcome is Outcome.COMMITTED


def _duplicated(history: TransactionHistory) -> Iterator[Found]:
    seen: dict[Item, tuple[Partition, int]] = {}
    for partition, rows in history.final.items():
        for offset, item in rows:
            before = seen.setdefault(item, (partition, offset))
            if before != (partition, offset):
                yield Found(Anomaly.DUPLICATED, f"{item} at {before} and {(partition, offset)}")


def _aborted_reads(history: TransactionHistory, log: _Log) -> Iterator[Found]:
    """Records of aborted transactions that a reader or a transaction read, or that the log has."""
    shown = [
        *(
            (poll.reader, item)
            for poll in history.polls
            for _, item in poll.rows
            if item.transaction in log.by_name
        ),
        *((each.name, item) for each in history.transactions for item in each.reads),
    ]
    for reader, item in dict.fromkeys(shown):
        transaction = log.by_name.get(item.transaction)
        if transaction is not None and not log.committed(transaction):
            yield Found(Anomaly.ABORTED_READ, f"{reader} saw {item}")
    for transaction in history.transactions:
        if transaction.outcome is Outcome.ABORTED and transaction.name in log.items:
            yield Found(Anomaly.ABORTED_READ, f"{transaction.name} is in the log in the end")


def _unfinished(history: TransactionHistory, log: _Log) -> Iterator[Found]:
    """Transactions of which records are missing. A client commits after all records are
    acknowledged: if one of them is in the log, all must be."""
    for transaction in history.transactions:
        there = len(log.items.get(transaction.name, ()))
        if transaction.outcome is Outcome.ABORTED or there == transaction.writes:
            continue
        if there:
            text = f"{there} of {transaction.writes} records of {transaction.name} are in the log"
            yield Found(Anomaly.TORN_COMMIT, text)
        elif transaction.outcome is Outcome.COMMITTED:
            yield Found(Anomaly.LOST_COMMIT, f"{transaction.name}: {transaction.writes} records")


def _passed(history: TransactionHistory, log: _Log) -> Iterator[Found]:
    """Committed records that a reader has passed without getting them. A reader may be behind in a
    partition, and then lack a part of a transaction."""
    by_reader: dict[str, list[Poll]] = defaultdict(list)
    for poll in history.polls:
        by_reader[poll.reader].append(poll)
    for reader, polls in by_reader.items():
        shown = {item for poll in polls for _, item in poll.rows}
        names = {item.transaction for item in shown}
        spans: dict[Partition, tuple[int, int]] = {}
        for poll in polls:
            first, position = spans.get(poll.partition, (poll.first, poll.position))
            spans[poll.partition] = min(first, poll.first), max(position, poll.position)
        for name, places in log.places.items():
            missed = [
                (partition, offset, item)
                for partition, offset, item in places
                if item not in shown
                and partition in spans
                and spans[partition][0] <= offset < spans[partition][1]
            ]
            for partition, offset, item in missed:
                anomaly = Anomaly.INTERMEDIATE_READ if name in names else Anomaly.PASSED_OVER
                yield Found(anomaly, f"{reader} passed {item} at {partition}, offset {offset}")


def _circles(history: TransactionHistory, log: _Log) -> Iterator[Found]:
    committed = {each.name for each in history.transactions if log.committed(each)}
    after: dict[str, set[str]] = {name: set() for name in committed}
    for before, name in _flows(history, committed):
        if before != name:
            after[before].add(name)
    left = _in_circles(after)
    if left:
        circle = _circle(after, left)
        yield Found(Anomaly.CIRCULAR_FLOW, " -> ".join(circle))


def _flows(history: TransactionHistory, committed: set[str]) -> Iterator[tuple[str, str]]:
    """Pairs of transactions. Information flows from the first to the second."""
    moves: dict[tuple[str, Partition], list[tuple[int, int, str]]] = defaultdict(list)
    for each in history.transactions:
        if each.name not in committed:
            continue
        for item in each.reads:
            if item.transaction in committed:
                yield item.transaction, each.name
        for moved in each.offsets:
            place = moved.group, moved.partition
            moves[place].append((moved.first, moved.end, each.name))
    for mine in moves.values():
        for (_, _, before), (_, _, name) in pairwise(sorted(mine)):
            yield before, name


def _in_circles(after: Mapping[str, set[str]]) -> set[str]:
    """The nodes that are in a circle, or come after a circle."""
    needs = dict.fromkeys(after, 0)
    for names in after.values():
        for name in names:
            needs[name] += 1
    free = [name for name, count in needs.items() if not count]
    left = set(after)
    while free:
        taken = free.pop()
        left.remove(taken)
        for name in after[taken]:
            needs[name] -= 1
            if not needs[name]:
                free.append(name)
    return left


def _circle(after: Mapping[str, set[str]], left: set[str]) -> list[str]:
    """One circle. Each node in `left` has a predecessor in `left`."""
    before = {name: node for node in sorted(left) for name in after[node] if name in left}
    way = [min(left)]
    while before[way[-1]] not in way:
        way.append(before[way[-1]])
    start = way.index(before[way[-1]])
    return [way[start], *reversed(way[start:])]


class _Highest:
    """The highest of some offsets by a time, and whose it is."""

    def __init__(self, rows: Iterable[tuple[float, int, str]]) -> None:
        self._times: list[float] = []
        self._highest: list[tuple[int, str]] = []
        highest = (-1, "")
        for at, offset, name in sorted(rows):
            highest = max(highest, (offset, name))
            self._times.append(at)
            self._highest.append(highest)

    def before(self, at: float) -> tuple[int, str]:
        """-1 for none."""
        found = bisect_left(self._times, at)
        return self._highest[found - 1] if found else (-1, "")


def _lost_offsets(history: TransactionHistory, log: _Log) -> Iterator[Found]:
    """Offsets that are behind an earlier commit, and records that two committed transactions
    consumed."""
    ends: dict[tuple[str, Partition], list[tuple[float, int, str]]] = defaultdict(list)
    moves: dict[tuple[str, Partition], list[tuple[int, int, str]]] = defaultdict(list)
    for each in history.transactions:
        for moved in each.offsets:
            place = moved.group, moved.partition
            if each.outcome is Outcome.COMMITTED:
                ends[place].append((each.ended, moved.end, each.name))
            if log.committed(each):
                moves[place].append((moved.first, moved.end, each.name))
    bounds = {place: _Highest(rows) for place, rows in ends.items()}
    for seen in history.offsets_seen:
        place = seen.group, seen.partition
        end, name = bounds[place].before(seen.began) if place in bounds else (-1, "")
        if seen.offset < end:
            what = f"{place}: {seen.offset} was seen after {name} had committed {end}"
            yield Found(Anomaly.LOST_OFFSETS, what)
    for place, mine in moves.items():
        for (_, end, before), (first, _, name) in pairwise(sorted(mine)):
            if first < end:
                what = f"{place}: {name} began at {first}, and {before} committed {end}"
                yield Found(Anomaly.LOST_OFFSETS, what)


def _offsets_of_aborted(history: TransactionHistory, log: _Log) -> Iterator[Found]:
    """Offsets of aborted transactions that were seen. If nothing shows the outcome of a
    transaction, its offset may be seen."""
    may_be: dict[tuple[str, Partition], set[int]] = defaultdict(set)
    may_not: dict[tuple[str, Partition], dict[int, Transaction]] = defaultdict(dict)
    for each in history.transactions:
        aborted = each.outcome is Outcome.ABORTED or (each.writes and not log.committed(each))
        for moved in each.offsets:
            place = moved.group, moved.partition
            if aborted:
                may_not[place][moved.end] = each
            else:
                may_be[place].add(moved.end)
    for seen in history.offsets_seen:
        place = seen.group, seen.partition
        transaction = may_not[place].get(seen.offset)
        if transaction is None or seen.offset in may_be[place]:
            continue
        known = transaction.outcome is Outcome.ABORTED
        anomaly = Anomaly.ABORTED_READ if known else Anomaly.TORN_COMMIT
        yield Found(anomaly, f"{place}: {seen.offset} of {transaction.name} was seen")


def _stable_ends_back(seen: Iterable[StableSeen]) -> Iterator[Found]:
    highest: dict[tuple[str, Partition], int] = {}
    for observer, partition, offset in seen:
        before = highest.get((observer, partition), -1)
        if offset < before:
            what = f"{observer}, {partition}: {offset} after {before}"
            yield Found(Anomaly.STABLE_END_BACK, what)
        else:
            highest[observer, partition] = offset
