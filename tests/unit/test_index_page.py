"""The page at `/` of the HTTP port: hostile names, many reasons, many tenants."""

from html.parser import HTMLParser

import pytest

from bucketlog.stateless_broker.process.index_page import (
    BROKERS_MAX,
    HEADERS,
    REASONS_MAX,
    VALUE_CHARS_MAX,
    BrokerName,
    Page,
    index_page,
    readiness_sentence,
)

PAGES = (Page("/readyz", "whether it is ready"), Page("/metrics", "figures"))
TAGS = {"html", "head", "meta", "title", "body", "h1", "p", "ul", "li", "a", "code"}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></p><iframe>",
    "&lt;b&gt;",
    "two\nlines\x1b]0;pwned\x07\u202e\ud800",
)


class _Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(*brokers: BrokerName, reasons: dict[str, str] | None = None) -> _Page:
    problems = reasons or {}
    text = index_page(brokers, version="1.0", is_ready=not problems, reasons=problems, pages=PAGES)
    text.encode()
    return _Page(text)


def test_it_names_the_broker() -> None:
    page = page_of(BrokerName("", 3, "b:9092", "eu-1a", "the-cluster"))
    assert "bucketlog broker 3" in page.text
    assert "Broker 3 at b:9092 in zone eu-1a belongs to cluster the-cluster." in page.text
    assert "The broker is ready for clients." in page.text
    assert "Its version is 1.0." in page.text
    assert page.tags == TAGS


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text(name: str) -> None:
    named = BrokerName(name, 0, name, name, name)
    page = page_of(named, reasons={name: name})
    assert page.tags == TAGS
    assert not {attribute for attribute in page.attributes if attribute.startswith("on")}
    assert not any(ord(char) < 0x20 for char in page.text.replace("\n", ""))
    if name.isprintable():
        assert page.text.count(name) == 6


def test_nothing_may_run_or_load() -> None:
    policy = HEADERS["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "form-action 'none'" in policy


def test_the_page_is_bounded() -> None:
    name = "n" * 100_000
    page = page_of(
        *[BrokerName(name, 0, name, name, name)] * 1_000,
        reasons={f"{at}{name}": name for at in range(1_000)},
    )
    per_value = VALUE_CHARS_MAX + 100
    assert len(page.text) < per_value * (4 * BROKERS_MAX + 2 * REASONS_MAX + 5)
    assert "980 more tenants are not shown." in page.text
    assert "; and 995 more in /readyz." in page.text


def test_readiness_is_one_sentence() -> None:
    assert readiness_sentence(True, {}) == "The broker is ready for clients."
    reasons = {"bucket": "it does not answer", "redis": "it is slow"}
    assert (
        readiness_sentence(False, reasons)
        == "The broker is not ready for clients: bucket: it does not answer; redis: it is slow."
    )
    assert readiness_sentence(True, {"acme/bucket": "full"}) == (
        "The broker is ready for clients, but a part has a problem: acme/bucket: full."
    )
