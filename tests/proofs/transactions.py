"""The proofs of the claims about transactions: targets of `tests.proofs`."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.models.transaction_history import Anomaly
from tests.proofs.progress import tell
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.copy_job import CopyJob, JavaJob, LibrdkafkaJob
from tests.scenarios.streams_count import streams_count
from tests.scenarios.transaction_chaos import transaction_chaos
from tests.scenarios.transactional_copy import transactional_copy
from tests.servers.cluster import Store

SEED, MINUTES = 1, 30.0
SHORT_SECONDS = 45.0
BREAKS = ("txn-aborted-list", "txn-stable-end")
"""Of tests/simulation/transaction_mutants.py."""
BREAK_SECONDS = 15.0
JOBS: dict[str, type[CopyJob]] = {"librdkafka": LibrdkafkaJob, "java": JavaJob}


def prove_transactions(short: bool) -> Figures:
    """A transactional copy job copies each record once, despite kills and faults of Redis."""
    found: dict[str, Figures] = {}
    for name, job in JOBS.items():
        if short:
            figures = transactional_copy(Store.FILE, job, 20_000, batch=10, slot_s=5)
        else:
            figures = transactional_copy(Store.MINIO, job, 500_000, batch=100, slot_s=15)
        found[name] = figures.as_json()
        if figures.problems:
            raise ShortfallError(f"{name}: {'; '.join(figures.problems[:5])}", found)
    return found


def prove_streams(short: bool) -> Figures:
    """Kafka Streams with `exactly_once_v2` counts each word once, despite kills and wipes."""
    if short:
        figures = streams_count(Store.FILE, kills=3, wipes=1, between_s=5)
    else:
        figures = streams_count(Store.MINIO, kills=10, wipes=2, between_s=15)
    if figures.problems:
        raise ShortfallError("; ".join(figures.problems[:5]), figures.as_json())
    return figures.as_json()


def prove_history(short: bool) -> Figures:
    """Transactional clients under chaos: no anomaly in the history of their transactions. Rules of
    the brokers, broken on purpose, are reported. The short form has one of these."""
    store, seconds = (Store.FILE, SHORT_SECONDS) if short else (Store.MINIO, 60 * MINUTES)
    with TemporaryDirectory(prefix="bucketlog-transactions-") as folder:
        figures = transaction_chaos(Path(folder, "whole"), store, seconds, SEED, tell)
        if figures.anomalies or figures.problems:
            reasons = [*figures.examples, *figures.problems[:5]]
            raise ShortfallError("; ".join(reasons), figures.as_json())
        breaks = {name: _reported(name, Path(folder)) for name in BREAKS[: 1 if short else None]}
    return figures.as_json() | {"reported_breaks": breaks}


def _reported(name: str, folder: Path) -> list[str]:
    """Anomalies that a broken rule causes. Some producers are left, and what they wrote is aborted;
    a client sees it by this break."""
    where = folder / name
    found = transaction_chaos(where, Store.FILE, BREAK_SECONDS, SEED, tell, broken_rule=name)
    if Anomaly.ABORTED_READ not in found.anomalies:
        raise ShortfallError(f"{name} is not reported", found.as_json())
    return sorted(found.anomalies)


TRANSACTION_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "transactions": prove_transactions,
    "streams-eos": prove_streams,
    "transaction-history": prove_history,
}
