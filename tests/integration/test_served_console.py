"""A broker with the console on its HTTP port: its pages, its logins, and processes that die."""

import base64
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

import bucketlog
from tests.rigs.console_log import GROUP, ORDERS, PAYMENTS, fill
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.shell import Shell
from tests.rigs.users import add_user, write_key_file
from tests.servers.broker_process import BrokerProcess
from tests.servers.browser import PATIENT, console_process
from tests.servers.lone_broker import listener, lone_broker

pytestmark = pytest.mark.long

PROGRAM = "bucketlog.console.broker_program"
USER, PASSWORD = "ann", "secret:ü"
SAME_PAGES = (
    "",
    "topics",
    f"topic?name={ORDERS}",
    f"messages?topic={ORDERS}",
    f"record?topic={PAYMENTS}&partition=0&offset=0",
    "groups",
    f"group?id={GROUP}",
    "transactions",
    "cost",
    "access",
    "nothing",
)
MOMENTS = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?|"
    r"<time.*?</time>|datetime=\"[^\"]*\"|title=\"[^\"]*\"|[\d.,]+ (ms|s|min|h|d)\b( ago)?"
)
"""What depends on the time of a page."""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str


def ask(url: str, **headers: str) -> Answer:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return Answer(answer.status, dict(answer.headers), answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, dict(error.headers), error.read().decode())


def http(broker: BrokerProcess) -> str:
    return f"http://127.0.0.1:{broker.ready['http_port']}"


def console_pid(broker: BrokerProcess) -> int | None:
    for child in psutil.Process(broker.process.pid).children():
        with suppress(psutil.NoSuchProcess):  # it has just ended
            if PROGRAM in child.cmdline():
                return child.pid
    return None


def wait_for_console(broker: BrokerProcess) -> None:
    eventually(lambda: ask(f"{http(broker)}/console/").status not in (502, 503))


