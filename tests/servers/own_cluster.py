"""Broker processes of a test's own on one folder, with transactions and a Valkey of their own."""

from pathlib import Path

from tests.servers.broker_process import BrokerProcess
from tests.servers.own_valkey import OwnValkey

TRANSACTIONS_ON = {
    "transactions": "true",
    "heartbeat_interval_ms": "100",
    "session_timeout_ms": "1000",
    "transaction_abort_check_interval_ms": "100",
    "group_initial_rebalance_delay_ms": "0",
}


class OwnCluster:
    """Brokers on one folder, with a Valkey of their own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.valkey = OwnValkey(place)
        self.valkey.start()
        self.brokers: list[BrokerProcess] = []

    def start(self, **settings: str) -> BrokerProcess:
        broker = BrokerProcess(
            self.place / f"broker-{len(self.brokers)}.log",
            bucket_url=f"file://{self.place}/bucket",
            redis_url=f"unix://{self.valkey.path}",
            **TRANSACTIONS_ON | settings,
        )
        self.brokers.append(broker)
        return broker.wait_until_ready()

    def kill_and_restart(self, broker: BrokerProcess) -> BrokerProcess:
        """At the same address, as deployments restart brokers. If a broker returns with its node id
        at another port, librdkafka looks for it at the old port until its next metadata refresh."""
        broker.kill()
        return self.start(port=str(broker.ready["port"]))

    @property
    def bootstrap(self) -> str:
        return ",".join(
            broker.bootstrap for broker in self.brokers if broker.process.poll() is None
        )

    def stop(self) -> None:
        for broker in self.brokers:
            broker.kill()
        self.valkey.stop()
