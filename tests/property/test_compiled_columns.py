"""Compiled code makes the same rows and dead letters as conversions one by one."""

import json
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bucketlog.log_format.arrow_building import binary_array
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.json_values.compiled_values import can_compile
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.log_reader.tables.compiled_columns import CompiledColumns
from bucketlog.log_reader.tables.conversions import TimeRules
from bucketlog.log_reader.tables.rows import BadRecords, RowMaker, RowShape
from tests.rigs.json_texts import moments, reals, strings, tokens, whole, written
from tests.rigs.typed_batches import batch_of
from tests.servers.components import Components

COMPILED, PLAIN = DecoderChoice(-1), DecoderChoice(2**60)
TIMES = TimeRules(epoch_units={"millis": "milliseconds", "micros": "microseconds"})
FIELDS = pa.schema(
    [
        ("text", pa.string()),
        ("is ü", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("number", pa.int32()),
        ("long", pa.int64()),
        ("single", pa.float32()),
        ("real", pa.float64()),
        ("price", pa.decimal128(9, 2)),
        ("large", pa.decimal128(38, 20)),
        ("born", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("millis", pa.timestamp("us", tz="UTC")),
        ("micros", pa.timestamp("us")),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("inner", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("shares", pa.map_(pa.string(), pa.float64())),
    ]
)
dates = st.one_of(
    st.dates().map(lambda day: f'"{day}"'),
    st.sampled_from(['"2023-02-29"', '"0001-01-01"', '"2024-1-01"', '"2024-01-01 "']),
)
singles = reals | st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr)
amounts = st.one_of(
    st.decimals(-(10**7), 10**7, allow_nan=False, places=2).map(str),
    st.decimals(-(10**7), 10**7, allow_nan=False, places=2).map('"{}"'.format),
    st.decimals(-1000, 1000, allow_nan=False).map(str),
    st.sampled_from(["1.500", "12e5", "1e7", "-0.00", "120e-1", '"1e2"', '"+1"', '"1', '"01"']),
    whole,
)
epochs = st.one_of(
    st.integers(0, 4_102_444_800_000_000).map(str),
    st.integers(31_535_999_990, 31_536_000_010).map(str),
    st.integers(4_102_444_799_999, 4_102_444_800_001).map(str),
    st.sampled_from(["1.5e12", "-1", "1e400", str(2**62), str(10**17)]),
    moments,
)
FITTING = {
    "text": strings,
    "is ü": st.sampled_from(["true", "false", "null"]),
    "tiny": st.integers(-130, 130).map(str) | whole,
    "small": st.integers(-(2**15) - 1, 2**15).map(str) | whole,
    "number": st.integers(-(2**31) - 1, 2**31).map(str) | whole,
    "long": whole,
    "single": singles,
    "real": reals,
    "price": amounts,
    "large": amounts,
    "born": dates,
    "at": moments,
    "local": moments,
    "millis": epochs,
    "micros": epochs,
    "raw": st.sampled_from(['"YQ=="', '"YR=="', '""', '"\\u0059Q=="']) | strings,
    "tags": st.lists(st.text(max_size=2)).map(json.dumps),
    "inner": st.fixed_dictionaries({}, optional={"a": st.integers(-9, 9), "c": st.none()}).map(
        json.dumps
    ),
    "shares": st.dictionaries(st.text(max_size=2), st.floats(), max_size=2).map(json.dumps),
    "other": tokens,
    "tex": tokens,
    "": tokens,
}


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Make objects that are mostly valid. In some objects, a name is repeated."""
    names = draw(st.lists(st.sampled_from(sorted(FITTING)), max_size=6, unique=True))
    if not draw(st.integers(0, 7)):
        names += names[:1]
    members = [(name, draw(FITTING[name] if draw(st.integers(0, 7)) else tokens)) for name in names]
    return draw(written(members))


@pytest.fixture(scope="module", autouse=True)
def _compiled(components: Components) -> None:
    if not can_compile():
        components.missing("llvmlite", "pip install llvmlite")


def records_of(values: list[bytes | None]) -> pa.RecordBatch:
    return batch_of(values).append_column("topic", pa.array(["orders"] * len(values), pa.string()))


def made(
    values: list[bytes | None], rule: BadRecords, choice: DecoderChoice, start: int = 0
) -> tuple[str, str] | str:
    """Return rows and dead letters, or the text of the error."""
    maker = RowMaker(RowShape(FIELDS, times=TIMES, bad_records=rule), choice)
    try:
        found = maker.rows(records_of(values).slice(start))
    except InvalidDataError as error:
        return str(error)
    found.rows.validate(full=True)
    return repr(found.rows.to_pylist()), repr(found.dead.to_pylist())


def object_of(**fields: str) -> bytes:
    return ("{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}").encode()


@settings(max_examples=600)
@given(
    st.lists(documents() | st.none(), min_size=1, max_size=5),
    st.sampled_from(["fail", "dead-letter", "null"]),
    st.integers(0, 1),
)
@example([b'{"new": {"a": 1, "a": 2}}', b'{"new": 1, "new": 2}'], "dead-letter", 0)
@example([b'{"new": [{"b": 1}, {"b": 2}], "b": 3}'], "dead-letter", 0)
@example(
    [object_of(at='"2024-02-29T12:30Z"'), object_of(at='"2024-02-29T12:30:00+0100"')], "fail", 0
)
@example(
    [object_of(at='"2024-02-29T12:30:00+19:00"'), object_of(at='"2024-02-29T12:30:00"')], "null", 0
)
@example([object_of(single="1.00000005960464477539062501"), object_of(single="1e-45")], "null", 0)
@example([object_of(single="3.5e38"), object_of(single="-0.0"), object_of(real="-0.0")], "null", 0)
@example([object_of(price="9999999.99"), object_of(price="10000000")], "dead-letter", 0)
def test_rows_and_dead_letters_are_the_same(
    values: list[bytes | None], rule: BadRecords, start: int
) -> None:
    assert made(values, rule, COMPILED, start) == made(values, rule, PLAIN, start)


SURE = [
    b"{}",
    object_of(text='"a\\u00e9ü"', tiny="-128", small="32767", number="-2147483648", long="7"),
    object_of(single="0.1", real="-1.2345678901234567e-150", price="-12.5", large='"3.25"'),
    object_of(
        born='"2024-02-29"', at='"2024-02-29T12:30:59.25+01:00"', local='"1969-12-31 23:59:59"'
    ),
    object_of(millis="1700000000000", micros="1700000000000000", raw='"YQ=="'),
    object_of(
        tags='["a",null]', inner='{"a":1,"c":{"b":[1]}}', shares='{"a":0.5}', new='[{"a":1}]'
    ),
]


@pytest.mark.parametrize("value", SURE)
def test_usual_values_need_no_conversion_one_by_one(value: bytes) -> None:
    compiled = CompiledColumns.of(FIELDS, TIMES)
    assert compiled is not None
    parsed = compiled.columns(binary_array([value, None]), COMPILED)
    assert parsed is not None
    assert not parsed.doubts.any()


def test_conversions_decide_about_doubtful_rows_alone() -> None:
    compiled = CompiledColumns.of(FIELDS, TIMES)
    assert compiled is not None
    parsed = compiled.columns(binary_array([SURE[1], b"{", b'{"tiny": 128}', b"{}"]), COMPILED)
    assert parsed is not None
    assert parsed.doubts.tolist() == [False, True, True, False]
    assert parsed.columns[2].to_pylist()[0] == -128


def test_too_many_fields_are_converted_one_by_one() -> None:
    fields = pa.schema([(f"f{number}", pa.int64()) for number in range(61)])
    assert CompiledColumns.of(fields, TIMES) is None
    found = RowMaker(RowShape(fields), COMPILED).rows(records_of([b'{"f60": 1}']))
    assert found.rows.column("f60").to_pylist() == [1]


@pytest.mark.parametrize("count", [199, 201])
def test_objects_with_many_names(count: int) -> None:
    value = json.dumps({f"new{number}": number for number in range(count)}).encode()
    assert made([value], "dead-letter", COMPILED) == made([value], "dead-letter", PLAIN)


def test_a_few_values_are_converted_without_compiling() -> None:
    compiled = CompiledColumns.of(FIELDS, TIMES)
    assert compiled is not None
    choice = DecoderChoice(3)
    assert compiled.columns(binary_array([b"{}"] * 3), choice) is None
    assert compiled.columns(binary_array([b"{}"]), choice) is not None


def test_untimely_rows_are_dead_letters() -> None:
    records = records_of([b"{}", b"{}"])
    micros = pa.array(np.array([0, 2**62], np.int64)).view(pa.timestamp("us", tz="UTC"))
    records = records.set_column(2, "timestamp", micros)
    found = RowMaker(RowShape(FIELDS, bad_records="dead-letter"), COMPILED).rows(records)
    assert found.rows.column("day").to_pylist() == [date(1970, 1, 1)]
    assert found.dead.column("_log_offset").to_pylist() == [1]
