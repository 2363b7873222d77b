"""The error of a Fetch above the high watermark, while the view advances."""

from collections.abc import Callable
from itertools import count
from unittest.mock import Mock

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.fetch import FetchedPartition, FetchPartitions
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.handlers.fetch_lookup import FetchLookup
from bucketlog.stateless_broker.handlers.fetch_plan import PlannedPartitions
from bucketlog.stateless_broker.network.apis import Request, RequestHeader
from bucketlog.stateless_broker.network.turns import Turns
from tests.models.indexes import create, partition, row, segment, topic_id

REQUEST = Request(RequestHeader(ApiKey.FETCH, 16, 0, ""), Mock(), Access.of("User:a", "h", None))
FETCHED = FetchedPartition("t1", topic_id(1), 0, -1, 1, 1000)


class BusyTurns(Turns):
    """Every step ends a slice, and `others` runs between the slices."""

    def __init__(self, others: Callable[[], object]) -> None:
        super().__init__(count().__next__)
        self.others = others

    async def next(self) -> None:
        self.others()


def new_view() -> View:
    view = View()
    view.apply(segment(1, {}, create(1)))
    return view


def advance(view: View) -> None:
    log = view.log(partition(1))
    if log is not None and log.high_watermark == 0:
        view.apply(segment(2, {partition(1): [row(0)]}))


async def looked_up(
    view: View, turns: Turns, *, has_caught_up: bool, meanwhile: Callable[[], object] = int
) -> ErrorCode:
    async def catch_up() -> bool:
        meanwhile()
        return has_caught_up

    membership = Mock(has_handed_over=False)
    planned = PlannedPartitions(FetchPartitions([FETCHED]), committed_only=False)
    lookup = FetchLookup(view=view, membership=membership, catch_up=catch_up, turns=turns)
    await lookup.look_up(planned, REQUEST)
    (found,) = planned
    return found.error


@pytest.mark.parametrize("has_caught_up", [True, False])
async def test_an_offset_that_is_reached_during_the_look_up_is_in_range(
    has_caught_up: bool,
) -> None:
    view = new_view()
    turns = BusyTurns(lambda: advance(view))
    assert await looked_up(view, turns, has_caught_up=has_caught_up) is ErrorCode.none


async def test_an_offset_is_out_of_range_only_after_the_view_has_caught_up() -> None:
    error = await looked_up(new_view(), Turns(), has_caught_up=True)
    assert error is ErrorCode.offset_out_of_range
    error = await looked_up(new_view(), Turns(), has_caught_up=False)
    assert error is ErrorCode.offset_not_available


async def test_an_offset_that_is_reached_after_a_failed_catch_up_is_not_out_of_range() -> None:
    """The view advances just after the row was looked up for the second time."""
    view = new_view()
    turns = BusyTurns(int)

    def reach_it_later() -> None:
        turns.others = lambda: advance(view)

    error = await looked_up(view, turns, has_caught_up=False, meanwhile=reach_it_later)
    assert error is ErrorCode.offset_not_available
