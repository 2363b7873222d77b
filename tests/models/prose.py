"""How the repository's English reads, as far as a program can measure: sentences and phrases.

A sentence ends at a full stop, a question mark, an exclamation mark or the end of a paragraph, a
list item or a table cell. Code in a sentence counts as one word. Code blocks and headings do not
count, and neither do table cells that are mere labels: short sentences there would flatter the
mean.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import yaml

from tests.models.repository import PRODUCT, ROOT, listed_files

LABEL_WORDS_MAX = 7
"""A table cell with at most this many words, and without a full stop, is a label."""

MEAN_WORDS_MAX = 20
GUIDE_MEAN_WORDS_MAX = 15
"""For tutorials and how-to guides."""
GUIDES = ("Tutorial", "How-to guides")
"""Parts of the site, as mkdocs.yml names them."""

PHRASES = {
    "is no …": r"(?<!\bthere )\b(?:is|are|was|were) no (?!longer|more|less|fewer|later|earlier)\w+",
    "is told": r"\b(?:is|are|was|were|be|been|being) told\b",
    "so many": r"\bso (?:many|much|long|often)\b(?!(?:[^.]{0,60})\bthat\b)",
    "stands": r"\bstands?\b(?! for\b|-| in for\b|ard)",
    "goes on": r"\b(?:goes|go|went|going) on\b",
    "of one's own": r"\bof (?:one's|its|his|her|their|our|my|your) own\b",
    "held against": r"\b(?:holds?|held|holding)\b[^.]{0,60}\bagainst\b",
    "is wanted": r"\b(?:is|are|was|were) (?:wanted|meant)\b",
    "but for": r"\b(?:all|none|nothing|everything|each|every \w+),? but for\b",
    "has no say": r"\bno say in\b",
    "makes do": r"\b(?:does not do|make do|makes do|will not do)[.,;:]",
}
"""Phrases of this project that readers stumbled over, with the expressions that find them."""

DANGLING = frozenset(
    (
        *("as", "be", "but", "by", "from", "how", "if", "in", "it", "its", "nobody", "none"),
        *("nothing", "of", "one", "so", "than", "that", "their", "them", "these", "they", "this"),
        *("those", "what", "when", "where", "which", "who", "whom", "whose", "with", "without"),
    )
)
"""First words after which a docstring depends on another text."""
GENERATED = "wire/messages/"

_FENCED = re.compile(r"^ *(```+)[^\n]*\n.*?^ *\1$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)[^`].*?\1")
_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_WORD = re.compile(r"[^\W_][\w'’.,:/%=+-]*")
_END = re.compile(r"(?<=[.!?])[)\"'*”]*\s+(?=[A-Z0-9`\"'“(\[*]|bucketlog\b|librdkafka\b)")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|approx|cf|No)\.")


class Use(NamedTuple):
    """A phrase, and the words around the place where it is used."""

    phrase: str
    excerpt: str


class Reading(NamedTuple):
    """The sentences of a text."""

    sentences: list[str]

    @property
    def mean_words(self) -> float:
        counts = [word_count(sentence) for sentence in self.sentences]
        return sum(counts) / len(counts) if counts else 0.0

    def longest(self, count: int) -> list[str]:
        return sorted(self.sentences, key=word_count, reverse=True)[:count]


def word_count(sentence: str) -> int:
    return len(_WORD.findall(sentence))


def prose_of(markdown: str) -> str:
    """The text without code blocks and comments; code in sentences is the word CODE."""
    text = _COMMENT.sub("", _FENCED.sub("\n", markdown))
    return _LINK.sub(r"\1", _CODE.sub("CODE", text))


def read(markdown: str) -> Reading:
    found = []
    for unit, is_cell in _units(prose_of(markdown)):
        split = _sentences(unit)
        if is_cell and len(split) < 2 and word_count(unit) <= LABEL_WORDS_MAX:
            continue
        found += [sentence for sentence in split if word_count(sentence)]
    return Reading(found)


def _units(text: str) -> Iterator[tuple[str, bool]]:
    """Paragraphs, list items and table cells; True for cells."""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        is_row = line.lstrip().startswith("|")
        is_break = not line.strip() or line.startswith("#") or is_row or _ITEM.match(line)
        if is_break and lines:
            yield " ".join(lines), False
            lines = []
        if is_row:
            if not re.fullmatch(r"[\s|:-]+", line):
                yield from ((cell.strip(), True) for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        elif line.strip() and not line.startswith("#"):
            lines.append(_ITEM.sub("", line).strip())


def _sentences(paragraph: str) -> list[str]:
    whole = _ABBREVIATIONS.sub(r"\1", paragraph)
    return [part.strip() for part in _END.split(whole) if part.strip()]


def phrases(text: str) -> Iterator[Use]:
    """The uses of listed phrases in a text without code."""
    for name, pattern in PHRASES.items():
        for found in re.finditer(pattern, text, re.IGNORECASE):
            excerpt = text[max(0, found.start() - 40) : found.end() + 40]
            yield Use(name, " ".join(excerpt.split()))


def texts_of_module(source: str) -> Iterator[str]:
    """Strings of a module that people read: docstrings, help texts, messages of errors and logs."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.JoinedStr(values=values):
                inside.update(map(id, values))
                parts = [
                    each.value if isinstance(each, ast.Constant) else "CODE" for each in values
                ]
                yield _CODE.sub("CODE", "".join(map(str, parts)))
            case ast.Constant(value=str(text)) if id(node) not in inside and " " in text:
                yield _CODE.sub("CODE", text)


