"""Exports and code of the page Messages, in a real Chromium, give the records of a replay."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import split
from typing import Any
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, expect

import bucketlog
from bucketlog.console.application import SECURITY_HEADERS
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_reader.parquet_writing import ParquetSettings
from tests.rigs.console_log import HOSTILE, ORDERS, PAYMENTS, fill
from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import COMMAND, Shell
from tests.servers.browser import WatchedPage, console_process

pytestmark = pytest.mark.long

SEARCHES = {
    "newest": f"topic={ORDERS}&partition=1&rows=20",
    "oldest": f"topic={PAYMENTS}&partition=0&seek=oldest&rows=7",
    "offset": f"topic={ORDERS}&partition=0&seek=offset&offset=11&rows=9",
    "time": f"topic={ORDERS}&partition=2&seek=time&time=2020-01-31T12:00&rows=5",
    "hostile": f"topic={HOSTILE}",
    "key": f"topic={ORDERS}&partition=1&key=customer-1",
    "value": f"topic={ORDERS}&partition=1&seek=oldest&value=A-003",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A log with topics of each kind. The broker runs, as `bucketlog consume` needs a broker."""
    with EmbeddedCluster(tmp_path_factory.mktemp("a folder's name")) as found:
        fill(found.bootstrap, orders=200)
        yield found


