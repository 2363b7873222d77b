"""docs/compatibility.md's table has the APIs that brokers advertise, no more and no fewer."""

import re
from pathlib import Path

from bucketlog.wire import fetch, produce
from stateless_broker.network.dispatch import API_VERSIONS

ROOT = Path(__file__).parents[2]


def test_the_table_is_what_brokers_advertise() -> None:
    page = (ROOT / "docs/compatibility.md").read_text()
    told = {
        int(key): (int(first), int(last))
        for key, first, last in re.findall(r"^\| (\d+) \| \w+ \| (\d+)–(\d+) \|", page, re.M)
    }
    routes = (ROOT / "stateless_broker/handlers/routes.py").read_text()
    served = {
        int(key): (int(first), int(last))
        for key, first, last in re.findall(r"\bApi\((\d+), (\d+), (\d+), ", routes)
    }
    assert len(served) > 15
    assert told == served | {
        produce.API_KEY: (produce.MIN_VERSION, produce.MAX_VERSION),
        fetch.API_KEY: (fetch.MIN_VERSION, fetch.MAX_VERSION),
        API_VERSIONS: (0, 4),
    }


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("infra/**/*.md")):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path, _, anchor = target.partition("#")
            if "://" in path:
                continue
            found = (page.parent / path).resolve() if path else page
            if not found.exists():
                broken.append(f"{page.name}: {target}")
            elif anchor and anchor not in _anchors(found.read_text()):
                broken.append(f"{page.name}: {target} (no such heading)")
    assert broken == []


def _anchors(text: str) -> set[str]:
    """As GitHub makes them of headings."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.M)
    }
