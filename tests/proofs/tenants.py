"""The claim about tenants; a target of `tests.proofs`."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from redis import Redis as SyncRedis

from tests.proofs.hostile import ATTACK_ROWS
from tests.proofs.shortfall import Figures, ShortfallError
from tests.rigs.users import write_key_file
from tests.scenarios.many_tenants import idle_tenants
from tests.scenarios.tenant_attack import AttackedRow, attack_one_tenant, pooled
from tests.scenarios.tenant_walk import walk_as_tenant
from tests.servers.lone_broker import lone_broker
from tests.servers.own_valkey import SOCKET
from tests.servers.tenant_brokers import TENANTS, WALKED, address, tenant_file

FACTOR_MAX = 1.5
"""How many times as long the p99 of a tenant may be while another one is attacked."""
IDLE_TENANTS, IDLE_S = (1, 100), 60.0
SHORT_TENANTS, SHORT_IDLE_S = (5,), 1.0
SHORT_ROWS = ("12-announced-frames",)


def prove_tenants(short: bool) -> Figures:
    """One tenant is attacked: the other's p99 grows by at most half. No API shows it names of the
    other. Figures of 100 tenants that do nothing.

    The short form does not judge latencies, because CI machines are shared."""
    figures: Figures = {"walk": walk()}
    figures["idle"] = [
        asdict(idle_tenants(count, SHORT_IDLE_S if short else IDLE_S))
        for count in (SHORT_TENANTS if short else IDLE_TENANTS)
    ]
    rows = [row for row in ATTACK_ROWS if not row.refuses_produce]
    rows = [row for row in rows if not short or row.name in SHORT_ROWS]
    found: dict[str, AttackedRow] = {}
    for row in rows:
        found[row.name] = attacked = attack_one_tenant(row, short=short)
        print(json.dumps({"row": row.name} | attacked.as_json()), file=sys.stderr, flush=True)
    return figures | _judged(found, short=short)


def walk() -> Figures:
    """Raises `ShortfallError`."""
    with TemporaryDirectory(prefix="bucketlog-prove-") as there:
        folder = Path(there)
        files = {
            "tenants_file": str(tenant_file(folder)),
            "credentials_key_file": str(write_key_file(folder / "keys")),
        }
        with (
            lone_broker(folder, **WALKED, **files) as broker,
            SyncRedis(unix_socket_path=str(folder / SOCKET)) as redis,
        ):
            found = walk_as_tenant(
                address(broker, "ACME"),
                address(broker, "GLOBEX"),
                tenants=TENANTS,
                bucket_url=f"file://{folder}/bucket",
                redis=redis,
            )
    figures: Figures = asdict(found)
    if found.leaks or found.differences:
        raise ShortfallError(f"names leak: {(found.leaks + found.differences)[:5]}", figures)
    return figures


def _judged(found: dict[str, AttackedRow], *, short: bool) -> Figures:
    produce = pooled([row.produce for row in found.values()])
    asked = pooled([row.api_versions for row in found.values()])
    figures: Figures = {
        "rows": {name: row.as_json() for name, row in found.items()},
        "produce_p99_ms": {"before": produce.before_p99_ms, "attacked": produce.attacked_p99_ms},
        "api_versions_p99_ms": {"before": asked.before_p99_ms, "attacked": asked.attacked_p99_ms},
        "produce_factor": produce.factor,
        "api_versions_factor": asked.factor,
    }
    failed = {name: row.produce.failures[0] for name, row in found.items() if row.produce.failures}
    bad = {name: row.bad_lines[0] for name, row in found.items() if row.bad_lines}
    if failed or bad:
        raise ShortfallError(
            f"the other tenant was refused, or a broker failed: {failed or bad}", figures
        )
    if not short and max(produce.factor, asked.factor) > FACTOR_MAX:
        raise ShortfallError(
            f"the other tenant's p99 is {produce.factor} (Produce) and {asked.factor} "
            f"(ApiVersions) times as long, {FACTOR_MAX} wanted",
            figures,
        )
    return figures


TENANT_TARGETS: dict[str, Callable[[bool], Figures]] = {"tenants": prove_tenants}
