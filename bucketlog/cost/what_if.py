"""The price of the same records with another flush interval and another retention. Pure.

A longer interval makes fewer and larger log segments, and records wait longer. Which segments would
have been one follows from the times at which they were written.
"""

from typing import NamedTuple

from bucketlog.cost.assumptions import Assumptions
from bucketlog.cost.of_bucket import Usage
from bucketlog.cost.pricing import PricedDay, Rates, price

FLUSH_BYTES = 8 * 1024 * 1024
"""Default of the brokers' `flush_bytes`."""


class WhatIf(NamedTuple):
    """None: as it was."""

    flush_interval_ms: int | None = None
    retention_days: float | None = None


class Estimate(NamedTuple):
    """`waited_ms` is the mean time that a byte would have waited longer for its flush. `puts` are
    those of all objects."""

    rows: list[PricedDay]
    puts: float
    waited_ms: float


def estimated(
    usage: Usage,
    what_if: WhatIf,
    rates: Rates,
    given: Assumptions,
    *,
    flush_bytes: int = FLUSH_BYTES,
) -> Estimate:
    """Return the prices of the load of `usage` with the settings of `what_if`. The retention is
    that of all topics."""
    load, waited_ms = usage.load, 0.0
    if what_if.flush_interval_ms is not None:
        load, waited_ms = usage.written.load_if(
            flush_interval_ms=what_if.flush_interval_ms, flush_bytes=flush_bytes
        )
    days = usage.retention_days
    if what_if.retention_days is not None:
        days = {topic: what_if.retention_days for _, topic in load}
    rows = price(load, days, rates, given)
    return Estimate(rows, sum(row.puts for row in rows), waited_ms)
