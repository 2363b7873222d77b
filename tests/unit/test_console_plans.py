"""Changes by the console's pages: plans are applied once, forms are bounded, and pages of other
sites cannot send forms."""

import re
import threading
import weakref
from dataclasses import dataclass, field
from urllib.parse import urlencode

import pytest
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive

from bucketlog.console import change_page
from bucketlog.console.application import application
from bucketlog.console.broker_access import BrokerAccess
from bucketlog.console.changes import (
    ChangePlan,
    FieldKind,
    FormField,
    LogChange,
    assignments,
    lines_of,
)
from bucketlog.console.log_view import ConsoleLog
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console
from bucketlog.console.pending_plans import PendingPlans, PlanGoneError
from bucketlog.console.posted_forms import BadFormError, form_values
from bucketlog.console.settings import ConsoleSettings
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.unit.test_console_broker_access import ClosedLog, access_of, no_broker
from tests.unit.test_console_times import SteppedClock, answer
from tests.unit.test_verify import IDENTITY

SETTINGS = FormField("settings", "Settings", FieldKind.LINES)
HOST = "localhost:9644"
FORM = "application/x-www-form-urlencoded"


def plan_of(applied: list[str], name: str = "x") -> ChangePlan:
    def apply() -> str:
        applied.append(name)
        return f"{name} is done"

    return ChangePlan(name, "Do it", (), "bucketlog x", apply, "topics")


@dataclass
class Plans:
    clock: SteppedClock = field(default_factory=SteppedClock)

    def __post_init__(self) -> None:
        ids = iter(f"plan-{number}" for number in range(1_000))
        self.pending = PendingPlans(
            plans_max=3, age_ms_max=1_000, now_ms=self.clock.ms, new_id=lambda: next(ids)
        )


def test_a_plan_is_taken_once() -> None:
    plans, plan = Plans().pending, plan_of([])
    plan_id = plans.add(plan)
    assert plans.take(plan_id).apply is plan.apply
    with pytest.raises(PlanGoneError, match="already applied"):
        plans.take(plan_id)


def test_an_old_plan_is_gone() -> None:
    plans = Plans()
    first, second = plans.pending.add(plan_of([])), plans.pending.add(plan_of([]))
    plans.clock.now = 1_000
    plans.pending.take(first)
    plans.clock.now = 1_001
    with pytest.raises(PlanGoneError):
        plans.pending.take(second)


def test_a_plan_that_nobody_applies_leaves_memory() -> None:
    """A command may be six times as large as its form."""
    plans, plan = Plans(), plan_of([])
    plan_id = plans.pending.add(plan)
    kept = plans.pending.take(plan_id)
    assert (kept.command, kept.rows, kept.title) == ("", (), plan.title)
    plans.pending.add(plan)
    held = weakref.ref(plan.apply)
    del plan, kept
    plans.clock.now = 1_001
    assert held() is not None
    plans.pending.add(plan_of([]))
    assert held() is None


def test_the_oldest_of_too_many_plans_is_dropped() -> None:
    plans = Plans().pending
    ids = [plans.add(plan_of([])) for _ in range(4)]
    with pytest.raises(PlanGoneError):
        plans.take(ids[0])
    for each in ids[1:]:
        plans.take(each)


def test_lines_are_assignments() -> None:
    values = PageQuery({"settings": "a=1\r\n\r\n  b = 2=3 \nc="})
    assert lines_of(values, SETTINGS) == ["a=1", "b = 2=3", "c="]
    assert assignments(values, SETTINGS) == {"a": "1", "b": "2=3", "c": ""}


@pytest.mark.parametrize(
    ("text", "message"), [("a", "NAME=VALUE"), ("=1", "NAME=VALUE"), ("a=1\na=2", "twice")]
)
def test_other_lines_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        assignments(PageQuery({"settings": text}), SETTINGS)


def console_of(cluster: BrokerAccess | None, **settings: int) -> Console:
    store, clock = MemoryBucket(), SteppedClock()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    known = ConsoleSettings.model_validate(settings)
    return Console(store, "memory://b", known, KeyAccess(), 1, clock.ms, clock.s, cluster=cluster)


async def posted(console: Console, path: str, body: bytes, **headers: str) -> tuple[int, str]:
    """Status and body of the response to a POST request of the console's page."""
    app: ASGIApp = application(console, hosts=["localhost"])
    given = {"host": HOST, "origin": f"http://{HOST}", "content-type": FORM} | headers
    sent: list[Message] = []
    parts = [body[at : at + 1000] for at in range(0, max(1, len(body)), 1000)]
    messages = iter(
        {"type": "http.request", "body": part, "more_body": at < len(parts) - 1}
        for at, part in enumerate(parts)
    )

    async def receive() -> Message:
        return next(messages)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(name.encode(), text.encode()) for name, text in given.items() if text],
        "server": ("localhost", 9644),
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    text = b"".join(each.get("body", b"") for each in sent[1:]).decode()
    return sent[0]["status"], text


CREATE = urlencode({"do": "create-topic", "topic": "t"}).encode()


