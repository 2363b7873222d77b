"""What running brokers have read, in terms of what they wrote since they started: their metrics."""

from collections import Counter
from collections.abc import Iterable, Mapping
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from bucketlog.cost.pricing import Rates
from bucketlog.log_format.errors import BucketlogError

TIMEOUT_S = 10

Figures = Mapping[tuple[str, str], float]
"""By name and the value of the only label, "" without one."""


def measured(urls: Iterable[str]) -> Rates:
    """Of all these brokers together; each `url` is http://HOST:PORT or ends with /metrics. Raises
    `BucketlogError`."""
    figures: Counter[tuple[str, str]] = Counter()
    for url in urls:
        figures.update(figures_in(_fetched(url)))
    return rates_of(figures)


def _fetched(url: str) -> str:
    address = url if url.endswith("/metrics") else f"{url.rstrip('/')}/metrics"
    remedy = "give the address of a running broker's metrics, http://HOST:PORT/metrics"
    if not address.startswith(("http://", "https://")):
        raise BucketlogError(f"--metrics {url}", remedy=remedy)
    try:
        with urlopen(address, timeout=TIMEOUT_S) as answer:
            return str(answer.read(), "utf-8")
    except (OSError, ValueError) as error:
        raise BucketlogError(f"{address}: {error}", remedy=remedy) from error


def figures_in(text: str) -> dict[tuple[str, str], float]:
    """Of Prometheus' text format. Figures of tenants are added."""
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
