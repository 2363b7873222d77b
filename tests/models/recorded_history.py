"""A history as lines of JSON, as in Jepsen: each line is the invocation or the completion of an
operation, with its process and its time (seconds of one clock).

| f | type | fields |
|---|---|---|
| produce | invoke | process, number |
| produce | ok | process, number, partition, offset |
| produce | fail, info | process, number, error: certainly not appended, or unknown |
| poll | ok | process, partition, first, rows (offset, producer, number), began, to_end |
| position, high watermark | ok | process, partition, offset |
| end | ok | process, partition, offset, began: the answer to a request for the latest offset |
| commit | ok | process (the group), partition, offset |
| committed | ok | process (the group), partition, offset, began |
| reset | info | what |
| fault | invoke, ok | process (the fault), broker: it begins, it ends |
| seal | info | |
| log | ok | partition, rows: what the bucket holds in the end |

An operation without a completion may have happened or not. `decode` keeps what `promises` needs:
rows are packed, and of positions and high watermarks only those that could break a promise.
Transactions will add `txn` to `produce` and an operation `end transaction`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from tests.models.history import (
    NOTHING_APPENDED,
    Acknowledged,
    Commit,
    CommittedSeen,
    EndSeen,
    History,
    Log,
    Place,
    Read,
    Refused,
    Rows,
    Seen,
    Sent,
)
from tests.models.packed_rows import Names, PackedRows

Line = dict[str, Any]


class FaultSpan(NamedTuple):
    """A fault that was carried out. `broker` is None if the fault affected all brokers."""

    name: str
    broker: int | None
    began: float
    ended: float


@dataclass(slots=True)
class Recorded:
    """The decoded lines. `polls` has, by reader and partition, when rows came, and up to where."""

    history: History = field(default_factory=lambda: History(seals=[]))
    log: dict[int, Rows] = field(default_factory=dict)
    faults: list[FaultSpan] = field(default_factory=list)
    polls: dict[tuple[str, int], list[tuple[float, int]]] = field(default_factory=dict)


def acknowledged_line(row: Acknowledged) -> Line:
    return {
        **_produce("ok", row.sent),
        "partition": row.place.partition,
        "offset": row.place.offset,
        "at": row.at,
    }


def invoked_line(sent: Sent, at: float) -> Line:
    return {**_produce("invoke", sent), "at": at}


def refused_line(row: Refused) -> Line:
    kind = "fail" if row.error in NOTHING_APPENDED else "info"
    return {**_produce(kind, row.sent), "error": row.error.name, "at": row.at}


def _produce(kind: str, sent: Sent) -> Line:
    return {"f": "produce", "type": kind, "process": sent.producer, "number": sent.number}


def read_line(row: Read, at: float) -> Line:
    return {
        **_line("poll", row.reader, row.partition),
        "first": row.first,
        "rows": packed_lines(row.rows),
        "began": row.began,
        "to_end": row.to_end,
        "at": at,
    }


def seen_line(f: str, row: Seen, at: float) -> Line:
    """`f` is `position` or `high watermark`."""
    return {**_line(f, row.observer, row.partition), "offset": row.offset, "at": at}


def end_line(row: EndSeen, at: float) -> Line:
    line = _line("end", row.observer, row.partition)
    return {**line, "offset": row.offset, "began": row.began, "at": at}


def commit_line(row: Commit) -> Line:
    return {**_line("commit", row.group, row.partition), "offset": row.offset, "at": row.at}


def committed_line(row: CommittedSeen) -> Line:
    times = {"began": row.began, "at": row.at}
    return {**_line("committed", row.group, row.partition), "offset": row.offset, **times}


def reset_line(what: str, at: float) -> Line:
    return {"f": "reset", "type": "info", "what": what, "at": at}


def fault_line(kind: str, name: str, broker: int | None, at: float) -> Line:
    """`kind` is `invoke` if the fault begins, `ok` if it has ended."""
    return {"f": "fault", "type": kind, "process": name, "broker": broker, "at": at}


def seal_line(at: float) -> Line:
    return {"f": "seal", "type": "info", "at": at}


def log_line(partition: int, rows: Rows) -> Line:
    return {"f": "log", "type": "ok", "partition": partition, "rows": packed_lines(rows)}


def packed_lines(rows: Rows) -> list[tuple[int, str, int]]:
    return [(offset, sent.producer, sent.number) for offset, sent in rows]


def _line(f: str, process: str, partition: int) -> Line:
    return {"f": f, "type": "ok", "process": process, "partition": partition}


class _Decoder:
    def __init__(self) -> None:
        self.found = Recorded()
        self._names = Names()
        self._reads: dict[tuple[str, int], tuple[Read, PackedRows]] = {}
        self._begun: dict[tuple[str, int | None], float] = {}
        self._highest: dict[tuple[str, str, int], int] = {}

    def take(self, line: Line) -> None:
        history = self.found.history
        match line["f"]:
            case "produce":
                self._produce(line)
            case "poll":
                self._poll(line)
            case "position":
                self._seen(line, history.positions)
            case "high watermark":
                self._seen(line, history.high_watermarks)
            case "end":
                history.ends.append(EndSeen(*_place(line), line["began"]))
            case "commit":
                history.commits.append(Commit(*_place(line), line["at"]))
            case "committed":
                row = CommittedSeen(*_place(line), line["began"], line["at"])
                history.committed_seen.append(row)
            case "reset":
                history.resets.append(line["what"])
            case "fault":
                self._fault(line)
            case "seal":
                assert history.seals is not None
                history.seals.append(line["at"])
            case "log":
                rows = self.found.log.setdefault(line["partition"], PackedRows(self._names))
                assert isinstance(rows, PackedRows)
                self._append(rows, line["rows"])
            case unknown:
                raise ValueError(f"unknown operation {unknown!r}")

    def _produce(self, line: Line) -> None:
        sent, at = Sent(line["process"], line["number"]), line["at"]
        match line["type"]:
            case "invoke":
                self.found.history.invoke(sent, at)
            case "ok":
                place = Place(line["partition"], line["offset"])
                self.found.history.acknowledged.append(Acknowledged(sent, place, at))
            case _:
                error = ErrorCode[line["error"]]
                self.found.history.refused.append(Refused(sent, error, at))

    def _poll(self, line: Line) -> None:
        """Polls that follow each other without a gap are one read."""
        key, first, rows = (line["process"], line["partition"]), line["first"], line["rows"]
        if rows:
            self.found.polls.setdefault(key, []).append((line["at"], rows[-1][0] + 1))
        before = self._reads.get(key)
        follows = before is not None and before[1] and before[1][-1][0] + 1 == first
        if line["to_end"] or not follows or not _dense(first, rows):
            packed = PackedRows(self._names)
            read = Read(*key, first, packed, line["began"], line["to_end"])
            self.found.history.reads.append(read)
            before = self._reads[key] = read, packed
        assert before is not None
        self._append(before[1], rows)

    @staticmethod
    def _append(packed: PackedRows, rows: Sequence[tuple[int, str, int]]) -> None:
        for offset, producer, number in rows:
            packed.append(offset, Sent(producer, number))

    def _seen(self, line: Line, rows: list[Seen]) -> None:
        """Those that rise again and again are left out, except the last."""
        observer, partition, offset = _place(line)
        key = line["f"], observer, partition
        before = self._highest.get(key, -1)
        if offset < before:
            rows += [Seen(observer, partition, before), Seen(observer, partition, offset)]
        else:
            self._highest[key] = offset

    def end(self) -> Recorded:
        for (f, observer, partition), offset in self._highest.items():
            history = self.found.history
            rows = history.positions if f == "position" else history.high_watermarks
            rows.append(Seen(observer, partition, offset))
        return self.found

    def _fault(self, line: Line) -> None:
        key, at = (line["process"], line["broker"]), line["at"]
        if line["type"] == "invoke":
            self._begun[key] = at
        else:
            self.found.faults.append(FaultSpan(*key, self._begun.pop(key), at))


def _place(line: Line) -> tuple[str, int, int]:
    return line["process"], line["partition"], line["offset"]


def _dense(first: int, rows: Sequence[tuple[int, str, int]]) -> bool:
    """No offset is left out."""
    return not rows or (rows[0][0] == first and rows[-1][0] == first + len(rows) - 1)


def decode(lines: Iterable[str]) -> Recorded:
    """Raises `ValueError`, `KeyError` or `TypeError` if a line does not belong to a history."""
    decoder = _Decoder()
    for line in lines:
        decoder.take(json.loads(line))
    return decoder.end()


def lines_of(history: History, log: Log) -> Iterable[str]:
    """A whole history and its log, in any order of operations that keeps each process's."""
    for producer, times in history.invoked.items():
        for number, at in enumerate(times):
            yield json.dumps(invoked_line(Sent(producer, number), at))
    found: list[Line] = [acknowledged_line(row) for row in history.acknowledged]
    found += [refused_line(row) for row in history.refused]
    found += [read_line(row, row.began) for row in history.reads]
    found += [seen_line("high watermark", row, 0) for row in history.high_watermarks]
    found += [end_line(row, row.began) for row in history.ends]
    found += [seen_line("position", row, 0) for row in history.positions]
    found += [commit_line(row) for row in history.commits]
    found += [committed_line(row) for row in history.committed_seen]
    found += [reset_line(what, 0) for what in history.resets]
    found += [seal_line(at) for at in history.seals or ()]
    found += [log_line(partition, rows) for partition, rows in log.items()]
    yield from map(json.dumps, found)
