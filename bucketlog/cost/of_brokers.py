"""Metrics of running brokers: how much they have read for what they wrote since they started."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlsplit
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from bucketlog.cost.pricing import Rates
from bucketlog.log_format.errors import BucketlogError, ConfigurationError

TIMEOUT_S = 10
READ_BYTES = 65_536
METRICS_BYTES_MAX = 16 * 2**20
"""A broker's page has about 50 kB, or more with the metrics of many clients."""
_REMEDY = "give the address of a running broker's metrics, http://HOST:PORT/metrics"

Figures = Mapping[tuple[str, str], float]
"""Values by the name and the value of the only label, "" without a label."""


def measured(urls: Iterable[str]) -> Rates:
    """Return the rates of all these brokers together. Each URL is http://HOST:PORT or ends with
    /metrics. Raises `BucketlogError`."""
    figures: Counter[tuple[str, str]] = Counter()
    for url in urls:
        figures.update(metrics_of(url))
    return rates_of(figures)


def metrics_of(url: str) -> Figures:
    """Read a broker's metrics: at most `METRICS_BYTES_MAX` bytes, within about `TIMEOUT_S` seconds.
    Raises `BucketlogError`."""
    address = metrics_address(url)
    try:
        with urlopen(address, timeout=TIMEOUT_S) as answer:
            return figures_in(str(_received(answer), "utf-8"))
    except (OSError, HTTPException, ValueError, _TooMuchError) as error:
        raise BucketlogError(f"{address}: {error}", remedy=_REMEDY) from error


def metrics_address(url: str) -> str:
    """Return the address of the page of metrics. Raises `ConfigurationError` unless the URL begins
    with http://HOST or https://HOST."""
    address = url if url.endswith("/metrics") else f"{url.rstrip('/')}/metrics"
    try:
        parts = urlsplit(address)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number
        is_right = False
    if not is_right or not address.isascii() or not address.isprintable():
        raise ConfigurationError(f"--metrics {url}", remedy=_REMEDY)
    return address


def _received(answer: HTTPResponse) -> bytes:
    """Return the body. Raises `_TooMuchError` if the body is too large or arrives too slowly."""
    data = bytearray()
    until = time.monotonic() + TIMEOUT_S
    while part := answer.read1(READ_BYTES):
        data += part
        if len(data) > METRICS_BYTES_MAX:
            raise _TooMuchError(f"the answer has more than {METRICS_BYTES_MAX:,} bytes")
        if time.monotonic() > until:
            raise _TooMuchError(f"the answer took longer than {TIMEOUT_S} s")
    return bytes(data)


class _TooMuchError(Exception):
    pass


def figures_in(text: str) -> dict[tuple[str, str], float]:
    """Parse Prometheus' text format. Figures of tenants are summed."""
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = [value for label, value in sample.labels.items() if label != "tenant"]
            if len(labels) <= 1:
                key = sample.name, next(iter(labels), "")
                found[key] = found.get(key, 0.0) + sample.value
    return found


def rates_of(figures: Figures) -> Rates:
    """Raises `BucketlogError` where nothing was written."""

    def of(name: str, label: str = "") -> float:
        return figures.get((f"bucketlog_{name}_total", label), 0.0)

    puts = of("bucket_requests", "create")
    written = of("bucket_bytes", "in")
    cleaned = of("cleaned_bytes") - of("cleaned_away_bytes")
    produced = written - of("split_bytes") - of("merged_bytes") - cleaned
    if puts <= 0 or written <= 0 or produced <= 0:
        raise BucketlogError(
            "these brokers have written nothing since they started",
            remedy="leave out --metrics: reads are assumed then",
        )
    return Rates(
        fan_out=(of("fetched_bytes", "memory") + of("fetched_bytes", "bucket")) / produced,
        gets_per_put=(of("bucket_requests", "get") + of("bucket_requests", "head")) / puts,
        read_bytes_per_byte=of("bucket_bytes", "out") / written,
        lists_per_put=of("bucket_requests", "list") / puts,
        measured=True,
    )
