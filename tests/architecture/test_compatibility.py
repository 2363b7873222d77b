"""docs/compatibility.md's table has the APIs and versions that brokers serve, and no others."""

import re

from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from tests.models.repository import ROOT


def test_the_table_is_what_brokers_serve() -> None:
    page = (ROOT / "docs/compatibility.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (\d+)–(\d+) \|", page, re.M)
    told = {int(key): (name, (int(first), int(last))) for key, name, first, last in rows}
    assert told == {key: (key.message_name, served) for key, served in SERVED_VERSIONS.items()}


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
