"""The panels of the Grafana dashboards: what each shows, its query, and when its value is bad.

`$cluster`, `$broker`, `$topic` and `$group` are variables of the dashboards; `$__rate_interval` is
Grafana's. The metrics of topics and groups are those of the console.
"""

from typing import NamedTuple

RATE = "$__rate_interval"
OF_BROKERS = 'cluster=~"$cluster", instance=~"$broker"'
OF_TOPICS = 'cluster=~"$cluster", topic=~"$topic"'
OF_GROUPS = 'cluster=~"$cluster", group=~"$group"'
OF_LOG = 'cluster=~"$cluster"'
IN_TOPICS = 'topic=~"$topic"'
ON_S3_STANDARD = 'system="s3_standard"'


class Panel(NamedTuple):
    """`queries` are pairs of legend and query. `unit` is one of Grafana's. From `bad_from`, or
    below `bad_below`, the value is drawn as bad."""

    title: str
    about: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    bad_from: float | None = None
    bad_below: float | None = None


class Dashboard(NamedTuple):
    """`rows` are panels by the title of their row. `variables` are names of variables beside the
    data source."""

    uid: str
    title: str
    variables: tuple[str, ...]
    rows: dict[str, tuple[Panel, ...]]


def of(metric: str, labels: str = "", scope: str = OF_BROKERS) -> str:
    """A metric with the labels, of the chosen brokers, topics or groups."""
    return f"{metric}{{{', '.join(part for part in (labels, scope) if part)}}}"


def rate(metric: str, labels: str = "", by: str = "") -> str:
    inner = f"rate({of(metric, labels)}[{RATE}])"
    return f"sum by ({by}) ({inner})" if by else f"sum({inner})"


def quantiles(histogram: str, labels: str = "") -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, f"histogram_quantile({share}, {rate(f'{histogram}_bucket', labels, by='le')})")
        for name, share in (("p50", 0.5), ("p99", 0.99))
    )


def one(
    title: str,
    about: str,
    unit: str,
    query: str,
    legend: str = "",
    *,
    bad_from: float | None = None,
    bad_below: float | None = None,
) -> Panel:
    return Panel(title, about, unit, ((legend or title, query),), bad_from, bad_below)


