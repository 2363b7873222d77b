"""docs/simulation.md shows the mutants as they are; each can still be applied."""

from pathlib import Path

import pytest

from bucketlog.metadata.sequencer.scripts import lua_source
from tests.simulation.caught import CAUGHT
from tests.simulation.hunting import table
from tests.simulation.mutants import MUTANTS
from tests.simulation.source_changes import Change, changed_source, lua_patch

PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"


def test_the_page_shows_all_mutants() -> None:
    text = PAGE.read_text()
    assert "\n".join(table()) in text
    assert CAUGHT.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_changes_what_is_there(name: str) -> None:
    changes = [*MUTANTS[name].changes, *MUTANTS[name].second_lines]
    for change in changes:
        if change.where.endswith(".lua"):
            file = change.where.removesuffix(".lua")
            assert lua_patch(changes)(file, lua_source(file)) != lua_source(file)
    by_function: dict[str, list[Change]] = {}
    for change in changes:
        if not change.where.endswith(".lua"):
            by_function.setdefault(change.where, []).append(change)
    for where, there in by_function.items():
        changed_source(where, there)
