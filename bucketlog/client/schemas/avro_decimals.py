"""Exact reading of Avro decimals.

fastavro rounds a decimal to the precision of the schema, without an error. The conversion of a
decimal takes time that is quadratic in the number of bytes. This number is therefore limited.
"""

import copy
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

from bucketlog.client.schemas.avro_kinds import ParsedSchema, nodes_within, parts_of
from bucketlog.log_format.extras import needed

DECIMAL_BYTES_MAX = 1_024
"""Largest number of bytes of a decimal."""
_DECIMAL = "decimal"
_EXACT = "bucketlog-decimal"
_CONTEXT = Context(prec=3 * DECIMAL_BYTES_MAX)
"""A byte adds fewer than three decimal digits."""


def with_exact_decimals(parsed: ParsedSchema) -> Any:
    """Return a schema with which fastavro reads decimals exactly. Readers with this schema raise
    `ValueError` for a decimal of more than `DECIMAL_BYTES_MAX` bytes."""
    if not _decimals(parsed):
        return parsed.schema
    for module in ("fastavro._read_py", "fastavro.read"):  # Python, and compiled if installed
        readers = needed(module, "avro").LOGICAL_READERS
        for kind in ("bytes", "fixed"):
            readers[f"{kind}-{_EXACT}"] = _read_exactly
    made = ParsedSchema(*copy.deepcopy((parsed.schema, dict(parsed.named))))
    for node in _decimals(made):
        node["logicalType"] = _EXACT
    return made.schema


def _decimals(parsed: ParsedSchema) -> list[dict[str, Any]]:
    named = parsed.named.values()
    roots = [parsed.schema, *named, *(part for node in named for part in parts_of(node))]
    return [
        node
        for root in roots
        for node in nodes_within(root)
        if isinstance(node, dict) and node.get("logicalType") == _DECIMAL
    ]


def _read_exactly(data: bytes, schema: Mapping[str, Any], _: object = None) -> Decimal:
    if len(data) > DECIMAL_BYTES_MAX:
        raise ValueError(
            f"a decimal has {len(data):,} bytes, and the limit is {DECIMAL_BYTES_MAX:,}"
        )
    whole = Decimal(int.from_bytes(data, "big", signed=True))
    return whole.scaleb(-schema.get("scale", 0), _CONTEXT)
