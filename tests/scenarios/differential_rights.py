"""Random steps about ACLs, from a seed. Pure.

Invariant: each ACL, and each filter, names a resource of its sequence, so that it does not meet the
rules of others.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.scenarios.differential_model import LOGGED_IN, Step

ANY, TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 1, 2, 3, 4, 5
LITERAL, PREFIXED, MATCH = 3, 4, 2
ALLOW, DENY = 3, 2
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 2, 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS = 10, 11
RESOURCES = (
    *((TOPIC, "@t0"), (TOPIC, "@t0"), (TOPIC, "@t"), (TOPIC, "@t1")),
    *((GROUP, "@g0"), (GROUP, "@g"), (TRANSACTIONAL_ID, "@x0")),
)
OPERATIONS = (
    *(ALL, READ, READ, WRITE, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION),
    *(DESCRIBE_CONFIGS, ALTER_CONFIGS, 0, 99),
)


def described_acls() -> Iterator[Step]:
    """All rules of a sequence."""
    for name in sorted({name for _, name in RESOURCES}):
        yield _describing(ANY, name, ANY, ANY, ANY, None)


def deleted_acls(prefixes: Sequence[str]) -> Step:
    names = sorted({name for _, name in RESOURCES})
    rows = [
        _filter(ANY, f"{prefix}{name[1:]}", ANY, ANY, ANY, None)
        for prefix in prefixes
        for name in names
    ]
    return Step(ApiKey.DELETE_ACLS, 3, {"filters": rows})


def create_acls(random: Random) -> Step:
    rows = [_created(random) for _ in range(random.choice((1, 1, 2)))]
    return Step(ApiKey.CREATE_ACLS, random.randint(1, 3), {"creations": rows})


def _created(random: Random) -> dict[str, Any]:
    kind, name = random.choice(RESOURCES)
    return {
        "resource_type": random.choice((kind, kind, kind, kind, kind, 0, ANY)),
        "resource_name": name,
        "resource_pattern_type": random.choice((LITERAL, LITERAL, PREFIXED, PREFIXED, ANY, MATCH)),
        "principal": random.choice((*[f"User:{LOGGED_IN}"] * 8, "User:*", "nobody", "User:bob")),
        "host": random.choice(("*", "*", "*", "127.0.0.1", "10.0.0.1")),
        "operation": random.choice(OPERATIONS),
        "permission_type": random.choice((ALLOW, ALLOW, ALLOW, DENY, ANY)),
    }


def describe_acls(random: Random) -> Step:
    return _describing(*_wanted(random), version=random.randint(1, 3))


def delete_acls(random: Random) -> Step:
    rows = [_filter(*_wanted(random)) for _ in range(random.choice((1, 1, 2)))]
    return Step(ApiKey.DELETE_ACLS, random.randint(1, 3), {"filters": rows})


def _wanted(random: Random) -> tuple[int, str, int, int, int, str | None]:
    kind, name = random.choice(RESOURCES)
    return (
        random.choice((ANY, kind, kind, 0)),
        name,
        random.choice((ANY, MATCH, LITERAL, PREFIXED, 0)),
        random.choice((ANY, *OPERATIONS)),
        random.choice((ANY, ALLOW, DENY)),
        random.choice((None, None, f"User:{LOGGED_IN}", "User:*")),
    )


def _filter(
    kind: int, name: str, pattern: int, operation: int, permission: int, principal: str | None
) -> dict[str, Any]:
    return {
        "resource_type_filter": kind,
        "resource_name_filter": name,
        "pattern_type_filter": pattern,
        "principal_filter": principal,
        "host_filter": None,
        "operation": operation,
        "permission_type": permission,
    }


def _describing(
    kind: int,
    name: str,
    pattern: int,
    operation: int,
    permission: int,
    principal: str | None,
    version: int = 3,
) -> Step:
    values = _filter(kind, name, pattern, operation, permission, principal)
    return Step(ApiKey.DESCRIBE_ACLS, version, values)
