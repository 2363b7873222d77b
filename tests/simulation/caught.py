"""What caught each mutant: a seed, and the rule that was seen broken, as `--mutants all` told them.
A change of the product changes what happens in a seed: then another one catches it.
"""

from typing import NamedTuple


class Caught(NamedTuple):
    seed: int
    rule: str


CAUGHT: dict[str, Caught] = {
    "wait": Caught(4, "retriable errors alone"),
    "topic-wait": Caught(5, "topics"),
    "dependencies": Caught(1, "withdrawn or passed over"),
    "stamp-open": Caught(2, "bucket reader"),
    "stamp-next": Caught(22, "bucket reader"),
    "low-ticket": Caught(3, "checkpoints"),
    "open-duplicate": Caught(2, "retriable errors alone"),
    "first-sequence": Caught(11, "retriable errors alone"),
    "producer-ids": Caught(0, "producer ids"),
    "group-term": Caught(28, "committed offsets"),
    "group-unsettled": Caught(1, "committed offsets"),
    "create-only": Caught(0, "progress"),
    "compare": Caught(1, "bucket reader"),
    "chain-order": Caught(0, "progress"),
    "cascade": Caught(1, "withdrawn or passed over"),
    "held-acks": Caught(0, "moved"),
    "newest": Caught(5, "retriable errors alone"),
    "seal-before-fence": Caught(0, "views"),
    "fence-rollback": Caught(2, "bucket reader"),
    "fence-first": Caught(8, "withdrawn or passed over"),
    "fresh-stamps": Caught(5, "bucket reader"),
    "stamps-in-turn": Caught(1, "bucket reader"),
    "identity": Caught(0, "moved"),
    "missing-key": Caught(6, "retriable errors alone"),
    "nonce": Caught(2, "moved"),
    "upwards": Caught(2, "producer ids"),
    "claimed-server": Caught(1, "producer ids"),
    "claim-alone": Caught(0, "moved"),
    "claim-first": Caught(15, "committed offsets"),
    "register-check": Caught(7, "moved"),
    "claims-looked-at": Caught(5, "moved"),
    "works-elsewhere": Caught(3, "availability"),
    "more-brokers": Caught(20, "availability"),
    "leaves-what-works": Caught(39, "one alone"),
    "gives-back": Caught(1, "outage"),
    "seal-all": Caught(1, "progress"),
    "checkpoint-again": Caught(21, "moved"),
    "producers-folded": Caught(0, "retriable errors alone"),
    "producers-idle": Caught(3, "retriable errors alone"),
    "checkpoint-cut": Caught(0, "checkpoints"),
    "two-passes": Caught(5, "bucket reader"),
    "gaps": Caught(2, "bucket reader"),
    "split-compared": Caught(0, "bucket reader"),
    "rewriting-compared": Caught(14, "log start"),
    "tier-key": Caught(8, "checkpoints"),
    "job-over": Caught(21, "bucket reader"),
    "orphans-later": Caught(1, "bucket reader"),
    "left-later": Caught(1, "bucket reader"),
    "rows-leave": Caught(0, "checkpoints"),
    "split-from-the-end": Caught(6, "tiers grow"),
    "trim-below": Caught(6, "bucket reader"),
    "log-start-upwards": Caught(6, "log start"),
    "retention-stops": Caught(0, "log start"),
    "tier-cut": Caught(0, "bucket reader"),
}
