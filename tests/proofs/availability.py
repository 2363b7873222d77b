"""The claims about availability: how long clients wait after a fault; targets of `tests.proofs`."""

import sys
from collections.abc import Callable
from dataclasses import replace

from tests.models.fault_plan import Target
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.failover import failover
from tests.scenarios.faults import SINGLE_FAULTS
from tests.scenarios.no_redis import outage
from tests.scenarios.single_faults import single_faults, too_long
from tests.scenarios.wipe import wipe
from tests.servers.cluster import Store

RUNS = 10
SHORT_FAULTS = ("kill", "bucket-stalls")
SHORT_LASTS_S = 4.0
PAUSE_MAX_S = 5.0
RATE_SHARE_MIN = 0.8


def prove_single_faults(short: bool) -> Figures:
    """Each fault for each role of a broker on MinIO: the longest pauses of acknowledgements,
    visibility and groups. The short form judges the promises, but not the pauses, because CI
    machines are shared."""
    faults = list(SINGLE_FAULTS)
    if short:
        faults = [
            replace(fault, targets=(Target.ANY,), lasts_s=min(fault.lasts_s, SHORT_LASTS_S))
            for fault in SINGLE_FAULTS
            if fault.name in SHORT_FAULTS
        ]
    found: Figures = dict(
        single_faults(faults, 1 if short else RUNS, told=lambda line: print(line, file=sys.stderr))
    )
    if not short and (problems := too_long(found)):
        raise ShortfallError("; ".join(problems), found)
    return found


def prove_no_redis(short: bool) -> Figures:
    """(a) Three brokers without any Redis, kill -9 of each in turn, and of the Valkey that one of
    them runs. (b) An outage of Redis under load. The short form judges the promises, but not pauses
    and rates, because CI machines are shared."""
    store = Store.FILE if short else Store.MINIO
    kills = failover(
        store, 3 if short else 12, between_s=5 if short else 10, without_redis=True
    ).as_json()
    ends = wipe(
        Store.FILE, 0, 2 if short else 10, segments=300, java=not short, without_redis=True
    ).as_json()
    moves = outage(store, 20.0 if short else 600.0).as_json()
    found: Figures = {"kills": kills, "valkey_kills": ends, "outage": moves}
    problems = []
    if not short:
        gap_s = max(kills["longest_gap_s"].values())
        problems = [
            f"{what}: {value} s"
            for what, value in (
                ("visibility gap", gap_s),
                ("without an acknowledgement", max(ends["works_again_after_kill_s"])),
            )
            if value > PAUSE_MAX_S
        ]
        problems += [
            f"{what}: {moves[what]} s"
            for what in ("pause_s", "return_pause_s")
            if moves[what] > PAUSE_MAX_S
        ]
        if moves["rate_share"] < RATE_SHARE_MIN:
            problems.append(f"rate_share: {moves['rate_share']}")
    if problems:
        raise ShortfallError("; ".join(problems), found)
    return found


AVAILABILITY_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "no-redis": prove_no_redis,
    "single-faults": prove_single_faults,
}
