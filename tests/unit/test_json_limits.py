"""Unknown fields with many levels or long numbers: pydantic decides, in bounded time."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from bucketlog.client.topic import Topic
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.replaying.typed_table import TypedTable
from tests.rigs.typed_batches import CHOICES, batch_of, outcome, plainly

COMPILED, PYARROW = CHOICES


class Plain(BaseModel):
    number: int


DEEP, WIDE = '{"number":1,"other":%s}', '{"number":1,"other":"%s"}'
CASES: list[tuple[list[str], list[Any] | str]] = [
    ([DEEP % ("[" * 1_000 + "]" * 1_000)], "recursion limit"),
    ([DEEP % ('[{"a":' * 110 + "1" + "}]" * 110)], "recursion limit"),
    ([DEEP % ('["]]",' * 210 + "1" + "]" * 210)], "recursion limit"),
    ([DEEP % ('["\\"]",' * 210 + "1" + "]" * 210)], "recursion limit"),
    ([DEEP % ("9" * 4_301)], "out of range"),
    ([DEEP % ("[" + "[]," * 500 + "1]"), WIDE % ("[" * 500)], [{"number": 1}] * 2),
    ([WIDE % ("9" * 9_000), WIDE % ('\\"' + "{" * 500)], [{"number": 1}] * 2),
]


def table_of_numbers(choice: DecoderChoice = PYARROW) -> TypedTable:
    return TypedTable(Topic("cases", value=Plain), "flat", ["number"], choice)


@pytest.mark.parametrize("choice", CHOICES, ids=["compiled", "pyarrow"])
@pytest.mark.parametrize(("stored", "expected"), CASES)
def test_pydantic_decides_at_its_limits(
    stored: list[str], expected: list[Any] | str, choice: DecoderChoice
) -> None:
    table = table_of_numbers(choice)
    batch = batch_of([each.encode() for each in stored])
    found = outcome(table, batch)
    assert found == plainly(table, batch)
    if isinstance(expected, str):
        assert isinstance(found, str)
        assert expected in found
    else:
        assert found == expected


@pytest.mark.parametrize(
    "stored",
    [
        DEEP % ('[{"a":"]"},' * 20 + "1" + "]" * 20),
        WIDE % ("[" * 400 + "9" * 900),
        WIDE % ('\\"' + "{" * 500),
        DEEP % ("[" + "[]," * 500 + "1]"),
    ],
)
def test_pyarrow_decodes_values_within_the_limits(stored: str) -> None:
    table = table_of_numbers()

    def fail(data: bytes) -> Any:
        raise AssertionError(data)

    table._value = replace(table._value, decode=fail)
    found = table.typed(batch_of([stored.encode()] * 2)).to_pylist()
    assert [row["number"] for row in found] == [1, 1]
