"""The table of all APIs that a broker offers, without a broker."""

from random import Random
from typing import Any, cast
from unittest.mock import Mock
from uuid import uuid4

from bucketlog.stateless_broker.assembly.broker_parts import (
    BrokerParts,
    ClusterParts,
    ServedLog,
    Storage,
)
from bucketlog.stateless_broker.assembly.routes import make_routes
from bucketlog.stateless_broker.assembly.share_groups import ShareGroupParts
from bucketlog.stateless_broker.assembly.transaction_parts import TransactionParts
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.fetch.reading import RangeReader
from bucketlog.stateless_broker.network.dispatch import Dispatcher
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.supervision import Supervision

ITEMS_MAX = 10_000


def offered() -> Dispatcher:
    """What the broker's dispatcher has; nothing here is asked anything."""
    nothing = cast(Any, None)
    settings = BrokerSettings(bucket_url="memory://t", redis_url="redis://t", transactions=True)
    membership = Mock(me=Mock(node_id=0))
    parts = BrokerParts(
        settings=settings,
        storage=Storage(nothing, nothing, nothing, RangeReader.of(nothing, nothing, settings)),
        cluster=ClusterParts(nothing, nothing, membership, nothing, nothing, nothing),
        log=ServedLog.empty(settings, Mock(), (int, float), Random(1)),
        validation=nothing,
        supervision=Supervision(nothing, nothing, nothing),
        now_ms=lambda: 0,
        new_uuid=uuid4,
    )
    names = ("catch_up", "catch_up_for_certain", "coordinator", "offsets")
    groups = cast(Any, Mock(**dict.fromkeys(names)))
    dispatcher = Dispatcher(supervisor=nothing, request_items_max=ITEMS_MAX, answers=nothing)
    log = TransactionParts(parts, end=EpochEnd(1), groups=groups, is_newest=nothing)
    shares = ShareGroupParts(parts, groups=groups, end=EpochEnd(1))
    dispatcher.serve(make_routes(parts, groups, shares, EpochEnd(1), log))
    return dispatcher
