"""Delegation tokens (KIP-48): the same steps on Apache Kafka and on bucketlog, by requests, by
Kafka's own tool, and by a Java client that logs in with a token."""

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic
from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.logins import log_in
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.users import add_user
from tests.rigs.wire_client import NO_TIME_MS, WireClient
from tests.servers.components import Components
from tests.servers.kafka_tools import KafkaTools
from tests.servers.secured_brokers import (
    ADMIN,
    PASSWORD,
    SecuredBroker,
    secured_bucketlog,
    secured_kafka,
)

pytestmark = pytest.mark.long

HOUR_MS, DAY_MS, WEEK_MS = 3_600_000, 86_400_000, 604_800_000
USERS = ("ann", "bob", "eve")
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
USER_RESOURCE, TOKEN_RESOURCE = 7, 6
CREATE_TOKENS, DESCRIBE = 13, 8


@pytest.fixture(scope="module", params=["kafka", "bucketlog"])
def broker(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    components: Components,
) -> Iterator[SecuredBroker]:
    folder = tmp_path_factory.mktemp(request.param)
    begin = {"kafka": secured_kafka, "bucketlog": secured_bucketlog}[request.param]
    try:
        with begin(folder) as found:
            for user in USERS:
                add_user(found.bootstrap, user, SHA_256, PASSWORD, config=found.config(ADMIN.name))
            yield found
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)


@dataclass
class Client:
    """Requests of one user, over connections that log in each time."""

    broker: SecuredBroker
    name: str
    password: str = PASSWORD
    by_token: bool = False
    mechanism: str = SHA_256

    @contextmanager
    def _connected(self) -> Iterator[WireClient]:
        with WireClient(self.broker.bootstrap) as client:
            found = log_in(client, self.name, self.password, self.mechanism, by_token=self.by_token)
            assert found.error_code == ErrorCode.none, found
            yield client

    def call(self, key: ApiKey, version: int, **values: Any) -> Any:
        with self._connected() as client:
            return client.call(key, version, **values)

    def login(self) -> Any:
        with WireClient(self.broker.bootstrap) as client:
            return log_in(client, self.name, self.password, self.mechanism, by_token=self.by_token)

    def create(self, *renewers: str, owner: str | None = None, kind: str = "User") -> Any:
        return self.call(
            ApiKey.CREATE_DELEGATION_TOKEN,
            3,
            owner_principal_type=None if owner is None else "User",
            owner_principal_name=owner,
            renewers=[{"principal_type": kind, "principal_name": name} for name in renewers],
            max_lifetime=-1,
        )

    def renew(self, hmac: bytes, period_ms: int = -1) -> Any:
        return self.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=hmac, renew_period=period_ms)

    def expire(self, hmac: bytes, period_ms: int) -> Any:
        return self.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac=hmac, expiry_time_period=period_ms)

    def describe(self, *owners: str, nobody: bool = False) -> Any:
        rows = [{"principal_type": "User", "principal_name": name} for name in owners]
        wanted = rows if rows or nobody else None
        return self.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=wanted)


def ms(time: datetime) -> int:
    found = round(time.timestamp() * 1000)
    return -1 if found == NO_TIME_MS else found


def created(found: Any) -> str:
    """The answer without what differs by chance."""
    who = f"{found.principal_type}:{found.principal_name}"
    asked = f"{found.token_requester_principal_type}:{found.token_requester_principal_name}"
    issued = ms(found.issue_timestamp)
    ends = ms(found.expiry_timestamp) - issued, ms(found.max_timestamp) - issued
    shape = len(found.hmac), len(found.token_id)
    return f"{ErrorCode(found.error_code).name} {who} by {asked} {ends} {shape}"


def described(found: Any) -> str:
    rows = sorted(
        (
            f"{token.principal_type}:{token.principal_name}",
            f"{token.token_requester_principal_type}:{token.token_requester_principal_name}",
            token.max_timestamp - token.issue_timestamp,
            len(token.hmac),
            tuple(f"{each.principal_type}:{each.principal_name}" for each in token.renewers),
        )
        for token in found.tokens
    )
    return f"{ErrorCode(found.error_code).name} {rows}"


