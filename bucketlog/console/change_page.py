"""Computes the page Change: a form, then the plan, then the result.

Errors of a plan are shown above the form, with the values that were given.
"""

from collections.abc import Mapping
from dataclasses import replace

from bucketlog.console.broker_access import BrokerAccess
from bucketlog.console.changes import ChangeScene, LogChange
from bucketlog.console.group_changes import GROUP_CHANGES
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console, UnknownNameError, Values
from bucketlog.console.record_changes import RECORD_CHANGES
from bucketlog.console.topic_changes import TOPIC_CHANGES
from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    InvalidDataError,
    LogError,
)

CHANGES: Mapping[str, LogChange] = {
    change.name: change for change in (*TOPIC_CHANGES, *GROUP_CHANGES, *RECORD_CHANGES)
}


class ChangesOffError(ConfigurationError):
    """The console may not change the log."""


class OutcomeUnknownError(BucketlogError):
    """Brokers got a change and gave no answer. They may make it later."""

    code = "OUTCOME_UNKNOWN"


def change_form(console: Console, query: PageQuery) -> Values:
    """The form of the change `do`, with the values of the address. A link of another site cannot
    fill in fields that are typed by hand."""
    _changing(console)
    change = change_of(query)
    given = {field.name: query.text(field.name) for field in change.fields if not field.by_hand}
    return _values(change, PageQuery(given))


def change_plan(console: Console, query: PageQuery) -> Values:
    """The plan of the change that the field `do` names, or the form with an error."""
    access, change = _changing(console), change_of(query)
    view = console.look()
    cluster_id = view.identity.cluster_id
    try:
        log = access.log_to_change(cluster_id)
        plan = change.plan(ChangeScene(view, log, query, access.bootstrap, console.look_patiently))
    except (ConfigurationError, InvalidDataError, LogError) as error:
        return _values(change, query, error=error)

    make = plan.apply

    def apply() -> str:
        try:
            access.log_to_change(cluster_id)
        except LogError as error:
            raise BucketlogError(
                f"nothing has changed: {error.message}", remedy="fill in the form again"
            ) from error
        return make()

    plan_id = "" if plan.obstacle else console.plans.add(replace(plan, apply=apply))
    return _values(change, query) | {
        "plan": plan,
        "plan_id": plan_id,
        "rows": plan.rows[: console.settings.page_rows_max],
    }


def change_result(console: Console, query: PageQuery) -> Values:
    """Apply the plan `plan`. Raises `PlanGoneError`, `OutcomeUnknownError` and `LogError`."""
    _changing(console)
    plan = console.plans.take(query.text("plan"))
    try:
        result = plan.apply()
    except LogError as error:
        if not error.retriable:
            raise
        raise OutcomeUnknownError(
            f"it is not known whether the log has changed: {error.message}",
            remedy="look at the log after some time, before you fill in the form again",
        ) from error
    return {"view": None, "plan": plan, "result": result}


def change_of(query: PageQuery) -> LogChange:
    """The change that the address names. Raises `UnknownNameError`."""
    found = CHANGES.get(query.text("do"))
    if found is None:
        raise UnknownNameError(
            f"there is no change {query.text('do')[:40]!r}", remedy="use a button of a page"
        )
    return found


def _changing(console: Console) -> BrokerAccess:
    access = console.cluster
    if access is None or not access.may_change:
        raise ChangesOffError(
            "this console may not change the log",
            remedy="start `bucketlog console` with --bootstrap and --changes",
        )
    return access


def _values(change: LogChange, query: PageQuery, *, error: BucketlogError | None = None) -> Values:
    return {"view": None, "change": change, "values": query, "error": error, "plan": None}
