"""A typed table of some fields: the same rows and errors as with all fields."""

import pytest
from pydantic import BaseModel

from bucketlog.client.topic import Topic
from bucketlog.replaying.typed_table import TypedTable
from tests.rigs.typed_batches import batch_of, outcome


class Pair(BaseModel):
    first: int
    second: int


@pytest.mark.parametrize("neighbour", [b'{"first":1,"second":1}', b'{"first":"1","second":1}'])
@pytest.mark.parametrize("bad", [b'{"first":1,"second":"no"}', b'{"first":1}'])
def test_fields_that_are_not_chosen_are_checked_whatever_the_neighbours_are(
    bad: bytes, neighbour: bytes
) -> None:
    table = TypedTable(Topic("pairs", value=Pair), "flat", ["first"])
    for values in ([bad], [neighbour, bad], [bad, neighbour]):
        found = outcome(table, batch_of([*values]))
        assert isinstance(found, str)
        assert "second" in found
    assert outcome(table, batch_of([neighbour, None])) == [{"first": 1}, {"first": None}]


def test_a_field_that_is_not_chosen_need_not_fit_its_column() -> None:
    table = TypedTable(Topic("pairs", value=Pair), "flat", ["first"])
    large = b'{"first":1,"second":%d}' % 2**70
    assert outcome(table, batch_of([large])) == [{"first": 1}]
