"""Three brokers under all kinds of clients and a plan of faults; the clients' history is judged.

The plan is a pure function of the seed (tests/models/fault_plan.py); the processes are real, so the
history differs from run to run. The history is a file that can be judged again. docs/chaos.md
explains what a run prints. `tests.scenarios.chaos_run` is the command, `make chaos` runs it.
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bucketlog.log_format.errors import BucketlogError
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.segment import is_seal
from tests.models.fault_plan import PlannedFault, encode_plan, plan_faults
from tests.models.history import Rows
from tests.models.pauses import Events, Pauses, events_of, figures, pauses_by_fault
from tests.models.promises import Broken, broken_promises
from tests.models.recorded_history import Recorded, decode
from tests.rigs.patience import PATIENCE_S, let_pass
from tests.rigs.recorder import Recorder
from tests.scenarios.broker_reader import BrokerReader
from tests.scenarios.bucket_reading import records_in_bucket
from tests.scenarios.chaos_clients import GROUP, MEMBER, PARTITIONS, PROBE, TOPIC, chaos_clients
from tests.scenarios.fault_slots import ALONE, BROKERS, carry_out, fragile_cluster
from tests.scenarios.faults import faults_for
from tests.scenarios.load import read_to_end
from tests.servers.cluster import Cluster, Store

LAST_QUIET_S = 4.0
READ_BOUND_S = PATIENCE_S / 3
"""The time for a reader in the end: brokers that broke a rule may never show all records."""
HISTORY, PLAN, RESULT = "history.jsonl", "plan.jsonl", "result.json"


@dataclass(frozen=True, slots=True)
class ChaosOptions:
    """`plan`, if given, is replayed instead of the plan for this seed and length. `broken_rule` is
    the name of a rule in tests/servers/broken_rules.py."""

    folder: Path
    seconds: float
    seed: int
    store: Store = Store.MINIO
    java: bool = True
    plan: Sequence[PlannedFault] | None = None
    broken_rule: str | None = None


@dataclass(slots=True)
class ChaosResult:
    """What a run found. `problems` are errors that clients gave up on, and brokers that ended."""

    options: ChaosOptions
    recorded: Recorded
    events: Events
    broken: list[Broken]
    problems: list[str]
    ended: float
    pauses: Mapping[str, Sequence[Pauses]] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return not self.broken and not self.problems

    def as_json(self) -> dict[str, Any]:
        history = self.recorded.history
        return {
            "seed": self.options.seed,
            "store": self.options.store,
            "faults": len(self.recorded.faults),
            "acknowledged": len(history.acknowledged),
            "in_log": sum(map(len, self.recorded.log.values())),
            "commits": len(history.commits),
            "seals": len(history.seals or ()),
            "broken_promises": [str(broken) for broken in self.broken[:20]],
            "problems": self.problems,
            "pauses": {name: figures(found) for name, found in sorted(self.pauses.items())},
        }


def chaos(options: ChaosOptions, told: Callable[[str], None]) -> ChaosResult:
    """Run chaos. Plan, history, result and the brokers' logs are in the folder afterwards. Raises
    `ConfigurationError` if a server or Kafka's tools are not installed, and `AssertionError` if the
    cluster does not recover. Nothing is left running."""
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / HISTORY
    with fragile_cluster(options.folder, options.store, options.broken_rule) as cluster:
        problems: list[str] = []
        try:
            with Recorder(path, time.monotonic) as recorder:
                problems = _run(cluster, options, recorder, told)
            found = judged(path, options, problems, time.monotonic())
        finally:
            for broker in cluster.brokers:
                shutil.copy(broker.log, options.folder / broker.log.name)
                if options.broken_rule is not None and broker.process is not None:
                    broker.kill()  # it may never end at SIGTERM
    (options.folder / RESULT).write_text(json.dumps(found.as_json(), indent=1))
    return found


def judged(
    path: Path, options: ChaosOptions, problems: list[str], ended: float | None = None
) -> ChaosResult:
    """What the history in this file shows. A run that is judged again ends with its last fault's
    recovery."""
    with path.open() as lines:
        recorded = decode(lines)
    events = events_of(recorded, observers=BrokerReader.prefix, member=MEMBER, probes=PROBE)
    faults = recorded.faults
    last = max((fault.ended for fault in faults), default=0.0) + LAST_QUIET_S
    broken = broken_promises(recorded.history, recorded.log) if recorded.log else []
    if not recorded.log:
        problems = [*problems, "no reader could read the log in the end: it is not judged"]
    found = ChaosResult(options, recorded, events, broken, problems, ended or last)
    found.pauses = pauses_by_fault(events, faults, last)
    return found


def _run(
    cluster: Cluster, options: ChaosOptions, recorder: Recorder, told: Callable[[str], None]
) -> list[str]:
    faults = faults_for(cluster)
    plan = options.plan
    if plan is None:
        kinds = {name: fault.targets for name, fault in faults.items()}
        plan = plan_faults(options.seed, options.seconds, kinds, brokers=BROKERS, alone=ALONE)
    (options.folder / PLAN).write_text(encode_plan(plan) + "\n")
    told(encode_plan(plan))
    wall, monotonic = time.time(), time.monotonic()
    with chaos_clients(cluster, recorder.history, java=options.java) as clients:
        problems = carry_out(cluster, plan, faults, recorder, told, topic=TOPIC, group=GROUP)
        let_pass(LAST_QUIET_S)
        try:
            clients.wait_for_progress()
        except AssertionError as error:
            problems.append(f"clients make no progress: {error}")
    problems += clients.complaints()
    problems += _read_all(cluster, recorder, wall - monotonic)
    return problems


def _read_all(cluster: Cluster, recorder: Recorder, epoch_s: float) -> list[str]:
    """What each broker shows in the end, what the bucket holds, and its seals. `epoch_s` is the
    wall clock's time at which the history's clock was 0. Returns which reader failed."""
    problems = []
    shown: dict[int, Rows] = {}
    try:
        for broker in cluster.brokers:
            shown |= read_to_end(
                broker.bootstrap,
                recorder.history,
                topic=TOPIC,
                partitions=PARTITIONS,
                reader=f"broker {broker.node_id} in the end",
                bound_s=READ_BOUND_S,
            )
    except AssertionError as error:
        problems.append(f"a reader does not reach the end: {error}")
    bucket = cluster.open_bucket()
    try:
        for info in bucket.list(keys.LOG):
            if is_seal(info.size_bytes):
                recorder.sealed(info.modified_ms / 1000 - epoch_s)
        stored = records_in_bucket(bucket, TOPIC)
        shown = {partition: stored.get(partition, ()) for partition in range(PARTITIONS)}
    except (BucketlogError, AssertionError) as error:
        problems.append(f"a reader of the bucket alone fails: {error}")
    finally:
        bucket.close()
    recorder.log(shown)
    return problems
