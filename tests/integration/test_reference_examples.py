"""The examples in the docstrings of public names: each runs on a real cluster, and prints what it
says."""

import doctest
from collections.abc import Iterator
from pathlib import Path

import griffe
import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from scripts.reference_pages import EXAMPLE_PRELUDE
from tests.models.public_names import PublicName, public_names

pytestmark = pytest.mark.long

PUBLIC = {public.path: public for public in public_names()}
EXAMPLES = griffe.DocstringSectionKind.examples
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples_of(public: PublicName) -> str:
    """The code of the examples, with the output that it says it prints."""
    sections = griffe.Docstring(public.text).parse("google", warnings=False)
    return "\n\n".join(
        text
        for section in sections
        if section.kind is EXAMPLES
        for kind, text in section.value
        if kind is EXAMPLES
    )


WITH_EXAMPLES = [path for path, public in PUBLIC.items() if examples_of(public)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    folder = tmp_path_factory.mktemp("examples")
    keys = folder / "credentials.keys"
    keys.touch(0o600)
    keys.write_text("5a" * 32)
    settings = {"credentials_key_file": str(keys), "transactions": "true"}
    with EmbeddedCluster(folder / "data", settings=settings) as cluster:
        yield cluster


def failures(code: str, cluster: EmbeddedCluster, name: str) -> str:
    """Runs the prelude and an example, in an emptied cluster. Returns what differs."""
    import bucketlog

    with bucketlog.connect(cluster.bootstrap) as log:
        for topic in log.topics.list():
            log.topics.delete(topic.name)
        for group in log.groups.list():
            log.groups.delete(group.group)
    names: dict[str, object] = {"__name__": "example"}
    exec(replaced(EXAMPLE_PRELUDE, cluster), names)
    printed: list[str] = []
    try:
        test = doctest.DocTestParser().get_doctest(
            replaced(code, cluster), names, name, filename=None, lineno=0
        )
        runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
        runner.run(test, out=printed.append, clear_globs=False)
    finally:
        opened = names["log"]
        assert isinstance(opened, bucketlog.Log)
        opened.close()
    return "".join(printed)


def replaced(text: str, cluster: EmbeddedCluster) -> str:
    return text.replace("localhost:9092", cluster.bootstrap).replace(
        "s3://bucket/prefix", cluster.bucket_url
    )


@pytest.mark.parametrize("path", WITH_EXAMPLES)
def test_the_example_runs(
    path: str, cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert failures(examples_of(PUBLIC[path]), cluster, path) == ""


def test_a_wrong_example_is_found(cluster: EmbeddedCluster) -> None:
    assert failures(">>> orders.name\n'orders'\n", cluster, "right") == ""
    assert "Got:\n    'orders'" in failures(">>> orders.name\n'bills'\n", cluster, "wrong")
    assert "NameError" in failures(">>> no_name\n", cluster, "unknown")
