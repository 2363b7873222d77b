"""What a prompt and a notebook show of objects: short, escaped, and without asking anybody."""

import asyncio
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any
from uuid import UUID

import pytest

import bucketlog
from bucketlog.client.async_log import AsyncLog
from bucketlog.client.cluster import BrokerInfo, ClusterDetails
from bucketlog.client.dead_letter_replay import DeadLetterPlan
from bucketlog.client.groups import GroupDetails, GroupPosition, MemberInfo
from bucketlog.client.topics import PartitionInfo, TopicDetails
from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.ranges import OffsetRange
from bucketlog.log_reader.replay_plan import ReplayPlan
from bucketlog.replaying.replay import Replay

HOSTILE = '<script>alert("x")</script>\x1b[2J\n\u202e&amp;'
TEXT_MAX, HTML_MAX = 2_500, 40_000
NOWHERE = "127.0.0.1:1"
QUIET = {"log_level": 0}


class Tags(HTMLParser):
    """Which tags there are, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.unclosed: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[Any]) -> None:
        self.opened.append(tag)
        self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def html_of(shown: DisplayedObject) -> Tags:
    html = shown._repr_html_()
    assert len(html) <= HTML_MAX
    found = Tags(html)
    assert not found.unclosed
    assert set(found.opened) <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}
    assert not re.search(r"[\x00-\x1f\u202e]", html)
    return found


def text_of(shown: DisplayedObject) -> str:
    text = repr(shown)
    assert len(text) <= TEXT_MAX
    assert not re.search(r"[\x00-\x1f\u202e]", text)
    return text


def topic_details(name: str, partitions: int, configs: dict[str, str]) -> TopicDetails:
    return TopicDetails(
        name,
        tuple(PartitionInfo(number, 5, 1_000 + number) for number in range(partitions)),
        configs,
        frozenset(configs),
    )


def group_details(name: str, partitions: int) -> GroupDetails:
    return GroupDetails(
        name,
        "Stable",
        "range",
        name,
        (MemberInfo(name, name, name, None, ((name, 0),)),),
        tuple(GroupPosition(name, at, 3, 5, 2, name) for at in range(partitions)),
    )


def plan(topic: str, partitions: int) -> ReplayPlan:
    ranges = [
        OffsetRange(topic, TopicIdPartition(TopicId(UUID(int=1).bytes), at), at, at + 10)
        for at in range(partitions)
    ]
    options = parse_options({"path": "file:///nowhere", "subscribe": "orders"})
    return ReplayPlan(options, tuple(ranges), ((),), 10 * partitions, 4096, 0)


DETAILS: dict[str, DisplayedObject] = {
    "topic": topic_details(
        HOSTILE * 100, 10_000, {HOSTILE * 99 + str(at): HOSTILE for at in range(99)}
    ),
    "group": group_details(HOSTILE * 100, 10_000),
    "cluster": ClusterDetails(
        HOSTILE, tuple(BrokerInfo(at, HOSTILE * 9, 9092, HOSTILE, True) for at in range(1_000))
    ),
    "dead letters": DeadLetterPlan({(HOSTILE, f"{HOSTILE}{at}"): 3 for at in range(1_000)}),
    "plan": plan(HOSTILE * 100, 10_000),
}


@pytest.mark.parametrize("name", DETAILS)
def test_hostile_and_large_values_are_escaped_and_cut(name: str) -> None:
    text_of(DETAILS[name])
    found = html_of(DETAILS[name])
    assert found.opened.count("tr") <= 20 + 20 + 3
    assert any("more" in text for text in found.text)


def test_details_as_text() -> None:
    assert text_of(topic_details("orders", 3, {"retention.ms": "7"})) == (
        "TopicDetails(name='orders', partitions=3, overrides='retention.ms=7')"
    )
    assert text_of(group_details("billing", 2)) == (
        "GroupDetails(group='billing', state='Stable', assignor='range', coordinator='billing', "
        "members=1, lag=4)"
    )
    assert text_of(plan("orders", 2)) == (
        "ReplayPlan(records=20, stored_bytes=4096, partitions=2, tasks=1)"
    )


def test_details_as_html() -> None:
    found = html_of(group_details("billing", 2))
    assert found.text == [
        "GroupDetails",
        *("group", "billing", "state", "Stable", "assignor", "range"),
        *("coordinator", "billing", "members", "1", "lag", "4"),
        *("topic", "partition", "committed", "latest", "lag", "member"),
        *("billing", "0", "3", "5", "2", "billing"),
        *("billing", "1", "3", "5", "2", "billing"),
    ]


def test_only_the_first_facts_and_rows_are_looked_at() -> None:
    class Rows(Sequence[tuple[int]]):
        def __len__(self) -> int:
            return 10**9

        def __getitem__(self, at: Any) -> Any:
            assert at < 100
            return (at,)

    class Endless(DisplayedObject):
        def _description(self) -> Description:
            facts = {f"fact{at}": at for at in range(1_000)}
            return Description(facts, ("number",), Rows())

    assert "999,999,980 more" in "".join(html_of(Endless()).text)
    assert text_of(Endless()).endswith("fact19=19, more=980)")


def test_the_client_and_what_it_opens() -> None:
    security = bucketlog.Security(username="ann", password="very-secret")
    log = bucketlog.Log(NOWHERE, client_id="me", timeout_s=1, security=security, config=QUIET)
    assert text_of(log) == f"Log(bootstrap='{NOWHERE}', client_id='me', user='ann', tls=True)"
    assert "very-secret" not in log._repr_html_()
    producer = log.producer()
    assert text_of(producer) == "Producer(state='open')"
    producer.close()
    assert text_of(producer) == "Producer(state='closed')"
    html_of(producer)


def test_the_asyncio_client() -> None:
    async def shown() -> list[str]:
        log = AsyncLog(bucketlog.Log(NOWHERE, client_id="me", timeout_s=1, config=QUIET))
        async with log.producer() as producer:
            return [text_of(log), text_of(producer)]

    assert asyncio.run(shown()) == [
        f"AsyncLog(bootstrap='{NOWHERE}', client_id='me')",
        "AsyncProducer(state='open')",
    ]


def test_a_replay_is_not_planned_to_be_shown() -> None:
    replay: Replay[bytes, bytes] = bucketlog.replay("file:///nowhere", "orders", columns=["value"])
    assert text_of(replay) == (
        "Replay(topic='orders', url='file:///nowhere', columns='value', plan='not made yet')"
    )
    html_of(replay)
    replay.plan = plan("orders", 2)
    assert "records=20" in text_of(replay)
    assert "start" in html_of(replay).text
