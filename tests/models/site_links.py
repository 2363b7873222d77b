"""The links of a built documentation site, and what its pages load."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

BASE = "http://site/"
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src"}
"""Elements that load what their attribute names; of links only those that are not for robots."""


class References(HTMLParser):
    """What a page links to, loads, and can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.targets.append(given["href"])
        if LOADS.get(tag) in given:
            self.loaded.append(given[LOADS[tag]])


def pages_of(site: Path) -> dict[str, References]:
    """The pages by their addresses."""
    return {
        urljoin(BASE, str(path.relative_to(site)).removesuffix("index.html")): References(
            path.read_text()
        )
        for path in site.rglob("*.html")
        if path.name != "404.html"  # has absolute links
    }


def broken_links(site: Path) -> Iterator[str]:
    pages = pages_of(site)
    for address, page in pages.items():
        for target in (*page.targets, *page.loaded):
            found, _, anchor = urljoin(address, target).partition("#")
            if not found.startswith(BASE):
                continue
            if not (site / unquote(urlsplit(found).path.lstrip("/"))).exists():
                yield f"{address}: {target} does not exist"
            elif anchor and found in pages and unquote(anchor) not in pages[found].anchors:
                yield f"{address}: {target} has no such anchor"


def loaded_elsewhere(site: Path) -> Iterator[str]:
    for address, page in pages_of(site).items():
        for target in page.loaded:
            if not urljoin(address, target).startswith(BASE):
                yield f"{address} loads {target}"
