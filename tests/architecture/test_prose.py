"""How the documents read: the length of sentences, and phrases that readers stumbled over."""

import pytest

from tests.models.prose import (
    PHRASES,
    found_fragments,
    found_phrases,
    fragments_of,
    mean_words_max,
    pages,
    read,
    texts_of_module,
    uses_in,
    word_count,
)
from tests.models.repository import ROOT


@pytest.mark.parametrize("path", pages())
def test_sentences_are_short(path: str) -> None:
    reading = read((ROOT / path).read_text())
    longest = "\n".join(f"{word_count(each)}: {each}" for each in reading.longest(5))
    assert reading.mean_words <= mean_words_max(path), (
        f"shorten or split sentences, such as\n{longest}"
    )


def test_no_file_uses_a_listed_phrase() -> None:
    found = [
        f"{path}: {use.phrase}: {use.excerpt}"
        for path, uses in found_phrases().items()
        for use in uses
    ]
    assert found == [], "write these in other words (tests/models/prose.py has the list)"


SPOKEN = {
    "is no …": "a dict is no order",
    "is told": "the client was told of it",
    "so many": "sent after so many records",
    "stands": "the batch stands in the segment",
    "goes on": "the query goes on",
    "of one's own": "a thread of its own",
    "held against": "the file is held against the code",
    "is wanted": "what is wanted",
    "but for": "all but for the last",
    "has no say": "Redis has no say in it",
    "makes do": "a name does not do.",
}


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_planted_phrase_is_found(phrase: str) -> None:
    assert [use.phrase for use in uses_in("a.md", SPOKEN[phrase])] == [phrase]
    assert uses_in("a.md", f"```\n{SPOKEN[phrase]}\n```\n`{SPOKEN[phrase]}`") == []
    module = f'"""A module.\n\n{SPOKEN[phrase]}"""\nx = f"{{x}}: {SPOKEN[phrase]}"\n'
    assert [use.phrase for use in uses_in("a.py", module)] == [phrase, phrase]


@pytest.mark.parametrize(
    "text",
    [
        "there is no broker",
        "it is no longer used",
        "TTL stands for time to live",
        "so many that memory is full",
    ],
)
def test_plain_english_is_not_a_complaint(text: str) -> None:
    assert uses_in("a.md", text) == []


def test_sentences_are_counted_as_readers_see_them() -> None:
    page = (
        "# A title with words\n\nOne two `some code` [a link](b.md). Two\nwords.\n\n"
        "- an item, e.g. this one\n\n"
        "| name | a label |\n|---|---|\n| x | This cell has eight words in one sentence. |\n\n"
        "```\nnot counted at all\n```\n"
    )
    assert [word_count(each) for each in read(page).sentences] == [5, 2, 5, 8]


def test_the_texts_of_a_module_are_its_strings() -> None:
    module = '"""A doc."""\nX = "word"\nraise E(f"no {x} here", remedy="do this")\n'
    assert set(texts_of_module(module)) == {"A doc.", "do this", "no CODE here"}


FRAGMENTS_MAX = 377
"""Docstrings that begin in the middle of a thought. The number may only fall: lower it then."""


def test_docstrings_can_be_read_alone() -> None:
    found = found_fragments()
    count = sum(map(len, found.values()))
    some = [f"{path}: {text[:80]}" for path, texts in found.items() for text in texts[:1]]
    assert count <= FRAGMENTS_MAX, "\n".join(some[:20])
    assert FRAGMENTS_MAX - count < 60, f"lower the limit to {count}"


def test_finds_a_planted_fragment() -> None:
    module = '"""A module."""\ndef is_other() -> bool:\n    """Than Produce."""\n'
    assert fragments_of(module) == ["Than Produce."]
    assert fragments_of(module.replace("Than", "Whether this is a request other than")) == []
