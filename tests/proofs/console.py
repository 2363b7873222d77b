"""The claims about the console; targets of `tests.proofs`."""

from collections.abc import Callable
from dataclasses import asdict

from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.console_proof import console_beside_brokers, console_without_brokers
from tests.scenarios.console_scale import console_scale
from tests.scenarios.console_tailing import console_tailing
from tests.servers.cluster import Store

SHORT_RECORDS, FULL_RECORDS = 2_000, 200_000
PAINT_MS_MAX, INTERACTION_MS_MAX = 1_000, 200
TAILING_RATIO_MAX = 1.1


def prove_console(short: bool) -> Figures:
    """A real Chromium walks over every page beside two brokers under load: nothing from a record is
    executed, axe-core finds nothing serious, and counts are the doctor's."""
    records = SHORT_RECORDS if short else FULL_RECORDS
    return asdict(console_beside_brokers(Store.MINIO, records=records))


def prove_console_without_brokers(short: bool) -> Figures:
    """The same counts after all brokers and Redis were killed under load."""
    if short:
        return asdict(console_without_brokers(Store.FILE, records=SHORT_RECORDS))
    return asdict(console_without_brokers(Store.MINIO, records=FULL_RECORDS))


def prove_console_scale(short: bool) -> Figures:
    """The console shows a large log, to which a segment is written every second. Pages paint within
    1 s, and an input has its result within 200 ms. While ten readers tail a topic, the p99 of
    acknowledgements is at most 1.1 times as long as without readers. The short form judges no
    times, because CI machines are shared."""
    if short:
        small = console_scale(topics=200, segments=500, tail=50)
        return asdict(small) | {"tailing": asdict(console_tailing(Store.FILE, turns=1, phase_s=3))}
    figures = console_scale(topics=10_000, segments=100_000, tail=1_000)
    tailing = console_tailing(Store.MINIO, turns=9, phase_s=20)
    found: Figures = asdict(figures) | {"tailing": asdict(tailing)}
    problems = [
        f"{what}: {value_ms} ms"
        for what, value_ms, most_ms in (
            ("first paint", figures.slowest_paint_ms, PAINT_MS_MAX),
            ("interaction", figures.slowest_interaction_ms, INTERACTION_MS_MAX),
        )
        if value_ms > most_ms
    ]
    if tailing.ratio > TAILING_RATIO_MAX:
        problems.append(f"p99 of acknowledgements beside readers: {tailing.ratio} times")
    if problems:
        raise ShortfallError("; ".join(problems), found)
    return found


CONSOLE_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "console": prove_console,
    "console-without-brokers": prove_console_without_brokers,
    "console-scale": prove_console_scale,
}
