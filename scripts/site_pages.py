"""Which files of the repository are pages of the documentation site, and where links lead there.

Pages of docs/ keep their paths. Markdown files at the root are under `project/`, sources that pages
link to under `source/`. Links in the repository's files are relative to these files, so that they
also work where the repository is read without the site.
"""

import os
import posixpath
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT_PAGES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
OTHER_PAGES = {
    "examples/README.md": "examples/README.md",
    "infra/helm/README.md": "kubernetes.md",
    "newsfragments/README.md": "project/newsfragments.md",
}
LISTED_FOLDERS = ("docs/decisions", "docs/format")
"""Folders of pages that have no README.md of their own: the site lists their pages."""
SEARCH_BOOSTS = {
    "tutorial.md": 2.0,
    "guides/": 2.0,
    "reference/": 0.5,
    **dict.fromkeys(("decisions/", "format/", "project/", "examples/"), 0.3),
    **dict.fromkeys(("configuration.md", "broker-settings.md", "topic-settings.md"), 0.5),
    **dict.fromkeys(("proof.md", "simulation.md", "chaos.md", "glossary.md", "status.md"), 0.3),
}
"""Factors for the rank of pages in the site's search, by the beginning of their path; others: 1."""
LANGUAGES = {"py": "python", "yaml": "yaml", "tf": "terraform", "lua": "lua", "toml": "toml"}

_FENCED = re.compile(r"(^ *(```+)[^\n]*\n.*?^ *\2$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"((?:\[[\w-]+\.md)?\]\()([^)\s#]+)(#[^)\s]*)?(\))")
"""A link, or the end of one: its beginning counts only if its text is the name of a file."""


def page_of(path: str) -> str:
    """The site's source path of a file or folder of the repository."""
    if path in LISTED_FOLDERS:
        return f"{path.removeprefix('docs/')}/README.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path in PROJECT_PAGES:
        return f"project/{path}"
    return OTHER_PAGES.get(path) or f"source/{path}.md"


def search_settings(page: str) -> dict[str, float | bool]:
    """What Material's search reads from the page: shown sources are not found, and pages for users
    rank before pages for developers."""
    if page.startswith("source/"):
        return {"exclude": True}
    boosts = (boost for path, boost in SEARCH_BOOSTS.items() if page.startswith(path))
    return {"boost": next(boosts, 1.0)}


def file_of(page: str) -> str | None:
    """The file of the repository that a page is made from; None for a generated page."""
    if page.startswith("project/") and page.removeprefix("project/") in PROJECT_PAGES:
        return page.removeprefix("project/")
    for path, other in OTHER_PAGES.items():
        if page == other:
            return path
    if page.startswith("source/") or not (ROOT / "docs" / page).is_file():
        return None
    return f"docs/{page}"


def outside_code(markdown: str) -> Iterator[tuple[bool, str]]:
    """The parts of a page in order; True for those outside of fenced code blocks."""
    at = 0
    for block in _FENCED.finditer(markdown):
        yield True, markdown[at : block.start()]
        yield False, block[0]
        at = block.end()
    yield True, markdown[at:]


def links(markdown: str) -> Iterator[str]:
    """The targets of relative links, without anchors."""
    for is_prose, part in outside_code(markdown):
        if is_prose:
            yield from (found[2] for found in _LINK.finditer(part) if "://" not in found[2])


def with_site_links(markdown: str, path: str) -> str:
    """The text of the repository's file `path`, with links that lead to the site's pages, and are
    named by titles of pages instead of names of files."""
    here = posixpath.dirname(page_of(path))

    def changed(found: re.Match[str]) -> str:
        if "://" in found[2] or found[2].startswith("mailto:"):
            return found[0]
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
        target = posixpath.relpath(page_of(linked), here or ".")
        text = f"[{title_of(linked)}](" if found[1].startswith("[") else found[1]
        return f"{text}{target}{found[3] or ''}{found[4]}"

    return "".join(
        _LINK.sub(changed, part) if is_prose else part for is_prose, part in outside_code(markdown)
    )


def title_of(path: str) -> str:
    """The heading of a page of the repository, up to a colon."""
    heading = (ROOT / path).read_text().partition("\n")[0]
    return heading.removeprefix("# ").partition(":")[0]


def repository_pages() -> list[str]:
    """Files of the repository that are pages: those of docs/, of the root, and a few others."""
    found = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
    return [*found, *PROJECT_PAGES, *OTHER_PAGES]


def linked_sources() -> set[str]:
    """Other files and folders of the repository that pages link to."""
    found = set()
    pages = set(repository_pages())
    for page in pages:
        for target in links((ROOT / page).read_text()):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
            if path.startswith(("docs/", "..")) or path in pages:
                continue
            if (ROOT / path).exists():
                found.add(path)
    return found


def source_page(path: str) -> str:
    """A page that shows a file, or lists the files of a folder."""
    if (ROOT / path).is_dir():
        listed = subprocess.run(
            ["git", "ls-files", path], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        ).stdout.split()
        files = "".join(f"- `{os.path.relpath(each, path)}`\n" for each in listed)
        return f"# {path}\n\nA folder of the repository with these files:\n\n{files}"
    language = LANGUAGES.get(path.rpartition(".")[2], "text")
    return f"# {path}\n\n````{language}\n{(ROOT / path).read_text()}````\n"


def folder_page(folder: str) -> str:
    """A list of the pages of a folder, by their titles."""
    title = {"docs/decisions": "Decisions", "docs/format": "Formats"}[folder]
    rows = []
    for path in sorted((ROOT / folder).glob("*.md")):
        heading = path.read_text().partition("\n")[0].removeprefix("# ")
        rows.append(f"- [{heading}]({path.name})\n")
    return f"# {title}\n\n{''.join(rows)}"
