"""What caught each mutant: a seed, and the rule that was seen broken, as `--mutants all` told them.
A change of the product changes what happens in a seed: then another one catches it.

Mutants that are not here were not caught so far.
"""

from typing import NamedTuple


class Caught(NamedTuple):
    seed: int
    rule: str


CAUGHT: dict[str, Caught] = {
    "wait": Caught(2, "retriable errors alone"),
    "dependencies": Caught(1, "withdrawn or passed over"),
    "stamp-open": Caught(2, "bucket reader"),
    "low-ticket": Caught(3, "bucket reader"),
    "open-duplicate": Caught(1, "retriable errors alone"),
    "producer-ids": Caught(0, "retriable errors alone"),
    "create-only": Caught(0, "progress"),
    "chain-order": Caught(0, "progress"),
    "cascade": Caught(1, "withdrawn or passed over"),
    "held-acks": Caught(1, "moved"),
    "newest": Caught(2, "no reset"),
    "seal-before-fence": Caught(0, "progress"),
    "fence-rollback": Caught(1, "bucket reader"),
    "seal-all": Caught(1, "writing is stopped"),
    "two-passes": Caught(2, "bucket reader"),
    "gaps": Caught(3, "bucket reader"),
    "producers-folded": Caught(0, "retriable errors alone"),
    "topic-wait": Caught(0, "topics"),
    "first-sequence": Caught(2, "retriable errors alone"),
    "group-term": Caught(35, "committed offsets"),
    "compare": Caught(1, "bucket reader"),
    "fresh-stamps": Caught(0, "bucket reader"),
    "checkpoint-cut": Caught(4, "bucket reader"),
    "identity": Caught(0, "no reset"),
    "missing-key": Caught(6, "retriable errors alone"),
    "nonce": Caught(2, "moved"),
    "upwards": Caught(2, "producer ids"),
    "claimed-server": Caught(1, "writing is stopped"),
    "claim-alone": Caught(0, "moved"),
    "stamp-next": Caught(3, "bucket reader"),
    "group-unsettled": Caught(2, "committed offsets"),
    "fence-first": Caught(5, "checkpoints"),
    "claim-first": Caught(15, "moved"),
    "register-check": Caught(7, "writing is stopped"),
    "claims-looked-at": Caught(5, "moved"),
    "orphans-later": Caught(1, "bucket reader"),
    "rows-leave": Caught(0, "checkpoints"),
    "retention-stops": Caught(0, "log start"),
    "tier-cut": Caught(0, "bucket reader"),
    "split-compared": Caught(6, "bucket reader"),
    "rewriting-compared": Caught(6, "bucket reader"),
    "split-from-the-end": Caught(6, "tiers grow"),
    "trim-below": Caught(6, "bucket reader"),
    "log-start-upwards": Caught(6, "log start"),
}
