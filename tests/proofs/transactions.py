"""The claims about transactions; targets of `tests.proofs`."""

from collections.abc import Callable

from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.copy_job import CopyJob, JavaJob, LibrdkafkaJob
from tests.scenarios.transactional_copy import transactional_copy
from tests.servers.cluster import Store

JOBS: dict[str, type[CopyJob]] = {"librdkafka": LibrdkafkaJob, "java": JavaJob}


def prove_transactions(short: bool) -> Figures:
    """A copy job in transactions under kills and faults of Redis: each record is copied once."""
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


TRANSACTION_TARGETS: dict[str, Callable[[bool], Figures]] = {"transactions": prove_transactions}
