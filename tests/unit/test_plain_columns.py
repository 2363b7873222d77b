"""What fast decoders may decode instead of pydantic: values that differ, one by one."""

import dataclasses
from dataclasses import InitVar, replace
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from bucketlog.client.topic import Topic
from bucketlog.log_reader.decoder_choice import DecoderChoice
from bucketlog.replaying.typed_table import TypedTable
from tests.rigs.typed_batches import CHOICES, batch_of, outcome, plainly


class Lower(TypedDict):
    text: str


class Base64(TypedDict):
    raw: bytes


class Closed(TypedDict):
    number: int


class Neutral(TypedDict):
    number: int


SETTINGS: dict[Any, ConfigDict] = {
    Lower: ConfigDict(str_to_lower=True),
    Base64: ConfigDict(val_json_bytes="base64"),
    Closed: ConfigDict(extra="forbid"),
    Neutral: ConfigDict(frozen=True),
}
for dictionary, settings in SETTINGS.items():
    dictionary.__pydantic_config__ = settings


class ByName(TypedDict):
    number: Annotated[int, Field(alias="Number")]


class Nested(BaseModel):
    inner: Lower
    listed: list[Closed] = []


class Renamed(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    inner: ByName


@dataclasses.dataclass
class Counted:
    number: int
    count: int = dataclasses.field(default=5, init=False)


@dataclasses.dataclass
class Started:
    number: int
    start: InitVar[int]


class NoneByDefault(BaseModel):
    number: int = None  # type: ignore[assignment]  # as users write


class Listed(BaseModel):
    lines: list[NoneByDefault]


class Checked(BaseModel):
    model_config = ConfigDict(validate_default=True)
    text: str = None  # type: ignore[assignment]  # as users write


class Plain(BaseModel):
    number: int


class Real(BaseModel):
    real: float


class Share(BaseModel):
    share: Decimal = Field(max_digits=3, decimal_places=3)


CASES: list[tuple[Any, list[str], Any]] = [
    (Lower, ['{"text":"ABC"}'], [{"text": "abc"}]),
    (Base64, ['{"raw":"QUJD"}'], [{"raw": b"ABC"}]),
    (Closed, ['{"number":1,"other":2}'], "Extra inputs"),
    (Nested, ['{"inner":{"text":"ABC"}}'], [{"inner": {"text": "abc"}, "listed": []}]),
    (Nested, ['{"inner":{"text":"a"},"listed":[{"number":1,"other":2}]}'], "Extra inputs"),
    (Renamed, ['{"inner":{"number":1}}'], [{"inner": {"number": 1}}]),
    (Counted, ['{"number":1,"count":9}'], [{"number": 1, "count": 5}]),
    (Started, ['{"number":1,"start":2}'], [{"number": 1}]),
    (NoneByDefault, ["{}", '{"number":1}'], [{"number": None}, {"number": 1}]),
    (NoneByDefault, ['{"number":1}', '{"number":null}'], "valid integer"),
    (Listed, ['{"lines":[{"number":null}]}'], "valid integer"),
    (Listed, ['{"lines":[{}]}'], [{"lines": [{"number": None}]}]),
    (Checked, ["{}"], "valid string"),
    (Real, ['{"real":-0}', '{"real":-0.0}'], [{"real": 0.0}, {"real": -0.0}]),
    (Share, ['{"share":"0"}'], "digits before the decimal point"),
    (Share, ['{"share":"0.5"}'], [{"share": Decimal("0.500")}]),
]


@pytest.mark.parametrize("choice", CHOICES, ids=["compiled", "pyarrow"])
@pytest.mark.parametrize(("declared", "stored", "expected"), CASES)
def test_values_on_which_the_decoders_differ(
    declared: Any, stored: list[str], expected: list[Any] | str, choice: DecoderChoice
) -> None:
    table = TypedTable(Topic("cases", value=declared), "flat", None, choice)
    batch = batch_of([each.encode() for each in stored])
    found = outcome(table, batch)
    assert repr(found) == repr(plainly(table, batch))
    if isinstance(expected, str):
        assert isinstance(found, str)
        assert expected in found
        return
    assert not isinstance(found, str)
    fields = [{name: row[name] for name in row if not name.startswith("_")} for row in found]
    assert repr(fields) == repr(expected)


@pytest.mark.parametrize("choice", CHOICES, ids=["compiled", "pyarrow"])
@pytest.mark.parametrize(
    ("declared", "stored"),
    [
        (Neutral, b'{"number":1}'),
        (Plain, b'{"number":1}'),
    ],
)
def test_pydantic_does_not_decode_what_all_read_alike(
    declared: Any, stored: bytes, choice: DecoderChoice
) -> None:
    table = TypedTable(Topic("cases", value=declared), "flat", None, choice)

    def fail(data: bytes) -> Any:
        raise AssertionError(data)

    table._value = replace(table._value, decode=fail)
    assert [row["number"] for row in table.typed(batch_of([stored, stored])).to_pylist()] == [1, 1]
