"""The docstrings of public names: `help()` and the reference say all that a caller must know.

Each rule is shown to fail on a docstring that breaks it.
"""

import inspect
import re
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from bucketlog.client.options import (
    GROUP_DEFAULTS,
    PARTITION_DEFAULTS,
    PRODUCER_DEFAULTS,
    TOPICS_DEFAULTS,
    TOPICS_GROUP_DEFAULTS,
    GroupOptions,
    PartitionOptions,
    ProducerOptions,
    TopicsGroupOptions,
    TopicsOptions,
)
from bucketlog.client.signatures import documented_as, with_options
from bucketlog.log_format.errors import LogError
from scripts.runtime_reference import OPTIONS
from tests.models.docstrings import complaints
from tests.models.public_names import PublicName, public_names
from tests.models.repository import ROOT

RAISE_NOTHING = {
    f"bucketlog.{name}"
    for name in (
        "client.async_consumer.AsyncConsumer.stop",
        "client.consumer.Consumer.stop",
        "client.committing_consumer.CommittingConsumer.note_transaction",
        "client.committing_consumer.CommittingConsumer.settle",
        "client.open_telemetry.OpenTelemetry.processing",
        "client.processing.Retrying.pause_s",
        "client.retry_topics.RetryTopics.next_after",
        "client.security.Security.librdkafka",
        "client.statistics.Statistics.parse",
        "client.topic_pattern.TopicPattern.matches",
        "embedded.cluster.EmbeddedCluster.overridden",
        "embedded.cluster.EmbeddedCluster.stop",
    )
}
"""Functions and methods that raise no error on their own account."""
NAMES = {public.path: public for public in public_names()}


def complaints_of(path: str) -> list[str]:
    return complaints(NAMES[path], may_raise=path not in RAISE_NOTHING)


@pytest.mark.parametrize("path", NAMES)
def test_a_public_name_is_documented(path: str) -> None:
    assert complaints_of(path) == []


def test_listed_names_exist() -> None:
    assert RAISE_NOTHING - NAMES.keys() == set()


def good(count: int, wait_s: float = 1.5, name: str | None = None) -> int:
    """Count the records of a topic.

    Args:
        count: Number of records.
        wait_s: Longest wait, in seconds. Default: 1.5.
        name: Name of the topic; None for all topics.

    Returns:
        The number of records.

    Raises:
        LogError: If no broker answers.

    Examples:
        >>> 1 + 1
        2
    """
    if not count:
        raise LogError("none", code="X", kafka_code=1, retriable=False)
    return count


@dataclass
class Good:
    """A count of records. Made by `good`.

    Attributes:
        size_bytes: Size, in bytes.

    Examples:
        >>> 1 + 1
        2
    """

    size_bytes: int


BROKEN_FUNCTIONS: dict[str, tuple[str, str, str]] = {
    "no unit": ("Number of records.", "As many as fit.", "the parameter count has no unit"),
    "no description": ("name: Name of", "nome: Name of", "the parameter name is not described"),
    "unknown name": ("name: Name of", "nome: Name of", "there is no parameter nome"),
    "wrong default": (
        "Default: 1.5.",
        "Default: 2.5.",
        "the parameter wait_s does not say its default 1.5",
    ),
    "no meaning of None": (
        "; None for all topics.",
        ".",
        "the parameter name does not say what None means",
    ),
    "no result": ("Returns:", "Notes:", "no Returns or Yields"),
    "no errors": ("Raises:", "Notes:", "no Raises"),
    "an error is missing": (
        "LogError:",
        "InvalidDataError:",
        "raises LogError, and does not say so",
    ),
    "no such error": ("LogError:", "LogErrer:", "LogErrer is not an error"),
    "no example": (">>> 1 + 1", "1 + 1", "no Examples with lines of >>>"),
    "no verb": (
        "Count the",
        "What the",
        "the summary begins with 'What', and cannot be read alone",
    ),
    "no capital": ("Count the", "count the", "the summary does not begin with a capital letter"),
    "no full stop": (
        "of a topic.\n\n    Args",
        "of a topic\n\n    Args",
        "the summary 'Count the records of a topic' does not end with a full stop",
    ),
    "no sentence": (
        "Count the records of a topic.",
        "Counts.",
        "the summary 'Counts.' is not a sentence",
    ),
}
BROKEN_CLASSES: dict[str, tuple[str, str, str]] = {
    "no place": (
        "Made by `good`.",
        "",
        "no Args, and the text does not say what makes it: 'Made by `Log.producer`.'",
    ),
    "no field": (
        "size_bytes:",
        "size:",
        "the attribute size_bytes is not described",
    ),
    "no example": (">>> 1 + 1", "1 + 1", "no Examples with lines of >>>"),
}


