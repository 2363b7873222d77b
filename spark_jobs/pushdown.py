"""Spark's filters (4.1 and later) to what they leave of a plan."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from pyspark.sql import datasource

from spark_jobs.pruning import COLUMNS, Comparison, Pruning

_NAMES: dict[str, Comparison] = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
# Spark 4.0 knows no filters: nothing is pushed there
_COMPARISONS: dict[Any, Comparison] = {
    getattr(datasource, name): comparison
    for name, comparison in _NAMES.items()
    if hasattr(datasource, name)
}
_IN: Any = getattr(datasource, "In", None)


def pruned_by(pruning: Pruning, one: "datasource.Filter") -> Pruning:
    """`pruning`, and what the filter leaves out; what says nothing of the plan changes nothing."""
    column: tuple[str, ...] = getattr(one, "attribute", ())
    if len(column) != 1 or column[0] not in COLUMNS:
        return pruning
    value = getattr(one, "value", None)
    if type(one) in _COMPARISONS:
        return _compared(pruning, column[0], _COMPARISONS[type(one)], value)
    if _IN is not None and isinstance(one, _IN):
        return _among(pruning, column[0], list(value or ()))
    return pruning


def _compared(pruning: Pruning, column: str, comparison: Comparison, value: Any) -> Pruning:
    match column, value:
        case "topic", str() if comparison == "=":
            return pruning.with_topics([value])
        case "partition", int() if comparison == "=":
            return pruning.with_partitions([value])
        case "offset", int():
            return pruning.with_offset(comparison, value)
        case "timestamp", datetime() if value.tzinfo is not None:
            return pruning.with_timestamp(comparison, int(value.timestamp() * 1000) - 1)
        case _:
            return pruning


def _among(pruning: Pruning, column: str, values: list[Any]) -> Pruning:
    narrow: dict[str, Callable[[list[Any]], Pruning]] = {
        "topic": pruning.with_topics,
        "partition": pruning.with_partitions,
    }
    known = [value for value in values if value is not None]
    if column in narrow:
        return narrow[column](known)
    if column == "offset" and known:
        return pruning.with_offset(">=", min(known)).with_offset("<=", max(known))
    return pruning
