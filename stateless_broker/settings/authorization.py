"""The broker's settings for authorization: a part of `BrokerSettings`."""

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import Positive


class AuthorizationSettings(BaseSettings):
    authorization: bool = Field(
        False,
        description="authorizer.class.name: whether ACLs decide what clients may do (docs/acls.md)."
        " If it is false, every client may do everything.",
    )
    super_users: str = Field(
        "",
        description="super.users: principals that may do everything, separated by semicolons, as "
        "in `User:admin;User:CN=ops`.",
    )
    allow_everyone_if_no_acl_found: bool = Field(
        False,
        description="allow.everyone.if.no.acl.found: whether every client may use a resource that "
        "no ACL names.",
    )
    authorization_staleness_ms_max: Positive = Field(
        60_000,
        description="A broker that has not heard of the sequencer for this long refuses everyone "
        "but super users: it may not know the newest ACLs.",
    )
    authorization_decisions_max: Positive = Field(
        100_000, description="Limit of remembered decisions about clients."
    )
    acls_max: Positive = Field(10_000, description="Limit of ACLs in the cluster.")
    acl_principal_bytes_max: Positive = Field(
        1_024, description="Limit of the principal of an ACL."
    )
    acl_host_bytes_max: Positive = Field(256, description="Limit of the host of an ACL.")
    acl_name_bytes_max: Positive = Field(
        1_024, description="Limit of the name of an ACL's resource."
    )

    @field_validator("super_users")
    @classmethod
    def _super_users_are_principals(cls, text: str) -> str:
        for principal in _split(text):
            if ":" not in principal:
                raise ValueError(f"{principal!r} is not a principal: write User:{principal}")
        return text

    @property
    def super_user_names(self) -> frozenset[str]:
        return frozenset(_split(self.super_users))


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(";") if each.strip()]
