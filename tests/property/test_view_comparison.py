"""A view that goes on while it is compared contradicts nothing; one that was fed otherwise does."""

import random

import pytest

from bucketlog.log_format.checkpoint import CoveredWriter
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import PartitionIndex, SegmentIndex, Ticket
from bucketlog.metadata.acl_bindings import (
    AclBinding,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from bucketlog.metadata.checkpoint import extended
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.security_facts import AclsCreated, AclsDeleted
from bucketlog.metadata.view import View
from bucketlog.metadata.view_comparison import ViewComparison
from tests.models.histories import RandomHistory
from tests.models.indexes import WRITER, segment

pytestmark = pytest.mark.long

SEEDS = range(60)


def compared(
    history: RandomHistory, ticket: Ticket, shown: list[SegmentIndex], coming: list[SegmentIndex]
) -> list[str]:
    """The view shows `shown`, and more of `coming` with every few steps."""
    covered = [index for index in history.segments if index.ticket < ticket]
    made = extended(None, covered, ticket, history.covered(ticket), created_ms=1)
    view = View()
    view.become(View.of(shown))
    comparison = ViewComparison(view, made)
    left = iter(coming)
    for step, _ in enumerate(comparison.steps()):
        if step % 2 and (index := next(left, None)) is not None:
            view.apply(index)
    return comparison.unexplained(i for i in history.segments if i.ticket >= ticket)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_comes_later_explains_what_the_view_shows_more(seed: int) -> None:
    history = RandomHistory(seed)
    chance = random.Random(seed)
    at = chance.randrange(len(history.segments))
    shown = chance.randint(at, len(history.segments))
    ticket = history.segments[at].ticket
    segments = history.segments
    assert compared(history, ticket, segments[:shown], segments[shown:]) == []


def shows(part: PartitionIndex, state: LogState) -> bool:
    """A batch of these still has a row."""
    found = state.partitions.get(part.partition)
    return found is not None and any(row.next_offset > found.batches_from for row in part.batches)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_view_that_lacks_a_segment_contradicts(seed: int) -> None:
    """Unless what was in it is of no consequence any more."""
    history = RandomHistory(seed)
    ticket = Ticket(9, 0)
    tried = 0
    for at in range(len(history.segments)):
        without = history.segments[:at] + history.segments[at + 1 :]
        try:
            lacking, whole = fold(without), fold(history.segments)
        except InvalidDataError:
            continue  # no view could have been fed so
        matters = (
            lacking.topics != whole.topics
            or lacking.groups != whole.groups
            or any(shows(part, whole) for part in history.segments[at].partitions)
            or any(
                (lacking.partitions[key].tier, lacking.partitions[key].log_start)
                != (part.tier, part.log_start)
                or lacking.partitions[key].next_offset < part.next_offset
                for key, part in whole.partitions.items()
            )
        )
        assert bool(compared(history, ticket, without, [])) == matters
        tried += matters
    assert tried > 0


ACL = AclBinding(
    "User:a", "*", AclOperation.READ, Permission.ALLOW, ResourceType.TOPIC, "t", PatternType.LITERAL
)


@pytest.mark.parametrize("make", [AclsCreated, AclsDeleted])
def test_a_view_with_other_acls_contradicts(make: type[AclsCreated | AclsDeleted]) -> None:
    """Unless a later segment is about the ACL."""
    created = segment(0, None, AclsCreated(acls=(ACL,), by="", at_ms=0))
    changed = segment(1, None, make(acls=(ACL,), by="", at_ms=0))
    covered = [created] if make is AclsDeleted else []
    ends = [CoveredWriter(WRITER, 1, 1, False)] if covered else []
    made = extended(None, covered, Ticket(1, 1), ends, created_ms=1)
    comparison = ViewComparison(View.of([*covered, changed]), made)
    for _ in comparison.steps():
        pass
    assert comparison.unexplained([changed]) == []
    (named,) = comparison.unexplained([])
    assert "the ACL" in named
    assert "User:a" in named
