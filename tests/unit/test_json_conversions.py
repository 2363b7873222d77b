"""JSON values become typed values exactly, or are refused with a reason."""

from datetime import UTC, date, datetime
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables import json_text
from bucketlog.log_reader.tables.conversions import TimeRules, converter, nullable
from bucketlog.log_reader.tables.json_text import BadValueError, parse_object
from tests.models.json_cases import CASES, DOCUMENTS, Case, Refused

REASON_LETTERS_MAX = 201


def test_there_are_a_hundred_cases() -> None:
    assert len(CASES) + len(DOCUMENTS) >= 100
    assert len({(case.kind, case.text, case.unit) for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.text}"[:60])
def test_a_conversion(case: Case) -> None:
    times = TimeRules(epoch_unit=case.unit)  # type: ignore[arg-type] # a text of the table
    convert = nullable(converter(case.kind, "f", times))
    text = f'{{"f": {case.text}}}'.encode()
    if isinstance(case.expected, Refused):
        with pytest.raises(BadValueError) as refused:
            convert(parse_object(text)["f"])
        assert case.expected.reason in str(refused.value)
        return
    found = convert(parse_object(text)["f"])
    assert found == case.expected
    assert type(found) is type(case.expected)
    assert pa.array([found], case.kind).to_pylist() == [case.expected]


@pytest.mark.parametrize(("value", "expected"), DOCUMENTS, ids=lambda each: repr(each)[:60])
def test_a_document(value: bytes, expected: dict[str, Any] | Refused) -> None:
    if isinstance(expected, Refused):
        with pytest.raises(BadValueError) as refused:
            parse_object(value)
        assert expected.reason in str(refused.value)
        assert len(refused.value.message) <= REASON_LETTERS_MAX
        return
    assert parse_object(value) == expected


def test_nesting_has_a_limit_that_no_interpreter_sets() -> None:
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        most = json_text.NESTING_MAX - 1  # inside the object of the value
        inner = "1" if opened != "[" else ""
        deep = [f'{{"f":{opened * at}{inner}{closed * at}}}' for at in (most, most + 1)]
        assert list(parse_object(deep[0].encode())) == ["f"]
        with pytest.raises(BadValueError, match="nested too deeply: more than 500 levels"):
            parse_object(deep[1].encode())
    wide = '{"f":[' + "[]," * (2 * json_text.NESTING_MAX) + '{"a":"[[["}]}'
    assert len(parse_object(wide.encode())["f"]) == 2 * json_text.NESTING_MAX + 1


class CountedName(str):
    """Counts how often a name is compared."""

    __slots__ = ()
    comparisons: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        CountedName.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_name_that_is_there_twice_costs_one_pass() -> None:
    many = 1_000
    names = [CountedName(f"name {at}") for at in range(many)]
    pairs: list[tuple[str, Any]] = [(name, 0) for name in [*names, CountedName(f"name {many - 1}")]]
    CountedName.comparisons = 0
    make_object = json_text._DECODER.object_pairs_hook
    assert make_object is not None
    with pytest.raises(BadValueError, match="'name 999' is there twice"):
        make_object(pairs)
    assert CountedName.comparisons < 10 * many


@pytest.mark.parametrize("text", ["1e-99999999", "-1e-30", "1e-21"])
def test_a_tiny_number_is_not_1970(text: str) -> None:
    rules = TimeRules("seconds", earliest=date(1960, 1, 1))
    convert = converter(pa.timestamp("us", tz="UTC"), "f", rules)
    assert convert(parse_object(b'{"f": 0e-99999999}')["f"]) == datetime(1970, 1, 1, tzinfo=UTC)
    with pytest.raises(BadValueError, match="finer than a microsecond"):
        convert(parse_object(f'{{"f": {text}}}'.encode())["f"])


def test_units_by_field() -> None:
    kind = pa.timestamp("us", tz="UTC")
    rules = TimeRules(epoch_unit="seconds", epoch_units={"order.at": "milliseconds"})
    of_field = converter(pa.struct([("at", kind)]), "order", rules)
    assert of_field({"at": 1709209800000})["at"] == converter(kind, "at", rules)(1709209800)


@pytest.mark.parametrize("micros", [-62135596800000001, 253402214400000000])
def test_a_number_outside_the_range_names_the_range(micros: int) -> None:
    rules = TimeRules("microseconds", earliest=date.min, latest=date.max)
    convert = converter(pa.timestamp("us", tz="UTC"), "f", rules)
    with pytest.raises(BadValueError, match="not between 0001-01-01 and 9999-12-31; is the unit"):
        convert(micros)
    assert convert(micros + (1 if micros < 0 else -1)).year in (1, 9999)


def test_rules_and_types_that_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="epoch unit 'ms'"):
        TimeRules(epoch_unit="ms")  # type: ignore[arg-type] # as a user might say
    with pytest.raises(ConfigurationError, match=r"field f\.x has the type duration"):
        converter(pa.struct([("x", pa.duration("s"))]), "f", TimeRules())
    with pytest.raises(ConfigurationError, match="field f has the type map<int32"):
        converter(pa.map_(pa.int32(), pa.string()), "f", TimeRules())
