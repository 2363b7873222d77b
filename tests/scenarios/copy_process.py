"""One instance of a copy job, as a process: it copies --source to all --target topics.

    python -m tests.scenarios.copy_process --bootstrap … --id copy-0 --group copy --batch 100 \\
        --source in --target out --target also-out

Each record keeps its partition number. SIGTERM ends the process between two transactions. A fatal
error ends it with a traceback.
"""

import argparse
import signal
from collections.abc import Sequence

from confluent_kafka import Message, Producer

from tests.scenarios.copier import Copier, place_of

STARTED = "a producer begins"
"""Printed for each producer. A second line means that the first producer was stuck."""


class CopyProcess(Copier):
    def __init__(self, args: argparse.Namespace) -> None:
        self._targets: Sequence[str] = args.target
        where = args.bootstrap, args.id
        super().__init__(*where, group=args.group, source=args.source, batch=args.batch)

    def _new_producer(self) -> Producer:
        print(STARTED, flush=True)
        return super()._new_producer()

    def _write(self, producer: Producer, messages: Sequence[Message]) -> None:
        for message in messages:
            _, partition, _ = place_of(message)
            for target in self._targets:
                producer.produce(target, message.value(), partition=partition)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--bootstrap", "--id", "--group", "--source"):
        parser.add_argument(name, required=True)
    parser.add_argument("--target", action="append", required=True)
    parser.add_argument("--batch", type=int, required=True)
    process = CopyProcess(parser.parse_args())

    def stop(*_: object) -> None:
        process.stopping = True

    signal.signal(signal.SIGTERM, stop)
    process.run()


if __name__ == "__main__":
    main()
