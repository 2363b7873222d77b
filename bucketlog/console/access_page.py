"""Computes the page Access: users, access rules and quotas, as the bucket shows them."""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from bucketlog.console.log_view import LogView
from bucketlog.console.page_query import PageQuery, table_page
from bucketlog.console.pages import Console, Values
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.quota_entities import DEFAULT, QuotaEntity

KINDS = ("users", "rules", "quotas")
DEFAULT_NAME = "(every other)"


class UserRow(NamedTuple):
    """A password of a user, without anything that is computed from the password."""

    name: str
    mechanism: str
    iterations: int


class RuleRow(NamedTuple):
    """An access rule, with the names that Kafka's tools use. `of` is the name of the resource."""

    name: str
    host: str
    permission: str
    operation: str
    resource: str
    pattern: str
    of: str

    @property
    def filtered(self) -> str:
        return f"{self.name} {self.resource} {self.of}"


class QuotaRow(NamedTuple):
    name: str
    quota: str
    limit: float


def access(console: Console, query: PageQuery) -> Values:
    view = console.look()
    kind = query.choice("show", KINDS)
    keys = {"name": attrgetter("name")}
    rows: Sequence[UserRow | RuleRow | QuotaRow] = _rows(view, kind)
    page = table_page(
        rows,
        query,
        keys,
        filter_text=lambda row: row.filtered if isinstance(row, RuleRow) else row.name,
        rows_max=console.settings.page_rows_max,
    )
    return {"view": view, "kind": kind, "page": page, "counts": _counts(view.state)}


def _counts(state: LogState) -> Sequence[tuple[str, str, int]]:
    """Kind, label and number of rows."""
    return (
        ("users", "Users", len(state.scram_credentials.by_name)),
        ("rules", "Access rules", len(state.acls)),
        ("quotas", "Quotas", len(state.client_quotas.rows())),
    )


def _rows(view: LogView, kind: str) -> Sequence[UserRow | RuleRow | QuotaRow]:
    state = view.state
    if kind == "users":
        return [
            UserRow(name.user, name.mechanism, credential.iterations)
            for name, credential in state.scram_credentials.by_name.items()
        ]
    if kind == "rules":
        return [
            RuleRow(
                each.principal,
                each.host,
                each.permission.name,
                each.operation.name,
                each.resource_type.name,
                each.pattern_type.name,
                each.name,
            )
            for each in state.acls.bindings
        ]
    return [
        QuotaRow(_entity_text(name.entity), name.key, limit)
        for name, limit in state.client_quotas.rows().items()
    ]


def _entity_text(entity: QuotaEntity) -> str:
    """The text of an entity, such as `user=ann, client-id=(every other)`."""
    return ", ".join(
        f"{kind}={DEFAULT_NAME if name == DEFAULT else name}" for kind, name in entity.parts()
    )
