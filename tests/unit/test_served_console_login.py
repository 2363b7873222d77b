"""Who may see the console of a broker, and which settings would let in others."""

import asyncio
import base64
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.metadata.acl_bindings import (
    AclBinding,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from bucketlog.metadata.acls import Acls, Resource
from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.stateless_broker.authentication import plain
from bucketlog.stateless_broker.authentication.scram import ScramCredential, keys_of, salted
from bucketlog.stateless_broker.authorization.authorizer import (
    CLUSTER,
    Authorizer,
    AuthorizerRules,
)
from bucketlog.stateless_broker.network import audit
from bucketlog.stateless_broker.network.audit import AuditLog
from bucketlog.stateless_broker.network.bounded_lines import LineLimits
from bucketlog.stateless_broker.process.console_login import (
    LOGIN_FAILED,
    LOGIN_NEEDED,
    NOT_READY,
    ConsoleLogin,
    HttpRefusal,
    check_console,
)
from bucketlog.stateless_broker.settings.broker import BrokerSettings

SALT = b"salt"
DELAY_MS = 70
REMEMBERED_MS = 60_000
HOST = "127.0.0.1"
ALL_TOPICS = Resource(ResourceType.TOPIC, "*")
LOGIN = {
    "listeners": "IN:SASL_PLAINTEXT://127.0.0.1:0",
    "credentials_key_file": "keys",
    "login_failure_delay_ms": DELAY_MS,
    "plain_remembered_ms": REMEMBERED_MS,
}


def settings(**given: object) -> BrokerSettings:
    values = {"bucket_url": "memory://x", "redis_url": "redis://x", "console": True}
    return BrokerSettings.model_validate(values | given)


def credential(password: str) -> ScramCredential:
    mechanism = ScramMechanism.SHA_512
    return ScramCredential(4096, SALT, keys_of(mechanism, salted(mechanism, password, SALT, 4096)))


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def rule(
    operation: AclOperation, resource: Resource, permission: Permission = Permission.ALLOW
) -> AclBinding:
    kind, name = resource
    return AclBinding("User:ann", "*", operation, permission, kind, name, PatternType.LITERAL)


DESCRIBE_RULE = rule(AclOperation.DESCRIBE, CLUSTER)
READ_RULE = rule(AclOperation.READ, ALL_TOPICS)


class Door:
    """A login, its users and rules, a clock, and what it did."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, has_acls: bool = False, **given: object
    ) -> None:
        self.users = {"ann": credential("secret:ü"), "root": credential("root")}
        self.acls = Acls()
        self.now_s = 0.0
        self.hashed = 0
        self.slept_s: list[float] = []
        self.has_begun = True
        rules = AuthorizerRules(frozenset({"User:root"}), False, 100)
        authorizer = Authorizer(rules, acls=lambda: self.acls, is_stale=lambda: False)
        monkeypatch.setattr(plain, "salted", self._salted)
        monkeypatch.setattr(asyncio, "sleep", self._sleep)
        self.login = ConsoleLogin(
            settings(**{**LOGIN, **given}),
            lambda user, mechanism: (
                self.users.get(user) if mechanism is ScramMechanism.SHA_512 else None
            ),
            authorizer=lambda: authorizer if has_acls else None,
            has_begun=lambda: self.has_begun,
            audit=AuditLog(LineLimits(100, 100), now_s=lambda: self.now_s),
            now_s=lambda: self.now_s,
        )

    def _salted(
        self, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
    ) -> bytes:
        self.hashed += 1
        return salted(mechanism, password, salt, iterations)

    async def _sleep(self, delay_s: float) -> None:
        self.slept_s.append(delay_s)

    async def come(self, authorization: str | None) -> HttpRefusal | None:
        return await self.login.refusal(authorization, HOST, "peer")

    async def ann(self, password: str = "secret:ü") -> HttpRefusal | None:
        return await self.come(basic("ann", password))


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    return Door(monkeypatch)


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Door:
    return Door(monkeypatch, has_acls=True)


@pytest.fixture
def events(caplog: pytest.LogCaptureFixture) -> Iterator[list[dict[str, object]]]:
    found: list[dict[str, object]] = []

    class Events(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(vars(record))

    handler, level = Events(), audit.logger.level
    audit.logger.addHandler(handler)
    audit.logger.setLevel(logging.INFO)
    yield found
    audit.logger.removeHandler(handler)
    audit.logger.setLevel(level)


async def test_a_right_password_opens(door: Door, events: list[dict[str, object]]) -> None:
    assert await door.ann() is None
    assert door.slept_s == []
    (event,) = events
    assert (event["event"], event["principal"], event["host"]) == ("login", "User:ann", HOST)
    assert (event["listener"], event["mechanism"]) == ("HTTP", "BASIC")


@pytest.mark.parametrize(
    "authorization",
    [
        basic("ann", "wrong"),
        basic("ann", ""),
        basic("nobody", "secret:ü"),
        basic("root", "secret:ü"),
    ],
)
async def test_a_wrong_login_waits_and_is_audited(
    door: Door, events: list[dict[str, object]], authorization: str
) -> None:
    assert await door.come(authorization) == LOGIN_FAILED
    assert door.slept_s == [DELAY_MS / 1000]
    assert door.hashed == 1
    (event,) = events
    assert (event["event"], event["principal"]) == ("login_failed", "User:ANONYMOUS")
    assert "secret" not in str(event)
    assert "wrong'" not in str(event)


@pytest.mark.parametrize(
    "authorization",
    ["Basic", "Basic !", "Bearer x", basic("", "secret:ü"), "Basic YW5u", "Basic /w==", ""],
)
async def test_a_malformed_login_fails(door: Door, authorization: str) -> None:
    assert await door.come(authorization) == LOGIN_FAILED
    assert door.slept_s == [DELAY_MS / 1000]


async def test_without_a_login_the_browser_asks(
    door: Door, events: list[dict[str, object]]
) -> None:
    assert await door.come(None) == LOGIN_NEEDED
    assert LOGIN_NEEDED.asks_password
    assert (door.slept_s, events) == ([], [])


async def test_a_right_password_is_hashed_once_for_a_time(
    door: Door, events: list[dict[str, object]]
) -> None:
    for _ in range(5):
        assert await door.ann() is None
    assert (door.hashed, len(events)) == (1, 1)
    door.now_s = REMEMBERED_MS / 1000
    assert await door.ann() is None
    assert (door.hashed, len(events)) == (2, 2)


async def test_a_new_password_or_a_deleted_user_counts_at_once(door: Door) -> None:
    assert await door.ann() is None
    door.users["ann"] = credential("other")
    assert await door.ann() == LOGIN_FAILED
    assert await door.ann("other") is None
    del door.users["ann"]
    assert await door.ann("other") == LOGIN_FAILED


async def test_the_rights_that_are_missing_are_named(
    guarded: Door, events: list[dict[str, object]]
) -> None:
    refusal = await guarded.ann()
    assert refusal is not None
    assert refusal.status == 403
    assert "User:ann" in refusal.text
    assert "DESCRIBE on CLUSTER 'kafka-cluster', READ on TOPIC '*'" in refusal.text
    assert [event["event"] for event in events] == ["login", "denied", "denied"]
    guarded.acls.add([DESCRIBE_RULE])
    refusal = await guarded.ann()
    assert refusal is not None
    assert "READ on TOPIC '*'" in refusal.text
    assert "CLUSTER" not in refusal.text


async def test_both_rights_open_until_one_is_taken(guarded: Door) -> None:
    guarded.acls.add([DESCRIBE_RULE, READ_RULE])
    assert await guarded.ann() is None
    deny = rule(AclOperation.READ, Resource(ResourceType.TOPIC, "pay"), Permission.DENY)
    guarded.acls.add([deny])
    refusal = await guarded.ann()
    assert refusal is not None
    assert refusal.status == 403


async def test_a_super_user_needs_no_rule(guarded: Door) -> None:
    assert await guarded.come(basic("root", "root")) is None
    assert await guarded.come(basic("root", "wrong")) == LOGIN_FAILED


async def test_without_logins_rules_are_about_the_anonymous(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = Door(monkeypatch, has_acls=True, listeners=None)
    refusal = await door.come(None)
    assert refusal is not None
    assert refusal.status == 403
    assert "User:ANONYMOUS" in refusal.text
    door.acls.add([each._replace(principal="User:*") for each in (DESCRIBE_RULE, READ_RULE)])
    assert await door.come(None) is None


async def test_before_the_broker_has_begun_nobody_enters(door: Door) -> None:
    door.has_begun = False
    assert await door.ann() == NOT_READY


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_passwords_are_taken_on_local_addresses(host: str) -> None:
    check_console(settings(**LOGIN, http_host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "logs.example"])
def test_passwords_are_not_taken_without_tls(host: str) -> None:
    with pytest.raises(ConfigurationError, match="without TLS") as caught:
        check_console(settings(**LOGIN, http_host=host))
    assert "BUCKETLOG_HTTP_CONSOLE_BEHIND_TLS_PROXY" in str(caught.value)
    check_console(settings(**LOGIN, http_host=host, http_console_behind_tls_proxy=True))
    check_console(settings(http_host=host))
    check_console(settings(**LOGIN, http_host=host, console=False))


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="tenants"):
        check_console(settings(tenants_file=Path("tenants.toml")))
    with pytest.raises(ConfigurationError, match="IN_FLIGHT"):
        check_console(settings(http_connections_max=16))
    with pytest.raises(ConfigurationError, match="key for credentials"):
        check_console(
            settings(
                listeners="IN:SASL_SSL://127.0.0.1:0",
                ssl_certificate_file="x",
                ssl_key_file="x",
                sasl_mechanisms="OAUTHBEARER",
                oauthbearer_jwks_file="x",
                oauthbearer_issuer="x",
                oauthbearer_audiences="x",
            )
        )


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketlog.log_format.extras.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="bucketlog\\[broker,console\\]"):
        check_console(settings())
