"""Tokens of the SDK: from a file and from a token URL, what is sent there, and errors."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from bucketlog import ClientCredentials, ConfigurationError, LogError, Security, TokenFile
from bucketlog.client.access_tokens import (
    bearer_message,
    checked,
    expires_s,
    librdkafka_callback,
)
from bucketlog.stateless_broker.authentication.oauthbearer import read_message
from tests.rigs.tokens import Provider

SECRET = "a secret: %+ü"
Asked = list[tuple[str, str, dict[str, list[str]]]]


class _TokenUrl(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        asked: Asked = self.server.asked  # type: ignore[attr-defined]  # the fixture's
        asked.append((self.path, self.headers["Authorization"], parse_qs(body)))
        answers: dict[str, tuple[int, Any]] = {
            "/token": (200, {"access_token": "a.b.c"}),
            "/refused": (401, {"error": "invalid_client"}),
            "/moved": (302, {}),
            "/none": (200, {"token": "a.b.c"}),
            "/list": (200, ["a.b.c"]),
        }
        status, content = answers[self.path]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/token")
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def do_GET(self) -> None:
        self.server.asked.append(("GET", "", {}))  # type: ignore[attr-defined]  # as above
        self.send_response(500)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, Asked]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _TokenUrl) as found:
        asked: Asked = []
        found.asked = asked  # type: ignore[attr-defined]  # for the handler
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}", asked
        found.shutdown()
        thread.join()


def credentials(url: str, **more: Any) -> ClientCredentials:
    return ClientCredentials(token_url=url, client_id="an app", client_secret=SECRET, **more)


def test_a_token_url(server: tuple[str, Asked]) -> None:
    url, asked = server
    assert credentials(f"{url}/token")() == "a.b.c"
    assert credentials(f"{url}/token", scope="read write")() == "a.b.c"
    header = base64.b64decode(asked[0][1].removeprefix("Basic ")).decode()
    assert header == "an+app:a+secret%3A+%25%2B%C3%BC"
    grant = {"grant_type": ["client_credentials"]}
    assert [form for _, _, form in asked] == [grant, grant | {"scope": ["read write"]}]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/refused", "refuses the client 'an app': status 401"),
        ("/moved", "status 302"),
        ("/none", "has no access token"),
        ("/list", "has no access token"),
    ],
)
def test_answers_that_have_no_token(server: tuple[str, Asked], path: str, words: str) -> None:
    url, asked = server
    with pytest.raises(LogError, match=words) as caught:
        credentials(f"{url}{path}")()
    assert SECRET not in str(caught.value)
    assert caught.value.remedy
    assert len(asked) == 1  # the secret went nowhere else


def test_nobody_is_there() -> None:
    with pytest.raises(LogError, match="no token from"):
        credentials("http://127.0.0.1:1/token")()


@pytest.mark.parametrize(
    "url", ["http://login.example/token", "ftp://x/", "login.example", "https://u:p@x/", "https://"]
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        credentials(url)


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    source = TokenFile(tmp_path / "token")
    with pytest.raises(LogError, match="cannot be read"):
        source()
    for text in ("a.b.c", "d.e.f"):
        (tmp_path / "token").write_text(f"{text}\n")
        assert source() == text


def test_what_a_token_says() -> None:
    token = Provider().token(exp=1_000_300.5)
    assert expires_s(token) == 1_000_300.5
    assert read_message(bearer_message(checked(token))) == (token, "", {})
    assert librdkafka_callback(lambda: token)("") == (token, expires_s(token))
    for wrong in ("", "a b", "a\x01b", "ü", "x" * 70_000):
        with pytest.raises(LogError, match="not a JWT"):
            checked(wrong)
    for wrong in ("a", "a.b.c", "a.e30.c", "a.W10.c", "a.eyJleHAiOiJ4In0.c"):
        with pytest.raises(LogError, match="when it expires"):
            expires_s(wrong)


def test_security_with_a_token() -> None:
    found = Security(token=lambda: "a.b.c")
    assert (found.mechanism, found.protocol) == ("OAUTHBEARER", "SASL_SSL")
    assert {"sasl.mechanism", "oauth_cb"} <= set(found.librdkafka())
    for wrong in (
        {"token": lambda: "", "username": "ann", "password": "x"},
        {"token": lambda: "", "mechanism": "PLAIN"},
        {"token": lambda: "", "tls": False},
        {"mechanism": "OAUTHBEARER"},
    ):
        with pytest.raises(ConfigurationError):
            Security(**wrong)
