"""The same random requests to Apache Kafka and to bucketlog, and what differs in the answers.

Invariants: the requests of a sequence are equal, and in an equal order, at both brokers. Sequences
run side by side: each lane has its own connections, and each sequence its own names.
A read that differs is asked again for a while: Kafka's brokers learn of changes after they answer.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import let_pass
from tests.scenarios.differences import KNOWN
from tests.scenarios.differential_answers import Difference, Plain, compared
from tests.scenarios.differential_model import Step
from tests.scenarios.differential_rights import described_acls
from tests.scenarios.differential_servers import BothBrokers, both_brokers
from tests.scenarios.differential_side import RETRY_S, Side
from tests.scenarios.differential_steps import first_steps, leftovers, sequence

READS = frozenset(
    {
        *(ApiKey.METADATA, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FETCH),
        *(ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_GROUPS, ApiKey.CONSUMER_GROUP_DESCRIBE),
        *(ApiKey.DESCRIBE_ACLS, ApiKey.DESCRIBE_PRODUCERS),
        *(ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS),
    }
)
CHANGES_TOPICS = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS})
CHANGES_ACLS = frozenset({ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS})
READ_S, CONFIG_S = 10.0, 0.2
"""Bounds of waiting; on a busy machine, a wait that is too short shows a difference."""
LANES = 16
"""Most of a sequence is waiting: this many keep two cores busy."""
TOGETHER = 10
"""One request creates the first topics of this many sequences, and one deletes all their topics:
creation and deletion are most of Kafka's work."""


ROUND_SEQUENCES = 5_000
"""New brokers start after this number of sequences: Kafka, as configured here, keeps the files of
deleted topics open."""


class Finding(NamedTuple):
    seed: int
    steps: Sequence[Step]
    """The last one's answers differ."""
    differences: Sequence[Difference]

    def __str__(self) -> str:
        lines = [f"seed {self.seed}:"]
        for each in self.steps:
            lines.append(f"  {each.by} {each.api.message_name} {each.version} {each.values}")
            lines += [f"    with {other.by}" for other in each.others]
        lines += [
            f"  {each.path}: Kafka {each.kafka}, here {each.here}" for each in self.differences
        ]
        return "\n".join(lines)


_runs = count()


