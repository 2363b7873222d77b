"""The CPU time that TLS costs a broker: of bucketlog, and of Apache Kafka with the same cipher.

    python -m benchmarks.tls --mb 500 --turns 5

One broker of each runs, with a listener in plain text and one with TLS 1.3. In each turn, each
listener of each broker gets records of 1 KB in batches of 1 MB, and then gives them to a consumer.
The turns alternate between the brokers, so that what else the machine does falls on both. The
producer and the consumer (librdkafka) are in this process, which is not measured. The figures are
CPU seconds of the broker per 10^9 bytes of values: of all its threads and children, and for
bucketlog of Valkey, too. They are medians over the turns. The turns before them, in which Java
compiles, are not counted. One JSON line on standard output. With --max-ratio, the exit code is 1 if
bucketlog's figure with TLS is more than so many times Kafka's.
"""

import argparse
import datetime
import ipaddress
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import create_connection
from statistics import median
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from benchmarks import fetch
from benchmarks.under_test import (
    GB,
    add_turn_arguments,
    create_topic,
    processes_cpu_s,
    report,
    settings_of,
)
from bucketlog.embedded.cluster import EmbeddedCluster
from localstack.apache_kafka import running_kafka
from localstack.kafka_jars import java_program
from localstack.servers import free_port

HOST = "127.0.0.1"
PLAIN, TLS = "plain", "tls"
INTO, OUT = "in", "out"


@dataclass(frozen=True, slots=True)
class Files:
    """`both`: the key and the certificate in one file."""

    certificate: Path
    key: Path
    both: Path


@dataclass(frozen=True, slots=True)
class Broker:
    """`listeners`: addresses by `PLAIN` and `TLS`. `pids`: whose CPU time counts."""

    name: str
    listeners: dict[str, str]
    pids: tuple[int, ...]

    def cpu_s(self) -> float:
        """Running total, with all children."""
        return processes_cpu_s(self.pids)

    def cipher(self, trust: Path) -> list[str]:
        """Version and cipher suite that a client of OpenSSL gets."""
        host, _, port = self.listeners[TLS].rpartition(":")
        context = ssl.create_default_context(cafile=str(trust))
        with (
            create_connection((host, int(port))) as raw,
            context.wrap_socket(raw, server_hostname=host) as connection,
        ):
            cipher = connection.cipher()
            assert cipher is not None
            return [str(connection.version()), cipher[0]]