def broken(shown: Any, old: str, new: str) -> list[str]:
    text = shown.__doc__
    assert text.count(old) == 1, "the planted mistake is not in the docstring"
    shown.__doc__ = text.replace(old, new)
    try:
        return complaints(PublicName(f"{__name__}.{shown.__name__}", shown))
    finally:
        shown.__doc__ = text


@pytest.mark.parametrize("shown", [good, Good])
def test_a_complete_docstring_is_no_complaint(shown: Any) -> None:
    assert complaints(PublicName("a.good", shown)) == []


@pytest.mark.parametrize("mistake", BROKEN_FUNCTIONS)
def test_a_broken_docstring_of_a_function_is_found(mistake: str) -> None:
    old, new, expected = BROKEN_FUNCTIONS[mistake]
    assert expected in broken(good, old, new)


@pytest.mark.parametrize("mistake", BROKEN_CLASSES)
def test_a_broken_docstring_of_a_class_is_found(mistake: str) -> None:
    old, new, expected = BROKEN_CLASSES[mistake]
    assert expected in broken(Good, old, new)


def test_a_missing_docstring_is_found() -> None:
    assert complaints(PublicName("a.f", lambda: None)) == ["no docstring"]


def test_hidden_options_are_found() -> None:
    def send(**given: Any) -> None:
        """Send a record."""

    assert "**given hides the names of options" in complaints(PublicName("a.send", send))


def test_options_are_shown_with_their_defaults_and_descriptions() -> None:
    @with_options((ProducerOptions, PRODUCER_DEFAULTS))
    def send(topic: str, **options: Any) -> None:
        """Send a record.

        Args:
            topic: Name of the topic.

        Raises:
            LogError: If no broker answers.
        """

    shown = inspect.signature(send).parameters
    assert list(shown) == ["topic", *ProducerOptions.__annotations__]
    assert shown["linger_ms"].default == PRODUCER_DEFAULTS["linger_ms"]
    assert "linger_ms: " in (inspect.getdoc(send) or "").partition("Raises:")[0]
    assert complaints(PublicName("a.send", send, owner=object)) == []


def test_a_note_is_the_last_paragraph_before_the_sections() -> None:
    @documented_as(good)
    def other(count: int, wait_s: float = 1.5, name: str | None = None) -> int:
        """Waits in a thread."""
        return count

    text = inspect.getdoc(other) or ""
    assert "Count the records of a topic.\n\nWaits in a thread.\n\nArgs:\n" in text
    assert text.endswith("Examples:\n    >>> 1 + 1\n    2")


@pytest.mark.parametrize(
    ("options", "defaults"),
    [
        (ProducerOptions, PRODUCER_DEFAULTS),
        (PartitionOptions, PARTITION_DEFAULTS),
        (GroupOptions, GROUP_DEFAULTS),
        (TopicsOptions, TOPICS_DEFAULTS),
        (TopicsGroupOptions, TOPICS_GROUP_DEFAULTS),
    ],
)
def test_each_option_has_a_default(options: Any, defaults: dict[str, Any]) -> None:
    assert options.__annotations__.keys() == defaults.keys()


def test_the_site_reads_docstrings_with_one_set_of_options() -> None:
    python = handler_options((ROOT / "mkdocs.yml").read_text())
    assert python["docstring_style"] == "google"
    assert python["docstring_options"] == OPTIONS


def handler_options(configuration: str) -> Any:
    """Of mkdocstrings, without the tags that only MkDocs knows."""
    loaded = yaml.safe_load(re.sub(r"!!python/\S+\n( +)kwds", r"\n\1kwds", configuration))
    plugins = {
        name: each[name] for each in loaded["plugins"] if isinstance(each, dict) for name in each
    }
    return plugins["mkdocstrings"]["handlers"]["python"]["options"]