@dataclass
class Pair:
    """Both brokers, as one lane sees them. `explained` counts differences by their reason."""

    kafka: Side
    here: Side
    explained: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    read_s: float = READ_S
    _prefixes: list[str] = field(default_factory=list)
    _earlier: set[ApiKey] = field(default_factory=set)

    def run(
        self, steps: Sequence[Step], prefix: str | None = None
    ) -> tuple[int, list[Difference]] | None:
        """The number of the first step whose answers differ without a reason. A sequence ends at
        a difference after which the brokers' states differ, too. With a prefix, its first step has
        been done."""
        done = 0 if prefix is None else 1
        prefix = prefix or self._new_prefix()
        for side in (self.kafka, self.here):
            side.begin(prefix)
        self._earlier = set()
        for number, step in enumerate(steps[done:], done):
            self.steps += 1
            found = self._ask(step)
            unknown = [each for each in found if each.reason is None]
            if unknown:
                return number, unknown
            self.explained.update(each.reason for each in found if each.reason is not None)
            self._earlier.add(step.api)
            if any(known.ends for each in found for known in KNOWN if known.explains(each)):
                return None
            if step.api in CHANGES_TOPICS:
                self.settle()
            elif step.api is ApiKey.INCREMENTAL_ALTER_CONFIGS:
                self.settle_configs(step)
            elif step.api in CHANGES_ACLS:
                self.settle_acls()
            elif step.api is ApiKey.END_TXN:
                self.settle_transaction(step)
        return None

    def _ask(self, step: Step) -> list[Difference]:
        until_s = time.monotonic() + self.read_s
        while True:
            found = self._compared(step)
            is_late = time.monotonic() > until_s or step.api not in READS
            if is_late or all(each.reason is not None for each in found):
                return found
            let_pass(0.02)

    def _compared(self, step: Step) -> list[Difference]:
        kafka, here = self._answers(step)
        found = compared(kafka, here, step.api, self._earlier)
        until_s = time.monotonic() + RETRY_S
        while misses_a_topic(step, found) and time.monotonic() < until_s:
            let_pass(0.02)
            found = compared(self.kafka.ask(step), here, step.api, self._earlier)
        return found

    def _answers(self, step: Step) -> tuple[Plain, Plain]:
        """Both brokers work at the same time."""
        for side in (self.kafka, self.here):
            side.send(step)
        return self.kafka.receive(step), self.here.receive(step)

    def settle(self, *prefixes: str) -> None:
        """Wait until Kafka's broker knows the topics as we do. Coordinators follow shortly."""
        rows = [{"name": f"{prefix}{name}"} for prefix in prefixes or "@" for name in ("t0", "t1")]
        self._settle(Step(ApiKey.METADATA, 4, {"topics": rows, "allow_auto_topic_creation": False}))
        let_pass(CONFIG_S)

    def _settle(self, look: Step) -> None:
        until_s = time.monotonic() + RETRY_S
        kafka, here = self._answers(look)
        while kafka != here and time.monotonic() < until_s:
            let_pass(0.01)
            kafka = self.kafka.ask(look)

    def settle_transaction(self, step: Step) -> None:
        """Kafka writes the markers of a transaction after it answers EndTxn."""
        ids = [step.values["transactional_id"]]
        look = Step(ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ids})
        until_s = time.monotonic() + RETRY_S
        while is_completing(self.kafka.ask(look)) and time.monotonic() < until_s:
            let_pass(0.01)

    def settle_configs(self, step: Step) -> None:
        """Kafka's logs follow configs shortly after DescribeConfigs shows them."""
        if step.values["validate_only"]:
            return
        rows = [
            {
                "resource_type": each["resource_type"],
                "resource_name": each["resource_name"],
                "configuration_keys": [one["name"] for one in each["configs"]],
            }
            for each in step.values["resources"]
        ]
        others = {"include_synonyms": False, "include_documentation": False}
        look = Step(ApiKey.DESCRIBE_CONFIGS, 3, {"resources": rows, **others})
        self._settle(look)
        let_pass(CONFIG_S)

    def settle_acls(self) -> None:
        """Kafka's authorizer follows shortly after, too."""
        for look in described_acls():
            self._settle(look)
        let_pass(CONFIG_S)

    def find(self, seeds: Sequence[int]) -> Iterator[Finding]:
        """Run the sequences of the seeds."""
        created = self.create_first_topics(seeds)
        for seed in seeds:
            finding = self._find(seed, created.get(seed))
            if finding is not None:
                yield finding
        self._delete_topics()

    def create_first_topics(self, seeds: Sequence[int]) -> dict[int, str]:
        """The prefixes of sequences whose first step has been done, in one request for all. Empty
        where the answers differ: each sequence then begins by itself."""
        prefixes = {seed: self._new_prefix() for seed in seeds}
        step = first_steps({prefix: sequence(seed)[0] for seed, prefix in prefixes.items()})
        for side in (self.kafka, self.here):
            side.begin("@")
        if any(each.reason is None for each in self._ask(step)):
            return {}
        self.settle(*prefixes.values())
        return prefixes

    def _new_prefix(self) -> str:
        self._prefixes.append(f"d{next(_runs)}-")
        return self._prefixes[-1]

    def _find(self, seed: int, prefix: str | None) -> Finding | None:
        """A difference is reduced to the steps that it needs."""
        steps = sequence(seed)
        found = self.run(steps, prefix)
        if found is None:
            return None
        number, differences = found
        kept, wanted = steps[: number + 1], _kinds(differences)
        for at in reversed(range(number)):
            fewer = [*kept[:at], *kept[at + 1 :]]
            again = self.run(fewer)
            if again is not None and again[0] == len(fewer) - 1 and _kinds(again[1]) == wanted:
                kept, differences = fewer, again[1]
        return Finding(seed, kept, differences)

    def _delete_topics(self) -> None:
        """And groups: most of the brokers' time would go to old ones."""
        for step in leftovers(self._prefixes):
            self._answers(step)
        self._prefixes.clear()

    def close(self) -> None:
        self.kafka.close()
        self.here.close()