def moved(found: Any, before: int) -> str:
    """The new end, in hours after `before`."""
    end = ms(found.expiry_timestamp)
    when = str(end) if end <= 0 else f"+{round((end - before) / HOUR_MS)} h"
    return f"{ErrorCode(found.error_code).name} {'now' if when == '+0 h' else when}"


def allow(
    broker: SecuredBroker,
    resource: ResourceType,
    name: str,
) -> None:
    """Let ann do everything to it."""
    admin = AdminClient({**broker.config(ADMIN.name)})
    literal, everything = ResourcePatternType.LITERAL, AclOperation.ALL
    rule = AclBinding(resource, name, literal, "User:ann", "*", everything, AclPermissionType.ALLOW)
    for future in admin.create_acls([rule]).values():
        future.result(PATIENCE_S)


def allow_tokens(broker: SecuredBroker, user: str, operation: int, kind: int, name: str) -> None:
    """librdkafka does not know these resources."""
    creation = {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": 3,
        "principal": f"User:{user}",
        "host": "*",
        "operation": operation,
        "permission_type": 3,
    }
    admin = Client(broker, ADMIN.name, ADMIN.password)
    answer = admin.call(ApiKey.CREATE_ACLS, 3, creations=[creation])
    assert answer.results[0].error_code == ErrorCode.none


def steps(broker: SecuredBroker) -> Iterator[tuple[str, str]]:
    """Each step with its outcome."""
    ann, bob, eve = (Client(broker, name) for name in USERS)
    admin = Client(broker, ADMIN.name, ADMIN.password)
    made = ann.create("bob")
    issued = ms(made.issue_timestamp)
    yield "ann creates a token", created(made)
    eventually(lambda: len(ann.describe().tokens) == 1)
    yield "ann sees her token", described(ann.describe())
    yield "ann sees the tokens of ann", described(ann.describe("ann"))
    yield "ann sees the tokens of nobody", described(ann.describe(nobody=True))
    yield "ann sees the tokens of eve", described(ann.describe("eve"))
    yield "bob sees what he may renew", described(bob.describe())
    yield "eve sees none", described(eve.describe())
    yield "a super user sees all", described(admin.describe())
    yield "a renewer of another type", created(ann.create("bob", kind="Group"))
    yield "eve creates one of ann", created(eve.create(owner="ann"))
    yield "eve renews it", moved(eve.renew(made.hmac), issued)
    yield "eve ends it", moved(eve.expire(made.hmac, -1), issued)
    yield "bob renews it", moved(bob.renew(made.hmac, 2 * HOUR_MS), issued)
    yield "ann renews it", moved(ann.renew(made.hmac), issued)
    yield "ann renews it for too long", moved(ann.renew(made.hmac, 2 * DAY_MS), issued)
    yield "ann renews an unknown one", moved(ann.renew(b"x" * 64), issued)
    yield "ann ends an unknown one", moved(ann.expire(b"x" * 64, -1), issued)
    yield "ann moves the end beyond the latest", moved(ann.expire(made.hmac, 9 * WEEK_MS), issued)
    yield "ann moves the end", moved(ann.expire(made.hmac, 5 * HOUR_MS), issued)
    yield from rights(broker, ann, eve)
    yield from logins(broker, made)
    yield "ann ends the token", moved(ann.expire(made.hmac, -1), issued)
    eventually(lambda: ann.renew(made.hmac).error_code != ErrorCode.none)
    yield "ann renews it after its end", moved(ann.renew(made.hmac), issued)
    secret = base64.b64encode(made.hmac).decode()
    ended = Client(broker, made.token_id, secret, by_token=True)
    eventually(lambda: ended.login().error_code != ErrorCode.none)
    yield "a login after its end", ErrorCode(ended.login().error_code).name


def rights(broker: SecuredBroker, ann: Client, eve: Client) -> Iterator[tuple[str, str]]:
    allow_tokens(broker, "eve", CREATE_TOKENS, USER_RESOURCE, "User:ann")
    eventually(lambda: not eve.create(owner="ann").error_code)
    yield "eve may create one of ann", created(eve.create(owner="ann"))
    eventually(lambda: len(eve.describe().tokens) == 2)
    yield "eve sees what she asked for", described(eve.describe())
    allow_tokens(broker, "eve", DESCRIBE, TOKEN_RESOURCE, "*")
    eventually(lambda: len(eve.describe().tokens) == 3)
    yield "eve may see all", described(eve.describe())
    for token in eve.describe().tokens:
        if token.token_requester_principal_name == "eve":
            assert not ann.expire(token.hmac, -1).error_code
    eventually(lambda: len(ann.describe().tokens) == 1)


