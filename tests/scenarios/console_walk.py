"""A walk over all pages of the console in a browser, with its checks. Tests and proofs share it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from bucketlog.console.verify_page import LABELS
from bucketlog.inspect.doctor.digest import LogDigest
from bucketlog.inspect.verify_report import VerifyReport
from tests.rigs.console_log import GROUP, HOSTILE, ORDERS, SCRIPT, hostile_records
from tests.servers.browser import WatchedPage

PAGES = {
    "overview": "",
    "topics": "topics",
    "topic": f"topic?name={ORDERS}",
    "messages": f"messages?topic={ORDERS}",
    "record": f"record?topic={ORDERS}&partition=0&offset=3",
    "replay": f"replay?topic={ORDERS}&seek=offsets&offsets=0:0-50,2:",
    "query": f"query?topic={ORDERS}&sql=FROM+records",
    "groups": "groups",
    "group": f"group?name={GROUP}",
    "bucket": "bucket",
    "verify": "verify",
    "cost": "cost",
    "transactions": "transactions?show=all",
    "brokers": "brokers",
    "access": "access",
}
SERIOUS = frozenset({"serious", "critical"})
NARROW = 360


class CountedPartition(NamedTuple):
    earliest: int
    latest: int
    records: int


def number_in(text: str) -> int:
    return int(re.sub(r"[^\d]", "", text))


def partitions_shown(page: Page) -> list[CountedPartition]:
    return [
        CountedPartition(*(number_in(cell) for cell in row.locator("td").all_inner_texts()[1:4]))
        for row in page.locator("#partition-table tbody tr").all()
    ]


def check_counts(watched: WatchedPage, digest: LogDigest) -> int:
    """The offsets and records of every topic are the doctor's. Returns the number of records."""
    total = 0
    for name, expected in digest.topics.items():
        shown = partitions_shown(watched.open(f"topic?name={name}"))
        assert shown == [
            CountedPartition(part.earliest, part.latest, part.records)
            for part in expected.partitions
        ], name
        total += sum(part.records for part in shown)
    return total


def check_groups(watched: WatchedPage, digest: LogDigest) -> None:
    for group, rows in digest.groups.items():
        page = watched.open(f"group?name={group}")
        shown = {
            (cells[0], number_in(cells[1])): number_in(cells[2])
            for row in page.locator("table.rows tbody tr").all()
            for cells in [row.locator("td").all_inner_texts()]
        }
        assert shown == {place: row.offset for place, row in rows.items()}


def accessibility(page: Page) -> Iterator[str]:
    """The serious findings of axe-core. A page has its colours when its style sheet is loaded."""
    page.wait_for_load_state("load")
    found = Axe().run(page)
    for violation in found.response["violations"]:
        if violation["impact"] in SERIOUS:
            nodes = [node["html"] for node in violation["nodes"][:3]]
            yield f"{violation['id']}: {violation['help']}: {nodes}"


def check_accessibility(browser: Browser, address: str) -> None:
    """No serious finding on any page, light, dark and narrow. axe-core is injected, so this alone
    runs without the policy."""
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", NARROW)):
        context = browser.new_context(
            color_scheme="dark" if scheme == "dark" else "light",
            viewport={"width": width, "height": 800},
            bypass_csp=True,
        )
        watched = WatchedPage(context, address)
        for name, path in PAGES.items():
            page = watched.open(path)
            page.evaluate(
                "for (const each of document.querySelectorAll('details')) each.open = true"
            )
            assert list(accessibility(page)) == [], (name, scheme, width)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} wide in a window of {width}"
        context.close()


def check_hostile(watched: WatchedPage) -> None:
    """Every hostile record is shown in the table and by itself, and none does anything."""
    page = watched.open(f"messages?topic={HOSTILE}&seek=oldest")
    rows = page.locator("table.records tbody tr")
    assert rows.count() == len(hostile_records())
    assert SCRIPT in rows.first.locator("td.value").inner_text()
    for form in ("", "text", "hex"):
        for offset, _ in enumerate(hostile_records()):
            page = watched.open(f"record?topic={HOSTILE}&offset={offset}&form={form}")
            assert page.evaluate("window.owned") is None
            assert "owned" not in page.title()
            text = page.inner_text("main")
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
            assert len(text) < 400_000
    assert watched.complaints == []


