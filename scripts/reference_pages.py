"""The reference pages of the documentation site, made from the code: API, commands and metrics."""

import ast
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import typer
from typer.cli import get_docs_for_click

import bucketlog

ROOT = Path(__file__).parents[1]
FIGURES = ("metrics.py", "client_figures.py", "tenant_figures.py", "work_figures.py")
FAMILIES = {
    "CounterMetricFamily": "counter",
    "GaugeMetricFamily": "gauge",
    "HistogramMetricFamily": "histogram",
}

API_PAGES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "connect": (
        "Connect",
        "Connections to a cluster, with and without asyncio.",
        (
            *("connect", "aconnect", "Log", "AsyncLog"),
            *("Security", "TokenFile", "ClientCredentials", "OpenTelemetry"),
        ),
    ),
    "topics": (
        "Topics and formats",
        "Topics with the types of their keys and values, and the formats of bytes.",
        (
            "Topic",
            "TopicPattern",
            "TopicPartition",
            "TopicSource",
            "Record",
            "Format",
            "Avro",
            "Protobuf",
            "SchemaRegistry",
        ),
    ),
    "producers": (
        "Producers",
        "Producers send records and report their delivery.",
        (
            *("Producer", "Delivery", "Delivered", "AsyncProducer", "AsyncDelivery"),
            *("client.options.ProducerOptions", "client.statistics.Statistics"),
            *("client.statistics.BrokerStatistics", "client.statistics.PartitionStatistics"),
        ),
    ),
    "consumers": (
        "Consumers",
        "Consumers read partitions alone or as members of a group.",
        (
            *("Consumer", "PartitionConsumer", "GroupConsumer", "AsyncConsumer"),
            *("AsyncGroupConsumer", "Retrying", "DeadLetter", "RetryTopics"),
            *("client.options.PartitionOptions", "client.options.GroupOptions"),
            *("client.options.TopicsOptions", "client.options.TopicsGroupOptions"),
        ),
    ),
    "transactions": (
        "Transactions",
        "A transaction writes records and commits offsets together.",
        (
            *("Transaction", "AsyncTransaction", "client.transactions.TransactionAdmin"),
            *("client.transactions.TransactionInfo", "client.transactions.TransactionDetails"),
        ),
    ),
    "administration": (
        "Administration",
        "Topics, groups, users, access rules and the cluster, as attributes of `Log`.",
        (
            *("client.topics.Topics", "client.groups.Groups", "client.users.Users"),
            *("client.acls.AclAdmin", "Acl", "client.cluster.ClusterAdmin"),
            *("client.async_log.AsyncTopics", "client.async_log.AsyncGroups"),
            *("client.async_log.AsyncUsers", "client.async_log.AsyncAcls"),
            *("client.topics.TopicInfo", "client.topics.PartitionInfo"),
            *("client.topics.TopicDetails", "client.topics.FirstRecord"),
            *("client.groups.GroupInfo", "client.groups.MemberInfo"),
            *("client.groups.GroupPosition", "client.groups.GroupDetails"),
            *("client.groups.GroupOffset", "client.groups.Reset", "client.users.UserCredential"),
            *("client.cluster.BrokerInfo", "client.cluster.ClusterDetails"),
            "client.cluster.TopicStatus",
        ),
    ),
    "replay": ("Replay", "A log is read from its bucket, without a broker.", ("replay", "Replay")),
    "tests": (
        "Tests",
        "A cluster inside a program or a test, and the fixtures of the pytest plugin "
        "`bucketlog.testing`.",
        (
            *("EmbeddedCluster", "testing.bucketlog_cluster", "testing.bucketlog_bootstrap"),
            *("testing.bucketlog_log", "testing.bucketlog_topic"),
            *("testing.bucketlog_topic_factory", "testing.bucketlog_producer"),
            *("testing.bucketlog_consumer", "testing.bucketlog_records"),
            *("testing.cluster.Cluster", "testing.topics.TopicFactory"),
            *("testing.records.ConsumerFactory", "testing.records.RecordReader"),
            *("testing.assertions.assert_published", "testing.faults.broker_paused"),
            *("testing.faults.redis_paused", "testing.faults.stop_broker"),
        ),
    ),
    "errors": (
        "Errors",
        "All errors are subclasses of `BucketlogError`. The message names the cause, and most "
        "messages name the remedy.",
        tuple(name for name in bucketlog.__all__ if name.endswith("Error")),
    ),
}
"""By the name of the page: title, first sentence, names of the package or paths inside it."""


EXAMPLE_PRELUDE = """\
import asyncio

import bucketlog
from pydantic import BaseModel


class Order(BaseModel):
    id: str
    amount: float


log = bucketlog.connect("localhost:9092")
orders = bucketlog.Topic("orders", value=Order, key=str)
log.topics.create(orders, partitions=1)
with log.producer() as producer:
    producer.send(orders, Order(id="1", amount=9.5), key="ann")
    producer.send(orders, Order(id="2", amount=20.0), key="bob")
"""
"""Runs before each example of a docstring."""


class MetricRow(NamedTuple):
    name: str
    kind: str
    labels: tuple[str, ...]
    text: str