def misses_a_topic(step: Step, found: Sequence[Difference]) -> bool:
    """Whether only Kafka's coordinator does not know the id of a topic: it learns of topics after
    Metadata shows them. A commit can be sent again."""
    unknown = [each.kafka for each in found if each.reason is None]
    return step.api is ApiKey.OFFSET_COMMIT and set(unknown) == {repr(ErrorCode.unknown_topic_id)}


def is_completing(answer: Plain) -> bool:
    """Whether DescribeTransactions shows a transaction whose markers are not yet written."""
    return any("Prepare" in str(value) for value in answer.values())


def _kinds(differences: Sequence[Difference]) -> set[tuple[str, str]]:
    return {(each.api, each.path) for each in differences}


@dataclass
class Outcome:
    """What all lanes have found."""

    sequences: int = 0
    steps: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    found: list[Finding] = field(default_factory=list)


class Lanes:
    """Sequences that run side by side until the seeds end, or there are enough findings."""

    def __init__(self, tell: Callable[[Finding], None], findings_max: int) -> None:
        self._tell, self._findings_max = tell, findings_max
        self._seeds: Iterator[int] = iter(())
        self._lock = Lock()
        self._is_over = False
        self.outcome = Outcome()

    def run(self, seeds: Iterator[int], brokers: BothBrokers, lanes: int) -> None:
        self._seeds, self._is_over = seeds, False
        with ThreadPoolExecutor(lanes, "lane") as threads:
            running = [threads.submit(self._lane, brokers) for _ in range(lanes)]
            try:
                for each in running:
                    each.result()
            finally:  # also after an interruption
                self._is_over = True

    @property
    def have_enough(self) -> bool:
        return len(self.outcome.found) >= self._findings_max

    def _lane(self, brokers: BothBrokers) -> None:
        pair = Pair(Side(brokers.kafka), Side(brokers.here))
        try:
            while seeds := self._next_seeds():
                for finding in pair.find(seeds):
                    self._add(finding)
        finally:
            self._end(pair)

    def _next_seeds(self) -> list[int]:
        with self._lock:
            seeds = [] if self._is_over else list(islice(self._seeds, TOGETHER))
            self.outcome.sequences += len(seeds)
            return seeds

    def _add(self, finding: Finding) -> None:
        with self._lock:
            self._tell(finding)
            self.outcome.found.append(finding)
            self._is_over |= self.have_enough

    def _end(self, pair: Pair) -> None:
        """A lane ends with the seeds, or by an error, which ends all lanes."""
        pair.close()
        with self._lock:
            self._is_over = True
            self.outcome.steps += pair.steps
            self.outcome.explained.update(pair.explained)


def differential(
    folder: Path,
    seeds: Iterator[int],
    tell: Callable[[Finding], None],
    findings_max: int,
    lanes: int = LANES,
) -> Outcome:
    """Raises `ConfigurationError` where Apache Kafka is not installed."""
    found = Lanes(tell, findings_max)
    for number in count():
        first = next(seeds, None)
        if first is None or found.have_enough:
            break
        round_seeds = chain([first], islice(seeds, ROUND_SEQUENCES - 1))
        with TemporaryDirectory(prefix=f"round-{number}-", dir=folder) as name:
            (Path(name) / "here").mkdir()
            with both_brokers(Path(name)) as brokers:
                found.run(round_seeds, brokers, lanes)
    return found.outcome