BROKERS = Dashboard(
    "bucketlog",
    "bucketlog: brokers",
    ("cluster", "broker"),
    {
        "Health": (
            one(
                "Ready brokers",
                "Number of brokers that are ready for clients.",
                "none",
                f"sum({of('bucketlog_ready')})",
                bad_below=1,
            ),
            one(
                "Parts that are degraded",
                "Number of parts of brokers that do not work. /readyz names them.",
                "none",
                f"count({of('bucketlog_degraded')}) or vector(0)",
                bad_from=1,
            ),
            one(
                "Epochs that ended, 1 h",
                "How often Redis lost its state or was replaced.",
                "none",
                f"max(increase({of('bucketlog_epochs_ended_total')}[1h]))",
                bad_from=3,
            ),
            one(
                "Errors in responses",
                "Responses with an error code, by API and error.",
                "reqps",
                rate("bucketlog_request_errors_total", by="api, error"),
                "{{api}} {{error}}",
            ),
            one(
                "Connections",
                "Open connections of clients.",
                "none",
                f"sum by (instance) ({of('bucketlog_connections')})",
                "{{instance}}",
            ),
            one(
                "Requests in memory",
                "Bytes of requests that a broker has in memory.",
                "bytes",
                f"sum by (instance) ({of('bucketlog_frame_bytes')})",
                "{{instance}}",
            ),
        ),
        "Traffic": (
            one(
                "Produced",
                "Bytes of Produce requests.",
                "Bps",
                rate("bucketlog_request_bytes_total", 'api="Produce"'),
            ),
            one(
                "Fetched",
                "Bytes of Fetch responses.",
                "Bps",
                rate("bucketlog_response_bytes_total", 'api="Fetch"'),
            ),
            one(
                "Requests by API",
                "Requests that were answered.",
                "reqps",
                rate("bucketlog_request_seconds_count", by="api"),
                "{{api}}",
            ),
            Panel(
                "Produce: until acknowledged",
                "Time from a Produce request to its response.",
                "s",
                quantiles("bucketlog_request_seconds", 'api="Produce"'),
                bad_from=2,
            ),
            Panel(
                "Fetch: until answered, waiting included",
                "Time from a Fetch request to its response. Consumers at the end wait for records.",
                "s",
                quantiles("bucketlog_request_seconds", 'api="Fetch"'),
            ),
            Panel(
                "PUTs to the bucket",
                "Time of a PUT of a log segment.",
                "s",
                quantiles("bucketlog_bucket_create_seconds"),
                bad_from=1,
            ),
        ),
        "Processes": (
            one(
                "CPU",
                "CPU time of a broker's process. A broker uses one core.",
                "percentunit",
                f"sum by (instance) (rate({of('process_cpu_seconds_total')}[{RATE}]))",
                "{{instance}}",
                bad_from=0.9,
            ),
            one(
                "Memory",
                "Resident memory of a broker's process.",
                "bytes",
                f"sum by (instance) ({of('process_resident_memory_bytes')})",
                "{{instance}}",
            ),
        ),
    },
)
BUCKET = Dashboard(
    "bucketlog-bucket",
    "bucketlog: bucket",
    ("cluster", "broker"),
    {
        "Requests": (
            one(
                "Requests to the bucket",
                "Requests by verb. Each has a price.",
                "reqps",
                rate("bucketlog_bucket_requests_total", by="verb"),
                "{{verb}}",
            ),
            one(
                "Bytes",
                "Bytes to and from the bucket.",
                "Bps",
                rate("bucketlog_bucket_bytes_total", by="direction"),
                "{{direction}}",
            ),
            one(
                "PUTs that were sent twice",
                "Share of PUTs that took long and were sent again.",
                "percentunit",
                rate("bucketlog_bucket_hedged_puts_total")
                + " / "
                + rate("bucketlog_bucket_requests_total", 'verb="create"'),
                bad_from=0.2,
            ),
        ),
        "Reads": (
            one(
                "Fetched from",
                "Bytes of fetches, from memory or from the bucket.",
                "Bps",
                rate("bucketlog_fetched_bytes_total", by="from"),
                "{{from}}",
            ),
            one(
                "Reads of ranges",
                "GET requests for ranges of objects.",
                "reqps",
                rate("bucketlog_range_requests_total"),
            ),
            one(
                "Bytes of ranges",
                "Bytes that the requests for ranges returned.",
                "Bps",
                rate("bucketlog_range_bytes_total"),
            ),
        ),
        "Encryption": (
            one(
                "Encrypted topics",
                "Bytes that brokers encrypted and decrypted.",
                "Bps",
                rate("bucketlog_encrypted_bytes_total", by="direction"),
                "{{direction}}",
            ),
            one(
                "Refused keys and broken batches",
                "Failures of keys and of decryption.",
                "ops",
                rate("bucketlog_encryption_failures_total", by="reason"),
                "{{reason}}",
                bad_from=0.01,
            ),
        ),
        "Checkpoints, compaction, deletion": (
            one(
                "Checkpoints, 1 h",
                "Checkpoints that brokers wrote.",
                "none",
                f"sum(increase({of('bucketlog_checkpoints_total')}[1h]))",
            ),
            one(
                "Duration of the last checkpoint",
                "Time to write the last checkpoint.",
                "s",
                f"max({of('bucketlog_last_checkpoint_seconds')})",
            ),
            Panel(
                "Compaction",
                "Bytes that brokers split by partition, merged, and cleaned by key.",
                "Bps",
                (
                    ("split", rate("bucketlog_split_bytes_total")),
                    ("merged", rate("bucketlog_merged_bytes_total")),
                    ("cleaned", rate("bucketlog_cleaned_bytes_total")),
                ),
            ),
            one(
                "Deleted objects",
                "Objects that brokers deleted, by kind.",
                "ops",
                f"{rate('bucketlog_deleted_objects_total', by='kind')} or vector(0)",
                "{{kind}}",
            ),
        ),
    },
)
TOPICS = Dashboard(
    "bucketlog-topics",
    "bucketlog: topics and groups",
    ("cluster", "topic", "group"),
    {
        "Groups": (
            one(
                "Lag in records",
                "Offsets that a group has not read.",
                "short",
                f"sum by (group) ({of('bucketlog_group_lag_records', IN_TOPICS, OF_GROUPS)})",
                "{{group}}",
            ),
            one(
                "Lag in time",
                "Time that the first unread record has waited.",
                "s",
                f"max by (group) ({of('bucketlog_group_lag_seconds', scope=OF_GROUPS)})",
                "{{group}}",
                bad_from=300,
            ),
            one(
                "Stuck partitions",
                "Partitions with a lag in which the group commits nothing.",
                "none",
                f"max by (group) ({of('bucketlog_group_stuck_partitions', scope=OF_GROUPS)})",
                "{{group}}",
                bad_from=1,
            ),
        ),
        "Topics": (
            one(
                "New offsets",
                "Growth of a topic in offsets a second.",
                "short",
                f"sum by (topic) (clamp_min(deriv({of('bucketlog_topic_offsets', scope=OF_TOPICS)}"
                f"[{RATE}]), 0))",
                "{{topic}}",
            ),
            Panel(
                "Stored bytes",
                "Bytes of batches in log segments and in tiers.",
                "bytes",
                tuple(
                    (
                        f"{{{{topic}}}} {place}",
                        f"sum by (topic) ({of(f'bucketlog_topic_{place}_bytes', scope=OF_TOPICS)})",
                    )
                    for place in ("log", "tier")
                ),
            ),
            one(
                "Age of the last record",
                "Time since the highest timestamp of a topic.",
                "s",
                "time() - max by (topic) "
                f"({of('bucketlog_topic_last_record_timestamp_seconds', scope=OF_TOPICS)})",
                "{{topic}}",
            ),
        ),
        "Cost": (
            one(
                "Cost of topics on S3 Standard",
                "Price of what the bucket shows. Needs BUCKETLOG_CONSOLE_METRICS_COST.",
                "currencyUSD",
                f"max by (topic) ({of('bucketlog_topic_cost_usd', ON_S3_STANDARD, OF_TOPICS)})",
                "{{topic}}",
            ),
            one(
                "Cost of the log, beside Kafka",
                "Price of the whole log on each system.",
                "currencyUSD",
                f"max by (system) ({of('bucketlog_cost_usd', scope=OF_LOG)})",
                "{{system}}",
            ),
            one(
                "Age of the reading",
                "Time since the console read the log for these metrics.",
                "s",
                f"time() - max({of('bucketlog_log_read_timestamp_seconds', scope=OF_LOG)})",
                bad_from=300,
            ),
        ),
    },
)
TRANSACTIONS = Dashboard(
    "bucketlog-transactions",
    "bucketlog: transactions",
    ("cluster", "broker"),
    {
        "Transactions": (
            one(
                "Ended transactions",
                "Transactions by outcome, and who ended them.",
                "ops",
                rate("bucketlog_transactions_ended_total", by="outcome, by"),
                "{{outcome}} by {{by}}",
            ),
            one(
                "Open transactions",
                "Transactions that have begun and not ended.",
                "short",
                f"max({of('bucketlog_open_transactions')})",
            ),
            one(
                "Offsets behind open transactions",
                "Most offsets of a partition that read_committed consumers cannot read yet.",
                "short",
                f"max({of('bucketlog_unstable_offsets_max')})",
            ),
            one(
                "Oldest transaction with two-phase commit",
                "Age of the oldest prepared or open transaction without a timeout.",
                "s",
                f"max({of('bucketlog_oldest_two_phase_transaction_seconds')})",
            ),
        ),
    },
)
DASHBOARDS = {"brokers": BROKERS, "bucket": BUCKET, "topics": TOPICS, "transactions": TRANSACTIONS}
"""By the name of their file."""
