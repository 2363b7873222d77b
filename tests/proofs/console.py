"""The claims about the console; targets of `tests.proofs`."""

from collections.abc import Callable
from dataclasses import asdict

from tests.proofs.shortfall import Figures
from tests.scenarios.console_proof import console_beside_brokers, console_without_brokers
from tests.servers.cluster import Store

SHORT_RECORDS, FULL_RECORDS = 2_000, 200_000


def prove_console(short: bool) -> Figures:
    """A real Chromium walks over every page beside two brokers under load: nothing from a record is
    executed, axe-core finds nothing serious, and counts are the doctor's."""
    if short:
        return asdict(console_beside_brokers(Store.FILE, records=SHORT_RECORDS))
    return asdict(console_beside_brokers(Store.MINIO, records=FULL_RECORDS))


def prove_console_without_brokers(short: bool) -> Figures:
    """The same counts after all brokers and Redis were killed under load."""
    if short:
        return asdict(console_without_brokers(Store.FILE, records=SHORT_RECORDS))
    return asdict(console_without_brokers(Store.MINIO, records=FULL_RECORDS))


CONSOLE_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "console": prove_console,
    "console-without-brokers": prove_console_without_brokers,
}
