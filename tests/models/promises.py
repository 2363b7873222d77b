"""Was any promise broken? Pure: from the answers to clients and the final log to complaints.

The promises, as the commit protocol states them: no acknowledged record and no committed offset is
lost; a record's (partition, offset) never changes and is never given to another; nothing readable
is withdrawn, nor appears below what a reader has passed; an idempotent producer's records appear
once and in order.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from tests.models.history import (
    NOTHING_APPENDED,
    Acknowledged,
    History,
    Log,
    Place,
    Read,
    Rows,
    Seen,
    Sent,
)
from tests.models.offset_gaps import gaps_without_seal


class Rule(StrEnum):
    LOST = "lost"
    DUPLICATED = "duplicated"
    MOVED = "moved"
    GIVEN_TWICE = "given twice"
    UNSEEN = "unseen"
    PASSED_OVER = "passed over"
    WITHDRAWN = "withdrawn"
    ABORTED_THEN_SEEN = "aborted, then seen"
    OUT_OF_ORDER = "out of order"
    HIGH_WATERMARK_BACK = "high watermark went back"
    HIGH_WATERMARK_BEYOND = "high watermark beyond the log"
    POSITION_BACK = "position went back"
    RESET = "reset"
    COMMITTED_BACK = "committed offset went back"
    END_STALE = "latest offset below what was acknowledged"
    NEVER_SENT = "never sent"
    GAP = "gap without a seal"


class Broken(NamedTuple):
    rule: Rule
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


def broken_promises(history: History, log: Log) -> list[Broken]:
    """Empty if no promise is broken. `log` is the whole log in the end. Records that were sent and
    not acknowledged may be in it or not, but not more than once."""
    places = _places(log)
    return [
        *_order_of_offsets(log),
        *_duplicates(places, history.not_idempotent),
        *_order_of_producers(log, history.not_idempotent),
        *_acknowledged(history.acknowledged, places, log),
        *_aborted(history, places),
        *_reads(history, log),
        *_going_back(history.high_watermarks, Rule.HIGH_WATERMARK_BACK),
        *_watermarks_beyond(history.high_watermarks, log),
        *_going_back(history.positions, Rule.POSITION_BACK),
        *(Broken(Rule.RESET, reset) for reset in history.resets),
        *_committed(history),
        *_stale_ends(history),
        *_never_sent(history, places),
        *(Broken(Rule.GAP, gap) for gap in gaps_without_seal(history, log)),
    ]


def check(history: History, log: Log) -> None:
    """Raises `AssertionError` with the first of the broken promises of each rule."""
    broken = broken_promises(history, log)
    if broken:
        raise AssertionError(summary(broken))


def summary(broken: Sequence[Broken], *, of_each: int = 5) -> str:
    lines = []
    for rule in Rule:
        mine = [each.what for each in broken if each.rule is rule]
        lines += [f"{rule}: {what}" for what in mine[:of_each]]
        if mine[of_each:]:
            lines.append(f"{rule}: and {len(mine) - of_each} more")
    return "\n".join(lines)


def _places(log: Log) -> dict[Sent, list[Place]]:
    places: dict[Sent, list[Place]] = {}
    for partition, rows in log.items():
        for offset, sent in rows:
            place = Place(partition, offset)
            mine = places.get(sent)
            if mine is None:
                places[sent] = [place]
            else:
                mine.append(place)
    return places


def _never_sent(history: History, places: Iterable[Sent]) -> Iterable[Broken]:
    counts = {producer: len(times) for producer, times in history.invoked.items()}
    for sent in places:
        if sent.number >= counts.get(sent.producer, sent.number + 1):
            yield Broken(Rule.NEVER_SENT, f"{sent} is in the log, and was never sent")


def _duplicates(places: Mapping[Sent, list[Place]], excepted: set[str]) -> Iterable[Broken]:
    for sent, mine in places.items():
        if len(mine) > 1 and sent.producer not in excepted:
            yield Broken(Rule.DUPLICATED, f"{sent} appears {len(mine)} times: {mine}")


def _order_of_offsets(log: Log) -> Iterable[Broken]:
    for partition, rows in log.items():
        for (one, _), (following, sent) in pairwise(rows):
            if following == one:
                yield Broken(Rule.GIVEN_TWICE, f"offset {one} of {partition}, to {sent}, too")
            elif following < one:
                yield Broken(
                    Rule.OUT_OF_ORDER, f"partition {partition}: {following} is read after {one}"
                )


def _order_of_producers(log: Log, excepted: set[str]) -> Iterable[Broken]:
    for partition, rows in log.items():
        last: dict[str, int] = {}
        for offset, sent in rows:
            before = last.get(sent.producer, -1)
            if sent.number < before and sent.producer not in excepted:
                yield Broken(
                    Rule.OUT_OF_ORDER,
                    f"partition {partition}, offset {offset}: {sent} stands after number {before}",
                )
            last[sent.producer] = sent.number


def _acknowledged(
    acknowledged: Iterable[Acknowledged], places: Mapping[Sent, list[Place]], log: Log
) -> Iterable[Broken]:
    told: dict[Place, Sent] = {}
    for sent, place, _ in acknowledged:
        if place.offset < 0:  # the broker has forgotten the offset of a duplicate
            if not places.get(sent):
                yield Broken(Rule.LOST, f"{sent} was acknowledged without an offset")
            continue
        other = told.setdefault(place, sent)
        if other != sent:
            yield Broken(Rule.GIVEN_TWICE, f"{place} was acknowledged for {other} and for {sent}")
        mine = places.get(sent)
        if mine is not None and place in mine:
            continue
        if mine is None:
            yield Broken(Rule.LOST, f"{sent} was acknowledged at {place}")
        else:
            yield Broken(Rule.MOVED, f"{sent} was acknowledged at {place} and stands at {mine}")
        rows = log.get(place.partition, ())
        at = bisect_left(rows, place.offset, key=itemgetter(0))
        if at < len(rows) and rows[at][0] == place.offset:
            yield Broken(Rule.GIVEN_TWICE, f"{place} was {sent}'s and is {rows[at][1]}'s")


def _aborted(history: History, places: Mapping[Sent, list[Place]]) -> Iterable[Broken]:
    """A record that was refused, then sent again and acknowledged, breaks no promise."""
    definite = {row.sent: row for row in history.refused if row.error in NOTHING_APPENDED}
    if not definite:
        return
    for acknowledged in history.acknowledged:
        definite.pop(acknowledged.sent, None)
    for sent, refused in definite.items():
        if sent in places:
            yield Broken(
                Rule.ABORTED_THEN_SEEN,
                f"{sent} was refused with {refused.error.name} and stands at {places[sent]}",
            )


class _AcknowledgedBefore:
    """Of one partition: when each offset was acknowledged, and the highest one by a time."""

    def __init__(self, rows: Sequence[tuple[float, int]]) -> None:
        self._ats: list[float] = []
        self._highest: list[int] = []
        self._when: dict[int, float] = {}
        highest = -1
        for at, offset in sorted(rows):
            highest = max(highest, offset)
            self._ats.append(at)
            self._highest.append(highest)
            self._when.setdefault(offset, at)

    def highest(self, before: float) -> int:
        """-1 for none."""
        found = bisect_left(self._ats, before)
        return self._highest[found - 1] if found else -1

    def was(self, offset: int, before: float) -> bool:
        return self._when.get(offset, before) < before


def _acknowledged_before(history: History) -> dict[int, "_AcknowledgedBefore"]:
    by_partition: dict[int, list[tuple[float, int]]] = {}
    for _, place, at in history.acknowledged:
        if place.offset < 0:
            continue
        by_partition.setdefault(place.partition, []).append((at, place.offset))
    return {partition: _AcknowledgedBefore(rows) for partition, rows in by_partition.items()}


def _stale_ends(history: History) -> Iterable[Broken]:
    told = _acknowledged_before(history) if history.ends else {}
    for observer, partition, offset, began in history.ends:
        highest = told[partition].highest(began) if partition in told else -1
        if offset <= highest:
            yield Broken(
                Rule.END_STALE,
                f"{observer}, partition {partition}: the end was {offset} at {began:.3f}, "
                f"and {highest} was acknowledged before",
            )


def _reads(history: History, log: Log) -> Iterable[Broken]:
    if not history.reads:
        return
    told = _acknowledged_before(history)
    nothing = _AcknowledgedBefore(())
    for read in history.reads:
        yield from _read(read, log.get(read.partition, ()), told.get(read.partition, nothing))


def _read(read: Read, rows: Rows, told: _AcknowledgedBefore) -> Iterable[Broken]:
    """Compare what a reader got with the log, over the offsets that the reader passed."""
    where = f"{read.reader}, partition {read.partition}"
    passed = read.rows[-1][0] + 1 if read.rows else read.first
    end = max(passed, told.highest(read.began) + 1) if read.to_end else passed
    low = bisect_left(rows, read.first, key=itemgetter(0))
    high = bisect_left(rows, end, key=itemgetter(0))
    if list(rows[low:high]) == list(read.rows):
        return
    if read.rows:
        passed = 1 + max(offset for offset, _ in read.rows)
        high = bisect_left(rows, max(end, passed), key=itemgetter(0))
    is_there = dict(rows[low:high])
    shown: dict[int, Sent] = {}
    before = read.first - 1
    for offset, sent in read.rows:
        if offset <= before:
            yield Broken(Rule.OUT_OF_ORDER, f"{where}: {offset} is read after {before}")
        before = max(before, offset)
        shown[offset] = sent
        now = is_there.get(offset)
        if now is None:
            yield Broken(Rule.WITHDRAWN, f"{where}: {sent} was read at {offset} and is gone")
        elif now != sent:
            yield Broken(Rule.GIVEN_TWICE, f"{where}: offset {offset} was {sent} and is {now}")
    for offset, sent in is_there.items():
        if offset in shown:
            continue
        if told.was(offset, read.began):
            yield Broken(
                Rule.UNSEEN, f"{where}: {sent} at {offset} was acknowledged before, and not shown"
            )
        elif offset < passed:
            yield Broken(
                Rule.PASSED_OVER, f"{where}: {sent} appeared at {offset}, {passed} was passed"
            )


def _going_back(seen: Iterable[Seen], rule: Rule) -> Iterable[Broken]:
    highest: dict[tuple[str, int], int] = {}
    for observer, partition, offset in seen:
        before = highest.get((observer, partition), -1)
        if offset < before:
            yield Broken(rule, f"{observer}, partition {partition}: {offset} after {before}")
        else:
            highest[observer, partition] = offset


def _watermarks_beyond(seen: Iterable[Seen], log: Log) -> Iterable[Broken]:
    """It never rests on what is not there: those offsets would be handed out again."""
    highest: dict[int, int] = {}
    for _, partition, offset in seen:
        if offset > highest.get(partition, 0):
            highest[partition] = offset
    for partition, offset in highest.items():
        rows = log.get(partition, ())
        end = rows[-1][0] + 1 if rows else 0
        if offset > end:
            yield Broken(
                Rule.HIGH_WATERMARK_BEYOND,
                f"partition {partition}: it was {offset}, and the log ends at {end}",
            )


def _committed(history: History) -> Iterable[Broken]:
    known: dict[tuple[str, int], list[tuple[float, int]]] = {}
    for commit in history.commits:
        known.setdefault((commit.group, commit.partition), []).append((commit.at, commit.offset))
    for row in history.committed_seen:
        known.setdefault((row.group, row.partition), []).append((row.at, row.offset))
    bounds = {name: _AcknowledgedBefore(rows) for name, rows in known.items()}
    for row in history.committed_seen:
        least = bounds[row.group, row.partition].highest(row.began)
        if row.offset < least:
            yield Broken(
                Rule.COMMITTED_BACK,
                f"group {row.group}, partition {row.partition}: {row.offset} after {least}",
            )
