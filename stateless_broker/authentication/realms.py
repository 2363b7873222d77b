"""Names of users with the realm of their tenant, `USER@TENANT`, and how realms find credentials."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.stateless_broker.authentication.scram import ScramCredential
from bucketlog.stateless_broker.authentication.token_login import FindToken, TokenLogin

REALM_MARK = "@"
FindCredential: TypeAlias = Callable[[str, ScramMechanism], ScramCredential | None]
"""The credential of a user; None: there is none."""


def find_by_realm(tenants: Mapping[str, FindCredential]) -> FindCredential:
    """Users of all tenants, by their names with realms. A tenant that does not exist looks as one
    whose user does not exist."""

    def find(name: str, mechanism: ScramMechanism) -> ScramCredential | None:
        user, _, tenant = name.rpartition(REALM_MARK)
        found = tenants.get(tenant)
        return None if found is None or not user else found(user, mechanism)

    return find


def find_token_by_realm(tenants: Mapping[str, FindToken]) -> FindToken:
    """Tokens of all tenants, by their ids with realms. The owner gets the realm."""

    async def find(name: str, mechanism: ScramMechanism) -> TokenLogin | None:
        token_id, _, tenant = name.rpartition(REALM_MARK)
        look_up = tenants.get(tenant)
        found = None if look_up is None else await look_up(token_id, mechanism)
        if found is None:
            return None
        return found._replace(owner=f"{found.owner}{REALM_MARK}{tenant}")

    return find