PATIENT_CONSOLE = {f"console_{name}": value for name, value in PATIENT.items()}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Has a log, and the console."""
    folder = tmp_path_factory.mktemp("broker")
    with lone_broker(folder, console="on", **PATIENT_CONSOLE) as started:
        fill(started.bootstrap, orders=60)
        wait_for_console(started)
        yield started


def comparable(page: str, root: str) -> str:
    """The page without times, and without the link to the page Query, which needs a form."""
    text = MOMENTS.sub("", page.replace(f'"{root}/', '"/'))
    return re.sub(r'\s*<li><a href="/query".*?</li>', "", text, flags=re.DOTALL)


def is_same(ours: str, theirs: str) -> bool:
    """Brokers may write between two requests."""
    here, there = ask(ours), ask(theirs)
    same_text = comparable(here.body, "/console") == comparable(there.body, "")
    return here.status == there.status and same_text


def test_pages_are_those_of_the_command(broker: BrokerProcess, tmp_path: Path) -> None:
    bucket_url = f"file://{broker.log.parent}/bucket"
    with console_process(bucket_url, log_file=tmp_path / "log") as address:
        for path in SAME_PAGES:
            ours, theirs = f"{http(broker)}/console/{path}", f"{address}{path}"
            eventually(partial(is_same, ours, theirs), path)
            assert ask(ours).headers["content-security-policy"]


def test_every_link_of_a_page_works(broker: BrokerProcess) -> None:
    page = ask(f"{http(broker)}/console/").body
    links = set(re.findall(r'(?:href|src|action)="(/[^"]*)"', page))
    assert len(links) > 10
    assert all(link.startswith("/console/") for link in links)
    for link in links:
        assert ask(http(broker) + link.replace("&amp;", "&")).status < 400, link


def test_the_index_page_links_to_the_console(broker: BrokerProcess) -> None:
    assert '<a href="/console/">' in ask(f"{http(broker)}/").body
    assert ask(f"{http(broker)}/console").body.startswith("<!doctype html>")


def posted_to_process(broker: BrokerProcess, path: str) -> int:
    """The status of a POST request that does not pass the broker."""
    (at,) = {
        each.laddr
        for each in psutil.Process(console_pid(broker)).net_connections(kind="unix")
        if each.status == psutil.CONN_NONE and each.laddr
    }
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(at)
        head = f"POST /{path} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
        connection.sendall(f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        return int(connection.recv(100).split()[1])


def test_nothing_changes_the_log(broker: BrokerProcess) -> None:
    for path in ("verify/start", "verify/stop", "change", "change/apply", ""):
        url = f"{http(broker)}/console/{path}"
        request = urllib.request.Request(url, data=b"a=b", headers={"Origin": http(broker)})
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=PATIENCE_S)
        with caught.value as error:
            assert error.code == 405
        assert posted_to_process(broker, path) in (404, 405)
    for path in ("bucket", "topics", f"topic?name={ORDERS}", f"group?id={GROUP}"):
        assert 'method="post"' not in ask(f"{http(broker)}/console/{path}").body


def test_other_host_names_are_refused(broker: BrokerProcess) -> None:
    answer = ask(f"{http(broker)}/console/", Host="evil.example")
    assert (answer.status, answer.body) == (400, "Invalid host header")
    assert ask(f"{http(broker)}/console/", Host="localhost:1").status == 200


def test_a_console_that_is_killed_comes_back(broker: BrokerProcess) -> None:
    wait_for_console(broker)
    before = console_pid(broker)
    assert before is not None
    psutil.Process(before).kill()
    eventually(lambda: console_pid(broker) not in (None, before))
    wait_for_console(broker)
    assert broker.readiness()[0] == 200


def test_a_console_that_hangs_hurts_nothing_else(tmp_path: Path) -> None:
    """And it ends with its broker."""
    with lone_broker(tmp_path, console="on", http_console_requests_in_flight="2") as broker:
        wait_for_console(broker)
        pid = console_pid(broker)
        process = psutil.Process(pid)
        process.suspend()
        with ThreadPoolExecutor(3) as pool:
            asked = [pool.submit(_ask_quietly, f"{http(broker)}/console/") for _ in range(3)]
            eventually(lambda: any(each.done() for each in asked))
            assert [each.result() for each in asked if each.done()] == [503]
            for _ in range(20):
                assert broker.readiness()[0] == 200
                assert broker.metrics()
            with bucketlog.connect(broker.bootstrap) as log:
                log.topics.create("made", partitions=1)
            assert process.status() == psutil.STATUS_STOPPED
            broker.kill()
            eventually(lambda: not process.is_running())
            assert {each.result() for each in asked} == {503, None}


def _ask_quietly(url: str) -> int | None:
    """The status; None: the broker died."""
    try:
        return ask(url).status
    except OSError:
        return None


def test_the_console_ends_with_a_broker_that_is_killed(tmp_path: Path) -> None:
    with lone_broker(tmp_path, console="on") as broker:
        wait_for_console(broker)
        process = psutil.Process(console_pid(broker))
        broker.kill()
        eventually(lambda: not process.is_running())


def test_a_broker_that_stops_ends_its_console(tmp_path: Path) -> None:
    with lone_broker(tmp_path, console="on") as broker:
        wait_for_console(broker)
        process = psutil.Process(console_pid(broker))
        assert broker.terminate() == 0
        assert not process.is_running()


def login(user: str = USER, password: str = PASSWORD) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_users_log_in_and_need_rights(tmp_path: Path) -> None:
    with lone_broker(
        tmp_path,
        console="on",
        listeners="ADMIN:PLAINTEXT://127.0.0.1:0,IN:SASL_PLAINTEXT://127.0.0.1:0",
        credentials_key_file=str(write_key_file(tmp_path / "keys")),
        authorization="true",
        super_users="User:ANONYMOUS",
    ) as broker:
        url, admin = f"{http(broker)}/console/topics", listener(broker, "ADMIN")
        refused = ask(url)
        assert (refused.status, refused.headers["www-authenticate"].split()[0]) == (401, "Basic")
        add_user(admin, USER, "SCRAM-SHA-512", PASSWORD)
        eventually(lambda: ask(url, **login()).status == 403)
        assert ask(url, **login(password="wrong")).status == 401
        assert ask(url, **login("bob")).status == 401
        shell = Shell(admin)
        allow = ("acl", "add", "--allow-principal", f"User:{USER}", "--operation")
        shell.ok(*allow, "read", "--topic", "*")
        shell.ok(*allow, "describe", "--cluster")
        eventually(lambda: ask(url, **login()).status == 200)
        shell.ok("user", "delete", USER, "--yes")
        eventually(lambda: ask(url, **login()).status == 401)
        log = broker.log.read_text()
        assert f"User:{USER} logged in by BASIC (127.0.0.1, listener HTTP)" in log
        assert "login failed: user 'bob' is unknown, or the password is wrong" in log
        assert f"DESCRIBE on cluster 'kafka-cluster' is denied to User:{USER}" in log
        assert PASSWORD not in log


def test_a_broker_refuses_passwords_without_tls(tmp_path: Path) -> None:
    broker = BrokerProcess(
        tmp_path / "log",
        bucket_url=f"file://{tmp_path}/bucket",
        console="on",
        http_host="0.0.0.0",
        listeners="IN:SASL_PLAINTEXT://127.0.0.1:0",
        credentials_key_file=str(write_key_file(tmp_path / "keys")),
    )
    assert broker.wait() == 2
    assert "BUCKETLOG_HTTP_CONSOLE_BEHIND_TLS_PROXY=true" in broker.log.read_text()
