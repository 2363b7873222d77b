"""The judges of the proofs of the ingest: planted faults are seen, and nothing else."""

from collections.abc import Mapping
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from tests.scenarios.bad_values import KINDS, Bad, Row, bad, good
from tests.scenarios.dead_letters import TOPIC, Letter, Place, letter_problems, row_problems
from tests.scenarios.evolution import (
    VERSIONS,
    Fold,
    Stage,
    UnfitError,
    as_json,
    record,
    stage_problems,
    typed,
)
from tests.scenarios.lake_readers import digest_of, digest_problems, expected_problems, text_of

PLANTED: Mapping[Place, Bad] = {
    (0, 3): Bad("fraction", b'{"n": 1.5}', "n: "),
    (1, 7): Bad("empty", b"", "the value is empty"),
}
LETTERS = [
    Letter(TOPIC, (0, 3), b'{"n": 1.5}', "n: 1.5 is not a whole number of this type"),
    Letter(TOPIC, (1, 7), b"", "the value is empty"),
]


def test_dead_letters_as_planted() -> None:
    assert letter_problems(PLANTED, LETTERS) == []


@pytest.mark.parametrize(
    ("letters", "problem"),
    [
        (LETTERS[:1], "(1, 7) (empty) is there 0 times"),
        ([*LETTERS, LETTERS[0]], "(0, 3) (fraction) is there 2 times"),
        ([LETTERS[0]._replace(value=b'{"n": 1}'), LETTERS[1]], "has other bytes"),
        ([LETTERS[0], LETTERS[1]._replace(value=None)], "has other bytes"),
        ([LETTERS[0]._replace(reason="does not fit"), LETTERS[1]], "'does not fit'"),
        ([*LETTERS, LETTERS[0]._replace(place=(0, 4))], "(0, 4) is no bad record"),
        ([LETTERS[0]._replace(topic="other"), LETTERS[1]], "other (0, 3) is no bad record"),
    ],
)
def test_faults_of_dead_letters(letters: list[Letter], problem: str) -> None:
    assert any(problem in found for found in letter_problems(PLANTED, letters))


NUMBERS: Mapping[Place, int] = {(0, 0): 1, (1, 0): 2}
ROWS = [((0, 0), good(1).row), ((1, 0), good(2).row)]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (ROWS, None),
        (ROWS[:1], "(1, 0) is not in the table"),
        ([*ROWS, ROWS[0]], "(0, 0) is in the table twice"),
        ([*ROWS, ((0, 3), good(3).row)], "(0, 3) is in the table, and is no good record"),
        ([ROWS[0], ((1, 0), {**good(2).row, "price": Decimal("0.03")})], "(1, 0) has "),
        ([ROWS[0], ((1, 0), {**good(2).row, "total": None})], "(1, 0) has "),
    ],
)
def test_faults_of_rows(rows: list[tuple[Place, Row]], problem: str | None) -> None:
    problems = row_problems(NUMBERS, rows)
    assert [found[: len(problem or "")] for found in problems] == ([problem] if problem else [])


def test_values_follow_from_their_numbers() -> None:
    values = [bad(kind, 17, Random(1)) for kind in KINDS]
    assert len({each.value for each in values}) == len(KINDS) >= 30
    assert values == [bad(kind, 17, Random(1)) for kind in KINDS]
    assert len({good(number).value for number in range(100)}) == 100


def folded() -> Fold:
    fold = Fold()
    chance = Random(1)
    fold.ingest(VERSIONS[0], {(0, at): record(at, at % 10, chance) for at in range(50)})
    fold.ingest(VERSIONS[7], {(1, at): record(at, at % 10, chance) for at in range(50)})
    return fold


def read(stage: Stage) -> list[Row]:
    return [
        {**row, "_log_partition": partition, "_log_offset": offset}
        for (partition, offset), row in stage.rows.items()
    ]


TYPES = {
    **dict.fromkeys(("note", "theirs", "city", "flag", "place"), "any"),
    "id": "long",
    "amount": "double",
    "price": "decimal(8, 2)",
    "_log_offset": "long",
    "day": "date",
}


def test_a_reader_that_sees_what_it_must() -> None:
    stage = folded().stage()
    assert len(stage.rows) > 50
    assert stage_problems(stage, read(stage), TYPES) == []


def without_codes(rows: list[Row]) -> list[Row]:
    places = [{**row["place"], "code": 1} if row["place"] else None for row in rows]
    return [{**row, "place": place} for row, place in zip(rows, places, strict=True)]


@pytest.mark.parametrize(
    ("change", "types", "problem"),
    [
        (lambda rows: rows[1:], {}, "is not in the table"),
        (lambda rows: [*rows, rows[0]], {}, "twice"),
        (lambda rows: [{**row, "amount": 0.5} for row in rows], {}, " has "),
        (without_codes, {}, " has "),
        (lambda rows: rows, {"id": "int"}, "column id is int, not long"),
        (lambda rows: rows, {"more": "int"}, "the columns are "),
    ],
)
def test_a_reader_that_sees_something_else(
    change: Any, types: dict[str, str], problem: str
) -> None:
    stage = folded().stage()
    found = stage_problems(stage, change(read(stage)), {**TYPES, **types})
    assert any(problem in each for each in found)


def test_the_fold_keeps_types_apart() -> None:
    assert typed("float", Decimal("0.1")) == 0.10000000149011612
    assert typed("double", Decimal("0.1")) == 0.1
    assert typed("bigint", 1 << 40) == 1 << 40
    for kind, value in (
        ("int", 1 << 31),
        ("float", Decimal("1e200")),
        ("decimal(8,2)", Decimal(10**6)),
    ):
        with pytest.raises(UnfitError):
            typed(kind, value)
    assert (
        as_json({"a": Decimal("1.50"), "b": [None, True, "é"]})
        == '{"a": 1.50, "b": [null, true, "é"]}'
    )


def test_equal_rows_have_one_digest() -> None:
    rows: list[Row] = [{"a": 1, "b": [("x", 2)]}, {"a": None, "b": []}]
    structs: list[Row] = [{"b": [{"value": 2, "key": "x"}], "a": 1}, {"a": None, "b": []}]
    assert digest_of(rows) == digest_of(structs)
    assert digest_problems(digest_of(rows), {"one": digest_of(structs)}) == []


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"a": 0.1}],
        [{"a": 0.2}, {"a": 0.1}],
        [{"a": 0.1}, {"a": 0.20000000000000004}],
        [{"a": 0.1}, {"a": None}],
        [{"a": 0.1}, {"b": 0.2}],
        [{"a": 0.1}, {"a": "0.2"}],
    ],
)
def test_other_rows_have_other_digests(rows: list[Row]) -> None:
    expected = digest_of([{"a": 0.1}, {"a": 0.2}])
    problems = digest_problems(expected, {"one": digest_of(rows), "two": expected})
    assert len(problems) == 1
    assert problems[0].startswith("one: ")


def test_text_tells_values_apart() -> None:
    values: list[Any] = [
        None,
        "null",
        0,
        0.0,
        -0.0,
        False,
        "0",
        b"0",
        Decimal("0.0"),
        [],
        {},
        [0],
        ["0"],
    ]
    assert len({text_of(value) for value in values}) == len(values)


def test_rows_that_do_not_follow_from_the_records() -> None:
    fold = folded()
    rows = [dict(fold.stage().rows[place]) for place in sorted(fold.rows)]
    assert expected_problems(fold, rows) == []
    assert expected_problems(fold, rows[1:])
    assert expected_problems(fold, [{**rows[0], "note": "other"}, *rows[1:]])
