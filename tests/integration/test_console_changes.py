"""Changes by the console in a real Chromium: first the plan, then the change through brokers."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

import bucketlog
from bucketlog.client.log import Log
from bucketlog.client.topic import Topic
from bucketlog.console.broker_metrics import state_of
from bucketlog.console.figures_text import count_text, size_text
from bucketlog.cost.of_brokers import metrics_of
from bucketlog.embedded.cluster import EmbeddedBroker, EmbeddedCluster
from tests.rigs.patience import eventually
from tests.rigs.shell import COMMAND, Shell
from tests.rigs.users import write_key_file
from tests.scenarios.console_walk import accessibility, number_in
from tests.servers.browser import WatchedPage, console_process

pytestmark = pytest.mark.long

SCRIPT = "<script>window.owned=1</script>"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    folder = tmp_path_factory.mktemp("log")
    settings = {
        "transactions": "true",
        "credentials_key_file": str(write_key_file(folder / "keys")),
    }
    with EmbeddedCluster(folder / "data", brokers=2, settings=settings) as found:
        yield found


@pytest.fixture(scope="module")
def log(cluster: EmbeddedCluster) -> Iterator[Log]:
    with bucketlog.connect(cluster.bootstrap) as found:
        yield found


def metrics_page(broker: EmbeddedBroker) -> str:
    return f"http://127.0.0.1:{broker.http_port}/metrics"


@pytest.fixture(scope="module")
def address(cluster: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log_file = tmp_path_factory.mktemp("console") / "console.log"
    flags = ["--bootstrap", cluster.bootstrap, "--changes"]
    flags += [f"--metrics={metrics_page(each)}" for each in cluster.members]
    settings = {"refresh_ms": "0", "broker_ms_max": "60000", "broker_retry_ms": "0"}
    with console_process(cluster.bucket_url, *flags, log_file=log_file, settings=settings) as found:
        yield found
    assert log_file.read_text() == ""


@pytest.fixture
def watched(browser: Browser, address: str) -> Iterator[WatchedPage]:
    context = browser.new_context()
    found = WatchedPage(context, address)
    yield found
    assert found.complaints == []
    context.close()


def rows_of(page: Page) -> list[list[str]]:
    return [
        row.locator("td").all_inner_texts() for row in page.locator("#plan-table tbody tr").all()
    ]


def command_of(page: Page) -> str:
    return page.locator("#command").inner_text()


def seen(watched: WatchedPage, path: str) -> Page:
    """Wait until the bucket has the change, and return the page that shows it."""

    def is_there() -> bool:
        response = watched.page.goto(watched.address + path)
        return response is not None and response.status == 200

    eventually(is_there, path)
    return watched.page


def show_plan(page: Page) -> None:
    """A click does not wait for the page with the plan."""
    with page.expect_navigation():
        page.get_by_role("button", name="Show the plan").click()


def apply(page: Page, button: str) -> str:
    page.get_by_role("button", name=button).click()
    page.wait_for_url("**/change/apply")
    return page.locator("[role=status]").inner_text()


def test_a_topic_is_created_changed_and_deleted(watched: WatchedPage, log: Log) -> None:
    page = watched.open("topics")
    page.get_by_role("link", name="Create a topic").click()
    page.get_by_label("Topic").fill("bills")
    page.get_by_label("Partitions").fill("2")
    page.get_by_label("Settings").fill("retention.ms=600000\ncleanup.policy=delete")
    show_plan(page)
    assert rows_of(page) == [
        ["partitions", "–", "2"],
        ["retention.ms", "–", "600000"],
        ["cleanup.policy", "–", "delete"],
    ]
    assert "bills" not in [each.name for each in log.topics.list()], "the plan changed something"
    assert "bills exists" in apply(page, "Create the topic")
    assert log.topics.describe("bills").configs["retention.ms"] == "600000"

    page = seen(watched, "topic?name=bills")
    page.get_by_role("link", name="Change settings").click()
    page.get_by_label("Settings", exact=True).fill("retention.ms=1000")
    page.get_by_label("Settings to reset").fill("cleanup.policy")
    show_plan(page)
    assert rows_of(page) == [
        ["retention.ms", "600000", "1000"],
        ["cleanup.policy", "delete", "(default)"],
    ]
    assert "will delete records" in page.inner_text("main")
    apply(page, "Change the settings")
    assert log.topics.describe("bills").overrides == {"retention.ms"}

    page = watched.open("change?do=add-partitions&topic=bills")
    page.get_by_label("Partitions afterwards").fill("3")
    show_plan(page)
    assert rows_of(page) == [["partitions", "2", "3"]]
    apply(page, "Add the partitions")
    assert log.topics.partition_count("bills") == 3

    page = seen(watched, "topic?name=bills")
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_label("Type the topic's name").fill("bill")
    show_plan(page)
    assert "the typed name is not 'bills'" in page.locator("[role=alert]").inner_text()
    assert page.get_by_label("Topic", exact=True).input_value() == "bills"
    watched.complaints.clear()  # Chromium reports the status 400
    page.get_by_label("Type the topic's name").fill("bills")
    show_plan(page)
    apply(page, "Delete the topic and its records")
    assert "bills" not in [each.name for each in log.topics.list()]


def test_a_record_is_produced_and_shown(watched: WatchedPage, log: Log) -> None:
    log.topics.create("notes", partitions=3)
    page = watched.open("change?do=produce&topic=notes")
    page.get_by_label("Partition", exact=True).fill("1")
    page.get_by_label("Key", exact=True).fill("k")
    page.get_by_label("Value", exact=True).fill(f"{SCRIPT}\nsecond line")
    page.get_by_label("Headers").fill("trace=1")
    show_plan(page)
    assert "offset 0 in partition 1" in apply(page, "Produce the record")
    page = watched.open("change?do=produce&topic=notes&partition=1")
    page.get_by_label("Form of the value").select_option("base64")
    page.get_by_label("Value", exact=True).fill("AAH/")
    show_plan(page)
    assert "offset 1 in partition 1" in apply(page, "Produce the record")
    with log.consumer(Topic("notes"), start="earliest", until="end") as consumer:
        records = list(consumer)
    assert [(each.key, each.value) for each in records] == [
        (b"k", f"{SCRIPT}\nsecond line".encode()),
        (None, b"\x00\x01\xff"),
    ]
    assert records[0].headers == (("trace", b"1"),)
    page = seen(watched, "messages?topic=notes&partition=1&seek=oldest")
    assert page.evaluate("window.owned") is None
    assert page.locator("table.records tbody tr").count() == 2


@pytest.mark.parametrize("value", ["plain", 'it\'s\n"two" $lines \\n', SCRIPT])
def test_the_command_of_a_plan_does_the_same(
    address: str, log: Log, watched: WatchedPage, value: str
) -> None:
    topic = "by-command"
    log.topics.ensure(topic, partitions=1)
    page = watched.open(f"change?do=produce&topic={topic}")
    page.get_by_label("Value", exact=True).fill(value)
    show_plan(page)
    command = command_of(page).replace("| bucketlog", f"| {shlex.join(COMMAND)}")
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    with log.consumer(Topic(topic), start="earliest", until="end") as consumer:
        assert list(consumer)[-1].value == value.encode()


def test_offsets_are_reset_as_planned(
    watched: WatchedPage, log: Log, cluster: EmbeddedCluster
) -> None:
    log.topics.create("orders", partitions=2)
    with log.producer() as producer:
        for number in range(10):
            producer.send(Topic("orders"), b"%d" % number, partition=number % 2)
    log.groups.reset("billing", "orders", to="latest")
    page = watched.open("change?do=reset-group&group=billing")
    page.get_by_label("New position").select_option("offset")
    page.get_by_label("Offset", exact=True).fill("2")
    show_plan(page)
    assert rows_of(page) == [["orders [0]", "5", "2"], ["orders [1]", "5", "2"]]
    assert "up to 6 records again" in page.inner_text("main")
    dry_run = command_of(page).replace("bucketlog group reset", "group reset --dry-run -o jsonl")
    planned = Shell(cluster.bootstrap).ok(*shlex.split(dry_run))
    assert [json.loads(line)["after"] for line in planned.splitlines()] == [2, 2]
    apply(page, "Reset the offsets")
    assert [row.offset for row in log.groups.committed("billing", "orders").values()] == [2, 2]


def test_a_group_with_members_is_left_alone(watched: WatchedPage, log: Log) -> None:
    log.topics.create("busy", partitions=1)
    with log.producer() as producer:
        producer.send(Topic("busy"), b"x")
    with log.consumer(Topic("busy"), group="at-work", start="earliest") as consumer:
        eventually(lambda: bool(consumer.poll(timeout_s=1)), "no record")
        consumer.commit()
        page = watched.open("change?do=reset-group&group=at-work&topic=busy&to=earliest")
        page.get_by_role("button", name="Show the plan").click()
        assert "The group has members" in page.locator("[role=status]").inner_text()
        assert page.get_by_role("button", name="Reset the offsets").count() == 0
        page = seen(watched, "group?name=at-work")
        assert page.locator("#member-table tbody tr").count() == 1
    page = watched.open("change?do=delete-group&group=at-work")
    show_plan(page)
    apply(page, "Delete the group and its offsets")
    assert "at-work" not in [each.group for each in log.groups.list()]


def test_a_topic_that_was_created_again_is_not_deleted(watched: WatchedPage, log: Log) -> None:
    log.topics.create("again", partitions=1)
    seen(watched, "topic?name=again")
    page = watched.open("change?do=delete-topic&topic=again")
    page.get_by_label("Type the topic's name").fill("again")
    show_plan(page)
    log.topics.delete("again")
    log.topics.create("again", partitions=2)
    with page.expect_navigation():
        page.get_by_role("button", name="Delete the topic and its records").click()
    assert "created again" in page.locator("[role=alert]").inner_text()
    watched.complaints.clear()  # Chromium reports the status 400
    assert log.topics.partition_count("again") == 2


def test_what_brokers_refuse_is_shown_above_the_form(address: str) -> None:
    for values, message in (
        ({"do": "create-topic", "topic": "a b"}, "is not valid"),
        ({"do": "create-topic", "topic": "x", "settings": "no.such=1"}, "no.such"),
        ({"do": "create-topic", "topic": "x", "partitions": "0"}, "use 1 to"),
        ({"do": "alter-topic", "topic": "missing", "settings": "a=1"}, "missing"),
        ({"do": "add-partitions", "topic": "missing", "total": "2"}, "missing"),
        ({"do": "delete-topic", "topic": "missing", "typed": "missing"}, "missing"),
        ({"do": "reset-group", "group": "nobody", "to": "earliest"}, "nobody"),
        ({"do": "reset-group", "group": "nobody", "to": "sideways"}, "is not a choice"),
        ({"do": "delete-group", "group": "nobody"}, "nobody"),
        ({"do": "produce", "topic": "missing", "value": "x"}, "missing"),
        ({"do": "produce", "topic": "missing", "value": "!", "form": "base64"}, "not base64"),
        ({"do": "produce", "topic": "missing", "value": "x", "form": "null"}, "form is null"),
    ):
        request = Request(
            f"{address}change",
            data=urlencode(values).encode(),
            headers={"Origin": address.rstrip("/")},
        )
        with pytest.raises(HTTPError) as caught:
            urlopen(request)
        with caught.value as error:
            text = error.read().decode()
        assert (caught.value.code, message in text, "Show the plan" in text) == (
            400,
            True,
            True,
        ), (values, text)


def test_brokers_and_access_are_shown(watched: WatchedPage, log: Log) -> None:
    log.users.set_password("ann", "a long secret")
    log.topics.ensure("led", partitions=8)
    eventually(lambda: "ann" in watched.open("access").inner_text("main"), "no user")
    page = watched.open("brokers")
    rows = page.locator("#broker-table tbody tr").all()
    cells = [row.locator("td").all_inner_texts() for row in rows]
    assert [number_in(row[0]) for row in cells] == [
        each.node_id for each in log.cluster.describe().brokers
    ]
    leaders = log.cluster.leaders()
    assert sum(number_in(row[3]) for row in cells) == len(leaders)


def test_limits_and_clients_of_brokers_are_shown(
    watched: WatchedPage, cluster: EmbeddedCluster, log: Log
) -> None:
    log.topics.ensure("limits", partitions=8)
    page = watched.open("brokers")
    expect(page.locator("section.panel")).to_have_count(2)
    for broker, panel in zip(cluster.members, page.locator("section.panel").all(), strict=True):
        state = state_of("", metrics_of(metrics_page(broker)))
        text = panel.inner_text()
        assert metrics_page(broker) in text
        assert "ready" in text
        for each in state.limits:
            limit = size_text(each.limit) if each.is_bytes else count_text(each.limit)
            assert f"of {limit} (" in text
        assert state.software
        assert state.software[0][0] in text


def test_an_open_transaction_is_shown(watched: WatchedPage, log: Log) -> None:
    log.topics.ensure("paid", partitions=1)
    with log.transaction("payer") as transaction:
        transaction.send(Topic("paid"), b"1")
        eventually(lambda: "payer" in watched.open("transactions").inner_text("main"), "not open")
        row = watched.page.locator("#transaction-table tbody tr").first
        assert number_in(row.locator("td").nth(3).inner_text()) == 1
    eventually(
        lambda: "No transaction is open" in watched.open("transactions").inner_text("main"),
        "still open",
    )
    row = watched.open("transactions?show=all").locator("#transaction-table tbody tr").first
    assert row.locator("td").last.inner_text() == "committed"


def test_axe_finds_nothing_serious(browser: Browser, address: str, log: Log) -> None:
    log.topics.ensure("axe", partitions=1)
    context = browser.new_context(bypass_csp=True)
    watched = WatchedPage(context, address)
    for path in (
        *("change?do=create-topic", "change?do=produce&topic=axe", "change?do=reset-group"),
        *("brokers", "access", "transactions?show=all"),
    ):
        assert list(accessibility(watched.open(path))) == [], path
    page = watched.open("change?do=add-partitions&topic=axe")
    page.get_by_label("Partitions afterwards").fill("2")
    show_plan(page)
    assert list(accessibility(page)) == []
    apply(page, "Add the partitions")
    assert list(accessibility(page)) == []
    context.close()


def test_changes_need_the_address_of_a_broker(tmp_path: Path) -> None:
    text = Shell("127.0.0.1:1").failing(2, "console", f"file://{tmp_path}", "--changes")
    assert "--changes without --bootstrap" in text
