"""The file of tenants, and what each tenant of a broker gets."""

from pathlib import Path

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.assembly.tenant_plan import load_tenants, plan_tenants
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.tenant_specs import (
    TENANTS_BYTES_MAX,
    TenantSpec,
    read_tenants,
)
from bucketlog.stateless_broker.settings.types import MIB

BY_LISTENER = "A:PLAINTEXT://127.0.0.1:0,B:PLAINTEXT://127.0.0.1:0"
TWO = (TenantSpec("acme", ("A",)), TenantSpec("globex", ("B",)))
SHARED_TLS = {
    "listeners": "IN:SASL_SSL://:9093",
    "advertised_listeners": "IN://kafka.example.com:9093",
    "ssl_certificate_file": "c",
    "ssl_key_file": "k",
    "credentials_key_file": "keys",
}
TOKENS = {
    "sasl_mechanisms": "OAUTHBEARER",
    "oauthbearer_jwks_file": "jwks",
    "oauthbearer_issuer": "https://issuer",
}


def settings(**given: object) -> BrokerSettings:
    usual = {"bucket_url": "s3://bucket/prefix", "redis_url": "redis://r", "tenants_file": "t"}
    return BrokerSettings.model_validate(usual | {"listeners": BY_LISTENER} | given)


def test_a_file_is_read() -> None:
    text = '[globex]\nshare = 3\n[acme]\nlisteners = ["a"]\ngroups_max = 7\n'
    assert read_tenants(text, tenants_max=2) == (
        TenantSpec("acme", ("A",), 1, {"groups_max": 7}),
        TenantSpec("globex", (), 3),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no tenant"),
        ("[acme", "not TOML"),
        ("acme = 1", "not a table"),
        ("[Acme]", "cannot name a tenant"),
        ("[-acme]", "cannot name a tenant"),
        ('["a/b"]', "cannot name a tenant"),
        ('["a.b"]', "cannot name a tenant"),
        (f"[{'a' * 64}]", "cannot name a tenant"),
        ("[a]\nredis_url = 'x'", "not a setting of tenants"),
        ("[a]\nshare = 0", "share is a whole number"),
        ("[a]\nshare = true", "share is a whole number"),
        ("[a]\nlisteners = 'X'", "a list of names"),
        ("[a]\n[b]\n[c]", "BUCKETLOG_TENANTS_MAX"),
        ("[a]\nlisteners = ['X']\n[b]\nlisteners = ['x']", "belongs to a and to b"),
        ("#" * (TENANTS_BYTES_MAX + 1), "more than"),
    ],
)
def test_a_wrong_file_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_tenants(text, tenants_max=2)


def test_each_tenant_has_a_prefix_a_share_and_its_listeners() -> None:
    specs = (TenantSpec("acme", ("A",), 3, {"groups_max": 7}), TWO[1])
    acme, globex = plan_tenants(settings(cluster_partitions_max=100), specs)
    assert acme.settings.bucket_url == "s3://bucket/prefix/tenants/acme"
    assert globex.settings.bucket_url == "s3://bucket/prefix/tenants/globex"
    assert (acme.settings.cluster_partitions_max, globex.settings.cluster_partitions_max) == (
        75,
        25,
    )
    assert (acme.settings.groups_max, globex.settings.groups_max) == (7, 25_000)
    sessions = [
        (each.settings.fetch_session_cache_slots_max, each.settings.fetch_session_cache_bytes_max)
        for each in (acme, globex)
    ]
    assert sessions == [(750, 96 * MIB), (250, 32 * MIB)]
    assert [each.name for each in acme.listeners] == ["A"]
    assert [each.name for each in globex.listeners] == ["B"]
    assert acme.settings.tenants_file is None


def test_server_names_are_in_advertised_addresses() -> None:
    specs = (TenantSpec("acme"), TenantSpec("globex"))
    for plan in plan_tenants(settings(**SHARED_TLS), specs):
        (listener,) = plan.listeners
        assert listener.reached_at(1) == (f"{plan.name}.kafka.example.com", 9093)


def test_without_server_names_the_login_chooses() -> None:
    (plan,) = plan_tenants(settings(**SHARED_TLS, tenant_server_names=False), [TenantSpec("acme")])
    (listener,) = plan.listeners
    assert listener.reached_at(1) == ("kafka.example.com", 9093)


@pytest.mark.parametrize(
    ("given", "specs", "problem"),
    [
        ({"redis_url": None}, TWO, "BUCKETLOG_REDIS_URL"),
        ({}, (TenantSpec("acme", ("X",)),), "no listener X"),
        ({}, (TenantSpec("acme", ("A",)), TenantSpec("globex")), "no rule chooses the tenant"),
        (
            {},
            (TenantSpec("acme", ("A", "B")), TenantSpec("globex")),
            "tenant globex has no listener",
        ),
        ({}, (TWO[0], TenantSpec("globex", ("B",), 1, {"groups_max": 0})), "tenant globex: groups"),
        (
            {},
            (
                TenantSpec("acme", ("A",), 1, {"bucket_url": "s3://other"}),
                TenantSpec("globex", ("B",), 1, {"bucket_url": "s3://other/"}),
            ),
            "the same bucket_url",
        ),
        (SHARED_TLS, (TenantSpec("kafka"),), "the name of the host"),
        (
            SHARED_TLS | TOKENS | {"oauthbearer_audiences": "kafka"},
            (TenantSpec("acme"), TenantSpec("globex")),
            "each other's tokens",
        ),
        (
            SHARED_TLS | TOKENS | {"oauthbearer_audiences": "kafka"},
            (
                TenantSpec("acme", settings={"oauthbearer_audiences": "a,x"}),
                TenantSpec("globex", settings={"oauthbearer_audiences": "x,g"}),
            ),
            "each other's tokens",
        ),
        (
            SHARED_TLS | TOKENS,
            (
                TenantSpec("acme", settings={"oauthbearer_audiences": "a"}),
                TenantSpec("globex", settings={"oauthbearer_audiences": "*"}),
            ),
            "each other's tokens",
        ),
    ],
)
def test_what_would_not_isolate_is_refused(
    given: dict[str, object], specs: tuple[TenantSpec, ...], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        plan_tenants(settings(**given), specs)


@pytest.mark.parametrize(
    "given",
    [
        {"tenant_claim_name": "org", "oauthbearer_audiences": "kafka"},
        {"oauthbearer_audiences": "kafka", "own": True},
    ],
)
def test_tokens_that_are_good_for_one_tenant_are_accepted(given: dict[str, object]) -> None:
    has_own = given.pop("own", False)
    specs = [
        TenantSpec(name, settings={"oauthbearer_audiences": name} if has_own else {})
        for name in ("acme", "globex")
    ]
    assert plan_tenants(settings(**SHARED_TLS, **TOKENS, **given), specs)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="BUCKETLOG_TENANTS_FILE: cannot read"):
        load_tenants(settings(tenants_file=tmp_path / "none"))
    assert load_tenants(settings(tenants_file=None)) == ()
