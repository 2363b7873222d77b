"""The claims about logins, ACLs and certificates; targets of `tests.proofs`.

Each prints its table to stderr, and the figures last.
"""

from collections import Counter
from collections.abc import Callable

from tests.proofs.progress import tell
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.certificate_changes import certificate_changes
from tests.scenarios.login_storm import login_storm
from tests.scenarios.logins import CLIENTS, CellResult, SessionResult, login_matrix, sessions
from tests.scenarios.paced_producers import PACED
from tests.scenarios.security_comparison import Compared, security
from tests.servers.lone_broker import MECHANISMS, OAUTHBEARER

LOGIN_MECHANISMS = (*MECHANISMS, OAUTHBEARER)
SHORT_MECHANISMS = ("SCRAM-SHA-512", "PLAIN", OAUTHBEARER)
SHORT_CLIENTS = ("confluent-kafka", "kcat")
WIDEST = 160


def _row(*cells: object) -> None:
    tell(f"| {' | '.join(str(cell) for cell in cells)} |")


def prove_security(short: bool) -> Figures:
    """Apache Kafka's tools and librdkafka get the same answers from Kafka and from bucketlog."""
    _row("step", "Apache Kafka", "bucketlog", "equal")

    def show(one: Compared) -> None:
        _row(one.step, one.kafka[:WIDEST], one.here[:WIDEST], one.verdict)

    found = security(with_tools=not short, tell=show)
    problems = [one for one in found if one.is_problem]
    figures: Figures = {
        "steps": len(found),
        "equal": sum(one.verdict == "yes" for one in found),
        "documented": sorted(one.step for one in found if one.verdict.startswith("documented")),
        "different": {one.step: {"kafka": one.kafka, "here": one.here} for one in problems},
        "left_out": "quotas: tests/integration/test_client_quota_answers.py compares them",
    }
    if problems:
        raise ShortfallError(f"answers differ: {', '.join(one.step for one in problems)}", figures)
    return figures


def prove_logins(short: bool) -> Figures:
    """Six clients log in by each mechanism, with and without TLS, and again under load."""
    _row("client", "mechanism", "protocol", "case", "expected", "result")

    def show(one: CellResult) -> None:
        _row(*one.cell, one.cell.expected, one.outcome)

    clients = SHORT_CLIENTS if short else CLIENTS
    cells = login_matrix(clients, SHORT_MECHANISMS if short else LOGIN_MECHANISMS, show)
    _row("client", "mechanism", "logins", "records", "under load")
    again: list[SessionResult] = []
    for one in sessions(
        ("confluent-kafka",) if short else tuple(PACED),
        SHORT_MECHANISMS[:1] if short else LOGIN_MECHANISMS,
        2 if short else 8,
    ):
        _row(*one)
        again.append(one)
    wrong = [str(one) for one in cells if one.is_problem]
    wrong += [str(one) for one in again if one.is_problem]
    figures: Figures = {
        "cells": len(cells),
        "outcomes": dict(Counter(one.cell.expected for one in cells)),
        "sessions": len(again),
        "records_under_load": sum(one.records for one in again),
        "problems": wrong,
    }
    if wrong:
        raise ShortfallError("; ".join(wrong[:5]), figures)
    return figures


def prove_certificates(short: bool) -> Figures:
    """Certificates are replaced under load, and 5,000 connections log in beside a bystander."""
    clients = ("confluent-kafka",) if short else tuple(PACED)
    changes = certificate_changes(3 if short else 20, clients)
    return {**changes.as_json(), **login_storm(200 if short else 5_000)}


SECURITY_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "security": prove_security,
    "logins": prove_logins,
    "certificates": prove_certificates,
}
