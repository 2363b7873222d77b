"""Delegation tokens of a broker process: who may ask, tokens that expire, restarts, the audit log.
`tests/compat/test_delegation_tokens.py` compares the answers with Apache Kafka's."""

import base64
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.test_logins import is_served, until_closed
from tests.rigs.delegation_tokens import create_token, token_login
from tests.rigs.logins import log_in
from tests.rigs.patience import eventually
from tests.rigs.users import add_user, write_key_file
from tests.rigs.wire_client import NO_TIME_MS, WireClient
from tests.servers.broker_process import BrokerProcess, Start

SHA_256 = "SCRAM-SHA-256"
EXPIRY_MS = 4_000


def serve(start: Start, folder: Path, **settings: str) -> BrokerProcess:
    keys = write_key_file(folder / "keys")
    return start(
        listeners="ADMIN:PLAINTEXT://127.0.0.1:0,IN:SASL_PLAINTEXT://127.0.0.1:0",
        credentials_key_file=str(keys),
        **({"delegation_token_key_file": str(keys)} | settings),
    ).wait_until_ready()


def connect(broker: BrokerProcess, listener: str = "IN") -> WireClient:
    return WireClient(str(broker.ready["listeners"][listener]))


def with_ann(broker: BrokerProcess) -> WireClient:
    add_user(str(broker.ready["listeners"]["ADMIN"]), "ann", SHA_256)
    client = connect(broker)
    assert log_in(client, "ann").error_code == ErrorCode.none
    return client


@pytest.mark.parametrize("key", [38, 39, 40, 41])
def test_nobody_without_a_login_may_ask(start: Start, tmp_path: Path, key: int) -> None:
    broker = serve(start, tmp_path)
    by_key: dict[int, dict[str, Any]] = {
        38: {"renewers": [], "max_lifetime": -1},
        39: {"hmac": b"x", "renew_period": 1},
        40: {"hmac": b"x", "expiry_time_period": 1},
        41: {"owners": None},
    }
    values = by_key[key]
    with connect(broker, "ADMIN") as client:
        answer = client.call(ApiKey(key), 1 + (key in (38, 41)), **values)
    assert answer.error_code == ErrorCode.delegation_token_request_not_allowed
    if key != ApiKey.DESCRIBE_DELEGATION_TOKEN:
        assert round(answer.expiry_timestamp.timestamp() * 1000) == NO_TIME_MS


def test_without_a_key_there_are_no_tokens(start: Start, tmp_path: Path) -> None:
    keys = str(write_key_file(tmp_path / "keys"))
    broker = start(
        listeners="ADMIN:PLAINTEXT://127.0.0.1:0,IN:SASL_PLAINTEXT://127.0.0.1:0",
        credentials_key_file=keys,
    ).wait_until_ready()
    disabled = ErrorCode.delegation_token_auth_disabled
    with with_ann(broker) as client:
        assert create_token(client).error_code == disabled
        described = client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None)
        assert described.error_code == disabled
        moved = client.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=b"x", renew_period=1)
        assert moved.error_code == disabled
    with connect(broker) as client:
        refused = log_in(client, "id", "secret", by_token=True)
        assert refused.error_code == ErrorCode.sasl_authentication_failed


def test_a_session_ends_with_its_token(start: Start, tmp_path: Path) -> None:
    broker = serve(start, tmp_path, delegation_token_expiry_ms=str(EXPIRY_MS))
    with with_ann(broker) as ann:
        made = create_token(ann)
        assert made.error_code == ErrorCode.none
        with connect(broker) as client:
            answer = token_login(client, made)
            assert answer.error_code == ErrorCode.none
            assert 0 < answer.session_lifetime.total_seconds() <= EXPIRY_MS / 1000
            until_closed(lambda: is_served(client))

        def is_refused() -> bool:
            with connect(broker) as client:
                code = token_login(client, made).error_code
                return bool(code == ErrorCode.sasl_authentication_failed)

        eventually(is_refused)
        described = ann.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None)
        assert described.tokens == ()
        late = ann.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=made.hmac, renew_period=-1)
        assert late.error_code == ErrorCode.delegation_token_expired
    assert "its session has ended (its token has expired)" in broker.log.read_text()


def test_tokens_outlive_a_broker_and_need_its_key(start: Start, tmp_path: Path) -> None:
    broker = serve(start, tmp_path)
    with with_ann(broker) as ann:
        made = create_token(ann)
    secret = base64.b64encode(made.hmac).decode()
    text = broker.log.read_text()
    assert made.token_id in text, "the audit log names the token"
    assert secret not in text
    broker.terminate()
    again = serve(start, tmp_path)
    with connect(again) as client:
        assert token_login(client, made).error_code == ErrorCode.none
    log = again.log.read_text()
    assert made.token_id in log, "the audit log names the token of a login"
    assert secret not in log
    again.terminate()
    other = write_key_file(tmp_path / "other", "cd" * 32)
    third = serve(start, tmp_path, delegation_token_key_file=str(other))
    with connect(third) as client:
        refused = token_login(client, made)
        assert refused.error_code == ErrorCode.sasl_authentication_failed