def check_live(watched: WatchedPage, topic: str) -> None:
    """While a producer sends: the page follows the newest records, and stays once it is paused."""
    page = watched.open(f"messages?topic={topic}")
    first = page.locator("table.records tbody td").first
    before = first.inner_text()
    last = page.locator("table.records tbody tr").last.locator("td").first
    assert int(before) > int(last.inner_text()), "the newest record is not the first"
    page.keyboard.press("l")
    expect(first).not_to_have_text(before)
    page.keyboard.press("l")
    expect(page.locator("#live")).to_have_attribute("aria-pressed", "false")
    assert watched.complaints == []


def check_verification(watched: WatchedPage, report: VerifyReport) -> None:
    """A person starts a check of the log. The page says that the log is sound, and shows counts."""
    page = watched.open("bucket")
    page.get_by_role("link", name="Verify the log").click()
    page.wait_for_url("**/verify")
    page.get_by_role("button", name="Check the log").click()
    expect(page.get_by_text("The log is sound")).to_be_visible()
    expect(page.get_by_role("button", name="Check the log")).to_be_visible()
    shown = dict(row.inner_text().split("\n") for row in page.locator("#counts > div").all())
    for name, label in LABELS.items():
        if name != "size_bytes":
            assert number_in(shown[label]) == getattr(report, name), name
    assert watched.complaints == []


def check_replay(watched: WatchedPage, folder: Path) -> None:
    """A person looks at a plan, then writes the records to Parquet files below `folder`."""
    page = watched.open("replay")
    page.get_by_label("Topic", exact=True).fill(ORDERS)
    page.get_by_role("button", name="Show the plan").click()
    page.wait_for_url("**/replay?topic=orders**")
    planned = number_in(page.locator("#plan-figures dd").first.inner_text().split(" in ")[0])
    page.get_by_role("button", name="Write Parquet files").click()
    written = page.get_by_text(f"{planned} records are in")
    expect(written).to_be_visible()
    name = re.search(r"replay-\w+-\w+", written.inner_text())
    assert name is not None
    assert page.locator("#files-table tbody tr").count() == sum(
        each.is_file() for each in (folder / name[0]).rglob("*")
    )
    assert pq.read_table(folder / name[0]).num_rows == planned
    assert watched.complaints == []


def check_query(watched: WatchedPage) -> None:
    """A person asks for hostile records by SQL. They are shown, and do nothing."""
    page = watched.open(f"query?topic={HOSTILE}")
    sql = page.get_by_label("SQL over the table records")
    sql.fill('SELECT "offset", key, value, raw_value AS "<b>raw" FROM records ORDER BY 1')
    page.get_by_role("button", name="Run the query").click()
    rows = page.locator("#rows-table tbody tr")
    expect(rows).to_have_count(len(hostile_records()))
    assert rows.first.locator("td").nth(2).inner_text() == SCRIPT
    assert "<b>raw" in page.locator("#rows-table thead").inner_text()
    page.get_by_label("SQL over the table records").fill("FROM read_text('/etc/passwd')")
    page.get_by_role("button", name="Run the query").click()
    expect(page.get_by_role("alert")).to_contain_text("Permission Error")
    assert page.evaluate("window.owned") is None
    refused = "error: Failed to load resource: the server responded with a status of 400"
    assert [each for each in watched.complaints if not each.startswith(refused)] == []
    watched.complaints.clear()


def check_use(watched: WatchedPage) -> None:
    """Filter, sort, keys, seek, open: as a person does it."""
    page = watched.open("topics")
    page.keyboard.press("/")
    page.keyboard.type("order")
    page.wait_for_url("**/topics?q=order")
    expect(page.locator("#results tbody tr")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/topic?name=orders")
    page.get_by_role("link", name="Messages", exact=True).last.click()
    page.wait_for_url("**/messages?topic=orders")
    page.get_by_label("Begin").select_option("offset")
    page.get_by_label("Offset").fill("5")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**seek=offset**")
    assert page.locator("table.records tbody tr td").first.inner_text() == "5"
    page.locator("table.records a.open").first.click()
    page.wait_for_url("**/record?**")
    assert page.locator("pre.json").first.inner_text().startswith("{\n")
    page.keyboard.press("n")
    page.wait_for_url("**offset=6**")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_url("**/bucket")
    page.get_by_role("link", name="dark", exact=True).click()
    page.wait_for_url("**/bucket")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert watched.complaints == []