async def test_a_plan_of_a_page_is_applied_once() -> None:
    console, applied = console_of(access_of(no_broker)), list[str]()
    plan_id = console.plans.add(plan_of(applied, "<b>topic</b>"))
    body = urlencode({"plan": plan_id}).encode()
    status, text = await posted(console, "/change/apply", body)
    assert (status, applied) == (200, ["<b>topic</b>"])
    assert "&lt;b&gt;topic&lt;/b&gt; is done" in text
    status, text = await posted(console, "/change/apply", body)
    assert (status, applied) == (409, ["<b>topic</b>"])
    assert "already applied" in text


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://localhost:1"])
@pytest.mark.parametrize("path", ["/change", "/change/apply"])
async def test_forms_of_other_pages_are_refused(path: str, origin: str) -> None:
    console, applied = console_of(access_of(no_broker)), list[str]()
    plan_id = console.plans.add(plan_of(applied))
    body = urlencode({"plan": plan_id, "do": "create-topic", "topic": "t"}).encode()
    status, text = await posted(console, path, body, origin=origin)
    assert (status, applied) == (403, [])
    assert "only a page of this console" in text


@pytest.mark.parametrize("may_change", [None, False])
@pytest.mark.parametrize("path", ["/change", "/change/apply"])
async def test_without_the_flag_nothing_can_be_changed(path: str, may_change: bool | None) -> None:
    access = None if may_change is None else access_of(no_broker, may_change=may_change)
    console, applied = console_of(access), list[str]()
    plan_id = console.plans.add(plan_of(applied))
    body = urlencode({"plan": plan_id, "do": "create-topic", "topic": "t"}).encode()
    status, text = await posted(console, path, body)
    assert (status, applied) == (400, [])
    assert "--changes" in text


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (CREATE, "application/json", "has no form"),
        (CREATE, "", "has no form"),
        (CREATE + b"&x=%ff", FORM, "cannot be read"),
        ("topic=ä".encode(), FORM, "cannot be read"),
        (b"&".join(b"x%d=1" % number for number in range(50)), FORM, "cannot be read"),
        (CREATE + b"&settings=" + b"x" * 5_000, FORM, "BUCKETLOG_CONSOLE_CHANGE_BYTES_MAX"),
    ],
)
async def test_bad_forms_are_refused(body: bytes, content_type: str, message: str) -> None:
    console = console_of(access_of(no_broker), change_bytes_max=4_000)
    status, text = await posted(console, "/change", body, **{"content-type": content_type})
    assert (status, message in text) == (400, True)


async def test_an_unknown_change_is_refused() -> None:
    console = console_of(access_of(no_broker))
    status, text = await posted(console, "/change", b"do=%3Cscript%3E")
    assert (status, "<script>" in text) == (404, False)


async def test_a_link_does_not_type_the_name_of_a_topic_to_delete() -> None:
    app = application(console_of(access_of(no_broker)), hosts=["localhost"])
    status, _, text = await answer(app, "/change?do=delete-topic&topic=orders&typed=orders")
    assert (status, 'name="topic" value="orders"' in text) == (200, True)
    assert 'name="typed" value=""' in text


async def test_a_form_before_the_first_reading_is_not_replaced_by_another_page() -> None:
    """A refresh would ask for the page of the form, without its values."""
    console = console_of(access_of(no_broker), refresh_wait_ms=0)
    console._log = ConsoleLog(MemoryBucket(), "b", refresh_ms=1, now_ms=lambda: 0, patience_ms=0)
    console._log._view._made_now = threading.Event()
    status, text = await posted(console, "/change", CREATE)
    assert status == 502
    assert "the bucket is being read" in text


async def test_a_change_that_was_not_sent_has_changed_nothing() -> None:
    opened, applied = ClosedLog(str(IDENTITY.cluster_id)), list[str]()
    console = console_of(access_of(lambda: opened))
    change = LogChange("told", "Told", (), lambda _: plan_of(applied))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(change_page, "CHANGES", {"told": change})
        status, text = await posted(console, "/change", b"do=told")
    assert status == 200
    found = re.search(r'name="plan" value="([^"]+)"', text)
    assert found is not None
    opened.cluster_id = no_broker  # type: ignore[method-assign,assignment]  # it answers no longer
    status, text = await posted(console, "/change/apply", urlencode({"plan": found[1]}).encode())
    assert (status, applied) == (502, [])
    assert "nothing has changed: no broker answers" in text


async def test_without_brokers_the_form_keeps_its_values() -> None:
    status, text = await posted(console_of(access_of(no_broker)), "/change", CREATE)
    assert status == 502
    assert "no broker answers" in text
    assert 'name="topic" value="t"' in text


async def test_a_client_that_leaves_within_its_form_is_no_error_of_the_console() -> None:
    request = Request(
        {"type": "http", "method": "POST", "headers": [(b"content-type", FORM.encode())]},
        receive=iter_of({"type": "http.request", "body": b"do=", "more_body": True}),
    )
    with pytest.raises(BadFormError, match="the connection ended"):
        await form_values(request, 1_000)


def iter_of(*messages: Message) -> Receive:
    """The messages, and then the end of the connection."""
    left = iter([*messages, {"type": "http.disconnect"}])

    async def receive() -> Message:
        return next(left)

    return receive


async def test_a_change_without_an_answer_may_be_done() -> None:
    def apply() -> str:
        no_broker()
        return "done"

    console = console_of(access_of(no_broker))
    plan_id = console.plans.add(ChangePlan("x", "Do it", (), "bucketlog x", apply, "topics"))
    status, text = await posted(console, "/change/apply", urlencode({"plan": plan_id}).encode())
    assert status == 502
    assert "it is not known whether the log has changed: no broker answers" in text
    assert "look at the log" in text
