"""The pages Replay and Query in a real Chromium: plan, Parquet files, SQL, also without scripts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.rigs.console_log import ORDERS, write_log
from tests.scenarios.console_walk import NARROW, accessibility, check_query, check_replay
from tests.servers.browser import WatchedPage, console_process

pytestmark = pytest.mark.long

SETTINGS = {"sql_ms_max": "600000", "page_ms_max": "600000"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replays")


@pytest.fixture(scope="module")
def address(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    url = write_log(tmp_path_factory.mktemp("console"))
    log_file = tmp_path_factory.mktemp("log") / "console.log"
    arguments = ("--replay-folder", str(folder))
    with console_process(url, *arguments, log_file=log_file, settings=SETTINGS) as found:
        yield found
    assert log_file.read_text() == ""


@pytest.fixture
def watched(browser: Browser, address: str) -> Iterator[WatchedPage]:
    context = browser.new_context()
    yield WatchedPage(context, address)
    context.close()


def test_a_person_replays_a_topic(watched: WatchedPage, folder: Path) -> None:
    check_replay(watched, folder)


def test_a_person_asks_by_sql(watched: WatchedPage) -> None:
    check_query(watched)


def run_query(page: Page, sql: str) -> None:
    page.get_by_label("SQL over the table records").fill(sql)
    page.get_by_role("button", name="Run the query").click()


def test_both_pages_work_without_scripts(browser: Browser, address: str, folder: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    watched = WatchedPage(context, address)
    page = watched.open(f"replay?topic={ORDERS}&seek=offsets&offsets=1:0-5")
    page.get_by_role("button", name="Write Parquet files").click()
    page.wait_for_url("**/replay")
    while page.get_by_role("link", name="Look again").count():
        page.get_by_role("link", name="Look again").click()
        page.wait_for_load_state()
    expect(page.get_by_text("5 records are in")).to_be_visible()
    page = watched.open(f"query?topic={ORDERS}")
    run_query(page, "SELECT count(*) FROM records")
    assert page.locator("#rows-table td").inner_text() == "700"
    assert watched.complaints == []
    context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", NARROW)])
def test_results_are_accessible(browser: Browser, address: str, scheme: str, width: int) -> None:
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 800},
        bypass_csp=True,
    )
    watched = WatchedPage(context, address)
    page = watched.open(f"query?topic={ORDERS}")
    for sql, found in (("FROM records", "#rows-table"), ("no SQL", "[role=alert]")):
        run_query(page, sql)
        expect(page.locator(found)).to_be_visible()
        assert list(accessibility(page)) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page = watched.open(f"replay?topic={ORDERS}&seek=offsets&offsets=0:1-5")
    page.get_by_role("button", name="Write Parquet files").click()
    expect(page.get_by_text("4 records are in")).to_be_visible()
    assert list(accessibility(page)) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
