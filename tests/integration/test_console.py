"""The console in a real Chromium: two brokers write, all of them and Redis end, the pages stay."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, expect

from bucketlog.console.application import SECURITY_HEADERS
from bucketlog.inspect.doctor.of_bucket import digest_of_bucket
from bucketlog.inspect.verify import verify_log
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from tests.rigs.console_log import AVRO_TEXT_ID, GROUP, HOSTILE, ORDERS, SCRIPT, write_log
from tests.rigs.group_log import GroupLog
from tests.rigs.patience import eventually
from tests.rigs.shell import Shell
from tests.rigs.written_log import START_MS
from tests.scenarios.console_walk import (
    PAGES,
    accessibility,
    check_accessibility,
    check_counts,
    check_groups,
    check_hostile,
    check_use,
    check_verification,
    number_in,
)
from tests.servers.browser import WatchedPage, console_process
from tests.servers.stand_in_registry import RegistryAnswer, schema_answer, served_registry

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def bucket_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A log that two brokers wrote; they and their Valkey have ended."""
    return write_log(tmp_path_factory.mktemp("console"))


AVRO_TEXT = schema_answer('"string"')
PASSWORD = "registry-password"


@pytest.fixture(scope="module")
def address(bucket_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log_file = tmp_path_factory.mktemp("log") / "console.log"
    settings = {
        "allowed_host": "logs.example *.pages.example",
        "registry_request_ms_max": "60000",  # a machine may be busy
        "verify_interval_ms": "0",
        "lag_interval_ms": "1000",
        "stuck_after_ms": "1",
    }
    hostile = RegistryAnswer(404, json.dumps({"error_code": 1, "message": SCRIPT}).encode())
    with served_registry({f"/schemas/ids/{AVRO_TEXT_ID}": AVRO_TEXT}, otherwise=hostile) as url:
        registry = ("--registry-url", url.replace("http://", f"http://user:{PASSWORD}@"))
        with console_process(bucket_url, *registry, log_file=log_file, settings=settings) as found:
            yield found
    assert log_file.read_text() == ""


@pytest.fixture
def watched(browser: Browser, address: str) -> Iterator[WatchedPage]:
    context = browser.new_context()
    yield WatchedPage(context, address)
    context.close()


def test_every_page_opens_without_a_complaint(watched: WatchedPage) -> None:
    for path in PAGES.values():
        page = watched.open(path)
        assert page.locator("h1").is_visible()
    assert watched.complaints == []


def test_counts_are_the_doctors(watched: WatchedPage, bucket_url: str) -> None:
    bucket = open_sync_bucket(bucket_url)
    digest = digest_of_bucket(bucket)
    bucket.close()
    assert check_counts(watched, digest) == digest.records
    check_groups(watched, digest)


def test_objects_and_cost_are_those_of_the_command_line(
    watched: WatchedPage, bucket_url: str
) -> None:
    shell = Shell("127.0.0.1:1")
    held = json.loads(shell.ok("cost", bucket_url, "-o", "json"))["held"]
    page = watched.open("bucket")
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#kind-table tr").all()[1:]]
    assert {row[1].rstrip("/"): number_in(row[2]) for row in rows} == {
        kind: found["objects"] for kind, found in held.items()
    }
    usd = json.loads(shell.ok("cost", bucket_url, "-o", "json"))["totals"]["s3_standard"]
    shown = watched.open("cost").locator(".compare strong").first.inner_text()
    assert float(shown.strip("$").replace(",", "")) == pytest.approx(sum(usd.values()), abs=0.01)


def test_a_check_counts_what_the_command_line_counts(watched: WatchedPage, bucket_url: str) -> None:
    bucket = open_sync_bucket(bucket_url)
    report = verify_log(bucket)
    bucket.close()
    assert report.damage == []
    check_verification(watched, report)


def test_hostile_records_are_shown_and_do_nothing(watched: WatchedPage) -> None:
    check_hostile(watched)


def test_values_with_a_schema_are_decoded_or_have_a_reason(watched: WatchedPage) -> None:
    page = watched.open(f"messages?topic={HOSTILE}")
    framed = page.locator("table.records tbody tr").first
    assert framed.locator("td.value").inner_text() == f'"{SCRIPT}" Avro, schema 1'
    assert "schema 2: not decoded" in framed.locator("td.key").inner_text()
    assert "schema 2 are not decoded" in page.inner_text("main")
    page.locator("table.records a.open").first.click()
    page.wait_for_url("**/record?**")
    assert page.locator("pre").first.inner_text() == f'"{SCRIPT}"'
    text = page.inner_text("main")
    assert "Avro, schema 1" in text
    assert "Not decoded: asking for schema 2" in text
    page.get_by_role("link", name="hex").click()
    page.wait_for_url("**form=hex**")
    assert page.locator("pre").first.inner_text().startswith("00000000  00 00 00 00 01")
    assert PASSWORD not in page.content()
    assert watched.complaints == []


def test_a_search_by_a_jsonpath_finds_fields(watched: WatchedPage) -> None:
    page = watched.open(f"messages?topic={ORDERS}&rows=100")
    page.get_by_label("Value JSONPath").fill('$.items[0].sku == "A-003"')
    page.keyboard.press("Enter")
    page.wait_for_url("**path=**")
    rows = page.locator("table.records tbody tr td.value").all_inner_texts()
    assert rows
    assert all('"sku": "A-003"' in row for row in rows)
    page = watched.open(f"messages?topic={HOSTILE}&path=%24")
    assert "not JSON, and did not match" in page.inner_text("main")
    assert watched.complaints == []


def test_a_person_finds_a_record_by_keys_and_clicks(watched: WatchedPage) -> None:
    check_use(watched)


def test_a_lag_that_does_not_change_is_steady(watched: WatchedPage) -> None:
    def is_steady(path: str) -> bool:
        return watched.open(path).get_by_text("steady", exact=True).first.is_visible()

    eventually(lambda: is_steady("groups?sort=-catch_up"))
    row = watched.page.locator("tbody tr").first.inner_text()
    assert GROUP in row
    assert "never at this rate" in row
    eventually(lambda: is_steady(f"group?name={GROUP}"))
    page = watched.page
    assert page.get_by_text("never at this rate").is_visible()
    assert "highest" in str(page.locator("svg.bars").get_attribute("aria-label"))
    assert page.locator(".bars .gap").count() > page.locator(".bars .hit").count() > 0
    assert page.locator("td .tag", has_text="stuck").count() > 0
    assert watched.complaints == []


def test_a_group_that_reads_catches_up(browser: Browser, tmp_path: Path) -> None:
    """Only the bucket connects the group and the console."""
    context, offsets = browser.new_context(), count(1)
    with closing(open_sync_bucket(f"file://{tmp_path}/bucket")) as bucket:
        log = GroupLog(bucket, lambda: START_MS)
        log.append(0, 100_000)
        log.commit("reader", p0=0)
        with console_process(
            f"file://{tmp_path}/bucket",
            log_file=tmp_path / "log",
            settings={"refresh_ms": "0", "lag_interval_ms": "500"},
        ) as address:
            watched = WatchedPage(context, address)

            def falls() -> bool:
                log.commit("reader", p0=10 * next(offsets))
                page = watched.open("groups")
                return page.get_by_text("falls by").is_visible()

            eventually(falls)
            row = watched.page.locator("tbody tr").inner_text()
            assert re.search(r"falls by [\d.]+/s\s+\d+ (min|h|s|d)", row), row
            assert watched.complaints == []
    context.close()


def test_pages_work_without_the_script(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}topics")
    page.get_by_label("Filter by name").fill(ORDERS)
    page.get_by_role("button", name="Filter").click()
    assert page.locator("#results tbody tr").count() == 1
    page.goto(f"{address}messages?topic={ORDERS}")
    assert not page.get_by_text("Live", exact=True).is_visible(), "the button does nothing"
    context.close()


def test_axe_finds_nothing_serious(browser: Browser, address: str) -> None:
    check_accessibility(browser, address)


def test_axe_finds_a_planted_defect(browser: Browser, address: str) -> None:
    context = browser.new_context(bypass_csp=True)
    page = WatchedPage(context, address).open("topics")
    assert list(accessibility(page)) == []
    page.evaluate("document.querySelector('label[for=q]').remove()")
    page.evaluate("document.querySelector('#q').removeAttribute('placeholder')")
    assert any(finding.startswith("label:") for finding in accessibility(page))
    context.close()


def answer(address: str, path: str, **headers: str) -> tuple[int, str]:
    try:
        with urlopen(Request(address + path, headers=headers)) as response:
            for name, value in SECURITY_HEADERS.items():
                assert response.headers[name] == value
            return response.status, response.read().decode()
    except HTTPError as error:
        with error:
            policy = error.headers["content-security-policy"]
            return error.code, error.read().decode() if policy else "no policy"


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("topic?name=%3Cscript%3E", 404, "there is no topic"),
        ("topic?name=orders&sort=x", 400, "is not a choice"),
        ("messages?topic=orders&partition=3", 400, "use 0 to 2"),
        ("messages?topic=orders&seek=time&time=soon", 400, "is not a time"),
        ("messages?topic=orders&path=%24..a", 400, "the descent .. is not supported"),
        ("messages?topic=orders&path=%3Cscript%3E", 400, "a path begins with $"),
        ("record?topic=orders&offset=999999", 404, "no record has offset"),
        ("group?name=x", 404, "has committed offsets"),
        ("topics?q=" + "x" * 3_000, 400, "characters"),
        ("messages/export?topic=%3Cscript%3E", 404, "there is no topic"),
        ("messages/export?topic=orders&format=csv", 400, "is not a choice"),
        ("messages/export?topic=orders&seek=offset&offset=999999", 404, "no offset of"),
        ("static/../application.py", 404, ""),
        ("nothing", 404, ""),
    ],
)
def test_bad_requests_get_a_page_that_names_the_remedy(
    address: str, path: str, status: int, text: str
) -> None:
    code, body = answer(address, path)
    assert (code, text in body) == (status, True)
    assert "<script>" not in body


