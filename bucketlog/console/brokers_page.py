"""Computes the page Brokers and the members of a group, which only brokers know.

An error of the brokers is a value of the page, because the rest of the page needs no broker.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from bucketlog.client.groups import MemberInfo
from bucketlog.client.log import Log
from bucketlog.console.aged_value import StillReadingError
from bucketlog.console.broker_access import BrokersBusyError
from bucketlog.console.broker_metrics import BrokerState
from bucketlog.console.log_view import LogView
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console, Values
from bucketlog.log_format.errors import BucketlogError, ConfigurationError, LogError


class LiveBrokerRow(NamedTuple):
    """A live broker. `partitions` is the number of partitions that the broker leads."""

    node_id: int
    address: str
    zone: str
    is_controller: bool
    partitions: int


def brokers(console: Console, query: PageQuery) -> Values:
    view = console.look()
    rows: Sequence[LiveBrokerRow] = ()
    error: BucketlogError | None = None
    if console.cluster is not None:
        try:
            rows = console.cluster.ask(view.identity.cluster_id, _broker_rows)
        except (ConfigurationError, LogError, BrokersBusyError) as raised:
            error = raised
    return {
        "view": view,
        "is_connected": console.cluster is not None,
        "rows": rows,
        "error": error,
        **_metrics(console),
    }


def _metrics(console: Console) -> Values:
    """Return the states of the brokers whose metrics pages are known."""
    states: Sequence[BrokerState] = ()
    is_reading = False
    if console.metrics is not None:
        try:
            states = console.metrics.states(console.deadline)
        except StillReadingError:
            is_reading = True
    return {"has_metrics": console.metrics is not None, "states": states, "is_reading": is_reading}


def _broker_rows(log: Log) -> list[LiveBrokerRow]:
    led = Counter(log.cluster.leaders().values())
    return [
        LiveBrokerRow(
            each.node_id, each.address, each.zone or "", each.is_controller, led[each.node_id]
        )
        for each in log.cluster.describe().brokers
    ]


def group_members(
    console: Console, view: LogView, name: str
) -> tuple[Sequence[MemberInfo], BucketlogError | None]:
    """Return the members of a group, or the error if brokers do not answer. Without a connection to
    brokers, return no members and no error."""
    if console.cluster is None:
        return (), None
    try:
        members = console.cluster.ask(
            view.identity.cluster_id, lambda log: log.groups.members(name)
        )
    except (ConfigurationError, LogError, BrokersBusyError) as error:
        return (), error
    return members, None