def logins(broker: SecuredBroker, made: Any) -> Iterator[tuple[str, str]]:
    secret = base64.b64encode(made.hmac).decode()
    for mechanism in (SHA_256, SHA_512):
        by_token = Client(broker, made.token_id, secret, True, mechanism)
        answer = by_token.login()
        hours = round(answer.session_lifetime.total_seconds() / 3600)
        yield f"a login by {mechanism}", f"{ErrorCode(answer.error_code).name} {hours} h"
        wrong = Client(broker, made.token_id, secret[:-4], True, mechanism)
        yield f"a wrong secret, {mechanism}", ErrorCode(wrong.login().error_code).name
    unknown = Client(broker, "unknown", secret, by_token=True)
    yield "an unknown token", ErrorCode(unknown.login().error_code).name
    as_user = Client(broker, made.token_id, secret)
    yield "a token without tokenauth", ErrorCode(as_user.login().error_code).name
    by_token = Client(broker, made.token_id, secret, by_token=True)
    yield "a token asks for a token", created(by_token.create())
    yield "a token is renewed by itself", moved(by_token.renew(made.hmac), 0)
    yield "a token ends itself", moved(by_token.expire(made.hmac, -1), 0)
    yield "a token sees tokens", described(by_token.describe())


_found: dict[str, dict[str, str]] = {}


def test_answers_are_those_of_kafka(broker: SecuredBroker) -> None:
    """The second broker is compared with the first."""
    _found[broker.name] = found = dict(steps(broker))
    if broker.name != "bucketlog":
        return
    (theirs,) = [rows for name, rows in _found.items() if name != "bucketlog"]
    assert found.keys() == theirs.keys()
    different = {step: (theirs[step], found[step]) for step in found if theirs[step] != found[step]}
    assert not different


def test_the_tool_and_a_java_client(broker: SecuredBroker) -> None:
    """kafka-delegation-tokens.sh makes a token; a console producer and consumer log in by it."""
    tools = KafkaTools(broker.bootstrap)
    config = ("--command-config", str(broker.java_config("ann")))
    run = "kafka-delegation-tokens"
    lines = tools.lines(
        run, "--create", *config, "--max-life-time-period", "-1", "--renewer-principal", "User:bob"
    )
    (row,) = [line for line in lines if "User:ann" in line]
    token_id, hmac = row.split()[:2]
    listed = tools.lines(run, "--describe", *config, "--owner-principal", "User:ann")
    assert any(hmac in line for line in listed)
    for step in ("--renew", "--renew-time-period", "3600000"), ("--expire", "--expiry-time-period"):
        more = step if len(step) == 3 else (*step, "7200000")
        assert "expiry" in " ".join(tools.lines(run, *more, *config, "--hmac", hmac)).lower()

    admin = AdminClient({**broker.config(ADMIN.name)})
    for future in admin.create_topics([NewTopic("by-token", 1, 1)]).values():
        future.result(PATIENCE_S)
    for resource, name in ((ResourceType.TOPIC, "by-token"), (ResourceType.GROUP, "*")):
        allow(broker, resource, name)
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = f'{module} required username="{token_id}" password="{hmac}" tokenauth="true";'
    file = broker.folder / "token.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.jaas.config={login}\n"
    )
    by_token = ("--command-config", str(file), "--topic", "by-token")
    sent = tools.run("kafka-console-producer", *by_token, stdin=b"one\ntwo\n")
    assert sent.returncode == 0, sent.stderr.decode()
    assert b"Exception" not in sent.stdout + sent.stderr
    read = tools.run("kafka-console-consumer", *by_token, "--from-beginning", "--max-messages", "2")
    assert read.stdout.decode().split() == ["one", "two"], read.stderr.decode()
    refused = tools.run(run, "--describe", "--command-config", str(file))
    assert re.search(
        "DelegationTokenDisabled|requests are not allowed|not allowed",
        (refused.stdout + refused.stderr).decode(),
    )
    tools.lines(run, "--expire", "--expiry-time-period", "-1", *config, "--hmac", hmac)
