"""Adding a user to a cluster without a running broker, as `bucketlog cluster init` does.

A broker without sockets joins the cluster, commits the credential as AlterUserScramCredentials
does, and leaves. Invariants: other brokers may run meanwhile, because only the commit protocol
writes. Clients are never sent to this broker. The password does not leave this process.
"""

import asyncio
import secrets
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import ConfigurationError, LogError
from bucketlog.log_format.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from bucketlog.metadata.scram_credentials import CredentialName, ScramMechanism
from bucketlog.stateless_broker.assembly.node import Node
from bucketlog.stateless_broker.assembly.security_apis import credentials_handler
from bucketlog.stateless_broker.authentication.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SALT_BYTES,
    salted,
)
from bucketlog.stateless_broker.handlers.scram_credentials import MECHANISMS
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.process.environment import node_environment
from bucketlog.stateless_broker.settings.broker import BrokerSettings

BY = "bucketlog cluster init"
"""The name in the log, where other changes name a principal."""


@dataclass(frozen=True, slots=True)
class NewUser:
    """The user to add. `replaces`: whether the user may have a password of the mechanism
    already."""

    name: str
    password: str
    mechanism: ScramMechanism
    iterations: int
    replaces: bool


def check_settings(settings: BrokerSettings, iterations: int) -> None:
    """Check the settings before anybody types a password. Raises `ConfigurationError`."""
    if settings.credentials_key_file is None:
        raise ConfigurationError(
            "a password needs a key that encrypts it",
            remedy="set BUCKETLOG_CREDENTIALS_KEY_FILE, as for brokers (docs/logins.md)",
        )
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ConfigurationError(
            f"{iterations} iterations", remedy=f"use {ITERATIONS_MIN} to {ITERATIONS_MAX}"
        )


async def add_user(settings: BrokerSettings, user: NewUser) -> str:
    """Add a user. Returns the cluster's id. Raises `BucketlogError`."""
    check_settings(settings, user.iterations)
    # An id of its own: another broker may have the configured one.
    settings = settings.model_copy(update={"node_id": None})
    node = Node(settings, await node_environment(settings), health=Health())
    try:
        await node.begin([spec.port for spec in settings.listener_specs])
        await _commit(node, user)
        return node.membership.cluster_id
    finally:
        await node.drain(asyncio.get_running_loop().time() + settings.drain_timeout_ms / 1000)
        await node.close()


async def _commit(node: Node, user: NewUser) -> None:
    name = CredentialName(user.name, user.mechanism)
    if not user.replaces and name in node.parts.log.view.scram_credentials.by_name:
        raise ConfigurationError(
            f"user {user.name!r} has a {user.mechanism} password",
            remedy="add --replace to set another one, or run `bucketlog user password`",
        )
    numbers = {mechanism: number for number, mechanism in MECHANISMS.items()}
    salt = secrets.token_bytes(SALT_BYTES)
    upsertion = ScramCredentialUpsertion(
        name=user.name,
        mechanism=numbers[user.mechanism],
        iterations=user.iterations,
        salt=salt,
        salted_password=await asyncio.to_thread(
            salted, user.mechanism, user.password, salt, user.iterations
        ),
    )
    answer = await credentials_handler(node.parts).change(
        AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,)), by=BY
    )
    (result,) = answer["results"]
    if result["error_code"] is not ErrorCode.none:
        error = result["error_code"]
        raise LogError(
            f"adding user {user.name!r}: {result['error_message'] or 'the change failed'}",
            code=error.name.upper(),
            kafka_code=int(error),
            retriable=error is ErrorCode.request_timed_out,
            remedy="correct what is named; after a timeout, run the command with --replace",
        )
