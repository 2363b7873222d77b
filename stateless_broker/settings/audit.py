"""The broker's settings of the audit log: a part of `BrokerSettings`."""

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import Positive

NORMAL_LOG, NOWHERE = "log", "off"


class AuditSettings(BaseSettings):
    audit_log: str = Field(
        NORMAL_LOG,
        description="Where the audit log goes: `log`, the broker's normal log; `off`; or the path "
        "of a file. The broker appends lines of JSON to the file (docs/audit.md).",
    )
    audit_refusals_per_client_per_s: Positive = Field(
        10,
        description="Limit of audit lines per second about failed logins, denials and refused "
        "changes of one client. A client is a principal, or the host of clients without one. "
        "The audit log has the number of suppressed lines.",
    )
    audit_refusals_per_s: Positive = Field(
        100,
        description="The same limit for all principals together, and separately for all hosts.",
    )