@pytest.fixture(scope="module")
def address(cluster: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log_file = tmp_path_factory.mktemp("log") / "console.log"
    with console_process(cluster.bucket_url, log_file=log_file) as found:
        yield found
    assert log_file.read_text() == ""


@pytest.fixture
def watched(browser: Browser, address: str) -> Iterator[WatchedPage]:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    yield WatchedPage(context, address)
    context.close()


def shown_offsets(page: Page) -> list[int]:
    """The offsets in the table, in ascending order."""
    rows = page.locator("table.records tbody a.open").all_inner_texts()
    return sorted(int(text) for text in rows)


def code_on(page: Page) -> dict[str, str]:
    names = ("replay", "consume", "python", "spark")
    return {name: page.locator(f"#{name}-code").text_content() or "" for name in names}


def lines_of(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize("name", SEARCHES)
def test_the_code_reads_what_the_page_shows(
    watched: WatchedPage, cluster: EmbeddedCluster, tmp_path: Path, name: str
) -> None:
    page = watched.open(f"messages?{SEARCHES[name]}")
    shown, code, shell = shown_offsets(page), code_on(page), Shell(cluster.bootstrap)
    assert shown
    replayed = lines_of(shell.ok(*split(code["replay"])[1:]))
    consumed = lines_of(shell.ok(*split(code["consume"])[1:]))
    found = [row["offset"] for row in replayed]
    if name in ("key", "value"):
        assert set(shown) < set(found)
        assert consumed[: len(replayed)] == replayed
    else:
        assert found == shown
        assert consumed == replayed
    program = tmp_path / "program.py"
    program.write_text(code["python"])
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert [int(line.split(" ")[0]) for line in done.stdout.splitlines()] == shown
    values = {row["offset"]: row.get("value") for row in replayed}
    for line in done.stdout.splitlines():
        value = values[int(line.split(" ")[0])]
        if isinstance(value, str):
            assert line.endswith(repr(value.encode()))
    compile(code["spark"], "spark", "exec")
    assert watched.complaints == []


def test_a_command_works_in_a_shell(watched: WatchedPage, cluster: EmbeddedCluster) -> None:
    """The folder of the bucket has a space and a quote in its name."""
    page = watched.open(f"messages?{SEARCHES['offset']}")
    command = code_on(page)["replay"]
    assert "'\"'\"'" in command
    command = command.replace("bucketlog", '"$@"', 1)
    done = subprocess.run(["sh", "-c", command, "sh", *COMMAND], capture_output=True, check=True)
    assert [row["offset"] for row in lines_of(done.stdout)] == shown_offsets(page)


@pytest.mark.parametrize("name", [*SEARCHES])
def test_an_export_is_what_replay_gives(
    watched: WatchedPage, cluster: EmbeddedCluster, tmp_path: Path, name: str
) -> None:
    page = watched.open(f"messages?{SEARCHES[name]}")
    shown = shown_offsets(page)
    with page.expect_download() as caught:
        page.get_by_role("link", name="Export as JSON lines").click()
    saved = tmp_path / caught.value.suggested_filename
    caught.value.save_as(saved)
    with urlopen(page.get_by_role("link", name="Export as JSON").evaluate("a => a.href")) as answer:
        assert SECURITY_HEADERS.items() <= dict(answer.headers).items()
        assert answer.headers["content-type"] == "application/x-ndjson"
        offsets = answer.headers["bucketlog-export-offsets"]
        assert answer.read() == saved.read_bytes()
    begin, _, end = offsets.partition(":")[2].partition("-")
    assert f"-offsets-{begin}-to-{int(end) - 1}.jsonl" in saved.name
    topic = lines_of(saved.read_bytes())[0]["topic"]
    replayed = Shell("x").ok("replay", cluster.bucket_url, topic, "--offsets", offsets)
    found = [row["offset"] for row in lines_of(saved.read_bytes())]
    assert set(shown) <= set(found)
    if name in ("key", "value"):
        assert set(saved.read_bytes().splitlines()) < set(replayed.splitlines())
        assert found == shown
    else:
        assert saved.read_bytes() == replayed


def test_parquet_is_what_replay_writes(
    watched: WatchedPage, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    for topic in (HOSTILE, PAYMENTS):
        page = watched.open(f"messages?topic={topic}&seek=oldest")
        with page.expect_download() as caught:
            page.get_by_role("link", name="Export as Parquet").click()
        saved = tmp_path / caught.value.suggested_filename
        caught.value.save_as(saved)
        target = tmp_path / topic
        bucketlog.replay(cluster.bucket_url, topic, partitions=[0]).to_parquet(
            target, partition_by=(), settings=ParquetSettings(partition_by=())
        )
        (written,) = target.glob("*.parquet")
        exported, replayed = pq.read_table(saved), pq.read_table(written)
        assert exported.equals(replayed)
        assert exported.schema.equals(replayed.schema)
        names = [column.path for column in pq.ParquetFile(saved).schema]
        assert names == [column.path for column in pq.ParquetFile(written).schema]
    assert watched.complaints == []


def test_an_export_that_fails_is_a_page(watched: WatchedPage) -> None:
    page = watched.open(f"messages?topic={ORDERS}")
    page.evaluate("document.querySelector('.exports a').search = '?topic=gone'")
    page.get_by_role("link", name="Export as JSON lines").click()
    expect(page.locator("h1")).to_be_visible()
    assert "there is no topic" in page.inner_text("main")


def test_the_button_copies_the_code(watched: WatchedPage) -> None:
    page = watched.open(f"messages?{SEARCHES['offset']}")
    assert not page.locator("#spark-code").is_visible()
    page.get_by_text("Copy as").click()
    section = page.locator("section", has=page.locator("#spark-code"))
    section.get_by_role("button").click()
    expect(section.get_by_role("button")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.replace("\r\n", "\n") == code_on(page)["spark"]
    page.keyboard.press("l")
    assert watched.complaints == []


def test_the_code_stays_open_while_the_page_is_live(watched: WatchedPage) -> None:
    page = watched.open(f"messages?topic={ORDERS}")
    page.get_by_text("Copy as").click()
    page.evaluate("document.querySelector('#results').dataset.old = 'yes'")
    page.keyboard.press("l")
    expect(page.locator("#results:not([data-old])")).to_be_visible()
    expect(page.locator("#spark-code")).to_be_visible()
    expect(page.locator("button[data-copy]").first).to_be_visible()
    assert watched.complaints == []


def test_without_the_script_code_and_exports_are_there(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}messages?{SEARCHES['offset']}")
    page.get_by_text("Copy as").click()
    assert page.locator("#python-code").is_visible()
    assert not page.locator("button[data-copy]").first.is_visible()
    with page.expect_download() as caught:
        page.get_by_role("link", name="Export as Parquet").click()
    caught.value.save_as(tmp_path / "saved.parquet")
    assert os.path.getsize(tmp_path / "saved.parquet")
    context.close()
