"""Many connections that log in over TLS by SCRAM at about the same time, beside a bystander.

The clients run in a process of their own, `python -m tests.scenarios.login_storm`. They compute the
salted password once: the broker's work is that of a full handshake and a full login each time.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.certificate_authority import Authority
from tests.rigs.patience import PATIENCE_S, let_pass
from tests.rigs.wire_client import decode_response, encode_request
from tests.scenarios.bystander import Bystander, Latencies, percentile
from tests.scenarios.round_trip import create_topic
from tests.servers.lone_broker import PASSWORD, USER, listener, login_broker

MECHANISM = "SCRAM-SHA-256"
AT_ONCE = 100
SOURCES = tuple(f"127.0.0.{number}" for number in range(66, 74))
"""Limits of connections count by address: a bystander has another."""
IDLE_S = 5.0
NONCE = "storm"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Storm:
    """Connections stay open until all have logged in."""

    host: str
    port: int
    trust: ssl.SSLContext
    open: list[Streams] = field(default_factory=list)
    took_ms: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    left: int = 0
    """Connections that the broker had not closed when the last login was done."""

    async def run(self, count: int) -> None:
        slots = asyncio.Semaphore(AT_ONCE)

        async def log_in(number: int) -> None:
            async with slots:
                began = time.perf_counter()
                try:
                    await self._log_in(SOURCES[number % len(SOURCES)])
                except (OSError, AssertionError, asyncio.IncompleteReadError) as error:
                    self.failures.append(repr(error))
                self.took_ms.append(1000 * (time.perf_counter() - began))

        await asyncio.gather(*(log_in(number) for number in range(count)))
        self.left = sum(not reader.at_eof() for reader, _ in self.open)
        for _, writer in self.open:
            writer.transport.abort()

    async def _log_in(self, source: str) -> None:
        streams = await asyncio.open_connection(
            self.host, self.port, ssl=self.trust, local_addr=(source, 0), server_hostname=self.host
        )
        self.open.append(streams)
        begun = await _ask(streams, ApiKey.SASL_HANDSHAKE, 1, mechanism=MECHANISM)
        assert not begun.error_code, begun
        bare = f"n={USER},r={NONCE}"
        first = await _ask(streams, ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=f"n,,{bare}".encode())
        assert not first.error_code, first
        last = _final_message(bare, first.auth_bytes.decode())
        done = await _ask(streams, ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=last)
        assert not done.error_code, done


async def _ask(streams: Streams, key: ApiKey, version: int, **values: Any) -> Any:
    reader, writer = streams
    frame = encode_request(key, version, 1, values)
    writer.write(len(frame).to_bytes(4, "big") + frame)
    size = int.from_bytes(await reader.readexactly(4), "big")
    return decode_response(key, version, await reader.readexactly(size))[1]


@cache
def _salted(salt: str, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), base64.b64decode(salt), iterations)


def _final_message(bare: str, server_first: str) -> bytes:
    """RFC 5802, section 3."""
    told = dict(part.split("=", 1) for part in server_first.split(","))
    client_key = hmac.digest(_salted(told["s"], int(told["i"])), b"Client Key", "sha256")
    without_proof = f"c=biws,r={told['r']}"
    signed = f"{bare},{server_first},{without_proof}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def login_storm(logins: int) -> dict[str, Any]:
    """Raises `AssertionError` where a login or a request of the bystander fails."""
    with TemporaryDirectory(prefix="bucketlog-storm-") as name:
        root = Authority(Path(name))
        with login_broker(root) as broker:
            quiet = listener(broker, "ADMIN")
            create_topic(quiet, "bystander", 1)
            with Bystander([quiet], "bystander") as bystander:
                let_pass(IDLE_S)
                before = bystander.phase()
                done = subprocess.run(
                    [
                        *(sys.executable, "-m", "tests.scenarios.login_storm"),
                        *(listener(broker, "SASL_SSL"), str(root.file), str(logins)),
                    ],
                    stdout=subprocess.PIPE,
                    check=True,
                    timeout=PATIENCE_S,
                )
                during = bystander.phase()
    storm: dict[str, Any] = json.loads(done.stdout)
    figures = {"storm": storm, "before": _shown(before), "during": _shown(during)}
    assert not storm["failures"], f"logins failed: {storm['failures'][:3]}"
    assert storm["open_at_the_end"] == logins, figures
    assert not [*before.failures, *during.failures], f"the bystander failed: {during.failures[:3]}"
    return figures


def _shown(found: Latencies) -> dict[str, Any]:
    return {
        "produced": len(found.produce_ms),
        "produce_p50_ms": percentile(found.produce_ms, 0.5),
        "produce_p99_ms": found.produce_p99_ms,
        "api_versions_p50_ms": percentile(found.api_versions_ms, 0.5),
        "api_versions_p99_ms": found.api_versions_p99_ms,
    }


def main() -> None:
    where, ca, count = sys.argv[1:]
    host, port = where.split(":")
    storm = Storm(host, int(port), ssl.create_default_context(cafile=ca))
    began = time.perf_counter()
    asyncio.run(storm.run(int(count)))
    row = {
        "logins": int(count),
        "at_once": AT_ONCE,
        "seconds": round(time.perf_counter() - began, 1),
        "login_p50_ms": percentile(storm.took_ms, 0.5),
        "login_p99_ms": percentile(storm.took_ms, 0.99),
        "open_at_the_end": storm.left,
        "failures": storm.failures,
    }
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
