"""Rules of the product that a test breaks on purpose, and how the judge must report each of them.

A break changes the text of a function or a Lua file (tests/simulation/source_changes.py), in the
broker process of a test only.
"""

from dataclasses import dataclass

from bucketlog.metadata.sequencer import scripts
from tests.models.promises import Rule
from tests.simulation.source_changes import Change, Mutant, apply, one
from tests.simulation.transaction_mutants import TRANSACTION_MUTANTS


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """`reported`: the judge must name at least one of these rules. `faults`: the faults that show
    the break, each with its duration in seconds; all begin at once, at one broker."""

    mutant: Mutant
    reported: frozenset[Rule]
    faults: dict[str, float]


_SHOW_EARLY = """\
            early = self.__dict__.setdefault("early", set())
            for segment in set(self._committer.awaited()) - early:
                own = self._committer.shown(segment)
                early.add(segment)
                for part in own.index.partitions:
                    for row in part.batches if part.partition in self._view.logs() else ():
                        self._view.logs()[part.partition].append(segment, row)
                self._cache.became_visible(segment, sum(map(len, own.parts)), own.parts)
                self._watchers.notify([part.partition for part in own.index.partitions])
"""
"""The view shows this broker's segments as soon as they are reserved."""
_APPLY_UNLESS_SHOWN = (
    "shown = entry.segment in self.__dict__.get('early', ()); "
    "change = (self._view._state if shown else self._view).apply(index); "
    "change = type('', (), {'partitions': []}) if shown else change"
)

BROKEN_RULES = {
    "ack-before-put": BrokenRule(
        one(
            "a batch is acknowledged after its PUT",
            "bucketlog.stateless_broker.produce.commit_steps:CommitSteps.write",
            "key = keys.segment(assembled.index.segment)",
            "key = keys.segment(assembled.index.segment); assembled.acknowledge()",
        ),
        frozenset({Rule.LOST, Rule.MOVED}),
        {"disk-full": 8.0},
    ),
    "no-seal": BrokenRule(
        one(
            "a reservation is void only when its key is sealed",
            "bucketlog.stateless_broker.epochs.sealing:segment_or_seal",
            "if await bucket.create(key, [encode_seal(Seal(segment, epoch, now_ms))]):",
            "if await bucket.head(key) is None:",
        ),
        frozenset({Rule.GAP, Rule.DUPLICATED}),
        {"disk-full": 8.0},
    ),
    "uncommitted-fetch": BrokenRule(
        Mutant(
            "a fetch serves only what is committed",
            [
                Change(
                    "bucketlog.stateless_broker.fetch.feed:ViewFeed.run",
                    "            for entry in entries:\n                if self._end",
                    f"{_SHOW_EARLY}            for entry in entries:\n                if self._end",
                ),
                Change(
                    "bucketlog.stateless_broker.fetch.feed:ViewFeed._applied",
                    "change = self._view.apply(index)",
                    _APPLY_UNLESS_SHOWN,
                ),
            ],
        ),
        frozenset({Rule.WITHDRAWN}),
        {"disk-full": 8.0},
    ),
    "second-offset": BrokenRule(
        one(
            "a duplicate gets the offset of the first",
            "reserve.lua",
            "return row[1] < 0 and 'duplicate' or 'open', row[5]",
            "return 'ok'",
        ),
        frozenset({Rule.DUPLICATED}),
        {"clients-answers-lost": 4.0},
    ),
    "stale-end": BrokenRule(
        one(
            "the latest offset includes all that was acknowledged",
            "bucketlog.stateless_broker.handlers.list_offsets:ListOffsetsHandler.__call__",
            "is_current = not self._needs_newest(message) or await self._catch_up()",
            "is_current = True",
        ),
        frozenset({Rule.END_STALE}),
        {"redis-stalls": 4.0},
    ),
}


def break_rule(name: str) -> None:
    """In this process, before its broker starts. It is one of `BROKEN_RULES` or of the simulation's
    rules of transactions."""
    broken = BROKEN_RULES.get(name)
    patch = apply((broken.mutant if broken else TRANSACTION_MUTANTS[name]).changes)
    original = scripts.lua_source
    scripts.script_text.cache_clear()
    vars(scripts)["lua_source"] = lambda name: patch(name, original(name))
