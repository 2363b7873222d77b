"""The pure parts of `bucketlog top`: rates of two looks, and tables of hostile names."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.cli.live.sample import (
    NO_METRICS,
    NO_SIZES,
    NO_STEPS,
    BrokerRates,
    Look,
    Sample,
    TopicExtent,
    TopicRates,
    WorstLag,
    request_usd,
    sample_of,
)
from bucketlog.cli.live.sources import broker_name, group_row
from bucketlog.cli.live.tables import (
    Order,
    amount,
    broker_lines,
    group_lines,
    sorted_groups,
    sorted_topics,
    topic_lines,
)
from bucketlog.client.groups import GroupDetails, GroupPosition
from bucketlog.cost.assumptions import Assumptions
from bucketlog.cost.of_brokers import Figures, figures_in

PRICES = Assumptions()
NOW_MS = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
HOSTILE = "g\x1b]0;pwned\x07\n\u202e[bold]x[/bold]"


def page(*, scale: int) -> Figures:
    """Return the figures of a broker that has done `scale` times as much work."""
    rows = {
        'bucketlog_request_bytes_total{api="Produce"}': 1_000,
        'bucketlog_request_bytes_total{api="Fetch"}': 24,
        'bucketlog_response_bytes_total{api="Fetch"}': 4_096,
        'bucketlog_bucket_requests_total{verb="create"}': 10,
        'bucketlog_bucket_requests_total{verb="get"}': 20,
        'bucketlog_bucket_requests_total{verb="delete"}': 4,
    }
    lines = [f"{name} {value * scale}" for name, value in rows.items()]
    lines += [
        "# TYPE bucketlog_request_seconds histogram",
        f'bucketlog_request_seconds_bucket{{api="Produce",le="+Inf"}} {8 * scale}',
        f'bucketlog_request_seconds_count{{api="Produce"}} {8 * scale}',
        f'bucketlog_request_seconds_sum{{api="Produce"}} {2 * scale}',
        "# TYPE bucketlog_commit_seconds histogram",
    ]
    for at, step in enumerate(("waiting", "reserve", "put")):
        lines += [
            f'bucketlog_commit_seconds_count{{step="{step}"}} {2 * scale}',
            f'bucketlog_commit_seconds_sum{{step="{step}"}} {0.5 * (at + 1) * scale}',
        ]
    lines += ['bucketlog_commit_seconds_count{step="publish"} 0']
    return figures_in("\n".join(lines) + "\n")


def look(at_s: float, **more: object) -> Look:
    return Look(at_s, "healthy: all", True, **more)  # type: ignore[arg-type]  # by keyword


def test_rates_are_differences_by_time() -> None:
    before = look(10.0, brokers={"b:1": page(scale=1)})
    sample = sample_of(before, look(12.0, brokers={"b:1": page(scale=3)}), PRICES)
    (row,) = sample.brokers
    assert sample.interval_s == 2.0
    assert (row.bytes_in, row.bytes_out, row.requests) == (1_024.0, 4_096.0, 8.0)
    assert row.steps_ms == (250.0, 500.0, 750.0, None)
    assert row.bucket_requests == 34.0
    assert row.usd_per_hour == pytest.approx((10 * 0.005 + 20 * 0.0004) / 1000 * 3600)


def test_dollars_are_those_of_cost() -> None:
    dear = Assumptions(s3_standard_put_usd_per_1000=2.0, s3_standard_get_usd_per_1000=1.0)
    requests = {"create": 1_000.0, "list": 500.0, "get": 100.0, "head": 100.0, "delete": 9e9}
    assert request_usd(requests, dear) == pytest.approx(3.0 + 0.2)


def test_a_counter_that_began_again_counts_from_zero() -> None:
    before = look(0.0, brokers={"b:1": page(scale=9)})
    (row,) = sample_of(before, look(1.0, brokers={"b:1": page(scale=1)}), PRICES).brokers
    assert (row.bytes_in, row.requests) == (1_024.0, 8.0)


def test_the_first_look_has_no_rates() -> None:
    now = look(5.0, brokers={"b:1": page(scale=1)}, topics={"t": TopicExtent({0: 9}, 7)})
    sample = sample_of(None, now, PRICES)
    assert sample.brokers == (BrokerRates("b:1"),)
    assert sample.topics == (TopicRates("t", None, None, 7),)


def test_a_broker_that_does_not_answer_has_a_problem() -> None:
    now = look(1.0, brokers={"b:1": "no answer"})
    (row,) = sample_of(look(0.0, brokers={"b:1": page(scale=1)}), now, PRICES).brokers
    assert row.problem == "no answer"
    back = look(2.0, brokers={"b:1": page(scale=1)})
    assert sample_of(now, back, PRICES).brokers == (BrokerRates("b:1"),)


def test_topics_grow_by_records_and_bytes() -> None:
    before = look(0.0, topics={"t": TopicExtent({0: 10, 1: 5}, 1_000)})
    now = look(2.0, topics={"t": TopicExtent({0: 30, 1: 5, 2: 99}, 3_000)})
    assert sample_of(before, now, PRICES).topics == (TopicRates("t", 1_000.0, 10.0, 3_000),)


@pytest.mark.parametrize("stored", [500, None])
def test_deletion_is_not_a_rate(stored: int | None) -> None:
    before = look(0.0, topics={"t": TopicExtent({0: 1}, 1_000)})
    (row,) = sample_of(before, look(1.0, topics={"t": TopicExtent({0: 1}, stored)}), PRICES).topics
    assert (row.bytes, row.records) == (None, 0.0)


def test_a_topic_that_was_created_again_counts_from_zero() -> None:
    before = look(0.0, topics={"t": TopicExtent({0: 100}, 0)})
    (row,) = sample_of(before, look(1.0, topics={"t": TopicExtent({0: 4}, 0)}), PRICES).topics
    assert row.records == 4.0


def test_missing_columns_are_named() -> None:
    old = {key: value for key, value in page(scale=1).items() if "commit" not in key[0]}
    assert NO_METRICS in sample_of(None, look(0.0), PRICES).notes
    sized = look(0.0, brokers={"b:1": old}, topics={"t": TopicExtent({}, None)})
    assert sample_of(None, sized, PRICES).notes == (NO_STEPS, NO_SIZES)
    whole = look(0.0, brokers={"b:1": page(scale=1)}, topics={"t": TopicExtent({}, 0)})
    assert sample_of(None, whole, PRICES).notes == ()


def details(*positions: GroupPosition) -> GroupDetails:
    return GroupDetails("g", "Stable", "", "", (), positions)


def position(partition: int, lag: int | None) -> GroupPosition:
    return GroupPosition("t", partition, None if lag is None else 0, lag or 0, lag, None)


def test_the_worst_partition_of_a_group() -> None:
    found = details(position(0, 5), position(1, 70), position(2, None))
    since_ms = {("t", 0): NOW_MS - 9_000, ("t", 1): NOW_MS - 2_000}
    assert group_row(found, since_ms, NOW_MS) == WorstLag("g", 70, "t[1]", 9_000)
    assert group_row(found, {}, NOW_MS).lag_ms is None
    assert group_row(details(position(0, 0)), {}, NOW_MS) == WorstLag("g", 0, "t[0]", 0)
    assert group_row(details(position(0, None)), {}, NOW_MS) == WorstLag("g", None, None, None)


def test_orders() -> None:
    topics = [
        TopicRates("a", 1.0, 9.0, 0),
        TopicRates("c", 5.0, 1.0, 0),
        TopicRates("b", None, None, 0),
    ]
    assert [row.topic for row in sorted_topics(topics, Order.LOAD)] == ["c", "a", "b"]
    assert [row.topic for row in sorted_topics(topics, Order.RECORDS)] == ["a", "c", "b"]
    assert [row.topic for row in sorted_topics(topics, Order.NAME)] == ["a", "b", "c"]
    groups = [
        WorstLag("a", 1, "t[0]", 900),
        WorstLag("c", 7, "t[0]", 5),
        WorstLag("b", *[None] * 3),
    ]
    assert [row.group for row in sorted_groups(groups, Order.LOAD)] == ["c", "a", "b"]
    assert [row.group for row in sorted_groups(groups, Order.TIME)] == ["a", "c", "b"]
    assert [row.group for row in sorted_groups(groups, Order.NAME)] == ["a", "b", "c"]


def sample(name: str, figure: float) -> Sample:
    row = BrokerRates(name, figure, figure, figure, (figure, None, None, figure), figure, figure)
    return Sample(
        1.0,
        "healthy",
        True,
        (row, BrokerRates(name, problem=name)),
        (TopicRates(name, figure, None, 3),),
        (WorstLag(name, 10**12, f"{name}[9]", 10**9),),
        (),
    )


@given(st.text(max_size=300), st.floats(0, 1e15), st.integers(60, 250))
def test_lines_are_printable_and_fit(name: str, figure: float, width: int) -> None:
    shown = sample(name, figure)
    for lines in (
        broker_lines(shown, width),
        topic_lines(shown, Order.LOAD, "", width),
        group_lines(shown, Order.LOAD, "", width),
    ):
        assert all(len(line) <= width for line in lines)
        assert all(line.isprintable() or " " in line for line in lines)
        assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in "".join(lines))


def test_80_columns_show_a_broker_whole() -> None:
    shown = Sample(
        2.0,
        "",
        True,
        (
            BrokerRates(
                "127.0.0.1:39092", 1.5e6, 2.25e6, 1_234.0, (250.0, 1.25, 48.5, 2.0), 7.5, 0.1234
            ),
        ),
        (),
        (),
        (),
    )
    head, line = broker_lines(shown, 78)
    assert line.split() == [
        *("127.0.0.1:39092", "1.50M", "2.25M", "1.23K", "250", "1.25", "48.5", "2.00"),
        *("7.50", "0.1234"),
    ]
    assert head.split() == [
        *("BROKER", "IN/s", "OUT/s", "REQ/s", "WAIT", "RESV", "PUT", "PUBL", "BUCKET/s", "$/h"),
    ]


def test_a_filter_hides_other_names() -> None:
    assert len(topic_lines(sample("orders", 1.0), Order.LOAD, "rder", 80)) == 2
    assert len(topic_lines(sample("orders", 1.0), Order.LOAD, "bills", 80)) == 1
    assert len(group_lines(sample("orders", 1.0), Order.LOAD, "bills", 80)) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (7, "7"),
        (0.5, "0.50"),
        (999.4, "999"),
        (999.6, "1.00K"),
        (15_000, "15.0K"),
        (1.52e6, "1.52M"),
    ],
)
def test_amounts(value: float | None, text: str) -> None:
    assert amount(value) == text


def test_the_name_of_a_broker_has_no_password() -> None:
    assert broker_name("http://user:secret@b:8080/metrics") == "b:8080"
    assert broker_name("http://b:8080") == "b:8080"
