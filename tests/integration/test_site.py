"""The documentation site: built without a warning, complete, and without other hosts."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from bucketlog.embedded.cluster import EmbeddedCluster
from scripts.reference_pages import commands_page, metrics, undocumented_names
from scripts.site_pages import file_of, page_of, with_site_links
from tests.models.site_links import broken_links, loaded_elsewhere, pages_of
from tests.scenarios.built_site import build_site
from tests.scenarios.site_pictures import PAGES, VIEWS, take
from tests.scenarios.site_questions import QUESTIONS, Question, ask
from tests.servers.browser import WatchedPage
from tests.servers.static_site import served

pytestmark = pytest.mark.long

SOME = 4
"""Every fourth question; `make prove WHAT=docs` asks all."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build_site(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as found:
        yield found


def test_links_and_anchors_exist(site: Path) -> None:
    assert list(broken_links(site)) == []
    assert len(pages_of(site)) > 100


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    assert list(loaded_elsewhere(site)) == []


def test_the_search_index_has_the_pages(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text()
    assert "bucketlog topic create" in index
    assert "reference/api/connect/" in index


@pytest.mark.parametrize("question", QUESTIONS[::SOME], ids=lambda each: each.query)
def test_the_search_answers_a_new_user(browser: Browser, address: str, question: Question) -> None:
    context = browser.new_context()
    watched = WatchedPage(context, address)
    assert ask(watched, question).page == question.page
    assert watched.complaints == []
    context.close()


def test_a_question_without_an_answer_is_found(browser: Browser, address: str) -> None:
    watched = WatchedPage(browser.new_context(), address)
    stop = QUESTIONS[0]
    with pytest.raises(AssertionError, match="finds"):
        ask(watched, stop._replace(page="supply-chain/"))
    with pytest.raises(AssertionError, match="does not say"):
        ask(watched, stop._replace(answer="press the red button"))
    watched.page.context.close()


def test_pages_fit_into_windows_light_and_dark(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    assert len(take(browser, address, tmp_path)) == len(PAGES) * len(VIEWS)


def test_a_planted_fault_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="gone/">x</a><a href="#gone">x</a><a href="#here" id="here">x</a>'
        '<img src="https://elsewhere.example/a.png">'
    )
    assert len(list(broken_links(tmp_path))) == 2
    assert len(list(loaded_elsewhere(tmp_path))) == 1


def test_every_public_name_has_a_reference(site: Path) -> None:
    assert undocumented_names() == set()
    anchors = set().union(*(page.anchors for page in pages_of(site).values()))
    assert {"bucketlog.client.log.connect", "bucketlog.client.log.Log.producer"} <= anchors


def test_the_page_of_commands_has_each_command() -> None:
    page = commands_page()
    for command in ("bucketlog dev", "bucketlog topic create", "bucketlog segment gc"):
        assert f"# `{command}`" in page


def test_every_metric_of_a_broker_is_on_the_page(broker: EmbeddedCluster) -> None:
    url = f"http://{broker.host}:{broker.http_port}/metrics"
    with urllib.request.urlopen(url) as response:
        lines = response.read().decode().splitlines()
    shown = {line.split()[2] for line in lines if line.startswith("# TYPE bucketlog_")}
    assert shown
    assert shown <= {row.name for row in metrics()}


def test_links_lead_from_the_files_of_the_repository_to_pages() -> None:
    text = "[a](../README.md#try-it) [b](https://x.example/y) [c](format)\n```\n[d](../e)\n```\n"
    expected = (
        "[a](project/README.md#try-it) [b](https://x.example/y) [c](format/README.md)\n"
        "```\n[d](../e)\n```\n"
    )
    assert with_site_links(text, "docs/sdk.md") == expected
    named = with_site_links("as in [redis.md](redis.md#tls), [this](redis.md)", "docs/sdk.md")
    assert named == "as in [Redis or Valkey for brokers](redis.md#tls), [this](redis.md)"
    assert file_of(page_of("ARCHITECTURE.md")) == "ARCHITECTURE.md"
    assert file_of(page_of("docs/sdk.md")) == "docs/sdk.md"
    assert file_of(page_of("tests/conftest.py")) is None