def test_only_its_own_host_names_are_served(address: str) -> None:
    assert answer(address, "")[0] == 200
    assert answer(address, "", Host="evil.example")[0] == 400
    assert answer(address, "", Host="logs.example")[0] == 200
    assert answer(address, "", Host="a.pages.example:80")[0] == 200


def test_nothing_but_get_is_served(address: str) -> None:
    with pytest.raises(HTTPError) as caught:
        urlopen(Request(f"{address}topics", data=b"", method="POST"))
    with caught.value as error:
        assert error.code == 405


@pytest.mark.parametrize("at", ["//evil.example/", "https://evil.example", "\\\\evil", "x?y"])
def test_the_choice_of_colours_leads_nowhere_else(address: str, at: str) -> None:
    with urlopen(f"{address}theme?to=dark&at={at}") as response:
        assert response.url == address


def test_a_place_without_a_log_is_an_error(tmp_path: Path) -> None:
    text = Shell("127.0.0.1:1").failing(2, "console", f"file://{tmp_path}", "--port", "0")
    assert "there is no log in" in text


def test_sliders_estimate_the_cost(watched: WatchedPage, bucket_url: str) -> None:
    """The estimate is the command line's, and follows the slider without another page."""
    asked = (
        bucket_url,
        "--what-if-interval-ms",
        "5000",
        "--what-if-retention-days",
        "30",
        "-o",
        "json",
    )
    expected = json.loads(Shell("127.0.0.1:1").ok("cost", *asked))["totals"]
    page = watched.open("cost?q=order")
    assert page.locator("#estimate tr").count() == 0
    page.locator("#flush_interval_ms").fill("5000")
    page.locator("#retention_days").fill("30")
    expect(page.locator('[data-of="flush_interval_ms"]')).to_have_text("5000")
    page.wait_for_url("**q=order&flush_interval_ms=5000&retention_days=30")
    expect(page.locator("#estimate tbody tr")).to_have_count(5)
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#estimate tr").all()[1:]]
    shown = {name: float(after.strip("$").replace(",", "")) for name, _, after in rows[:3]}
    assert shown["S3 Standard"] == pytest.approx(sum(expected["s3_standard"].values()), abs=0.01)
    page.locator("#q").fill("nothing")
    expect(page.locator(".found")).to_contain_text("0 of")
    expect(page.locator("#estimate tbody tr")).to_have_count(5)
    assert watched.complaints == []