def uses_in(path: str, text: str) -> list[Use]:
    """The uses of listed phrases in a Markdown file, or in the texts of a Python module."""
    if path.endswith(".md"):
        return list(phrases(prose_of(text)))
    return [use for each in texts_of_module(text) for use in phrases(each)]


def fragments_of(source: str) -> list[str]:
    """Docstrings of a module that begin in the middle of a thought, such as "Than Produce."."""
    found = []
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    word = re.match(r"[\w']+", text.strip())
                    if word and word[0].lower() in DANGLING:
                        found.append(" ".join(text.split()))
    return found


def found_fragments() -> dict[str, list[str]]:
    """By module, without modules that have none."""
    paths = [path for path in read_files() if path.endswith(".py") and GENERATED not in path]
    found = {path: fragments_of((ROOT / path).read_text()) for path in paths}
    return {path: texts for path, texts in found.items() if texts}


def read_files() -> list[str]:
    """Documents, and the modules whose texts users and developers read."""
    return [
        path
        for path in listed_files()
        if path.endswith(".md") or (path.endswith(".py") and path.split("/")[0] in PRODUCT)
    ]


def found_phrases() -> dict[str, list[Use]]:
    """By file, without files that have none."""
    uses = {path: uses_in(path, (ROOT / path).read_text()) for path in read_files()}
    return {path: found for path, found in uses.items() if found}


def pages() -> list[str]:
    """Markdown files; a news fragment is too short for a mean."""
    paths = [path for path in listed_files() if path.endswith(".md")]
    return [path for path in paths if not path.startswith("newsfragments/+")]


@cache
def guide_pages() -> frozenset[str]:
    """The files of the site's tutorial and how-to guides."""
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    parts = {name: part for each in yaml.safe_load(nav) for name, part in each.items()}
    found = (_pages_in(parts[name]) for name in GUIDES)
    return frozenset(f"docs/{page}" for part in found for page in part)


def _pages_in(node: Any) -> Iterator[str]:
    match node:
        case str():
            yield node
        case dict():
            yield from (page for each in node.values() for page in _pages_in(each))
        case list():
            yield from (page for each in node for page in _pages_in(each))


def mean_words_max(path: str) -> int:
    return GUIDE_MEAN_WORDS_MAX if path in guide_pages() else MEAN_WORDS_MAX
