"""Computes the page Transactions: transactional ids and their open transactions."""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from bucketlog.console.log_view import LogView
from bucketlog.console.page_query import MAX_TIME_MS, PageQuery, table_page
from bucketlog.console.pages import Console, Values

KINDS = ("open", "all")


class TransactionRow(NamedTuple):
    """A transactional id. `partitions` and `groups` count the partitions and groups of its open
    transaction. `since_ms` is the time of the first log segment with a record of this transaction,
    or None if a checkpoint covers this segment or if there is no record. `outcome` is the outcome
    of the last transaction: none, committed or aborted."""

    name: str
    producer_id: int
    producer_epoch: int
    partitions: int
    groups: int
    since_ms: int | None
    timeout_ms: int
    two_phase: bool
    outcome: str

    @property
    def is_open(self) -> bool:
        return bool(self.partitions or self.groups)

    def is_late(self, now_ms: int) -> bool:
        """Whether the open transaction is older than its timeout."""
        return (
            self.since_ms is not None
            and not self.two_phase
            and now_ms - self.since_ms > self.timeout_ms
        )


def transaction_rows(view: LogView) -> list[TransactionRow]:
    """All transactional ids of the log."""
    transactions, begun_ms = view.state.transactions, _begun_ms(view)
    return [
        TransactionRow(
            name,
            owner.producer_id,
            owner.producer_epoch,
            partitions=len(transactions.parts.get(owner.transaction[0], ())),
            groups=len(transactions.pending.get(name, ())),
            since_ms=begun_ms.get(owner.transaction[0]),
            timeout_ms=owner.timeout_ms,
            two_phase=owner.two_phase,
            outcome=owner.outcome,
        )
        for name, owner in transactions.ids.items()
    ]


def _begun_ms(view: LogView) -> dict[int, int]:
    """By producer id, the time of the first log segment of the open transaction."""
    firsts = {
        (key, opened.first_offset): producer_id
        for producer_id, keys in view.state.transactions.parts.items()
        for key in keys
        if (opened := view.state.partitions[key].transactions.open.get(producer_id)) is not None
    }
    partitions = {key for key, _ in firsts}
    found: dict[int, int] = {}
    for index in view.snapshot.segments if firsts else ():
        for listed in index.partitions:
            if listed.partition not in partitions:
                continue
            for row in listed.batches:
                producer_id = firsts.get((listed.partition, row.base_offset))
                if producer_id is not None:
                    before_ms = found.get(producer_id, index.created_ms)
                    found[producer_id] = min(before_ms, index.created_ms)
    return found


def transactions(console: Console, query: PageQuery) -> Values:
    view = console.look()
    kind = query.choice("show", KINDS)
    rows: Sequence[TransactionRow] = transaction_rows(view)
    is_open = [row for row in rows if row.is_open]
    page = table_page(
        is_open if kind == "open" else rows,
        query,
        {
            "name": attrgetter("name"),
            "partitions": attrgetter("partitions"),
            "since": lambda row: MAX_TIME_MS if row.since_ms is None else row.since_ms,
        },
        filter_text=attrgetter("name"),
        rows_max=console.settings.page_rows_max,
    )
    counts = (("open", "Open", len(is_open)), ("all", "All", len(rows)))
    return {"view": view, "kind": kind, "page": page, "counts": counts}