def pages() -> dict[str, str]:
    """The generated pages by their paths in the site's sources."""
    made = {f"reference/api/{name}.md": _api_page(*page) for name, page in API_PAGES.items()}
    return made | {
        "reference/README.md": _overview(),
        "reference/api/README.md": _api_overview(),
        "reference/commands.md": commands_page(),
        "reference/metrics.md": metrics_page(),
    }


def _overview() -> str:
    return """\
# Reference

These pages describe each part completely. Those about the API, commands, settings and metrics are
made from the code.

| part | page |
|---|---|
| Python API | [by task](api/README.md) |
| command line | [all commands and flags](commands.md), [by task](../cli.md) |
| settings | [brokers and buckets](../configuration.md), [topics](../topic-settings.md) |
| Kafka's broker settings | [list](../broker-settings.md) |
| metrics | [list](metrics.md), [what to look at](../operations.md#metrics) |
| Kafka's APIs | [versions and errors](../compatibility.md), [differences](../differences.md) |
| stored bytes | [formats](../format/README.md), [versions](../versions.md) |
| words | [glossary](../glossary.md) |
"""


def _api_overview() -> str:
    rows = []
    for page, (title, first, names) in API_PAGES.items():
        shown = ", ".join(f"[`{_short(name)}`][{identifier(name)}]" for name in names)
        rows.append(f"| [{title}]({page}.md) | {first} | {shown} |\n")
    head = "# Python API\n\nAll public names of the package `bucketlog`.\n\n"
    table = f"| page | about | names |\n|---|---|---|\n{''.join(rows)}"
    return (
        f"{head}{table}\n## Examples\n\nThe examples on these pages continue this program:\n\n"
        f"```python\n{EXAMPLE_PRELUDE}```\n"
    )


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def identifier(name: str) -> str:
    return f"bucketlog.{name}" if "." in name else f"{bucketlog._HOMES[name]}.{name}"


def _api_page(title: str, first: str, names: tuple[str, ...]) -> str:
    return f"# {title}\n\n{first}\n\n" + "".join(f"::: {identifier(name)}\n\n" for name in names)


def undocumented_names() -> set[str]:
    """Public names of the package that are on no page."""
    return set(bucketlog.__all__) - {name for page in API_PAGES.values() for name in page[2]}


def commands_page() -> str:
    """All commands, with their flags, defaults and variables."""
    from bucketlog.cli.main import app

    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="bucketlog")
    _keep_whole_summaries(command)
    text = get_docs_for_click(obj=command, ctx=context, name="bucketlog")
    return text.replace("# `bucketlog`", "# Commands and flags", 1)


def _keep_whole_summaries(command: typer.core.TyperCommand | typer.core.TyperGroup) -> None:
    """Lists of commands show whole first paragraphs: typer shortens them to 45 characters."""
    for below in getattr(command, "commands", {}).values():
        below.short_help = (below.help or "").partition("\n\n")[0]
        _keep_whole_summaries(below)


def metrics_page() -> str:
    """The metrics of a broker, with their types and labels."""
    head = """\
# Metrics

A broker shows these metrics at `/metrics` of its HTTP port, in Prometheus' format. Some of them are
shown only where they apply, such as those of certificates. With tenants, metrics have the label
`tenant`, too. Which metrics to look at, and when to raise an alarm:
[operations](../operations.md#metrics).

| metric | type | labels | meaning |
|---|---|---|---|
"""
    rows = [
        f"| `{row.name}` | {row.kind} | {', '.join(f'`{each}`' for each in row.labels)} "
        f"| {row.text} |\n"
        for row in sorted(metrics())
    ]
    return head + "".join(rows)


def metrics() -> Iterator[MetricRow]:
    """The metrics as Prometheus shows them, from the expressions that create them."""
    for name in FIGURES:
        path = posixpath.join("stateless_broker", "process", name)
        yield from _metrics_of(ast.parse((ROOT / path).read_text()))


def _metrics_of(tree: ast.Module) -> Iterator[MetricRow]:
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    in_loops: set[int] = set()
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For)):
        calls = list(_families(loop))
        if not calls or not isinstance(loop.iter, ast.Tuple):
            continue
        in_loops.update(map(id, calls))
        for turn in loop.iter.elts:
            assert isinstance(turn, ast.Tuple)
            assert isinstance(loop.target, ast.Tuple)
            values = {
                name.id: value.value
                for name, value in zip(loop.target.elts, turn.elts, strict=True)
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant)
            }
            yield from (_row(call, constants | values) for call in calls)
    for call in _families(tree):
        if id(call) not in in_loops:
            yield _row(call, constants)


def _families(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in FAMILIES:
                yield node


def _row(call: ast.Call, values: Mapping[str, object]) -> MetricRow:
    assert isinstance(call.func, ast.Name)
    kind = FAMILIES[call.func.id]
    name, text = (_text(argument, values) for argument in call.args[:2])
    labels: tuple[str, ...] = ()
    for keyword in call.keywords:
        if keyword.arg == "labels" and isinstance(keyword.value, ast.List):
            labels = tuple(_text(each, values) for each in keyword.value.elts)
    return MetricRow(f"{name}_total" if kind == "counter" else name, kind, labels, text)


def _text(node: ast.expr, values: Mapping[str, object]) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return str(values[name])
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, values) for part in parts)
        case ast.FormattedValue(value=value):
            return _text(value, values)
    raise ValueError(f"the name or text of a metric is {ast.unparse(node)}")
