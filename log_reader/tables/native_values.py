"""Conversion of values of typed formats, such as Avro and Protobuf, to values of columns. Pure.

The invariants are those of `conversions`. Decoded values may have the Python types `bytes`,
`float`, `date`, `time`, `datetime` and `UUID`. All other values are converted as JSON values are.
"""

import math
import struct
from datetime import UTC, date, datetime, time
from uuid import UUID

import pyarrow as pa
import pyarrow.types as kinds

from bucketlog.log_reader.tables.conversions import Convert, TimeRules, json_simple
from bucketlog.log_reader.tables.json_text import BadValueError

_FLOAT = struct.Struct("<f")
_MILLISECOND_MICROS = 1_000
_FULL_BITS = 64


def native_simple(kind: pa.DataType, path: str, times: TimeRules) -> Convert:
    """Return the function that converts a decoded value to a type without members. Raises
    `ConfigurationError`."""
    otherwise = json_simple(kind, path, times)
    if kinds.is_string(kind):
        return lambda found: otherwise(str(found) if type(found) is UUID else found)
    if kinds.is_signed_integer(kind):
        return lambda found: otherwise(
            _time_of_day(found, path, kind.bit_width) if type(found) is time else found
        )
    if kinds.is_float64(kind):
        return lambda found: found if type(found) is float else otherwise(found)
    if kinds.is_float32(kind):
        return lambda found: _float(found, path) if type(found) is float else otherwise(found)
    if kinds.is_binary(kind):
        return lambda found: found if type(found) is bytes else otherwise(found)
    if kinds.is_date32(kind):
        return lambda found: found if type(found) is date else otherwise(found)
    if kinds.is_timestamp(kind):
        in_zone = kind.tz is not None
        return lambda found: (
            _moment(found, path, in_zone=in_zone) if type(found) is datetime else otherwise(found)
        )
    return otherwise


def _float(found: float, path: str) -> float:
    if math.isnan(found):
        return found
    try:
        near: float = _FLOAT.unpack(_FLOAT.pack(found))[0]
    except OverflowError as error:
        raise BadValueError(f"{path}: {found} is out of range") from error
    return near


def _moment(found: datetime, path: str, *, in_zone: bool) -> datetime:
    if in_zone is (found.tzinfo is None):
        has = "no zone, the column has one" if in_zone else "a zone, the column has none"
        raise BadValueError(f"{path}: {found} has {has}")
    return found.astimezone(UTC) if in_zone else found


def _time_of_day(found: time, path: str, bits: int) -> int:
    """Return microseconds since midnight for a column of 64 bits, otherwise milliseconds."""
    seconds = (found.hour * 60 + found.minute) * 60 + found.second
    micros = seconds * 1_000_000 + found.microsecond
    if bits == _FULL_BITS:
        return micros
    if micros % _MILLISECOND_MICROS:
        raise BadValueError(f"{path}: {found} is finer than a millisecond")
    return micros // _MILLISECOND_MICROS
