"""Decimals, times of day and numbers of Avro data, read exactly.

fastavro rounds a decimal to the precision of its schema without an error. The conversion of a
decimal takes time that is quadratic in the number of bytes. The compiled fastavro changes negative
times of day into other times. The Python code of fastavro reads numbers of any number of bytes, in
quadratic time.
"""

import copy
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any, TypeAlias

from bucketlog.log_format.extras import needed
from bucketlog.schema_registry.avro_kinds import ParsedSchema, all_nodes

_ReadLogical: TypeAlias = Callable[[Any, Mapping[str, Any], object], Any]

DECIMAL_BYTES_MAX = 1_024
"""Largest number of bytes of a decimal."""
_CONTEXT = Context(prec=3 * DECIMAL_BYTES_MAX)
"""A byte has less than three digits."""
_LONG_BITS = 70
"""Bits in the ten bytes of the longest number, with 7 bits in each byte."""
_DAY = timedelta(days=1)
_MIDNIGHT = datetime(1970, 1, 1, tzinfo=UTC)
_OWN = "bucketlog-"


def with_exact_values(parsed: ParsedSchema) -> Any:
    """Return the schema for a reader of fastavro. Such a reader raises `ValueError` for a decimal
    of more than `DECIMAL_BYTES_MAX` bytes, and for a time that no day has."""
    if not _logical_nodes(parsed):
        return parsed.schema
    for module in ("fastavro._read_py", "fastavro.read"):  # Python, and compiled if there is such
        readers = needed(module, "avro").LOGICAL_READERS
        for (kind, logical), read in _READERS.items():
            readers[f"{kind}-{_OWN}{logical}"] = read
    made = ParsedSchema(*copy.deepcopy((parsed.schema, dict(parsed.named))))
    for node in _logical_nodes(made):
        node["logicalType"] = _OWN + node["logicalType"].removeprefix(_OWN)  # some are there twice
    return made.schema


def python_reader(schema: Any) -> Callable[..., Any]:
    """Return fastavro's reader in Python, with the parameters of `schemaless_reader`. It raises
    `ValueError` for a number of more than ten bytes."""
    module: Any = needed("fastavro._read_py", "avro")
    base: Any = module.BinaryDecoder

    class Decoder(base):  # type: ignore[misc]  # fastavro may be missing
        def read_long(self) -> int:
            number: int = 0
            for shift in range(0, _LONG_BITS, 7):
                byte: bytes = self.fo.read(1)
                if not byte:
                    raise EOFError
                number |= (byte[0] & 0x7F) << shift
                if byte[0] < 0x80:
                    return (number >> 1) ^ -(number & 1)
            raise ValueError("a number has more than 10 bytes")

        read_int = read_long

    named: dict[str, dict[str, Any]] = {"writer": {}, "reader": {}}
    whole = module.parse_schema(schema, named["writer"])

    def read(stream: Any, _: object, __: None, with_names: bool, alone_without_name: bool) -> Any:
        options = {
            "return_record_name": with_names,
            "return_record_name_override": alone_without_name,
        }
        return module.read_data(Decoder(stream), whole, named, None, options)

    return read


def _logical_nodes(parsed: ParsedSchema) -> list[dict[str, Any]]:
    return [
        node
        for node in all_nodes(parsed)
        if isinstance(node, dict) and _is_read_here(node.get("type"), node.get("logicalType"))
    ]


def _is_read_here(kind: object, logical: object) -> bool:
    return isinstance(kind, str) and isinstance(logical, str) and (kind, logical) in _READERS


def _decimal(data: bytes, schema: Mapping[str, Any], _: object = None) -> Decimal:
    if len(data) > DECIMAL_BYTES_MAX:
        raise ValueError(
            f"a decimal has {len(data):,} bytes, and the limit is {DECIMAL_BYTES_MAX:,}"
        )
    whole = Decimal(int.from_bytes(data, "big", signed=True))
    return whole.scaleb(-schema.get("scale", 0), _CONTEXT)


def _time_of_day(unit: timedelta) -> _ReadLogical:
    def read(units: int, _: Mapping[str, Any], __: object = None) -> time:
        since_midnight = units * unit
        if not timedelta(0) <= since_midnight < _DAY:
            raise ValueError(f"no day has the time {units}")
        return (_MIDNIGHT + since_midnight).time()

    return read


_READERS: Mapping[tuple[str, str], _ReadLogical] = {
    ("bytes", "decimal"): _decimal,
    ("fixed", "decimal"): _decimal,
    ("int", "time-millis"): _time_of_day(timedelta(milliseconds=1)),
    ("long", "time-micros"): _time_of_day(timedelta(microseconds=1)),
}
"""By type and logical type."""
