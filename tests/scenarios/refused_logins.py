"""What other people's clients say of a login that fails. They give up soon."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import aiokafka
import kafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaError

from tests.rigs.client_tls import ClientTls
from tests.rigs.patience import Deadline
from tests.servers import franz_go
from tests.servers.franz_go import GoClientError

REFUSAL_S = 3


def _librdkafka(where: str, tls: ClientTls) -> str:
    errors: list[str] = []
    client = AdminClient(
        {
            "bootstrap.servers": where,
            "log_level": 0,
            "error_cb": lambda error: errors.append(str(error)),
        }
        | tls.librdkafka()  # type: ignore[arg-type]  # plain texts
    )
    try:
        client.list_topics(timeout=REFUSAL_S)
    except KafkaException:
        pass
    else:
        return ""
    deadline = Deadline("the client reports no error")
    while not any("SASL" in each for each in errors):
        client.poll(0)
        deadline.pause()
    return " ".join(errors)


def _aiokafka(where: str, tls: ClientTls) -> str:
    async def run() -> str:
        client = aiokafka.AIOKafkaProducer(bootstrap_servers=where, **tls.python())
        try:
            await client.start()
        except aiokafka.errors.KafkaError as error:
            return str(error)
        finally:
            await client.stop()
        return ""

    return asyncio.run(run())


def _kafka_python(where: str, tls: ClientTls) -> str:
    try:
        client = kafka.KafkaAdminClient(
            bootstrap_servers=where, bootstrap_timeout_ms=REFUSAL_S * 1000, **tls.python()
        )
    except KafkaError as error:
        return str(error)
    client.close()
    return ""


def _franz_go(where: str, tls: ClientTls) -> str:
    try:
        franz_go.run(where, tls, "brokers")
    except GoClientError as error:
        if not any(word in str(error) for word in ("SASL", "oauth response")):
            raise
        return str(error)
    return ""


def _in_a_process(asks: Callable[[str, ClientTls], str]) -> Callable[[str, ClientTls], str]:
    """A client that is refused leaves its sockets open."""

    def run(where: str, tls: ClientTls) -> str:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            return process.submit(asks, where, tls).result()

    return run


REFUSED: dict[str, Callable[[str, ClientTls], str]] = {
    "confluent-kafka": _librdkafka,
    "aiokafka": _in_a_process(_aiokafka),
    "kafka-python": _in_a_process(_kafka_python),
    "franz-go": _franz_go,
}
"""What each client says of a login that fails."""