def make_certificate(folder: Path) -> Files:
    """For `HOST`, signed by itself, with a key of P-256."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name.from_rfc4514_string("CN=benchmark")
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]),
            critical=False,
        )
    )
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    files = Files(folder / "broker.pem", folder / "broker.key", folder / "both.pem")
    files.certificate.write_bytes(certificate)
    files.key.write_bytes(pem)
    files.both.write_bytes(pem + certificate)
    return files


@contextmanager
def brokers(folder: Path, files: Files, settings: dict[str, str]) -> Iterator[list[Broker]]:
    """bucketlog, and Apache Kafka."""
    plain, tls = (f"{HOST}:{free_port()}" for _ in range(2))
    ours = {
        "listeners": f"PLAIN:PLAINTEXT://{plain},TLS:SSL://{tls}",
        "ssl_certificate_file": str(files.certificate),
        "ssl_key_file": str(files.key),
    }
    with ExitStack() as closing:
        cluster = closing.enter_context(
            EmbeddedCluster(folder / "bucketlog", settings=ours | settings)
        )
        kafka = closing.enter_context(running_kafka(folder / "kafka", tls_pem=files.both))
        assert kafka.tls_bootstrap is not None
        pids = cluster.pids["broker"], cluster.pids["valkey"]
        yield [
            Broker("bucketlog", {PLAIN: plain, TLS: tls}, pids),
            Broker(
                f"Apache Kafka {kafka.version}",
                {PLAIN: kafka.bootstrap, TLS: kafka.tls_bootstrap},
                (kafka.pid,),
            ),
        ]


def run(
    args: argparse.Namespace, broker: Broker, kind: str, topic: str, trust: Path
) -> dict[str, float]:
    """CPU s/GB into the broker and out of it, over one of its listeners."""
    bootstrap = broker.listeners[kind]
    client = {}
    if kind == TLS:
        client = {"security.protocol": "SSL", "ssl.ca.location": str(trust)}
    create_topic(broker.listeners[PLAIN], topic, args.partitions)
    before = broker.cpu_s()
    records = fetch.load(args, bootstrap, topic, client)
    between = broker.cpu_s()
    settings = fetch.reader_settings(bootstrap, args.fetch_bytes) | client
    read_bytes = sum(
        fetch.read(settings, topic, args.partitions, records) for _ in range(args.reads)
    )
    after = broker.cpu_s()
    return {
        INTO: (between - before) / (records * args.record_bytes / GB),
        OUT: (after - between) / (read_bytes / GB),
    }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    runs: dict[str, dict[str, dict[str, list[float]]]] = {}
    with tempfile.TemporaryDirectory(prefix="bucketlog-bench-") as name:
        folder = Path(name)
        files = make_certificate(folder)
        settings = settings_of(args)
        with brokers(folder, files, settings) as both:
            ciphers = {broker.name: broker.cipher(files.certificate) for broker in both}
            cases = [(broker, kind) for kind in (PLAIN, TLS) for broker in both]
            for turn in range(args.warm_up_turns + args.turns):
                for broker, kind in cases if turn % 2 else reversed(cases):
                    found = run(args, broker, kind, f"{kind}-{turn}", files.certificate)
                    print(turn, broker.name, kind, found, file=sys.stderr, flush=True)
                    if turn >= args.warm_up_turns:
                        kept = runs.setdefault(broker.name, {}).setdefault(kind, {})
                        for way, cost in found.items():
                            kept.setdefault(way, []).append(round(cost, 3))
            names = [broker.name for broker in both]
    costs = {
        name: {
            kind: {way: round(median(costs), 3) for way, costs in ways.items()}
            for kind, ways in kinds.items()
        }
        for name, kinds in runs.items()
    }
    ours, kafka = (costs[name] for name in names)
    return {
        "cpu_s_per_gb": costs,
        "ratio_to_kafka": {
            kind: {way: round(ours[kind][way] / kafka[kind][way], 2) for way in (INTO, OUT)}
            for kind in (PLAIN, TLS)
        },
        "tls_adds": {
            name: {way: round(of[TLS][way] - of[PLAIN][way], 3) for way in (INTO, OUT)}
            for name, of in costs.items()
        },
        "ciphers": ciphers,
        "openssl": ssl.OPENSSL_VERSION,
        "java": java_version(),
        "turns": args.turns,
        "runs": runs,
    }


def java_version() -> str:
    done = subprocess.run([java_program(), "-version"], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[0]


def shortfalls(args: argparse.Namespace, figures: dict[str, Any]) -> list[str]:
    found = []
    ciphers = list(figures["ciphers"].values())
    if ciphers[0] != ciphers[1]:
        found.append(f"the ciphers differ: {figures['ciphers']}")
    if args.max_ratio:
        found += [
            f"TLS {way}: {ratio} times Kafka's CPU time, at most {args.max_ratio} wanted"
            for way, ratio in figures["ratio_to_kafka"][TLS].items()
            if ratio > args.max_ratio
        ]
    return found


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_turn_arguments(parser, warm_up_turns=2)
    parser.add_argument("--max-ratio", type=float)
    return parser.parse_args(arguments)


def main() -> int:
    args = parse(sys.argv[1:])
    figures = measure(args)
    return report("tls", figures, shortfalls(args, figures))


if __name__ == "__main__":
    sys.exit(main())
