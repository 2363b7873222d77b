"""Names: one public class per name, and a glossary that covers every folder of the product.

The rules are functions from sources to complaints, so that a test can show that each of them fails
on a planted violation.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from tests.models.repository import PRODUCT, ROOT, listed_files

MESSAGES = "log_format/wire/messages/"
"""Named as in Kafka's message schemas, where structures of two APIs may share a name. They may
share it among themselves only."""
GLOSSARY = ROOT / "docs/glossary.md"
ROW = re.compile(r"\| (?P<word>[^|]+) \|(?P<cells>.*)\|$", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")


def homonyms(sources: Mapping[str, str]) -> list[str]:
    """Names of public classes that several modules define, with those modules."""
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path, text in sources.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    return [
        f"{name} is defined in {' and '.join(paths)}"
        for name, paths in sorted(homes.items())
        if len(paths) > 1 and not all(path.startswith(MESSAGES) for path in paths)
    ]


def folders(paths: Iterable[str]) -> set[str]:
    return {
        f"{folder}/"
        for path in paths
        if path.endswith((".py", ".lua"))
        for folder in PurePosixPath(path).parents
        if str(folder) != "."
    }


def explained(glossary: str) -> set[str]:
    """Folders that have a row of their own."""
    words = (row["word"] for row in ROW.finditer(glossary))
    return {quoted for word in words for quoted in QUOTED.findall(word)}


def homes(glossary: str) -> set[str]:
    cells = (row["cells"] for row in ROW.finditer(glossary))
    last = (cell.rstrip().rpartition("|")[2] for cell in cells if "|" in cell)
    return {quoted for cell in last for quoted in QUOTED.findall(cell)}


def test_no_two_public_classes_share_a_name() -> None:
    python = [path for path in listed_files(*PRODUCT) if path.endswith(".py")]
    found = homonyms({path: (ROOT / path).read_text() for path in python})
    assert not found, "\n".join(found)


def test_finds_planted_homonyms() -> None:
    found = homonyms(
        {
            "a.py": "class Topic: ...\nclass _Part: ...\nclass A: ...\n",
            "b.py": "class Topic: ...\nclass _Part: ...\n",
        }
    )
    assert found == ["Topic is defined in a.py and b.py"]


def test_messages_may_share_names_among_themselves_only() -> None:
    sources = {f"{MESSAGES}{name}.py": "class Row: ...\n" for name in ("fetch", "produce")}
    assert not homonyms(sources)
    assert homonyms({**sources, "a.py": "class Row: ...\n"})


def test_the_glossary_has_every_folder_and_no_other() -> None:
    there = folders(listed_files(*PRODUCT))
    listed = explained(GLOSSARY.read_text())
    assert there - listed == set(), "folders without a row in the glossary"
    assert listed - there == set(), "rows of folders that do not exist"


def test_finds_a_planted_folder() -> None:
    glossary = "| folder | contents |\n|---|---|\n| `metadata/` | Facts. |\n"
    assert folders(["metadata/lua/a.lua"]) - explained(glossary) == {"metadata/lua/"}


def test_the_homes_in_the_glossary_exist() -> None:
    named = homes(GLOSSARY.read_text())
    assert "log_format/model.py" in named
    assert not [path for path in sorted(named) if not (ROOT / path).exists()]


IRREGULAR = frozenset(
    {"Held", "Found", "Taken", "Told", "Given", "Seen", "Shown", "Sent", "Written"}
)
PRONOUNS = frozenset({"Anything", "Around", "It", "Nothing", "One", "Others", "Those", "Who"})
NOUNS = frozenset({"Feed", "Seed", "Ping", "Listing", "Timing"})
RENAMED_LATER = frozenset(
    {
        "bucketlog/client/acknowledged.py: Acknowledged",
        "bucketlog/client/processing.py: Processing",
        "bucketlog/client/processing.py: Retrying",
        "bucketlog/client/sending.py: Delivered",
        "stateless_broker/network/incoming.py: Incoming",
        "stateless_broker/network/receiving.py: Receiving",
        "stateless_broker/network/request_order.py: Ordering",
        "stateless_broker/network/sending.py: Sending",
        "stateless_broker/process/hosting.py: Hosting",
        "tests/rigs/wire_client.py: Keyed",
        "tests/servers/sequencing.py: Sequencing",
    }
)
"""Names from before the rule. The list may only shrink."""


def vague_names(sources: Mapping[str, str]) -> list[str]:
    """Public classes whose whole name is a participle or a pronoun, with their modules."""
    return [
        f"{path}: {node.name}"
        for path, text in sources.items()
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and is_vague(node.name)
    ]


def is_vague(name: str) -> bool:
    if not re.fullmatch("[A-Z][a-z]+", name) or name in NOUNS:
        return False
    return name in IRREGULAR | PRONOUNS or name.endswith(("ed", "ing"))


def test_class_names_are_nouns() -> None:
    folders = (*PRODUCT, "tests/rigs", "tests/servers")
    python = [path for path in listed_files(*folders) if path.endswith(".py")]
    found = set(vague_names({path: (ROOT / path).read_text() for path in python}))
    assert found - RENAMED_LATER == set(), (
        "name what an instance is: a noun, or an adjective with one"
    )
    assert RENAMED_LATER - found == set(), "take these off the list"


def test_finds_planted_vague_names() -> None:
    source = "class Told: ...\nclass Opened: ...\nclass OpenedObject: ...\nclass Feed: ...\n"
    assert vague_names({"a.py": source}) == ["a.py: Told", "a.py: Opened"]
